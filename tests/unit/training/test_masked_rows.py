"""Masked training: which words are masked, by which draws, and that training without masks is unchanged."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from plumbline.config.recipes import Training
from plumbline.conformance import example_instances, example_model
from plumbline.data.masking import special_ids, uniform_masks
from plumbline.data.vocabulary import MASK
from plumbline.models.budget import Budget
from plumbline.models.rows import DeviceRows
from plumbline.registry import Registry
from plumbline.store import write_json, write_tensors
from plumbline.training.learner import Learner, batch_order
from plumbline.training.masked_rows import MaskedRows
from plumbline.training.trainer import SeedSetup, split_rows, train_together
from tests.unit.training.test_trainer import SPLITS, train

REGISTRY = Registry()
TRAIN = SPLITS["train"]
UNIFORM = Training(epochs=2, masking="uniform", batch_size=16)


def masked_words(ids: torch.Tensor) -> list[np.ndarray]:
    """The masked words of each training text; nothing else has changed."""
    tokens = np.concatenate(TRAIN.ids)
    changed = ids.numpy() != tokens
    assert (ids.numpy()[changed] == MASK).all() and np.concatenate(TRAIN.maskable)[changed].all()
    flags = np.split(changed, np.cumsum(TRAIN.lengths)[:-1])
    return [row[free] for row, free in zip(flags, TRAIN.maskable, strict=True)]


def test_half_of_each_batch_is_masked_in_its_words_alone():
    rows, random = MaskedRows(DeviceRows(TRAIN, "cpu"), MASK), np.random.default_rng(0)
    touched = np.zeros(len(TRAIN))
    for _ in range(30):
        batches = batch_order(TRAIN.lengths, UNIFORM, random)
        masked = np.array([row.any() for row in masked_words(rows.draw(batches, random))])
        # One text in n + 1 has a share too small for a single word.
        assert all(masked[batch].sum() <= len(batch) // 2 for batch in batches)
        touched += masked
    assert touched.mean() / 30 == pytest.approx(0.5 * np.mean([1 - 1 / (n - 1) for n in TRAIN.lengths]), abs=0.02)
    assert (touched > 0).all() and (touched < 30).all(), "the half is drawn anew"


def test_every_number_of_masked_words_is_as_probable():
    random, words = np.random.default_rng(0), np.full(5000, 7)
    chosen = random.random(5000) < 0.8
    counts = uniform_masks(words, chosen, random).reshape(-1, 7).sum(1)
    assert chisquare(np.bincount(counts[chosen], minlength=8)).pvalue > 0.01 and not counts[~chosen].any()
    assert uniform_masks(np.array([0, 3, 0]), np.ones(3, dtype=bool), random).shape == (3,)


class Seen(torch.nn.Module):
    """A model that keeps the ids of its training steps."""

    def __init__(self, name="average-tanh"):
        super().__init__()
        self.inner, self.ids = example_model(REGISTRY.get("model", name), torch.initial_seed()), []

    def forward(self, batch):
        if self.training:
            self.ids.append(batch.ids.clone())
        return self.inner(batch)


def steps(training, mask_id=MASK, name="average-tanh"):
    """The ids of each training step."""
    models = []
    splits = {split: example_instances(50, i, splits=[split]) for i, split in enumerate(("train", "dev", "test"))}
    rows = split_rows(splits, 2, training, "cpu")
    before = rows["train"].text.columns["ids"].clone()
    build = lambda: models.append(Seen(name)) or models[-1]  # noqa: E731
    train_together(SeedSetup(build, rows, training, mask_id=mask_id), [0], Budget(4096))
    assert torch.equal(rows["train"].text.columns["ids"], before), "the rows of other learners are unchanged"
    return models[0].ids


def test_steps_read_the_masked_ids_of_their_epoch():
    ids = steps(UNIFORM)
    masked = [(batch == MASK).any(1).sum().item() for batch in ids]
    assert all(0 <= count <= len(batch) // 2 for count, batch in zip(masked, ids, strict=True)) and sum(masked) > 10
    epochs = [torch.cat([batch[batch > MASK] for batch in epoch]).sort().values for epoch in (ids[:4], ids[4:])]
    assert not torch.equal(*epochs), "masks are redrawn"
    assert not any((batch == MASK).any() for batch in steps(UNIFORM.model_copy(update={"masking": "none"})))


def test_a_subword_model_is_masked_with_its_own_token(tmp_path):
    # An id that the examples do not have.
    write_json(tmp_path / "subwords.json", {"mask_id": 1, "unknown_id": 3})
    training = UNIFORM.model_copy(update={"epochs": 1, "first_eligible_epoch": 1})
    ids = torch.cat(
        [batch.flatten() for batch in steps(training, special_ids(tmp_path / "subwords.json")[0], "roberta")]
    )
    assert (ids == 1).sum() > 20 and not (ids == MASK).any()


def test_the_same_seed_gives_the_same_bytes_and_seeds_do_not_touch(tmp_path):
    for name in ("a", "b"):
        write_tensors(tmp_path / name, train(seeds=[0, 1], masking="uniform")[0])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    together, alone = train(seeds=[0, 1], masking="uniform")[0], train(seeds=[1], masking="uniform")[0]
    assert all(torch.equal(tensor, together[name]) for name, tensor in alone.items())
    assert not torch.equal(together["0/head.linear.weight"], train(seeds=[0])[0]["0/head.linear.weight"])


def test_training_without_masks_draws_nothing_but_the_order():
    training = Training(epochs=2)
    rows = split_rows(SPLITS, 2, training, "cpu")
    learner = Learner(Seen(), 3, rows, training, Budget(4096))
    assert learner.train is rows["train"]
    expected = np.random.default_rng(3)
    for _ in range(2):
        batches = batch_order(TRAIN.lengths, training, expected)
        learner.begin_epoch()
        assert learner.order[:, 0].tolist() == [batch[0] for batch in batches]
    assert learner._random.bit_generator.state == expected.bit_generator.state
