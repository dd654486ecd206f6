"""Datasets whose truth is known: labels are drawn anew, and texts or pictures changed as the new labels say.

A model that uses nothing of the change can be right no more often than `p_star` says, so that one which is right more
often must use it, and importance must fall on it (Zhou et al. 2022).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from plumbline.data.instances import Instances
from plumbline.data.pixels import pack, side, unpack
from plumbline.data.prepare import per_class
from plumbline.data.vocabulary import EOS, SOS, SPECIALS, UNK, encode
from plumbline.errors import PlumblineError, nearest

# Of the two classes of pictures, the one whose pictures are changed.
CHANGED_CLASS = 1


class InstanceWords(NamedTuple):
    """The words of an instance: those of its text and, where there is one, of its second text."""

    first: list[str]
    second: list[str] | None = None


class ChangedText(NamedTuple):
    """What a manipulation makes of an instance's words, each with the number of its group: from 1, or 0 for none."""

    first: list[str]
    first_groups: list[int]
    second: list[str] | None = None
    second_groups: list[int] | None = None


class ImageManipulation(NamedTuple):
    """A change of pictures of one size: `region` [H, H] is where it may change pixels, `change` makes a new picture
    [H, H, 3] of one."""

    region: np.ndarray
    change: Callable[[np.ndarray, np.random.Generator], np.ndarray]


def keeping(r: float, classes: int) -> np.ndarray:
    """The chances [C, C] that a class (row) becomes each class: it stays with probability r, else any other alike."""
    return np.where(np.eye(classes, dtype=bool), r, (1 - r) / max(classes - 1, 1))


