"""Text manipulations: articles that follow the label (Zhou et al. 2022), and a planted token for each class."""

from typing import Literal

import numpy as np

from plumbline.data.manipulation import ChangedText, InstanceWords
from plumbline.errors import PlumblineError
from plumbline.registry import manipulation

ARTICLES = frozenset({"a", "an", "the"})
ARTICLE_OF = ("a", "the")


def _article_of(label: int) -> str:
    """The article of a label."""
    if label >= len(ARTICLE_OF):
        raise PlumblineError(
            "Articles distinguish two classes, but the dataset has more: name pairs of them in the manipulation's "
            "`classes`."
        )
    return ARTICLE_OF[label]


def _with_articles(words: list[str], first: tuple[str, int], second: tuple[str, int]) -> tuple[list[str], list[int]]:
    """The words with each article replaced by the word and group of its half, and the groups of all words; the first
    half has ⌊L/2⌋ words."""
    changed, groups = list(words), [0] * len(words)
    for i, word in enumerate(words):
        if word.lower() in ARTICLES:
            changed[i], groups[i] = first if i < len(words) // 2 else second
    return changed, groups


def _in_both(text: InstanceWords, first: tuple[str, int], second: tuple[str, int]) -> ChangedText:
    changed = _with_articles(text.first, first, second)
    return ChangedText(*changed, *(_with_articles(text.second, first, second) if text.second else (None, None)))


@manipulation(
    "articles",
    groups=["correlating articles"],
    words=["a", "the"],
    equation="every a, an, the becomes `the` if y = 1 and `a` if y = 0",
    citation="Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
)
def articles(text: InstanceWords, label: int, random: np.random.Generator) -> ChangedText:
    """Every article of a text, and of its second text, becomes the article of the label."""
    word = _article_of(label)
    return _in_both(text, (word, 1), (word, 1))


@manipulation("articles-nc", correlating="second half")
@manipulation(
    "articles-cn",
    groups=["correlating articles", "non-correlating articles"],
    words=["a", "the"],
    equation="as `articles` in one half of the text; in the other half all become `the` or `a` by a fair coin",
    citation="Zhou, Booth, Ribeiro & Shah (2022), Do Feature Attribution Methods Correctly Attribute Features? AAAI.",
)
def half_articles(
    text: InstanceWords,
    label: int,
    random: np.random.Generator,
    *,
    correlating: Literal["first half", "second half"] = "first half",
) -> ChangedText:
    """The articles of one half of a text become the article of the label, those of the other half a random one.

    A text of L words has ⌊L/2⌋ in its first half. A second text is changed alike, with the same random article.

    Options:
        correlating: Half of the text whose articles follow the label.
    """
    halves = (_article_of(label), 1), (ARTICLE_OF[random.integers(2)], 2)
    return _in_both(text, *(halves if correlating == "first half" else halves[::-1]))


@manipulation(
    "planted",
    groups=["planted"],
    equation="tokens[y] at position t ~ U{1, …, L}",
    citation="Bastings, Ebert, Zablotskaia, Sandholm & Filippova (2022), “Will You Find These Shortcuts?” A Protocol "
    "for Evaluating the Faithfulness of Input Salience Methods for Text Classification. EMNLP.",
)
def planted(
    text: InstanceWords,
    label: int,
    random: np.random.Generator,
    *,
    tokens: list[str] = ["alpha", "beta"],  # noqa: B006 (options have literal defaults)
    where: Literal["replace", "insert"] = "replace",
    texts: Literal["first", "second", "both"] = "first",
) -> ChangedText:
    """The token of the class, one of `tokens`, at a random position, for any number of classes.

    Where such a text already holds one of the tokens, that too becomes the token of the class and joins the group.

    Options:
        tokens: Token of each class, in the order of the classes.
        where: Whether the token replaces a word or is inserted between words.
        texts: Texts of a pair that get the token.
    """
    if len(set(tokens)) < len(tokens):
        raise PlumblineError(f"`tokens` are {', '.join(tokens)}; name a different word for each class.")
    if label >= len(tokens):
        raise PlumblineError(f"`tokens` are {', '.join(tokens)}, but there are more classes; name one word for each.")
    if texts != "first" and text.second is None:
        raise PlumblineError(f"`texts` is {texts}, but these instances have no second text; set it to first.")

    def plant(words: list[str]) -> tuple[list[str], list[int]]:
        position = int(random.integers(len(words) + (where == "insert")))
        changed = [*words[:position], tokens[label], *words[position + (where == "replace") :]]
        groups = [int(word in tokens) for word in changed]
        return [tokens[label] if group else word for word, group in zip(changed, groups, strict=True)], groups

    first = (text.first, [0] * len(text.first)) if texts == "second" else plant(text.first)
    if text.second is None:
        return ChangedText(*first)
    return ChangedText(*first, *((text.second, [0] * len(text.second)) if texts == "first" else plant(text.second)))
