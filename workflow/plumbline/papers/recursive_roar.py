"""The published numbers of Recursive ROAR (Madsen et al. 2022), Tables 1 to 3, and ours."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from plumbline.papers.paper import LENGTH_TOLERANCE, PUBLISHED, WHOLE_NUMBER, OurValues, Paper, StudyResults
from plumbline.protocols.bootstrap import mean_interval

# The study's words for things, and the registered names here.
DATASETS = {"SST": "sst", "IMDB": "imdb", "SNLI": "snli", "Diabetes": "diabetes", "Anemia": "anemia"}
DATASETS |= {f"bAbI-{n}": f"babi-{n}" for n in (1, 2, 3)}
MODELS = {"BiLSTM-attention": "bilstm-softmax", "RoBERTa": "roberta"}
# Integrated gradients were published with a factor too many; the correct ones stand beside them.
MEASURES = {
    "Attention": ["attention"],
    "Gradient": ["gradient-vocabulary"],
    "InputTimesGradient": ["input-x-gradient"],
    "IntegratedGradient": ["integrated-gradient-published", "integrated-gradient"],
}
SCORES = {"macro_F1_pct": "macro_f1", "micro_F1_pct": "accuracy", "accuracy_pct": "accuracy"}
SIZES = {"train_size": "train", "validation_size": "dev", "test_size": "test"}
FAITHFULNESS = "faithfulness"
# From nothing masked in steps of 10% to everything.
LEVELS = 11
CORRECTED = "the correct integrated gradients, and so not judged: the published ones carry a factor i/k too many"
# Two special tokens are counted with a text.
SPECIALS = 2
WIDENED = "tolerance: the published 95% interval, widened by ours"


def published_rows() -> pd.DataFrame:
    """The study's tables in our words, percent as shares. What it cites from others is left out, and of Table 3 the
    scores, which are those of Table 1."""
    frame = pd.read_csv(PUBLISHED / "recursive_roar.csv", dtype={"note": str})
    frame = frame[~(frame["table"].eq("T3") & frame["metric"].isin(SCORES))]
    percent = frame["metric"].str.endswith("_pct")
    for column in ("value", "ci_low", "ci_high"):
        frame[column] = frame[column].where(~percent, frame[column] / 100)
    frame = frame.assign(
        dataset=frame["dataset"].map(DATASETS),
        model=frame["model"].map(MODELS),
        measure_a=frame["method_a"].map(MEASURES),
        metric=frame["metric"].replace({"faithfulness_ABC_pct": FAITHFULNESS, **SCORES}),
        note=None,
    )
    return frame.explode("measure_a", ignore_index=True)


def ours(line: pd.Series, dataset: str, model: str | None, ran: StudyResults) -> Iterator[OurValues]:
    """Our values of a published line."""
    if model is None:
        yield _count(line, ran.summary(dataset))
    elif line["metric"] == FAITHFULNESS:
        yield from _faithfulness(line, dataset, model, ran)
    elif values := ran.scores(dataset, model, line["metric"]):
        yield OurValues(values, _tolerance(line, values), WIDENED)


def _faithfulness(line: pd.Series, dataset: str, model: str, ran: StudyResults) -> Iterator[OurValues]:
    table = ran.faithfulness
    names = [name for name, kind in ran.names.measures.items() if kind == line["measure_a"]]
    if table is None or not names:
        return
    here = (table["dataset"] == dataset) & (table["model"] == model) & table["measure"].isin(names[:1])
    here &= (table["strategy"] == "recursive") & (table["unit"] == "relative") & (table["status"] == "ok")
    for _, row in table[here].iterrows():
        values = [float(value) for value in row["per_seed"]]
        notes = [CORRECTED] if line["measure_a"] == "integrated-gradient" else []
        if row["n_levels"] != LEVELS:
            notes.append(f"{row['n_levels']} levels in the place of {LEVELS}, and so not judged")
        if ran.names.masking_target != "gold":
            notes.append(f"explains the {ran.names.masking_target} class, and so not judged")
        left_out = [] if pd.isna(row["reason"]) else [row["reason"]]
        yield OurValues(values, None if notes else _tolerance(line, values), WIDENED, "; ".join([*notes, *left_out]))


def _tolerance(line: pd.Series, values: list[float]) -> float:
    """How far apart the means may be for the two intervals still to meet."""
    mean = float(np.mean(values))
    low, high = mean_interval(values)
    if np.isnan(low):
        low = high = mean
    if mean > line["value"]:
        return float(line["ci_high"] - line["value"] + mean - low)
    return float(line["value"] - line["ci_low"] + high - mean)


def _count(line: pd.Series, summary: Mapping[str, Any]) -> OurValues:
    splits = summary["splits"]
    if line["metric"] in SIZES:
        return OurValues([float(splits[SIZES[line["metric"]]]["instances"])], 0.0)
    words = sum(counts["mean_length"] * counts["instances"] for counts in splits.values())
    length = words / sum(counts["instances"] for counts in splits.values()) + SPECIALS
    return OurValues([length], LENGTH_TOLERANCE, WHOLE_NUMBER)


STUDY = Paper(
    "Recursive ROAR",
    published_rows,
    ours,
    chose_on="dev",
    data={"sst": {"leaves_over": 5, "tokens": "cleaned"}, "snli": {"tokens": "cleaned"}},
)
