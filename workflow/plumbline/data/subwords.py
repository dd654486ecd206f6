"""Texts for models with their own subword tokenizer, and how to read their checkpoints."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from plumbline.config.checkpoints import CONFIG, find_checkpoint
from plumbline.errors import PlumblineError
from plumbline.runtime.progress import Progress

# The longest input of BERT and its kind, whatever the tokenizer's `model_max_length`.
MAXIMUM = 512
BATCH = 1000


@contextmanager
def reading_checkpoint(checkpoint: str) -> Iterator[None]:
    """Silence transformers while it reads a checkpoint, and turn its errors into a PlumblineError."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        yield
    except PlumblineError:
        raise
    # Of broken files, the libraries raise more than OSError and ValueError.
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".: ")
        raise PlumblineError(
            f"The checkpoint '{checkpoint}' cannot be read ({reason}): no folder of that name with a {CONFIG} and no "
            "such installed package exists, or it is incomplete, and the Hugging Face hub did not provide it."
        ) from error
    finally:
        logging.set_verbosity(verbosity)


def load_tokenizer(checkpoint: str) -> Any:
    """The tokenizer of a checkpoint, which must have the special tokens CLS, SEP and MASK."""
    from transformers import AutoTokenizer

    with reading_checkpoint(checkpoint):
        tokenizer: Any = AutoTokenizer.from_pretrained(find_checkpoint(checkpoint))
    for token in ("cls_token", "sep_token", "mask_token"):
        if getattr(tokenizer, token) is None:
            raise PlumblineError(
                f"The checkpoint '{checkpoint}' has no `{token}`; use a model of BERT's or RoBERTa's kind."
            )
    if not tokenizer.is_fast:
        raise PlumblineError(
            f"The tokenizer of the checkpoint '{checkpoint}' does not align subwords with words; save a fast one as "
            "tokenizer.json with `AutoTokenizer.from_pretrained(..., use_fast=True).save_pretrained`."
        )
    return tokenizer


class Subwords(NamedTuple):
    """The ids of a text's subwords, without special tokens, and the index of the word of each."""

    ids: list[int]
    word: np.ndarray


def align_subwords(tokenizer: Any, texts: Sequence[Sequence[str]], progress: Progress) -> list[Subwords]:
    """The subwords of texts, whose words are joined by single spaces.

    A word that spells a special token is tokenized as text. A text without subwords becomes one unknown token.
    """
    aligned = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encoding = tokenizer(
            [" ".join(words) for words in batch],
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
            verbose=False,
        )
        for words, ids, offsets in zip(batch, encoding["input_ids"], encoding["offset_mapping"], strict=True):
            spaces = np.cumsum([len(word) + 1 for word in words[:-1]]) - 1
            # The space before a word belongs to it, as in byte-level subwords.
            last = np.array([end - 1 for _, end in offsets], dtype=np.int64)
            subwords = Subwords(ids, np.searchsorted(spaces, last, side="right"))
            aligned.append(subwords if ids else Subwords([tokenizer.unk_token_id], np.zeros(1, dtype=np.int64)))
        progress.update(len(batch))
    return aligned


def tokenize_subwords(table: pa.Table, checkpoint: str) -> tuple[dict[str, list], dict[str, Any]]:
    """The columns of a table `instances` tokenized into a checkpoint's subwords, and a summary.

    A text is CLS, its subwords and SEP; a second text its subwords and SEP. `word` and `word_b` hold the index of the
    word of each subword. Where both texts exceed the model's maximum length, the first is truncated.
    """
    tokenizer = load_tokenizer(checkpoint)
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    maximum = min(tokenizer.model_max_length, MAXIMUM)
    new = ("ids", "ids_b", "word", "word_b")
    columns = {name: [] if name in new else table[name].to_pylist() for name in table.column_names}
    texts = [
        [token for token, free in zip(tokens, flags, strict=True) if free]
        for tokens, flags in zip(columns["tokens"], columns["maskable"], strict=True)
    ]
    paired = [i for i, tokens in enumerate(columns["tokens_b"]) if tokens is not None]
    with Progress(len(texts) + len(paired), "tokenize into subwords", "text") as progress:
        subwords = align_subwords(tokenizer, texts, progress)
        # Second texts have no flags: their words are between two special tokens.
        pairs = align_subwords(tokenizer, [columns["tokens_b"][i][1:-1] for i in paired], progress)
    seconds = dict(zip(paired, pairs, strict=True))
    truncated = longest = 0
    for i, (ids, word) in enumerate(subwords):
        pair = [*seconds[i].ids, last] if i in seconds else None
        room = maximum - 2 - len(pair or ())
        if room < 1:
            raise PlumblineError(
                f"Instance {columns['instance'][i]} of split '{columns['split'][i]}': its second text has "
                f"{len(pair or ())} subwords, and the checkpoint '{checkpoint}' reads only {maximum} of both texts."
            )
        truncated += len(ids) > room
        ids, word = ids[:room], word[:room]
        for column, special in (("evidence", False), ("groups", 0)):
            if columns[column][i] is not None:
                words = np.array(columns[column][i])[np.array(columns["maskable"][i])]
                columns[column][i] = [special, *words[word].tolist(), special]
        if columns["groups_b"][i] is not None:
            columns["groups_b"][i] = [*np.array(columns["groups_b"][i])[1:-1][seconds[i].word].tolist(), 0]
        columns["ids"].append([first, *ids, last])
        columns["ids_b"].append(pair)
        columns["maskable_b"][i] = pair and [*[True] * (len(pair) - 1), False]
        columns["word"].append(word.tolist())
        columns["word_b"].append(pair and seconds[i].word.tolist())
        columns["maskable"][i] = [False, *[True] * len(ids), False]
        longest = max(longest, len(ids) + 2 + len(pair or ()))
    for name in ("tokens", "tokens_b"):
        rows = columns[name.replace("tokens", "ids")]
        columns[name] = [ids and tokenizer.convert_ids_to_tokens(ids) for ids in rows]
    return columns, {
        "checkpoint": checkpoint,
        "mask_id": tokenizer.mask_token_id,
        "unknown_id": tokenizer.unk_token_id,
        "vocabulary_size": len(tokenizer),
        "maximum": maximum,
        "longest": longest,
        "cut": truncated,
    }
