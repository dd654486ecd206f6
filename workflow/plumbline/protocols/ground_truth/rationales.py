"""Rationales: do rationale models select the words that determine the label? (Zhou et al. 2022, section 7)"""

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.errors import PlumblineError
from plumbline.protocols.explained import Explained, Explanations, Key, join_columns
from plumbline.protocols.ground_truth.schemas import RATIONALE_SCORES, RATIONALES
from plumbline.registry import metric, protocol
from plumbline.store import TableSchema, read_table
from plumbline.training.schemas import PREDICTIONS

NOT_MANIPULATED = "nothing was manipulated"
NO_TRUTH = "no text has a word of the truth"
NOTHING_SELECTED = "no word is selected"
# The group of the words that determine the label: a manipulation's first.
TRUTH_GROUP = 1


class PrecisionRecall(NamedTuple):
    """Precision and recall of a selection; NaN where nothing is selected or there is no truth."""

    precision: float
    recall: float


@metric("recall", equation="Re = |F ∩ F_C| / |F_C|: the share of the decisive words that are selected")
@metric(
    "precision",
    direction="higher",
    range=[0, 1],
    unit="share",
    equation="Pr = |F ∩ F_C| / |F|: the share of the selected words that are decisive",
)
def precision_recall(hits: float, selected: float, truth: float) -> PrecisionRecall:
    """Precision and recall of a selection: hits / selected and hits / truth."""
    return PrecisionRecall(*(float(hits / total) if total else float("nan") for total in (selected, truth)))


def optimum(words: np.ndarray, truth: np.ndarray, rate: float, each: bool = False) -> PrecisionRecall:
    """The best that a selection of a share `rate` can reach: Pr = min(1, A / sN) and Re = min(1, sN / A) over all words
    of the dataset; for `each` text alike Pr = Σ min(A_i, sL_i) / Σ sL_i and Re = Σ min(A_i, sL_i) / Σ A_i.

    words, truth: [N], the number of words and of truth words in each text.
    """
    selected = rate * words.sum()
    hits = np.minimum(truth, rate * words).sum() if each else min(truth.sum(), selected)
    return precision_recall(hits, selected, truth.sum())


def optimum_curve(words: np.ndarray, truth: np.ndarray, rates: Iterable[float]) -> pd.DataFrame:
    """The optima at each rate, in the columns of the table `rationales`."""
    return pd.DataFrame([{"selection_rate": rate, **_optima(words, truth, rate)} for rate in rates])


def _optima(words: np.ndarray, truth: np.ndarray, rate: float) -> dict[str, float]:
    return {
        f"optimum_{name}{'_each' * each}": value
        for each in (False, True)
        for name, value in optimum(words, truth, rate, each)._asdict().items()
    }


@protocol(
    "rationales",
    needs=["selection"],
    variants="manipulated",
    equation="Pr = |F ∩ F_C| / |F|, Re = |F ∩ F_C| / |F_C|",
    cost="No pass through the model, as stored selections are counted; but each `rate` has models of its own to train.",
    misleads="The number of selected words bounds precision and recall: compare with the optimum. Recall may be low "
    "without a fault, since a few of the true words are enough to predict the label. At low `accuracy` the selection "
    "means nothing.",
    citation=[
        "Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
        "Lei, Barzilay & Jaakkola (2016), Rationalizing Neural Predictions. EMNLP.",
        "Bastings, Aziz & Titov (2019), Interpretable Neural Predictions with Differentiable Binary Variables. ACL.",
    ],
    metrics=["precision", "recall"],
)
class Rationales:
    """Precision and recall of the words that a model selects, against those that a manipulation made decisive.

    F are the selected words of all texts and F_C the decisive ones.

    Options:
        measure: Measure of the study whose scores above 0 are the selected words.
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
        regions = explained.regions() if explained.manipulation() else {}
        predictions = read_table(explained.predictions, PREDICTIONS, ["split", "instance", "label"]).to_pandas()
        # All seeds share an instance's label.
        labels = predictions.set_index(["split", "instance"])["label"].to_dict()
        rate = explained.model_options.get("rate")
        seeds = [self._seed(explanations, regions, labels, rate) for explanations in explained.by_seed()]
        return join_columns(seeds)

    def _seed(
        self, explanations: Explanations, regions: dict[Key, Any], labels: dict[Key, int], rate: float | None
    ) -> dict[str, np.ndarray]:
        keys = explanations.keys
        selected = [scores > 0 for scores in explanations.scores[self.measure]]
        truth = [regions[key][0] == TRUTH_GROUP if regions else None for key in keys]
        hits = [None if mask is None else mask & own for mask, own in zip(truth, selected, strict=True)]
        return {
            "seed": np.full(len(keys), explanations.seed),
            "split": explanations.split,
            "instance": explanations.instance,
            "label": np.array([labels[key] for key in keys], dtype=np.int32),
            "predicted_class": explanations.predicted_class,
            "target_rate": np.full(len(keys), rate, dtype=object),
            "words": np.array([len(mask) for mask in selected], dtype=np.int32),
            "selected": np.array([mask.sum() for mask in selected], dtype=np.int32),
            "truth": np.array([None if mask is None else int(mask.sum()) for mask in truth], dtype=object),
            "hits": np.array([None if mask is None else int(mask.sum()) for mask in hits], dtype=object),
        }

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `rationales`: one per seed."""
        groups = scores.to_pandas().groupby("seed", sort=True)
        return pd.DataFrame([{"seed": seed, **_summary(rows)} for seed, rows in groups])


def _summary(rows: pd.DataFrame) -> dict[str, Any]:
    """One seed's metrics over all texts; those about the truth are None where there is none."""
    words, selected = rows["words"].to_numpy(), int(rows["selected"].sum())
    rate = selected / words.sum()
    metrics = dict.fromkeys(("truth_rate", "precision", "recall", *_optima(words, words, rate)))
    reason: str | None = NOT_MANIPULATED
    if rows["truth"].notna().all():
        truth, hits = rows["truth"].to_numpy(), int(rows["hits"].sum())
        reached = precision_recall(hits, selected, truth.sum())._asdict()
        values = {"truth_rate": truth.sum() / words.sum(), **reached, **_optima(words, truth, rate)}
        metrics |= {name: None if np.isnan(value) else value for name, value in values.items()}
        reason = NO_TRUTH if not truth.sum() else NOTHING_SELECTED if not selected else None
    return {
        "target_rate": rows["target_rate"].iloc[0],
        "selection_rate": rate,
        **metrics,
        "accuracy": float((rows["label"] == rows["predicted_class"]).mean()),
        "n": len(rows),
        "status": "undefined" if reason else "ok",
        "reason": reason,
    }
