"""Adversarial attention: how different can attention be with the same output? (Jain & Wallace 2019, section 4.2.2)"""

from collections.abc import Callable
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

# An adversary must satisfy the bound by more than rounding errors, so that it also does when recomputed.
ROUNDING = 1e-6
# Bisection steps between an adversary beyond the bound and the attention.
HALVINGS = 16
# The study's code uses this slack for every epsilon, on the summed instead of the halved distance for more than two
# classes.
PUBLISHED_SLACK = 0.01
# The change in output [..., B] that attention weights [..., B, L] cause.
Change = Callable[[torch.Tensor], torch.Tensor]


class SearchOptions(NamedTuple):
    """Options of the search for adversaries."""

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
    cost="One forward pass per text, then `steps` forward and backward passes from attention to output for each of "
    "`adversaries` and each `epsilon`.",
    misleads="A high value shows only that such attention is possible: hidden states stay fixed, and no trained "
    "model need attend so. Where all hidden states are alike, any attention gives the same output. A low value may "
    "be a failed search: read `feasible_fraction`.",
    citation=[
        "Jain & Wallace (2019), Attention is not Explanation. NAACL.",
        "Wiegreffe & Pinter (2019), Attention is not not Explanation. EMNLP.",
    ],
    metrics=["jsd"],
)
class AdversarialAttention:
    """Attention that differs as much as possible and changes the output by at most epsilon.

    Adam optimises the adversaries: it maximises their divergence from the attention and from each other, minus
    `penalty` times the change in output beyond epsilon. Those that still exceed epsilon are interpolated towards the
    attention.

    Options:
        epsilon: Largest allowed changes of the output (total variation, 0 to 1); higher admits other attention.
        adversaries: Adversaries that are searched at once; the best of them counts.
        steps: Steps of the optimiser.
        learning_rate: Learning rate of Adam.
        penalty: Weight of the change in output beyond epsilon.
        spread: Standard deviation of the random initial logits.
        slack: `epsilon` searches for each epsilon; `published` once, at 0.01, and without interpolation.
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
            raise PlumblineError(f"`epsilon` is {epsilon}; it must contain distinct numbers above 0.")
        if adversaries < 1 or steps < 1:
            raise PlumblineError(f"`adversaries` is {adversaries} and `steps` is {steps}; both must be 1 or more.")
        self.epsilon = sorted(epsilon)
        self.search = SearchOptions(adversaries, steps, learning_rate, penalty, spread)
        self.slack = slack

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `adversaries`: one row per seed, instance and epsilon."""
        instances = explained.instances()
        parts = [self._seed(evaluator, instances) for evaluator in explained.models()]
        return {column: [value for part in parts for value in part[column]] for column in parts[0]}

    def _seed(self, evaluator: Evaluator, instances: Instances) -> dict[str, Any]:
        by_instance: list[list[dict[str, Any]]] = [[] for _ in instances.ids]

        def work(index: np.ndarray, batch: Batch) -> None:
            for i, rows in zip(index, self._batch(evaluator, instances, index, batch), strict=True):
                by_instance[i] = rows

        evaluator.each(instances, work)
        predicted = np.array([np.argmax(rows[0]["probabilities"]) for rows in by_instance], dtype=np.int32)
        keys = instance_columns(evaluator.seed, instances, predicted)
        columns: dict[str, Any] = {name: np.repeat(values, len(self.epsilon)) for name, values in keys.items()}
        return columns | {name: [row[name] for rows in by_instance for row in rows] for name in by_instance[0][0]}

    def _batch(
        self, evaluator: Evaluator, instances: Instances, index: np.ndarray, batch: Batch
    ) -> list[list[dict[str, Any]]]:
        """One row per epsilon for each instance of a batch."""
        model = evaluator.model
        with torch.no_grad():
            encoded = model.encode(model.embedding(batch.ids), batch)
            attention = model.attend(encoded, batch)
            before = model.decode(encoded, attention).softmax(-1)
        published = self.slack == "published"
        slack = [PUBLISHED_SLACK / (1 if before.shape[-1] == 2 else 2)] if published else self.epsilon
        starts = _starts(instances, index, batch.ids.shape[1], len(slack), self.search, evaluator.seed)
        logits = torch.from_numpy(starts).to(attention.device)

        def output_change(weights: torch.Tensor) -> torch.Tensor:
            return total_variation(model.decode(encoded, weights).softmax(-1), before)

        weights = search_adversaries(output_change, attention, batch.attendable, logits, slack, self.search)
        with torch.no_grad():
            searched = output_change(weights)
            if not published:
                weights = interpolate_to_bound(output_change, attention, weights, searched, slack)
            after = model.decode(encoded, weights).softmax(-1)
            change = total_variation(after, before)
            divergence = jensen_shannon(weights, attention).clamp(min=0)
        tensors = (attention, before, weights, after, searched, change, divergence)
        arrays = [tensor.cpu().numpy() for tensor in tensors]
        return [
            [
                self._row(epsilon, instances.maskable[i], row, 1 if published else number, *arrays)
                for number, epsilon in enumerate(self.epsilon, start=1)
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
        """The best adversary of a row within the bound, or the attention itself; `feasible` counts the adversaries that
        were within the bound when the search ended.

        Adversaries of smaller epsilons, in the first groups, count too: a wider bound never has a smaller maximum.
        """
        words = np.flatnonzero(maskable)
        within = change[:groups, :, row] <= epsilon - ROUNDING
        jsd = np.where(within, divergence[:groups, :, row], -1)
        best = (*divmod(int(jsd.argmax()), jsd.shape[1]), row)
        exists = within.any()
        return {
            "epsilon": epsilon,
            "max_attention": float(attention[row].max()),
            "feasible": int((searched[:groups, :, row] <= epsilon - ROUNDING).sum()),
            "jsd": float(divergence[best]) if exists else 0.0,
            "change": float(change[best]) if exists else 0.0,
            "attention": attention[row, words],
            "adversary": weights[best][words] if exists else attention[row, words],
            "probabilities": before[row],
            "adversary_probabilities": after[best] if exists else before[row],
        }

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `adversarial_attention`, by epsilon, predicted class and largest weight."""
        columns = ["seed", "predicted_class", "max_attention", "epsilon", "feasible", "jsd"]

        def summary(groups: Any) -> pd.DataFrame:
            divergence = groups["jsd"]
            statistics = {
                "n": divergence.size(),
                "feasible_fraction": groups["feasible"].agg(lambda count: (count > 0).mean()),
                "jsd_mean": divergence.mean(),
                "jsd_std": divergence.std(ddof=0),
            }
            return pd.DataFrame(statistics | quartiles(groups, "jsd")).reset_index()

        return by_class_and_bin(scores.select(columns).to_pandas(), ["seed", "epsilon"], summary)


def _starts(
    instances: Instances, index: np.ndarray, width: int, groups: int, options: SearchOptions, seed: int
) -> np.ndarray:
    """Initial logits [groups, adversaries, B, width]; a common shift such as the study's log(1/L) has no effect."""
    starts = np.zeros((groups, options.adversaries, len(index), width), dtype=np.float32)
    for row, i in enumerate(index):
        length = len(instances.ids[i])
        drawn = instances.generator(i, seed).standard_normal((groups, options.adversaries, length))
        starts[:, :, row, :length] = options.spread * drawn
    return starts


def search_adversaries(
    output_change: Change,
    attention: torch.Tensor,
    attendable: torch.Tensor,
    starts: torch.Tensor,
    slack: list[float],
    options: SearchOptions,
) -> torch.Tensor:
    """Adversarial weights [G, K, B, L] of all texts of a batch, one group of K adversaries for each slack.

    attention: [B, L]; starts: [G, K, B, L] logits. The loss of each text and slack s is
    Σ_k [penalty · max(0, TVD_k - s) - JSD(α_k, α)] - (1/K²) Σ_ij JSD(α_i, α_j). Texts are independent, so the gradient
    of the sum over texts contains the gradient of each.
    """
    logits = nn.Parameter(starts)
    optimiser = AmsGrad([([logits], 0.0)], options.learning_rate)
    bound = torch.tensor(slack, device=starts.device)[:, None, None]
    for _ in range(options.steps):
        weights = masked_softmax(logits.detach(), attendable)
        with torch.enable_grad():
            weights.requires_grad_()
            excess = (output_change(weights) - bound).clamp(min=0)
            (gradient,) = torch.autograd.grad(options.penalty * excess.sum(), weights)
        with torch.no_grad():
            gradient -= divergence_gradient(weights, attention)
            # Backward through the softmax; masked positions have weight 0, so their logits do not change.
            logits.grad = weights * (gradient - (weights * gradient).sum(-1, keepdim=True))
        optimiser.step()
    return masked_softmax(logits.detach(), attendable)


def interpolate_to_bound(
    output_change: Change, attention: torch.Tensor, weights: torch.Tensor, change: torch.Tensor, slack: list[float]
) -> torch.Tensor:
    """Weights [G, K, B, L] in which those whose `change` in output [G, K, B] exceeds their slack are interpolated
    towards the attention, by as little as bisection finds necessary.

    Close to the attention the output hardly changes, so weights within the bound always exist.
    """
    bound = torch.tensor(slack, device=weights.device)[:, None, None] - ROUNDING
    beyond = change > bound
    if not beyond.any():
        return weights
    low, high = torch.zeros_like(change), torch.ones_like(change)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        candidate = attention + middle[..., None] * (weights - attention)
        within = output_change(candidate) <= bound
        low, high = torch.where(within, middle, low), torch.where(within, high, middle)
    return torch.where(beyond[..., None], attention + low[..., None] * (weights - attention), weights)


def divergence_gradient(weights: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
    """The gradient of Σ_k JSD(α_k, α) + (1/K²) Σ_ij JSD(α_i, α_j) with respect to the weights α_k [G, K, B, L].

    In closed form, because autograd would store and traverse every intermediate of the K² divergences.
    """
    count = weights.shape[1]
    own = entropy_slope(weights)
    gradient = (own - entropy_slope((weights + attention) / 2)) / 2
    pairs = torch.combinations(torch.arange(count, device=weights.device), 2).T
    if len(pairs):
        first, second = pairs
        shared = entropy_slope((weights.index_select(1, first) + weights.index_select(1, second)) / 2)
        pairwise = (count - 1) * own
        pairwise.index_add_(1, first, shared, alpha=-1).index_add_(1, second, shared, alpha=-1)
        gradient += pairwise / count**2
    return gradient
