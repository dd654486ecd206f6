"""The explained output, and contrastive explanations (`function: difference`) by every measure that has the option."""

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from torch import nn

from plumbline.attribution.deep_lift import deep_lift, deep_shap, partners
from plumbline.attribution.explained_output import ExplainedOutput, Function
from plumbline.attribution.grad_cam import grad_cam, map_weights
from plumbline.attribution.gradient import gradient
from plumbline.attribution.importances import Importances
from plumbline.attribution.inputs import baseline_vectors, forward_vectors, input_vectors
from plumbline.attribution.occlusion import occlusion
from plumbline.attribution.path import integrated_gradient_pad
from plumbline.conformance import DIMENSIONS, WORDS, example_images, example_instances, example_model, whole_batch
from plumbline.conformance.examples import SIDE, example_options
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.block import build_model
from plumbline.models.classifier import Output
from plumbline.models.evaluator import Evaluator
from plumbline.models.images import LinearPixels, ResNet
from plumbline.registry import Registry, load

REGISTRY = Registry()
CONTRASTIVE = [declaration for declaration in REGISTRY.all("measure") if "function" in declaration.options]
TEXTS = example_instances()
# Five classes, of which three can be the answer.
PAIRS = replace(
    example_instances(paired=True), answers=[np.array([i % 2, 2, 3 + i % 2], dtype=np.int32) for i in range(12)]
)
FEW = {"samples": 20, "steps": 6, "tolerance": 0.0}
# Measures that are linear in the explained output; Captum's with their method.
LINEAR = [
    *("gradient-attached", "input-x-gradient", "integrated-gradient", "integrated-gradient-published"),
    *("integrated-gradient-pad", "grad-shap", "grad-x-diff", "deep-lift", "deep-shap", "lime", "lime-published"),
    *("occlusion", "captum IntegratedGradients", "captum DeepLift", "captum FeatureAblation"),
]
# Those that also need attention over words.
ATTENTIVE = ["attention-x-gradient", "gradient", *LINEAR]
CASES = [("bilstm-tanh", False), ("transformer-tanh", False), ("roberta", False), ("bilstm-tanh", True)]


def run(measure: str, evaluator: Evaluator, instances: Instances, **options: Any) -> Importances:
    """A registered measure with few samples and signed scores."""
    name, *method = measure.split()
    declaration = REGISTRY.get("measure", name)
    usual = {"sign": "signed", **FEW, "method": "".join(method)}
    usual = {key: usual.get(key, default) for key, default in declaration.defaults.items()}
    return load(declaration.pointer)(evaluator, instances, **usual | options)


def make_evaluator(name: str, paired: bool = False, budget: int = 10_000) -> Evaluator:
    """A model of three classes, or five with second texts, in double precision, all of which it predicts now and then:
    the logits of a class are 0 on average."""
    declaration = REGISTRY.get("model", name)
    if paired:
        model = example_model(declaration, paired=True)
    else:
        torch.manual_seed(0)
        embedding = None if declaration.reads == "subwords" else torch.randn(WORDS, DIMENSIONS)
        model = build_model(declaration.pointer, example_options(declaration), embedding, 3)
    model = model.double().eval().requires_grad_(False)
    *_, last = [part for part in model.modules() if isinstance(part, nn.Linear)]
    assert last.out_features == (5 if paired else 3)
    last.weight *= 4
    last.bias -= model(whole_batch(replace(PAIRS, answers=None) if paired else TEXTS)).logits.mean(0)
    return Evaluator(model, 0, budget)


def runners_up(evaluator: Evaluator, instances: Instances, classes: np.ndarray) -> np.ndarray:
    """The most probable class of each text other than the explained one."""
    probabilities = evaluator.probabilities(instances).copy()
    probabilities[np.arange(len(classes)), classes] = -1
    return probabilities.argmax(1)


def tokens(found: Importances) -> list[np.ndarray]:
    """The scores of all tokens of each text."""
    columns = [column for column in (found.scores, found.pair, found.specials) if column is not None]
    return [np.concatenate(row) for row in zip(*columns, strict=True)]


