"""Published numbers of Jain & Wallace (2019), Tables 1 and 2, and our values for them."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from plumbline.papers.paper import (
    LENGTH_TOLERANCE,
    OUR_MARGIN,
    PUBLISHED,
    SCORE_TOLERANCE,
    WHOLE_NUMBER,
    OurValues,
    Paper,
    StudyResults,
    rows_with,
)

# The paper's names and the registered ones.
DATASETS = {"SST": "sst", "IMDB": "imdb", "20News": "20news-sports", "AG News": "agnews", "SNLI": "snli", "CNN": "cnn"}
DATASETS |= {"bAbI 1": "babi-1", "bAbI 2": "babi-2", "bAbI 3": "babi-3"}
DATASETS |= {"ADR Tweets": "adr", "Diabetes": "diabetes", "Anemia": "anemia"}
ENCODERS = {"lstm": "bilstm-tanh", "average": "average-tanh"}
MEASURES = {"attention": "attention", "gradient": "gradient", "leave_one_out": "leave-one-out"}
SCORES = {"test_F1": "f1", "test_accuracy": "accuracy", "test_micro_F1": "accuracy"}

# In 90 % of cells, mean τ with attention differs by at most this much between the published run and the authors' later
# run. Where the two values of a cell differ by more, that difference is its tolerance.
TAU_TOLERANCE = {
    ("bilstm-tanh", "gradient"): 0.08,
    ("bilstm-tanh", "leave-one-out"): 0.11,
    ("average-tanh", "gradient"): 0.15,
    ("average-tanh", "leave-one-out"): 0.15,
}
# The authors split off dev only after their tables were made: the training counts include what is dev here.
DEV_DRAWN = ("imdb", "adr", "20news-sports", "agnews", "anemia", "babi-1", "babi-2", "babi-3")
# The paper reports no spread for its significant fractions; this is our own margin.
FRACTION_TOLERANCE = 0.2


def published_rows() -> pd.DataFrame:
    """Tables 1 and 2 under registered names, without rows that have no counterpart here.

    `later` is the mean τ of the later run that the authors published with their code.
    """
    frame = pd.read_csv(PUBLISHED / "jain_wallace.csv", dtype={"class": str, "note": str})
    frame = frame[frame["table"].isin(["T1", "T2"]) & frame["dataset"].isin(list(DATASETS))]
    later = pd.read_csv(PUBLISHED / "jain_wallace_later_run.csv", dtype={"class": str}).assign(metric="kendall_tau")
    keys = ["dataset", "encoder", "method_b", "class", "metric"]
    frame = frame.merge(later.rename(columns={"value": "later"}), how="left", on=keys)
    return frame.assign(
        dataset=frame["dataset"].map(DATASETS),
        model=frame["encoder"].map(ENCODERS),
        measure_a=frame["method_a"].map(MEASURES),
        measure_b=frame["method_b"].map(MEASURES),
        predicted_class=frame["class"].replace({"Overall": "all"}),
    )


def our_values(row: pd.Series, dataset: str, model: str | None, results: StudyResults) -> Iterator[OurValues]:
    """Our values for a published number."""
    metric = row["metric"]
    if model is None:
        yield _count(row, results.summary(dataset))
    elif metric in SCORES:
        if values := results.scores(dataset, model, SCORES[metric]):
            yield OurValues(values, SCORE_TOLERANCE, OUR_MARGIN)
    elif results.agreement is not None:
        keys = {"tokens": "text", "statistic": "kendall", "predicted_class": row["predicted_class"]}
        yield from _agreement(row, rows_with(results.agreement, dataset=dataset, model=model, **keys), results)


def _agreement(row: pd.Series, taus: pd.DataFrame, results: StudyResults) -> Iterator[OurValues]:
    # The first entry of each measure, whose options are checked.
    pair = [name for column in ("measure_a", "measure_b") for name in results.names.entries(row[column])[:1]]
    taus = taus[taus["measure_a"].isin(pair) & taus["measure_b"].isin(pair)]
    if taus.empty:
        return
    if row["metric"] == "kendall_tau":
        spread = round(abs(row["value"] - row["later"]), 3)
        tolerance = max(TAU_TOLERANCE[row["model"], row["measure_b"]], spread)
        yield OurValues(taus["mean"].tolist(), tolerance, "tolerance: the authors' run-to-run spread")
    else:
        yield OurValues(taus["significant_fraction"].tolist(), FRACTION_TOLERANCE, OUR_MARGIN)


def _count(row: pd.Series, summary: dict[str, Any]) -> OurValues:
    metric, splits = row["metric"], summary["splits"]
    if metric == "vocab_size":
        note = "not comparable: ours is the vocabulary of the training split, the published one that of all splits"
        return OurValues([float(summary["vocabulary_size"])], note=note)
    if metric == "avg_length":
        return OurValues([float(splits["train"]["mean_length"])], LENGTH_TOLERANCE, WHOLE_NUMBER)
    drawn = metric == "train_size" and row["dataset"] in DEV_DRAWN
    counted = ["train", "dev"] if drawn else [metric.removesuffix("_size")]
    note = "ours counts train and dev together: the authors split off dev only after their tables" if drawn else ""
    if row["predicted_class"] == "all":
        counts = [splits[split]["instances"] for split in counted]
    else:
        class_ = summary["classes"][int(row["predicted_class"])]
        counts = [splits[split]["instances_per_class"][class_] for split in counted]
    return OurValues([float(sum(counts))], 0.0, note=note)


PAPER = Paper(
    "Jain & Wallace 2019",
    published_rows,
    our_values,
    data={"sst": {"leaves_over": 0, "tokens": "cleaned"}, "snli": {"tokens": "cleaned"}},
)
