"""The config section `roar`: which variants it makes, what each rests on, the points of the curves, and refusals."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.entries import RoarEntry
from plumbline.config.masking import Masked, Point, masked_variants, measure_options, points
from plumbline.config.resolve import read_config, resolve
from plumbline.config.runs import Runs, list_runs
from plumbline.errors import PlumblineError

PUBLISHED = Path(__file__).parents[3] / "studies/recursive-roar.yaml"
ALL_MASKED = "roar/relative/random/100"
MEASURES = ["random", "attention", "gradient"]


def study(**changes: Any) -> dict[str, Any]:
    config: dict[str, Any] = {"datasets": ["sst"], "models": ["bilstm-softmax"], "measures": MEASURES, "explain": []}
    return config | {"roar": {"relative": {"levels": [10, 20, 30]}}} | changes


def runs_of(**changes: Any) -> Runs:
    return list_runs(resolve(study(**changes)))


def variants(unit: str = "relative", measures: tuple[str, ...] = ("random", "attention"), **entry: Any) -> list[Masked]:
    return masked_variants(unit, RoarEntry(**entry), measures, "random")


def below(variants: list[Masked]) -> dict[str, str]:
    """What each variant rests on; each of them is there once."""
    assert len({masked.variant for masked in variants}) == len(variants)
    return {masked.variant: masked.below for masked in variants}


def curves(unit: str = "relative", measures: tuple[str, ...] = ("random", "attention"), **entry: Any) -> list[Point]:
    return list(points(unit, RoarEntry(**entry), measures, "random"))


def curve(points: list[Point], strategy: str, measure: str, positions: bool = False) -> list[tuple[int, str]]:
    chosen = [
        point for point in points if (point.strategy, point.measure, point.positions) == (strategy, measure, positions)
    ]
    return [(point.level, point.variant) for point in dict.fromkeys(chosen)]


# Variants.


def test_the_plain_strategy_rests_on_the_plain_models_at_every_level():
    assert below(variants(strategies=["roar"], levels=[10, 30])) == {
        "roar/relative/random/10": "plain",
        "roar/relative/random/30": "plain",
        "roar/relative/attention/10": "plain",
        "roar/relative/attention/30": "plain",
        ALL_MASKED: "plain",
    }


def test_the_recursive_strategy_rests_on_the_level_below_but_for_random_masking():
    assert below(variants(levels=[10, 30, 70])) == {
        "roar/relative/random/10": "plain",
        "roar/relative/random/30": "plain",
        "roar/relative/random/70": "plain",
        "roar/relative/attention/10": "plain",
        "recursive/relative/attention/30": "roar/relative/attention/10",
        "recursive/relative/attention/70": "recursive/relative/attention/30",
        ALL_MASKED: "plain",
    }


def test_both_strategies_share_the_first_level_and_all_random_masking():
    both, plain = variants(strategies=["roar", "recursive"]), variants(strategies=["roar"])
    recursive = variants(strategies=["recursive"])
    assert below(both) == below(plain) | below(recursive)
    shared = {masked.variant for masked in plain} & {masked.variant for masked in recursive}
    assert shared == {f"roar/relative/random/{n}" for n in range(10, 101, 10)} | {"roar/relative/attention/10"}


def test_levels_are_by_default_tenths_and_one_to_ten_words():
    for unit, levels in (("relative", [*range(10, 100, 10), 100]), ("absolute", [*range(1, 11), 100])):
        assert [masked.level for masked in variants(unit) if masked.measure == "random"] == levels
        by_measure = [masked for masked in variants(unit) if masked.measure == "attention"]
        assert [masked.level for masked in by_measure] == levels[:-1]
        assert all(upper.below == lower.variant for lower, upper in pairwise(by_measure))
        assert {masked.unit for masked in by_measure} == {unit}


def test_absolute_levels_have_their_own_variants_and_the_one_with_all_words_masked():
    found = variants("absolute", levels=[1, 100])
    assert below(found) == {
        "roar/absolute/random/1": "plain",
        "roar/absolute/random/100": "plain",
        "roar/absolute/attention/1": "plain",
        "recursive/absolute/attention/100": "roar/absolute/attention/1",
        ALL_MASKED: "plain",
    }
    assert found[-1] == Masked(ALL_MASKED, "relative", "random", 100, "plain")


@pytest.mark.parametrize("strategy", ["roar", "recursive"])
def test_the_variant_with_all_words_masked_exists_once_whether_listed_or_not(strategy):
    listed = variants(strategies=[strategy], levels=[10, 100])
    assert below(listed) == below(variants(strategies=[strategy], levels=[10]))
    assert [masked.variant for masked in listed if masked.level == 100] == [ALL_MASKED]


def test_a_study_of_both_units_shares_the_variant_with_all_words_masked():
    runs = runs_of(roar={"absolute": {"levels": [1]}, "relative": {"levels": [10]}})
    assert sorted(cell.variant for cell in runs.masked) == [
        *(f"roar/absolute/{measure}/1" for measure in sorted(MEASURES)),
        *(f"roar/relative/{measure}/10" for measure in ("attention", "gradient", "random")),
        ALL_MASKED,
    ]


@pytest.mark.parametrize("unit", ["relative", "absolute"])
@pytest.mark.parametrize("strategies", [["roar"], ["recursive"], ["roar", "recursive"]])
def test_a_level_added_at_the_end_leaves_the_others_as_they_were(unit, strategies):
    before = variants(unit, strategies=strategies, levels=[1, 4, 8])
    after = variants(unit, strategies=strategies, levels=[1, 4, 8, 9])
    assert set(before) < set(after)
    assert {masked.level for masked in set(after) - set(before)} == {9}


def test_leakage_adds_a_variant_of_positions_to_each_variant_and_to_the_plain_one():
    plain = variants(levels=[10, 30])
    leaking = variants(levels=[10, 30], leakage=True)
    assert leaking[: len(plain)] == plain and not any(masked.positions for masked in plain)
    added = leaking[len(plain) :]
    assert all(masked.positions for masked in added)
    # With all words masked, positions hold no information.
    informative = [masked for masked in plain if masked.variant != ALL_MASKED]
    assert [masked.variant for masked in added] == [
        "positions/plain",
        *(f"positions/{masked.variant}" for masked in informative),
    ]
    # They share the masks, and so the importances, of the variant with words.
    assert [(masked.masks, masked.below, masked.level) for masked in added[1:]] == [
        (masked.variant, masked.below, masked.level) for masked in informative
    ]
    assert (added[0].masks, added[0].level) == ("plain", 0)


# Points of curves.


def test_relative_curves_begin_with_no_words_masked_and_end_with_all():
    found = curves(strategies=["roar", "recursive"], levels=[10, 30])
    assert curve(found, "roar", "attention") == [
        (0, "plain"),
        (10, "roar/relative/attention/10"),
        (30, "roar/relative/attention/30"),
        (100, ALL_MASKED),
    ]
    assert curve(found, "recursive", "attention") == [
        (0, "plain"),
        (10, "roar/relative/attention/10"),
        (30, "recursive/relative/attention/30"),
        (100, ALL_MASKED),
    ]
    random = [(0, "plain"), (10, "roar/relative/random/10"), (30, "roar/relative/random/30"), (100, ALL_MASKED)]
    assert curve(found, "roar", "random") == curve(found, "recursive", "random") == random
    assert {point.unit for point in found} == {"relative"}


def test_absolute_curves_have_all_words_masked_as_a_separate_point():
    found = curves("absolute", levels=[1, 2])
    by_words = [point for point in found if point.unit == "absolute"]
    assert curve(by_words, "recursive", "attention") == [
        (0, "plain"),
        (1, "roar/absolute/attention/1"),
        (2, "recursive/absolute/attention/2"),
    ]
    assert [point for point in found if point.unit == "relative"] == [
        Point("recursive", "relative", "random", 100, ALL_MASKED)
    ]
    runs = runs_of(roar={"absolute": {"levels": [1]}})
    assert ALL_MASKED in {cell.variant for cell in runs.masked}


def test_leakage_adds_points_of_positions():
    found = curves(levels=[10, 30], leakage=True)
    for measure in ("random", "attention"):
        words, positions = (curve(found, "recursive", measure, flag) for flag in (False, True))
        assert positions == [(level, f"positions/{variant}") for level, variant in words if level < 100]
    assert not any(point.positions for point in curves(levels=[10, 30]))


@pytest.mark.parametrize("leakage", [False, True])
def test_every_point_has_a_variant_that_models_are_trained_on(leakage):
    roar = {"strategies": ["roar", "recursive"], "levels": [1, 3, 7], "leakage": leakage}
    runs = runs_of(roar={"relative": roar, "absolute": roar}, seeds=["0-1", "2"])
    assert len(runs.cells) == len(runs.curves) == 2
    for cell, found in runs.curves.items():
        made = {other.variant for other in runs.masked if other.seeds == cell.seeds}
        assert {point.variant for point in found} == made | {"plain"}


# Measures and models.


def masking(runs: Runs, model: str) -> set[str]:
    return {masked.measure for cell, masked in runs.masked.items() if cell.model == model}


def test_all_supported_measures_mask_by_default():
    runs = runs_of(models=["bilstm-softmax", "roberta"], measures=[*MEASURES, "gradient-attached"])
    assert masking(runs, "bilstm-softmax") == {*MEASURES, "gradient-attached"}
    # It has no attention, which `gradient` detaches.
    assert masking(runs, "roberta") == {"random", "gradient-attached"}


def test_random_masking_is_added_if_left_out_and_other_measures_are_not():
    named = {"levels": [10], "measures": ["gradient"]}
    runs = runs_of(roar={"relative": named})
    assert [masked.measure for masked in runs.masked.values() if masked.level == 10] == ["random", "gradient"]
    listed = runs_of(roar={"relative": named | {"measures": ["gradient", "random"]}})
    assert listed.masked == runs.masked and listed.curves == runs.curves
    models = {"bilstm-softmax": {"measures": ["gradient"]}, "other": {"kind": "bilstm-softmax"}}
    assert masking(runs_of(models=models), "bilstm-softmax") == {"random", "gradient"}


def test_random_masking_has_the_name_that_the_study_gives_it():
    runs = runs_of(measures={"gradient": {}, "chance": {"kind": "random"}, "again": {"kind": "random"}})
    everything = [cell.variant for cell, masked in runs.masked.items() if masked.level == 100]
    assert everything == ["roar/relative/chance/100"]
    assert runs.curves[runs.cells[0]][0].measure == "chance"


def test_only_listed_models_and_datasets_are_masked():
    changes = {"datasets": ["sst", "imdb", "snli"], "models": ["bilstm-softmax", "bilstm-tanh"]}
    assert {(cell.dataset, cell.model) for cell in runs_of(**changes).masked} == {
        (dataset, model) for dataset in changes["datasets"] for model in changes["models"]
    }
    named = {"datasets": ["snli", "sst"], "models": ["bilstm-tanh"]}
    runs = runs_of(**changes, roar={"relative": named})
    chosen = {("snli", "bilstm-tanh"), ("sst", "bilstm-tanh")}
    assert {(cell.dataset, cell.model) for cell in runs.masked} == chosen
    assert {(cell.dataset, cell.model) for cell in runs.curves} == chosen and len(runs.cells) == 6


def test_masking_explains_the_gold_class_independent_of_the_target_of_measures():
    measures = {"random": {}, "attention": {}, "gradient": {"target": "predicted", "function": "logit"}}
    resolved = resolve(study(measures=measures))
    assert measure_options(resolved, "gradient") == resolved.options["measure", "gradient"] | {"target": "gold"}
    assert resolved.options["measure", "gradient"]["target"] == "predicted"
    assert measure_options(resolved, "attention") == measure_options(resolved, "random") == {}
    roar = {unit: {"target": "predicted"} for unit in ("relative", "absolute")}
    measures["gradient"]["target"] = "gold"
    assert measure_options(resolve(study(measures=measures, roar=roar)), "gradient")["target"] == "predicted"


def test_no_plain_text_is_explained_without_a_split():
    runs = runs_of()
    assert runs.measures == {"bilstm-softmax": []} and not runs.excluded
    assert masking(runs, "bilstm-softmax") == set(MEASURES)
    assert runs_of(explain=["test"]).measures == {"bilstm-softmax": MEASURES}
    for protocol in ("agreement", "permutation"):
        with pytest.raises(
            PlumblineError,
            match=rf"^`protocols\.{protocol}` scores explanations, but `explain` lists no split; add one\.$",
        ):
            runs_of(protocols=[protocol])


def test_units_do_not_depend_on_their_order():
    units = {"absolute": {"levels": [1]}, "relative": {"levels": [50]}}
    turned = dict(reversed(units.items()))
    assert set(runs_of(roar=units).masked) == set(runs_of(roar=turned).masked)


def test_names_are_listed_once():
    with pytest.raises(PlumblineError, match=r"`strategies` must not list a name twice\.$"):
        runs_of(roar={"relative": {"strategies": ["roar", "roar"]}})


def test_a_measure_that_needs_training_texts_masks_but_explains_only_with_them():
    measures = ["random", "attention", "mutual-information"]
    runs = runs_of(measures=measures, explain=["test"])
    assert runs.measures == {"bilstm-softmax": ["random", "attention"]}
    (excluded,) = runs.excluded
    assert (excluded.model, excluded.measure) == ("bilstm-softmax", "mutual-information")
    assert excluded.reason == ("measure 'mutual-information' needs split 'train', which `explain` does not list")
    assert masking(runs, "bilstm-softmax") == set(measures)
    trained = runs_of(measures=measures, explain=["train", "test"])
    assert trained.measures == {"bilstm-softmax": measures} and not trained.excluded
    assert trained.masked == runs.masked
    assert not runs_of(measures=measures).excluded


def test_a_study_without_masking_has_none():
    runs = runs_of(roar={}, explain=["test"])
    assert runs.masked == runs.curves == {}


# The published study.


def test_the_published_study_has_as_many_models_and_importances_as_counted_by_hand():
    """Each measure except the random one has 9 relative levels of ROAR, 8 more recursive ones and 10 absolute levels;
    random masking has 9 and 10, and all words masked. Recursive masking needs the importances of all levels but the
    last, ROAR only those of the plain models, where the recursion starts too. Counted before jobs are cut."""
    runs = list_runs(resolve(read_config(PUBLISHED) | {"compute": {}}))
    assert len(runs.cells) == len(runs.curves) == 8 * 2 and {cell.seeds for cell in runs.masked} == {"0-4"}
    asked = {(cell.dataset, cell.model, masked.below, masked.measure) for cell, masked in runs.masked.items()}
    for model, measures in (("bilstm-softmax", 5), ("roberta", 4)):
        for dataset in ("sst", "imdb", "snli", "babi-1", "babi-2", "babi-3", "diabetes", "anemia"):
            here = [cell for cell in runs.masked if (cell.dataset, cell.model) == (dataset, model)]
            assert len(here) == measures * (9 + 8 + 10) + 9 + 10 + 1
            needed = [key for key in asked if key[:2] == (dataset, model)]
            assert len(needed) == measures * (1 + 8 + 9) + 1
    assert len(runs.masked) == 8 * (155 + 128) and len(asked) == 8 * (91 + 73)
    assert masking(runs, "bilstm-softmax") - masking(runs, "roberta") == {"attention"}
    # Points of relative curves from 0 to 100 by both strategies, of absolute curves from 0 to 10 by one; and each time
    # all words masked once more.
    for cell, points_ in runs.curves.items():
        lines = 1 + (5 if cell.model == "bilstm-softmax" else 4)
        assert len(points_) == 3 * 11 * lines + 3


def test_the_published_study_filters_texts_as_its_code_does():
    """More than five leaves of a tree; IMDB more than six words; diabetes all texts, by a test that is never true."""
    resolved = resolve(read_config(PUBLISHED))
    assert resolved.options["dataset", "sst"] == {"leaves_over": 5, "tokens": "cleaned"}
    bounds = {name: (recipe.longer_than, recipe.shorter_than) for name, recipe in resolved.preparations.items()}
    assert bounds["sst"] == bounds["diabetes"] == bounds["snli"] == bounds["babi-1"] == (None, None)
    assert bounds["imdb"][0] == 6 and bounds["anemia"][1] == 4001


def test_the_published_study_explains_gold_classes_in_masking_alone():
    resolved = resolve(read_config(PUBLISHED))
    assert list_runs(resolved).measures == {"bilstm-softmax": [], "roberta": []}
    targets = {name: measure_options(resolved, name).get("target") for name in resolved.study.measures}
    assert targets == dict.fromkeys(resolved.study.measures, "gold") | {"random": None, "attention": None}


# Refusals.

GUIDED = {"bilstm-softmax": {}, "given": {"kind": "bilstm-softmax", "attention_of": "bilstm-softmax"}}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"measures": ["attention", "gradient"], "roar": ["absolute"]},
            "`roar.absolute`: ROAR compares with random masking; add `random` to `measures`.",
        ),
        (
            {"roar": {"relative": {"measures": ["atention"]}}},
            "`roar.relative.measures` names 'atention', which is not defined in the study; did you mean 'attention'?",
        ),
        (
            {"roar": {"relative": {"models": ["bilstm-sofmax"]}}},
            "`roar.relative.models` names 'bilstm-sofmax', which is not defined in the study; did you mean "
            "'bilstm-softmax'?",
        ),
        (
            {"roar": {"absolute": {"datasets": ["snli"]}}},
            "`roar.absolute.datasets` names 'snli', which is not defined in the study; choose from: sst.",
        ),
        (
            {"roar": {"relative": {"levels": [20, 10]}}},
            "`roar.relative` is {'levels': [20, 10]}: `levels` must be increasing whole numbers of 1 or more.",
        ),
        (
            {"roar": {"absolute": {"levels": [1, 1]}}},
            "`roar.absolute` is {'levels': [1, 1]}: `levels` must be increasing whole numbers of 1 or more.",
        ),
        (
            {"roar": {"absolute": {"levels": [0, 1]}}},
            "`roar.absolute` is {'levels': [0, 1]}: `levels` must be increasing whole numbers of 1 or more.",
        ),
        (
            {"roar": {"relative": {"levels": [10, 101]}}},
            "`roar.relative.levels` contains 101; a percentage is at most 100.",
        ),
        ({"roar": {"relative": {"levels": [2.5]}}}, "`roar.relative.levels.0` is 2.5: it must be a whole number."),
        (
            {"roar": {"relative": {"strategies": ["recursiv"]}}},
            "`roar.relative.strategies.0` is 'recursiv'; did you mean 'recursive'? Choose from: roar, recursive.",
        ),
        (
            {"roar": {"relative": {"target": "gold"}, "absolute": {"target": "predicted"}}},
            "`roar.relative.target` and `roar.absolute.target` differ; set both to the same value, because both mask "
            "by the same importances.",
        ),
        (
            {"roar": {"relative": {"models": ["bilstm-softmax", "given"]}}, "models": GUIDED},
            "`roar.relative.models`: model 'given' takes its attention from another model; remove it.",
        ),
        (
            {
                "datasets": ["sst", "imdb"],
                "models": {"bilstm-softmax": {"datasets": ["sst"]}, "bilstm-tanh": {}},
                "roar": {"absolute": {"models": ["bilstm-softmax"], "datasets": ["imdb"]}},
            },
            "`roar.absolute`: none of its models is trained on any of its datasets; change `models` or `datasets`.",
        ),
        (
            {"models": ["bilstm-softmax", "roberta"], "roar": {"relative": {"measures": ["attention"]}}},
            "`roar.relative`: model 'roberta' needs a measure to mask by besides 'random'; add one to `measures`.",
        ),
        (
            {"roar": {"relative": {"measures": ["random"]}}},
            "`roar.relative`: model 'bilstm-softmax' needs a measure to mask by besides 'random'; add one to "
            "`measures`.",
        ),
    ],
)
def test_fault_is_one_sentence(changes, sentence):
    with pytest.raises(PlumblineError) as caught:
        runs_of(**changes)
    assert str(caught.value) == sentence


def test_a_model_with_anothers_attention_is_skipped_unless_listed():
    runs = runs_of(models=GUIDED)
    assert {cell.model for cell in runs.masked} == {cell.model for cell in runs.curves} == {"bilstm-softmax"}
    assert {cell.model for cell in runs.cells} == {"bilstm-softmax", "given"}


@pytest.mark.parametrize("levels", [[1, 50, 100], [7]])
def test_relative_levels_are_at_most_a_hundred_and_absolute_ones_unlimited(levels):
    assert {masked.level for masked in runs_of(roar={"relative": {"levels": levels}}).masked.values()} == {*levels, 100}
    assert 250 in {masked.level for masked in runs_of(roar={"absolute": {"levels": [250]}}).masked.values()}


@pytest.mark.parametrize("levels", [[], [100]])
def test_levels_need_one_below_a_hundred_percent(levels):
    with pytest.raises(
        PlumblineError,
        match=(r"^`roar\.relative\.levels` is \[.*\]; add a level of 1 or more, which must be below 100"),
    ):
        runs_of(roar={"relative": {"levels": levels}})


def test_an_empty_section_means_no_masking():
    assert not runs_of(roar=None, explain=["test"]).masked
