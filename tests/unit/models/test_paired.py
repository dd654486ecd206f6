"""The model that reads both texts of a pair alike, against its equations written out for one pair at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from plumbline.config.recipes import Training
from plumbline.conformance import WORDS, example_instances, example_model, whole_batch
from plumbline.data.instances import Instances, Texts
from plumbline.models import evaluator
from plumbline.models.batch import Batch, collate
from plumbline.models.block import build_model, trained_models
from plumbline.models.encoders import CNN
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.attention.permutation import permute_attention
from plumbline.registry import Registry
from plumbline.store import write_tensors
from plumbline.training.learner import parameter_groups
from plumbline.training.trainer import BlockSpec, train_block

REGISTRY = Registry()
NAMES = ["bilstm-shared", "bilstm-shared-uniform"]
BOTH = pytest.mark.parametrize("name", NAMES)


def pairs(count=12, seed=0):
    """Pairs both of whose texts stand between two special tokens, and any class may be the answer."""
    drawn = example_instances(count, seed, paired=True)
    seconds = [np.concatenate([[2], second, [3]]).astype(np.int32) for second in drawn.pair]
    words = [np.arange(len(second)) % (len(second) - 1) > 0 for second in seconds]
    return replace(drawn, pair=seconds, pair_maskable=words, answers=None)


PAIRS = pairs()


def made(name, **options):
    return example_model(REGISTRY.get("model", name), paired=True, **options).eval().requires_grad_(False)


def by_hand(model, ids, words):
    """The states [words, H] of one text that may be attended and the weight of each, by PyTorch's own BiLSTM."""
    own = model.encoder
    lstm = nn.LSTM(own.forwards.input_size, own.forwards.hidden_size, batch_first=True, bidirectional=True)
    lstm.load_state_dict(
        {name: getattr(own.forwards, name) for name, _ in own.forwards.named_parameters()}
        | {f"{name}_reverse": getattr(own.backwards, name) for name, _ in own.backwards.named_parameters()}
    )
    with torch.no_grad():
        states = lstm(model.embedding.weight[torch.from_numpy(ids).long()][None])[0][0].numpy()[words]
    w = {name: tensor.numpy() for name, tensor in model.attention.state_dict().items()}
    if not w:
        return states, np.full(len(states), 1 / len(states))
    scores = [w["score.weight"][0] @ np.tanh(w["project.weight"] @ h + w["project.bias"]) for h in states]
    weights = np.exp(np.array(scores))
    return states, weights / weights.sum()


def compared(model, first, second):
    """Logits from the contexts of both texts."""
    weight, bias = model.head.linear.weight.numpy(), model.head.linear.bias.numpy()
    return weight @ np.concatenate([first, second, np.abs(first - second), first * second]) + bias


@BOTH
def test_it_follows_its_equations(name):
    model = made(name, hidden=128)
    output = model(whole_batch(PAIRS))
    for i in range(len(PAIRS)):
        (own, weights), (other, others) = (
            by_hand(model, PAIRS.ids[i], PAIRS.maskable[i]),
            by_hand(model, PAIRS.pair[i], PAIRS.pair_maskable[i]),
        )
        assert own.shape == (PAIRS.maskable[i].sum(), 256) and other.shape == (PAIRS.pair_maskable[i].sum(), 256)
        found, second = output.attention[i].numpy(), output.pair_attention[i].numpy()
        np.testing.assert_allclose(found[: len(PAIRS.ids[i])][PAIRS.maskable[i]], weights, atol=1e-6)
        np.testing.assert_allclose(second[: len(PAIRS.pair[i])][PAIRS.pair_maskable[i]], others, atol=1e-6)
        assert np.count_nonzero(found) == len(weights) and np.count_nonzero(second) == len(others)
        logits = compared(model, weights @ own, others @ other)
        np.testing.assert_allclose(output.logits[i].numpy(), logits, atol=2e-6)
    assert output.logits.std(0).min() > 0.001, "pairs must differ for the comparison to tell"


