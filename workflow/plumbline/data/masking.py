"""Texts with words masked: which words, level by level, and the texts that this leaves.

Masks have one flag per word, which is a token that may be masked: neither a special one nor one of a second text.
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


def counts_at(words: np.ndarray, level: int, unit: str) -> np.ndarray:
    """How many of a text's words [N] are masked: ⌊level · words / 100⌋, or `level` of them or all."""
    return words * level // 100 if unit == "relative" else np.minimum(level, words)


def masks_at(
    level: int, unit: str, scores: Sequence[np.ndarray], ties: Sequence[np.ndarray], before: Flags | None = None
) -> list[np.ndarray]:
    """Which words of each text are masked: those that already are, then those with the highest scores."""
    words = np.array([len(row) for row in scores], dtype=np.int64)
    return highest(scores, counts_at(words, level, unit), ties, before)


def highest(
    scores: Sequence[np.ndarray], counts: np.ndarray, ties: Sequence[np.ndarray], before: Flags | None = None
) -> list[np.ndarray]:
    """So many words of each text, flagged: those that already are, then those with the highest scores.

    Of equal scores that with the lower number in `ties` comes first: by position, measures that tie many words would
    take those at the beginning. A score that is no number comes last.
    """
    words = np.array([len(row) for row in scores], dtype=np.int64)
    if not len(words):
        return []
    flat = np.concatenate([*scores]).astype(np.float64)
    masked = np.zeros(len(flat), dtype=bool) if before is None else np.concatenate([*before])
    row = np.repeat(np.arange(len(words)), words)
    starts = np.concatenate([[0], np.cumsum(words)[:-1]])
    drawn = np.concatenate([*ties])
    order = np.lexsort((drawn, -np.nan_to_num(flat, nan=-np.inf, posinf=np.inf, neginf=-np.inf), ~masked, row))
    rank = np.empty(len(flat), dtype=np.int64)
    rank[order] = np.arange(len(flat)) - starts[row]
    chosen = rank < counts[row]
    return np.split(chosen, starts[1:])


def with_masks(instances: Instances, masks: Flags | None, mask: int, other: int | None = None) -> Instances:
    """The instances with `mask` in the place of masked words, if any are. With `other`, that is what all other words
    become, those of second texts too, so that nothing is left but which words are masked."""
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


def special_ids(subwords: str | Sequence[str]) -> tuple[int, int]:
    """The ids of a masked word and of a word that is not told; `subwords` is the record of a model's own subwords, if
    it has such."""
    if not subwords:
        return MASK, UNK
    record = read_json(str(subwords))
    return record["mask_id"], record["unknown_id"]


def of_seed(table: pa.Table, column: str, seed: int, instances: Instances) -> list[np.ndarray]:
    """A seed's rows of a list column, such as masks or scores, in the order of the instances."""
    table = table.filter(pc.equal(table["seed"], seed))
    keys = list(zip(table["split"].to_pylist(), table["instance"].to_pylist(), strict=True))
    wanted = list(zip(instances.split.tolist(), instances.instance.tolist(), strict=True))
    rows = ragged(table[column])
    if keys != wanted:
        place = {key: i for i, key in enumerate(keys)}
        if absent := [key for key in wanted if key not in place]:
            split, number = absent[0]
            raise PlumblineError(f"There are no {column} of seed {seed} for {split} {number}; make the file again.")
        rows = [rows[place[key]] for key in wanted]
    return rows


def mask_columns(masks: Mapping[int, Flags], instances: Instances) -> dict[str, list[Any]]:
    """Columns of the table `masks`."""
    return {
        "seed": [seed for seed in masks for _ in range(len(instances))],
        "split": instances.split.tolist() * len(masks),
        "instance": instances.instance.tolist() * len(masks),
        "masked": [flags for rows in masks.values() for flags in rows],
    }
