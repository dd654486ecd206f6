"""Single texts and images as plain values for the explorer."""

import base64
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.data.instances import draw_sample, ragged
from plumbline.data.manipulation import attributed_share
from plumbline.data.pixels import side_length, unpack
from plumbline.figures.conventions import brightest
from plumbline.protocols.adversary.table import attention_divergence
from plumbline.protocols.agreement.page import RANKED_TOKENS
from plumbline.protocols.agreement.rank_statistics import kendall_tau

# The shown columns of texts, of images, and of adversarial attention.
TEXT = ["label", "original_label", "tokens", "maskable", "tokens_b", "maskable_b", "evidence", "groups", "groups_b"]
IMAGE = ["label", "original_label", "ids", "groups"]
ADVERSARIES = ["epsilon", "feasible", "jsd", "change", "adversary"]
# The number of classes shown with their probabilities.
MOST_PROBABLE = 3
# Steps of a saliency map on either side of 0, and the largest side of an image in pixels; larger ones are downsampled.
STEPS = 127
MOST_PIXELS = 128

Row = dict[str, Any]


class TextScores(NamedTuple):
    """A measure's scores of one text: for each word and, if it has them, for each word of the second text and each
    special token, those of the text first."""

    scores: np.ndarray
    pair: np.ndarray | None = None
    specials: np.ndarray | None = None


def choose_instances(predictions: pa.Table, split: str, count: int, sampled: int | None = None) -> list[int]:
    """Numbers of the instances to show: correct and wrong predictions of the first seed, alternating, for each class in
    turn; if each seed explains a sample of `sampled` instances, of those of the first seed."""
    rows = predictions.filter(pc.equal(predictions["split"].cast(pa.string()), split))
    if not len(rows) or not count:
        return []
    first = pc.min(rows["seed"])
    rows = rows.filter(pc.equal(rows["seed"], first))
    if sampled is not None:
        rows = rows.take(draw_sample(np.full(len(rows), split), sampled, first.as_py()))
    labels, numbers = rows["label"].to_numpy(), rows["instance"].to_numpy()
    right = np.stack(ragged(rows["probabilities"])).argmax(1) == labels
    # A fixed shuffle: instances are not all from the start of the file, and are the same in every run.
    order = np.random.default_rng(0).permutation(len(labels))
    queues = [
        [int(numbers[i]) for i in order if labels[i] == label and right[i] == correct]
        for label in np.unique(labels)
        for correct in (True, False)
    ]
    turns = [queue[turn] for turn in range(count) for queue in queues if turn < len(queue)]
    return sorted(turns[:count])


def describe_text(row: Row) -> Row:
    """The tokens of a text and the positions of special tokens; if it has them, its second text, the positions of
    evidence for the answer, the groups of manipulated words, and the label before the manipulation."""
    text = _tokens(row["tokens"], row["maskable"], row["groups"])
    if row["tokens_b"]:
        words = np.ones(len(row["tokens_b"]), bool) if row["maskable_b"] is None else row["maskable_b"]
        text["second"] = _tokens(row["tokens_b"], words, row["groups_b"])
    if row["evidence"] is not None and row["evidence"].any():
        text["evidence"] = np.flatnonzero(row["evidence"]).tolist()
    return text | _original_label(row)


def _tokens(tokens: list[str], words: np.ndarray, groups: np.ndarray | None) -> Row:
    text: Row = {"tokens": tokens, "specials": np.flatnonzero(~words.astype(bool)).tolist()}
    if groups is not None and groups.any():
        # The first group determines the label, others only look like it.
        text["groups"] = {int(i): int(groups[i]) for i in np.flatnonzero(groups)}
    return text


def _original_label(row: Row) -> Row:
    return {} if row["original_label"] in (None, row["label"]) else {"original_label": row["original_label"]}


