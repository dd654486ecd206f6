"""Published numbers of Recursive ROAR (Madsen et al. 2022), Tables 1 to 3, and our values for them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from plumbline.papers.paper import (
    LENGTH_TOLERANCE,
    NOT_JUDGED,
    PUBLISHED,
    SIZES,
    WHOLE_NUMBER,
    OurValues,
    Paper,
    StudyResults,
    percent_to_fraction,
    rows_with,
)
from plumbline.protocols.bootstrap import mean_interval

# The paper's names and the registered ones.
DATASETS = {"SST": "sst", "IMDB": "imdb", "SNLI": "snli", "Diabetes": "diabetes", "Anemia": "anemia"}
DATASETS |= {f"bAbI-{n}": f"babi-{n}" for n in (1, 2, 3)}
MODELS = {"BiLSTM-attention": "bilstm-softmax", "RoBERTa": "roberta"}
# Integrated gradients were published with a superfluous factor; the correct ones are compared too.
MEASURES = {
    "Attention": ["attention"],
    "Gradient": ["gradient-vocabulary"],
    "InputTimesGradient": ["input-x-gradient"],
    "IntegratedGradient": ["integrated-gradient-published", "integrated-gradient"],
}
SCORES = {"macro_F1_pct": "macro_f1", "micro_F1_pct": "accuracy", "accuracy_pct": "accuracy"}
FAITHFULNESS = "faithfulness"
# From 0 to 100 % masked in steps of 10 %.
LEVELS = 11
CORRECTED = f"correct integrated gradients, {NOT_JUDGED}: the published ones have a superfluous factor i/k"
# Published lengths include two special tokens.
SPECIALS = 2
WIDENED = "tolerance: the published 95% interval, widened by ours"


def published_rows() -> pd.DataFrame:
    """The paper's tables under registered names, percentages as fractions. The scores of Table 3 are left out: they
    are cited from other papers or repeat Table 1."""
    frame = pd.read_csv(PUBLISHED / "recursive_roar.csv", dtype={"note": str})
    frame = percent_to_fraction(frame[~(frame["table"].eq("T3") & frame["metric"].isin(SCORES))])
    frame = frame.assign(
        dataset=frame["dataset"].map(DATASETS),
        model=frame["model"].map(MODELS),
        measure_a=frame["method_a"].map(MEASURES),
        metric=frame["metric"].replace({"faithfulness_ABC_pct": FAITHFULNESS, **SCORES}),
        note=None,
    )
    return frame.explode("measure_a", ignore_index=True)


def our_values(row: pd.Series, dataset: str, model: str | None, results: StudyResults) -> Iterator[OurValues]:
    """Our values for a published number."""
    if model is None:
        yield _count(row, results.summary(dataset))
    elif row["metric"] == FAITHFULNESS:
        yield from _faithfulness(row, dataset, model, results)
    elif values := results.scores(dataset, model, row["metric"]):
        yield OurValues(values, _tolerance(row, values), WIDENED)


def _faithfulness(row: pd.Series, dataset: str, model: str, results: StudyResults) -> Iterator[OurValues]:
    names = results.names.entries(row["measure_a"])
    if results.faithfulness is None or not names:
        return
    keys = {"measure": names[0], "strategy": "recursive", "unit": "relative", "status": "ok"}
    for ours in rows_with(results.faithfulness, dataset=dataset, model=model, **keys).to_dict("records"):
        values = [float(value) for value in ours["per_seed"]]
        notes = [CORRECTED] if row["measure_a"] == "integrated-gradient" else []
        if ours["n_levels"] != LEVELS:
            notes.append(f"{ours['n_levels']} levels instead of {LEVELS}, {NOT_JUDGED}")
        if results.names.masking_target != "gold":
            notes.append(f"explains the {results.names.masking_target} class, {NOT_JUDGED}")
        left_out = [] if pd.isna(ours["reason"]) else [ours["reason"]]
        yield OurValues(values, None if notes else _tolerance(row, values), WIDENED, "; ".join([*notes, *left_out]))


def _tolerance(row: pd.Series, values: list[float]) -> float:
    """The largest difference of means at which the two intervals overlap."""
    mean = float(np.mean(values))
    low, high = mean_interval(values)
    if np.isnan(low):
        low = high = mean
    if mean > row["value"]:
        return float(row["ci_high"] - row["value"] + mean - low)
    return float(row["value"] - row["ci_low"] + high - mean)


def _count(row: pd.Series, summary: Mapping[str, Any]) -> OurValues:
    splits = summary["splits"]
    if row["metric"] in SIZES:
        return OurValues([float(splits[SIZES[row["metric"]]]["instances"])], 0.0)
    words = sum(counts["mean_length"] * counts["instances"] for counts in splits.values())
    length = words / sum(counts["instances"] for counts in splits.values()) + SPECIALS
    return OurValues([length], LENGTH_TOLERANCE, WHOLE_NUMBER)


PAPER = Paper(
    "Recursive ROAR",
    published_rows,
    our_values,
    select_on="dev",
    data={"sst": {"leaves_over": 5, "tokens": "cleaned"}, "snli": {"tokens": "cleaned"}},
)
