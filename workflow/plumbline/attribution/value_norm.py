"""Attention times the norms of what is attended to."""

import numpy as np
import torch

from plumbline.attribution.importances import Importances, ScoreBuffer, passes_in
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


@measure(
    "attention-x-value-norm",
    needs=["layers", "values"],
    cheap=True,
    range=[0, None],
    equation="1/(L H) Σ_l Σ_h Σ_q r_q α^lh_qt ‖v^lh_t‖",
    cost="Two forward passes per text.",
    misleads="Norms have no direction: contributions that cancel count as large. It explains no class, and the "
    "tokens of higher layers are already mixtures of others.",
    citation="Kobayashi, Kuribayashi, Yokoi & Inui (2020), Attention is Not Only a Weight: Analyzing Transformers "
    "with Vector Norms. EMNLP.",
)
@torch.no_grad()
@passes_in("tf32")
def attention_x_value_norm(evaluator: Evaluator, instances: Instances) -> Importances:
    """The attention of the readout r to each token, times the norm of the token's value vector, the mean over layers
    and heads. A token with a short value vector adds little to the output, however much attention it gets (Kobayashi
    et al. 2020, whose norms include the output projection).
    """
    buffer = ScoreBuffer(instances, "both", True)

    def work(index: np.ndarray, batch: Batch) -> None:
        weights, norms = evaluator.model.layers(batch), evaluator.model.value_norms(batch)
        read = torch.einsum("bq,blhqt->blht", evaluator.model.readout(batch), weights)
        buffer.add(index, batch, (read * norms).mean(dim=(1, 2)))

    evaluator.each(instances, work)
    return buffer.importances(explained=False)
