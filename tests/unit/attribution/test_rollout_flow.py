"""Rollout and flow by hand, by slow loops and by networkx; attention of both texts, and times its gradient."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from plumbline.attribution.attention import attention, attention_x_gradient
from plumbline.attribution.flow import attention_flow, flow
from plumbline.attribution.rollout import mixing_matrices, roll_out, rollout
from plumbline.conformance import example_instances, example_model, reads_one_text, whole_batch
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry

REGISTRY = Registry()


def with_specials(instances):
    """The same pairs, the second texts of which begin with a special token."""
    words = [np.arange(len(pair)) > 0 for pair in instances.pair]
    return replace(instances, pair_maskable=words)


INSTANCES, PAIRS = example_instances(14), with_specials(example_instances(14, paired=True))
LAYERED = [("transformer-tanh", False), ("transformer-tanh", True), ("roberta", False), ("roberta", True)]
ATTENTIVE = [model for model in REGISTRY.all("model") if {"attention", "gradient"} <= set(model.provides)]

# Two tokens, two heads, two layers: the heads' means are [[.6, .4], [.2, .8]] and then [[.2, .8], [.5, .5]].
HEADS = torch.tensor(
    [
        [[[0.8, 0.2], [0.1, 0.9]], [[0.4, 0.6], [0.3, 0.7]]],
        [[[0.3, 0.7], [0.5, 0.5]], [[0.1, 0.9], [0.5, 0.5]]],
    ],
    dtype=torch.float64,
)
MIXED = np.array([[[0.8, 0.2], [0.1, 0.9]], [[0.6, 0.4], [0.25, 0.75]]])
BY_HAND = [
    # .6 Â_1[0] + .4 Â_1[1]; min(.6, .8) + min(.4, .1) and min(.6, .2) + min(.4, .9).
    ([1.0, 0.0], [0.52, 0.48], [0.7, 0.6]),
    # .425 Â_1[0] + .575 Â_1[1]; the first token's state can get .5 + .25 and give .8, the second's can give .1; of the
    # second token's .5 + .4 come to the one, .1 to the other, which is all there is.
    ([0.5, 0.5], [0.3975, 0.6025], [0.85, 1.0]),
]


def make_evaluator(name, paired=False, budget=10_000):
    """An evaluator in double precision, so that comparisons are sharp."""
    model = example_model(REGISTRY.get("model", name), paired=paired).double()
    return Evaluator(model.requires_grad_(False), 0, budget)


def of(paired):
    return PAIRS if paired else INSTANCES


def alone(evaluator, instances, i):
    """Layers [layers, heads, T, T] and readout [T] of one text, without padding."""
    batch = whole_batch(instances.take([i]))
    return evaluator.model.layers(batch)[0].numpy(), evaluator.model.readout(batch)[0].numpy()


def slowly_mixed(heads):
    """Â [layers, T, T] as it is written down."""
    mixed = []
    for layer in heads:
        total = sum(layer) / len(layer) + np.eye(layer.shape[-1])
        mixed.append(np.array([row / row.sum() for row in total]))
    return mixed


def by_networkx(capacities, readout):
    """Maximum flows [S] of the whole graph, with a node for each token of each layer, by another library."""
    graph = nx.DiGraph()
    for layer, above in enumerate(capacities):
        for (i, j), capacity in np.ndenumerate(above):
            graph.add_edge((layer + 1, i), (layer, j), capacity=capacity)
    for i, capacity in enumerate(readout):
        graph.add_edge("readout", (len(capacities), i), capacity=capacity)
    return np.array([nx.maximum_flow_value(graph, "readout", (0, j)) for j in range(len(readout))])


def token_scores(found, instances, i):
    """The scores of all tokens [T] of an instance, in the order of the text and the second text."""
    words, specials = [instances.maskable[i]], found.specials[i]
    scores = [found.scores[i]]
    if found.pair is not None:
        words.append(instances.pair_words(i))
        scores.append(found.pair[i])
    values = np.empty(sum(map(len, words)))
    values[np.concatenate(words)] = np.concatenate(scores)
    values[~np.concatenate(words)] = specials
    return values


def assert_same(found, expected, **tolerance):
    for column in ("scores", "pair", "specials"):
        ours, theirs = getattr(found, column), getattr(expected, column)
        assert (ours is None) == (theirs is None)
        for a, b in zip(ours or [], theirs or [], strict=True):
            np.testing.assert_allclose(a, b, **tolerance)


@pytest.mark.parametrize(("readout", "shares", "flows"), BY_HAND)
def test_two_tokens_and_two_layers_by_hand(readout, shares, flows):
    mixed = mixing_matrices(HEADS[None])
    np.testing.assert_allclose(mixed[0], MIXED, atol=1e-12)
    np.testing.assert_allclose(roll_out(mixed, torch.tensor([readout]))[0], shares, atol=1e-7)
    np.testing.assert_allclose(flow(MIXED, np.array(readout)), flows, atol=1e-8)


def test_rows_of_rollout_sum_to_one_and_padding_has_none():
    weights = torch.rand(3, 4, 2, 7, 7, dtype=torch.float64)
    weights[..., 5:] = 0
    mixed = mixing_matrices(weights / weights.sum(-1, keepdim=True))
    # Each token as the readout gives each row of the last R.
    rows = torch.stack([roll_out(mixed, torch.eye(7)[token].expand(3, -1)) for token in range(7)], dim=1)
    torch.testing.assert_close(rows.sum(-1), torch.ones(3, 7, dtype=torch.float64))
    assert (rows[:, :5, 5:] == 0).all() and (rows[:, :5, :5] > 0).all()
    product = mixed[:, 3] @ mixed[:, 2] @ mixed[:, 1] @ mixed[:, 0]
    torch.testing.assert_close(rows, product)


@pytest.mark.parametrize(("name", "paired"), LAYERED)
def test_rollout_is_the_slow_product_of_each_text(name, paired):
    evaluator, instances = make_evaluator(name, paired), of(paired)
    found = rollout(evaluator, instances)
    assert found.target is None and (found.pair is not None) == paired
    for i in range(len(instances)):
        heads, readout = alone(evaluator, instances, i)
        rolled = np.eye(len(readout))
        for layer in slowly_mixed(heads):
            rolled = layer @ rolled
        scores = token_scores(found, instances, i)
        np.testing.assert_allclose(scores, readout @ rolled, atol=1e-7)
        assert scores.sum() == pytest.approx(1, abs=1e-6)
        if name == "roberta":
            np.testing.assert_allclose(scores, rolled[0], atol=1e-7)


@pytest.mark.parametrize(("name", "paired"), LAYERED)
def test_flow_is_that_of_networkx_on_each_text(name, paired):
    evaluator, instances = make_evaluator(name, paired), of(paired).take([0, 5, 11])
    found = attention_flow(evaluator, instances)
    for i in range(len(instances)):
        heads, readout = alone(evaluator, instances, i)
        expected = by_networkx(slowly_mixed(heads), readout)
        scores = token_scores(found, instances, i)
        np.testing.assert_allclose(scores, expected / expected.sum(), atol=1e-7)
        assert scores.sum() == pytest.approx(1, abs=1e-6)
        # Capacities do not limit the flow through two layers with even attention.
        assert np.ptp(scores) > 0.001 or name == "transformer-tanh"


@pytest.mark.parametrize("layers", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 2, 6])
@pytest.mark.parametrize("kind", ["mixed", "sparse", "wide"])
def test_flow_is_that_of_networkx_on_random_graphs(layers, size, kind):
    random = np.random.default_rng([layers, size])
    for readout in (np.eye(size)[size // 2], random.dirichlet(np.ones(size)), random.random(size) * 40):
        capacities = random.dirichlet(np.full(size, 0.3), size=(layers, size))
        if kind == "mixed":
            capacities = (capacities + np.eye(size)) / 2
        elif kind == "sparse":
            capacities *= random.random(capacities.shape) < 0.5
        else:
            # Far more than the source can give, and far less.
            capacities *= 10.0 ** random.integers(-3, 12, size=capacities.shape)
        found, expected = flow(capacities, readout), by_networkx(capacities, readout)
        np.testing.assert_allclose(found, expected, atol=1e-7 * readout.sum())
        assert (found <= readout.sum() * (1 + 1e-12)).all()


def test_a_flow_is_less_than_the_readout_if_capacities_limit_it():
    random = np.random.default_rng(0)
    capacities = (random.dirichlet(np.full(30, 0.05), size=(6, 30)) + np.eye(30)) / 2
    found = flow(capacities, np.eye(30)[0])
    into = capacities[0].sum(0)
    assert (found <= np.minimum(1, into) + 1e-8).all() and (found < 0.99).any()
    whole = found > 1 - 1e-7
    assert whole.sum() > 1 and len(set(found[whole])) == 1, "tokens that can receive all of it tie"


@pytest.mark.parametrize(("name", "paired"), [*LAYERED, ("bilstm-shared", True), ("bilstm-tanh", True)])
def test_measures_do_not_depend_on_batch_padding_or_order(name, paired):
    instances = of(paired)
    longest = int((instances.lengths + [len(pair) for pair in instances.pair or [[]] * len(instances)]).max())
    order = np.random.default_rng(0).permutation(len(instances))
    measures = [rollout, attention_flow] if (name, paired) in LAYERED else [attention, attention_x_gradient]
    for measure in measures:
        whole = measure(make_evaluator(name, paired), instances.take(order))
        cut = measure(make_evaluator(name, paired, longest), instances)
        shuffled = [
            None if column is None else [column[i] for i in order] for column in (cut.scores, cut.pair, cut.specials)
        ]
        assert_same(whole, replace(cut, scores=shuffled[0], pair=shuffled[1], specials=shuffled[2]), atol=1e-7)


@pytest.mark.parametrize("measure", [rollout, attention_flow])
def test_excluded_tokens_do_not_change_the_other_scores(measure):
    whole = measure(make_evaluator("roberta", True), PAIRS)
    first = measure(make_evaluator("roberta", True), PAIRS, texts="first")
    words = measure(make_evaluator("roberta", True), PAIRS, specials=False)
    assert_same(first, replace(whole, pair=None, specials=[row[:2] for row in whole.specials]))
    assert_same(words, replace(whole, specials=None))


@pytest.mark.parametrize("name", ["bilstm-shared", "bilstm-shared-uniform"])
def test_attention_to_second_texts_is_scored_for_models_that_have_it(name):
    evaluator = make_evaluator(name, True)
    found = attention(evaluator, PAIRS)
    for i in range(len(PAIRS)):
        output = evaluator.model(whole_batch(PAIRS.take([i])))
        np.testing.assert_allclose(
            token_scores(found, PAIRS, i), torch.cat([output.attention, output.pair_attention], 1)[0], atol=1e-7
        )
        assert (found.specials[i] == 0).all() and len(found.specials[i]) == 3
        assert found.scores[i].sum() == pytest.approx(1) and found.pair[i].sum() == pytest.approx(1)


@pytest.mark.parametrize("name", ["bilstm-tanh", "average-dot", "bilstm-heads"])
def test_attention_of_other_models_is_of_the_first_text_alone(name):
    evaluator = make_evaluator(name, True)
    found = attention(evaluator, PAIRS)
    assert found.pair is None and found.target is None
    for i, free in enumerate(PAIRS.maskable):
        weights = evaluator.model(whole_batch(PAIRS.take([i]))).attention[0].numpy()
        np.testing.assert_allclose(found.scores[i], weights[free], atol=1e-7)
        assert found.specials[i].tolist() == [0, 0]


@pytest.mark.parametrize("function", ["probability", "logit"])
@pytest.mark.parametrize("declaration", ATTENTIVE, ids=lambda declaration: declaration.name)
def test_attention_x_gradient_by_central_differences(declaration, function):
    """α_t ∂f/∂α_t is the derivative of f when one weight alone is scaled."""
    paired = not reads_one_text(declaration)
    evaluator, instances = make_evaluator(declaration.name, paired), of(paired)
    found = attention_x_gradient(evaluator, instances, function=function, sign="signed")
    step = 1e-5
    for i in (0, 8):
        batch = whole_batch(instances.take([i]))
        encoded = evaluator.model.encode(evaluator.model.embedding(batch.ids), batch)
        weights = evaluator.model.attend(encoded, batch)
        chosen = int(evaluator.model(batch).logits.argmax())
        assert found.target[i] == chosen

        def output(position, scale, encoded=encoded, weights=weights, chosen=chosen):
            moved = weights.clone()
            moved[0, position] *= scale
            logits = evaluator.model.decode(encoded, moved)[0]
            return float((logits.softmax(-1) if function == "probability" else logits)[chosen])

        positions = np.flatnonzero(instances.maskable[i])
        derivatives = [(output(position, 1 + step) - output(position, 1 - step)) / (2 * step) for position in positions]
        np.testing.assert_allclose(found.scores[i], derivatives, atol=1e-8, rtol=1e-4)
        assert np.abs(derivatives).max() > 1e-4 and (found.specials[i] == 0).all() and found.pair is None


def test_attention_x_gradient_of_a_linear_output_in_closed_form():
    """z = v · Σ α_t h_t + b and the logit of the second class is z / 2, so that its product is α_t v · h_t / 2."""
    evaluator = make_evaluator("average-tanh")
    found = attention_x_gradient(evaluator, INSTANCES, target=1, function="logit", sign="signed").scores
    absolute = attention_x_gradient(evaluator, INSTANCES, target="gold", function="logit")
    assert absolute.target.tolist() == INSTANCES.label.tolist()
    weights = attention(evaluator, INSTANCES).scores
    v = evaluator.model.head.linear.weight[0]
    for i, free in enumerate(INSTANCES.maskable):
        batch = whole_batch(INSTANCES.take([i]))
        hidden = evaluator.model.encode(evaluator.model.embedding(batch.ids), batch).hidden[0]
        expected = weights[i] * (hidden @ v).numpy()[free] / 2
        np.testing.assert_allclose(found[i], expected, atol=1e-7)
        np.testing.assert_allclose(absolute.scores[i], np.abs(expected), atol=1e-7)