def assert_same(found: list[np.ndarray], expected: list[np.ndarray], **tolerance: float) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


# The output


INF = float("inf")
LOGITS = torch.tensor([[1.0, 4.0, 2.0], [0.0, -INF, 3.0]])


def test_values_by_hand():
    labels = np.array([2, 0], dtype=np.int32)
    output = ExplainedOutput.of("predicted", "difference", LOGITS, labels)
    assert (output.classes.tolist(), output.against.tolist()) == ([1, 2], [2, 0])
    assert output.value(LOGITS).tolist() == [2, 3]
    assert ExplainedOutput.of("gold", "difference", LOGITS, labels).value(LOGITS).tolist() == [2 - 4, 0 - 3]
    assert ExplainedOutput.of(0, "difference", LOGITS, labels).value(LOGITS).tolist() == [1 - 4, 0 - 3]
    assert ExplainedOutput.of("predicted", "logit", LOGITS, labels).value(LOGITS).tolist() == [4, 3]
    probability = ExplainedOutput.of("gold", "probability", LOGITS, labels)
    expected = [1 / (np.exp(-1) + np.exp(2) + 1), 1 / (1 + np.exp(3))]
    np.testing.assert_allclose(probability.value(LOGITS), expected, rtol=1e-6)
    assert probability.against is None


def test_classes_stay_when_logits_change_and_rows_can_be_taken():
    output = ExplainedOutput.of("predicted", "difference", LOGITS, np.zeros(2))
    copies = torch.stack([LOGITS, torch.tensor([[9.0, 1.0, -5.0], [7.0, -INF, 1.0]])])
    assert output.value(copies).tolist() == [[2, 3], [6, -6]]
    assert output.take(torch.tensor([1, 1, 0])).value(copies[1][[1, 1, 0]]).tolist() == [-6, -6, 6]
    assert ExplainedOutput(output.classes, "logit").take(torch.tensor([1])).value(copies[1][1:]).tolist() == [1]


@pytest.mark.parametrize("function", ["logit", "difference"])
def test_a_class_that_cannot_be_the_answer_has_neither_value_nor_gradient(function):
    logits = LOGITS.clone().requires_grad_()
    values = ExplainedOutput.of(1, function, LOGITS, np.zeros(2)).value(logits)
    assert values[1] == 0 and values[0] != 0
    (slopes,) = torch.autograd.grad(values.sum(), logits)
    assert slopes.tolist() == [[0, 1, -1 if function == "difference" else 0], [0, 0, 0]]


def test_a_single_admissible_class_cannot_be_compared():
    with pytest.raises(PlumblineError, match=r"only one admissible class.*use 'logit' or 'probability'"):
        ExplainedOutput.of("predicted", "difference", torch.tensor([[1.0, 2.0], [1.0, -INF]]), np.zeros(2))
    assert ExplainedOutput.of(1, "difference", torch.tensor([[1.0, -INF]]), np.zeros(1)).against.tolist() == [0]


def test_every_measure_that_names_a_function_offers_all():
    assert len(CONTRASTIVE) > 20
    for declaration in CONTRASTIVE:
        assert get_args(declaration.options["function"].type) == get_args(Function), declaration.name


# By hand


class Votes(nn.Module):
    """A word's vector holds what it adds to the three logits."""

    def __init__(self, vectors):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(torch.cat([torch.zeros(8, 3), torch.tensor(vectors)]))

    def forward(self, batch, embedded=None):
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        return Output((embedded * batch.attendable[..., None]).sum(1))


ADDITIVE = ["input-x-gradient", "integrated-gradient", "integrated-gradient-pad", "grad-shap", "grad-x-diff"]
ADDITIVE += ["deep-lift", "deep-shap", "occlusion", "captum IntegratedGradients", "captum FeatureAblation"]


