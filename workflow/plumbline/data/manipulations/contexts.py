"""Text manipulations whose labels follow from several words: one in a context, two in an order, one unless another is
there, and either of two. The tokens that they insert are removed from the text first, so that the rule always holds."""

from collections.abc import Sequence

import numpy as np

from plumbline.data.manipulation import ChangedText, InstanceWords
from plumbline.errors import PlumblineError
from plumbline.registry import manipulation

DECISIVE, NON_DECISIVE = 1, 2
# Words that stay together, each with its group.
Unit = list[tuple[str, int]]


def _of_classes(tokens: Sequence[str], label: int, first: int, sets: int) -> list[list[str]]:
    """The sets of words with one for each class, which follow the `first` tokens."""
    classes, rest = divmod(len(tokens) - first, sets)
    if len(set(tokens)) < len(tokens) or rest or classes < 2:
        raise PlumblineError(
            f"`tokens` are {', '.join(tokens)}; name {first + 2 * sets} different words for two classes, and "
            f"{sets} more for each further class."
        )
    if label >= classes:
        raise PlumblineError(
            f"`tokens` are {', '.join(tokens)}, for {classes} classes, but the dataset has more; name {sets} more for "
            "each further class."
        )
    return [list(tokens[first + i * classes : first + (i + 1) * classes]) for i in range(sets)]


def _insert(
    text: InstanceWords,
    tokens: Sequence[str],
    units: Sequence[Unit],
    random: np.random.Generator,
    in_order: bool = False,
) -> ChangedText:
    """The text without any of the tokens, with the units at random positions, in their order if `in_order`. A second
    text is unchanged."""
    words = iter([word for word in text.first if word not in tokens])
    length = sum(word not in tokens for word in text.first) + len(units)
    places = random.choice(length, len(units), replace=False)
    at = dict(zip(sorted(places) if in_order else places, units, strict=True))
    changed, groups = zip(*(pair for i in range(length) for pair in at.get(i) or [(next(words), 0)]), strict=True)
    second_groups = None if text.second is None else [0] * len(text.second)
    return ChangedText(list(changed), list(groups), text.second, second_groups)


@manipulation(
    "context",
    groups=["decisive words", "non-decisive words"],
    decoys=True,
    equation="y = class of the token right after the marker; another token, of a class c ~ U{classes}, elsewhere",
    citation="Bastings, Ebert, Zablotskaia, Sandholm & Filippova (2022), “Will You Find These Shortcuts?” A Protocol "
    "for Evaluating the Faithfulness of Input Salience Methods for Text Classification. EMNLP.",
)
def context(
    text: InstanceWords,
    label: int,
    random: np.random.Generator,
    *,
    tokens: list[str] = ["sigma", "alpha", "beta"],  # noqa: B006 (options have literal defaults)
) -> ChangedText:
    """A word that counts only in a context: `tokens` are a marker and a word for each class; the word right after the
    marker determines the class.

    The marker and that word are the truth: without the marker nothing distinguishes the word from the one of a random
    class that stands elsewhere, which is not decisive.

    Options:
        tokens: The marker, then a word for each class.
    """
    (classes,) = _of_classes(tokens, label, 1, 1)
    decoy = classes[random.integers(len(classes))]
    units: list[Unit] = [[(tokens[0], DECISIVE), (classes[label], DECISIVE)], [(decoy, NON_DECISIVE)]]
    return _insert(text, tokens, units, random)


@manipulation(
    "ordered",
    groups=["decisive words"],
    equation="y = 1 if tokens[0] stands before tokens[1], else 0",
    citation="Bastings, Ebert, Zablotskaia, Sandholm & Filippova (2022), “Will You Find These Shortcuts?” A Protocol "
    "for Evaluating the Faithfulness of Input Salience Methods for Text Classification. EMNLP.",
)
def ordered(
    text: InstanceWords,
    label: int,
    random: np.random.Generator,
    *,
    tokens: list[str] = ["alpha", "beta"],  # noqa: B006
) -> ChangedText:
    """An ordered pair, for two classes: every text holds both `tokens`, and the class is 1 if the first comes first.

    Both are the truth: each of them alone is in every text, and says nothing.

    Options:
        tokens: The two words; the class is 1 if they are in this order.
    """
    if len(set(tokens)) != 2 or len(tokens) != 2:
        raise PlumblineError(f"`tokens` are {', '.join(tokens)}; name two different words, the first and the second.")
    if label > 1:
        raise PlumblineError(
            "The order of two words distinguishes two classes, but the dataset has more: name pairs of them in the "
            "manipulation's `classes`."
        )
    units: list[Unit] = [[(token, DECISIVE)] for token in (tokens if label else tokens[::-1])]
    return _insert(text, tokens, units, random, in_order=True)


@manipulation(
    "unless",
    groups=["decisive words", "non-decisive words"],
    decoys=True,
    equation="y = class of the primary token, or, with the blocker, which half of the texts hold, of the secondary one",
)
def unless(
    text: InstanceWords,
    label: int,
    random: np.random.Generator,
    *,
    tokens: list[str] = ["sigma", "alpha", "beta", "gamma", "delta"],  # noqa: B006
) -> ChangedText:
    """A word that counts unless another is there: `tokens` are a blocker, then a primary word for each class, then a
    secondary word for each class; every text holds a primary and a secondary word.

    Without the blocker the primary word determines the class, and is the truth; with it, in a random half of the texts,
    the secondary word does, and both are the truth. The other one is of a random class and not decisive.

    Options:
        tokens: The blocker, then a primary word for each class, then a secondary word for each class.
    """
    primary, secondary = _of_classes(tokens, label, 1, 2)
    blocked = bool(random.integers(2))
    own, other = (secondary, primary) if blocked else (primary, secondary)
    units: list[Unit] = [[(own[label], DECISIVE)], [(other[random.integers(len(other))], NON_DECISIVE)]]
    units += [[(tokens[0], DECISIVE)]] if blocked else []
    return _insert(text, tokens, units, random)


@manipulation(
    "redundant",
    groups=["decisive words"],
    suffices="any",
    equation="tokens[y] and tokens[C + y] at random positions, for C classes; either determines y",
)
def redundant(
    text: InstanceWords,
    label: int,
    random: np.random.Generator,
    *,
    tokens: list[str] = ["alpha", "beta", "gamma", "delta"],  # noqa: B006
) -> ChangedText:
    """Two words of which either suffices: `tokens` are a word for each class, then another for each class; every text
    holds both of its class.

    Both are the truth, and importance on either is right.

    Options:
        tokens: A word for each class, then a second word for each class.
    """
    units: list[Unit] = [[(token, DECISIVE)] for token in (of[label] for of in _of_classes(tokens, label, 0, 2))]
    return _insert(text, tokens, units, random)
