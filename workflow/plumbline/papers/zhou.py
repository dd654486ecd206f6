"""Published numbers of Zhou et al. (2022), Table 1 and those in the text, and our values for them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from plumbline.papers.paper import (
    NOT_JUDGED,
    PUBLISHED,
    SINGLE_SEED,
    SIZES,
    OurValues,
    Paper,
    StudyResults,
    percent_to_fraction,
)

# The paper's names and the registered ones.
BEER, BIRDS = "beer", "birds"
KINDS = {"Article": ["articles"], "CN": ["articles-cn"], "NC": ["articles-nc"], "CN+NC": ["articles-cn", "articles-nc"]}
MODELS = {"attention": ["bilstm-zhou"], "rationales": ["rationale-rl", "rationale-cr"], "SHAP": ["resnet34"]}
MEASURES = {"attention": "attention", "SHAP": "expected-gradient"}
GROUPS = {"correlating_articles": "correlating", "non_correlating_articles": "non-correlating", "other_words": "other"}
PER_CLASS = {"train_images_per_class": "train", "val_images_per_class": "dev", "test_images_per_class": "test"}
METRICS = {
    "val_size": "validation_size",
    "min_accuracy_pct": "least_accuracy",
    "min_test_accuracy_pct": "least_accuracy",
    "pct_runs_test_acc_over_95": "models_over_95",
    "mean_attr_pct_at_ER_40pct": "attributed_at_40",
    "attr_pct_articles_single_run": "attributed_correlating",
}
# Settings are no results, and the frequency of articles is in Table 1.
SETTINGS = ["n_models", "target_selection_rate", "label_reassignment_r", "article_word_frequency_pct"]
SETTINGS += ["sigma_pixels", "shift_magnitude", "pixel_probability", "font_size_pixels"]

RUNS, IMAGE_MODELS, IMAGE_SIDE = 11, 100, 224
STANDARD_ERRORS = 3
ACCURATE, AT = 0.95, 0.4
FROM_REGRESSION = (
    "ours is the value at 40 % of the regression line through both classes of all models over 95 % accuracy; the paper "
    f"does not say how it obtains its value, {NOT_JUDGED}"
)
FILES = "the authors' own files have 970 to 1001, 97 to 100 and 97 to 100 images per class"


def published_rows() -> pd.DataFrame:
    """The paper's numbers under registered names, percentages as fractions: a row for each model and manipulation.

    `group` is the group of words; `kind` is the manipulation, if a row is about one.
    """
    frame = pd.read_csv(PUBLISHED / "zhou.csv", dtype={"note": str})
    frame = percent_to_fraction(frame[~frame["metric"].isin(SETTINGS)])
    group = frame["class"].map(GROUPS)
    prefix = frame["metric"].map({"attr_pct": "attributed_", "word_frequency_pct": "frequency_"})
    metric = (prefix + group).fillna(frame["metric"].replace(METRICS))
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


def size_difference(row: pd.Series, dataset: str, model: str | None, results: StudyResults) -> Iterator[str]:
    """The size of images on which a model was trained, if it is not the published one."""
    if model and row["dataset"] == BIRDS:
        side = round(results.summary(dataset)["splits"]["test"]["mean_length"] ** 0.5)
        if side != IMAGE_SIDE:
            yield f"images of {side} x {side} pixels, not {IMAGE_SIDE} x {IMAGE_SIDE}, {NOT_JUDGED}"


def our_values(row: pd.Series, dataset: str, model: str | None, results: StudyResults) -> Iterator[OurValues]:
    """Our values for a published number."""
    if model is None:
        yield _count(row, results.summary(dataset))
        return
    if results.ground_truth is None:
        return
    table = results.ground_truth
    table = table[table["dataset"] == dataset]
    if row["dataset"] == BIRDS:
        yield from _image_models(row, table[table["model"] == model], results)
        return
    for variant in dict.fromkeys(table.loc[table["kind"] == row["kind"], "variant"]):
        if row["metric"] == "least_accuracy":
            values = _at_least(row, results.scores(dataset, model, "accuracy", variant=variant))
        else:
            values = _table_1(row, table[(table["variant"] == variant) & (table["model"] == model)], results)
        yield from (replace(ours, variant=variant) for ours in values)


def _first_entry(row: pd.Series, table: pd.DataFrame, results: StudyResults) -> pd.DataFrame:
    """The rows of the first entry of the published measure."""
    return table[table["measure"].isin(results.names.entries(row["measure_a"])[:1])]


def _group_rows(row: pd.Series, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a group of words, whose name depends on the manipulation."""
    other = table["group"] == "other"
    return table[{"correlating": table["truth"], "other": other}.get(row["group"], ~other & ~table["truth"])]


