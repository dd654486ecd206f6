"""What a model learns: a loss of each row, and what is told of held-out rows beside their scores.

An adversary (Wiegreffe & Pinter 2019; AtteFa) learns to say what a base model says with attention that differs from
the base model's. What the base model says stands in the columns of the rows: `base_probabilities` [B, C] and
`base_attention` [B, L, K] of its K heads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from plumbline.models.batch import Batch, output_of
from plumbline.models.distances import jensen_shannon, kullback_leibler, matched, total_variation

Row = Mapping[str, torch.Tensor]


class Classification:
    """Cross entropy times the row's weight."""

    # What `summary` tells, the loss among it, and the splits that are always told of.
    told: tuple[str, ...] = ("loss",)
    reports: tuple[str, ...] = ()

    def run(self, model: Any, batch: Batch, row: Row) -> Any:
        """The model's output."""
        return output_of(model, batch)

    def losses(self, output: Any, row: Row) -> torch.Tensor:
        """The loss [B] that training lowers."""
        return cross_entropy(output.logits, row["label"], reduction="none") * row["weight"]

    def quantities(self, output: Any, row: Row) -> torch.Tensor:
        """Numbers [B, Q] of each row, of whose means over a split the summary is made."""
        return self.losses(output, row)[:, None]

    def summary(self, means: torch.Tensor) -> torch.Tensor:
        """What is `told` of a split, from the means [Q] of its quantities."""
        return means


class Guided(Classification):
    """Classification with the base model's attention in the place of its own (Wiegreffe & Pinter's pre-loaded one)."""

    def run(self, model: Any, batch: Batch, row: Row) -> Any:
        """The output with the base model's attention."""
        encoded = model.encode(model.embedding(batch.ids), batch)
        attention = row["base_attention"].squeeze(-1)
        # Not the model's own class of output, which a plug-in need not share.
        return _Output(model.decode(encoded, attention), attention)


@dataclass(frozen=True)
class _Output:
    logits: torch.Tensor
    attention: torch.Tensor


class Adversarial(Classification):
    """Near to the base model in output and far from it in attention.

    Heads have no order of their own: they are matched to the base model's so that they are nearest, or else a change of
    their order would count as another attention.
    """

    told = ("tvd", "jsd", "kl", "loss")
    reports = ("test",)

    def joined(self, change: torch.Tensor, jsd: torch.Tensor, kl: torch.Tensor) -> torch.Tensor:
        """The loss, from total variation, Jensen-Shannon and Kullback-Leibler divergence."""
        raise NotImplementedError

    def losses(self, output: Any, row: Row) -> torch.Tensor:
        """The loss [B]; heads are matched over the batch."""
        return self.joined(*self._told(output, row))

    def _told(self, output: Any, row: Row) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        change, jsd, kl = self._distances(output, row)
        return change, _of_matched(jsd, jsd.mean(0)), _of_matched(kl, jsd.mean(0))

    def _distances(self, output: Any, row: Row) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Total variation [B], and both divergences [B, K, K] of each head of the base model from each of ours."""
        base = row["base_attention"].transpose(1, 2)[:, :, None]
        ours = heads_of(output)[:, None]
        change = total_variation(output.logits.softmax(-1), row["base_probabilities"])
        return change, jensen_shannon(ours, base), kullback_leibler(ours, base)

    def quantities(self, output: Any, row: Row) -> torch.Tensor:
        """Total variation, then both divergences of all pairs of heads."""
        change, jsd, kl = self._distances(output, row)
        return torch.cat([change[:, None], jsd.flatten(1), kl.flatten(1)], dim=1)

    def summary(self, means: torch.Tensor) -> torch.Tensor:
        """TVD on the studies' scale, which for two classes is ½ |p - q|, the divergences and the loss."""
        heads = round(((len(means) - 1) / 2) ** 0.5)
        change, pairs = means[0], means[1:].view(2, heads, heads)
        jsd, kl = (_of_matched(pair[None], pairs[0])[0] for pair in pairs)
        return torch.stack([change / 2, jsd, kl, self.joined(change, jsd, kl)])


def heads_of(output: Any) -> torch.Tensor:
    """The weights [B, K, L] of each head of an output; one head, if the model has no more."""
    heads = getattr(output, "heads", None)
    return output.attention[:, None] if heads is None else heads


def _of_matched(pairs: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
    """The mean [B] over heads of values [B, K, K] of pairs of heads, each with its match by the distances [K, K]."""
    heads = len(distances)
    if heads == 1:
        return pairs[:, 0, 0]
    order = matched(distances.detach())
    return pairs[:, torch.arange(heads, device=pairs.device), order].mean(-1)


class AtteFa(Adversarial):
    """Scaled TVD less scaled JSD, both from 0 to 1."""

    def joined(self, change: torch.Tensor, jsd: torch.Tensor, kl: torch.Tensor) -> torch.Tensor:
        """TVD / 0.5 - JSD / ln 2."""
        return change - jsd / log(2)


class WiegreffePinter(Adversarial):
    """TVD less a strength times the KL divergence of the adversary's attention from the base model's."""

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def joined(self, change: torch.Tensor, jsd: torch.Tensor, kl: torch.Tensor) -> torch.Tensor:
        """TVD - λ KL(α‖α_base)."""
        return change / 2 - self.strength * kl


def objective_of(name: str = "", strength: float | None = None) -> Classification:
    """The objective by its name in the config; none is classification."""
    if name == "wiegreffe-pinter":
        return WiegreffePinter(strength or 0.0)
    return {"": Classification, "guided": Guided, "attefa": AtteFa}[name]()
