"""Random importances: the floor that every measure is compared with."""

import zlib

import numpy as np

from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure("random", cheap=True, range=[0, 1], equation="U(0, 1)")
def random(evaluator: Evaluator, instances: Instances) -> Importances:
    """A uniform draw per word, from the seed and the instance alone, so that order and batch do not matter."""
    scores = []
    for split, instance, maskable in zip(instances.split, instances.instance, instances.maskable, strict=True):
        generator = np.random.default_rng([evaluator.seed, zlib.crc32(str(split).encode()), int(instance)])
        scores.append(generator.random(int(maskable.sum())).astype(np.float32))
    return Importances(scores)