def describe_image(row: Row) -> Row:
    """The pixels of an image, row by row, and its effective region, if that is known."""
    pixels = downsampled(unpack(row["ids"]))
    image = {"side": len(pixels), "pixels": to_base64(np.rint(pixels).astype(np.uint8))}
    if row["groups"] is not None:
        image["region"] = to_base64(np.packbits(downsampled(square(row["groups"] == 1)) >= 0.5))
    return image | _original_label(row)


def square(pixels: np.ndarray) -> np.ndarray:
    """Pixels [H * H] as [H, H]."""
    return pixels.reshape(side_length(len(pixels)), -1)


def downsampled(pixels: np.ndarray) -> np.ndarray:
    """Pixels [H, H, ...], averaged over blocks if the image is large."""
    step = -(-len(pixels) // MOST_PIXELS)
    starts = np.arange(0, len(pixels), step)
    sizes = np.diff([*starts, len(pixels)])
    sums = np.add.reduceat(np.add.reduceat(pixels, starts, 0, dtype=np.float64), starts, 1)
    return sums / np.outer(sizes, sizes).reshape(len(sizes), len(sizes), *[1] * (pixels.ndim - 2))


def saliency_map(scores: np.ndarray) -> list[Any]:
    """A saliency map: the score drawn at full strength, and all scores in steps of it."""
    drawn = downsampled(square(scores))
    top = brightest(drawn)
    steps = np.rint(np.nan_to_num(np.clip(drawn / top, -1, 1)) * STEPS)
    return [rounded(top), to_base64(steps.astype(np.int8))]


def to_base64(values: np.ndarray) -> str:
    """The bytes of an array in base64."""
    return base64.b64encode(values.tobytes()).decode()


def truth_mask(row: Row, words: bool = True) -> np.ndarray | None:
    """The words or pixels that determine the label or contain the answer; None where that is not known."""
    mask = row.get("evidence") if row["groups"] is None else row["groups"] == 1
    if mask is None or not mask.any():
        return None
    return mask[row["maskable"].astype(bool)] if words else mask


def truth_shares(measures: Mapping[str, TextScores], truth: np.ndarray | None) -> Row:
    """The share of each measure's importance inside the mask `truth`."""
    if truth is None or not measures:
        return {}
    fitting = {name: text.scores for name, text in measures.items() if len(text.scores) == len(truth)}
    return {"truth": {name: rounded(attributed_share(scores, truth)) for name, scores in fitting.items()}}


def plain_scores(measures: Mapping[str, TextScores]) -> dict[str, dict[str, list[float | None]]]:
    """The scores of one text as plain values, by part and measure; only the part `scores` is always present."""
    parts = {
        part: {
            name: rounded_all(getattr(text, part)) for name, text in measures.items() if getattr(text, part) is not None
        }
        for part in TextScores._fields
    }
    return {part: scores for part, scores in parts.items() if scores or part == "scores"}


def agreement_by_text(
    texts: Sequence[Mapping[str, TextScores]], reference: str | None, specials: bool = False, random: str = ""
) -> list[Row]:
    """Kendall τ of all pairs of measures on each text: their `mean`, for each measure its τ with the reference and its
    mean with all others, and which tokens are `ranked`. None if undefined; empty for a text with a single measure.
    The measure `random` counts in no mean but its own."""
    agreement: list[Row] = [{} for _ in texts]
    batches: dict[tuple[Any, ...], list[tuple[int, np.ndarray]]] = defaultdict(list)
    for i, scored in enumerate(texts):
        if len(scored) > 1:
            tokens, scores = common_tokens(list(scored.values()), specials)
            # A constant vector has no τ; neither has one that is not finite.
            scores[~np.isfinite(scores).all(1)] = 0.0
            batches[tokens, tuple(scored), scores.shape[1]].append((i, scores))
    for (tokens, measures, _), members in batches.items():
        tau = kendall_tau(np.stack([scores for _, scores in members]))[0]
        own = np.arange(len(measures))
        tau[:, own, own] = np.nan
        with_reference = tau[:, measures.index(reference)] if reference in measures else np.full(tau.shape[:2], np.nan)
        is_random = np.array([measure == random for measure in measures])
        counted = np.where(is_random, np.nan, tau)
        means, whole = rounded_all(_means(counted, 2).ravel()), rounded_all(_means(counted[:, ~is_random], (1, 2)))
        pairs = iter(zip(rounded_all(with_reference.ravel()), means, strict=True))
        for (i, _), mean in zip(members, whole, strict=True):
            by_measure = {measure: list(next(pairs)) for measure in measures}
            agreement[i] = {"ranked": RANKED_TOKENS[tokens], "mean": mean, "tau": by_measure}
    return agreement


def _means(values: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """Means of the finite values; NaN where there are none."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.where(known, values, 0).sum(axis) / known.sum(axis)


def common_tokens(measures: Sequence[TextScores], specials: bool = False) -> tuple[str, np.ndarray]:
    """The tokens of one text that all measures score, as named in the table `agreement`, and the scores [M, n]."""
    tokens, scores = "text", [[text.scores for text in measures]]
    parts = {"texts": [text.pair for text in measures], "all": [text.specials for text in measures] if specials else []}
    for name, part in parts.items():
        known = [values for values in part if values is not None]
        # A single text has no second one, whatever the measure.
        if not known:
            continue
        if len(known) < len(measures) or len({len(values) for values in known}) > 1:
            break
        tokens = name
        scores.append(known)
    return tokens, np.concatenate([np.stack(part) for part in scores], axis=1).astype(np.float64)


def most_probable(probabilities: np.ndarray) -> list[list[float | None]]:
    """The most probable classes, each with its probability."""
    best = np.argsort(-probabilities, kind="stable")[:MOST_PROBABLE]
    return [[int(label), rounded(probabilities[label])] for label in best]


def adversarial_attention(rows: Iterable[tuple[int, Row]]) -> dict[int, list[Row]]:
    """The best adversarial attention of each text for each epsilon; only the epsilon where none was found."""
    by_text: dict[int, list[Row]] = defaultdict(list)
    for i, row in sorted(rows, key=lambda numbered: (numbered[0], numbered[1]["epsilon"])):
        attack = {"epsilon": row["epsilon"]}
        if row["feasible"]:
            attack |= {"jsd": rounded(row["jsd"]), "change": rounded(row["change"])}
            attack["scores"] = rounded_weights(row["adversary"])
        by_text[i].append(attack)
    return by_text


def attention_weights(rows: Iterable[tuple[int, Row]]) -> dict[int, np.ndarray]:
    """The weights [heads, words] of each text."""
    return {i: np.reshape(row["attention"], (row["heads"], -1)) for i, row in rows}


def describe_adversary(title: str, seed: int, base: np.ndarray, adversary: np.ndarray, probability: float) -> Row:
    """The attention of an adversarial model and its divergence from the base model's, by the weights [heads, words]."""
    weights = adversary.mean(0)
    jsd = rounded(float(attention_divergence(base.mean(0), weights)))
    described = {"title": title, "seed": seed, "jsd": jsd, "probability": rounded(probability)}
    return described | {"scores": rounded_weights(weights)}


def rounded_weights(values: np.ndarray) -> list[float | None]:
    """Weights to four decimals: most words of an adversary have next to no weight."""
    return [round(value, 4) or 0 if np.isfinite(value) else None for value in map(float, values)]


def rounded(value: float) -> float | None:
    """A value to three significant digits, enough for a colour; None if it is not finite."""
    return float(f"{value:.3g}") if np.isfinite(value) else None


def rounded_all(values: np.ndarray) -> list[float | None]:
    """All values to three significant digits."""
    if np.isfinite(values).all():
        return [float("%.3g" % value) for value in values.tolist()]  # noqa: UP031 - twice as fast
    return [rounded(value) for value in values.tolist()]
