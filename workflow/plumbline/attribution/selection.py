"""The words selected by a rationale model as importances."""

import torch

from plumbline.attribution.importances import Importances, ScoreBuffer
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure(
    "selection",
    needs=["selection"],
    covers=["specials"],
    cheap=True,
    range=[0, 1],
    equation="z_t",
    cost="One forward pass per text.",
    misleads="The classifier reads nothing else, but which words are selected may itself encode the class, so that "
    "they need not be evidence. Their number follows from the trained `rate`, not from the text.",
    citation=[
        "Lei, Barzilay & Jaakkola (2016), Rationalizing Neural Predictions. EMNLP.",
        "Bastings, Aziz & Titov (2019), Interpretable Neural Predictions with Differentiable Binary Variables. ACL.",
        "Yu, Chang, Zhang & Jaakkola (2019), Rethinking Cooperative Rationalization: Introspective Extraction and "
        "Complement Control. EMNLP.",
    ],
)
@torch.no_grad()
def selection(evaluator: Evaluator, instances: Instances) -> Importances:
    """The share of each word that the model passes on to its classifier, without sampling; above 0 it is selected.

    Special tokens are never selected and have 0.
    """
    buffer = ScoreBuffer(instances, "first")
    evaluator.each(instances, lambda index, batch: buffer.add(index, batch, evaluator.model(batch).z))
    return buffer.importances(explained=False)
