"""What the explorer shows of single texts and pictures, as plain values."""

import base64
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.data.instances import ragged, sample
from plumbline.data.manipulation import attributed_share
from plumbline.data.pixels import side, unpack
from plumbline.figures.conventions import brightest
from plumbline.protocols.adversary.table import attention_divergence
from plumbline.protocols.agreement.page import RANKED
from plumbline.protocols.agreement.rank_statistics import kendall_tau

# The columns that are shown of texts, of pictures, and of the adversaries of attention.
TEXT = ["label", "original_label", "tokens", "maskable", "tokens_b", "maskable_b", "evidence", "groups", "groups_b"]
PICTURE = ["label", "original_label", "ids", "groups"]
ADVERSARIES = ["epsilon", "feasible", "jsd", "change", "adversary"]
# Of many classes so many are shown.
MOST_PROBABLE = 3
# Steps of a map to either side of 0, and pixels of the side of a picture, of which more are put together.
STEPS = 127
MOST_PIXELS = 128

Row = dict[str, Any]


class TextScores(NamedTuple):
    """What a measure tells of one text: a score for each word and, if it has them, for each word of the second text and
    each special token, those of the text first."""

    scores: np.ndarray
    pair: np.ndarray | None = None
    specials: np.ndarray | None = None


def choose_instances(predictions: pa.Table, split: str, count: int, sampled: int | None = None) -> list[int]:
    """Numbers of the instances to show: right and wrong predictions of the first seed, in turn, for each class in turn;
    if only so many are `sampled`, of those that it has drawn."""
    here = predictions.filter(pc.equal(predictions["split"].cast(pa.string()), split))
    if not len(here) or not count:
        return []
    first = pc.min(here["seed"])
    here = here.filter(pc.equal(here["seed"], first))
    if sampled is not None:
        here = here.take(sample(np.full(len(here), split), sampled, first.as_py()))
    labels, numbers = here["label"].to_numpy(), here["instance"].to_numpy()
    right = np.stack(ragged(here["probabilities"])).argmax(1) == labels
    # A fixed shuffle, so that the instances are not all from the start of the file and are the same in every run.
    order = np.random.default_rng(0).permutation(len(labels))
    queues = [
        [int(numbers[i]) for i in order if labels[i] == label and right[i] == correct]
        for label in np.unique(labels)
        for correct in (True, False)
    ]
    turns = [queue[turn] for turn in range(count) for queue in queues if turn < len(queue)]
    return sorted(turns[:count])


def describe_text(row: Row) -> Row:
    """The tokens of a text and the places of those that are no words; if it has them, its second text, the places of
    words that hold the answer, the group of those that a manipulation put there, and the label before it."""
    text = _tokens(row["tokens"], row["maskable"], row["groups"])
    if row["tokens_b"]:
        words = np.ones(len(row["tokens_b"]), bool) if row["maskable_b"] is None else row["maskable_b"]
        text["second"] = _tokens(row["tokens_b"], words, row["groups_b"])
    if row["evidence"] is not None and row["evidence"].any():
        text["evidence"] = np.flatnonzero(row["evidence"]).tolist()
    return text | _relabelled(row)


def _tokens(tokens: list[str], words: np.ndarray, groups: np.ndarray | None) -> Row:
    text: Row = {"tokens": tokens, "specials": np.flatnonzero(~words.astype(bool)).tolist()}
    if groups is not None and groups.any():
        # The first group is the truth, others only look like it.
        text["groups"] = {int(place): int(groups[place]) for place in np.flatnonzero(groups)}
    return text


def _relabelled(row: Row) -> Row:
    return {} if row["original_label"] in (None, row["label"]) else {"was": row["original_label"]}


def describe_picture(row: Row) -> Row:
    """The colours of a picture's pixels, row by row, and which of them the label follows, if that is known."""
    pixels = shrunk(unpack(row["ids"]))
    picture = {"side": len(pixels), "pixels": packed(np.rint(pixels).astype(np.uint8))}
    if row["groups"] is not None:
        picture["region"] = packed(np.packbits(shrunk(square(row["groups"] == 1)) >= 0.5))
    return picture | _relabelled(row)


def square(pixels: np.ndarray) -> np.ndarray:
    """Values of pixels [H * H] as [H, H]."""
    return pixels.reshape(side(len(pixels)), -1)


