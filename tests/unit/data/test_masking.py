"""Masks at every level against a slow reference, and the masked texts."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from plumbline import store
from plumbline.config.recipes import Training
from plumbline.conformance import example_instances, example_model
from plumbline.data.instances import Instances
from plumbline.data.masking import apply_masks, mask_columns, masked_counts, masks_at, seed_rows, special_ids
from plumbline.data.schemas import MASKS
from plumbline.data.vocabulary import MASK, SPECIALS, UNK
from plumbline.errors import PlumblineError
from plumbline.registry import Registry
from plumbline.training.trainer import BlockSpec, train_block

LEVELS = {"relative": list(range(10, 101, 10)), "absolute": list(range(1, 11))}


def instances(paired=False, count=60):
    """Texts of 1 to 23 words, many shorter than ten."""
    random = np.random.default_rng(7)
    ids = [random.integers(len(SPECIALS), 40, size=1 + i % 23) for i in range(count)]
    whole = [np.concatenate([[2], words, [3]]).astype(np.int32) for words in ids]
    maskable = [np.array([False, *[True] * len(words), False]) for words in ids]
    pair = [random.integers(len(SPECIALS), 40, size=4).astype(np.int32) for _ in ids] if paired else None
    return Instances(
        np.array(["train", "dev", "test"])[np.arange(count) % 3],
        np.arange(count, dtype=np.int32),
        np.arange(count, dtype=np.int32) % 2,
        whole,
        maskable,
        pair,
    )


def drawn(texts, level):
    """Random scores with many ties."""
    random = np.random.default_rng(level)
    return [random.integers(0, 4, size=int(free.sum())).astype(np.float32) / 3 for free in texts.maskable]


def slowly(tokens, maskable, scores, ties, level, unit, before):
    """One text as in the study: not maskable is −∞, already masked +∞, then the m highest one by one; ties are broken
    by the lower number."""
    n = sum(maskable)
    m = (level * n) // 100 if unit == "relative" else min(level, n)
    ranked, word = [], 0
    for position in range(len(tokens)):
        if not maskable[position]:
            ranked.append((-np.inf, 0))
            continue
        ranked.append((np.inf if before[position] else scores[word], -ties[word]))
        word += 1
    masked = [False] * len(tokens)
    for _ in range(m):
        best = None
        for position, score in enumerate(ranked):
            if not masked[position] and maskable[position] and (best is None or score > ranked[best]):
                best = position
        masked[best] = True
    return masked


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("unit", ["relative", "absolute"])
@pytest.mark.parametrize("recursive", [False, True])
def test_every_level_equals_the_slow_reference(paired, unit, recursive):
    texts = instances(paired)
    before, tokens_before = None, [np.zeros(len(ids), dtype=bool) for ids in texts.ids]
    levels, ties = [], texts.ties(7)
    for level in LEVELS[unit]:
        scores = drawn(texts, level if recursive else 0)
        masks = masks_at(level, unit, scores, ties, before if recursive else None)
        left = apply_masks(texts, masks, MASK)
        for i, ids in enumerate(texts.ids):
            start = tokens_before[i] if recursive else [False] * len(ids)
            expected = slowly(ids, texts.maskable[i], scores[i], ties[i], level, unit, start)
            assert left.ids[i].tolist() == [
                MASK if hidden else word for hidden, word in zip(expected, ids, strict=True)
            ]
            tokens_before[i] = np.array(expected)
            assert masks[i].tolist() == [flag for flag, free in zip(expected, texts.maskable[i], strict=True) if free]
        if paired:
            assert all((a == b).all() for a, b in zip(left.pair, texts.pair, strict=True))
        levels.append(masks)
        before = masks
    for lower, higher in pairwise(levels):
        assert all((~one | other).all() for one, other in zip(lower, higher, strict=True)), "levels are nested"
    if unit == "relative":
        assert all(mask.all() for mask in levels[-1])
        short = [i for i, free in enumerate(texts.maskable) if free.sum() < 10]
        assert short and not any(levels[0][i].any() for i in short)


def test_counts_are_floors_in_whole_numbers():
    # 0.7 * 10 in floats is 7.000000000000001 or 6.999..., depending on how it is written; 29 * 100 % is not below 29.
    words = np.arange(1, 500)
    for level in range(1, 101):
        assert masked_counts(words, level, "relative").tolist() == [level * n // 100 for n in words.tolist()]
    assert masked_counts(np.array([1, 3, 12]), 10, "absolute").tolist() == [1, 3, 10]


def test_ties_go_to_the_lower_number_and_nan_comes_last():
    ties = [np.array([0.5, 0.0, 0.9, 0.1])]
    (mask,) = masks_at(2, "absolute", [np.array([1.0, np.nan, 1.0, 1.0], dtype=np.float32)], ties)
    assert mask.tolist() == [True, False, False, True]
    (mask,) = masks_at(3, "absolute", [np.array([np.nan, -np.inf, 0.0], dtype=np.float32)], [np.zeros(3)])
    assert mask.tolist() == [True, True, True]
    scores = [np.array([np.inf, 5.0], dtype=np.float32)]
    (mask,) = masks_at(1, "absolute", scores, [np.zeros(2)], [np.array([False, True])])
    assert mask.tolist() == [False, True], "a masked word stays masked whatever the scores"


def test_tied_words_are_masked_at_any_position():
    """Of texts whose words all tie, each position is masked equally often."""
    texts = instances(count=3)
    texts = texts.take([int(np.argmax([free.sum() for free in texts.maskable]))])
    words = int(texts.maskable[0].sum())
    flat = [np.zeros(words)]
    share = np.mean([masks_at(50, "relative", flat, texts.ties(seed))[0] for seed in range(2000)], axis=0)
    assert np.abs(share - (words // 2) / words).max() < 0.06
    again, apart = texts.ties(1), texts.generator(0, 1).random(words)
    assert (again[0] == texts.ties(1)[0]).all() and not np.allclose(again[0], apart), "a stream of its own"


def test_only_positions_remain():
    texts = instances(paired=True, count=6)
    masks = masks_at(50, "relative", drawn(texts, 1), texts.ties(0))
    left = apply_masks(texts, masks, MASK, UNK)
    for i, free in enumerate(texts.maskable):
        assert left.ids[i][~free].tolist() == texts.ids[i][~free].tolist()
        assert left.ids[i][free].tolist() == np.where(masks[i], MASK, UNK).tolist()
        assert set(left.pair[i].tolist()) == {UNK}
    nothing = apply_masks(texts, None, MASK, UNK)
    assert all(set(ids[free].tolist()) == {UNK} for ids, free in zip(nothing.ids, texts.maskable, strict=True))
    assert (texts.ids[0] != MASK).all(), "the texts themselves are as they were"


def test_masks_are_found_again_by_seed_and_instance(tmp_path):
    texts = instances(count=9)
    masks = {seed: masks_at(40, "relative", drawn(texts, seed), texts.ties(seed)) for seed in (3, 5)}
    path = tmp_path / "masks.parquet"
    store.write_table(path, MASKS, mask_columns(masks, texts))
    table = store.read_table(path, MASKS)
    turned = table.take(pa.array(np.arange(len(table))[::-1]))
    for seed in (3, 5):
        for read in (table, turned):
            found = seed_rows(read, "masked", seed, texts)
            assert all((a == b).all() for a, b in zip(found, masks[seed], strict=True))
    with pytest.raises(PlumblineError, match="no masked of seed 3 for instance 8 of split 'test'"):
        seed_rows(table.slice(0, 8), "masked", 3, texts)


def test_ids_of_special_tokens(tmp_path):
    assert special_ids([]) == (MASK, UNK)
    store.write_json(tmp_path / "subwords.json", {"mask_id": 50, "unknown_id": 3})
    assert special_ids(str(tmp_path / "subwords.json")) == (50, 3)


def test_each_seed_learns_its_own_texts():
    """Seed 1's texts are all masked, so that it cannot learn; seed 0 learns as it would alone."""
    texts = example_instances(count=36)
    texts = replace(texts, split=np.array(["train"] * 24 + ["dev"] * 6 + ["test"] * 6))
    splits = texts.by_split()
    masks = masks_at(100, "relative", [np.zeros(int(free.sum())) for free in texts.maskable], texts.ties(0))
    variants = {0: splits, 1: apply_masks(texts, masks, MASK).by_split()}
    declaration = Registry().get("model", "bag-of-words")
    model = example_model(declaration)
    vectors = {"embedding": model.embedding.weight.detach()}
    training = Training(epochs=2, batch_size=8, first_eligible_epoch=1, select_by="accuracy")
    spec = BlockSpec(declaration.pointer, {}, vectors, splits, 2, training)
    weights, _, predictions = train_block(replace(spec, masked_instances=variants, predicted=["test"]), [0, 1], 4096)
    alone, _, _ = train_block(spec, [0], 4096)
    assert all((weights[name] == alone[name]).all() for name in alone)
    seeds, rows = np.array(predictions["seed"]), np.stack(predictions["probabilities"])
    assert set(predictions["split"]) == {"test"}
    assert np.ptp(rows[seeds == 1], axis=0).max() < 1e-6 < np.ptp(rows[seeds == 0], axis=0).max()
