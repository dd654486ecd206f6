"""Variants with a known truth, as a study names them."""

import pytest

from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.errors import PlumblineError

BLUR = {"kind": "peripheral-blur", "datasets": ["textures"]}


def study(manipulations, **changes):
    config = {
        "datasets": {"reviews": {}, "textures": {}},
        "manipulations": manipulations,
        "models": {"bilstm-zhou": {}, "resnet-small": {}},
        "measures": ["attention", "gradient-channels", "random"],
        "protocols": ["ground_truth"],
    }
    return {**config, **changes}


def variants(manipulations, **changes):
    return resolve(study(manipulations, **changes)).manipulated


def test_a_manipulation_makes_one_variant_of_the_datasets_that_it_can_change():
    made = variants({"articles": {}, "mark": {"kind": "watermark"}})
    assert {name: found.datasets for name, found in made.items()} == {
        "articles": ("reviews",),
        "mark": ("textures",),
    }
    assert made["articles"].r == 0.5


def test_draws_differ_in_what_is_drawn_and_levels_of_a_draw_do_not():
    entry = {**BLUR, "radius": {"between": [80, 130]}, "sigma": {"levels": [2, 4]}, "draws": 3}
    made = variants({"blur": entry})
    assert list(made) == [f"blur-{draw}-sigma{sigma}" for draw in range(3) for sigma in (2, 4)]
    radii = {(found.draw, found.options["radius"]) for found in made.values()}
    assert len(radii) == 3, "one radius a draw"
    assert all(80 <= radius <= 130 for _, radius in radii)
    assert [(found.level, found.visibility) for found in made.values()] == [(1, 2.0), (2, 4.0)] * 3
    again = variants({"blur": {**entry, "draws": 4}})
    assert all(again[name] == found for name, found in made.items()), "an added draw changes no other"


def test_a_list_of_probabilities_makes_a_variant_of_each():
    made = variants({"blur": {**BLUR, "r": [0.5, 0.75, 1.0]}})
    assert {name: found.r for name, found in made.items()} == {"blur-r0.5": 0.5, "blur-r0.75": 0.75, "blur-r1": 1.0}


def test_draws_take_sets_of_classes_in_turn():
    pairs = [["disc", "triangle"], ["triangle", "disc"]]
    made = variants({"blur": {**BLUR, "classes": pairs, "draws": 3}})
    assert [found.classes for found in made.values()] == [pairs[0], pairs[1], pairs[0]]


def test_datasets_and_models_choose_among_variants():
    manipulations = {"articles": {}, "cn": {"kind": "articles-cn"}, "mark": {"kind": "watermark"}}
    chosen = study(
        manipulations,
        datasets={"reviews": {"variants": ["articles", "cn"]}, "textures": {}},
        models={"bilstm-zhou": {"variants": ["cn"]}, "average-tanh": {}, "resnet-small": {}},
    )
    cells = {(cell.dataset, cell.variant, cell.model) for cell in list_runs(resolve(chosen)).cells}
    assert cells == {
        ("reviews", "cn", "bilstm-zhou"),
        ("reviews", "articles", "average-tanh"),
        ("reviews", "cn", "average-tanh"),
        ("textures", "plain", "resnet-small"),
        ("textures", "mark", "resnet-small"),
    }


def test_only_what_is_manipulated_has_a_truth_and_only_what_is_plain_is_scored_otherwise():
    runs = list_runs(resolve(study({"articles": {}}, protocols=["ground_truth", "agreement"])))
    assert {cell.variant for cell in runs.scored["ground_truth"]} == {"articles"}
    assert {cell.variant for cell in runs.scored["agreement"]} == {"plain"}


def test_measures_of_texts_do_not_explain_images():
    runs = list_runs(resolve(study({"articles": {}})))
    assert runs.measures["resnet-small"] == ["gradient-channels", "random"]
    assert runs.measures["bilstm-zhou"] == ["attention", "gradient-channels", "random"]
    assert any("reads images" in excluded.reason for excluded in runs.excluded)


