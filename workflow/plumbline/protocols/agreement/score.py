"""Agreement: do two measures rank the words of a text alike? (Jain & Wallace 2019, section 4.1; Neely et al. 2022)"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.errors import PlumblineError
from plumbline.protocols.agreement import rank_statistics
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.explained import Explained, Explanations, Key
from plumbline.registry import protocol
from plumbline.store import TableSchema

SIGNIFICANT = 0.05


@protocol(
    "agreement",
    least_measures=2,
    equation="mean over instances of τ_b(a, b)",
    latex="plumbline.protocols.agreement.latex:agreement_tables",
)
class Agreement:
    """Rank correlation of every pair of measures on every instance.

    `tokens` says which are ranked, and may name several sets: the words of the text, those of both texts together, or
    all tokens, the special ones too. Of models with subwords, `joined` sums the scores of each word's.
    """

    table: ClassVar[TableSchema] = AGREEMENT

    def __init__(
        self,
        *,
        statistics: list[
            Literal["kendall", "spearman", "pearson", "top-k-jain-wallace", "top-k-fagin", "top-k-neely"]
        ] = ["kendall"],  # noqa: B006
        top_k_share: float = 0.1,
        top_k_minimum: int = 10,
        tokens: list[Literal["text", "texts", "all"]] = ["text"],  # noqa: B006
        subwords: Literal["separate", "summed"] = "separate",
    ) -> None:
        self.statistics = statistics
        self.tokens = tokens
        self.subwords = subwords
        self.top_k_share = top_k_share
        self.top_k_minimum = top_k_minimum

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `scores`: one row per seed, instance, pair of measures and statistic."""
        words = explained.words() if self.subwords == "summed" else {}
        seeds = [
            self._seed(joined(explanations, words) if words else explanations, tokens)
            for explanations in explained.by_seed()
            for tokens in self.tokens
        ]
        return {column: np.concatenate([columns[column] for columns in seeds]) for column in seeds[0]}

    def _seed(self, explanations: Explanations, tokens: str) -> dict[str, np.ndarray]:
        measures = sorted(explanations.scores)
        if len(measures) < 2:
            raise PlumblineError("Agreement needs at least two measures to compare.")
        ranked = ranked_scores(explanations, tokens)
        lengths = _common_lengths(ranked)
        a, b = np.triu_indices(len(measures), 1)
        shape = (len(lengths), len(a), len(self.statistics))
        value, p_value, reason = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, "", dtype=object)
        # The study takes one k per dataset, from its mean length.
        k = max(self.top_k_minimum, int(self.top_k_share * lengths.mean()))
        for length in np.unique(lengths):
            index = np.flatnonzero(lengths == length)
            scores = np.array([[ranked[m][i] for m in measures] for i in index], dtype=np.float64)
            finite = np.asarray(np.isfinite(scores).all(-1))
            scores[~finite] = 0.0
            constant = np.asarray(np.ptp(scores, axis=-1) == 0)
            for s, statistic in enumerate(self.statistics):
                values, p_values = evaluate(statistic, scores, k)
                value[index, :, s], p_value[index, :, s] = values[:, a, b], p_values[:, a, b]
                why = np.full((len(index), len(a)), "", dtype=object)
                if not statistic.startswith("top-k"):
                    why[np.logical_or(constant[:, a], constant[:, b])] = "constant importances"
                why[~np.logical_and(finite[:, a], finite[:, b])] = "importances are not finite"
                reason[index, :, s] = "fewer than two words" if length < 2 else why
        dropped = reason.astype(bool)
        reason[~dropped] = None
        value[dropped] = p_value[dropped] = np.nan

        def spread(per: np.ndarray | Sequence[str], axis: int) -> np.ndarray:
            """One entry per instance (axis 0), pair (1) or statistic (2), repeated for every row."""
            along = np.asarray(per, dtype=object if axis else None).reshape([-1 if i == axis else 1 for i in range(3)])
            return np.broadcast_to(along, shape).ravel()

        return {
            "seed": np.full(value.size, explanations.seed),
            "split": spread(explanations.split, 0),
            "instance": spread(explanations.instance, 0),
            "predicted_class": spread(explanations.predicted_class, 0),
            "measure_a": spread([measures[i] for i in a], 1),
            "measure_b": spread([measures[i] for i in b], 1),
            "statistic": spread(self.statistics, 2),
            "tokens": np.full(value.size, tokens, dtype=object),
            "value": value.ravel(),
            "p_value": p_value.ravel(),
            "length": spread(lengths, 0),
            "status": np.where(dropped, "dropped", "ok").ravel(),
            "reason": reason.ravel(),
        }

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `agreement`: means by predicted class, and over all, of each pair and statistic."""
        frame = scores.to_pandas()
        classes = frame["predicted_class"].nunique()
        everything = frame.assign(predicted_class="all")
        # Above three classes the study reports only the whole.
        groups = (
            [everything]
            if classes > 3
            else [frame.assign(predicted_class=frame["predicted_class"].astype(str)), everything]
        )
        keys = ["seed", "measure_a", "measure_b", "statistic", "tokens", "predicted_class"]
        return pd.concat(
            [_summary(group.groupby(keys, observed=True, sort=True)) for group in groups], ignore_index=True
        ).sort_values(keys, ignore_index=True)


def joined(explanations: Explanations, words: Mapping[Key, list[np.ndarray | None]]) -> Explanations:
    """The explanations with one score for each word, the sum of its subwords'; `words` says which they are of."""
    keys = zip(explanations.split.tolist(), explanations.instance.tolist(), strict=True)
    of_text, of_second = zip(*(words[key] for key in keys), strict=True)

    def summed(told: dict[str, Any], places: Sequence[np.ndarray | None]) -> dict[str, Any]:
        return {
            measure: rows
            and [row if at is None else np.bincount(at, row) for row, at in zip(rows, places, strict=True)]
            for measure, rows in told.items()
        }

    return replace(explanations, scores=summed(explanations.scores, of_text), pair=summed(explanations.pair, of_second))