def test_uniform_contexts_are_plain_means_of_states():
    model = made("bilstm-shared-uniform")
    assert [*model.attention.parameters()] == []
    output = model(whole_batch(PAIRS))
    for i in range(len(PAIRS)):
        own, other = (
            by_hand(model, ids[i], words[i])[0].mean(0)
            for ids, words in ((PAIRS.ids, PAIRS.maskable), (PAIRS.pair, PAIRS.pair_maskable))
        )
        np.testing.assert_allclose(output.logits[i].numpy(), compared(model, own, other), atol=2e-6)


@BOTH
def test_padding_changes_nothing(name):
    model = made(name)
    batch = whole_batch(PAIRS)
    whole = model(batch)

    def widened(narrow):
        more = nn.functional.pad
        return Batch(
            more(narrow.ids, (0, 6), value=7), *(more(flag, (0, 6)) for flag in (narrow.present, narrow.attendable))
        )

    wide = model(replace(widened(batch), pair=widened(batch.pair)))
    torch.testing.assert_close(wide.logits, whole.logits, atol=1e-6, rtol=0)
    for part in ("attention", "pair_attention"):
        found, expected = getattr(wide, part), getattr(whole, part)
        torch.testing.assert_close(found[:, : expected.shape[1]], expected, atol=1e-6, rtol=0)
        assert not found[:, expected.shape[1] :].any()
    order = np.random.default_rng(0).permutation(len(PAIRS))
    probabilities = Evaluator(model, 0, 10_000).probabilities(PAIRS)
    some = Evaluator(model, 0, 30).probabilities(PAIRS.take(order))
    np.testing.assert_allclose(some, probabilities[order], atol=1e-6)


def test_both_texts_are_read_alike():
    """Texts that change places change attentions, and nothing in a half of the output that does not tell them apart."""
    model = made("bilstm-shared")
    turned = replace(PAIRS, ids=PAIRS.pair, maskable=PAIRS.pair_maskable, pair=PAIRS.ids, pair_maskable=PAIRS.maskable)
    model.head.linear.weight[:, :512] = 0
    one, other = model(whole_batch(PAIRS)), model(whole_batch(turned))
    torch.testing.assert_close(one.attention, other.pair_attention, atol=1e-6, rtol=0)
    torch.testing.assert_close(one.pair_attention, other.attention, atol=1e-6, rtol=0)
    torch.testing.assert_close(one.logits, other.logits, atol=1e-6, rtol=0)


def test_another_attention_leaves_the_second_text_as_it_is():
    model = made("bilstm-shared")
    batch = whole_batch(PAIRS)
    encoded = model.encode(model.embedding(batch.ids), batch)
    random = torch.rand(3, *batch.ids.shape, generator=torch.Generator().manual_seed(0)) * batch.attendable
    logits = model.decode(encoded, random).numpy()
    for i in range(len(PAIRS)):
        states = by_hand(model, PAIRS.ids[i], PAIRS.maskable[i])[0]
        other, others = by_hand(model, PAIRS.pair[i], PAIRS.pair_maskable[i])
        for k in range(3):
            weights = random[k, i, : len(PAIRS.ids[i])].numpy()[PAIRS.maskable[i]]
            np.testing.assert_allclose(logits[k, i], compared(model, weights @ states, others @ other), atol=5e-6)
    change, largest, _ = permute_attention(Evaluator(model, 0, 200), PAIRS, 5)
    assert change.max() > 1e-4
    np.testing.assert_allclose(largest, model.attend(encoded, batch).amax(1), atol=1e-6)


