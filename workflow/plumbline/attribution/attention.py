"""Attention weights as importances."""

import torch

from plumbline.attribution.importances import Importances, empty_scores, per_word
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure("mean-attention", needs=["heads"], equation="(1/K) Σ_k α_kt")
@measure("attention", needs=["attention"], cheap=True, range=[0, 1], equation="α_t")
@torch.no_grad()
def attention(evaluator: Evaluator, instances: Instances) -> Importances:
    """The weight that the model's own attention gives each word; with several heads, their mean."""
    scores = empty_scores(instances)
    evaluator.each(instances, lambda index, batch: per_word(evaluator.model(batch).attention, instances, index, scores))
    return Importances(scores)
