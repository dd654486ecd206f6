"""Texts for models that have a tokeniser of their own: words cut into its subwords, and where its checkpoint lies."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from plumbline.config.checkpoints import CONFIG, find_checkpoint
from plumbline.errors import PlumblineError
from plumbline.runtime.progress import Progress

# Models of this kind read no more, whatever their tokeniser says.
MAXIMUM = 512
TOGETHER = 1000


@contextmanager
def reading(checkpoint: str) -> Iterator[None]:
    """Let transformers read a checkpoint in silence; if it cannot, that is told in a sentence."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        yield
    except PlumblineError:
        raise
    # The libraries below raise whatever they trip over: of broken files not only OSError and ValueError.
    except Exception as error:
        told = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".: ")
        raise PlumblineError(
            f"The checkpoint '{checkpoint}' cannot be read ({told}); there is no folder of that name with a {CONFIG} "
            "and no such installed package, or it is not whole, and the hub did not give it."
        ) from error
    finally:
        logging.set_verbosity(verbosity)


def load_tokeniser(checkpoint: str) -> Any:
    """The tokeniser of a checkpoint, which must begin, end and mask texts."""
    from transformers import AutoTokenizer

    with reading(checkpoint):
        tokeniser: Any = AutoTokenizer.from_pretrained(find_checkpoint(checkpoint))
    for token in ("cls_token", "sep_token", "mask_token"):
        if getattr(tokeniser, token) is None:
            raise PlumblineError(
                f"The checkpoint '{checkpoint}' has no `{token}`; take one of BERT's or RoBERTa's kind."
            )
    if not tokeniser.is_fast:
        raise PlumblineError(
            f"The tokeniser of the checkpoint '{checkpoint}' does not tell which word a subword is of; save it as "
            "tokenizer.json by `AutoTokenizer.from_pretrained(..., use_fast=True).save_pretrained`."
        )
    return tokeniser


class Subwords(NamedTuple):
    """The ids of a text's subwords, without specials, and the word that each is of."""

    ids: list[int]
    word: np.ndarray


def align_subwords(tokeniser: Any, texts: Sequence[Sequence[str]], progress: Progress) -> list[Subwords]:
    """The subwords of texts, whose words are read as one string with single spaces between them.

    A word that spells a special token is text all the same. A text of which the tokeniser leaves nothing is unknown.
    """
    cut = []
    for start in range(0, len(texts), TOGETHER):
        some = texts[start : start + TOGETHER]
        told = tokeniser(
            [" ".join(words) for words in some],
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
            verbose=False,
        )
        for words, ids, offsets in zip(some, told["input_ids"], told["offset_mapping"], strict=True):
            spaces = np.cumsum([len(word) + 1 for word in words[:-1]]) - 1
            # The space before a word belongs to it, as it does in byte-level subwords.
            last = np.array([end - 1 for _, end in offsets], dtype=np.int64)
            whole = Subwords(ids, np.searchsorted(spaces, last, side="right"))
            cut.append(whole if ids else Subwords([tokeniser.unk_token_id], np.zeros(1, dtype=np.int64)))
        progress.update(len(some))
    return cut


def tokenize_subwords(table: pa.Table, checkpoint: str) -> tuple[dict[str, list], dict[str, Any]]:
    """The columns of a table `instances` whose words are cut into the subwords of a checkpoint, and a summary.

    A text is the first special token, its subwords and the separator; a second text its subwords and the separator.
    `word` and `word_b` say which word each subword is of.
    If both are more than the model reads, the first is cut before its separator.
    """
    tokeniser = load_tokeniser(checkpoint)
    first, last = tokeniser.cls_token_id, tokeniser.sep_token_id
    maximum = min(tokeniser.model_max_length, MAXIMUM)
    made = ("ids", "ids_b", "word", "word_b")
    columns = {name: [] if name in made else table[name].to_pylist() for name in table.column_names}
    texts = [
        [token for token, free in zip(tokens, flags, strict=True) if free]
        for tokens, flags in zip(columns["tokens"], columns["maskable"], strict=True)
    ]
    paired = [place for place, tokens in enumerate(columns["tokens_b"]) if tokens is not None]
    with Progress(len(texts) + len(paired), "cut into subwords", "text") as progress:
        subwords = align_subwords(tokeniser, texts, progress)
        # Second texts have no flags: their words stand between two specials.
        cut_seconds = align_subwords(tokeniser, [columns["tokens_b"][i][1:-1] for i in paired], progress)
    seconds = dict(zip(paired, cut_seconds, strict=True))
    cut = longest = 0
    for place, (ids, word) in enumerate(subwords):
        pair = [*seconds[place].ids, last] if place in seconds else None
        room = maximum - 2 - len(pair or ())
        if room < 1:
            raise PlumblineError(
                f"Instance {columns['instance'][place]} of split '{columns['split'][place]}': its second text has "
                f"{len(pair or ())} subwords, and the checkpoint '{checkpoint}' reads only {maximum} of both texts."
            )
        cut += len(ids) > room
        ids, word = ids[:room], word[:room]
        for column, none in (("evidence", False), ("groups", 0)):
            if columns[column][place] is not None:
                words = np.array(columns[column][place])[np.array(columns["maskable"][place])]
                columns[column][place] = [none, *words[word].tolist(), none]
        if columns["groups_b"][place] is not None:
            # As their tokens, those of second texts stand between two specials.
            columns["groups_b"][place] = [*np.array(columns["groups_b"][place])[1:-1][seconds[place].word].tolist(), 0]
        columns["ids"].append([first, *ids, last])
        columns["ids_b"].append(pair)
        columns["maskable_b"][place] = pair and [*[True] * (len(pair) - 1), False]
        columns["word"].append(word.tolist())
        columns["word_b"].append(pair and seconds[place].word.tolist())
        columns["maskable"][place] = [False, *[True] * len(ids), False]
        longest = max(longest, len(ids) + 2 + len(pair or ()))
    for name in ("tokens", "tokens_b"):
        ids_of = columns[name.replace("tokens", "ids")]
        columns[name] = [ids and tokeniser.convert_ids_to_tokens(ids) for ids in ids_of]
    return columns, {
        "checkpoint": checkpoint,
        "mask_id": tokeniser.mask_token_id,
        "unknown_id": tokeniser.unk_token_id,
        "vocabulary_size": len(tokeniser),
        "maximum": maximum,
        "longest": longest,
        "cut": cut,
    }
