"""The measures of Recursive ROAR against slow and obvious ones, Captum, scikit-learn and counts by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from sklearn.metrics import mutual_info_score

from plumbline.attribution.explained_output import ExplainedOutput
from plumbline.attribution.gradient import gradient
from plumbline.attribution.integrated_gradient import integrate_from_zero, integrated_gradient
from plumbline.attribution.mutual_information import mutual_information
from plumbline.attribution.random import random
from plumbline.attribution.run import _arithmetic_of
from plumbline.conformance import example_instances, example_model, reads_one_text, whole_batch
from plumbline.data.instances import Instances
from plumbline.data.vocabulary import MASK
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry, needed

REGISTRY = Registry()
INSTANCES, PAIRS = example_instances(14), example_instances(paired=True)
MODELS = [model.name for model in REGISTRY.all("model") if "gradient" in model.provides and reads_one_text(model)]
# Single texts and pairs, whose models have five classes of which all but two are barred.
CASES = [("bilstm-tanh", False), ("cnn-tanh", False), ("bag-of-words", False), ("bilstm-tanh", True)]


def make_evaluator(name, budget=10_000, seed=0, paired=False):
    """An evaluator in double precision, so that comparisons are sharp."""
    model = example_model(REGISTRY.get("model", name), seed, paired).double()
    return Evaluator(model.requires_grad_(False), seed, budget)


def alone(instances, i, times=1):
    """A batch of one text, repeated."""
    return whole_batch(instances.take([i] * times))


def assert_same(found, expected, **tolerance):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, **tolerance)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", ["predicted", "gold"])
def test_vocabulary_gradient_is_the_norm_over_the_whole_vocabulary(name, target):
    evaluator = make_evaluator(name)
    found = gradient(
        evaluator, INSTANCES, target=target, function="logit", attention="attached", reduction="vocabulary"
    )
    for i, free in enumerate(INSTANCES.maskable):
        batch = alone(INSTANCES, i)
        code = torch.nn.functional.one_hot(batch.ids, 40).double().requires_grad_()
        logits = evaluator.model(batch, code @ evaluator.model.embedding.weight).logits[0]
        chosen = logits.argmax() if target == "predicted" else INSTANCES.label[i]
        (gradients,) = torch.autograd.grad(logits[chosen], code)
        np.testing.assert_allclose(found.scores[i], gradients[0].norm(dim=-1).numpy()[free], rtol=1e-9, atol=1e-12)
        assert found.target[i] == chosen


def test_vocabulary_gradient_needs_no_attention_and_shares_passes():
    declaration = REGISTRY.get("measure", "gradient-vocabulary")
    options = {name: option.default for name, option in declaration.options.items()}
    assert needed(declaration, options) == {"gradient"} and declaration.cheap
    assert options["reduction"] == "vocabulary" and options["function"] == "logit"
    single = Evaluator(example_model(REGISTRY.get("model", "bilstm-tanh")), 0, 10_000)
    both = gradient.together(single, INSTANCES, [options, {**options, "reduction": "l2"}])
    sharp = gradient(make_evaluator("bilstm-tanh"), INSTANCES, **options).scores
    assert_same(both[0].scores, sharp, rtol=1e-4)
    assert_same(both[1].scores, gradient(single, INSTANCES, **{**options, "reduction": "l2"}).scores)


def captum(evaluator, instances, i, target, steps=50):
    """Captum's integrated gradients of one text, summed over dimensions; specials included."""
    embedded = evaluator.model.embedding(alone(instances, i).ids)

    def logits(rows):
        return evaluator.model(alone(instances, i, len(rows)), rows).logits

    attributed = IntegratedGradients(logits).attribute(
        embedded, torch.zeros_like(embedded), int(target), n_steps=steps, method="riemann_right"
    )
    return attributed.sum(-1)[0].numpy()


