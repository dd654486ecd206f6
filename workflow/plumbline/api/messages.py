"""Messages about the config of an evaluation in the words of its arguments."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from plumbline.api.config import DATASET, MODEL
from plumbline.errors import PlumblineError

# What a message about the config says, as a pattern, and what it says about the arguments of `evaluate`.
WORDS = (
    (r"`compute\.token_budget`(.*) must be 'auto' or", r"`token_budget`\1 must be None or"),
    (rf"`models\.{MODEL}\.checkpoint`: '[^']*'", "`model`"),
    (rf"`models\.{MODEL}`, dataset '{DATASET}': ", ""),
    (rf"`datasets\.{DATASET}\.tokens`", "`words`"),
    (rf"`(?:compute|models\.{MODEL}|datasets\.{DATASET})\.(\w+)`", r"`\1`"),
    ("leave out `kind: causal`", "leave out `prompt` and `answers`"),
    (
        rf"needs marked evidence, which dataset '{DATASET}' does not have",
        "needs `evidence`, a flag for each word of each text between white space: give it, or leave the protocol out",
    ),
    (
        r"`(measures|protocols)\.([\w.-]+)` cannot \w+ any model of this study: \w+ '\2' ",
        r"`\1` names '\2', which ",
    ),
    (r"needs split '(\w+)', which `explain` does not list", r"needs texts of the split '\1', which a study has"),
    (
        r"'[^']*' is not a block of seeds; write '0-4' or '10,50,257'",
        "seeds are whole numbers from 0, such as 0 or [0, 1, 2]",
    ),
    (r"`seeds` is \['(.*)'\]", r"`seeds` is [\1]"),
    (rf"model '{MODEL}'", "the model"),
)


@contextmanager
def in_words_of_arguments() -> Iterator[None]:
    """Translate messages about keys of a config, which the user of the Python API has not written."""
    try:
        yield
    except PlumblineError as error:
        raise PlumblineError(translate(str(error))) from None


def translate(message: str) -> str:
    """A message about the config of an evaluation in the words of its arguments."""
    for pattern, words in WORDS:
        message = re.sub(pattern, words, message)
    return message
