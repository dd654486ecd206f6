import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from plumbline.config.recipes import OBJECTIVE_TRAINING, Training
from plumbline.conformance import reads_one_text
from plumbline.data.instances import Instances
from plumbline.data.vocabulary import EOS, SOS
from plumbline.errors import PlumblineError
from plumbline.models.batch import collate
from plumbline.models.block import build_model, checkpoint_models, list_checkpoints, trained_models
from plumbline.models.budget import Budget
from plumbline.models.classifier import Output
from plumbline.registry import Registry
from plumbline.store import write_tensors
from plumbline.training.epochs import checkpoint_epochs, select_epoch
from plumbline.training.learner import batch_order, class_weights
from plumbline.training.optimisers import parameter_groups
from plumbline.training.trainer import BlockSpec, SeedSetup, split_rows, train_block, train_together, with_logits_check

REGISTRY = Registry()
FILLER, GOOD, BAD = 5, range(6, 10), range(10, 14)


def planted(split: str, count: int, seed: int) -> Instances:
    """Filler with one word that alone decides the label."""
    random = np.random.default_rng(seed)
    ids, labels = [], []
    for i in range(count):
        words = np.full(random.integers(4, 9), FILLER)
        words[random.integers(len(words))] = random.choice(GOOD if i % 2 else BAD)
        ids.append(np.concatenate([[SOS], words, [EOS]]).astype(np.int32))
        labels.append(i % 2)
    free = [np.array([False, *[True] * (len(row) - 2), False]) for row in ids]
    return Instances(np.array([split] * count), np.arange(count), np.array(labels, dtype=np.int32), ids, free)


SPLITS = {"train": planted("train", 200, 0), "dev": planted("dev", 60, 1), "test": planted("test", 60, 2)}
EMBEDDING = torch.randn(14, 10, generator=torch.Generator().manual_seed(0)) * (torch.arange(14) > 0)[:, None]
VECTORS = {"embedding": EMBEDDING}


def pointer(name):
    declaration = REGISTRY.get("model", name)
    return declaration.pointer, {key: option.default for key, option in declaration.options.items()}


def train(name="average-tanh", seeds=(0, 1), options=None, **changes):
    training = Training(**{"epochs": 4, "learning_rate": 0.01, **changes})
    place, usual = pointer(name)
    return train_block(BlockSpec(place, usual | (options or {}), VECTORS, SPLITS, 2, training), list(seeds), 4096)


@pytest.mark.parametrize("name", [m.name for m in REGISTRY.all("model") if m.reads == "words" and reads_one_text(m)])
def test_every_model_learns_a_planted_word(name):
    # Models that select words are to select about one of each text.
    options = {"rate": 0.2, "hidden": 64} if "rate" in pointer(name)[1] else {}
    changes = {"epochs": 16, "first_eligible_epoch": 1, "select_by": "accuracy", "stop_at": 1.0}
    _, _, predictions = train(name, [3], options, **changes)
    test = np.array(predictions["split"]) == "test"
    predicted = np.stack(predictions["probabilities"])[test].argmax(1)
    assert (predicted == np.array(predictions["label"])[test]).mean() >= 0.95


class Narrow(torch.nn.Module):
    """A plug-in with as many logits as it likes; one may go without a dimension of its own."""

    def __init__(self, embedding, classes, logits, flat):
        super().__init__()
        self.embedding = torch.nn.Embedding.from_pretrained(embedding, freeze=False)
        self.linear = torch.nn.Linear(embedding.shape[1], logits)
        self.flat = flat

    def forward(self, batch):
        logits = self.linear(self.embedding(batch.ids).mean(1))
        return Output(logits[:, 0] if self.flat else logits)


@pytest.mark.parametrize(("logits", "flat", "shape"), [(1, False, "32, 1"), (3, False, "32, 3"), (1, True, "32")])
def test_logits_that_are_not_one_for_each_class_are_refused_in_one_sentence(logits, flat, shape):
    message = rf"^The model 'Narrow' gives logits of shape \[{shape}\], but the dataset has 2 classes; its `forward` "
    message += r"must return Output\(logits\) with one logit per class, \[instances, 2\], also for two classes\.$"
    options, training = {"logits": logits, "flat": flat}, Training(batch_size=32)
    with pytest.raises(PlumblineError, match=message):
        train_block(BlockSpec(f"{__name__}:Narrow", options, VECTORS, SPLITS, 2, training), [0], 4096)


def test_the_logits_of_a_model_are_checked_only_once():
    model = with_logits_check(build_model(*pointer("average-tanh"), EMBEDDING, 2), 2)
    model(collate(SPLITS["dev"].ids[:2], SPLITS["dev"].maskable[:2]))
    assert not model._forward_hooks