def _table_1(row: pd.Series, table: pd.DataFrame, results: StudyResults) -> Iterator[OurValues]:
    rows = _first_entry(row, table[(table["class"] == "all") & (table["n"] > 0)], results)
    rows = _group_rows(row, rows).sort_values("seed")
    if rows.empty:
        return
    if row["metric"].startswith("frequency"):
        yield OurValues(rows["region_fraction"].tolist(), 0.0005, "printed to a tenth of a percent")
        return
    values = rows["attributed_fraction"].tolist()
    if row["table"] != "T1":
        yield OurValues(values[:1], note=f"ours is the first seed, {NOT_JUDGED}")
        return
    if len(values) < 2:
        yield OurValues(values, note=SINGLE_SEED)
        return
    error = float(np.sqrt(row["std"] ** 2 / RUNS + np.var(values, ddof=1) / len(values)))
    basis = f"tolerance: {STANDARD_ERRORS} standard errors of the difference"
    yield OurValues(values, STANDARD_ERRORS * error, basis)


def _at_least(row: pd.Series, values: list[float]) -> Iterator[OurValues]:
    """The published value is a lower bound; a higher value is no difference."""
    if values:
        reached = float(np.mean(values)) >= row["value"]
        note = f"our minimum is {min(values):.3f}" if len(values) > 1 else ""
        yield OurValues(values, 1 - row["value"] if reached else 0.0, "published as a lower bound", note)


def _image_models(row: pd.Series, table: pd.DataFrame, results: StudyResults) -> Iterator[OurValues]:
    """Numbers about all image models: those of random regions (section 5.1) or of several reassignments (5.4)."""
    several = table.groupby("manipulation", observed=True)["r"].transform("nunique") > 1
    if row["table"] == "sec 5.4":
        models = table[several].drop_duplicates(["variant", "seed"])
        yield from _at_least(row, models.groupby("seed")["accuracy"].min().tolist())
        return
    table = table[~several & table["level"].isna() & (table["r"] == 0.5)]
    models = table.drop_duplicates(["variant", "seed"])
    if models.empty:
        return
    if row["metric"] == "models_over_95":
        fractions = (models["accuracy"] > ACCURATE).astype(float).groupby(models["seed"]).mean().tolist()
        theirs, ours = row["value"], float(np.mean(fractions))
        variance = theirs * (1 - theirs) / IMAGE_MODELS + ours * (1 - ours) / len(models)
        basis = f"tolerance: {STANDARD_ERRORS} standard errors of the difference of two proportions"
        yield OurValues(fractions, STANDARD_ERRORS * float(np.sqrt(variance)), basis, f"of {len(models)} models")
        return
    table = table[table["truth"] & (table["class"] != "all") & (table["accuracy"] > ACCURATE)]
    points = _first_entry(row, table, results).dropna(subset=["attributed_fraction", "region_fraction"])
    per_seed = [regression_at(AT, rows) for _, rows in points.groupby("seed")]
    if values := [value for value in per_seed if not np.isnan(value)]:
        yield OurValues(values, note=FROM_REGRESSION)


def regression_at(region_fraction: float, points: pd.DataFrame) -> float:
    """The attributed fraction that a least-squares line predicts at this region fraction; NaN outside its range."""
    region, attributed = points["region_fraction"].to_numpy(), points["attributed_fraction"].to_numpy()
    if not region.min() < region_fraction < region.max():
        return float("nan")
    slope, intercept = np.polyfit(region, attributed, 1)
    return float(intercept + slope * region_fraction)


def _count(row: pd.Series, summary: Mapping[str, Any]) -> OurValues:
    if row["metric"] in SIZES:
        return OurValues([float(summary["splits"][SIZES[row["metric"]]]["instances"])], 0.0)
    counts = summary["splits"][PER_CLASS[row["metric"]]]["instances_per_class"]
    return OurValues([float(np.mean(list(counts.values())))], 0.03 * row["value"], f"tolerance: {FILES}")


PAPER = Paper(
    "Zhou et al. 2022",
    published_rows,
    our_values,
    size_difference,
    select_on="dev",
    # Other score thresholds select other reviews.
    data={
        BEER: {"aspect": 0, "positive": [0.9], "negative": [0.1, 0.2, 0.3], "per_class": 6000, "longest": 256},
        BIRDS: {"size": 0},
    },
)