def test_inserted_words_are_distinct():
    made = resolve(study({"articles": {}, "plant": {"kind": "planted", "tokens": ["left", "right"]}}))
    assert made.inserted_words("reviews") == ["a", "left", "right", "the"]
    assert made.inserted_words("textures") == []


@pytest.mark.parametrize(
    ("manipulations", "sentence"),
    [
        ({"articels": {}}, r"`manipulations.articels`: There is no manipulation 'articels'; did you mean 'articles'\?"),
        ({"articles": {"r": 1.5}}, r"`manipulations.articles.r` is 1.5: it must be a probability"),
        ({"articles": {"matrix": [[0.5, 0.4], [0, 1]]}}, "rows are probabilities that sum to 1"),
        ({"articles": {"datasets": ["textures"]}}, "'textures' consists of images, which 'articles' cannot change"),
        (
            {"articles": {"datasets": ["review"]}},
            r"names 'review', which is not a dataset of the study; did you mean 'reviews'\?",
        ),
        ({"b": {**BLUR, "radius": {"betwen": [1, 2]}}}, r"write a value, {between: \[low, high\]} or {levels"),
        ({"b": {**BLUR, "radius": {"between": [2, 1]}}}, r"write a value, {between"),
        ({"b": {**BLUR, "radus": 3}}, r"`manipulations.b.radus` is not a known key; did you mean 'radius'\?"),
        ({"b": {**BLUR, "radius": "wide"}}, r"`manipulations.b.radius` is 'wide'"),
        ({"articles": {}, "plain": {"kind": "articles"}}, "'plain' is reserved"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(manipulations, sentence):
    with pytest.raises(PlumblineError, match=sentence):
        resolve(study(manipulations))


def test_an_unknown_variant_is_refused():
    with pytest.raises(
        PlumblineError,
        match=(
            r"`datasets.reviews.variants` names 'article', which is not defined in the study; did you mean 'articles'\?"
        ),
    ):
        resolve(study({"articles": {}}, datasets={"reviews": {"variants": ["article"]}, "textures": {}}))


def test_a_manipulation_without_a_model_is_refused():
    unused = study({"articles": {}}, datasets={"reviews": {"variants": ["plain"]}, "textures": {}})
    with pytest.raises(PlumblineError, match=r"`manipulations.articles`: no model is trained on it; add it to"):
        list_runs(resolve(unused))


def test_a_protocol_with_nothing_to_score_is_refused():
    nothing = study({})
    with pytest.raises(PlumblineError, match="no model is trained on a manipulated dataset"):
        list_runs(resolve(nothing))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"manipulations": {"b": {**BLUR, "sigma": -2}}}, r"`manipulations.b.sigma` is -2; it must be from 0 to 224\."),
        (
            {"manipulations": {"b": {"kind": "striped-noise", "probability": {"levels": [0.1, 7]}}}},
            r"`manipulations.b.probability` is 7; it must be from 0 to 1\.",
        ),
        (
            {"models": {"resnet-small": {}, "rl": {"kind": "rationale-rl", "rate": 5}}},
            r"`models.rl.rate` is 5; it must be from 0.0001 to 1\.",
        ),
        (
            {"datasets": {"reviews": {}, "textures": {"side": 0}}},
            r"`datasets.textures.side` is 0; it must be 32 or more\.",
        ),
        (
            {"measures": {"random": {}, "lime-superpixels": {"samples": 0}}},
            r"`measures.lime-superpixels.samples` is 0; it must be 1 or more\.",
        ),
    ],
)
def test_an_option_beyond_its_limits_is_refused(changes, sentence):
    with pytest.raises(PlumblineError, match=sentence):
        resolve(study({"articles": {}, "mark": {"kind": "watermark"}}, **changes) if "manipulations" not in changes
                else study(**changes))  # fmt: skip


def test_a_protocol_that_reads_one_measure_needs_it():
    selecting = {"rl": {"kind": "rationale-rl"}, "resnet-small": {}}
    lacking = study({"articles": {}}, models=selecting, measures=["random"], protocols=["rationales"])
    with pytest.raises(PlumblineError, match="protocol 'rationales' reads measure 'selection', which does not explain"):
        list_runs(resolve(lacking))
