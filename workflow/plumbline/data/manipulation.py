"""Datasets with a known ground truth: labels are reassigned at random, and texts or images changed by the new label.

A model that does not use the change has an accuracy of at most `p_star`, so that a more accurate one must use it, and
importance must fall on it (Zhou et al. 2022).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from plumbline.data.instances import Instances
from plumbline.data.pixels import pack, side_length, unpack
from plumbline.data.prepare import count_per_class, summarize_split
from plumbline.data.vocabulary import EOS, SOS, SPECIALS, UNK, encode
from plumbline.errors import PlumblineError, nearest

# The class whose images are changed, of two.
CHANGED_CLASS = 1


class InstanceWords(NamedTuple):
    """The words of an instance's text and, if it has one, of its second text."""

    first: list[str]
    second: list[str] | None = None


class ChangedText(NamedTuple):
    """The manipulated words of an instance, each with the number of its group: from 1, or 0 for none."""

    first: list[str]
    first_groups: list[int]
    second: list[str] | None = None
    second_groups: list[int] | None = None


class ImageManipulation(NamedTuple):
    """A manipulation of images of one size: `region` [H, H] flags the pixels that it may change, and `change` returns a
    new image [H, H, 3]."""

    region: np.ndarray
    change: Callable[[np.ndarray, np.random.Generator], np.ndarray]


def reassignment_matrix(r: float, classes: int) -> np.ndarray:
    """The probability [C, C] that a class (row) becomes another: r for itself, equal for all others."""
    return np.where(np.eye(classes, dtype=bool), r, (1 - r) / max(classes - 1, 1))