def test_same_seed_gives_the_same_bytes_and_seeds_do_not_touch(tmp_path):
    together, alone = train(seeds=[0, 1]), train(seeds=[1])
    for name, tensor in alone[0].items():
        assert torch.equal(tensor, together[0][name])
    assert not torch.equal(together[0]["0/head.linear.weight"], together[0]["1/head.linear.weight"])
    write_tensors(tmp_path / "a", together[0])
    write_tensors(tmp_path / "b", train(seeds=[0, 1])[0])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_stored_block_predicts_as_it_did(tmp_path):
    weights, _, predictions = train()
    write_tensors(tmp_path / "w.safetensors", weights)
    stored = np.stack(predictions["probabilities"])
    for evaluator in trained_models(tmp_path / "w.safetensors", *pointer("average-tanh"), 2, [0, 1], 64):
        here = (np.array(predictions["seed"]) == evaluator.seed) & (np.array(predictions["split"]) == "dev")
        np.testing.assert_allclose(evaluator.probabilities(SPLITS["dev"]), stored[here], atol=1e-6)


def test_frozen_vectors_do_not_move():
    training = Training(epochs=2)
    weights, _, _ = train_block(
        BlockSpec(*pointer("bilstm-tanh"), VECTORS, SPLITS, 2, training, trainable=False), [0], 4096
    )
    assert torch.equal(weights["0/embedding.weight"], EMBEDDING)
    moved, _, _ = train_block(BlockSpec(*pointer("bilstm-tanh"), VECTORS, SPLITS, 2, training), [0], 4096)
    assert not torch.equal(moved["0/embedding.weight"], EMBEDDING)
    assert moved["0/embedding.weight"][0].abs().sum() == 0


def test_weight_decay_spares_the_attention():
    model = build_model(*pointer("bilstm-tanh"), EMBEDDING, 2)
    decay, free = parameter_groups(model.named_parameters(), Training())
    assert {id(p) for p in free[0]} == {id(p) for p in model.attention.parameters()}
    assert (decay[1], free[1]) == (1e-5, 0.0)
    assert len(parameter_groups(model.named_parameters(), Training(no_decay=[]))) == 1
    _, (biases, _) = parameter_groups(model.named_parameters(), Training(no_decay=["*.bias"]))
    assert {id(p) for p in biases} == {id(p) for name, p in model.named_parameters() if name.endswith(".bias")}


def test_class_weights_are_the_studys():
    assert class_weights(np.array([0, 0, 0, 1]), 2, "balanced").tolist() == [1.0, 3.0]
    assert class_weights(np.array([0, 1, 1]), 2, "balanced").tolist() == [1.0, 0.5]
    assert class_weights(np.array([0, 1, 1]), 2, "none").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("batching", ["length-noise", "shuffle"])
def test_every_instance_is_in_one_batch(batching):
    lengths = np.random.default_rng(0).integers(5, 200, size=333)
    batches = batch_order(lengths, Training(batching=batching), np.random.default_rng(1))
    assert sorted(np.concatenate(batches)) == list(range(333))
    assert sorted(map(len, batches)) == [13] + [32] * 10
    spread = np.mean([np.ptp(lengths[batch]) for batch in batches])
    assert spread < 40 if batching == "length-noise" else spread > 150


def test_epoch_is_chosen_on_the_named_split():
    _, history, _ = train(seeds=[0], select_by="accuracy")
    rows = [dict(zip(history, row, strict=True)) for row in zip(*history.values(), strict=True)]
    chosen = next(r["epoch"] for r in rows if r["metric"] == "chosen_epoch")
    accuracy = {r["epoch"]: r["value"] for r in rows if r["metric"] == "accuracy"}
    assert {r["split"] for r in rows} == {"train", "dev"}
    assert chosen >= 2 and accuracy[chosen] == max(value for epoch, value in accuracy.items() if epoch >= 2)
    assert chosen == min(e for e, v in accuracy.items() if e >= 2 and v == accuracy[chosen])
    assert {r["split"] for r in [dict(zip(h, x, strict=True)) for h in [train(seeds=[0], select_on="test")[1]]
            for x in zip(*h.values(), strict=True)]} == {"train", "test"}  # fmt: skip


def test_diverged_training_ends_and_is_reported():
    class Exploding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = build_model(*pointer("average-tanh"), EMBEDDING, 2)

        def forward(self, batch):
            output = self.inner(batch)
            return output._replace(logits=output.logits * float("nan"))

    training = Training(epochs=6)
    (trained,) = train_together(
        SeedSetup(Exploding, split_rows(SPLITS, 2, training, "cpu"), training), [0], Budget(4096)
    )
    assert {row["epoch"] for row in trained.history} == {1}
    assert np.isnan(next(row["value"] for row in trained.history if row["metric"] == "loss"))


