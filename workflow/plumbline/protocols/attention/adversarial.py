"""Adversarial attention: how different can attention be with the same output? (Jain & Wallace 2019, section 4.2.2)"""

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from torch import nn

from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.attention import masked_softmax
from plumbline.models.batch import Batch
from plumbline.models.distances import entropy_slope, jensen_shannon, total_variation
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.attention.bins import by_class_and_bin, quartiles
from plumbline.protocols.attention.schemas import ADVERSARIAL_ATTENTION, ADVERSARIES
from plumbline.protocols.explained import Explained, instance_columns
from plumbline.registry import protocol
from plumbline.store import TableSchema
from plumbline.training.optimisers import AmsGrad

# An adversary counts only if it keeps the bound by more than rounding, so that it does when computed anew.
ROUNDING = 1e-6
# How finely the way back to the attention is searched.
HALVINGS = 16
# The study's code always searches with this much room, on the summed instead of the halved distance where there are
# more than two classes.
PUBLISHED_SLACK = 0.01


class Search(NamedTuple):
    """How adversaries are searched for."""

    adversaries: int
    steps: int
    learning_rate: float
    penalty: float
    spread: float


@protocol(
    "adversarial_attention",
    needs=["attention"],
    least_measures=0,
    gpu=True,
    equation="max over adversaries α' with ½ Σ_c |p_c(α') - p_c(α)| ≤ ε of JSD(α', α)",
)
class AdversarialAttention:
    """Attention that differs as much as possible and changes the output by no more than epsilon.

    `adversaries` are searched for at once, from random starts, by `steps` of Adam on the divergence from the attention
    and from each other, less `penalty` times what the output moves beyond epsilon. Those that still move it too far go
    back towards the attention until they do not. With `slack` at `epsilon` each epsilon has its own search; `published`
    is the study's code: one search, at 0.01, for all, and no way back.
    """

    table: ClassVar[TableSchema] = ADVERSARIAL_ATTENTION
    scores: ClassVar[TableSchema] = ADVERSARIES

    def __init__(
        self,
        *,
        epsilon: list[float] = [0.01, 0.05],  # noqa: B006
        adversaries: int = 5,
        steps: int = 500,
        learning_rate: float = 0.01,
        penalty: float = 500.0,
        spread: float = 3.0,
        slack: Literal["epsilon", "published"] = "epsilon",
    ) -> None:
        if not epsilon or min(epsilon) <= 0 or len(set(epsilon)) < len(epsilon):
            raise PlumblineError(f"`epsilon` is {epsilon}; it must hold numbers above 0, each once.")
        if adversaries < 1 or steps < 1:
            raise PlumblineError(f"`adversaries` is {adversaries} and `steps` is {steps}; both must be 1 or more.")
        self.epsilon = sorted(epsilon)
        self.search = Search(adversaries, steps, learning_rate, penalty, spread)
        self.slack = slack

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `adversaries`: one row per seed, instance and epsilon."""
        instances = explained.instances()
        parts = [self._seed(evaluator, instances) for evaluator in explained.models()]
        return {column: [value for part in parts for value in part[column]] for column in parts[0]}

    def _seed(self, evaluator: Evaluator, instances: Instances) -> dict[str, Any]:
        found: list[list[dict[str, Any]]] = [[] for _ in instances.ids]
        predicted = np.empty(len(instances), dtype=np.int32)

        def work(index: np.ndarray, batch: Batch) -> None:
            for i, rows in zip(index, self._batch(evaluator, instances, index, batch), strict=True):
                found[i] = rows
                predicted[i] = int(np.argmax(rows[0]["probabilities"]))

        evaluator.each(instances, work)
        keys = instance_columns(evaluator.seed, instances, predicted)
        columns: dict[str, Any] = {name: np.repeat(values, len(self.epsilon)) for name, values in keys.items()}
        return columns | {name: [row[name] for rows in found for row in rows] for name in found[0][0]}

    def _batch(
        self, evaluator: Evaluator, instances: Instances, index: np.ndarray, batch: Batch
    ) -> list[list[dict[str, Any]]]:
        """For each instance of a batch, a row for each epsilon."""
        model = evaluator.model
        with torch.no_grad():
            encoded = model.encode(model.embedding(batch.ids), batch)
            attention = model.attend(encoded, batch)
            before = model.decode(encoded, attention).softmax(-1)
        published = self.slack == "published"
        slack = [PUBLISHED_SLACK / (1 if before.shape[-1] == 2 else 2)] if published else self.epsilon
        starts = _starts(instances, index, batch.ids.shape[1], len(slack), self.search, evaluator.seed)
        weights = search(
            model, encoded, attention, before, batch.attendable, torch.from_numpy(starts).to(attention.device), slack,
            self.search,
        )  # fmt: skip
        with torch.no_grad():
            searched = total_variation(model.decode(encoded, weights).softmax(-1), before)
            if not published:
                weights = kept_within(model, encoded, attention, before, weights, searched, slack)
            after = model.decode(encoded, weights).softmax(-1)
            change = total_variation(after, before)
            divergence = jensen_shannon(weights, attention).clamp(min=0)
        parts = (attention, before, weights, after, searched, change, divergence)
        told = [part.cpu().numpy() for part in parts]
        return [
            [
                self._row(epsilon, instances.maskable[i], row, 1 if published else place + 1, *told)
                for place, epsilon in enumerate(self.epsilon)
            ]
            for row, i in enumerate(index)
        ]

    @staticmethod
    def _row(
        epsilon: float,
        maskable: np.ndarray,
        row: int,
        groups: int,
        attention: np.ndarray,
        before: np.ndarray,
        weights: np.ndarray,
        after: np.ndarray,
        searched: np.ndarray,
        change: np.ndarray,
        divergence: np.ndarray,
    ) -> dict[str, Any]:
        """The best adversary of a row that keeps the bound, or the attention itself; `feasible` are those that did when
        the search ended.

        Those found with less room, in the groups before, count too: a wider bound never has a smaller maximum.
        """
        words = np.flatnonzero(maskable)
        kept = change[:groups, :, row] <= epsilon - ROUNDING
        found = np.where(kept, divergence[:groups, :, row], -1)
        best = (*divmod(int(found.argmax()), found.shape[1]), row)
        none = not kept.any()
        return {
            "epsilon": epsilon,
            "max_attention": float(attention[row].max()),
            "feasible": int((searched[:groups, :, row] <= epsilon - ROUNDING).sum()),
            "jsd": 0.0 if none else float(divergence[best]),
            "change": 0.0 if none else float(change[best]),
            "attention": attention[row, words],
            "adversary": attention[row, words] if none else weights[best][words],
            "probabilities": before[row],
            "adversary_probabilities": before[row] if none else after[best],
        }

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `adversarial_attention`, by epsilon, predicted class and largest weight."""
        columns = ["seed", "predicted_class", "max_attention", "epsilon", "feasible", "jsd"]

        def summary(groups: Any) -> pd.DataFrame:
            divergence = groups["jsd"]
            told = {
                "n": divergence.size(),
                "feasible_fraction": groups["feasible"].agg(lambda count: (count > 0).mean()),
                "jsd_mean": divergence.mean(),
                "jsd_std": divergence.std(ddof=0),
            }
            return pd.DataFrame(told | quartiles(groups, "jsd")).reset_index()

        return by_class_and_bin(scores.select(columns).to_pandas(), ["seed", "epsilon"], summary)