def reassign(labels: np.ndarray, matrix: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """New labels [N], drawn by each label's row of the matrix [C, C]."""
    beyond = random.random(len(labels))[:, None] >= np.cumsum(np.asarray(matrix)[labels], axis=1)
    # A row may sum to a little less than 1.
    return np.minimum(beyond.sum(axis=1), len(matrix) - 1)


def p_star(matrix: np.ndarray, shares: np.ndarray, decoys: bool = False) -> float:
    """Σ_c share_c · max_j M[c, j]: the highest accuracy of a model that does not use the manipulation.

    It can predict the label from the original class only, whose `shares` are [C]. With `decoys` it is a model that does
    not know which of two tokens is of the label and which of a random class:
    Σ_c share_c · (1 + Σ_{i, j} max(M[c, i], M[c, j])) / 2C.
    """
    matrix = np.asarray(matrix)
    best = matrix.max(axis=1)
    if decoys:
        # Tokens of classes i ≠ j occur with label i with probability M[c, i] / 2C; for i = j the label is certain.
        best = (1 + np.maximum(matrix[:, :, None], matrix[:, None, :]).sum(axis=(1, 2))) / (2 * len(matrix))
    return float(np.asarray(shares) @ best)


def accuracy_p_value(accuracy: float, n: int, p_star: float) -> float:
    """Σ_{k=⌊pn⌋}^n Binom(k; n, p*): a bound on the probability that a model which does not use the manipulation has an
    accuracy of p on n instances."""
    from scipy.special import logsumexp
    from scipy.stats import binom

    # In floating point, k / n · n may be below k.
    least = math.floor(accuracy * n + 1e-9)
    return min(1.0, float(np.exp(logsumexp(binom.logpmf(np.arange(least, n + 1), n, p_star)))))


def attributed_share(scores: np.ndarray, region: np.ndarray) -> float:
    """Attr%(F) = Σ_{i∈F} |s_i| / Σ_i |s_i|: the share of importance on a region; NaN if all scores are 0."""
    magnitudes = np.abs(np.asarray(scores, dtype=np.float64))
    total = magnitudes.sum()
    return float(magnitudes[np.asarray(region, dtype=bool)].sum() / total) if total else math.nan


def shapley_bounds(r: float, p: float) -> tuple[float, float]:
    """The lowest share of the manipulated feature and the highest of the original one in their Shapley values.

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
    settings: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of the table `instances`, and the summary, of a dataset changed by a registered manipulation.

    `table` and `summary` are those of the plain dataset and `words` its vocabulary by id. `facts` are those of the
    manipulation's declaration. `settings` hold its `options`, the `seed`, the `matrix` or `r` of new labels, the
    `classes` to keep (None: all), and other values for the summary. Each instance has its own random generator.
    """
    classes = _check_classes(summary["classes"], settings["classes"], settings["name"])
    matrix = _matrix(settings, classes)
    new_index = {summary["classes"].index(name): index for index, name in enumerate(classes)}
    table = table.filter(pa.array([label in new_index for label in table["label"].to_pylist()]))
    instances = Instances.from_table(table, list(dict.fromkeys(table["split"].to_pylist())))
    if instances.answers is not None:
        raise PlumblineError(
            f"The manipulation '{settings['name']}' draws new labels from all classes, but each instance of "
            f"'{summary['dataset']}' has its own candidate `answers`; leave that dataset out of its `datasets`."
        )
    original = np.array([new_index[label] for label in instances.label.tolist()])
    generators = [instances.generator(i, settings["seed"]) for i in range(len(instances))]
    labels = np.array([reassign(original[[i]], matrix, generator)[0] for i, generator in enumerate(generators)])
    columns: dict[str, Any] = {
        "split": instances.split.tolist(),
        "instance": instances.instance,
        "label": labels.astype(np.int32),
        "original_label": original.astype(np.int32),
    }
    if facts["reads"] == "pixels":
        if len(classes) != 2:
            raise PlumblineError(
                f"The manipulation '{settings['name']}' changes the images of the second of two classes, but there are "
                f"{len(classes)}: name pairs of them in its `classes`."
            )
        columns |= _manipulate_images(instances, labels, generators, function, settings)
    else:
        columns |= _manipulate_texts(table, labels, generators, words, function, facts, settings)
    test = original[instances.split == "test"] if "test" in instances.split else original
    shares = np.bincount(test, minlength=len(classes)) / len(test)
    record = {
        **settings,
        "matrix": matrix.tolist(),
        "p_star": p_star(matrix, shares, facts["decoys"]),
        "groups": list(facts["groups"]),
        "suffices": facts["suffices"],
        "classes": classes,
        "reads": facts["reads"],
        "shares": _group_shares(columns, facts["groups"]),
    }
    splits = {split: _summarize(columns, split, plain, classes) for split, plain in summary["splits"].items()}
    return columns, {**summary, "classes": classes, "splits": splits, "manipulation": record}


def _check_classes(known: Sequence[str], chosen: Sequence[str] | None, manipulation: str) -> list[str]:
    """The classes to keep, of those of the dataset."""
    for name in chosen or ():
        if name not in known:
            raise PlumblineError(
                f"`manipulations.{manipulation}.classes` name '{name}', which is not a class of the dataset; "
                f"{nearest(name, known)}"
            )
    classes = list(chosen or known)
    if len(set(classes)) < max(2, len(classes)):
        raise PlumblineError(
            f"`manipulations.{manipulation}.classes` are {', '.join(classes)}; name two or more, each once."
        )
    return classes


def _matrix(settings: Mapping[str, Any], classes: Sequence[str]) -> np.ndarray:
    if settings["matrix"] is None:
        return reassignment_matrix(settings["r"], len(classes))
    matrix = np.array(settings["matrix"], dtype=np.float64)
    if matrix.shape != (len(classes), len(classes)):
        raise PlumblineError(
            f"The manipulation '{settings['name']}' has a `matrix` of {len(matrix)} classes, but there are "
            f"{len(classes)} ({', '.join(classes)}): write one row and one column for each."
        )
    return matrix


def _manipulate_images(
    instances: Instances,
    labels: np.ndarray,
    generators: Sequence[np.random.Generator],
    function: Callable[..., ImageManipulation],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Columns of images; those of the first class are unchanged, but all have the region."""
    size = side_length(len(instances.ids[0]))
    region, change = function(size, **settings["options"])
    if not region.any():
        raise PlumblineError(
            f"The manipulation '{settings['name']}' with {settings['options']} changes no pixel of an image of "
            f"{size} x {size}; choose other options."
        )
    ids = [
        pack(change(unpack(image), generator)) if label == CHANGED_CLASS else image
        for image, label, generator in zip(instances.ids, labels, generators, strict=True)
    ]
    outside = ~region.ravel()
    if any(not np.array_equal(old[outside], new[outside]) for old, new in zip(instances.ids, ids, strict=True)):
        raise PlumblineError(
            f"The manipulation '{settings['name']}' changes pixels outside its region; correct its `change` or "
            "`region`."
        )
    groups = region.ravel().astype(np.int8)
    return {"tokens": [[]] * len(ids), "ids": ids, "maskable": instances.maskable, "groups": [groups] * len(ids)}


def _manipulate_texts(
    table: pa.Table,
    labels: np.ndarray,
    generators: Sequence[np.random.Generator],
    words: Sequence[str],
    function: Callable[..., ChangedText],
    facts: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Columns of texts, without `evidence`, which refers to the original label."""
    ids = {word: id_ for id_, word in enumerate(words) if id_ >= len(SPECIALS)}
    rows = []
    texts = zip(*(table[column].to_pylist() for column in ("tokens", "tokens_b")), labels, generators, strict=True)
    for tokens, seconds, label, generator in texts:
        # The first and the last token of a prepared text are special.
        before = InstanceWords(tokens[1:-1], seconds and seconds[1:-1])
        change = function(before, int(label), generator, **settings["options"])
        first = _encode_text(before.first, change.first, change.first_groups, ids, facts, settings)
        rows.append(first + _encode_text(before.second, change.second, change.second_groups, ids, facts, settings))
    names = [f"{column}{text}" for text in ("", "_b") for column in ("tokens", "ids", "maskable", "groups")]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _encode_text(
    before: list[str] | None,
    after: list[str] | None,
    groups: list[int] | None,
    ids: Mapping[str, int],
    facts: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> tuple[Any, ...]:
    """Tokens, ids, maskable and groups of a text, special tokens included; None for each without a text."""
    if before is None and after is None and groups is None:
        return None, None, None, None
    if not before or not after or groups is None or len(after) != len(groups):
        raise PlumblineError(
            f"The manipulation '{settings['name']}' must return at least one word for each existing text, none for a "
            "missing second text, and a group for each word."
        )
    if not set(groups) <= set(range(len(facts["groups"]) + 1)):
        raise PlumblineError(
            f"The manipulation '{settings['name']}' put a word into group {max(groups)}, but it declares "
            f"{len(facts['groups'])} `groups`."
        )
    own = set(before)
    for word, group in zip(after, groups, strict=True):
        if word not in ids and (group or word not in own):
            raise PlumblineError(
                f"The manipulation '{settings['name']}' puts the word '{word}' into texts, but it is not in the "
                "vocabulary: add it to the declaration's `words`, or choose a word of the texts."
            )
    maskable = [False, *[True] * len(after), False]
    return [SPECIALS[SOS], *after, SPECIALS[EOS]], encode(after, ids), maskable, [0, *groups, 0]


def _group_shares(columns: Mapping[str, Any], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """The share of each group in the words, or pixels, of each split."""
    counts = {split: np.zeros(len(names) + 1) for split in dict.fromkeys(columns["split"])}
    for text in ("", "_b") if columns.get("groups_b", [None])[0] else ("",):
        for split, groups, free in zip(
            columns["split"], columns[f"groups{text}"], columns[f"maskable{text}"], strict=True
        ):
            counts[split] += np.bincount(np.asarray(groups)[free], minlength=len(names) + 1)
    return {split: dict(zip(names, (n[1:] / n.sum()).tolist(), strict=True)) for split, n in counts.items()}


def _summarize(
    columns: Mapping[str, Any], split: str, plain: Mapping[str, Any], classes: Sequence[str]
) -> dict[str, Any]:
    """The plain dataset's summary of a split, with the classes that are kept and the instances recounted."""
    rows = [row for row, name in enumerate(columns["split"]) if name == split]
    if not rows:
        raise PlumblineError(
            f"The split '{split}' has no instance of the classes {', '.join(classes)}; name other `classes`."
        )
    texts = {name: plain["texts_per_class"][name] for name in classes}
    instances = count_per_class((int(columns["label"][row]) for row in rows), classes)
    lengths = [int(np.sum(columns["maskable"][row])) for row in rows]
    summary = {**plain, **summarize_split(texts, instances, lengths)}
    if columns["tokens"][0]:
        summary["unknown_share"] = sum(columns["ids"][row].count(UNK) for row in rows) / sum(lengths)
    return summary
