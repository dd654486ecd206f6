"""Measures against closed forms, slow loops and planted features."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from plumbline.attribution.attention import attention
from plumbline.attribution.gradient import gradient
from plumbline.attribution.leave_one_out import (
    RESOLUTION,
    all_but_one,
    leave_one_out,
    merge_rounding_ties,
    rounding_error,
)
from plumbline.attribution.random import random
from plumbline.conformance import example_instances, example_model, reads_one_text
from plumbline.data.instances import Instances, Texts
from plumbline.errors import PlumblineError
from plumbline.models.batch import collate
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry

REGISTRY = Registry()
INSTANCES = example_instances(14)
MODELS = [model.name for model in REGISTRY.all("model") if reads_one_text(model)]
# Constant attention has nothing to detach.
ATTENTIVE = [
    model.name
    for model in map(partial(REGISTRY.get, "model"), MODELS)
    if {"attention", "heads"} & set(model.provides) and not model.name.endswith("-uniform")
]
MEASURES = {
    "attention": (attention, {}),
    "gradient": (gradient, {}),
    "gradient-attached": (gradient, {"attention": "attached"}),
    "input-x-gradient": (gradient, {"attention": "attached", "function": "logit"}),
    "gradient-norm": (gradient, {"attention": "attached", "function": "logit", "reduction": "l2"}),
    "leave-one-out": (leave_one_out, {}),
    "random": (random, {}),
}


def make_evaluator(name, budget=10_000, seed=0):
    return Evaluator(example_model(REGISTRY.get("model", name), seed), seed, budget)


def test_bag_of_words_in_closed_form():
    """z = w · mean(e) + b, logits ±z/2: a word's input x gradient is w · e_t / 2n, its leave-one-out follows from z."""
    evaluator = make_evaluator("bag-of-words")
    w, b = (p.detach().numpy() for p in evaluator.model.head.linear.parameters())
    vectors = evaluator.model.embedding.weight.detach().numpy()
    products = gradient(evaluator, INSTANCES, attention="attached", function="logit").scores
    deletions = leave_one_out(evaluator, INSTANCES).scores
    for i, (ids, words) in enumerate(zip(INSTANCES.ids, INSTANCES.maskable, strict=True)):
        shares = vectors[ids[words]] @ w[0]
        n = len(shares)
        np.testing.assert_allclose(products[i], np.abs(shares) / (2 * n), atol=1e-6)
        before = 1 / (1 + np.exp(-(shares.mean() + b[0])))
        after = 1 / (1 + np.exp(-((shares.sum() - shares) / (n - 1) + b[0])))
        np.testing.assert_allclose(deletions[i], 2 * np.abs(before - after), atol=1e-6)