@pytest.mark.parametrize("measure", ADDITIVE)
@pytest.mark.parametrize("shared", [0.0, 5.0])
def test_votes_for_the_class_minus_votes_for_the_runner_up(measure, shared):
    """The logits are 3, 2 and 1.5. Without the second word, class 2 is the runner-up, but the contrast remains class
    1. What the first word adds to all classes is no part of it."""
    model = Votes([[3.0 + shared, shared, shared], [0.0, 2.0, 0.0], [0.0, 0.0, 1.5]])
    ids, free = np.array([2, 8, 9, 10, 3], dtype=np.int32), np.array([False, True, True, True, False])
    text = Instances(np.array(["test"]), np.array([0]), np.array([0], dtype=np.int32), [ids], [free])
    found = run(measure, Evaluator(model.requires_grad_(False), 0), text, function="difference")
    np.testing.assert_allclose(found.scores[0], [3, -2, 0], atol=1e-5)
    assert found.target.tolist() == [0]
    logit = run(measure, Evaluator(model, 0), text, function="logit")
    np.testing.assert_allclose(logit.scores[0], [3 + shared, 0, 0], atol=1e-5)


# Identities


@pytest.mark.parametrize(
    ("name", "paired", "measure"),
    [
        *(("bilstm-tanh", paired, measure) for paired in (False, True) for measure in ATTENTIVE),
        *(("roberta", False, measure) for measure in LINEAR),
    ],
)
@pytest.mark.parametrize("target", ["predicted", 0])
def test_the_explanation_of_a_difference_is_the_difference_of_explanations(name, paired, measure, target):
    evaluator, instances = make_evaluator(name, paired), PAIRS if paired else TEXTS
    found = run(measure, evaluator, instances, function="difference", target=target)
    against = runners_up(evaluator, instances, found.target)
    assert len(set(against)) > 1 and (found.target != against).all()
    of_class = [
        tokens(run(measure, evaluator, instances, function="logit", target=class_))
        for class_ in range(5 if paired else 3)
    ]
    expected = [of_class[c][i] - of_class[d][i] for i, (c, d) in enumerate(zip(found.target, against, strict=True))]
    # An inadmissible class has no logit, so no difference.
    if paired and target == 0:
        expected = [row if 0 in a else 0 * row for row, a in zip(expected, instances.answers, strict=True)]
    largest = max(np.abs(row).max() for row in expected)
    assert largest > 1e-3
    assert_same(tokens(found), expected, atol=1e-5 * max(1, largest))


@pytest.mark.parametrize("measure", [*ATTENTIVE, "deep-shap-published"])
def test_with_two_classes_it_is_twice_the_logit(measure):
    """A single output z is the logits -z/2 and z/2."""
    model = example_model(REGISTRY.get("model", "bilstm-tanh")).double().requires_grad_(False)
    logit, difference = (
        run(measure, Evaluator(model, 0), TEXTS, function=function) for function in ("logit", "difference")
    )
    assert_same(tokens(difference), [2 * row for row in tokens(logit)], rtol=1e-4, atol=1e-6)
    if logit.residual is not None:
        np.testing.assert_allclose(difference.residual, 2 * logit.residual, rtol=1e-4, atol=1e-6)


def test_two_classes_with_a_logit_each_have_opposite_explanations():
    model = example_model(REGISTRY.get("model", "roberta")).double().requires_grad_(False)
    one, zero = (
        tokens(run("integrated-gradient-pad", Evaluator(model, 0), TEXTS, function="difference", target=class_))
        for class_ in (1, 0)
    )
    assert_same(one, [-row for row in zero], rtol=1e-5, atol=1e-8)