def ranked_scores(explanations: Explanations, tokens: str) -> dict[str, list[np.ndarray]]:
    """The scores of each measure that are ranked: of the words, then of those of the second text, then of specials."""
    ranked = {measure: [*scores] for measure, scores in explanations.scores.items()}
    parts = {"text": [], "texts": ["pair"], "all": ["pair", "specials"]}[tokens]
    for part in parts:
        told = getattr(explanations, part)
        # Texts that stand alone have no pair, whatever the measure.
        if part == "pair" and not any(told.values()):
            continue
        for measure, scores in told.items():
            if scores is None:
                what = "second texts" if part == "pair" else "special tokens"
                raise PlumblineError(
                    f"Agreement ranks {tokens!r}, but the measure '{measure}' tells no scores of {what}; set its "
                    "options, or `tokens` of the protocol, otherwise."
                )
            ranked[measure] = [np.concatenate(both) for both in zip(ranked[measure], scores, strict=True)]
    return ranked


def _common_lengths(scores: dict[str, list[np.ndarray]]) -> np.ndarray:
    """Words of each instance, which all measures must agree on."""
    first, *others = sorted(scores)
    lengths = np.array([len(one) for one in scores[first]])
    for other in others:
        if not np.array_equal(lengths, [len(one) for one in scores[other]]):
            raise PlumblineError(f"Measure '{other}' does not have as many scores per instance as '{first}'.")
    return lengths


def evaluate(statistic: str, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A statistic of all pairs of measures, and its p value (NaN where it has none). scores: [B, M, n]."""
    if statistic.startswith("top-k"):
        value = {
            "top-k-jain-wallace": rank_statistics.top_k_kendall_jain_wallace,
            "top-k-fagin": rank_statistics.top_k_kendall_fagin,
            "top-k-neely": rank_statistics.top_k_kendall_neely,
        }[statistic](scores, k)
        return value, np.full_like(value, np.nan)
    correlation = {
        "kendall": rank_statistics.kendall_tau,
        "spearman": rank_statistics.spearman,
        "pearson": rank_statistics.pearson,
    }[statistic]
    return correlation(scores)


def _summary(groups: Any) -> pd.DataFrame:
    summary = groups.agg(
        n=("value", "count"), total=("status", "size"), mean=("value", "mean"), tested=("p_value", "count")
    )
    # Population spread, as Jain & Wallace report it.
    summary["std"] = groups["value"].std(ddof=0)
    significant = groups["p_value"].agg(lambda p: float((p <= SIGNIFICANT).sum()))
    summary["significant_fraction"] = (significant / summary["tested"]).where(summary["tested"] > 0)
    summary["dropped"] = summary["total"] - summary["n"]
    summary["status"] = np.where(summary["n"] > 0, "ok", "undefined")
    summary["reason"] = summary["status"].map({"undefined": "no instance could be ranked"})
    return summary.drop(columns=["total", "tested"]).reset_index()