@pytest.mark.parametrize(("name", "paired"), CASES)
@pytest.mark.parametrize("target", ["predicted", "gold"])
def test_integrated_gradient_agrees_with_captum(name, paired, target):
    evaluator, instances = make_evaluator(name, paired=paired), PAIRS if paired else INSTANCES
    found = integrated_gradient(evaluator, instances, target=target, sign="signed")
    classes = evaluator.probabilities(instances).argmax(1) if target == "predicted" else instances.label
    assert found.target.tolist() == classes.tolist()
    expected = [captum(evaluator, instances, i, classes[i])[free] for i, free in enumerate(instances.maskable)]
    assert_same(found.scores, expected, rtol=1e-7, atol=1e-10)
    absolute = integrated_gradient(evaluator, instances, target=target).scores
    assert_same(absolute, [np.abs(scores) for scores in found.scores])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("function", ["logit", "probability"])
@pytest.mark.parametrize("weighting", ["correct", "published"])
def test_integrated_gradient_equals_one_pass_per_point(name, function, weighting):
    """`published` differentiates with respect to the vectors before they are scaled."""
    evaluator = make_evaluator(name)
    options = {"target": 1, "function": function, "steps": 7, "weighting": weighting, "sign": "signed", "tolerance": 0}
    found = integrated_gradient(evaluator, INSTANCES, **options).scores
    for i in (0, 5, 13):
        batch, free = alone(INSTANCES, i), INSTANCES.maskable[i]
        vectors = evaluator.model.embedding(batch.ids)
        mean = 0
        for step in range(1, 8):
            unscaled = vectors.clone().requires_grad_()
            scaled = step / 7 * unscaled
            if getattr(evaluator.model, "prompted", False):
                scaled = torch.where(batch.attendable[..., None], scaled, vectors)
            logits = evaluator.model(batch, scaled).logits[0]
            output = logits[1] if function == "logit" else logits.softmax(-1)[1]
            (gradients,) = torch.autograd.grad(output, unscaled if weighting == "published" else scaled)
            mean = mean + (gradients * vectors).sum(-1)[0] / 7
        np.testing.assert_allclose(found[i], mean.numpy()[free], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "paired"), [*CASES, ("transformer-tanh", False), ("gru-tanh", False)])
@pytest.mark.parametrize("function", ["logit", "probability"])
def test_contributions_of_all_tokens_sum_to_the_change_of_the_output(name, paired, function):
    """Σ_t of the integral is f(x) - f(0), which midpoints of many parts approximate."""
    evaluator, instances = make_evaluator(name, paired=paired), PAIRS if paired else INSTANCES
    batch, steps = whole_batch(instances), 100
    classes = torch.from_numpy(instances.label).long()
    points = [(i + 0.5) / steps for i in range(steps)]
    output = ExplainedOutput(classes, function)
    total = integrate_from_zero(evaluator.model, batch, output, points, [1 / steps] * steps).sum(1)
    embedded = evaluator.model.embedding(batch.ids)
    ends = [evaluator.model(batch, vectors).logits for vectors in (embedded, torch.zeros_like(embedded))]
    ends = [logits.softmax(-1) if function == "probability" else logits for logits in ends]
    change = (ends[0] - ends[1]).gather(1, classes[:, None]).squeeze(1)
    # The path of a transformer is rough near zero, where its norms divide by almost nothing; a CNN's has kinks.
    torch.testing.assert_close(total, change, atol=2e-2 if name.startswith("transformer") else 1e-3, rtol=0)


def test_points_at_the_middle_come_closer_than_those_at_the_end():
    evaluator, batch = make_evaluator("average-tanh"), whole_batch(INSTANCES)
    output = ExplainedOutput(torch.from_numpy(INSTANCES.label).long(), "logit")
    fine = [(i + 0.5) / 500 for i in range(500)]
    exact = integrate_from_zero(evaluator.model, batch, output, fine, [1 / 500] * 500).numpy()
    options = {"target": "gold", "sign": "signed"}
    off = {
        (rule, steps): max(
            np.abs(scores - row[: len(free)][free]).max()
            for scores, row, free in zip(
                integrated_gradient(evaluator, INSTANCES, rule=rule, steps=steps, **options).scores,
                exact,
                INSTANCES.maskable,
                strict=True,
            )
        )
        for rule, steps in (("right", 10), ("right", 50), ("midpoint", 10))
    }
    assert off["right", 50] < off["right", 10] / 4 and off["midpoint", 10] < off["right", 50]


