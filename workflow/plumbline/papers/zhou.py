"""The published numbers of Zhou et al. (2022), Table 1 and those in its text, and ours."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from plumbline.papers.paper import PUBLISHED, OurValues, Paper, StudyResults

# The study's words for things, and the registered names here.
BEER, BIRDS = "beer", "birds"
KINDS = {"Article": ["articles"], "CN": ["articles-cn"], "NC": ["articles-nc"], "CN+NC": ["articles-cn", "articles-nc"]}
MODELS = {"attention": ["bilstm-zhou"], "rationales": ["rationale-rl", "rationale-cr"], "SHAP": ["resnet34"]}
MEASURES = {"attention": "attention", "SHAP": "expected-gradient"}
GROUPS = {"correlating_articles": "correlating", "non_correlating_articles": "non-correlating", "other_words": "other"}
SIZES = {"train_size": "train", "validation_size": "dev", "test_size": "test"}
PER_CLASS = {
    f"{split}_images_per_class": ours for split, ours in (("train", "train"), ("val", "dev"), ("test", "test"))
}
METRICS = {
    "val_size": "validation_size",
    "min_accuracy_pct": "least_accuracy",
    "min_test_accuracy_pct": "least_accuracy",
    "pct_runs_test_acc_over_95": "models_over_95",
    "mean_attr_pct_at_ER_40pct": "attributed_at_40",
    "attr_pct_articles_single_run": "attributed_correlating",
}
# What says how the study was set up is no result, and the frequency of articles stands in Table 1.
SETTINGS = ["n_models", "target_selection_rate", "label_reassignment_r", "article_word_frequency_pct"]
SETTINGS += ["sigma_pixels", "shift_magnitude", "pixel_probability", "font_size_pixels"]

RUNS, PICTURE_MODELS, SIDE = 11, 100, 224
STANDARD_ERRORS = 3
ACCURATE, AT = 0.95, 0.4
NOT_JUDGED = "and so not judged"
ALONE = f"the spread over seeds is not known of one, {NOT_JUDGED}"
ON_A_LINE = (
    "ours is read at 40 % off the line of least squares through both classes of all models over 95 % accuracy; how the "
    f"study reads its own is not told, {NOT_JUDGED}"
)
FILES = "the authors' own files have 970 to 1001, 97 to 100 and 97 to 100 pictures of a class"


def published_rows() -> pd.DataFrame:
    """The study's numbers in our words, percent as shares: a line for each of our models and manipulations.

    `group` is that of the words; `kind` is the manipulation, where a line is about one.
    """
    frame = pd.read_csv(PUBLISHED / "zhou.csv", dtype={"note": str})
    frame = frame[~frame["metric"].isin(SETTINGS)]
    percent = frame["metric"].str.contains("pct")
    for column in ("value", "std"):
        frame[column] = frame[column].where(~percent, frame[column] / 100)
    group = frame["class"].map(GROUPS)
    shares = frame["metric"].map({"attr_pct": "attributed_", "word_frequency_pct": "frequency_"})
    metric = (shares + group).fillna(frame["metric"].replace(METRICS))
    about_models = frame["metric"].isin(["pct_runs_test_acc_over_95", "min_test_accuracy_pct"])
    frame = frame.assign(
        kind=frame["dataset"].map(KINDS),
        model=frame["method_a"].map(MODELS).where(~about_models, frame["metric"].map(lambda _: MODELS["SHAP"])),
        measure_a=frame["method_a"].map(MEASURES).where(~metric.eq("least_accuracy")),
        dataset=np.where(frame["dataset"] == "Birds", BIRDS, BEER),
        metric=metric,
        group=group.where(~frame["metric"].eq("attr_pct_articles_single_run"), "correlating"),
    )
    return frame.drop(columns="class").explode("kind").explode("model", ignore_index=True)


def ours(line: pd.Series, dataset: str, model: str | None, ran: StudyResults) -> Iterator[OurValues]:
    """Our values of a published line, not judged where pictures are smaller than published."""
    for found in _ours(line, dataset, model, ran):
        other = _other_size(ran.summary(dataset)) if model and line["dataset"] == BIRDS else ""
        if other:
            found = replace(found, tolerance=None, note="; ".join(filter(None, [found.note, other])))
        yield found


def _other_size(summary: Mapping[str, Any]) -> str:
    side = round(summary["splits"]["test"]["mean_length"] ** 0.5)
    return "" if side == SIDE else f"pictures of {side} x {side} pixels, not {SIDE} x {SIDE}, {NOT_JUDGED}"


def _ours(line: pd.Series, dataset: str, model: str | None, ran: StudyResults) -> Iterator[OurValues]:
    if model is None:
        yield _count(line, ran.summary(dataset))
        return
    if ran.ground_truth is None:
        return
    table = ran.ground_truth
    table = table[table["dataset"] == dataset]
    if line["dataset"] == BIRDS:
        yield from _pictures(line, table[table["model"] == model], ran)
        return
    for variant in dict.fromkeys(table.loc[table["kind"] == line["kind"], "variant"]):
        here = table[(table["variant"] == variant) & (table["model"] == model)]
        if line["metric"] == "least_accuracy":
            found = _at_least(line, ran.scores(dataset, model, "accuracy", variant=variant))
        else:
            found = _table_1(line, here, ran)
        yield from (replace(one, variant=variant) for one in found)


def _entries(line: pd.Series, table: pd.DataFrame, ran: StudyResults) -> pd.DataFrame:
    """The rows of the first entry of a line's measure."""
    names = [name for name, kind in ran.names.measures.items() if kind == line["measure_a"]]
    return table[table["measure"].isin(names[:1])]


