"""The config section `roar`: which variants it makes, what each rests on, the points of the curves, and refusals."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from plumbline.config.masking import Masked, Point, masked_variants, measure_options, points
from plumbline.config.resolve import read_config, resolve
from plumbline.config.runs import Runs, list_runs
from plumbline.config.schema import RoarEntry
from plumbline.errors import PlumblineError

PUBLISHED = Path(__file__).parents[3] / "studies/recursive-roar.yaml"
EVERYTHING = "roar/relative/random/100"
MEASURES = ["random", "attention", "gradient"]


def study(**changes: Any) -> dict[str, Any]:
    config: dict[str, Any] = {"datasets": ["sst"], "models": ["bilstm-softmax"], "measures": MEASURES, "explain": []}
    return config | {"roar": {"relative": {"levels": [10, 20, 30]}}} | changes


def runs_of(**changes: Any) -> Runs:
    return list_runs(resolve(study(**changes)))


def variants(unit: str = "relative", measures: tuple[str, ...] = ("random", "attention"), **entry: Any) -> list[Masked]:
    return masked_variants(unit, RoarEntry(**entry), measures, "random")


def below(found: list[Masked]) -> dict[str, str]:
    """What each variant rests on; each of them is there once."""
    assert len({one.variant for one in found}) == len(found)
    return {one.variant: one.below for one in found}


def curves(unit: str = "relative", measures: tuple[str, ...] = ("random", "attention"), **entry: Any) -> list[Point]:
    return list(points(unit, RoarEntry(**entry), measures, "random"))


def curve(found: list[Point], strategy: str, measure: str, positions: bool = False) -> list[tuple[int, str]]:
    chosen = [one for one in found if (one.strategy, one.measure, one.positions) == (strategy, measure, positions)]
    return [(one.level, one.variant) for one in dict.fromkeys(chosen)]


# Variants.


def test_the_plain_strategy_rests_on_the_plain_models_at_every_level():
    assert below(variants(strategies=["roar"], levels=[10, 30])) == {
        "roar/relative/random/10": "plain",
        "roar/relative/random/30": "plain",
        "roar/relative/attention/10": "plain",
        "roar/relative/attention/30": "plain",
        EVERYTHING: "plain",
    }


def test_the_recursive_strategy_rests_on_the_level_below_but_for_random_masking():
    assert below(variants(levels=[10, 30, 70])) == {
        "roar/relative/random/10": "plain",
        "roar/relative/random/30": "plain",
        "roar/relative/random/70": "plain",
        "roar/relative/attention/10": "plain",
        "recursive/relative/attention/30": "roar/relative/attention/10",
        "recursive/relative/attention/70": "recursive/relative/attention/30",
        EVERYTHING: "plain",
    }


def test_both_strategies_share_the_first_level_and_all_random_masking():
    both, plain = variants(strategies=["roar", "recursive"]), variants(strategies=["roar"])
    recursive = variants(strategies=["recursive"])
    assert below(both) == below(plain) | below(recursive)
    shared = {one.variant for one in plain} & {one.variant for one in recursive}
    assert shared == {f"roar/relative/random/{n}" for n in range(10, 101, 10)} | {"roar/relative/attention/10"}


def test_levels_are_by_default_tenths_and_one_to_ten_words():
    for unit, levels in (("relative", [*range(10, 100, 10), 100]), ("absolute", [*range(1, 11), 100])):
        assert [one.level for one in variants(unit) if one.measure == "random"] == levels
        by_measure = [one for one in variants(unit) if one.measure == "attention"]
        assert [one.level for one in by_measure] == levels[:-1]
        assert all(upper.below == lower.variant for lower, upper in pairwise(by_measure))
        assert {one.unit for one in by_measure} == {unit}


def test_numbers_of_words_have_variants_of_their_own_and_everything_masked_too():
    found = variants("absolute", levels=[1, 100])
    assert below(found) == {
        "roar/absolute/random/1": "plain",
        "roar/absolute/random/100": "plain",
        "roar/absolute/attention/1": "plain",
        "recursive/absolute/attention/100": "roar/absolute/attention/1",
        EVERYTHING: "plain",
    }
    assert found[-1] == Masked(EVERYTHING, "relative", "random", 100, "plain")


@pytest.mark.parametrize("strategy", ["roar", "recursive"])
def test_everything_masked_is_made_once_whether_it_is_asked_for_or_not(strategy):
    asked = variants(strategies=[strategy], levels=[10, 100])
    assert below(asked) == below(variants(strategies=[strategy], levels=[10]))
    assert [one.variant for one in asked if one.level == 100] == [EVERYTHING]


def test_a_study_of_both_units_has_everything_masked_once():
    runs = runs_of(roar={"absolute": {"levels": [1]}, "relative": {"levels": [10]}})
    assert sorted(cell.variant for cell in runs.masked) == [
        *(f"roar/absolute/{measure}/1" for measure in sorted(MEASURES)),
        *(f"roar/relative/{measure}/10" for measure in ("attention", "gradient", "random")),
        EVERYTHING,
    ]


@pytest.mark.parametrize("unit", ["relative", "absolute"])
@pytest.mark.parametrize("strategies", [["roar"], ["recursive"], ["roar", "recursive"]])
def test_a_level_added_at_the_end_leaves_the_others_as_they_were(unit, strategies):
    before = variants(unit, strategies=strategies, levels=[1, 4, 8])
    after = variants(unit, strategies=strategies, levels=[1, 4, 8, 9])
    assert set(before) < set(after)
    assert {one.level for one in set(after) - set(before)} == {9}


def test_leakage_adds_a_variant_of_positions_to_each_and_to_nothing_masked():
    plain = variants(levels=[10, 30])
    leaking = variants(levels=[10, 30], leakage=True)
    assert leaking[: len(plain)] == plain and not any(one.positions for one in plain)
    added = leaking[len(plain) :]
    assert all(one.positions for one in added)
    # Where everything is masked, which words are says nothing.
    telling = [one for one in plain if one.variant != EVERYTHING]
    assert [one.variant for one in added] == ["positions/plain", *(f"positions/{one.variant}" for one in telling)]
    # Their masks, and so what these rest on, are those of the variant itself.
    assert [(one.masks, one.below, one.level) for one in added[1:]] == [
        (one.variant, one.below, one.level) for one in telling
    ]
    assert (added[0].masks, added[0].level) == ("plain", 0)


# Points of curves.


def test_curves_begin_with_nothing_masked_and_end_with_everything():
    found = curves(strategies=["roar", "recursive"], levels=[10, 30])
    assert curve(found, "roar", "attention") == [
        (0, "plain"),
        (10, "roar/relative/attention/10"),
        (30, "roar/relative/attention/30"),
        (100, EVERYTHING),
    ]
    assert curve(found, "recursive", "attention") == [
        (0, "plain"),
        (10, "roar/relative/attention/10"),
        (30, "recursive/relative/attention/30"),
        (100, EVERYTHING),
    ]
    random = [(0, "plain"), (10, "roar/relative/random/10"), (30, "roar/relative/random/30"), (100, EVERYTHING)]
    assert curve(found, "roar", "random") == curve(found, "recursive", "random") == random
    assert {one.unit for one in found} == {"relative"}


def test_curves_of_numbers_of_words_do_not_end_with_everything_but_have_it_beside_them():
    found = curves("absolute", levels=[1, 2])
    by_words = [one for one in found if one.unit == "absolute"]
    assert curve(by_words, "recursive", "attention") == [
        (0, "plain"),
        (1, "roar/absolute/attention/1"),
        (2, "recursive/absolute/attention/2"),
    ]
    assert [one for one in found if one.unit == "relative"] == [
        Point("recursive", "relative", "random", 100, EVERYTHING)
    ]
    runs = runs_of(roar={"absolute": {"levels": [1]}})
    assert EVERYTHING in {cell.variant for cell in runs.masked}


def test_leakage_adds_the_points_of_positions():
    found = curves(levels=[10, 30], leakage=True)
    for measure in ("random", "attention"):
        words, positions = (curve(found, "recursive", measure, flag) for flag in (False, True))
        assert positions == [(level, f"positions/{variant}") for level, variant in words if level < 100]
    assert not any(one.positions for one in curves(levels=[10, 30]))


@pytest.mark.parametrize("leakage", [False, True])
def test_every_point_stands_on_a_variant_that_is_made(leakage):
    roar = {"strategies": ["roar", "recursive"], "levels": [1, 3, 7], "leakage": leakage}
    runs = runs_of(roar={"relative": roar, "absolute": roar}, seeds=["0-1", "2"])
    assert len(runs.cells) == len(runs.curves) == 2
    for cell, found in runs.curves.items():
        made = {other.variant for other in runs.masked if other.seeds == cell.seeds}
        assert {point.variant for point in found} == made | {"plain"}


# Measures and models.


def masking(runs: Runs, model: str) -> set[str]:
    return {one.measure for cell, one in runs.masked.items() if cell.model == model}


def test_all_measures_that_a_model_can_have_mask_by_default():
    runs = runs_of(models=["bilstm-softmax", "roberta"], measures=[*MEASURES, "gradient-attached"])
    assert masking(runs, "bilstm-softmax") == {*MEASURES, "gradient-attached"}
    # It has no attention, which `gradient` holds fixed.
    assert masking(runs, "roberta") == {"random", "gradient-attached"}


def test_random_masking_is_added_if_left_out_and_other_measures_are_not():
    named = {"levels": [10], "measures": ["gradient"]}
    runs = runs_of(roar={"relative": named})
    assert [one.measure for one in runs.masked.values() if one.level == 10] == ["random", "gradient"]
    listed = runs_of(roar={"relative": named | {"measures": ["gradient", "random"]}})
    assert listed.masked == runs.masked and listed.curves == runs.curves
    models = {"bilstm-softmax": {"measures": ["gradient"]}, "other": {"kind": "bilstm-softmax"}}
    assert masking(runs_of(models=models), "bilstm-softmax") == {"random", "gradient"}


def test_random_masking_goes_by_the_name_that_the_study_gives_it():
    runs = runs_of(measures={"gradient": {}, "chance": {"kind": "random"}, "again": {"kind": "random"}})
    everything = [cell.variant for cell, one in runs.masked.items() if one.level == 100]
    assert everything == ["roar/relative/chance/100"]
    assert runs.curves[runs.cells[0]][0].measure == "chance"


def test_models_and_datasets_are_those_that_are_named():
    changes = {"datasets": ["sst", "imdb", "snli"], "models": ["bilstm-softmax", "bilstm-tanh"]}
    assert {(cell.dataset, cell.model) for cell in runs_of(**changes).masked} == {
        (dataset, model) for dataset in changes["datasets"] for model in changes["models"]
    }
    named = {"datasets": ["snli", "sst"], "models": ["bilstm-tanh"]}
    runs = runs_of(**changes, roar={"relative": named})
    chosen = {("snli", "bilstm-tanh"), ("sst", "bilstm-tanh")}
    assert {(cell.dataset, cell.model) for cell in runs.masked} == chosen
    assert {(cell.dataset, cell.model) for cell in runs.curves} == chosen and len(runs.cells) == 6


def test_masking_explains_the_gold_class_whatever_measures_explain_elsewhere():
    measures = {"random": {}, "attention": {}, "gradient": {"target": "predicted", "function": "logit"}}
    resolved = resolve(study(measures=measures))
    assert measure_options(resolved, "gradient") == resolved.options["measure", "gradient"] | {"target": "gold"}
    assert resolved.options["measure", "gradient"]["target"] == "predicted"
    assert measure_options(resolved, "attention") == measure_options(resolved, "random") == {}
    roar = {unit: {"target": "predicted"} for unit in ("relative", "absolute")}
    measures["gradient"]["target"] = "gold"
    assert measure_options(resolve(study(measures=measures, roar=roar)), "gradient")["target"] == "predicted"


def test_nothing_plain_is_explained_where_no_split_is():
    runs = runs_of()
    assert runs.measures == {"bilstm-softmax": []} and not runs.excluded
    assert masking(runs, "bilstm-softmax") == set(MEASURES)
    assert runs_of(explain=["test"]).measures == {"bilstm-softmax": MEASURES}
    for protocol in ("agreement", "permutation"):
        with pytest.raises(
            PlumblineError,
            match=rf"^`protocols\.{protocol}` scores texts that are explained, and `explain` names no split\.$",
        ):
            runs_of(protocols=[protocol])


def test_units_do_not_depend_on_their_order():
    units = {"absolute": {"levels": [1]}, "relative": {"levels": [50]}}
    turned = dict(reversed(units.items()))
    assert set(runs_of(roar=units).masked) == set(runs_of(roar=turned).masked)


def test_names_stand_once():
    with pytest.raises(PlumblineError, match=r"`strategies` must name each once\.$"):
        runs_of(roar={"relative": {"strategies": ["roar", "roar"]}})


def test_a_measure_that_needs_training_texts_masks_but_explains_only_with_them():
    measures = ["random", "attention", "mutual-information"]
    runs = runs_of(measures=measures, explain=["test"])
    assert runs.measures == {"bilstm-softmax": ["random", "attention"]}
    (excluded,) = runs.excluded
    assert (excluded.model, excluded.measure) == ("bilstm-softmax", "mutual-information")
    assert excluded.reason == (
        "measure 'mutual-information' needs split 'train', which is not among those that are explained"
    )
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
    """Of each measure but the random one, in relative levels 9 by ROAR and 8 more recursively, and 10 numbers of words;
    random masking 9 and 10, and everything. It needs the importances of all these but the last of each chain, and ROAR
    those of the plain models alone, which begin the chains too."""
    runs = list_runs(resolve(read_config(PUBLISHED)))
    assert len(runs.cells) == len(runs.curves) == 8 * 2 and {cell.seeds for cell in runs.masked} == {"0-4"}
    asked = {(cell.dataset, cell.model, one.below, one.measure) for cell, one in runs.masked.items()}
    for model, measures in (("bilstm-softmax", 5), ("roberta", 4)):
        for dataset in ("sst", "imdb", "snli", "babi-1", "babi-2", "babi-3", "diabetes", "anemia"):
            here = [cell for cell in runs.masked if (cell.dataset, cell.model) == (dataset, model)]
            assert len(here) == measures * (9 + 8 + 10) + 9 + 10 + 1
            needed = [one for one in asked if one[:2] == (dataset, model)]
            assert len(needed) == measures * (1 + 8 + 9) + 1
    assert len(runs.masked) == 8 * (155 + 128) and len(asked) == 8 * (91 + 73)
    assert masking(runs, "bilstm-softmax") - masking(runs, "roberta") == {"attention"}
    # Points of relative curves from 0 to 100 by both strategies, of numbers of words from 0 to 10 by one; and each time
    # that of everything masked once more.
    for cell, found in runs.curves.items():
        lines = 1 + (5 if cell.model == "bilstm-softmax" else 4)
        assert len(found) == 3 * 11 * lines + 3


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

GIVEN = {"bilstm-softmax": {}, "given": {"kind": "bilstm-softmax", "attention_of": "bilstm-softmax"}}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"measures": ["attention", "gradient"], "roar": ["absolute"]},
            "`roar.absolute`: masking is compared with masking at random; add `random` to `measures`.",
        ),
        (
            {"roar": {"relative": {"measures": ["atention"]}}},
            "`roar.relative.measures` names 'atention'; did you mean 'attention'?",
        ),
        (
            {"roar": {"relative": {"models": ["bilstm-sofmax"]}}},
            "`roar.relative.models` names 'bilstm-sofmax'; did you mean 'bilstm-softmax'?",
        ),
        (
            {"roar": {"absolute": {"datasets": ["snli"]}}},
            "`roar.absolute.datasets` names 'snli'; known are: sst.",
        ),
        (
            {"roar": {"relative": {"levels": [20, 10]}}},
            "`roar.relative` is {'levels': [20, 10]}: `levels` must be whole numbers of 1 or more that rise.",
        ),
        (
            {"roar": {"absolute": {"levels": [1, 1]}}},
            "`roar.absolute` is {'levels': [1, 1]}: `levels` must be whole numbers of 1 or more that rise.",
        ),
        (
            {"roar": {"absolute": {"levels": [0, 1]}}},
            "`roar.absolute` is {'levels': [0, 1]}: `levels` must be whole numbers of 1 or more that rise.",
        ),
        (
            {"roar": {"relative": {"levels": [10, 101]}}},
            "`roar.relative.levels` holds 101; it is percent, 100 at most.",
        ),
        ({"roar": {"relative": {"levels": [2.5]}}}, "`roar.relative.levels.0` is 2.5: it must be a whole number."),
        (
            {"roar": {"relative": {"strategies": ["recursiv"]}}},
            "`roar.relative.strategies.0` is 'recursiv'; did you mean 'recursive'? Known are: roar, recursive.",
        ),
        (
            {"roar": {"relative": {"target": "gold"}, "absolute": {"target": "predicted"}}},
            "`roar.relative.target` and `roar.absolute.target` differ; they mask by the same scores.",
        ),
        (
            {"roar": {"relative": {"models": ["bilstm-softmax", "given"]}}, "models": GIVEN},
            "`roar.relative.models`: the attention of model 'given' is another's.",
        ),
        (
            {
                "datasets": ["sst", "imdb"],
                "models": {"bilstm-softmax": {"datasets": ["sst"]}, "bilstm-tanh": {}},
                "roar": {"absolute": {"models": ["bilstm-softmax"], "datasets": ["imdb"]}},
            },
            "`roar.absolute` names no model and dataset that go together.",
        ),
        (
            {"models": ["bilstm-softmax", "roberta"], "roar": {"relative": {"measures": ["attention"]}}},
            "`roar.relative`: model 'roberta' has no measure to mask by but 'random'.",
        ),
        (
            {"roar": {"relative": {"measures": ["random"]}}},
            "`roar.relative`: model 'bilstm-softmax' has no measure to mask by but 'random'.",
        ),
    ],
)
def test_fault_is_one_sentence(changes, sentence):
    with pytest.raises(PlumblineError) as caught:
        runs_of(**changes)
    assert str(caught.value) == sentence


def test_a_model_with_anothers_attention_is_passed_over_where_none_is_named():
    runs = runs_of(models=GIVEN)
    assert {cell.model for cell in runs.masked} == {cell.model for cell in runs.curves} == {"bilstm-softmax"}
    assert {cell.model for cell in runs.cells} == {"bilstm-softmax", "given"}


@pytest.mark.parametrize("levels", [[1, 50, 100], [7]])
def test_percent_may_be_any_from_one_to_a_hundred_and_numbers_of_words_more(levels):
    assert {one.level for one in runs_of(roar={"relative": {"levels": levels}}).masked.values()} == {*levels, 100}
    assert 250 in {one.level for one in runs_of(roar={"absolute": {"levels": [250]}}).masked.values()}


@pytest.mark.parametrize("levels", [[], [100]])
def test_levels_of_nothing_or_of_everything_alone_are_refused(levels):
    with pytest.raises(PlumblineError, match=r"^`roar\.relative\.levels` is \[.*\]; name at least one, below 100"):
        runs_of(roar={"relative": {"levels": levels}})


def test_an_empty_section_is_none():
    assert not runs_of(roar=None, explain=["test"]).masked
