"""Evidence: are the words that determine the answer, or that people marked, important? (DeYoung et al. 2020)"""

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.evidence.metrics import above_random, average_precision, top_k_overlap
from plumbline.protocols.evidence.schemas import EVIDENCE, EVIDENCE_SCORES, METRICS
from plumbline.protocols.explained import Explained, instance_columns
from plumbline.registry import protocol
from plumbline.store import TableSchema

NO_EVIDENCE = "no word is evidence"
ALL_EVIDENCE = "every word is evidence"
NOT_FINITE = "importances are not finite"
UNDEFINED = "no instance has a score"
RESAMPLES = 999


class Overlap(NamedTuple):
    """The scores of one importance map; NaN where undefined, with the reason."""

    auprc: float = np.nan
    auprc_chance: float = np.nan
    token_f1: float = np.nan
    iou: float = np.nan
    evidence_share: float = np.nan
    reason: str | None = None


@protocol(
    "evidence",
    evidence=True,
    pixels=False,
    equation="AUPRC = (1/k) Σ_{i∈E} precision at the rank of i by |s|, for k words of evidence E",
    cost="No pass through the model: stored importances are ranked.",
    misleads="Evidence that people marked is about plausibility: a model may be right for other reasons, and a "
    "faithful measure then scores low. Evidence supports the label, so wrong predictions lower the scores; "
    "`predictions: correct` leaves them out.",
    citation=[
        "DeYoung et al. (2020), ERASER: A Benchmark to Evaluate Rationalized NLP Models. ACL.",
        "Jacovi & Goldberg (2020), Towards Faithfully Interpretable NLP Systems: How Should We Define and Evaluate "
        "Faithfulness? ACL.",
    ],
    metrics=["auprc", "above_random", "token_f1", "iou"],
)
class Evidence:
    """AUPRC, token F1 and IOU of importance and the marked evidence of a text, which its dataset has.

    Evidence that determines the label by construction is a truth about the task; evidence that people marked is about
    plausibility, not faithfulness. Second texts have no evidence and are not ranked.

    Options:
        predictions: Instances to score: all that are explained, or only those that the model classifies correctly.
    """

    table: ClassVar[TableSchema] = EVIDENCE
    scores: ClassVar[TableSchema] = EVIDENCE_SCORES

    def __init__(self, *, predictions: Literal["all", "correct"] = "all") -> None:
        self.predictions = predictions

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `evidence_scores`: one row per seed, measure and instance."""
        instances, source = explained.instances(), explained.record().get("evidence")
        parts: list[pd.DataFrame] = []
        for explanations in explained.by_seed():
            texts, predicted = instances.at(explanations.keys), explanations.predicted_class
            marked = texts.evidence or [np.zeros_like(free) for free in texts.maskable]
            evidence = [flags[free] for flags, free in zip(marked, texts.maskable, strict=True)]
            of_text = instance_columns(explanations.seed, texts, predicted) | {"correct": texts.label == predicted}
            for measure, scores in sorted(explanations.scores.items()):
                maps = pd.DataFrame(map(overlap, scores, evidence), columns=Overlap._fields)
                parts.append(maps.assign(**of_text, measure=measure, source=source))
        rows = pd.concat(parts, ignore_index=True)
        rows["status"] = np.where(rows["reason"].isna(), "ok", "undefined")
        return {str(column): rows[column] for column in rows}

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `evidence`: means over instances by seed and measure."""
        frame = scores.to_pandas()
        rows = []
        for (seed, measure), group in frame.groupby(["seed", "measure"], observed=True, sort=True):
            scored = group[group["correct"]] if self.predictions == "correct" else group
            rows.append({"seed": seed, "measure": measure, "source": group["source"].iloc[0], **_summary(scored)})
        return pd.DataFrame(rows)


def overlap(scores: np.ndarray, evidence: np.ndarray) -> Overlap:
    """The agreement of importances, without signs, and evidence. scores, evidence: [n]."""
    weights = np.abs(scores.astype(np.float64))
    if reason := _undefined(weights, evidence):
        return Overlap(reason=reason)
    chance = average_precision(np.zeros_like(weights), evidence)
    return Overlap(average_precision(weights, evidence), chance, *top_k_overlap(weights, evidence), evidence.mean())


def _undefined(weights: np.ndarray, evidence: np.ndarray) -> str | None:
    if not evidence.any():
        return NO_EVIDENCE
    if evidence.all():
        return ALL_EVIDENCE
    return None if np.isfinite(weights).all() else NOT_FINITE


def _summary(rows: pd.DataFrame) -> dict[str, Any]:
    """Means over the instances with a score."""
    defined = rows[rows["status"] == "ok"]
    means = {name: defined[name].mean() for name in METRICS}
    low, high = mean_interval(defined["auprc"], resamples=RESAMPLES)
    reasons = rows["reason"].dropna()
    return {
        "n": len(defined),
        "undefined": len(rows) - len(defined),
        **means,
        "ci_low": low,
        "ci_high": high,
        "above_random": above_random(means["auprc"], means["auprc_chance"]),
        "status": "ok" if len(defined) else "undefined",
        "reason": None if len(defined) else ": ".join([UNDEFINED, *reasons.head(1)]),
    }
