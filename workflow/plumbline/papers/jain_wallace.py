"""Published numbers of Jain & Wallace (2019), Tables 1 and 2 and two runs stored with their code, and our values for
them."""

from collections.abc import Iterator
from functools import cache
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
ENCODERS = {"lstm": "bilstm", "cnn": "cnn", "average": "average"}
MEASURES = {"attention": "attention", "gradient": "gradient", "leave_one_out": "leave-one-out"}
SCORES = {"test_F1": "f1", "test_accuracy": "accuracy", "test_micro_F1": "accuracy"}

# In this share of the cells of a model and measure, the tolerance of mean τ with attention is at least the difference
# between the authors' two stored runs. Where the runs of a cell differ by more, that difference is its tolerance.
SPREAD_QUANTILE = 0.9
# The authors split off dev only after their tables were made: the training counts include what is dev here.
DEV_DRAWN = ("imdb", "adr", "20news-sports", "agnews", "anemia", "babi-1", "babi-2", "babi-3")
# The paper reports no spread for its significant fractions; this is our own margin.
FRACTION_TOLERANCE = 0.2


@cache
def stored_runs() -> pd.DataFrame:
    """Mean τ with attention of all six models in two runs that the authors stored with their code: the one of their
    Table 2 (`first`; bAbI-1 was run again for it) and one after the paper (`later`). SNLI's classes are the paper's."""
    frame = pd.read_csv(PUBLISHED / "jain_wallace_stored_runs.csv", dtype={"class": str})
    spread = (frame["first"] - frame["later"]).abs()
    usual = spread.groupby([frame["encoder"], frame["attention"], frame["method_b"]]).transform(
        "quantile", SPREAD_QUANTILE
    )
    return frame.assign(tolerance=usual.combine(spread.fillna(0), max), metric="kendall_tau")


def published_rows() -> pd.DataFrame:
    """Tables 1 and 2 under registered names, without rows that have no counterpart here; then, as table `stored`, the
    first of the stored runs of models that are not in Table 2, or the later if there is only one.

    `later` is the mean τ of the later stored run.
    """
    frame = pd.read_csv(PUBLISHED / "jain_wallace.csv", dtype={"class": str, "note": str})
    frame = frame[frame["table"].isin(["T1", "T2"]) & frame["dataset"].isin(list(DATASETS))]
    keys = ["dataset", "encoder", "attention", "method_b", "class", "metric"]
    stored = stored_runs()
    known = pd.MultiIndex.from_frame(frame[keys])
    others = stored[~pd.MultiIndex.from_frame(stored[keys]).isin(known)]
    others = others.assign(
        table="stored",
        method_a="attention",
        value=others["first"].fillna(others["later"]),
        later=others["later"].where(others["first"].notna()),
        note="a run stored with the authors' code, not in the paper",
    )
    frame = pd.concat([frame.merge(stored, how="left", on=keys), others], ignore_index=True)
    return frame.assign(
        dataset=frame["dataset"].map(DATASETS),
        model=frame["encoder"].map(ENCODERS) + "-" + frame["attention"],
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
        note = "tolerance: the difference between the authors' runs"
        yield OurValues(taus["mean"].tolist(), row["tolerance"], note)
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
