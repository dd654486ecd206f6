"""Random importances: the floor that every measure is compared with."""

import numpy as np

from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure("random", cheap=True, range=[0, 1], equation="U(0, 1)")
def random(evaluator: Evaluator, instances: Instances) -> Importances:
    """A uniform draw per word, from the seed and the instance alone, so that order and batch do not matter."""
    counts = [int(maskable.sum()) for maskable in instances.maskable]
    draws = (instances.generator(i, evaluator.seed).random(count) for i, count in enumerate(counts))
    return Importances([drawn.astype(np.float32) for drawn in draws])