def test_detached_gradient_of_the_average_encoder_in_closed_form():
    """p = σ(v · Σ α_t tanh(A e_t + a) + b) with α constant: ∂p/∂e_t = p(1-p) α_t Aᵀ((1 - h_t²) v)."""
    evaluator = make_evaluator("average-tanh")
    w = {name: tensor.detach().numpy() for name, tensor in evaluator.model.state_dict().items()}
    found = gradient(evaluator, INSTANCES).scores
    weights = attention(evaluator, INSTANCES).scores
    probabilities = evaluator.probabilities(INSTANCES)
    for i, (ids, words) in enumerate(zip(INSTANCES.ids, INSTANCES.maskable, strict=True)):
        e = w["embedding.weight"][ids[words]]
        h = np.tanh(e @ w["encoder.linear.weight"].T + w["encoder.linear.bias"])
        derivative = ((1 - h**2) * w["head.linear.weight"][0]) @ w["encoder.linear.weight"]
        p = probabilities[i, 1]
        expected = np.abs(p * (1 - p) * weights[i] * (derivative * e).sum(1))
        np.testing.assert_allclose(found[i], expected, atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_attached_gradient_is_the_directional_derivative(name):
    """e_t · ∂p/∂e_t is the derivative of p when the word's vector is scaled; by central differences in float64."""
    evaluator = make_evaluator(name)
    evaluator.model.double()
    found = gradient(evaluator, INSTANCES, attention="attached", target=1, sign="signed").scores
    for i, (ids, words) in enumerate(zip(INSTANCES.ids, INSTANCES.maskable, strict=True)):
        batch = collate([ids], [words])
        embedded = evaluator.model.embedding(batch.ids).detach()

        def probability(position, stretch, embedded=embedded, batch=batch):
            moved = embedded.clone()
            moved[0, position] *= stretch
            with torch.no_grad():
                return float(evaluator.model(batch, moved).logits.softmax(-1)[0, 1])

        step = 1e-5
        for word, position in enumerate(np.flatnonzero(words)):
            derivative = (probability(position, 1 + step) - probability(position, 1 - step)) / (2 * step)
            assert found[i][word] == pytest.approx(derivative, abs=1e-8, rel=1e-4)


@pytest.mark.parametrize("name", ATTENTIVE)
def test_detaching_changes_the_gradient_but_not_the_attention(name):
    evaluator = make_evaluator(name)
    detached, attached = (
        gradient(evaluator, INSTANCES).scores,
        gradient(evaluator, INSTANCES, attention="attached").scores,
    )
    assert any(not np.allclose(a, b, rtol=1e-3) for a, b in zip(detached, attached, strict=True))


def test_binary_logit_and_probability_rank_alike():
    evaluator = make_evaluator("bilstm-tanh")
    for a, b in zip(
        gradient(evaluator, INSTANCES).scores, gradient(evaluator, INSTANCES, function="logit").scores, strict=True
    ):
        assert (np.argsort(a) == np.argsort(b)).all()


@pytest.mark.parametrize("name", MODELS)
def test_leave_one_out_equals_one_pass_per_position(name):
    evaluator = make_evaluator(name, budget=40)
    found = leave_one_out(evaluator, INSTANCES).scores
    for i, (ids, words) in enumerate(zip(INSTANCES.ids, INSTANCES.maskable, strict=True)):
        before = evaluator.probabilities(Texts([ids], [words]))[0]
        expected = [
            np.abs(evaluator.probabilities(Texts([np.delete(ids, t)], [np.delete(words, t)]))[0] - before).sum()
            for t in np.flatnonzero(words)
        ]
        np.testing.assert_allclose(found[i], expected, atol=1e-6)


def test_deleting_one_of_twins_gives_both_the_same_score():
    ids = np.array([2, 7, 7, 9, 3], dtype=np.int32)
    twins = Instances(np.array(["test"]), np.array([0]), np.array([0]), [ids], [np.array([0, 1, 1, 1, 0], dtype=bool)])
    scores = leave_one_out(make_evaluator("bilstm-tanh"), twins).scores[0]
    assert scores[0] == scores[1]


def test_words_that_differ_by_rounding_alone_are_not_ranked():
    """Ninety times the same word and one other: for an encoder without order all of the ninety count the same."""
    random = np.random.default_rng(0)
    texts = []
    for _ in range(6):
        words = np.full(90, 7)
        words[random.integers(90)] = 9
        texts.append(np.array([2, *words, 3], dtype=np.int32))
    words = [np.array([False, *[True] * 90, False])] * 6
    many = Instances(np.array(["test"] * 6), np.arange(6), np.zeros(6, dtype=np.int32), texts, words)
    for budget in (92, 500, 10_000):
        for scores, ids in zip(leave_one_out(make_evaluator("average-tanh", budget), many).scores, texts, strict=True):
            assert len(set(scores[ids[1:-1] == 7].tolist())) == 1


def test_close_scores_become_one_and_others_keep_their_order():
    scores = np.array([0.5, 1e-5, 0.5 + 1e-7, 2e-5, 1e-5 + 2e-7, 1e-5 + 4e-7], dtype=np.float32)
    found = merge_rounding_ties(scores, np.full(6, 3e-7))
    assert found[0] == found[2] and found[1] == found[4] < found[5] < found[3] < found[0]
    np.testing.assert_allclose(found, scores, atol=3e-7)
    dense = np.arange(400, dtype=np.float32)[::-1] * 1e-7
    merged = merge_rounding_ties(dense, np.full(400, 3e-7))
    assert len(set(merged.tolist())) >= 100 and (np.diff(merged) <= 0).all()
    assert np.isnan(merge_rounding_ties(np.array([np.nan], dtype=np.float32), np.zeros(1))).all()
    assert len(merge_rounding_ties(np.empty(0, dtype=np.float32), np.empty(0))) == 0


def test_the_rounding_error_of_probabilities_is_smaller_for_a_confident_model():
    even, sure = rounding_error(np.array([[0.5, 0.5], [1 - 1e-6, 1e-6]]))
    assert even == pytest.approx(0.5 * RESOLUTION) and sure == pytest.approx(2e-6 * RESOLUTION, rel=1e-3)


def test_a_confident_model_ranks_words_as_it_does_in_double_precision():
    """All probabilities are 1 in single precision, and most differences of them 0 or rounding."""
    evaluator = make_evaluator("bilstm-tanh")
    with torch.no_grad():
        evaluator.model.head.linear.weight *= 500
        evaluator.model.head.linear.bias += 12
    found = leave_one_out(evaluator, INSTANCES)
    evaluator.model.double()
    exact = leave_one_out(evaluator, INSTANCES)
    before = evaluator.probabilities(INSTANCES)
    assert np.median(before.max(1)) > 1 - 1e-6
    taus = [kendalltau(a, b).statistic for a, b in zip(found.scores, exact.scores, strict=True) if len(a) > 2]
    assert np.nanmean(taus) > 0.999 and np.nanmin(taus) > 0.97


def test_all_but_one():
    assert all_but_one(np.array([False, True, True, False])).tolist() == [[0, 2, 3], [0, 1, 3]]


def test_text_of_one_word_has_no_leave_one_out():
    one = Instances(
        np.array(["test"]),
        np.array([0]),
        np.array([0]),
        [np.array([2, 7, 3], dtype=np.int32)],
        [np.array([0, 1, 0], bool)],
    )
    assert np.isnan(leave_one_out(make_evaluator("bilstm-tanh"), one).scores[0]).all()


@pytest.mark.parametrize("output", ["predicted", "gold"])
def test_signed_leave_one_out_explains_the_class_it_names(output):
    evaluator = make_evaluator("average-tanh")
    found = leave_one_out(evaluator, INSTANCES, output=output, sign="signed")
    before = evaluator.probabilities(INSTANCES)
    expected = before.argmax(1) if output == "predicted" else INSTANCES.label
    assert found.target.tolist() == expected.tolist()
    i = 5
    ids, words = INSTANCES.ids[i], INSTANCES.maskable[i]
    after = evaluator.probabilities(Texts([np.delete(ids, 1)], [np.delete(words, 1)]))[0]
    assert found.scores[i][0] == pytest.approx(before[i, expected[i]] - after[expected[i]], abs=1e-6)


def test_targets_are_explicit():
    evaluator = make_evaluator("average-dot")
    assert gradient(evaluator, INSTANCES, target="gold").target.tolist() == INSTANCES.label.tolist()
    assert (
        gradient(evaluator, INSTANCES, target="predicted").target.tolist()
        == evaluator.probabilities(INSTANCES).argmax(1).tolist()
    )
    one, zero = (gradient(evaluator, INSTANCES, target=c, sign="signed").scores for c in (1, 0))
    for a, b in zip(one, zero, strict=True):
        np.testing.assert_allclose(a, -b, atol=1e-7)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("model", ["bilstm-tanh", "cnn-dot", "average-tanh"])
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_importances_do_not_depend_on_batch_padding_or_order(measure, model, rows):
    function, options = MEASURES[measure]
    longest = int(INSTANCES.lengths.max())
    whole = function(make_evaluator(model), INSTANCES, **options).scores
    order = np.random.default_rng(rows).permutation(len(INSTANCES))
    cut = function(make_evaluator(model, budget=rows * longest), INSTANCES.take(order), **options).scores
    for position, i in enumerate(order):
        np.testing.assert_allclose(cut[position], whole[i], atol=1e-6)


def test_a_class_that_does_not_exist_is_refused():
    with pytest.raises(PlumblineError, match="`target` is 7, but the classes are 0 to 1"):
        gradient(make_evaluator("bag-of-words"), INSTANCES, attention="attached", target=7)


def test_random_draws_words_first():
    """So that they are the same whether or not there is a second text."""
    evaluator, pairs = make_evaluator("bag-of-words"), example_instances(14, paired=True)
    both, alone = random(evaluator, pairs), random(evaluator, replace(pairs, pair=None, pair_maskable=None))
    for i, second in enumerate(pairs.pair):
        np.testing.assert_array_equal(both.scores[i], alone.scores[i])
        assert len(both.pair[i]) == len(second) and len(both.specials[i]) == 2
        assert len({*both.scores[i], *both.pair[i], *both.specials[i]}) == len(pairs.ids[i]) + len(second)
    assert alone.pair is None


def test_random_follows_the_seed_and_the_instance():
    zero, one = (
        random(make_evaluator("bag-of-words", seed=0), INSTANCES),
        random(make_evaluator("bag-of-words", seed=1), INSTANCES),
    )
    assert not np.allclose(zero.scores[9], one.scores[9])
    assert not np.allclose(zero.scores[0], zero.scores[12][: len(zero.scores[0])])
    values = np.concatenate([random(make_evaluator("bag-of-words", seed=s), INSTANCES).scores[9] for s in range(400)])
    assert 0.47 < values.mean() < 0.53 and values.min() >= 0 and values.max() < 1