def _of_group(line: pd.Series, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a group of words, which manipulations may call by other names."""
    other = table["group"] == "other"
    return table[{"correlating": table["truth"], "other": other}.get(line["group"], ~other & ~table["truth"])]


def _table_1(line: pd.Series, table: pd.DataFrame, ran: StudyResults) -> Iterator[OurValues]:
    rows = _of_group(line, _entries(line, table[(table["class"] == "all") & (table["n"] > 0)], ran)).sort_values("seed")
    if rows.empty:
        return
    if line["metric"].startswith("frequency"):
        yield OurValues(rows["region_fraction"].tolist(), 0.0005, "printed to a tenth of a percent")
        return
    values = rows["attributed_fraction"].tolist()
    if line["table"] != "T1":
        yield OurValues(values[:1], note=f"the first seed of each, {NOT_JUDGED}")
        return
    if len(values) < 2:
        yield OurValues(values, note=ALONE)
        return
    error = np.sqrt(line["std"] ** 2 / RUNS + np.var(values, ddof=1) / len(values))
    yield OurValues(
        values, STANDARD_ERRORS * float(error), f"tolerance: {STANDARD_ERRORS} standard errors of the difference"
    )


def _at_least(line: pd.Series, values: list[float]) -> Iterator[OurValues]:
    """Values that are published as at least so high; being higher is no difference."""
    if values:
        reached = float(np.mean(values)) >= line["value"]
        note = f"the least of ours is {min(values):.3f}" if len(values) > 1 else ""
        yield OurValues(values, 1 - line["value"] if reached else 0.0, "published as a least value", note)


def _pictures(line: pd.Series, table: pd.DataFrame, ran: StudyResults) -> Iterator[OurValues]:
    """About all models of pictures: those of regions at random (section 5.1), or of several reassignments (5.4)."""
    several = table.groupby("manipulation", observed=True)["r"].transform("nunique") > 1
    if line["table"] == "sec 5.4":
        models = table[several].drop_duplicates(["variant", "seed"])
        yield from _at_least(line, models.groupby("seed")["accuracy"].min().tolist())
        return
    table = table[~several & table["level"].isna() & (table["r"] == 0.5)]
    models = table.drop_duplicates(["variant", "seed"])
    if models.empty:
        return
    if line["metric"] == "models_over_95":
        shares = (models["accuracy"] > ACCURATE).astype(float).groupby(models["seed"]).mean().tolist()
        tolerance = _difference_of_shares(line["value"], float(np.mean(shares)), len(models))
        basis = f"tolerance: {STANDARD_ERRORS} standard errors of the difference of two shares"
        yield OurValues(shares, tolerance, basis, f"of {len(models)} models")
        return
    points = _entries(line, table[table["truth"] & (table["class"] != "all") & (table["accuracy"] > ACCURATE)], ran)
    points = points.dropna(subset=["attributed_fraction", "region_fraction"])
    per_seed = [at_region(rows, AT) for _, rows in points.groupby("seed")]
    if values := [value for value in per_seed if not np.isnan(value)]:
        yield OurValues(values, note=ON_A_LINE)


def at_region(points: pd.DataFrame, share: float) -> float:
    """What the line of least squares through the attributed fractions gives at this share of the region; NaN if the
    regions are all smaller or all larger."""
    region, attributed = points["region_fraction"].to_numpy(), points["attributed_fraction"].to_numpy()
    if not region.min() < share < region.max():
        return float("nan")
    slope, start = np.polyfit(region, attributed, 1)
    return float(start + slope * share)


def _difference_of_shares(published: float, found: float, models: int) -> float:
    variance = published * (1 - published) / PICTURE_MODELS + found * (1 - found) / models
    return STANDARD_ERRORS * float(np.sqrt(variance))


def _count(line: pd.Series, summary: Mapping[str, Any]) -> OurValues:
    if line["metric"] in SIZES:
        return OurValues([float(summary["splits"][SIZES[line["metric"]]]["instances"])], 0.0)
    counts = summary["splits"][PER_CLASS[line["metric"]]]["instances_per_class"]
    return OurValues([float(np.mean(list(counts.values())))], 0.03 * line["value"], f"tolerance: {FILES}")


STUDY = Paper(
    "Zhou et al. 2022",
    published_rows,
    ours,
    chose_on="dev",
    # Scores of other sites are others: then the reviews are too.
    data={
        BEER: {"aspect": 0, "positive": [0.9], "negative": [0.1, 0.2, 0.3], "per_class": 6000, "longest": 256},
        BIRDS: {"size": 0},
    },
)
