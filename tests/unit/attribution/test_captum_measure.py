"""Captum's methods as measures: against plumbline's own, independence of the batch, a user's own methods, refusals."""

import random
import re
from dataclasses import replace
from inspect import signature
from pathlib import Path
from textwrap import dedent
from typing import Any

import captum.attr
import numpy as np
import pytest
import torch

from plumbline.attribution.captum_method import BATCHED
from plumbline.attribution.importances import Importances
from plumbline.config.external import METHODS, locate_files
from plumbline.config.resolve import resolve
from plumbline.conformance import WORDS, example_images, example_instances, example_model
from plumbline.conformance.measures import check_measure
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.bag_of_words import BagOfWords
from plumbline.models.classifier import Output
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry, load, needed

REGISTRY = Registry()
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "extending.md"
OWN = """
import torch
from captum.attr import Attribution, Saliency

class Noise(Attribution):
    def attribute(self, inputs, *, scale: float = 1.0):
        return inputs + scale * torch.randn_like(inputs)

class Loud(Saliency):
    def __init__(self, forward_func, volume=2.0):
        super().__init__(forward_func)
        self.volume = volume

    def attribute(self, inputs, louder=1.0):
        return self.volume * louder * super().attribute(inputs)

class Short(Attribution):
    def attribute(self, inputs):
        return inputs[:, 1:]

class Layered(Attribution):
    def __init__(self, forward_func, layer):
        super().__init__(forward_func)

    def attribute(self, inputs):
        return inputs

class Plain:
    pass
"""


class Sum(BagOfWords):
    """A linear model in which a zero vector removes a word."""

    def forward(self, batch, embedded=None):
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        return Output(self.head((embedded * batch.attendable[:, :, None]).sum(1)))


def evaluator_of(model: str, paired: bool = False, seed: int = 0, budget: int = 10_000) -> Evaluator:
    made = example_model(REGISTRY.get("model", model), paired=paired)
    return Evaluator(made.requires_grad_(False), seed, budget)


def run(measure: str, evaluator: Evaluator, instances: Instances, **options: Any) -> Importances:
    declaration = REGISTRY.get("measure", measure)
    usual = {name: option.default for name, option in declaration.options.items()}
    return load(declaration.pointer)(evaluator, instances, **usual | options)


def same(one: Importances, other: Importances, tolerance: float) -> None:
    for part in ("scores", "pair", "specials"):
        mine, theirs = getattr(one, part), getattr(other, part)
        if mine is not None and theirs is not None:
            for a, b in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(a, b, atol=tolerance, rtol=tolerance)
    assert np.concatenate(one.scores).std() > 1e-4, "scores must differ for the comparison to be informative"
    assert one.target.tolist() == other.target.tolist()


