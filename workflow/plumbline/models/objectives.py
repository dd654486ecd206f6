"""Training objectives: a loss per row, and the metrics of held-out rows that the objective adds.

An adversary (Wiegreffe & Pinter 2019; Amini & Kosseim 2022) learns to output a base model's predictions with attention
that differs from the base model's. The rows' columns hold the base model's `base_probabilities` [B, C] and
`base_attention` [B, L, K] of its K heads.
"""

from collections.abc import Mapping
from math import log
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from plumbline.models.batch import Batch, output_of
from plumbline.models.distances import jensen_shannon, kullback_leibler, matched_mean, total_variation

# The columns of a batch's rows.
Columns = Mapping[str, torch.Tensor]


class Classification:
    """Cross entropy times the row's weight."""

    # The names of the metrics that `summary` returns, `loss` among them, and the splits that are always evaluated.
    metrics: tuple[str, ...] = ("loss",)
    reports: tuple[str, ...] = ()

    def run(self, model: Any, batch: Batch, row: Columns) -> Any:
        """The model's output."""
        return output_of(model, batch)

    def losses(self, output: Any, row: Columns) -> torch.Tensor:
        """The loss [B] that training minimises."""
        return cross_entropy(output.logits, row["label"], reduction="none") * row["weight"]

    def quantities(self, output: Any, row: Columns) -> torch.Tensor:
        """Values [B, Q] of each row, whose means over a split enter the summary."""
        return self.losses(output, row)[:, None]

    def summary(self, means: torch.Tensor) -> torch.Tensor:
        """The metrics of a split, from the means [Q] of its quantities."""
        return means


class Guided(Classification):
    """Classification with the base model's attention instead of its own (Wiegreffe & Pinter's pre-loaded attention)."""

    def run(self, model: Any, batch: Batch, row: Columns) -> Any:
        """The output with the base model's attention."""
        encoded = model.encode(model.embedding(batch.ids), batch)
        attention = row["base_attention"].squeeze(-1)
        # Not `classifier.Output`: a plug-in's model may return another class.
        return SimpleNamespace(logits=model.decode(encoded, attention), attention=attention)


class Adversarial(Classification):
    """Output close to the base model's, attention far from it.

    Heads are unordered: they are matched to the nearest heads of the base model, because a permutation of the heads is
    not a different attention.
    """

    metrics = ("tvd", "jsd", "kl", "loss")
    reports = ("test",)

    def combined_loss(self, tvd: torch.Tensor, jsd: torch.Tensor, kl: torch.Tensor) -> torch.Tensor:
        """The loss, from total variation, Jensen-Shannon and Kullback-Leibler divergence."""
        raise NotImplementedError

    def losses(self, output: Any, row: Columns) -> torch.Tensor:
        """The loss [B]; heads are matched over the batch."""
        tvd, jsd, kl = self._distances(output, row)
        return self.combined_loss(tvd, matched_mean(jsd, jsd.mean(0)), matched_mean(kl, jsd.mean(0)))

    def _distances(self, output: Any, row: Columns) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Total variation [B], and both divergences [B, K, K] between heads of the base model and the adversary's."""
        base = row["base_attention"].transpose(1, 2)[:, :, None]
        heads = heads_of(output)[:, None]
        tvd = total_variation(output.logits.softmax(-1), row["base_probabilities"])
        return tvd, jensen_shannon(heads, base), kullback_leibler(heads, base)

    def quantities(self, output: Any, row: Columns) -> torch.Tensor:
        """Total variation, then both divergences of all pairs of heads."""
        tvd, jsd, kl = self._distances(output, row)
        return torch.cat([tvd[:, None], jsd.flatten(1), kl.flatten(1)], dim=1)

    def summary(self, means: torch.Tensor) -> torch.Tensor:
        """TVD on the studies' scale, which for two classes is ½ |p - q|, the divergences and the loss."""
        heads = round(((len(means) - 1) / 2) ** 0.5)
        tvd, pairs = means[0], means[1:].view(2, heads, heads)
        jsd, kl = (matched_mean(pair[None], pairs[0])[0] for pair in pairs)
        return torch.stack([tvd / 2, jsd, kl, self.combined_loss(tvd, jsd, kl)])


def heads_of(output: Any) -> torch.Tensor:
    """The attention weights [B, K, L] of each head of an output; K is 1 for models with a single attention."""
    heads = getattr(output, "heads", None)
    return output.attention[:, None] if heads is None else heads


class AtteFa(Adversarial):
    """Scaled TVD minus scaled JSD, both from 0 to 1."""

    def combined_loss(self, tvd: torch.Tensor, jsd: torch.Tensor, kl: torch.Tensor) -> torch.Tensor:
        """TVD / 0.5 - JSD / ln 2; `tvd` is scaled to 1 already."""
        return tvd - jsd / log(2)


class WiegreffePinter(Adversarial):
    """TVD minus `strength` times the KL divergence of the adversary's attention from the base model's."""

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def combined_loss(self, tvd: torch.Tensor, jsd: torch.Tensor, kl: torch.Tensor) -> torch.Tensor:
        """TVD - λ KL(α‖α_base); `tvd` is scaled to 1, TVD to 0.5."""
        return tvd / 2 - self.strength * kl


def objective_of(name: str = "", strength: float | None = None) -> Classification:
    """The objective of a name in the config; classification if empty."""
    if name == "wiegreffe-pinter":
        return WiegreffePinter(strength or 0.0)
    return {"": Classification, "guided": Guided, "attefa": AtteFa}[name]()