def test_published_deep_shap_explains_the_difference_of_the_partner():
    evaluator = make_evaluator("bilstm-tanh")
    options = {"rule": "gradient", "sign": "signed"}
    found = deep_shap(evaluator, TEXTS, function="difference", mixed="texts-and-labels", **options)
    classes, against = found.target, runners_up(evaluator, TEXTS, found.target)
    logits = [{**options, "function": "logit", "target": class_} for class_ in range(3)]
    own = [deep_lift(evaluator, TEXTS, **chosen).scores for chosen in logits]
    means = [deep_shap(evaluator, TEXTS, mixed="texts", **chosen).scores for chosen in logits]
    pairs = partners(TEXTS)
    assert (against != against[pairs]).any()
    for i, j in enumerate(pairs):
        mixed = [2 * means[class_][i] - own[class_][i] for class_ in range(3)]
        expected = own[classes[i]][i] - own[against[i]][i] + mixed[classes[j]] - mixed[against[j]]
        np.testing.assert_allclose(found.scores[i], expected / 2, atol=1e-6)


# Sums and Captum


@pytest.mark.parametrize(("name", "paired"), CASES)
def test_integrated_gradients_of_a_difference_are_captums_and_sum_to_its_change(name, paired):
    evaluator, instances = make_evaluator(name, paired), (PAIRS if paired else TEXTS).take([1, 5, 8])
    options = {"function": "difference", "target": "gold", "sign": "signed", "steps": 50, "tolerance": 0}
    found = integrated_gradient_pad(evaluator, instances, **options)
    against = runners_up(evaluator, instances, instances.label)
    for i, (c, d) in enumerate(zip(instances.label, against, strict=True)):
        batch = whole_batch(instances.take([i]))
        vectors = input_vectors(evaluator.model, batch)
        reference = baseline_vectors(evaluator.model, batch, "pad")

        def difference(rows, batch=batch, c=int(c), d=int(d)):
            logits = forward_vectors(evaluator.model, batch.repeat(len(rows)), rows).logits
            return logits[:, c] - logits[:, d]

        expected = IntegratedGradients(difference).attribute(
            vectors, reference, n_steps=50, method="gausslegendre"
        )  # fmt: skip
        scores = expected.sum(-1)[0].numpy()
        first, free = scores[: len(instances.ids[i])], instances.maskable[i]
        np.testing.assert_allclose(found.scores[i], first[free], atol=1e-6, rtol=1e-5)
        np.testing.assert_allclose(found.specials[i], first[~free], atol=1e-6, rtol=1e-5)
        if paired:
            np.testing.assert_allclose(found.pair[i], scores[len(first) :], atol=1e-6, rtol=1e-5)
        change = float(difference(vectors) - difference(reference))
        assert abs(change) > 1e-3
        total = tokens(found)[i].sum(dtype=np.float64)
        assert total - change == pytest.approx(found.residual[i], abs=1e-5)
        assert abs(found.residual[i]) < 1e-2


# Masked classes, batches, ties


@pytest.mark.parametrize("measure", [*ATTENTIVE, "deep-shap-published"])
def test_classes_that_cannot_be_the_answer_have_no_scores(measure):
    found = run(measure, make_evaluator("bilstm-tanh", paired=True), PAIRS, function="difference", target=4)
    mixes = measure == "deep-shap-published"
    for i, scores in enumerate(tokens(found)):
        moves = 4 in PAIRS.answers[i] or (mixes and 4 in PAIRS.answers[partners(PAIRS)[i]])
        assert np.isfinite(scores).all() and np.any(scores != 0) == moves
    if found.residual is not None:
        assert np.isfinite(found.residual).all()


@pytest.mark.parametrize("measure", ATTENTIVE)
@pytest.mark.parametrize(("name", "paired"), [("transformer-tanh", False), ("bilstm-tanh", True)])
def test_scores_do_not_depend_on_batch_padding_or_order(measure, name, paired):
    instances = PAIRS if paired else TEXTS
    order = np.random.default_rng(3).permutation(len(instances))
    whole = tokens(run(measure, make_evaluator(name, paired), instances, function="difference"))
    cut = tokens(run(measure, make_evaluator(name, paired, budget=60), instances.take(order), function="difference"))
    assert_same(cut, [whole[i] for i in order], atol=1e-6, rtol=1e-6)