@BOTH
def test_leaving_words_out_of_long_texts_is_the_same_the_fast_way(name, monkeypatch):
    monkeypatch.setattr(evaluator, "LONG_TEXT", 1)
    reader = Evaluator(made(name), 0, 200)
    i = 9
    found = reader.probabilities_without(PAIRS, i)
    ids, words = PAIRS.ids[i], PAIRS.maskable[i]
    shortened = [np.arange(len(ids)) != t for t in np.flatnonzero(words)]
    pairs = [PAIRS.pair[i]] * len(shortened), None, [PAIRS.pair_maskable[i]] * len(shortened)
    expected = reader.probabilities(
        Texts([ids[kept] for kept in shortened], [words[kept] for kept in shortened], *pairs)
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


@BOTH
def test_there_is_one_table_of_vectors(name, tmp_path):
    declaration = REGISTRY.get("model", name)
    options = {key: option.default for key, option in declaration.options.items()}
    first, second = torch.randn(WORDS, 8), torch.randn(WORDS, 8)
    model = build_model(declaration.pointer, options, first, 3, second)
    tables = [key for key in model.state_dict() if "embedding" in key]
    assert tables == ["embedding.weight"] and torch.equal(model.embedding.weight, first)
    frozen = build_model(declaration.pointer, options, first, 3, second, trainable=False)
    assert [key for key, parameter in frozen.named_parameters() if not parameter.requires_grad] == tables
    write_tensors(tmp_path / "weights", {f"4/{key}": tensor for key, tensor in model.state_dict().items()})
    (again,) = trained_models(tmp_path / "weights", declaration.pointer, options, 3, [4], 500)
    assert np.array_equal(again.probabilities(PAIRS), Evaluator(model, 4, 500).probabilities(PAIRS))


@BOTH
def test_recipe_is_the_studys(name):
    declaration = REGISTRY.get("model", name)
    training = Training(**declaration.training)
    assert (training.epochs, training.patience, training.first_eligible_epoch) == (40, 5, 1)
    assert (training.select_by, training.class_weights, training.reduction) == ("accuracy", "none", "mean")
    assert (training.optimiser, training.learning_rate, training.batching) == ("amsgrad", 1e-3, "length-noise")
    (group,) = parameter_groups(made(name).requires_grad_(True).named_parameters(), training)
    assert group[1] == 1e-5, "every parameter decays"
    assert declaration.tasks == ["inference", "paraphrase"]
    width = declaration.options["hidden"].default
    assert made(name, hidden=width).head.linear.weight.shape[1] == 1024


def same_or_not(split, count, seed):
    """Pairs of texts of one of three words among others; whether it is the same one is the label."""
    random = np.random.default_rng(seed)
    label = np.arange(count, dtype=np.int32) % 2
    topics = random.integers(3, size=count)
    texts = []
    for topic in (topics, (topics + (1 - label) * random.integers(1, 3, size=count)) % 3):
        places = random.integers(4, size=count)
        noise = random.integers(10, 20, size=(count, 4))
        noise[np.arange(count), places] = 5 + topic
        texts.append([np.array([2, *row, 3], dtype=np.int32) for row in noise])
    words = [np.array([False, *[True] * 4, False])] * count
    return Instances(np.array([split] * count), np.arange(count), label, texts[0], words, texts[1], None, words)


def test_it_learns_whether_two_texts_say_the_same():
    declaration = REGISTRY.get("model", "bilstm-shared")
    splits = {
        name: same_or_not(name, size, seed)
        for seed, (name, size) in enumerate([("train", 400), ("dev", 60), ("test", 60)])
    }
    torch.manual_seed(0)
    vectors = torch.randn(20, 8)
    training = Training(**declaration.training | {"epochs": 12, "batch_size": 16, "learning_rate": 0.005})
    options = {"attention": "tanh", "hidden": 16}
    _, _, predictions = train_block(
        BlockSpec(declaration.pointer, options, {"embedding": vectors, "pair": vectors}, splits, 2, training), [0], 4096
    )
    here = np.array(predictions["split"]) == "test"
    predicted = np.stack(predictions["probabilities"])[here].argmax(1)
    assert (predicted == np.array(predictions["label"])[here]).mean() >= 0.95


def test_the_question_vector_of_a_cnn_is_of_its_words_alone():
    """As in the study's code, whose mask leaves out the special tokens: however large they are, they do not count."""
    encoder = CNN(3, 2)
    batch = collate([np.array([2, 7, 8, 3])], [np.array([False, True, True, False])])
    hidden = torch.zeros(1, 4, encoder.size)
    hidden[0, 0], hidden[0, 1], hidden[0, 3] = 9.0, 1.0, 5.0
    assert encoder.summary(hidden, batch).tolist() == [[1.0] * encoder.size]
