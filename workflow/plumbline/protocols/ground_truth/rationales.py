"""Rationales: do models that classify by some words alone select those that decide? (Zhou et al. 2022, section 7)"""

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.errors import PlumblineError
from plumbline.protocols.explained import Explained, Explanations, Key
from plumbline.protocols.ground_truth.schemas import RATIONALE_SCORES, RATIONALES
from plumbline.registry import protocol
from plumbline.store import TableSchema, read_table
from plumbline.training.schemas import PREDICTIONS

NOT_MANIPULATED = "nothing was manipulated"
NO_TRUTH = "no text has a word that decides"
NOTHING_SELECTED = "no word is selected"
# The group of words that decides, the first of a manipulation's.
DECIDES = 1


class Optimum(NamedTuple):
    """The best precision and recall that a selection of some size can have."""

    precision: float
    recall: float


def optimum(words: np.ndarray, truth: np.ndarray, rate: float) -> Optimum:
    """Of a share `rate` of all words together: Pr = min(1, A / sN) and Re = min(1, sN / A).

    words, truth: [N], words of each text and how many of them decide. NaN where nothing is selected, or none decides.
    """
    return _optimum(min(truth.sum(), rate * words.sum()), rate * words.sum(), truth.sum())


def optimum_each(words: np.ndarray, truth: np.ndarray, rate: float) -> Optimum:
    """If that share of each text is selected: Pr = Σ min(A_i, sL_i) / Σ sL_i and Re = Σ min(A_i, sL_i) / Σ A_i."""
    return _optimum(np.minimum(truth, rate * words).sum(), rate * words.sum(), truth.sum())


def _optimum(hits: float, selected: float, truth: float) -> Optimum:
    return Optimum(*(float(hits / whole) if whole else float("nan") for whole in (selected, truth)))


def optimum_curve(words: np.ndarray, truth: np.ndarray, rates: Iterable[float]) -> pd.DataFrame:
    """The optima at each of the rates, under the names that the table `rationales` has for them."""
    return pd.DataFrame([{"selection_rate": rate, **_optima(words, truth, rate)} for rate in rates])


def _optima(words: np.ndarray, truth: np.ndarray, rate: float) -> dict[str, float]:
    whole, each = optimum(words, truth, rate), optimum_each(words, truth, rate)
    return {
        "optimum_precision": whole.precision,
        "optimum_recall": whole.recall,
        "optimum_precision_each": each.precision,
        "optimum_recall_each": each.recall,
    }


@protocol(
    "rationales", needs=["selection"], variants="manipulated", equation="Pr = |F ∩ F_C| / |F|, Re = |F ∩ F_C| / |F_C|"
)
class Rationales:
    """Precision and recall of the words that a model selects, against those that a manipulation has made decide.

    F are the selected words of all texts together, those whose score by `measure` is above 0, and F_C the ones that
    decide.
    """

    table: ClassVar[TableSchema] = RATIONALES
    scores: ClassVar[TableSchema] = RATIONALE_SCORES

    def __init__(self, *, measure: str = "selection") -> None:
        self.measure = measure

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `rationale_scores`: one row per seed and instance."""
        if self.measure not in explained.importances:
            raise PlumblineError(
                f"The protocol 'rationales' reads the measure '{self.measure}', which the study does not have; add it "
                "to `measures`, or set `measure` of the protocol."
            )
        regions = explained.regions() if explained.truth() else {}
        predictions = read_table(explained.predictions, PREDICTIONS, ["split", "instance", "label"]).to_pandas()
        # The label of an instance is the same for every seed.
        labels = dict(
            zip(zip(predictions["split"], predictions["instance"], strict=True), predictions["label"], strict=True)
        )
        rate = explained.model_options.get("rate")
        seeds = [self._seed(explanations, regions, labels, rate) for explanations in explained.by_seed()]
        return {column: np.concatenate([columns[column] for columns in seeds]) for column in seeds[0]}

    def _seed(
        self, explanations: Explanations, regions: dict[Key, Any], labels: dict[Key, int], rate: float | None
    ) -> dict[str, np.ndarray]:
        keys = list(zip(explanations.split.tolist(), explanations.instance.tolist(), strict=True))
        selected = [scores > 0 for scores in explanations.scores[self.measure]]
        decides = [regions[key][0] == DECIDES for key in keys] if regions else None
        unknown = np.full(len(keys), None)
        return {
            "seed": np.full(len(keys), explanations.seed),
            "split": explanations.split,
            "instance": explanations.instance,
            "label": np.array([labels[key] for key in keys], dtype=np.int32),
            "predicted_class": explanations.predicted_class,
            "target_rate": np.full(len(keys), rate, dtype=object),
            "words": np.array([len(one) for one in selected], dtype=np.int32),
            "selected": np.array([one.sum() for one in selected], dtype=np.int32),
            "truth": unknown if decides is None else np.array([int(one.sum()) for one in decides], dtype=object),
            "hits": unknown
            if decides is None
            else np.array([int((a & b).sum()) for a, b in zip(selected, decides, strict=True)], dtype=object),
        }

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `rationales`: one per seed."""
        groups = scores.to_pandas().groupby("seed", sort=True)
        return pd.DataFrame([{"seed": seed, **_summary(rows)} for seed, rows in groups])


def _summary(rows: pd.DataFrame) -> dict[str, Any]:
    """One seed's numbers, over all texts together; those that are about the truth are None where there is none."""
    words, selected = rows["words"].to_numpy(), int(rows["selected"].sum())
    rate = selected / words.sum()
    told = dict.fromkeys(("truth_rate", "precision", "recall", *_optima(words, words, rate)))
    manipulated = bool(rows["truth"].notna().all())
    reason = None if manipulated else NOT_MANIPULATED
    if manipulated:
        truth, hits = rows["truth"].to_numpy(), int(rows["hits"].sum())
        found = {
            "truth_rate": truth.sum() / words.sum(),
            "precision": hits / selected if selected else None,
            "recall": hits / truth.sum() if truth.sum() else None,
            **_optima(words, truth, rate),
        }
        told |= {name: None if value is None or np.isnan(value) else value for name, value in found.items()}
        reason = NO_TRUTH if not truth.sum() else NOTHING_SELECTED if not selected else None
    return {
        "target_rate": rows["target_rate"].iloc[0],
        "selection_rate": rate,
        **told,
        "accuracy": float((rows["label"] == rows["predicted_class"]).mean()),
        "n": len(rows),
        "status": "undefined" if reason else "ok",
        "reason": reason,
    }