def test_integrated_gradient_of_bag_of_words_in_closed_form():
    """z = w · mean(e) + b, logits ±z/2: the gradient is constant on the path, so a word has |w · e_t| / 2n.

    The published factor i/k has the mean (k + 1) / 2k.
    """
    evaluator = make_evaluator("bag-of-words")
    w = evaluator.model.head.linear.weight[0].numpy()
    vectors = evaluator.model.embedding.weight.numpy()
    expected = [
        np.abs(vectors[ids[free]] @ w) / (2 * free.sum())
        for ids, free in zip(INSTANCES.ids, INSTANCES.maskable, strict=True)
    ]
    assert_same(integrated_gradient(evaluator, INSTANCES).scores, expected, rtol=1e-9)
    published = integrated_gradient(evaluator, INSTANCES, weighting="published").scores
    assert_same(published, [scores * 51 / 100 for scores in expected], rtol=1e-9)
    declared = REGISTRY.get("measure", "integrated-gradient-published").options
    assert declared["weighting"].default == "published" and declared["steps"].default == 50


@pytest.mark.parametrize(("name", "paired"), [*CASES, ("transformer-tanh", False)])
@pytest.mark.parametrize("budget", [64, None])
def test_integrated_gradient_does_not_depend_on_the_budget(name, paired, budget):
    instances = PAIRS if paired else INSTANCES
    declaration = REGISTRY.get("model", name)

    def scores(budget, some):
        single = Evaluator(example_model(declaration, 0, paired).requires_grad_(False), 0, budget)
        return integrated_gradient(single, some, steps=8, target="gold").scores

    order = np.random.default_rng(3).permutation(len(instances))
    whole, cut = scores(10_000, instances), scores(budget, instances.take(order))
    assert_same(cut, [whole[i] for i in order], atol=1e-6)


@pytest.mark.parametrize("function", ["logit", "probability"])
@pytest.mark.parametrize("target", [0, 1, 4, "gold", "predicted"])
def test_scores_of_barred_classes_are_finite(function, target):
    """A class that cannot be the answer, or the probability of the only one that can, does not depend on the text."""
    evaluator = make_evaluator("bilstm-tanh", paired=True)
    found = integrated_gradient(evaluator, PAIRS, target=target, function=function, steps=3)
    for scores, answers, explained in zip(found.scores, PAIRS.answers, found.target, strict=True):
        moves = explained in answers and (function == "logit" or len(set(answers)) > 1)
        assert np.isfinite(scores).all() and (scores > 0).any() == moves


def test_integrated_gradient_continues_when_memory_runs_out():
    """Half the texts at a time after a pass that did not fit; what was counted is not counted twice."""
    expected = integrated_gradient(make_evaluator("average-tanh"), INSTANCES, steps=5).scores
    evaluator = make_evaluator("average-tanh", budget=200)
    forward, passes = evaluator.model.forward, []

    def short_of_memory(batch, embedded=None):
        passes.append(batch.ids.numel())
        if len(passes) == 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(batch, embedded)

    evaluator.model.forward = short_of_memory
    with pytest.warns(UserWarning, match="token budget halved to 100"):
        assert_same(integrated_gradient(evaluator, INSTANCES, steps=5).scores, expected, rtol=1e-9)
    assert max(passes[4:]) <= 100


@pytest.mark.parametrize(
    ("model", "functions", "device", "precision"),
    [
        ("bilstm-softmax", [integrated_gradient], "cuda", "tf32"),
        ("bilstm-softmax", [integrated_gradient], "cpu", "float32"),
        ("bilstm-softmax", [integrated_gradient, gradient], "cuda", "float32"),
        ("cnn-tanh", [integrated_gradient], "cuda", "float32"),
        ("bag-of-words", [integrated_gradient], "cuda", "float32"),
    ],
)
def test_the_precision_of_passes_depends_on_the_measures_and_the_model(model, functions, device, precision):
    evaluator = make_evaluator(model)
    evaluator.device = device
    with _arithmetic_of(evaluator, functions):
        assert evaluator.precision == precision
    assert evaluator.precision == "float32"


def test_steps_must_be_positive():
    with pytest.raises(PlumblineError, match="`steps` is 0; it must be 1 or more"):
        integrated_gradient(make_evaluator("bag-of-words"), INSTANCES, steps=0)