RIGHT = {"n_steps": 20, "method": "riemann_right"}
ALIKE = {
    "from zeros": (
        {
            "method": "IntegratedGradients",
            "arguments": RIGHT,
            "baseline": "zero",
            "function": "logit",
            "texts": "first",
        },
        "integrated-gradient",
        {"steps": 20},
    ),
    "from padding": (
        {"method": "IntegratedGradients", "arguments": {"n_steps": 20}},
        "integrated-gradient-pad",
        {"steps": 20},
    ),
    "of the gold class, signed": (
        {"method": "IntegratedGradients", "arguments": {"n_steps": 6}, "target": "gold", "sign": "signed"},
        "integrated-gradient-pad",
        {"steps": 6, "target": "gold", "sign": "signed"},
    ),
    "of words alone": (
        {"method": "IntegratedGradients", "arguments": {"n_steps": 6}, "specials": False},
        "integrated-gradient-pad",
        {"steps": 6, "specials": False},
    ),
    "times the input": ({"method": "InputXGradient", "function": "logit"}, "input-x-gradient", {}),
    "norm": ({"method": "Saliency", "reduction": "l2", "function": "logit"}, "gradient-norm", {}),
    "magnitudes": ({"method": "Saliency", "function": "logit"}, "gradient-channels", {}),
    "ablated": ({"method": "FeatureAblation"}, "occlusion", {}),
    "ablated, words of one text": (
        {"method": "FeatureAblation", "texts": "first", "specials": False, "sign": "signed"},
        "occlusion",
        {"texts": "first", "specials": False, "sign": "signed"},
    ),
    "windows of one word": ({"method": "Occlusion", "function": "logit"}, "occlusion", {"function": "logit"}),
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize(("model", "paired"), [("bilstm-tanh", False), ("bilstm-shared", True)])
def test_methods_agree_with_the_measures_of_the_same_equation(name, model, paired):
    settings, measure, options = ALIKE[name]
    instances = example_instances(paired=paired)
    found = run("captum", evaluator_of(model, paired), instances, **settings)
    same(found, run(measure, evaluator_of(model, paired), instances, **options), 1e-5)


def test_integrated_gradients_agree_on_transformers_and_on_images():
    settings = {"method": "IntegratedGradients", "arguments": {"n_steps": 6}}
    for model, instances in (("roberta", example_instances(paired=True)), ("resnet-small", example_images(2))):
        paired = instances.pair is not None
        found = run("captum", evaluator_of(model, paired), instances, **settings)
        own = run("integrated-gradient-pad", evaluator_of(model, paired), instances, steps=6, tolerance=0)
        same(found, own, 1e-5)


def test_ablation_is_leave_one_out_where_a_vector_of_zeros_is_no_word():
    torch.manual_seed(0)
    vectors = torch.randn(WORDS, 8)
    vectors[0] = 0
    instances = example_instances()
    model = Sum(vectors, 2).requires_grad_(False)
    settings = {"method": "FeatureAblation", "specials": False, "sign": "signed"}
    found = run("captum", Evaluator(model, 0, 10_000), instances, **settings)
    same(found, run("leave-one-out", Evaluator(model, 0, 10_000), instances, output="predicted", sign="signed"), 1e-6)


@pytest.mark.parametrize("method", ["ShapleyValueSampling", "KernelShap", "IntegratedGradients", "DeepLift"])
def test_methods_that_add_up_agree_on_a_linear_model(method):
    settings = {"function": "logit", "sign": "signed", "baseline": "zero", "specials": False}
    instances = example_instances(6)
    samples = {"arguments": {"n_samples": 60}} if "n_samples" in METHODS[method] else {}
    found = run("captum", evaluator_of("bag-of-words"), instances, method=method, **settings, **samples)
    same(found, run("captum", evaluator_of("bag-of-words"), instances, method="FeatureAblation", **settings), 2e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("model", "paired"), [("average-tanh", False), ("roberta", True)])
def test_scores_do_not_depend_on_batch_padding_and_order(method, model, paired):
    instances = example_instances(6, paired=paired)
    settings = {"method": method, "arguments": {"n_samples": 6} if "n_samples" in METHODS[method] else {}}
    whole = run("captum", evaluator_of(model, paired), instances, **settings)
    turned = instances.take(np.arange(len(instances))[::-1])
    longest = int((instances.lengths + (np.array([len(row) for row in instances.pair]) if paired else 0)).max())
    small = run("captum", evaluator_of(model, paired, budget=longest), turned, **settings)
    for one, other in zip(whole.scores, reversed(small.scores), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_samples_depend_on_the_seed_and_the_instance_and_global_states_are_restored():
    instances = example_instances(4)
    settings = {"method": "ShapleyValueSampling", "arguments": {"n_samples": 2}}
    states = np.random.get_state()[1].copy(), random.getstate()
    found = [run("captum", evaluator_of("average-tanh", seed=seed), instances, **settings).scores for seed in (0, 0, 1)]
    assert np.array_equal(np.random.get_state()[1], states[0]) and random.getstate() == states[1]
    assert all(np.array_equal(a, b) for a, b in zip(found[0], found[1], strict=True))
    assert any(not np.allclose(a, b) for a, b in zip(found[0], found[2], strict=True))


def test_methods_conform_on_every_model():
    declaration = REGISTRY.get("measure", "captum")
    method = replace(declaration.options["method"], default="InputXGradient")
    declared = replace(declaration, options={**declaration.options, "method": method})
    messages = [str(sentence) for sentence in check_measure(declared, REGISTRY)]
    assert len(messages) == 1 and messages[0].endswith("models"), messages


def test_windows_are_counted_in_words():
    instances = example_instances(4)
    narrow, wide = (
        run("captum", evaluator_of("average-tanh"), instances, method="Occlusion", arguments=arguments, sign="signed")
        for arguments in ({}, {"sliding_window_shapes": 2})
    )
    assert not np.allclose(narrow.scores[3], wide.scores[3])
    assert [len(row) for row in wide.scores] == [int(free.sum()) for free in instances.maskable]


def test_known_methods_and_arguments_are_captums_own():
    assert {*METHODS} <= {*captum.attr.__all__} and {*METHODS} > BATCHED
    for name, arguments in METHODS.items():
        kind = getattr(captum.attr, name)
        assert {*arguments} <= {*signature(kind).parameters, *signature(kind.attribute).parameters}
        gradient = issubclass(kind, captum.attr.GradientAttribution)
        assert gradient == (needed(REGISTRY.get("measure", "captum"), {"method": name}) == {"gradient"})


# A user's own methods.


@pytest.fixture
def own(tmp_path):
    (tmp_path / "my_methods.py").write_text(OWN)
    return f"{tmp_path / 'my_methods.py'}:"


def test_own_methods_explain_texts_one_by_one(own):
    instances = example_instances(5)
    loud = {"method": own + "Loud", "arguments": {"louder": 3, "volume": 5}}
    found = run("captum", evaluator_of("average-tanh"), instances, **loud)
    plain = run("captum", evaluator_of("average-tanh"), instances, method="Saliency")
    for one, other in zip(found.scores, plain.scores, strict=True):
        np.testing.assert_allclose(one, 15 * other, rtol=1e-5)
    noise = {"method": own + "Noise", "arguments": {"scale": 2.0}}
    first = run("captum", evaluator_of("average-tanh"), instances, **noise)
    again = run("captum", evaluator_of("average-tanh", budget=20), instances.take([4, 2]), **noise)
    assert np.array_equal(first.scores[4], again.scores[0]) and np.array_equal(first.scores[2], again.scores[1])


def test_the_method_of_the_page_works(tmp_path):
    (found,) = re.findall(r"    # my_file.py\n(.*?)\n\n[^ \n]", PAGE.read_text(encoding="utf-8"), re.S)
    (tmp_path / "my_file.py").write_text(dedent(found))
    settings = {"method": f"{tmp_path / 'my_file.py'}:MyAttribution", "baseline": "zero", "sign": "signed"}
    once, twice = (
        run(
            "captum",
            evaluator_of("average-tanh"),
            example_instances(3),
            **settings,
            arguments={"strength": strength},
        )
        for strength in (1.0, 2.0)
    )
    assert np.abs(once.scores[2]).min() > 0
    np.testing.assert_allclose(2 * once.scores[2], twice.scores[2], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("Plain", {}, r"'Plain' of .* is not a subclass of captum.attr.Attribution with a method `attribute`\."),
        ("Gone", {}, r"'Gone' cannot be imported from .*my_methods.py"),
        ("Loud", {"loudr": 1}, r"`arguments` has 'loudr', which 'Loud' does not take; did you mean 'louder'\?"),
        ("Loud", {"inputs": 1}, r"`arguments` has 'inputs', which 'Loud' does not take"),
        ("Layered", {}, r"'Layered' needs the argument 'layer'; add it to `arguments`\."),
        ("Short", {}, r"'Short' gave attributions of shape .* the shapes must be equal\."),
    ],
)
def test_invalid_methods_of_a_user_are_refused_by_the_job(own, name, arguments, message):
    with pytest.raises(PlumblineError, match=message):
        run("captum", evaluator_of("average-tanh"), example_instances(2), method=own + name, arguments=arguments)


# The config.


def study(tmp_path, **entry: Any) -> dict[str, Any]:
    (tmp_path / "my_methods.py").write_text(OWN)
    config = {"datasets": ["sst"], "models": ["bilstm-tanh"], "measures": {"mine": {"kind": "captum", **entry}}}
    return locate_files(config, [tmp_path])


def test_methods_are_found_by_name_by_path_and_in_files(tmp_path):
    file = tmp_path / "my_methods.py"
    for method, pointer in (
        ("Saliency", "Saliency"),
        ("captum.attr.Saliency", "Saliency"),
        ("my_methods.Loud", f"{file}:Loud"),
        (f"{file}:Loud", f"{file}:Loud"),
        ("captum.attr._core.lrp.LRP", "captum.attr._core.lrp:LRP"),
    ):
        options = resolve(study(tmp_path, method=method)).options["measure", "mine"]
        place, _, name = options["method"].rpartition(":")
        wanted, _, called = pointer.rpartition(":")
        assert name == called and (place == wanted or (tmp_path / "my_methods.py").samefile(place)), method


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, r"`measures.mine.method` is missing; measure 'captum' needs it\."),
        ({"method": "IntegratedGradient"}, r"`measures.mine.method` .*did you mean 'IntegratedGradients'\?"),
        ({"method": "captum.attr.Salience"}, r"'Salience', .*did you mean 'Saliency'\?"),
        ({"method": "LayerIntegratedGradients"}, r"use 'IntegratedGradients', which attributes to the input\."),
        ({"method": "Lime", "arguments": {"samples": 3}}, r"'samples', which 'Lime' does not .*'n_samples'\?"),
        (
            {"method": "Saliency", "arguments": {"target": 3}},
            r"'target', which 'Saliency' does not take; choose from: abs",
        ),
        ({"method": "FeatureAblation", "arguments": {"x": 3}}, r"'FeatureAblation' does not take; none is available"),
        ({"method": "no_module.Mine"}, r"there is no module 'no_module', and no file 'no_module.py'"),
        ({"method": "my_methods.Lowd"}, r"has no class 'Lowd'; did you mean 'Loud'\?"),
        ({"method": "gone.py:Loud"}, r"there is no file '.*gone.py'\."),
        ({"method": "Saliency", "reduction": "max"}, r"`measures.mine.reduction` is 'max'; .*sum"),
    ],
)
def test_faults_of_the_config_are_one_sentence(tmp_path, entry, message):
    with pytest.raises(PlumblineError, match=message) as caught:
        resolve(study(tmp_path, **entry))
    assert "\n" not in str(caught.value)
