"""Models against independent implementations, and independence of padding, batch and order."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from plumbline.attribution.attention import attention
from plumbline.config.recipes import Training
from plumbline.conformance import (
    CLASSES,
    DIMENSIONS,
    WORDS,
    example_instances,
    example_model,
    reads_one_text,
    whole_batch,
)
from plumbline.data.instances import Texts
from plumbline.errors import PlumblineError
from plumbline.models.batch import collate, plan_batches
from plumbline.models.classifier import AttentionClassifier, Head, Output
from plumbline.models.encoders import GRU, BiLSTM, Transformer, convolve
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.attention.adversarial import AdversarialAttention
from plumbline.protocols.attention.permutation import permute_attention
from plumbline.registry import Registry
from plumbline.training.learner import parameter_groups

REGISTRY = Registry()
MODELS = [model.name for model in REGISTRY.all("model") if reads_one_text(model)]
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
    elif kind == "uniform":
        scores = np.zeros(len(hidden))
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


def numpy_gru(w, prefix, inputs):
    """Gates in the order reset, update, new."""
    h = np.zeros(w[f"{prefix}.weight_hh_l0"].shape[1])
    outputs = []
    for x in inputs:
        enters = np.split(w[f"{prefix}.weight_ih_l0"] @ x + w[f"{prefix}.bias_ih_l0"], 3)
        recurs = np.split(w[f"{prefix}.weight_hh_l0"] @ h + w[f"{prefix}.bias_hh_l0"], 3)
        r, z = (1 / (1 + np.exp(-(a + b))) for a, b in zip(enters[:2], recurs[:2], strict=True))
        h = (1 - z) * np.tanh(enters[2] + r * recurs[2]) + z * h
        outputs.append(h)
    return np.array(outputs)


def numpy_transformer(w, inputs, heads=4, prefix="encoder"):
    """Hidden states, and the self-attention [heads, length, length] of each layer."""

    def linear(x, name):
        return x @ w[f"{prefix}.{name}.weight"].T + w[f"{prefix}.{name}.bias"]

    def norm(x, name):
        scaled = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        return scaled * w[f"{prefix}.{name}.weight"] + w[f"{prefix}.{name}.bias"]

    hidden = linear(inputs, "linear")
    length, size = hidden.shape
    attention = []
    for t in range(length):
        for i in range(size // 2):
            angle = t / 10000 ** (2 * i / size)
            hidden[t, i] += np.sin(angle)
            hidden[t, size // 2 + i] += np.cos(angle)
    for layer in ("layers.0", "layers.1"):
        query, key, value = np.split(linear(norm(hidden, f"{layer}.norm"), f"{layer}.project"), 3, axis=1)
        mixed, weights = [], []
        for part in np.split(np.arange(size), heads):
            scores = query[:, part] @ key[:, part].T / np.sqrt(len(part))
            weights.append(np.array([softmax(row) for row in scores]))
            mixed.append(weights[-1] @ value[:, part])
        attention.append(weights)
        hidden = hidden + linear(np.concatenate(mixed, axis=1), f"{layer}.join")
        inner = np.maximum(linear(norm(hidden, f"{layer}.feed.0"), f"{layer}.feed.1"), 0)
        hidden = hidden + linear(inner, f"{layer}.feed.3")
    return norm(hidden, "norm"), np.array(attention)


def numpy_encoder(w, kind, embedded):
    if kind == "average":
        return np.tanh(embedded @ w["encoder.linear.weight"].T + w["encoder.linear.bias"])
    if kind in ("bilstm", "gru"):
        read = {"bilstm": numpy_lstm, "gru": numpy_gru}[kind]
        ahead = read(w, "encoder.forwards", embedded)
        back = read(w, "encoder.backwards", embedded[::-1])[::-1]
        return np.concatenate([ahead, back], axis=1)
    if kind == "transformer":
        return numpy_transformer(w, embedded)[0]
    parts = []
    for i, width in enumerate((1, 3, 5, 7)):
        kernel, bias = w[f"encoder.convolutions.{i}.weight"], w[f"encoder.convolutions.{i}.bias"]
        padded = np.pad(embedded, ((width // 2, width // 2), (0, 0)))
        windows = np.stack([padded[t : t + width].T for t in range(len(embedded))])
        parts.append(np.maximum(np.einsum("tdk,fdk->tf", windows, kernel) + bias, 0))
    return np.concatenate(parts, axis=1)


def sigmoid_classifiers():
    """The models of one attention and one output, with the names of their encoder and attention."""
    for declaration in REGISTRY.all("model"):
        stated = {name: option.default for name, option in declaration.options.items()}
        if declaration.attribute == "AttentionClassifier" and stated["output"] == "sigmoid":
            yield declaration.name, stated["encoder"], stated["attention"]


@pytest.mark.parametrize(("name", "encoder", "attention"), [*sigmoid_classifiers()])
def test_classifier_equals_numpy(name, encoder, attention):
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


@pytest.mark.parametrize("paired", [False, True])
def test_layers_of_the_small_transformer_equal_numpy(paired):
    instances = example_instances(paired=paired)
    model = example_model(REGISTRY.get("model", "transformer-tanh"), paired=paired).eval()
    w = arrays(model)
    with torch.no_grad():
        batch = whole_batch(instances)
        layers, readout, attention = model.layers(batch).numpy(), model.readout(batch), model(batch).attention
    width = batch.ids.shape[1]
    for i, ids in enumerate(instances.ids):
        expected = numpy_transformer(w, w["embedding.weight"][ids])[1]
        own, rest = slice(len(ids)), slice(len(ids), None)
        np.testing.assert_allclose(layers[i][:, :, own, own], expected, atol=1e-6)
        assert not layers[i][:, :, own, rest].any(), "no word attends to padding or to the second text"
        if not paired:
            assert torch.equal(readout, attention)
            continue
        seconds = instances.pair[i]
        expected = numpy_transformer(w, w["pair_embedding.weight"][seconds], prefix="pair_encoder")[1]
        own = slice(width, width + len(seconds))
        np.testing.assert_allclose(layers[i][:, :, own, own], expected, atol=1e-6)
        assert not layers[i][:, :, own, :width].any()
        torch.testing.assert_close(readout[i, :width], attention[i] / 2)
        torch.testing.assert_close(readout[i, own], torch.full((len(seconds),), 0.5 / len(seconds)))


def test_only_transformers_have_layers():
    batch = collate(INSTANCES.ids, INSTANCES.maskable)
    with pytest.raises(PlumblineError, match=r"^The encoder GRU has no self-attention layers; set `encoder` to tran"):
        example_model(REGISTRY.get("model", "gru-tanh")).layers(batch)
    having = {model.name for model in REGISTRY.all("model") if "layers" in model.provides and model.reads == "words"}
    assert having == {"transformer-tanh"}


def test_the_song_trains_single_texts_otherwise():
    for name in ("bilstm-song", "bilstm-song-uniform"):
        declaration = REGISTRY.get("model", name)
        training = Training(**declaration.training)
        assert (training.epochs, training.patience, training.first_eligible_epoch) == (40, 5, 1)
        assert (training.select_by, training.class_weights, training.reduction) == ("roc_auc", "none", "mean")
        assert (training.optimiser, training.batching) == ("amsgrad", "length-noise")
        assert declaration.tasks == ["classification"]
        (group,) = parameter_groups(example_model(declaration).named_parameters(), training)
        assert group[1] == 1e-5, "every parameter decays"


def test_sizes_of_the_study():
    declared = {name: REGISTRY.get("model", name) for name in MODELS if "-tanh" in name}
    models = {name: example_model(one, hidden=one.options["hidden"].default) for name, one in declared.items()}
    assert {name: model.encoder.size for name, model in models.items()} == {
        "bilstm-tanh": 256, "cnn-tanh": 256, "average-tanh": 128, "gru-tanh": 256, "transformer-tanh": 128
    }  # fmt: skip
    attention = models["bilstm-tanh"].attention
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


def test_softmax_output_has_a_number_for_each_class():
    """Recursive ROAR's output of two classes; its encoder and attention are those of the sigmoid's model."""
    declaration = REGISTRY.get("model", "bilstm-softmax")
    names = ("bilstm-softmax", "bilstm-tanh")
    model, sigmoid = (example_model(REGISTRY.get("model", name), hidden=128).eval() for name in names)
    assert model.head.linear.weight.shape == (2, 256) and sigmoid.head.linear.weight.shape == (1, 256)
    assert {name: tensor.shape for name, tensor in model.state_dict().items() if "head" not in name} == {
        name: tensor.shape for name, tensor in sigmoid.state_dict().items() if "head" not in name
    }
    w = arrays(model)
    labels = torch.arange(len(INSTANCES)) % 2
    with torch.no_grad():
        output = model(collate(INSTANCES.ids, INSTANCES.maskable))
    losses = []
    for i, ids in enumerate(INSTANCES.ids):
        hidden = numpy_encoder(w, "bilstm", w["embedding.weight"][ids])
        alpha = numpy_attention(w, hidden, "tanh")
        logits = w["head.linear.weight"] @ (alpha @ hidden) + w["head.linear.bias"]
        np.testing.assert_allclose(output.logits[i].numpy(), logits, atol=1e-6)
        losses.append(-np.log(softmax(logits)[labels[i]]))
    torch.testing.assert_close(
        nn.functional.cross_entropy(output.logits, labels, reduction="none").double(), torch.tensor(losses)
    )
    # The two numbers are free: unlike a sigmoid's they do not add up to 0.
    assert output.logits.sum(-1).abs().min() > 1e-4
    assert declaration.provides == ["attention", "gradient"] and "inference" in declaration.tasks


def test_heads_of_more_classes_are_the_same_whether_single_or_not():
    assert [Head(3, classes, single).linear.out_features for classes in (2, 3) for single in (True, False)] == [
        1, 2, 3, 3
    ]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", [15, 7 * 15, 10_000])
def test_probabilities_do_not_depend_on_batch_or_order(name, budget):
    model = example_model(REGISTRY.get("model", name))
    whole = Evaluator(model, 0, 10_000).probabilities(INSTANCES)
    order = np.random.default_rng(0).permutation(len(INSTANCES))
    shuffled = Evaluator(model, 0, budget).probabilities(INSTANCES.take(order))
    np.testing.assert_allclose(shuffled, whole[order], atol=1e-6)


@pytest.mark.parametrize("name", ["cnn-tanh", "transformer-tanh"])
def test_extra_padding_changes_nothing(name):
    model = example_model(REGISTRY.get("model", name)).eval()
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
    batches = plan_batches(lengths, 200)
    assert sorted(np.concatenate(batches)) == list(range(500))
    assert all(len(batch) * lengths[batch].max() <= 200 for batch in batches)
    # Greedy: no two neighbours would fit together.
    assert all((len(a) + 1) * lengths[b].min() > 200 for a, b in pairwise(batches))


def test_text_over_the_budget_gets_one_sentence():
    with pytest.raises(
        PlumblineError, match=r"A text of 30 tokens does not fit into `compute\.token_budget`, which is 20"
    ):
        plan_batches(np.array([3, 30]), 20)


def test_padding_vector_stays_zero():
    model = example_model(REGISTRY.get("model", "bilstm-tanh"))
    assert model.embedding.padding_idx == 0 and model.embedding.weight.shape == (WORDS, DIMENSIONS)
    assert model.embedding.weight[0].abs().sum() == 0


@pytest.mark.parametrize(("encoder", "layer"), [(BiLSTM, nn.LSTM), (GRU, nn.GRU)])
def test_recurrent_encoders_are_torchs_in_both_directions(encoder, layer):
    torch.manual_seed(0)
    ours, theirs = encoder(DIMENSIONS, 6), layer(DIMENSIONS, 6, batch_first=True, bidirectional=True)
    theirs.load_state_dict(
        {name: getattr(ours.forwards, name) for name, _ in ours.forwards.named_parameters()}
        | {f"{name}_reverse": getattr(ours.backwards, name) for name, _ in ours.backwards.named_parameters()}
    )
    batch = collate(INSTANCES.ids, INSTANCES.maskable)
    embedded = torch.randn(*batch.ids.shape, DIMENSIONS)
    hidden = ours(embedded, batch)
    summaries = ours.summary(hidden, batch)
    for i, ids in enumerate(INSTANCES.ids):
        expected, last = theirs(embedded[i : i + 1, : len(ids)])
        torch.testing.assert_close(hidden[i, : len(ids)], expected[0], atol=1e-6, rtol=0)
        last = last[0] if layer is nn.LSTM else last
        torch.testing.assert_close(summaries[i], last[:, 0].flatten(), atol=1e-6, rtol=0)


def test_transformer_sums_a_text_up_by_its_mean_and_is_the_same_in_training():
    torch.manual_seed(0)
    encoder = Transformer(DIMENSIONS, 12)
    batch = collate(INSTANCES.ids, None)
    embedded = torch.randn(*batch.ids.shape, DIMENSIONS)
    hidden = encoder.train()(embedded, batch)
    with torch.no_grad():
        assert torch.equal(encoder.eval()(embedded, batch), hidden)
    for i, ids in enumerate(INSTANCES.ids):
        torch.testing.assert_close(encoder.summary(hidden, batch)[i], hidden[i, : len(ids)].mean(0))
    with pytest.raises(PlumblineError, match=r"^`hidden` is 30; a transformer needs a multiple of 4\.$"):
        Transformer(DIMENSIONS, 30)


@pytest.mark.parametrize("name", ["average-uniform", "bilstm-uniform"])
@pytest.mark.parametrize("paired", [False, True])
def test_uniform_attention_is_one_over_the_words(name, paired):
    instances = example_instances(20, paired=paired)
    model = example_model(REGISTRY.get("model", name), paired=paired).requires_grad_(False)
    assert [*model.attention.parameters()] == []
    evaluator = Evaluator(model, 0, 200)
    for scores, free in zip(attention(evaluator, instances).scores, instances.maskable, strict=True):
        assert (scores == np.float32(1) / np.float32(free.sum())).all()
    change, largest, _ = permute_attention(evaluator, instances, 5)
    assert change.max() < 1e-6
    found = AdversarialAttention(steps=5)._seed(evaluator, instances)
    assert found["max_attention"][::2] == pytest.approx(largest) and np.isfinite(found["jsd"]).all()


def with_temperature(temperature):
    torch.manual_seed(0)
    vectors = 3 * torch.randn(WORDS, DIMENSIONS)
    return AttentionClassifier(vectors, CLASSES, encoder="average", temperature=temperature).requires_grad_(False)


def test_temperature_divides_the_scores():
    batch = collate(INSTANCES.ids, INSTANCES.maskable)
    spread = []
    for temperature in (0.05, 1.0, 3.0, 1e5):
        model = with_temperature(temperature)
        output = model(batch)
        scores = model.attention(model.encode(model.embedding(batch.ids), batch).hidden)
        for i, free in enumerate(INSTANCES.maskable):
            expected = softmax(scores[i, : len(free)].numpy()[free].astype(float) / temperature)
            found = output.attention[i, : len(free)].numpy()[free]
            np.testing.assert_allclose(found, expected, atol=1e-6)
            if temperature == 1e5:
                np.testing.assert_allclose(found, 1 / free.sum(), atol=1e-5)
        spread.append(float(output.attention.amax(1).mean()))
    assert spread == sorted(spread, reverse=True) and spread[0] > 2 * spread[-1]


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_temperature_must_be_above_zero(temperature):
    with pytest.raises(PlumblineError, match=rf"^`temperature` is {temperature:g}; it must be above 0\.$"):
        with_temperature(temperature)


@pytest.mark.parametrize("width", [1, 3, 7])
@pytest.mark.parametrize("length", [2, 9])
def test_a_convolution_is_that_of_pytorch(width: int, length: int) -> None:
    torch.manual_seed(0)
    layer = nn.Conv1d(5, 4, width, padding="same").double()
    signal = torch.randn(3, length, 5, dtype=torch.double, requires_grad=True)
    ours, theirs = convolve(signal, layer), layer(signal.transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(ours, theirs)
    weighted = torch.randn_like(ours)
    inputs = signal, layer.weight, layer.bias
    for mine, other in zip(
        torch.autograd.grad((ours * weighted).sum(), inputs),
        torch.autograd.grad((theirs * weighted).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)