def _starts(instances: Instances, index: np.ndarray, width: int, groups: int, search: Search, seed: int) -> np.ndarray:
    """Random logits [groups, adversaries, B, width]; a common shift such as the study's log(1/L) changes nothing."""
    starts = np.zeros((groups, search.adversaries, len(index), width), dtype=np.float32)
    for row, i in enumerate(index):
        length = len(instances.ids[i])
        drawn = instances.generator(i, seed).standard_normal((groups, search.adversaries, length))
        starts[:, :, row, :length] = search.spread * drawn
    return starts


def search(
    model: Any,
    encoded: Any,
    attention: torch.Tensor,
    before: torch.Tensor,
    attendable: torch.Tensor,
    starts: torch.Tensor,
    slack: list[float],
    how: Search,
) -> torch.Tensor:
    """Adversarial weights [G, K, B, L] of all texts of a batch, a group of K for each slack.

    attention: [B, L]; before: [B, C] its output; starts: [G, K, B, L] logits. Minimised is, for each text and slack s,
    Σ_k [penalty · max(0, TVD_k - s) - JSD(α_k, α)] - (1/K²) Σ_ij JSD(α_i, α_j). Rows do not touch each other, so that
    the gradient of the sum over texts holds each text's own.
    """
    logits = nn.Parameter(starts)
    optimiser = AmsGrad([([logits], 0.0)], how.learning_rate)
    room = torch.tensor(slack, device=starts.device)[:, None, None]
    for _ in range(how.steps):
        weights = masked_softmax(logits.detach(), attendable)
        with torch.enable_grad():
            weights.requires_grad_()
            moved = total_variation(model.decode(encoded, weights).softmax(-1), before)
            (slope,) = torch.autograd.grad(how.penalty * (moved - room).clamp(min=0).sum(), weights)
        with torch.no_grad():
            slope -= divergence_slope(weights, attention)
            # Through the softmax: logits that may not be attended have weight 0, and stay.
            logits.grad = weights * (slope - (weights * slope).sum(-1, keepdim=True))
        optimiser.step()
    return masked_softmax(logits.detach(), attendable)


def kept_within(
    model: Any,
    encoded: Any,
    attention: torch.Tensor,
    before: torch.Tensor,
    weights: torch.Tensor,
    moved: torch.Tensor,
    slack: list[float],
) -> torch.Tensor:
    """Weights [G, K, B, L] of which those that move the output, `moved` [G, K, B], by more than their slack go back on
    the straight way to the attention, as far as they must.

    Near the attention the output hardly moves, so that one which keeps the bound is always there.
    """
    bound = torch.tensor(slack, device=weights.device)[:, None, None] - ROUNDING
    beyond = moved > bound
    if not beyond.any():
        return weights
    low, high = torch.zeros_like(moved), torch.ones_like(moved)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        tried = attention + middle[..., None] * (weights - attention)
        keeps = total_variation(model.decode(encoded, tried).softmax(-1), before) <= bound
        low, high = torch.where(keeps, middle, low), torch.where(keeps, high, middle)
    return torch.where(beyond[..., None], attention + low[..., None] * (weights - attention), weights)


def divergence_slope(weights: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
    """The derivative of Σ_k JSD(α_k, α) + (1/K²) Σ_ij JSD(α_i, α_j) by the weights α_k [G, K, B, L].

    Written down, because automatic differentiation would keep and visit every intermediate of the K² divergences.
    """
    count = weights.shape[1]
    own = entropy_slope(weights)
    slope = (own - entropy_slope((weights + attention) / 2)) / 2
    pairs = torch.combinations(torch.arange(count, device=weights.device), 2).T
    if len(pairs):
        first, second = pairs
        shared = entropy_slope((weights.index_select(1, first) + weights.index_select(1, second)) / 2)
        apart = (count - 1) * own
        apart.index_add_(1, first, shared, alpha=-1).index_add_(1, second, shared, alpha=-1)
        slope += apart / count**2
    return slope
