"""Tokens of a text that are aligned with its words."""

from typing import NamedTuple

import numpy as np


class AlignedTokens(NamedTuple):
    """The ids of tokens, and the index of the word of each; -1 for special tokens and the words of a prompt."""

    ids: np.ndarray
    word: np.ndarray

    @property
    def in_text(self) -> np.ndarray:
        """Which tokens are part of a word."""
        return self.word >= 0

    def surrounded(self, before: list[int], after: list[int]) -> "AlignedTokens":
        """These tokens between special ones."""
        word = np.concatenate([np.full(len(before), -1), self.word, np.full(len(after), -1)])
        return AlignedTokens(np.concatenate([before, self.ids, after]).astype(np.int32), word)

    def without_last(self, count: int) -> "AlignedTokens":
        """Without the last `count` tokens of words."""
        own = np.flatnonzero(self.in_text)
        kept = np.delete(np.arange(len(self.ids)), own[len(own) - count :])
        return AlignedTokens(self.ids[kept], self.word[kept])

    def spread(self, values: list, special: int | bool) -> list:
        """The value of each token's word, `special` where it has none."""
        return np.where(self.in_text, np.array(values)[self.word.clip(min=0)], special).tolist()