def test_the_rounding_of_both_logits_makes_ties(monkeypatch):
    resolutions = []
    monkeypatch.setattr(
        "plumbline.attribution.occlusion.merge_rounding_ties",
        lambda scores, resolution: resolutions.append(set(resolution.tolist())) or scores,
    )
    for function in ("logit", "difference"):
        occlusion(make_evaluator("bilstm-tanh"), TEXTS.take([0]), function=function)
    assert resolutions == [{1e-6}, {2e-6}]


# Images


def linear_pixels() -> Evaluator:
    torch.manual_seed(0)
    return Evaluator(LinearPixels(None, 3, side=SIDE).double().requires_grad_(False), 0)


@pytest.mark.parametrize("measure", ["gradient-channels", "smooth-grad", "smooth-grad-abs"])
def test_the_gradient_of_a_linear_model_is_the_difference_of_its_weights(measure):
    evaluator, images = linear_pixels(), example_images(6)
    found = run(measure, evaluator, images, function="difference")
    against, weights = runners_up(evaluator, images, found.target), evaluator.model.linear.weight
    for scores, c, d in zip(found.scores, found.target, against, strict=True):
        expected = (weights[c] - weights[d]).view(-1, 3).abs().sum(1)
        np.testing.assert_allclose(scores, expected, rtol=1e-5)


def test_expected_gradients_of_a_linear_model_have_the_difference_of_its_weights():
    """Of two images: the share of the samples whose baseline is the other one, times the difference from it."""
    evaluator, images = linear_pixels(), example_images(2)
    found = run("expected-gradient", evaluator, images, function="difference")
    against, weights = runners_up(evaluator, images, found.target), evaluator.model.linear.weight
    first, second = evaluator.model.embedding(whole_batch(images).ids)
    for i, (c, d) in enumerate(zip(found.target, against, strict=True)):
        others = (images.generator(i, evaluator.seed).integers(2, size=FEW["samples"]) != i).mean()
        expected = others * ((weights[c] - weights[d]).view(-1, 3) * (first - second)).abs().sum(1)
        np.testing.assert_allclose(found.scores[i], expected, rtol=1e-5)


@pytest.mark.parametrize("measure", ["lime-superpixels", "occlusion-patch"])
def test_perturbed_images_have_the_difference_of_explanations(measure):
    evaluator, images = linear_pixels(), example_images(4)
    found = run(measure, evaluator, images, function="difference")
    against = runners_up(evaluator, images, found.target)
    of_class = [run(measure, evaluator, images, function="logit", target=class_).scores for class_ in range(3)]
    expected = [of_class[c][i] - of_class[d][i] for i, (c, d) in enumerate(zip(found.target, against, strict=True))]
    assert_same(found.scores, expected, rtol=1e-4, atol=1e-6)


def test_grad_cam_of_a_difference_weighs_maps_by_both_classes():
    """Maps that support both classes alike count for nothing."""
    torch.manual_seed(0)
    model = ResNet(None, 3, stem="3x3", width=4, blocks="1-1-1-1").double().eval().requires_grad_(False)
    readout, logits = model.readout_weights, torch.tensor([[3.0, 1.0, 2.0], [0.0, 1.0, -1.0]], dtype=torch.float64)
    found = map_weights(readout, logits, ExplainedOutput.of("predicted", "difference", logits, np.zeros(2)), 16)
    torch.testing.assert_close(found, torch.stack([readout[0] - readout[2], readout[1] - readout[0]]) / 16)
    model.linear.weight[:] = model.linear.weight[0]
    images = example_images(2)
    for scores in grad_cam(Evaluator(model, 0), images, function="difference").scores:
        assert (scores == 0).all()


def test_gradients_of_differences_share_passes_with_others():
    evaluator = make_evaluator("bilstm-tanh")
    declared = REGISTRY.get("measure", "gradient").defaults
    requests = [declared | {"function": function} for function in ("probability", "difference", "logit")]
    together = gradient.together(evaluator, TEXTS, requests)
    for found, request in zip(together, requests, strict=True):
        assert_same(found.scores, gradient(evaluator, TEXTS, **request).scores, rtol=1e-6)
