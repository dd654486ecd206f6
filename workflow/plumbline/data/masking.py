"""Masked texts: which words are masked at each level, and the resulting instances.

Masks have one flag per word, which is a maskable token: neither a special token nor one of a second text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.data.instances import Instances, ragged
from plumbline.data.vocabulary import MASK, UNK
from plumbline.errors import PlumblineError
from plumbline.store import read_json

Flags = Sequence[np.ndarray]


def masked_counts(words: np.ndarray, level: int, unit: str) -> np.ndarray:
    """The number of masked words of each text [N]: ⌊level · words / 100⌋, or at most `level`."""
    return words * level // 100 if unit == "relative" else np.minimum(level, words)


def masks_at(
    level: int, unit: str, scores: Sequence[np.ndarray], ties: Sequence[np.ndarray], before: Flags | None = None
) -> list[np.ndarray]:
    """The masked words of each text: those masked before, then those with the highest scores."""
    words = np.array([len(row) for row in scores], dtype=np.int64)
    return top_scored(scores, masked_counts(words, level, unit), ties, before)


def top_scored(
    scores: Sequence[np.ndarray], counts: np.ndarray, ties: Sequence[np.ndarray], before: Flags | None = None
) -> list[np.ndarray]:
    """Flags of `counts` words of each text: those flagged before, then those with the highest scores."""
    return [rank < count for rank, count in zip(word_ranks(scores, ties, before), counts, strict=True)]


def word_ranks(
    scores: Sequence[np.ndarray], ties: Sequence[np.ndarray], before: Flags | None = None
) -> list[np.ndarray]:
    """The place of each word in the order of its text, from 0: those flagged before, then from the highest score on.

    Ties are broken by the lower number in `ties`; breaking them by position would favour the beginning of texts for
    measures with many ties. NaN comes last.
    """
    words = np.array([len(row) for row in scores], dtype=np.int64)
    if not len(words):
        return []
    flat = np.concatenate([*scores]).astype(np.float64)
    masked = np.zeros(len(flat), dtype=bool) if before is None else np.concatenate([*before])
    row = np.repeat(np.arange(len(words)), words)
    starts = np.concatenate([[0], np.cumsum(words)[:-1]])
    flat = np.nan_to_num(flat, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    rank = np.empty(len(flat), dtype=np.int64)
    rank[np.lexsort((np.concatenate([*ties]), -flat, ~masked, row))] = np.arange(len(flat)) - starts[row]
    return np.split(rank, starts[1:])


def apply_masks(instances: Instances, masks: Flags | None, mask: int, other: int | None = None) -> Instances:
    """The instances with masked words replaced by `mask`, and, if given, all other words, those of second texts
    included, by `other`, so that only the positions of the masked words remain."""
    ids = []
    masks = masks or [np.zeros(int(free.sum()), dtype=bool) for free in instances.maskable]
    for tokens, free, masked in zip(instances.ids, instances.maskable, masks, strict=True):
        changed = tokens.copy()
        words = changed[free] if other is None else np.full(int(free.sum()), other, dtype=changed.dtype)
        words[masked] = mask
        changed[free] = words
        ids.append(changed)
    pair = instances.pair
    if other is not None and pair is not None:
        pair = [np.full_like(tokens, other) for tokens in pair]
    return replace(instances, ids=ids, pair=pair)


def uniform_masks(words: np.ndarray, chosen: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Random flags of the words of texts with `words` [N] words each, concatenated: of each `chosen` text [N] a share
    that is uniform in 0 … 1, so that every number of masked words is as probable; of others none."""
    shares = np.where(chosen, random.random(len(words)), 0)
    return random.random(int(words.sum())) < np.repeat(shares, words)


def special_ids(subwords: str | Sequence[str]) -> tuple[int, int]:
    """The ids of MASK and UNK; `subwords` is the path of the summary of a model's subword tokenizer, if it has one."""
    if not subwords:
        return MASK, UNK
    record = read_json(str(subwords))
    return record["mask_id"], record["unknown_id"]


def seed_rows(table: pa.Table, column: str, seed: int, instances: Instances) -> list[np.ndarray]:
    """A seed's rows of a list column, such as masks or scores, in the order of the instances."""
    table = table.filter(pc.equal(table["seed"], seed))
    keys = zip(table["split"].to_pylist(), table["instance"].to_pylist(), strict=True)
    row_of = dict(zip(keys, ragged(table[column]), strict=True))
    try:
        return [row_of[key] for key in zip(instances.split.tolist(), instances.instance.tolist(), strict=True)]
    except KeyError as error:
        split, number = error.args[0]
        raise PlumblineError(
            f"There are no {column} of seed {seed} for instance {number} of split '{split}'; delete the file that "
            "should contain them and run again."
        ) from None


def mask_columns(masks: Mapping[int, Flags], instances: Instances) -> dict[str, list[Any]]:
    """Columns of the table `masks`."""
    return {
        "seed": [seed for seed in masks for _ in range(len(instances))],
        "split": instances.split.tolist() * len(masks),
        "instance": instances.instance.tolist() * len(masks),
        "masked": [flags for rows in masks.values() for flags in rows],
    }
