import numpy as np
import pytest
import torch

from plumbline.config.recipes import Training
from plumbline.conformance import reads_one_text
from plumbline.data.instances import Instances
from plumbline.data.vocabulary import EOS, SOS
from plumbline.models.block import build, trained_models
from plumbline.models.budget import Budget
from plumbline.models.learner import batch_order, class_weights, parameter_groups
from plumbline.models.trainer import split_rows, train_block, train_together
from plumbline.registry import Registry
from plumbline.store import write_tensors

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


def train(name="average-tanh", seeds=(0, 1), **changes):
    training = Training(**{"epochs": 4, "learning_rate": 0.01, **changes})
    return train_block(*pointer(name), VECTORS, True, SPLITS, 2, training, list(seeds), 4096)


@pytest.mark.parametrize("name", [m.name for m in REGISTRY.all("model") if m.reads == "words" and reads_one_text(m)])
def test_every_model_learns_a_planted_word(name):
    _, _, predictions = train(name, seeds=[3], epochs=16, first_eligible_epoch=1, select_by="accuracy")
    test = np.array(predictions["split"]) == "test"
    predicted = np.stack(predictions["probabilities"])[test].argmax(1)
    assert (predicted == np.array(predictions["label"])[test]).mean() >= 0.95


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
    weights, _, _ = train_block(*pointer("bilstm-tanh"), VECTORS, False, SPLITS, 2, training, [0], 4096)
    assert torch.equal(weights["0/embedding.weight"], EMBEDDING)
    moved, _, _ = train_block(*pointer("bilstm-tanh"), VECTORS, True, SPLITS, 2, training, [0], 4096)
    assert not torch.equal(moved["0/embedding.weight"], EMBEDDING)
    assert moved["0/embedding.weight"][0].abs().sum() == 0


def test_weight_decay_spares_the_attention():
    model = build(*pointer("bilstm-tanh"), EMBEDDING, 2)
    decay, free = parameter_groups(model, Training())
    assert {id(p) for p in free[0]} == {id(p) for p in model.attention.parameters()}
    assert (decay[1], free[1]) == (1e-5, 0.0)
    assert len(parameter_groups(model, Training(no_decay=[]))) == 1
    _, (biases, _) = parameter_groups(model, Training(no_decay=["*.bias"]))
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


def test_diverged_training_ends_and_is_told():
    class Exploding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = build(*pointer("average-tanh"), EMBEDDING, 2)

        def forward(self, batch):
            output = self.inner(batch)
            return output._replace(logits=output.logits * float("nan"))

    training = Training(epochs=6)
    (trained,) = train_together(Exploding, split_rows(SPLITS, 2, training, "cpu"), training, [0], Budget(4096))
    assert {row["epoch"] for row in trained.history} == {1}
    assert np.isnan(next(row["value"] for row in trained.history if row["metric"] == "loss"))
