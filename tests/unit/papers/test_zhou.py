"""Published numbers of Zhou et al., and ours."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from plumbline.papers.paper import SINGLE_SEED, Names, StudyResults
from plumbline.papers.reproduction import reproduction
from plumbline.papers.zhou import FROM_REGRESSION, published_rows, regression_at
from plumbline.protocols.ground_truth.schemas import GROUND_TRUTH
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.registry import Registry

MEASURES = {"attention": "attention", "shap": "expected-gradient", "random": "random"}


def truth_rows(
    variant: str, kind: str, measure: str, shares: dict[str, tuple[float, float]], **more: Any
) -> list[dict]:
    """Rows of the table `ground_truth`: attributed fraction and region of each group, the truth first."""
    row = {"dataset": "mine", "variant": variant, "model": "net", "seed": 0, "measure": measure, "class": "all"}
    row |= {"manipulation": variant, "kind": kind, "r": 0.5, "draw": 0, "n": 100, "undefined": 0, "accuracy": 0.98}
    return [
        row
        | {"group": group, "truth": index == 0, "attributed_fraction": attributed, "region_fraction": region}
        | {"status": "ok"}
        | more
        for index, (group, (attributed, region)) in enumerate(shares.items())
    ]


def table(
    rows: list[dict], kind: str = "beer", model: str = "bilstm-zhou", scores: dict[str, list[float]] | None = None,
    side: int = 224, per_class: int = 1000, options: dict[str, Any] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """The reproduction of this paper by a study with one dataset and model, with accuracies by variant."""
    counts = {"texts": 4, "instances": 10_000, "mean_length": float(side**2)}
    counts |= {"instances_per_class": {"a": per_class, "b": per_class + 2}}
    summary = {
        "dataset": "mine",
        "partial": {},
        "dropped": {},
        "splits": dict.fromkeys(("train", "dev", "test"), counts),
    }
    performance = [
        {"dataset": "mine", "variant": variant, "model": "net", "seed": seed, "split": "test", "metric": "accuracy"}
        | {"value": value}
        for variant, values in (scores or {}).items()
        for seed, value in enumerate(values)
    ]
    results = StudyResults(
        Names({"mine": kind}, {"net": model}, MEASURES, {"mine": options or {}}),
        [summary],
        {"mine": {"net": "dev"}},
        pd.DataFrame(performance, columns=PERFORMANCE.schema.names),
        ground_truth=pd.DataFrame(rows, columns=GROUND_TRUTH.schema.names),
    )
    found = reproduction(results)
    return found[found["study"] == "Zhou et al. 2022"]


def only(rows: pd.DataFrame, metric: str, **where: Any) -> pd.Series:
    """The only row of this kind."""
    here = rows["metric"] == metric
    for column, value in where.items():
        here &= rows[column] == value
    (found,) = rows[here].index
    return rows.loc[found]


# Published numbers.


def test_table_1_by_hand():
    rows = published_rows().query("table == 'T1'").set_index(["kind", "metric"])
    assert len(rows) == 16 and rows["model"].eq("bilstm-zhou").all() and rows["dataset"].eq("beer").all()
    assert rows.loc[("articles-cn", "attributed_correlating"), ["value", "std"]].tolist() == pytest.approx(
        [0.159, 0.257]
    )
    assert rows.loc[("articles-nc", "frequency_non-correlating"), "value"] == pytest.approx(0.041)
    shares = rows["value"].groupby([rows.index.get_level_values(0), rows.index.get_level_values(1).str[:4]]).sum()
    assert shares.to_numpy() == pytest.approx(1, abs=0.0011)


def test_every_name_is_one_that_there_is():
    rows, registry = published_rows(), Registry()
    known = {kind: set(registry.names(kind)) for kind in ("dataset", "model", "measure", "manipulation")}
    assert set(rows["dataset"]) <= known["dataset"] and set(rows["model"].dropna()) <= known["model"]
    assert set(rows["measure_a"].dropna()) <= known["measure"] and set(rows["kind"].dropna()) <= known["manipulation"]


def test_settings_of_the_study_are_no_results():
    rows = published_rows()
    assert len(rows) == 35 and rows["value"].between(0, 10_000).all()
    assert not rows["metric"].str.contains("sigma|target|n_models|pct").any()


# Beside ours.


def test_attention_by_group_of_words_as_in_table_1():
    rows = []
    for seed, moved in enumerate((-0.01, 0, 0.01)):
        shares = {"first": (0.1 + moved, 0.077), "other": (0.9 - moved, 0.923)}
        rows += truth_rows("articles", "articles", "attention", shares, seed=seed)
        rows += truth_rows("articles", "articles", "random", {"first": (0.07, 0.077)}, seed=seed)
        three = {"first": (0.2, 0.04), "idle": (0.06, 0.037), "other": (0.74, 0.923)}
        rows += truth_rows("cn", "articles-cn", "attention", three, seed=seed)
    found = table(rows, scores={"articles": [0.98, 0.96, 0.99], "plain": [0.5]})
    attended = only(found, "attributed_correlating", table="T1", variant="articles")
    assert (attended["published"], attended["ours"]) == pytest.approx((0.103, 0.1)) and attended["n_seeds"] == 3
    assert attended["tolerance"] == pytest.approx(3 * np.sqrt(0.024**2 / 11 + 0.0001 / 3)) and attended["within"]
    assert not only(found, "frequency_other", variant="articles")["within"]
    assert attended["published_spread"] == pytest.approx(0.024) and attended["measure_a"] == "attention"
    assert only(found, "frequency_other", variant="articles")["ours"] == pytest.approx(0.923)
    assert only(found, "attributed_non-correlating", variant="cn")["ours"] == pytest.approx(0.06)
    assert set(found["variant"].dropna()) == {"articles", "cn"}
    assert only(found, "attributed_correlating", table="sec 6.1")["ours"] == pytest.approx(0.09)
    accuracy = only(found, "least_accuracy", variant="articles")
    assert accuracy["ours"] == pytest.approx(0.9767, abs=1e-4) and "our minimum is 0.960" in accuracy["note"]


def test_other_reviews_are_not_judged():
    rows = truth_rows("articles", "articles", "attention", {"first": (0.1, 0.077), "other": (0.9, 0.923)})
    found = table(rows, scores={"articles": [0.98]}, options={"positive": [1.0], "negative": [0.2, 0.4]})
    assert len(found) == 9 and found["within"].isna().all()
    assert found["note"].str.contains("data other than published").all()
    assert only(found, "train_size")["ours"] == 10_000


def test_a_single_seed_has_no_spread():
    rows = truth_rows("articles", "articles", "attention", {"first": (0.1, 0.079), "other": (0.9, 0.921)})
    found = table(rows, scores={"articles": [0.96]})
    attended = only(found, "attributed_correlating", table="T1")
    assert pd.isna(attended["within"]) and SINGLE_SEED in attended["note"]
    assert only(found, "frequency_correlating")["within"] and not only(found, "least_accuracy")["within"]


def image_models(count: int, accurate: int, **more: Any) -> list[dict]:
    """Rows of `count` models with growing regions, the last `accurate` of which are accurate; the mean over classes of
    the attributed fraction rises linearly from 0.4 to 1."""
    rows = []
    for index, region in enumerate(np.linspace(0.05, 0.95, count)):
        accuracy = 0.99 if index >= count - accurate else 0.9
        for label, moved in (("0", -0.05), ("1", 0.05), ("all", 0)):
            same = {"class": label, "accuracy": accuracy, "draw": index, "manipulation": "blur", **more}
            shares = {"region": (0.4 + 0.6 * region + moved, region)}
            rows += truth_rows(f"blur-{index}", "blur", "shap", shares, **same)
    return rows


def test_image_models_are_compared():
    found = table(image_models(40, 30), "birds", "resnet34")
    share = only(found, "models_over_95")
    assert share["ours"] == 0.75 and share["within"] and "of 40 models" in share["note"]
    assert share["tolerance"] == pytest.approx(3 * np.sqrt(0.7 * 0.3 / 100 + 0.75 * 0.25 / 40))
    shap = only(found, "attributed_at_40")
    assert shap["ours"] == pytest.approx(0.64) and pd.isna(shap["within"]) and FROM_REGRESSION in shap["note"]
    assert only(found, "train_images_per_class")["ours"] == 1001 and only(found, "train_images_per_class")["within"]
    assert "least_accuracy" not in set(found["metric"])


def test_few_accurate_models_are_outside_and_smaller_images_are_not_judged():
    share = only(table(image_models(40, 10), "birds", "resnet34"), "models_over_95")
    assert share["ours"] == 0.25 and not share["within"]
    small = table(image_models(40, 30), "birds", "resnet34", side=128, per_class=600)
    assert pd.isna(only(small, "models_over_95")["within"]) and "128 x 128" in only(small, "models_over_95")["note"]
    assert not only(small, "train_images_per_class")["within"]
    scaled = table(image_models(40, 30), "birds", "resnet34", options={"size": 64})
    assert pd.isna(only(scaled, "models_over_95")["within"])


@pytest.mark.parametrize(("accuracy", "within"), [(0.96, True), (0.95, True), (0.949, False)])
def test_models_of_several_reassignments_have_a_least_accuracy(accuracy: float, within: bool):
    rows = image_models(3, 3) + [
        row
        for index, r in enumerate((0.5, 0.8, 1.0))
        for row in truth_rows(f"hue-{r}", "hue", "shap", {"region": (0.5, 0.2)}, r=r, manipulation="hue",
                              accuracy=accuracy + 0.01 * index)
    ]  # fmt: skip
    found = table(rows, "birds", "resnet34")
    least = only(found, "least_accuracy")
    assert least["ours"] == pytest.approx(accuracy) and least["within"] == within
    # They do not count among the models of random regions.
    assert "of 3 models" in only(found, "models_over_95")["note"]


def test_levels_of_visibility_are_not_random_regions():
    found = table(image_models(9, 9, level=1), "birds", "resnet34")
    assert not {"models_over_95", "attributed_at_40"} & set(found["metric"])


def test_the_regression_is_not_extrapolated():
    points = pd.DataFrame({"region_fraction": [0.1, 0.3], "attributed_fraction": [0.2, 0.4]})
    assert np.isnan(regression_at(0.4, points)) and regression_at(0.2, points) == pytest.approx(0.3)


def test_a_study_without_the_table_has_only_sizes():
    found = table([], "birds", "resnet34")
    assert set(found["metric"]) == {f"{split}_images_per_class" for split in ("train", "val", "test")}
