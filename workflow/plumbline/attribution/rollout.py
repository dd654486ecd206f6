"""Attention rollout: the share of each token in the output if layers only mix tokens by attention."""

from typing import Literal

import numpy as np
import torch

from plumbline.attribution.importances import Importances, ScoreBuffer, passes_in
from plumbline.data.instances import Instances
from plumbline.models.batch import Batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import measure


def mixing_matrices(weights: torch.Tensor) -> torch.Tensor:
    """Â_l of each layer, [B, layers, T, T], in double precision: Ā_l + I, with rows that sum to 1.

    Ā_l is the mean over heads; I is the residual connection. Padding, which no token attends to, mixes into no token.
    weights: [B, layers, heads, T, T].
    """
    mean = weights.mean(dim=2).double()
    mixed = mean + torch.eye(mean.shape[-1], dtype=mean.dtype, device=mean.device)
    return mixed / mixed.sum(dim=-1, keepdim=True)


def roll_out(mixed: torch.Tensor, readout: torch.Tensor) -> torch.Tensor:
    """r · R_L with R_l = Â_l R_{l-1} and R_0 = I, [B, T]. mixed: Â, [B, layers, T, T]; readout: r, [B, T].

    From the last layer down, so that each step is a vector-matrix product.
    """
    rolled = readout.to(mixed.dtype)
    for layer in reversed(mixed.unbind(dim=1)):
        rolled = torch.einsum("bt,bts->bs", rolled, layer)
    return rolled


@measure(
    "rollout",
    needs=["layers"],
    cheap=True,
    range=[0, 1],
    equation="(r Â_L ⋯ Â_1)_t, Â_l = (Ā_l + I) / 2",
    cost="One or two forward passes per text and a vector-matrix product for each layer.",
    misleads="It ignores values, feed-forward layers and the class: the same scores explain any output. The residual "
    "connection counts for half in every layer, and with many layers scores become nearly uniform.",
    citation="Abnar & Zuidema (2020), Quantifying Attention Flow in Transformers. ACL.",
)
@torch.no_grad()
@passes_in("tf32")
def rollout(
    evaluator: Evaluator,
    instances: Instances,
    *,
    texts: Literal["first", "both"] = "both",
    specials: bool = True,
) -> Importances:
    """The share of each token in the input of the output layer, if layers only mix tokens by their attention
    (Abnar & Zuidema 2020).

    r is the readout: the first token, or the attention over words. Shares sum to 1 over all tokens, including special
    tokens and second texts even if these are not scored.
    """
    buffer = ScoreBuffer(instances, texts, specials)

    def work(index: np.ndarray, batch: Batch) -> None:
        mixed = mixing_matrices(evaluator.model.layers(batch))
        buffer.add(index, batch, roll_out(mixed, evaluator.model.readout(batch)))

    evaluator.each(instances, work)
    return buffer.importances(explained=False)
