"""Texts for models with their own subword tokenizer, and how to read their checkpoints."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from plumbline.config.checkpoints import CONFIG, find_checkpoint
from plumbline.config.prompts import parse_prompt
from plumbline.data.aligned import AlignedTokens
from plumbline.data.prompts import tokenize_prompt
from plumbline.errors import PlumblineError
from plumbline.runtime.progress import Progress

# The longest input of BERT and its kind, whatever the tokenizer's `model_max_length`, and of models that read more.
MAXIMUM, LONG = 512, 2048
# Positions that a prompt leaves for an answer.
ANSWER = 16
BATCH = 1000


@contextmanager
def without_bars() -> Iterator[None]:
    """Hide the progress bars of transformers, which would break into ours; those of downloads stay on a terminal."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging

    shown, downloads = logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    # Disables those of downloads too.
    logging.disable_progress_bar()
    if downloads and sys.stderr.isatty():
        enable_progress_bars()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
        (enable_progress_bars if downloads else disable_progress_bars)()


@contextmanager
def reading_checkpoint(checkpoint: str) -> Iterator[None]:
    """Silence transformers while it reads a checkpoint, and turn its errors into a PlumblineError."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with without_bars():
            yield
    except PlumblineError:
        raise
    # Of broken files, the libraries raise more than OSError and ValueError.
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".: ")
        raise PlumblineError(
            f"The checkpoint '{checkpoint}' cannot be read ({reason}): it is not a complete folder with a {CONFIG} or "
            "an installed package, and the Hugging Face Hub did not provide it; check its name and the network."
        ) from error
    finally:
        logging.set_verbosity(verbosity)


def load_tokenizer(checkpoint: str, prompted: bool = False) -> Any:
    """The tokenizer of a checkpoint, which must have the special tokens CLS, SEP and MASK unless texts are prompts."""
    from transformers import AutoTokenizer

    with reading_checkpoint(checkpoint):
        tokenizer: Any = AutoTokenizer.from_pretrained(find_checkpoint(checkpoint))
    for token in () if prompted else ("cls_token", "sep_token", "mask_token"):
        if getattr(tokenizer, token) is None:
            raise PlumblineError(
                f"The checkpoint '{checkpoint}' has no `{token}`; use an encoder such as BERT or RoBERTa, or a causal "
                "language model with `kind: causal`."
            )
    if not tokenizer.is_fast:
        raise PlumblineError(
            f"The tokenizer of the checkpoint '{checkpoint}' does not align subwords with words; save a fast one as "
            "tokenizer.json with `AutoTokenizer.from_pretrained(..., use_fast=True).save_pretrained`."
        )
    return tokenizer


def neutral_id(tokenizer: Any, *names: str) -> int:
    """The id of the first of these special tokens that a tokenizer has; 0 if it has none."""
    return next((found for name in names if (found := getattr(tokenizer, f"{name}_token_id")) is not None), 0)


def align_subwords(tokenizer: Any, texts: Sequence[Sequence[str]], progress: Progress) -> list[AlignedTokens]:
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
            subwords = AlignedTokens(np.array(ids, dtype=np.int32), np.searchsorted(spaces, last, side="right"))
            unknown = AlignedTokens(np.array([tokenizer.unk_token_id]), np.zeros(1, dtype=np.int64))
            aligned.append(subwords if ids else unknown)
        progress.update(len(batch))
    return aligned


def _surrounded_by_specials(
    tokenizer: Any, texts: Sequence[Sequence[Sequence[str]]], progress: Progress
) -> list[list[AlignedTokens]]:
    """CLS, the subwords of a text and SEP; of a second text its subwords and SEP."""
    first, last = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    aligned = iter(align_subwords(tokenizer, [text for row in texts for text in row], progress))
    return [[next(aligned).surrounded([] if i else first, last) for i in range(len(row))] for row in texts]


def longest_input(tokenizer: Any, checkpoint: str) -> int:
    """The most tokens of an input that a checkpoint reads."""
    from transformers import AutoConfig

    with reading_checkpoint(checkpoint):
        config = AutoConfig.from_pretrained(find_checkpoint(checkpoint))
    positions = getattr(config, "max_position_embeddings", None) or MAXIMUM
    # RoBERTa's 514 positions are for 512 tokens.
    return min(tokenizer.model_max_length, MAXIMUM if positions == MAXIMUM + 2 else min(positions, LONG))


def tokenize_subwords(table: pa.Table, checkpoint: str, prompt: str = "") -> tuple[dict[str, list], dict[str, Any]]:
    """The columns of a table `instances` tokenized into a checkpoint's subwords, and a summary.

    A text is CLS, its subwords and SEP, a second text its subwords and SEP; or both fill a `prompt`. `word` and
    `word_b` hold the index of the word of each subword. Where both texts exceed the model's maximum length, the first
    is truncated.
    """
    tokenizer = load_tokenizer(checkpoint, bool(prompt))
    maximum = longest_input(tokenizer, checkpoint) - (ANSWER if prompt else 0)
    new = ("ids", "ids_b", "word", "word_b")
    columns = {name: [] if name in new else table[name].to_pylist() for name in table.column_names}
    words = [
        # Second texts have no flags: their words are between two special tokens.
        [[token for token, free in zip(tokens, flags, strict=True) if free], *([] if pair is None else [pair[1:-1]])]
        for tokens, flags, pair in zip(columns["tokens"], columns["maskable"], columns["tokens_b"], strict=True)
    ]
    with Progress(sum(map(len, words)), "tokenize into subwords", "text") as progress:
        if prompt:
            filled = parse_prompt(prompt, any(len(row) > 1 for row in words))
            tokenized = tokenize_prompt(tokenizer, filled, words, progress)
        else:
            tokenized = _surrounded_by_specials(tokenizer, words, progress)
    truncated = longest = 0
    for i, (first, *rest) in enumerate(tokenized):
        second = rest[0] if rest else None
        excess = len(first.ids) + (0 if second is None else len(second.ids)) - maximum
        if excess >= first.in_text.sum():
            fixed, count = ("prompt", (~first.in_text).sum()) if second is None else ("second text", len(second.ids))
            raise PlumblineError(
                f"Instance {columns['instance'][i]} of split '{columns['split'][i]}': its {fixed} has {count} "
                f"subwords, but the checkpoint '{checkpoint}' reads at most {maximum}, including the text; shorten it."
            )
        if excess > 0:
            truncated, first = truncated + 1, first.without_last(excess)
        for column, special in (("evidence", False), ("groups", 0)):
            if columns[column][i] is not None:
                of_words = np.array(columns[column][i])[np.array(columns["maskable"][i])]
                columns[column][i] = first.spread(of_words, special)
        if columns["groups_b"][i] is not None and second is not None:
            columns["groups_b"][i] = second.spread(columns["groups_b"][i][1:-1], 0)
        columns["maskable"][i] = first.in_text.tolist()
        columns["maskable_b"][i] = None if second is None else second.in_text.tolist()
        for suffix, tokens in (("", first), ("_b", second)):
            columns[f"ids{suffix}"].append(None if tokens is None else tokens.ids.tolist())
            columns[f"word{suffix}"].append(None if tokens is None else tokens.word[tokens.in_text].tolist())
        longest = max(longest, len(first.ids) + (0 if second is None else len(second.ids)))
    for name in ("tokens", "tokens_b"):
        rows = columns[name.replace("tokens", "ids")]
        columns[name] = [ids and tokenizer.convert_ids_to_tokens(ids) for ids in rows]
    return columns, {
        "checkpoint": checkpoint,
        # Causal language models have no mask token.
        "mask_id": neutral_id(tokenizer, "mask", "unk", "eos"),
        "unknown_id": neutral_id(tokenizer, "unk", "eos"),
        "vocabulary_size": len(tokenizer),
        "maximum": maximum,
        "longest": longest,
        "cut": truncated,
    }
