"""Classifiers of several attentions: their equations, the order of their heads and what measures make of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from plumbline.attribution.attention import attention
from plumbline.attribution.leave_one_out import leave_one_out
from plumbline.config.resolve import resolve
from plumbline.config.runs import list_runs
from plumbline.conformance import ANSWERS, CLASSES, DIMENSIONS, WORDS, example_instances, example_model, whole_batch
from plumbline.errors import PlumblineError
from plumbline.models import evaluator
from plumbline.models.classifier import AttentionClassifier
from plumbline.models.distances import MOST_HEADS, jensen_shannon, match_heads
from plumbline.models.evaluator import Evaluator
from plumbline.models.multi_head import MultiHeadClassifier
from plumbline.registry import Registry

REGISTRY = Registry()
NAMES = ["average-heads", "bilstm-heads"]


def sharp(name: str = "bilstm-heads", paired: bool = False) -> MultiHeadClassifier:
    """A random model whose heads tell words apart."""
    model = example_model(REGISTRY.get("model", name), paired=paired).requires_grad_(False)
    for head in model.attention.heads:
        head.score.weight *= 20
    return model.eval()


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_heads_follow_their_equations(name, paired):
    model, instances = sharp(name, paired), example_instances(paired=paired)
    batch = whole_batch(instances)
    output = model(batch)
    encoded = model.encode(model.embedding(batch.ids), batch)
    assert output.heads.shape == (len(instances), 4, batch.ids.shape[1])
    for i, free in enumerate(instances.maskable):
        words = encoded.hidden[i, : len(free)][torch.from_numpy(free)]
        contexts = []
        for head, found in zip(model.attention.heads, output.heads[i], strict=True):
            inside = head.project(words) + (head.query(encoded.query[i]) if paired else 0)
            weights = (torch.tanh(inside) @ head.score.weight[0]).softmax(0)
            torch.testing.assert_close(found[: len(free)][torch.from_numpy(free)], weights, atol=1e-6, rtol=0)
            contexts.append(weights @ words)
        context = torch.cat(contexts)
        if paired:
            mixed = torch.tanh(model.head.context(context) + model.head.query(encoded.query[i]))
            allowed = torch.isin(torch.arange(ANSWERS), torch.from_numpy(instances.answers[i]))
            logits = model.head.linear(mixed).masked_fill(~allowed, -torch.inf)
        else:
            logits = model.head.linear(context) / 2 * torch.tensor([-1, 1])
        torch.testing.assert_close(output.logits[i], logits, atol=1e-6, rtol=0)


@pytest.mark.parametrize("paired", [False, True])
def test_one_head_is_the_model_with_one_attention(paired):
    vectors = [torch.randn(WORDS, DIMENSIONS) for _ in range(1 + paired)]
    one = AttentionClassifier(vectors[0], 3, *vectors[1:], hidden=8, temperature=0.5)
    other = MultiHeadClassifier(vectors[0], 3, *vectors[1:], hidden=8, temperature=0.5, heads=1)
    state = {name.replace("attention.", "attention.heads.0."): tensor for name, tensor in one.state_dict().items()}
    other.load_state_dict(state)
    batch = replace(whole_batch(example_instances(paired=paired)), answers=None)
    found, expected = other(batch), one(batch)
    torch.testing.assert_close(found.logits, expected.logits, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.attention, expected.attention, atol=1e-6, rtol=0)
    assert expected.heads is None and found.heads.shape[1] == 1


@pytest.mark.parametrize("paired", [False, True])
def test_the_order_of_heads_means_nothing_and_is_found_again(paired):
    model, batch = sharp(paired=paired), whole_batch(example_instances(paired=paired))
    order = [2, 0, 3, 1]
    other = sharp(paired=paired)
    for place, head in enumerate(order):
        other.attention.heads[place].load_state_dict(model.attention.heads[head].state_dict())
    one, unmatched = model(batch), other(batch)
    probabilities = one.logits.softmax(-1)
    assert not torch.allclose(probabilities, unmatched.logits.softmax(-1), atol=1e-4), (
        "the output depends on the order of the heads"
    )
    reads = (other.head.context if paired else other.head.linear).weight
    reads[:] = reads.unflatten(1, (4, -1))[:, order].flatten(1)
    permuted = other(batch)
    torch.testing.assert_close(permuted.logits.softmax(-1), probabilities, atol=1e-6, rtol=0)
    torch.testing.assert_close(permuted.attention, one.attention, atol=1e-6, rtol=0)
    distances = jensen_shannon(one.heads[:, :, None], permuted.heads[:, None]).mean(0)
    found = match_heads(distances)
    assert [order[place] for place in found.tolist()] == [0, 1, 2, 3]
    assert distances[torch.arange(4), found].abs().max() < 1e-6
    assert distances.flatten().sort().values[4] > 1e-3, "all other pairs are apart"


@pytest.mark.parametrize("name", NAMES)
def test_heads_differ_from_the_start(name):
    heads = example_model(REGISTRY.get("model", name))(whole_batch(example_instances())).heads
    apart = (heads[:, :, None] - heads[:, None]).abs().amax((0, 3))
    assert apart[~torch.eye(4, dtype=torch.bool)].min() > 1e-3


@pytest.mark.parametrize("paired", [False, True])
def test_mean_attention_is_the_mean_of_the_heads(paired):
    model, instances = sharp(paired=paired), example_instances(paired=paired)
    found = attention(Evaluator(model, 0, 40), instances).scores
    for i, scores in enumerate(found):
        rows = model(whole_batch(instances.take([i]))).heads[0].numpy()[:, instances.maskable[i]]
        np.testing.assert_allclose(scores, sum(rows) / 4, atol=1e-6)
        assert len(scores) < 4 or np.abs(rows - scores).max() > 0.01


@pytest.mark.parametrize("paired", [False, True])
def test_leave_one_out_of_long_texts_equals_reading_each_shortened_text(paired, monkeypatch):
    random = np.random.default_rng(0)
    ids = [np.concatenate([[2], random.integers(5, WORDS, size=n), [3]]).astype(np.int32) for n in (70, 64)]
    free = [np.concatenate([[False], np.ones(len(row) - 2, dtype=bool), [False]]) for row in ids]
    reader = Evaluator(sharp(paired=paired), 0, 400)
    long = replace(example_instances(2, paired=paired), ids=ids, maskable=free)
    assert reader.probabilities_without(long, 0).shape == (70, ANSWERS if paired else CLASSES)
    found = leave_one_out(reader, long).scores
    monkeypatch.setattr(evaluator, "LONG_TEXT", 1000)
    expected = leave_one_out(reader, long).scores
    assert max(scores.max() for scores in expected) > 1e-4
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("heads", [0, MOST_HEADS + 1])
def test_too_few_or_many_heads_are_refused(heads):
    with pytest.raises(PlumblineError, match=rf"^`heads` is {heads}; it must be from 1 to {MOST_HEADS}\.$"):
        MultiHeadClassifier(torch.randn(WORDS, DIMENSIONS), CLASSES, heads=heads)


def test_each_measure_of_attention_has_the_models_it_fits():
    measures = ["attention", "mean-attention", "gradient", "gradient-attached"]
    models = {"bilstm-tanh": {}, "bilstm-heads": {}}
    runs = list_runs(resolve({"datasets": {"mock-2": {}}, "models": models, "measures": measures}))
    assert runs.measures == {
        "bilstm-tanh": ["attention", "gradient", "gradient-attached"],
        "bilstm-heads": ["mean-attention", "gradient-attached"],
    }


def test_more_heads_than_can_be_matched_are_refused():
    assert match_heads(torch.eye(MOST_HEADS)).shape == (MOST_HEADS,)
    with pytest.raises(
        PlumblineError, match=r"^The model has 8 heads; at most 7 can be compared, in all their orders\.$"
    ):
        match_heads(torch.eye(MOST_HEADS + 1))
