"""The selection of models that classify by some words alone, as importances."""

import torch

from plumbline.attribution.importances import Importances, ScoreBuffer
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure("selection", needs=["selection"], covers=["specials"], cheap=True, range=[0, 1], equation="z_t")
@torch.no_grad()
def selection(evaluator: Evaluator, instances: Instances) -> Importances:
    """How much of each word the model passes on to its classifier, without chance; above 0 it is selected.

    Special tokens are never selected and have 0.
    """
    gathered = ScoreBuffer(instances, "first")
    evaluator.each(instances, lambda index, batch: gathered.add(index, batch, evaluator.model(batch).z))
    return gathered.importances(explained=False)