def metric_values(history, split, metric):
    """The values of a metric, epoch by epoch."""
    rows = zip(*(history[key] for key in ("split", "metric", "value")), strict=True)
    return [value for *key, value in rows if key == [split, metric]]


def test_training_stops_at_the_given_score():
    whole, history, _ = train(seeds=[0], epochs=12, select_by="accuracy", learning_rate=0.004)
    accuracies = metric_values(history, "dev", "accuracy")
    first = 1 + next(i for i, value in enumerate(accuracies) if value >= 0.8)
    assert 2 < first < 12 and max(accuracies) > accuracies[first - 1], "or the test would be void"
    changes = {"epochs": 12, "select_by": "accuracy", "learning_rate": 0.004, "stop_at": accuracies[first - 1]}
    stopped, history, _ = train(seeds=[0], **changes)
    assert metric_values(history, "dev", "accuracy") == accuracies[:first]
    assert metric_values(history, "dev", "chosen_epoch") == [first]
    until, _, _ = train(seeds=[0], epochs=first, first_eligible_epoch=first, learning_rate=0.004)
    assert all(torch.equal(tensor, until[name]) for name, tensor in stopped.items())
    assert not torch.equal(stopped["0/head.linear.weight"], whole["0/head.linear.weight"])


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        ([0.5, 0.97, 0.99], {"stop_at": 0.97}, (2, True)),
        ([0.5, 0.96, 0.9], {"stop_at": 0.97}, (2, False)),
        # An epoch that is not eligible stops nothing; the next one need not be better than it.
        ([0.99, 0.98, 1.0], {"stop_at": 0.97, "first": 2}, (2, True)),
        ([0.5, 0.4, 0.4, 0.99], {"stop_at": 0.97, "patience": 2}, (1, True)),
        # 0.3 but for rounding, as a mean on another device may be.
        ([0.1, 0.7 - 0.4, 0.4], {"stop_at": 0.3}, (2, True)),
    ],
)
def test_the_epoch_at_which_training_stops_by_hand(values, options, expected):
    assert select_epoch(values, **options) == expected


@pytest.mark.parametrize(
    ("values", "least", "expected"),
    [
        ([0.5, 0.54, 0.56, 0.6, 0.62, 0.5, 0.68], 0.05, [1, 3, 5, 7]),
        ([0.9, 0.5, 0.94], 0.05, [1]),
        # By more than 0.05: 0.55 - 0.5 is more only by rounding.
        ([0.5, 0.55, 0.56], 0.05, [1, 3]),
        ([0.5, 0.5, 0.51], 0.0, [1, 3]),
    ],
)
def test_checkpoint_epochs_by_hand(values, least, expected):
    assert checkpoint_epochs(values, least) == expected


def test_checkpoints_are_the_models_of_their_epochs(tmp_path):
    changes = {"epochs": 8, "learning_rate": 0.004, "select_by": "accuracy"}
    plain, _, _ = train(seeds=[0, 1], **changes)
    weights, history, _ = train(seeds=[0, 1], checkpoint_gain=0.05, **changes)
    assert {name for name in weights if not name.startswith("checkpoints/")} == set(plain)
    assert all(torch.equal(weights[name], tensor) for name, tensor in plain.items()), "they change nothing else"
    write_tensors(tmp_path / "w.safetensors", weights)
    accuracies = metric_values(history, "dev", "accuracy")
    expected = [
        (seed, epoch) for seed in (0, 1) for epoch in checkpoint_epochs(accuracies[8 * seed : 8 * seed + 8], 0.05)
    ]
    assert list_checkpoints(tmp_path / "w.safetensors") == expected and len(expected) > 3
    models = checkpoint_models(tmp_path / "w.safetensors", *pointer("average-tanh"), 2, [1, 0], 4096)
    found = {(evaluator.seed, epoch): evaluator.probabilities(SPLITS["dev"]) for epoch, evaluator in models}
    assert list(found) == sorted(expected, key=lambda key: (key[0] == 0, key[1])), "seeds as given, epochs in order"
    for (seed, epoch), probabilities in found.items():
        until = train(seeds=[seed], epochs=epoch, first_eligible_epoch=epoch, learning_rate=0.004)[0]
        assert all(torch.equal(weights[f"checkpoints/{seed}/{epoch}/{n.split('/')[1]}"], t) for n, t in until.items())
        right = (probabilities.argmax(1) == SPLITS["dev"].label).mean()
        assert right == pytest.approx(accuracies[8 * seed + epoch - 1])
    write_tensors(tmp_path / "plain.safetensors", plain)
    assert list_checkpoints(tmp_path / "plain.safetensors") == []