def reassign(labels: np.ndarray, matrix: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """New labels [N], drawn for each label by its row of the matrix [C, C]."""
    beyond = random.random(len(labels))[:, None] >= np.cumsum(np.asarray(matrix)[labels], axis=1)
    # A row may sum to a little less than 1.
    return np.minimum(beyond.sum(axis=1), len(matrix) - 1)


def p_star(matrix: np.ndarray, shares: np.ndarray) -> float:
    """Σ_c share_c · max_j M[c, j]: how often a model is right at best that does not use the manipulation.

    Nothing but the original class then tells of the label. `shares` [C] are those of the original classes.
    """
    return float(np.asarray(shares) @ np.asarray(matrix).max(axis=1))


def chance_of(accuracy: float, n: int, p_star: float) -> float:
    """Σ_{k=⌊pn⌋}^n Binom(k; n, p*): a bound on the chance that a model which does not use the manipulation is right on
    a share `accuracy`, p, of n instances."""
    from scipy.special import logsumexp
    from scipy.stats import binom

    # An accuracy is a share of n, but k / n · n may come out below k.
    least = math.floor(accuracy * n + 1e-9)
    return min(1.0, float(np.exp(logsumexp(binom.logpmf(np.arange(least, n + 1), n, p_star)))))


def attributed_share(scores: np.ndarray, region: np.ndarray) -> float:
    """Attr%(F) = Σ_{i∈F} |s_i| / Σ_i |s_i|: the share of importance that falls on a region; NaN if there is none."""
    magnitudes = np.abs(np.asarray(scores, dtype=np.float64))
    total = magnitudes.sum()
    return float(magnitudes[np.asarray(region, dtype=bool)].sum() / total) if total else math.nan


def precision(selected: np.ndarray, region: np.ndarray) -> float:
    """|F ∩ F_C| / |F|: how much of what is selected is right; NaN if nothing is selected."""
    return float(np.mean(region[selected])) if np.any(selected) else math.nan


def recall(selected: np.ndarray, region: np.ndarray) -> float:
    """|F ∩ F_C| / |F_C|: how much of what is right is selected; NaN if nothing is right."""
    return precision(region, selected)


def shapley_band(r: float, p: float) -> tuple[float, float]:
    """The least share of the manipulated feature and the greatest share of the other one in their Shapley values.

    (2p - r - ½) / (2p - 1) and (r - ½) / (2p - 1), for an accuracy p of the model and a probability r ≥ ½ that labels
    were kept: a(∅) = ½, a(F_M) = a(all) = p, a(F_O) ≤ r.
    """
    return (2 * p - r - 0.5) / (2 * p - 1), (r - 0.5) / (2 * p - 1)


def manipulate(
    table: pa.Table,
    words: Sequence[str],
    summary: Mapping[str, Any],
    function: Callable[..., Any],
    facts: Mapping[str, Any],
    asked: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of the table `instances`, and the record, of a dataset that a registered manipulation has changed.

    `table` and `summary` are those of the plain dataset and `words` its vocabulary by id. `facts` are those of the
    manipulation's declaration. `asked` holds its `options`, the `seed`, the `matrix` or `r` of new labels, the
    `classes` whose instances stay (None: all), and what else is to be recorded. Everything that is drawn for an
    instance comes from a stream of its own.
    """
    classes = _chosen(summary["classes"], asked["classes"], asked["name"])
    matrix = _matrix(asked, classes)
    numbers = {summary["classes"].index(name): number for number, name in enumerate(classes)}
    table = table.filter(pa.array([label in numbers for label in table["label"].to_pylist()]))
    instances = Instances.from_table(table, list(dict.fromkeys(table["split"].to_pylist())))
    if instances.answers is not None:
        raise PlumblineError(
            f"The manipulation '{asked['name']}' draws any class as the new label, but in '{summary['dataset']}' not "
            "every class may be the answer; leave that dataset out of its `datasets`."
        )
    original = np.array([numbers[label] for label in instances.label.tolist()])
    streams = [instances.generator(place, asked["seed"]) for place in range(len(instances))]
    labels = np.array([reassign(original[[i]], matrix, stream)[0] for i, stream in enumerate(streams)])
    columns: dict[str, Any] = {
        "split": instances.split.tolist(),
        "instance": instances.instance,
        "label": labels.astype(np.int32),
        "original_label": original.astype(np.int32),
    }
    if facts["reads"] == "pixels":
        if len(classes) != 2:
            raise PlumblineError(
                f"The manipulation '{asked['name']}' changes the pictures of the second of two classes, and here are "
                f"{len(classes)}: name pairs of them in its `classes`."
            )
        columns |= _pictures(instances, labels, streams, function, asked)
    else:
        columns |= _texts(table, labels, streams, words, function, facts, asked)
    of_test = original[instances.split == "test"] if "test" in instances.split else original
    shares = np.bincount(of_test, minlength=len(classes)) / len(of_test)
    record = {
        **asked,
        "matrix": matrix.tolist(),
        "p_star": p_star(matrix, shares),
        "groups": list(facts["groups"]),
        "classes": classes,
        "reads": facts["reads"],
        "shares": _shares(columns, facts["groups"]),
    }
    splits = {split: _count(columns, split, counted, classes) for split, counted in summary["splits"].items()}
    return columns, {**summary, "classes": classes, "splits": splits, "manipulation": record}


def _chosen(known: Sequence[str], wanted: Sequence[str] | None, manipulation: str) -> list[str]:
    """The classes that stay, of those of the dataset."""
    for name in wanted or ():
        if name not in known:
            raise PlumblineError(f"`manipulations.{manipulation}.classes` name '{name}'; {nearest(name, known)}")
    chosen = list(wanted or known)
    if len(set(chosen)) < max(2, len(chosen)):
        raise PlumblineError(
            f"`manipulations.{manipulation}.classes` are {', '.join(chosen)}; name two or more, each once."
        )
    return chosen


def _matrix(asked: Mapping[str, Any], classes: Sequence[str]) -> np.ndarray:
    if asked["matrix"] is None:
        return keeping(asked["r"], len(classes))
    matrix = np.array(asked["matrix"], dtype=np.float64)
    if matrix.shape != (len(classes), len(classes)):
        raise PlumblineError(
            f"The manipulation '{asked['name']}' has a `matrix` of {len(matrix)} classes, but here are {len(classes)} "
            f"({', '.join(classes)}): write one row and one column for each."
        )
    return matrix


def _pictures(
    instances: Instances,
    labels: np.ndarray,
    streams: Sequence[np.random.Generator],
    function: Callable[..., ImageManipulation],
    asked: Mapping[str, Any],
) -> dict[str, Any]:
    """Columns of pictures; those of the first class are as they were, but all have the region."""
    size = side(len(instances.ids[0]))
    region, change = function(size, **asked["options"])
    if not region.any():
        raise PlumblineError(
            f"The manipulation '{asked['name']}' with {asked['options']} changes no pixel of a picture of {size} x "
            f"{size}; choose other options."
        )
    ids = [
        pack(change(unpack(own), stream)) if label == CHANGED_CLASS else own
        for own, label, stream in zip(instances.ids, labels, streams, strict=True)
    ]
    outside = ~region.ravel()
    if any(not np.array_equal(own[outside], new[outside]) for own, new in zip(instances.ids, ids, strict=True)):
        raise PlumblineError(f"The manipulation '{asked['name']}' changes pixels outside of the region that it tells.")
    groups = region.ravel().astype(np.int8)
    return {
        "tokens": [[]] * len(ids),
        "ids": ids,
        "maskable": instances.maskable,
        "groups": [groups] * len(ids),
    }


def _texts(
    table: pa.Table,
    labels: np.ndarray,
    streams: Sequence[np.random.Generator],
    words: Sequence[str],
    function: Callable[..., ChangedText],
    facts: Mapping[str, Any],
    asked: Mapping[str, Any],
) -> dict[str, Any]:
    """Columns of texts. What told where the answer stands, `evidence`, was about the original label and is left out."""
    ids = {word: id_ for id_, word in enumerate(words) if id_ >= len(SPECIALS)}
    rows = []
    texts = zip(*(table[column].to_pylist() for column in ("tokens", "tokens_b")), labels, streams, strict=True)
    for tokens, seconds, label, stream in texts:
        # The first and the last token of a prepared text are special.
        before = InstanceWords(tokens[1:-1], seconds and seconds[1:-1])
        change = function(before, int(label), stream, **asked["options"])
        first = _encoded(before.first, change.first, change.first_groups, ids, facts, asked)
        rows.append(first + _encoded(before.second, change.second, change.second_groups, ids, facts, asked))
    names = [f"{column}{text}" for text in ("", "_b") for column in ("tokens", "ids", "maskable", "groups")]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _encoded(
    before: list[str] | None,
    after: list[str] | None,
    groups: list[int] | None,
    ids: Mapping[str, int],
    facts: Mapping[str, Any],
    asked: Mapping[str, Any],
) -> tuple[Any, ...]:
    """Tokens, ids, maskable and groups of a text, its special tokens included; nothing where there is no text."""
    if before is None and after is None and groups is None:
        return None, None, None, None
    if not before or not after or groups is None or len(after) != len(groups):
        raise PlumblineError(
            f"The manipulation '{asked['name']}' must give each text that there is, and no other, at least one word "
            "and each word a group."
        )
    if not set(groups) <= set(range(len(facts["groups"]) + 1)):
        raise PlumblineError(
            f"The manipulation '{asked['name']}' put a word into group {max(groups)}, but it declares "
            f"{len(facts['groups'])} `groups`."
        )
    own = set(before)
    for word, group in zip(after, groups, strict=True):
        if word not in ids and (group or word not in own):
            raise PlumblineError(
                f"The manipulation '{asked['name']}' puts the word '{word}' into texts, but the vocabulary does not "
                "hold it: state it in the declaration's `words`, or choose a word that the texts hold."
            )
    free = [False, *[True] * len(after), False]
    return [SPECIALS[SOS], *after, SPECIALS[EOS]], encode(after, ids), free, [0, *groups, 0]


def _shares(columns: Mapping[str, Any], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """The share of each group in the words, or pixels, of each split."""
    counts = {split: np.zeros(len(names) + 1) for split in dict.fromkeys(columns["split"])}
    for text in ("", "_b") if columns.get("groups_b", [None])[0] else ("",):
        for split, groups, free in zip(
            columns["split"], columns[f"groups{text}"], columns[f"maskable{text}"], strict=True
        ):
            counts[split] += np.bincount(np.asarray(groups)[free], minlength=len(names) + 1)
    return {split: dict(zip(names, (n[1:] / n.sum()).tolist(), strict=True)) for split, n in counts.items()}


def _count(columns: Mapping[str, Any], split: str, plain: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """The record of a split: what the plain one has, of the classes that stay, with the instances counted anew."""
    places = [place for place, own in enumerate(columns["split"]) if own == split]
    if not places:
        raise PlumblineError(f"The split '{split}' holds no instance of the classes {', '.join(classes)}; name others.")
    texts = {name: plain["texts_per_class"][name] for name in classes}
    lengths = [int(np.sum(columns["maskable"][place])) for place in places]
    counted = {
        "texts": sum(texts.values()),
        "instances": len(places),
        "texts_per_class": texts,
        "instances_per_class": per_class((int(columns["label"][place]) for place in places), classes),
        "mean_length": sum(lengths) / len(lengths),
        "shortest": min(lengths),
        "longest": max(lengths),
    }
    if columns["tokens"][0]:
        unknown = sum(columns["ids"][place].count(UNK) for place in places)
        counted["unknown_share"] = unknown / sum(lengths)
    return {**plain, **counted}
