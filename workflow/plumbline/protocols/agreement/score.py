"""Agreement: do two measures rank the words of a text alike? (Jain & Wallace 2019, section 4.1; Neely et al. 2022)"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.errors import PlumblineError
from plumbline.figures.conventions import MOST_CLASSES
from plumbline.protocols.agreement import top_k_statistics
from plumbline.protocols.agreement.rank_statistics import kendall_tau, pearson, spearman
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.explained import Explained, Explanations, Key, join_columns
from plumbline.registry import protocol
from plumbline.store import TableSchema

SIGNIFICANT = 0.05
CORRELATIONS = {"kendall": kendall_tau, "spearman": spearman, "pearson": pearson}
TOP_K = {
    "top-k-jain-wallace": top_k_statistics.top_k_kendall_jain_wallace,
    "top-k-fagin": top_k_statistics.top_k_kendall_fagin,
    "top-k-neely": top_k_statistics.top_k_kendall_neely,
}


@protocol(
    "agreement",
    least_measures=2,
    equation="mean over instances of τ_b(a, b)",
    cost="No pass through the model: stored importances are ranked, once for each pair of measures.",
    misleads="Agreement is not faithfulness: measures may be wrong alike, and a faithful one may disagree with all "
    "others. The order of unimportant words, which is noise, counts as much as that of decisive ones. Ties and noisy "
    "measures lower it.",
    citation=[
        "Jain & Wallace (2019), Attention is not Explanation. NAACL.",
        "Neely, Schouten, Bleeker & Lucic (2022), A Song of (Dis)agreement: Evaluating the Evaluation of Explainable "
        "Artificial Intelligence in Natural Language Processing. HHAI.",
        "Fagin, Kumar & Sivakumar (2003), Comparing Top k Lists. SIAM Journal on Discrete Mathematics.",
    ],
    metrics=["kendall", "spearman", "pearson", "top-k-fagin", "top-k-jain-wallace", "top-k-neely"],
    latex="plumbline.protocols.agreement.latex:agreement_tables",
)
class Agreement:
    """Rank correlation of every pair of measures on every instance.

    Options:
        statistics: Correlations to compute; those named `top-k` compare only the k most important tokens.
        top_k_share: k as a share of the mean length of a text, 0 to 1.
        top_k_minimum: Smallest k, in tokens.
        tokens: Sets of tokens to rank: the words of the first text, those of both texts, or all with special tokens.
        subwords: Whether subwords are ranked on their own (`separate`), or words by the sum of their subwords
            (`summed`).
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
            self._seed(sum_subwords(explanations, words) if words else explanations, tokens)
            for explanations in explained.by_seed()
            for tokens in self.tokens
        ]
        return join_columns(seeds)

    def _seed(self, explanations: Explanations, tokens: str) -> dict[str, np.ndarray]:
        measures = sorted(explanations.scores)
        if len(measures) < 2:
            raise PlumblineError("Agreement needs at least two measures to compare.")
        ranked = ranked_scores(explanations, tokens)
        lengths = _common_lengths(ranked)
        a, b = np.triu_indices(len(measures), 1)
        shape = (len(lengths), len(a), len(self.statistics))
        value, p_value, reason = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, "", dtype=object)
        # Jain & Wallace use one k per dataset, from its mean length.
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
                why = reason[index, :, s]
                if statistic in CORRELATIONS:
                    why[np.logical_or(constant[:, a], constant[:, b])] = "constant importances"
                why[~np.logical_and(finite[:, a], finite[:, b])] = "importances are not finite"
                reason[index, :, s] = why if length > 1 else "fewer than two words"
        dropped = reason.astype(bool)
        reason[~dropped] = None
        value[dropped] = p_value[dropped] = np.nan

        def repeated(entries: np.ndarray | Sequence[str], axis: int) -> np.ndarray:
            """One entry per instance (axis 0), pair (1) or statistic (2), repeated for every row."""
            column = np.asarray(entries, dtype=object if axis else None)
            return np.broadcast_to(np.expand_dims(column, [i for i in range(3) if i != axis]), shape).ravel()

        return {
            "seed": np.full(value.size, explanations.seed),
            "split": repeated(explanations.split, 0),
            "instance": repeated(explanations.instance, 0),
            "predicted_class": repeated(explanations.predicted_class, 0),
            "measure_a": repeated([measures[i] for i in a], 1),
            "measure_b": repeated([measures[i] for i in b], 1),
            "statistic": repeated(self.statistics, 2),
            "tokens": np.full(value.size, tokens, dtype=object),
            "value": value.ravel(),
            "p_value": p_value.ravel(),
            "length": repeated(lengths, 0),
            "status": np.where(dropped, "dropped", "ok").ravel(),
            "reason": reason.ravel(),
        }

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `agreement`: means of each pair and statistic, by predicted class and over all classes."""
        frame = scores.to_pandas()
        groups = [frame.assign(predicted_class="all")]
        # Above three classes Jain & Wallace report only the mean over all.
        if frame["predicted_class"].nunique() <= MOST_CLASSES:
            groups.append(frame.assign(predicted_class=frame["predicted_class"].astype(str)))
        keys = ["seed", "measure_a", "measure_b", "statistic", "tokens", "predicted_class"]
        parts = [_summary(group.groupby(keys, observed=True, sort=True)) for group in groups]
        return pd.concat(parts, ignore_index=True).sort_values(keys, ignore_index=True)


def sum_subwords(explanations: Explanations, words: Mapping[Key, list[np.ndarray | None]]) -> Explanations:
    """Explanations with one score per word, the sum over its subwords; `words` maps each subword to its word."""
    text_words, second_words = zip(*(words[key] for key in explanations.keys), strict=True)

    def summed(scores: dict[str, Any], words: Sequence[np.ndarray | None]) -> dict[str, Any]:
        return {
            measure: rows
            and [row if word is None else np.bincount(word, row) for row, word in zip(rows, words, strict=True)]
            for measure, rows in scores.items()
        }

    return replace(
        explanations, scores=summed(explanations.scores, text_words), pair=summed(explanations.pair, second_words)
    )


def ranked_scores(explanations: Explanations, tokens: str) -> dict[str, list[np.ndarray]]:
    """The scores to rank, by measure: of the text's words, then of the second text's, then of special tokens."""
    ranked = {measure: [*scores] for measure, scores in explanations.scores.items()}
    parts = {"text": [], "texts": ["pair"], "all": ["pair", "specials"]}[tokens]
    for part in parts:
        part_scores = getattr(explanations, part)
        # Single texts have no pair, and the words of a prompt no scores, whatever the measure.
        if not any(part_scores.values()):
            continue
        for measure, scores in part_scores.items():
            if scores is None:
                what = "second texts" if part == "pair" else "special tokens"
                raise PlumblineError(
                    f"Agreement ranks {tokens!r}, but measure '{measure}' gives no scores to {what}; change the "
                    "measure's options or `tokens` of the protocol."
                )
            ranked[measure] = [np.concatenate(both) for both in zip(ranked[measure], scores, strict=True)]
    return ranked


def _common_lengths(scores: dict[str, list[np.ndarray]]) -> np.ndarray:
    """Number of scores per instance, which must be the same for all measures."""
    first, *others = sorted(scores)
    lengths = np.array([len(row) for row in scores[first]])
    for measure in others:
        if not np.array_equal(lengths, [len(row) for row in scores[measure]]):
            raise PlumblineError(f"Measures '{measure}' and '{first}' differ in the number of scores per instance.")
    return lengths


def evaluate(statistic: str, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A statistic of all pairs of measures and its p value, [B, M, M] each; p is NaN for top-k. scores: [B, M, n]."""
    if statistic in CORRELATIONS:
        return CORRELATIONS[statistic](scores)
    value = TOP_K[statistic](scores, k)
    return value, np.full_like(value, np.nan)


def _summary(groups: Any) -> pd.DataFrame:
    summary = groups.agg(
        n=("value", "count"), total=("status", "size"), mean=("value", "mean"), tested=("p_value", "count")
    )
    # Population standard deviation, as Jain & Wallace report it.
    summary["std"] = groups["value"].std(ddof=0)
    significant = groups["p_value"].agg(lambda p: float((p <= SIGNIFICANT).sum()))
    summary["significant_fraction"] = (significant / summary["tested"]).where(summary["tested"] > 0)
    summary["dropped"] = summary["total"] - summary["n"]
    summary["status"] = np.where(summary["n"] > 0, "ok", "undefined")
    summary["reason"] = summary["status"].map({"undefined": "no instance could be ranked"})
    return summary.drop(columns=["total", "tested"]).reset_index()