@pytest.mark.parametrize("name", ["bag-of-words", "bilstm-softmax"])
def test_every_model_can_choose_by_its_loss(name):
    _, history, _ = train(name, seeds=[0], epochs=5, learning_rate=0.1, select_by="loss", first_eligible_epoch=1)
    losses = metric_values(history, "dev", "loss")
    assert len(losses) == 5 and metric_values(history, "dev", "chosen_epoch") == [1 + int(np.argmin(losses))]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"stop_at": 0.97, "select_by": "loss"},
            "`stop_at` is 0.97, but `select_by` is loss; set `select_by` to accuracy or",
        ),
        ({"stop_at": 97}, "less than or equal to 1"),
        (
            {"plateau_patience": 5},
            "`plateau_patience` is 5, but `schedule` is constant; set `schedule` to plateau or remove",
        ),
        ({"plateau_factor": 0.5, "schedule": "linear"}, "`plateau_factor` is 0.5, but `schedule` is linear"),
        ({"plateau_factor": 1, "schedule": "plateau"}, "less than 1"),
        (
            {"warmup": 0.1, "schedule": "plateau"},
            "`warmup` is 0.1, but `schedule` is plateau; set `schedule` to linear or",
        ),
        ({"clip_norm": 0}, "greater than 0"),
        ({"checkpoint_gain": -0.1}, "greater than or equal to 0"),
        (
            {"checkpoint_gain": 0.05, "select_on": "train", "select_by": "loss"},
            "`checkpoint_gain` needs the accuracy on `select_on`, which is not computed for the training split; set",
        ),
    ],
)
def test_recipes_that_contradict_themselves_are_refused(changes, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        Training(**changes)


def test_the_attention_model_of_zhou_et_al():
    """k = tanh(W h + b) of 200 numbers, the score q · k, a softmax over the words, and two outputs of 400 numbers."""
    torch.manual_seed(0)
    model = build_model(*pointer("bilstm-zhou"), EMBEDDING, 2).eval()
    w = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    shapes = {name: tuple(tensor.shape) for name, tensor in w.items() if "encoder" not in name and "emb" not in name}
    assert shapes == {
        "attention.project.weight": (200, 400), "attention.project.bias": (200,), "attention.score.weight": (1, 200),
        "head.linear.weight": (2, 400), "head.linear.bias": (2,),
    }  # fmt: skip
    reference = torch.nn.LSTM(10, 200, batch_first=True, bidirectional=True)
    reference.load_state_dict(
        {f"{n}_l0{end}": w[f"encoder.{way}.{n}_l0"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
         for way, end in (("forwards", ""), ("backwards", "_reverse"))}
    )  # fmt: skip
    texts = SPLITS["dev"]
    batch = collate(texts.ids, texts.maskable)
    with torch.no_grad():
        output = model(batch)
        packed = pack_padded_sequence(
            EMBEDDING[batch.ids], batch.present.sum(1), batch_first=True, enforce_sorted=False
        )
        hidden = pad_packed_sequence(reference(packed)[0], batch_first=True)[0]
        keys = torch.tanh(hidden @ w["attention.project.weight"].T + w["attention.project.bias"])
        for row, free, states in zip(range(len(texts)), texts.maskable, hidden, strict=True):
            free = torch.from_numpy(free)
            weight = torch.zeros(len(free))
            weight[free] = (keys[row, : len(free)][free] @ w["attention.score.weight"][0]).softmax(0)
            torch.testing.assert_close(output.attention[row, : len(free)], weight, atol=1e-6, rtol=1e-5)
            logits = w["head.linear.weight"] @ (weight @ states[: len(free)]) + w["head.linear.bias"]
            torch.testing.assert_close(output.logits[row], logits, atol=1e-5, rtol=1e-5)


def test_the_recipe_of_zhou_et_al():
    training = Training(**REGISTRY.get("model", "bilstm-zhou").training)
    assert (training.optimiser, training.learning_rate, training.weight_decay) == ("adam", 1e-3, 1e-5)
    assert (training.clip_norm, training.batch_size, training.epochs, training.stop_at) == (5, 250, 100, 0.97)
    assert (training.select_by, training.select_on, training.schedule) == ("accuracy", "dev", "constant")
    ((everything, decay),) = parameter_groups(
        build_model(*pointer("bilstm-zhou"), EMBEDDING, 2, trainable=False).named_parameters(), training
    )
    assert decay == 1e-5 and len(everything) == 8 + 3 + 2
    for changes in OBJECTIVE_TRAINING.values():
        adversary = Training(**training.model_copy(update={"checkpoint_gain": 0.05}).model_dump() | changes)
        assert (adversary.stop_at, adversary.checkpoint_gain, adversary.clip_norm) == (None, None, 5)
