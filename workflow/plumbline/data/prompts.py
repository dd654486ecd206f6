"""Tokens of filled prompts, aligned with the words of their texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plumbline.config.prompts import Prompt
from plumbline.data.aligned import AlignedTokens
from plumbline.runtime.progress import Progress

BATCH = 1000


def tokenize_prompt(
    tokenizer: Any, prompt: Prompt, texts: Sequence[Sequence[Sequence[str]]], progress: Progress
) -> list[list[AlignedTokens]]:
    """The tokens of prompts filled with these texts, or pairs of texts, whose words are joined by single spaces; a pair
    is cut before its second text.

    A prompt is tokenized as a whole, so that tokens are those that the model was trained on. A token of both the prompt
    and a text, such as a full stop with the line break after it, is part of the text. Words that spell a special token
    are tokenized as text unless the prompt itself has special tokens.
    """
    as_text = not any(token in part for token in tokenizer.all_special_tokens for part in prompt.parts)
    found = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encoding = tokenizer(
            [prompt.fill(*map(" ".join, words)) for words in batch],
            split_special_tokens=as_text,
            return_offsets_mapping=True,
            verbose=False,
        )
        for words, ids, offsets in zip(batch, encoding["input_ids"], encoding["offset_mapping"], strict=True):
            found.append(_assign(prompt, words, np.array(ids, dtype=np.int32), np.array(offsets, dtype=np.int64)))
        progress.update(len(batch))
    return found


def _assign(
    prompt: Prompt, texts: Sequence[Sequence[str]], ids: np.ndarray, offsets: np.ndarray
) -> list[AlignedTokens]:
    """The tokens at these offsets [n, 2] of the filled prompt, with the word that each is part of."""
    # The text and the word of each character, -1 outside of words.
    owner: list[tuple[int, int]] = []
    for number, (part, words) in enumerate(zip(prompt.parts, texts, strict=False)):
        owner += [(-1, -1)] * len(part)
        for place, spelled in enumerate(words):
            # The space before a word belongs to it, as in byte-level subwords.
            owner += [(number, place)] * (len(spelled) + (place > 0))
    owner += [(-1, -1)] * len(prompt.parts[-1])
    # A token belongs to the first word that it has a character of.
    owned = [next((pair for pair in owner[start:end] if pair[0] >= 0), (-1, -1)) for start, end in offsets.tolist()]
    text, word = np.array(owned, dtype=np.int64).reshape(-1, 2).T
    second = np.flatnonzero(text == 1)
    parts = [slice(second[0]), slice(second[0], None)] if len(second) else [slice(None)]
    return [AlignedTokens(ids[part], word[part]) for part in parts]
