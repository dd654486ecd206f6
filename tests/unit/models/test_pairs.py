"""Texts with a question or hypothesis: preparation, models and measures."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from plumbline.attribution.attention import attention
from plumbline.attribution.gradient import gradient
from plumbline.attribution.leave_one_out import leave_one_out
from plumbline.config.recipes import Embedding, Preparation, Training
from plumbline.config.resolve import resolve
from plumbline.conformance import ANSWERS, CLASSES, example_instances, example_model, whole_batch
from plumbline.data.corpus import Corpus, Example
from plumbline.data.embeddings import second_vectors
from plumbline.data.instances import Instances, Texts
from plumbline.data.prepare import prepare
from plumbline.data.schemas import INSTANCES
from plumbline.errors import PlumblineError
from plumbline.models import evaluator
from plumbline.models.batch import Batch
from plumbline.models.block import build_model
from plumbline.models.deletion import states_without
from plumbline.models.encoders import BiLSTM
from plumbline.models.evaluator import Evaluator
from plumbline.models.rows import DeviceRows
from plumbline.registry import Registry
from plumbline.store import read_table, write_table
from plumbline.training.learner import Learner

REGISTRY = Registry()
NAMES = ["bilstm-tanh", "bilstm-dot", "cnn-tanh", "cnn-dot", "average-tanh", "average-dot"]
PAIRS = example_instances(paired=True)


def example(split: str = "train", **changes) -> Example:
    fields = {
        "label": 0,
        "tokens": ["Mary", "went"],
        "pair": ["Where", "is"],
        "answers": [0, 2],
        "evidence": [True, False],
    }
    return Example(split, **{**fields, **changes})


def prepared(*examples: Example, published: dict[str, int] | None = None):
    splits = [example(split, tokens=["Mary", "ran"]) for split in ("train", "dev", "test")]
    corpus = Corpus([*splits, *examples], ["hall", "garden", "office"], every_class=False)
    return prepare(corpus, Preparation(), "stories", published)


def test_second_texts_answers_and_evidence_are_stored_and_read(tmp_path):
    found = prepared(example("test", pair=["Where", "now"]))
    assert found.words[5:] == ["Mary", "Where", "is", "ran"], "words of questions count too"
    write_table(tmp_path / "i.parquet", INSTANCES, found.instances)
    table = read_table(tmp_path / "i.parquet", INSTANCES)
    assert table["tokens_b"].to_pylist()[-1] == ["<sos>", "Where", "now", "<eos>"]
    assert table["evidence"].to_pylist()[-1] == [False, True, False, False]
    instances = Instances.from_table(table, ["test"])
    assert instances.pair[1].tolist() == [2, 6, 1, 3] and instances.answers[1].tolist() == [0, 2]
    assert instances.take([1]).answers[0].tolist() == [0, 2]


def test_single_texts_have_no_second(tmp_path):
    corpus = Corpus([Example(s, 0, ["a"]) for s in ("train", "dev", "test")], ["only"])
    write_table(tmp_path / "i.parquet", INSTANCES, prepare(corpus, Preparation(), "one").instances)
    instances = Instances.from_table(read_table(tmp_path / "i.parquet", INSTANCES), ["train"])
    assert instances.pair is None and instances.answers is None


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (example(pair=None), "some texts have `pair` and some do not"),
        (example(answers=None), "some texts have `answers`"),
        (example(label=1), "its answer 'garden' is not among its `answers`"),
        (example(evidence=[True]), "`evidence` must have one flag per word"),
        (example(pair=[""]), "a word is the empty string"),
        (example(answers=[0, 3]), "3 in `answers` is not one of the 3 classes"),
    ],
)
def test_uneven_corpora_are_refused(bad, message):
    with pytest.raises(PlumblineError, match=message):
        prepared(bad)


def test_partial_data_are_marked_and_impossible_counts_refused():
    assert prepared().summary["partial"] == {}
    assert prepared(published={"train": 1, "test": 3}).summary["partial"] == {"test": {"texts": 1, "published": 3}}
    with pytest.raises(PlumblineError, match="split 'train' holds 2 texts, but only 1 were published"):
        prepared(example(), published={"train": 1})


def test_the_task_says_whether_there_are_second_texts():
    single = Corpus([Example(s, 0, ["a"]) for s in ("train", "dev", "test")], ["only"])
    prepare(single, Preparation(), "one", task="classification")
    with pytest.raises(PlumblineError, match="its task is question answering, so its texts must each have a `pair`"):
        prepare(single, Preparation(), "one", task="question answering")
    pairs = Corpus([example(s) for s in ("train", "dev", "test")], ["hall", "garden", "office"], every_class=False)
    with pytest.raises(PlumblineError, match="its task is classification, so its texts must have no `pair`"):
        prepare(pairs, Preparation(), "two", task="classification")


class Nameless(nn.Module):
    """A model that keeps the vectors of questions under a name of its own."""

    def __init__(self, embedding, classes, pair):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(embedding)
        self.questions = nn.Embedding.from_pretrained(pair)


def test_models_must_keep_their_vectors_where_they_are_found_again():
    with pytest.raises(PlumblineError, match=r"'Nameless' must store its word vectors as `self\.pair_embedding`"):
        build_model(f"{__file__}:Nameless", {}, torch.zeros(4, 2), 2, torch.zeros(4, 2))


def test_texts_without_a_question_are_dropped_and_counted():
    assert prepared(example(pair=[])).summary["dropped"] == {"no words": {"train": 1}}


def test_second_vectors_are_the_same_or_another_draw():
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(second_vectors(vectors, Embedding(kind="file")), vectors)
    drawn = second_vectors(vectors, Embedding(kind="random", seed=1))
    assert drawn.shape == vectors.shape and not drawn[0].any() and not np.allclose(drawn[1:], vectors[1:])


def by_hand(model, instances: Instances, i: int, encoder: str, kind: str) -> np.ndarray:
    """Probabilities of one instance from the equations, without batches or padding."""
    with torch.no_grad():
        hidden = [encoded(model.encoder, model.embedding, instances.ids[i], encoder)]
        question = encoded(model.pair_encoder, model.pair_embedding, instances.pair[i], encoder)
        if encoder == "bilstm":
            half = question.shape[-1] // 2
            query = torch.cat([question[-1, :half], question[0, half:]])
        else:
            query = question.max(0).values if encoder == "cnn" else question.mean(0)
        words = hidden[0][torch.from_numpy(instances.maskable[i])]
        if kind == "tanh":
            attend = model.attention
            scores = torch.stack([attend.score(torch.tanh(attend.project(h) + attend.query(query))) for h in words])[
                :, 0
            ]
        else:
            scores = words @ query / np.sqrt(len(query))
        context = (scores.softmax(0)[:, None] * words).sum(0)
        head = model.head
        logits = head.linear(torch.tanh(head.context(context) + head.query(query)))
        allowed = torch.isin(torch.arange(ANSWERS), torch.from_numpy(instances.answers[i]))
        return logits.masked_fill(~allowed, -torch.inf).softmax(0).numpy()


def encoded(layer, embedding, ids: np.ndarray, encoder: str) -> torch.Tensor:
    signal = embedding(torch.from_numpy(ids).long())
    if encoder == "average":
        return torch.tanh(layer.linear(signal))
    if encoder == "cnn":
        return torch.cat([c(signal.T[None])[0] for c in layer.convolutions]).relu().T
    ahead = layer.forwards(signal[None])[0][0]
    return torch.cat([ahead, layer.backwards(signal.flip(0)[None])[0][0].flip(0)], dim=-1)


@pytest.mark.parametrize("name", NAMES)
def test_models_of_pairs_follow_their_equations(name):
    model = example_model(REGISTRY.get("model", name), paired=True).eval()
    found = Evaluator(model, 0, 40).probabilities(PAIRS)
    for i in range(len(PAIRS)):
        np.testing.assert_allclose(found[i], by_hand(model, PAIRS, i, *name.split("-")), atol=1e-6)
        barred = np.setdiff1d(np.arange(ANSWERS), PAIRS.answers[i])
        assert (found[i][barred] == 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_measures_of_pairs_explain_the_first_text_alone(name):
    model = example_model(REGISTRY.get("model", name), paired=True).requires_grad_(False)
    reader = Evaluator(model, 0, 40)
    before = reader.probabilities(PAIRS)
    found = leave_one_out(reader, PAIRS).scores
    for i in range(len(PAIRS)):
        ids, free = PAIRS.ids[i], PAIRS.maskable[i]
        rows = [
            Texts([np.delete(ids, t)], [np.delete(free, t)], [PAIRS.pair[i]], [PAIRS.answers[i]])
            for t in np.flatnonzero(free)
        ]
        expected = [np.abs(reader.probabilities(row)[0] - before[i]).sum() for row in rows]
        np.testing.assert_allclose(found[i], expected, atol=1e-6)
    weights, slopes = attention(reader, PAIRS).scores, gradient(reader, PAIRS)
    assert all(w.sum() == pytest.approx(1, abs=1e-5) for w in weights)
    assert slopes.target.tolist() == before.argmax(1).tolist()
    # The question matters, so other questions give other explanations.
    others = replace(PAIRS, pair=PAIRS.pair[1:] + PAIRS.pair[:1], pair_maskable=None)
    assert not all(np.allclose(a, b) for a, b in zip(gradient(reader, others).scores, slopes.scores, strict=True))


def test_gradient_is_of_the_probability_with_attention_held():
    model = example_model(REGISTRY.get("model", "average-tanh"), paired=True).requires_grad_(False).double()
    reader = Evaluator(model, 0, 1000)
    i = 7
    found = gradient(reader, PAIRS.take([i])).scores[0]
    batch = whole_batch(PAIRS.take([i]))
    embedded = model.embedding(batch.ids)
    weights = model.attend(model.encode(embedded, batch), batch)
    target = int(reader.probabilities(PAIRS.take([i]))[0].argmax())

    def probability(scale: torch.Tensor) -> float:
        return float(model.decode(model.encode(embedded * scale[None, :, None], batch), weights).softmax(-1)[0, target])

    ones = torch.ones(batch.ids.shape[1], dtype=torch.double)
    for place, t in enumerate(np.flatnonzero(PAIRS.maskable[i])):
        step = torch.zeros_like(ones)
        step[t] = 1e-5
        slope = (probability(ones + step) - probability(ones - step)) / 2e-5
        assert found[place] == pytest.approx(abs(slope), abs=1e-7)


def test_mean_reduction_differs_from_sum_by_the_weight_of_the_decay():
    def moved(**options) -> torch.Tensor:
        training = Training(epochs=2, batch_size=4, select_by="accuracy", class_weights="none", **options)
        from plumbline.models.budget import Budget

        rows = DeviceRows(PAIRS, "cpu", {"weight": np.ones(len(PAIRS), dtype=np.float32)})
        learner = Learner(
            example_model(REGISTRY.get("model", "average-tanh"), paired=True),
            0,
            {"train": rows, "dev": rows},
            training,
            Budget(400),
        )
        for number in range(len(learner.begin_epoch())):
            learner.step(number)
        return learner.model.head.linear.weight.detach().clone()

    decay = {"no_decay": [], "weight_decay": 0.4}
    torch.testing.assert_close(
        moved(reduction="mean", **decay), moved(reduction="sum", **decay | {"weight_decay": 1.6}), atol=1e-5, rtol=0
    )
    assert not torch.allclose(moved(reduction="mean", **decay), moved(reduction="sum", **decay))


STUDY = {"datasets": {"mock-2": {}}, "models": {"bilstm-tanh": {}, "cnn-tanh": {}}, "measures": ["attention"]}


def with_recipes(tmp_path, dataset_entry: dict, model_entry: dict):
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "from plumbline.registry import dataset\n"
        "@dataset('asked', task='question answering', training={'epochs': 100, 'batch_size': 50},\n"
        "         model_options={'encoder=bilstm:hidden': 32, 'encoder=cnn:hidden': 8, 'depth': 3})\n"
        "def asked(raw, seed):\n    '''Questions.'''\n"
    )
    models = {"bilstm-tanh": model_entry, "cnn-tanh": {}, "bag-of-words": {}}
    return resolve(
        STUDY | {"plugins": [str(plugin)], "datasets": {"asked": dataset_entry, "mock-2": {}}, "models": models}
    )


def test_datasets_say_how_their_study_trained_and_the_config_wins(tmp_path):
    found = with_recipes(tmp_path, {}, {})
    assert found.trainings["asked", "bilstm-tanh"].reduction == "mean", "as for all questions"
    assert found.trainings["mock-2", "bilstm-tanh"].reduction == "sum"
    assert (
        found.trainings["asked", "bilstm-tanh"].epochs == 100 and found.trainings["mock-2", "bilstm-tanh"].epochs == 8
    )
    assert [found.model_options["asked", m]["hidden"] for m in ("bilstm-tanh", "cnn-tanh")] == [32, 8]
    assert found.model_options["mock-2", "bilstm-tanh"]["hidden"] == 128
    assert found.model_options["asked", "bag-of-words"] == {}
    found = with_recipes(tmp_path, {}, {"hidden": 5, "training": {"epochs": 3}})
    assert found.model_options["asked", "bilstm-tanh"]["hidden"] == 5
    assert (
        found.trainings["asked", "bilstm-tanh"].epochs == 3 and found.trainings["asked", "bilstm-tanh"].batch_size == 50
    )
    found = with_recipes(tmp_path, {"training": {"epochs": 4}}, {"training": {"epochs": 3}})
    assert [found.trainings[d, "bilstm-tanh"].epochs for d in ("asked", "mock-2")] == [4, 3]
    with pytest.raises(PlumblineError, match=r"`datasets\.asked\.training\.epoch`"):
        with_recipes(tmp_path, {"training": {"epoch": 4}}, {})


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("name", ["bilstm-tanh", "bilstm-dot"])
def test_long_texts_without_each_word_equal_reading_each_shortened_text(name, paired, monkeypatch):
    random = np.random.default_rng(0)
    short = example_instances(3, paired=paired)
    ids = [np.concatenate([[2], random.integers(5, 40, size=n), [3]]).astype(np.int32) for n in (70, 95, 64)]
    free = [np.concatenate([[False], np.ones(len(row) - 2, dtype=bool), [False]]) for row in ids]
    # A word that may not be masked: it is never deleted, and never attended.
    free[0][30] = False
    long = replace(short, ids=ids, maskable=free)
    model = example_model(REGISTRY.get("model", name), paired=paired).requires_grad_(False)
    found = {}
    for budget in (104, 20_000):
        reader = Evaluator(model, 0, budget)
        assert reader.probabilities_without(long, 0).shape == (69, ANSWERS if paired else CLASSES)
        found[budget] = leave_one_out(reader, long).scores
    monkeypatch.setattr(evaluator, "LONG_TEXT", 1000)
    assert Evaluator(model, 0, 400).probabilities_without(long, 0) is None
    expected = leave_one_out(Evaluator(model, 0, 400), long).scores
    assert max(score.max() for score in expected) > 1e-4
    for scores in found.values():
        for one, other in zip(scores, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


def test_states_of_a_strong_memory_are_not_taken_for_forgotten():
    """Forget gates that stay open carry a deleted word to the end of the text."""
    torch.manual_seed(0)
    encoder = BiLSTM(6, 5).requires_grad_(False)
    for layer in (encoder.forwards, encoder.backwards):
        layer.bias_ih_l0[5:10] = 6.0
    embedded, places = torch.randn(80, 6), torch.arange(1, 79)
    found = states_without(encoder, embedded, places)
    for row, place in enumerate(places.tolist()):
        shorter = torch.cat([embedded[:place], embedded[place + 1 :]])[None]
        expected = encoder(shorter, Batch(*[torch.ones(1, 79, dtype=torch.bool)] * 3))[0]
        kept = torch.cat([found[row, :place], found[row, place + 1 :]])
        torch.testing.assert_close(kept, expected, atol=1e-5, rtol=0)
    assert (found[0, -1] - found[-1, -1]).abs().max() > 1e-4