def shrunk(pixels: np.ndarray) -> np.ndarray:
    """Values of pixels [H, H, ...], or of a large picture the means of neighbours."""
    step = -(-len(pixels) // MOST_PIXELS)
    places = np.arange(0, len(pixels), step)
    sizes = np.diff([*places, len(pixels)])
    rows = np.add.reduceat(pixels, places, 0, dtype=np.float64)
    sums = np.add.reduceat(rows, places, 1)
    return sums / np.outer(sizes, sizes).reshape(len(sizes), len(sizes), *[1] * (pixels.ndim - 2))


def map_of(scores: np.ndarray) -> list[Any]:
    """A map of a picture: the strength that figures show as brightest, and scores in steps of it."""
    drawn = shrunk(square(scores))
    top = brightest(drawn)
    steps = np.rint(np.nan_to_num(np.clip(drawn / top, -1, 1)) * STEPS)
    return [short(top), packed(steps.astype(np.int8))]


def packed(values: np.ndarray) -> str:
    """The bytes of an array as text."""
    return base64.b64encode(values.tobytes()).decode()


def truth_mask(row: Row, words: bool = True) -> np.ndarray | None:
    """Of each word, or pixel, whether the label follows it or it holds the answer; None where that is not known."""
    found = row.get("evidence") if row["groups"] is None else row["groups"] == 1
    if found is None or not found.any():
        return None
    return found[row["maskable"].astype(bool)] if words else found


def on_truth(told: Mapping[str, TextScores], truth: np.ndarray | None) -> Row:
    """The share of each measure's importance that falls on what is marked."""
    if truth is None or not told:
        return {}
    fitting = {name: one.scores for name, one in told.items() if len(one.scores) == len(truth)}
    return {"truth": {name: short(attributed_share(scores, truth)) for name, scores in fitting.items()}}


def plain_scores(told: Mapping[str, TextScores]) -> dict[str, dict[str, list[float | None]]]:
    """What measures tell of one text as plain values, part by part; only `scores` is always there."""
    parts = {
        part: {m: shorts(getattr(one, part)) for m, one in told.items() if getattr(one, part) is not None}
        for part in TextScores._fields
    }
    return {part: scores for part, scores in parts.items() if scores or part == "scores"}


def taus(
    texts: Sequence[Mapping[str, TextScores]], reference: str | None, specials: bool = False, random: str = ""
) -> list[Row]:
    """Kendall τ of all pairs of measures on each text: their `mean`, for each measure its τ with the reference and its
    mean with all others, and which tokens are `ranked`. None stands for what is not defined; a text that only one
    measure tells of has none of it. The measure `random` counts in no mean but its own."""
    found: list[Row] = [{} for _ in texts]
    alike: dict[tuple[Any, ...], list[tuple[int, np.ndarray]]] = defaultdict(list)
    for i, told in enumerate(texts):
        if len(told) > 1:
            tokens, scores = common_tokens(list(told.values()), specials)
            # A constant vector has no τ; neither has one that is not finite.
            scores[~np.isfinite(scores).all(1)] = 0.0
            alike[tokens, tuple(told), scores.shape[1]].append((i, scores))
    for (tokens, measures, _), members in alike.items():
        tau = kendall_tau(np.stack([scores for _, scores in members]))[0]
        own = np.arange(len(measures))
        tau[:, own, own] = np.nan
        referred = tau[:, measures.index(reference)] if reference in measures else np.full(tau.shape[:2], np.nan)
        drawn = np.array([measure == random for measure in measures])
        counted = np.where(drawn, np.nan, tau)
        means, whole = shorts(_means(counted, 2).ravel()), shorts(_means(counted[:, ~drawn], (1, 2)))
        pairs = iter(zip(shorts(referred.ravel()), means, strict=True))
        for (i, _), mean in zip(members, whole, strict=True):
            of_each = {measure: list(next(pairs)) for measure in measures}
            found[i] = {"ranked": RANKED[tokens], "mean": mean, "tau": of_each}
    return found


def _means(values: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """Means of those that are defined; NaN where none are."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0).sum(axis) / known.sum(axis)


def common_tokens(told: Sequence[TextScores], specials: bool = False) -> tuple[str, np.ndarray]:
    """The tokens of one text that all measures score, as the table `agreement` calls them, and the scores [M, n]."""
    tokens, scores = "text", [[one.scores for one in told]]
    further = {"texts": [one.pair for one in told], "all": [one.specials for one in told] if specials else []}
    for more, part in further.items():
        known = [own for own in part if own is not None]
        # Texts that stand alone have no second one, whatever the measure.
        if not known:
            continue
        if len(known) < len(told) or len({len(own) for own in known}) > 1:
            break
        tokens = more
        scores.append(known)
    return tokens, np.concatenate([np.stack(part) for part in scores], axis=1).astype(np.float64)


def most_probable(probabilities: np.ndarray) -> list[list[float | None]]:
    """The most probable classes, by their number, each with its probability."""
    best = np.argsort(-probabilities, kind="stable")[:MOST_PROBABLE]
    return [[int(label), short(probabilities[label])] for label in best]


def attacks(rows: Iterable[tuple[int, Row]]) -> dict[int, list[Row]]:
    """The best adversary of each text's attention for each epsilon; where none was found only the epsilon."""
    found: dict[int, list[Row]] = defaultdict(list)
    for place, row in sorted(rows, key=lambda one: (one[0], one[1]["epsilon"])):
        attack = {"epsilon": row["epsilon"]}
        if row["feasible"]:
            attack |= {"jsd": short(row["jsd"]), "change": short(row["change"]), "scores": weights(row["adversary"])}
        found[place].append(attack)
    return found


def attention_weights(rows: Iterable[tuple[int, Row]]) -> dict[int, np.ndarray]:
    """The weights [heads, words] of each text."""
    return {place: np.reshape(row["attention"], (row["heads"], -1)) for place, row in rows}


def describe_adversary(title: str, seed: int, own: np.ndarray, other: np.ndarray, probability: float) -> Row:
    """An adversarial model beside its base model, by the weights [heads, words] of both: means over heads."""
    mine, theirs = own.mean(0), other.mean(0)
    jsd = short(float(attention_divergence(mine, theirs)))
    return {"title": title, "seed": seed, "jsd": jsd, "probability": short(probability), "scores": weights(theirs)}


def weights(values: np.ndarray) -> list[float | None]:
    """Most words of an adversary have next to no weight, and need no digits."""
    return [round(value, 4) or 0 if np.isfinite(value) else None for value in map(float, values)]


def short(value: float) -> float | None:
    """Three significant digits are enough for a colour and keep files small."""
    return float(f"{value:.3g}") if np.isfinite(value) else None


def shorts(values: np.ndarray) -> list[float | None]:
    """The same of all values."""
    if np.isfinite(values).all():
        return [float("%.3g" % value) for value in values.tolist()]  # noqa: UP031 - twice as fast
    return [short(value) for value in values.tolist()]