def documents(*texts, split="train"):
    """Instances of (label, word ids) between specials."""
    ids = [np.array([2, *words, 3], dtype=np.int32) for _, words in texts]
    free = [np.array([False, *[True] * len(words), False]) for _, words in texts]
    labels = np.array([label for label, _ in texts], dtype=np.int32)
    return Instances(np.array([split] * len(texts)), np.arange(len(texts)), labels, ids, free)


def test_mutual_information_of_four_texts_by_hand():
    """Texts ab, ac of class 0 and bc, cc of class 1, and abc of each class: three of a class, N = 6.

    a is in 3 of class 0 and 1 of class 1; b in 2 and 2, which is no information; c in 2 and 3.
    """
    a, b, c = 5, 6, 7
    found = mutual_information(None, documents((0, [a, b]), (0, [a, c]), (1, [b, c]), (1, [c, c])))
    log = np.log2
    of_a = 3 / 6 * log(6 * 3 / (4 * 3)) + 1 / 6 * log(6 * 1 / (4 * 3)) + 2 / 6 * log(6 * 2 / (2 * 3))
    of_c = 2 / 6 * log(6 * 2 / (5 * 3)) + 3 / 6 * log(6 * 3 / (5 * 3)) + 1 / 6 * log(6 * 1 / (1 * 3))
    assert found.target is None
    assert_same(found.scores, [[of_a, 0], [of_a, of_c], [0, of_c], [of_c, of_c]], atol=1e-7)
    assert of_a == pytest.approx(0.459148, abs=1e-6) and of_c == pytest.approx(0.190875, abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_mutual_information_agrees_with_scikit_learn(classes):
    draw = np.random.default_rng(classes)
    texts = [(int(draw.integers(classes)), draw.integers(5, 25, size=draw.integers(1, 30))) for _ in range(200)]
    instances = documents(*texts)
    found = mutual_information(None, instances)
    labels = np.array([*instances.label, *range(classes)])
    expected = {}
    for word in range(5, 25):
        present = np.array([*(word in words for _, words in texts), *[True] * classes])
        expected[word] = sum(
            (labels == y).mean() * mutual_info_score(present, labels == y) / np.log(2) for y in range(classes)
        )
    assert_same(found.scores, [[expected[w] for w in words] for _, words in texts], rtol=1e-5, atol=1e-8)


def test_mutual_information_is_that_of_training_texts_alone():
    """A word that no training text holds is in one text of each class; other splits and models change nothing."""
    training = documents((0, [5, 6]), (1, [6, 7]), (1, [7]))
    other = documents((1, [5, 30]), (0, [6, 7, 8]), split="test")
    keys = (np.concatenate([getattr(i, key) for i in (other, training)]) for key in ("split", "instance", "label"))
    both = Instances(*keys, other.ids + training.ids, other.maskable + training.maskable)
    alone = mutual_information(None, training).scores
    found = mutual_information(make_evaluator("bag-of-words"), both).scores
    assert_same(found[2:], alone)
    assert found[0][0] == alone[0][0] and found[1][0] == alone[0][1]
    assert found[0][1] == found[1][2] > 0
    with pytest.raises(
        PlumblineError, match=("estimated from training texts, but there are no texts of the split 'train'")
    ):
        mutual_information(None, other)


def test_mutual_information_of_one_class_or_of_words_in_every_text_is_zero():
    assert_same(mutual_information(None, documents((0, [5, 6]), (0, [5]))).scores, [[0, 0], [0]])
    assert mutual_information(None, documents((0, [5, 6]), (1, [5]))).scores[0][0] == 0
    numbered = documents((3, [5]), (35, [6]))
    assert_same(
        mutual_information(None, numbered).scores, mutual_information(None, documents((0, [5]), (1, [6]))).scores
    )


def test_random_does_not_depend_on_the_words():
    """Masking more words of a text, or explaining fewer texts, leaves the draws as they are."""
    evaluator = make_evaluator("bag-of-words")
    masked = replace(INSTANCES, ids=[np.full_like(ids, MASK) for ids in INSTANCES.ids])
    whole = random(evaluator, INSTANCES).scores
    assert_same(random(evaluator, masked).scores, whole)
    assert_same(random(make_evaluator("cnn-tanh"), INSTANCES.take([9, 2])).scores, [whole[9], whole[2]])
