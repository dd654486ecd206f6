"""Models against independent implementations, and independence of padding, batch and order."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from plumbline.conformance import CLASSES, DIMENSIONS, WORDS, example_instances, example_model
from plumbline.data.instances import Texts
from plumbline.errors import PlumblineError
from plumbline.models.batch import collate, plan
from plumbline.models.classifier import Head, Output
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry

REGISTRY = Registry()
MODELS = REGISTRY.names("model")
INSTANCES = example_instances(20)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def arrays(model):
    return {name: tensor.detach().double().numpy() for name, tensor in model.state_dict().items()}


def numpy_attention(w, hidden, kind):
    """Spec 1.2, one sequence of hidden states [L, H]; specials (first and last) get no weight."""
    if kind == "tanh":
        scores = np.tanh(hidden @ w["attention.project.weight"].T + w["attention.project.bias"])
        scores = scores @ w["attention.score.weight"][0]
    else:
        scores = hidden @ w["attention.score.weight"][0] / np.sqrt(hidden.shape[1])
    return np.concatenate([[0], softmax(scores[1:-1]), [0]])


def numpy_lstm(w, prefix, inputs):
    """Gates in the order input, forget, cell, output."""
    size = w[f"{prefix}.weight_hh_l0"].shape[1]
    h = c = np.zeros(size)
    outputs = []
    for x in inputs:
        gates = w[f"{prefix}.weight_ih_l0"] @ x + w[f"{prefix}.bias_ih_l0"]
        gates = gates + w[f"{prefix}.weight_hh_l0"] @ h + w[f"{prefix}.bias_hh_l0"]
        i, f, g, o = np.split(gates, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        outputs.append(h)
    return np.array(outputs)


def numpy_encoder(w, kind, embedded):
    if kind == "average":
        return np.tanh(embedded @ w["encoder.linear.weight"].T + w["encoder.linear.bias"])
    if kind == "bilstm":
        ahead = numpy_lstm(w, "encoder.forwards", embedded)
        back = numpy_lstm(w, "encoder.backwards", embedded[::-1])[::-1]
        return np.concatenate([ahead, back], axis=1)
    parts = []
    for i, width in enumerate((1, 3, 5, 7)):
        kernel, bias = w[f"encoder.convolutions.{i}.weight"], w[f"encoder.convolutions.{i}.bias"]
        padded = np.pad(embedded, ((width // 2, width // 2), (0, 0)))
        windows = np.stack([padded[t : t + width].T for t in range(len(embedded))])
        parts.append(np.maximum(np.einsum("tdk,fdk->tf", windows, kernel) + bias, 0))
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "bag-of-words"])
def test_classifier_equals_numpy(name):
    encoder, attention = name.split("-")
    model = example_model(REGISTRY.get("model", name)).eval()
    w = arrays(model)
    with torch.no_grad():
        output = model(collate(INSTANCES.ids, INSTANCES.maskable))
    for i, ids in enumerate(INSTANCES.ids):
        hidden = numpy_encoder(w, encoder, w["embedding.weight"][ids])
        alpha = numpy_attention(w, hidden, attention)
        z = (alpha @ hidden) @ w["head.linear.weight"][0] + w["head.linear.bias"][0]
        np.testing.assert_allclose(output.attention[i, : len(ids)].numpy(), alpha, atol=1e-6)
        np.testing.assert_allclose(output.logits[i].numpy(), [-z / 2, z / 2], atol=1e-6)


def test_sizes_of_the_study():
    sizes = {name: example_model(REGISTRY.get("model", name)).encoder.size for name in MODELS if "-tanh" in name}
    assert sizes == {"bilstm-tanh": 256, "cnn-tanh": 256, "average-tanh": 128}
    attention = example_model(REGISTRY.get("model", "bilstm-tanh")).attention
    assert attention.project.weight.shape == (128, 256) and attention.score.bias is None


def test_two_class_head_is_the_sigmoid():
    head = Head(3, 2)
    features = torch.randn(5, 3)
    probability = head(features).softmax(-1)[:, 1]
    torch.testing.assert_close(probability, torch.sigmoid(head.linear(features)).squeeze(1))
    labels = torch.tensor([0.0, 1, 1, 0, 1])
    torch.testing.assert_close(
        nn.functional.cross_entropy(head(features), labels.long()),
        nn.functional.binary_cross_entropy_with_logits(head.linear(features).squeeze(1), labels),
    )
    assert Head(3, 4)(features).shape == (5, 4)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", [15, 7 * 15, 10_000])
def test_probabilities_do_not_depend_on_batch_or_order(name, budget):
    model = example_model(REGISTRY.get("model", name))
    whole = Evaluator(model, 0, 10_000).probabilities(INSTANCES)
    order = np.random.default_rng(0).permutation(len(INSTANCES))
    shuffled = Evaluator(model, 0, budget).probabilities(INSTANCES.take(order))
    np.testing.assert_allclose(shuffled, whole[order], atol=1e-6)


def test_extra_padding_changes_nothing():
    model = example_model(REGISTRY.get("model", "cnn-tanh")).eval()
    ids, free = INSTANCES.ids[3], INSTANCES.maskable[3]
    longest = max(INSTANCES.ids, key=len)
    with torch.no_grad():
        alone = model(collate([ids], [free])).logits[0]
        padded = model(collate([ids, np.tile(longest, 4)], [free, np.ones(4 * len(longest), dtype=bool)])).logits[0]
    torch.testing.assert_close(alone, padded, atol=1e-6, rtol=0)


def test_identical_rows_run_once():
    class Counting(nn.Module):
        rows = 0

        def forward(self, batch):
            self.rows += len(batch.ids)
            return Output(torch.zeros(len(batch.ids), CLASSES))

    counting = Counting()
    (one, other), (free, other_free) = INSTANCES.ids[:2], INSTANCES.maskable[:2]
    found = Evaluator(counting, 0, 1000).probabilities(Texts([one] * 9 + [other], [free] * 9 + [other_free]))
    assert counting.rows == 2 and found.shape == (10, CLASSES)


def test_plan_keeps_the_budget_and_every_row():
    lengths = np.random.default_rng(0).integers(1, 50, size=500)
    batches = plan(lengths, 200)
    assert sorted(np.concatenate(batches)) == list(range(500))
    assert all(len(batch) * lengths[batch].max() <= 200 for batch in batches)
    # Greedy: no two neighbours would fit together.
    assert all((len(a) + 1) * lengths[b].min() > 200 for a, b in pairwise(batches))


def test_text_over_the_budget_gets_one_sentence():
    with pytest.raises(
        PlumblineError, match=r"A text of 30 tokens does not fit into `compute\.token_budget`, which is 20"
    ):
        plan(np.array([3, 30]), 20)


def test_padding_vector_stays_zero():
    model = example_model(REGISTRY.get("model", "bilstm-tanh"))
    assert model.embedding.padding_idx == 0 and model.embedding.weight.shape == (WORDS, DIMENSIONS)
    assert model.embedding.weight[0].abs().sum() == 0
