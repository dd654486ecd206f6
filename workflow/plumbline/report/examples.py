"""Example texts for the page's heatmaps: the same for all models of a dataset, with every measure's importances."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.data.instances import ragged, sample
from plumbline.figures.style import ordered, reference_measure
from plumbline.protocols.rank_statistics import kendall_tau
from plumbline.report.agreement import RANKED
from plumbline.tables.adversary import attention_divergence

# The columns of the table `adversaries` that are shown.
ADVERSARIES = ["seed", "split", "instance", "epsilon", "feasible", "jsd", "change", "adversary"]
# Of many classes so many are shown.
MOST_PROBABLE = 3


class Told(NamedTuple):
    """What a measure tells of one text: a score for each word and, if it has them, for each word of the second text and
    each special token, those of the text first."""

    scores: np.ndarray
    pair: np.ndarray | None = None
    specials: np.ndarray | None = None


@dataclass(frozen=True)
class Rival:
    """An adversarial model: its title, the seed of the base model that it was set against, its own seed, where it looks
    and what it predicted."""

    title: str
    base_seed: int
    seed: int
    attention: pa.Table
    predictions: pa.Table


@dataclass(frozen=True)
class Block:
    """A block of seeds of one model: what it predicted, the importances of each measure, read when asked for, and, if
    the study has them, the adversaries of its attention, and where it looks itself beside adversarial models."""

    dataset: str
    model: str
    predictions: pa.Table
    importances: Iterable[tuple[str, pa.Table]]
    adversaries: pa.Table | None = None
    attention: pa.Table | None = None
    rivals: Iterable[Rival] = ()


def collect(
    blocks: Iterable[Block],
    summaries: list[dict[str, Any]],
    instances: Mapping[str, pa.Table],
    split: str,
    count: int,
    seconds: Mapping[str, str] | None = None,
    pieces: Mapping[tuple[str, str], pa.Table] | None = None,
    sampled: int | None = None,
    specials: bool = False,
) -> list[dict[str, Any]]:
    """The examples of every dataset as plain values; `instances` holds each dataset's table, `seconds` what its second
    texts are, `pieces` the table of each dataset and model that has word pieces of its own. If so many texts are
    `sampled`, each seed has explained others. `specials` says whether special tokens are ranked too.

    A dataset's first block chooses the texts for all its models. Datasets come in the order of the summaries.
    """
    found: dict[str, dict[str, Any]] = {}
    for block in blocks:
        if block.dataset not in found:
            classes = next(summary["classes"] for summary in summaries if summary["dataset"] == block.dataset)
            chosen = choose_texts(block.predictions, split, count, sampled)
            texts = describe_texts(instances[block.dataset], split, chosen)
            found[block.dataset] = {
                "dataset": block.dataset,
                "classes": classes,
                "split": split,
                "second": (seconds or {}).get(block.dataset, "second text"),
                "texts": texts,
                "models": {},
            }
        example = found[block.dataset]
        numbers = [text["number"] for text in example["texts"]]
        explained = explain(block, split, numbers, specials)
        if explained["seeds"]:
            model = example["models"].setdefault(block.model, {**explained, "seeds": {}})
            model["seeds"] |= explained["seeds"]
            own = (pieces or {}).get((block.dataset, block.model))
            if own is not None:
                model["texts"] = describe_texts(own, split, numbers)
    examples = [found[summary["dataset"]] for summary in summaries if summary["dataset"] in found]
    return [example for example in examples if example["texts"] and example["models"]]


def choose_texts(predictions: pa.Table, split: str, count: int, sampled: int | None = None) -> list[int]:
    """Numbers of the texts to show: right and wrong predictions of the first seed, in turn, for each class in turn; if
    only so many texts are `sampled`, of those that it has drawn."""
    here = predictions.filter(pc.equal(predictions["split"].cast(pa.string()), split))
    if not len(here) or not count:
        return []
    first = pc.min(here["seed"])
    here = here.filter(pc.equal(here["seed"], first))
    if sampled is not None:
        here = here.take(sample(np.full(len(here), split), sampled, first.as_py()))
    labels, numbers = here["label"].to_numpy(), here["instance"].to_numpy()
    right = np.stack(ragged(here["probabilities"])).argmax(1) == labels
    # A fixed shuffle, so that the texts are not all from the start of the file and are the same in every run.
    order = np.random.default_rng(0).permutation(len(labels))
    queues = [
        [int(numbers[i]) for i in order if labels[i] == label and right[i] == correct]
        for label in np.unique(labels)
        for correct in (True, False)
    ]
    turns = [queue[turn] for turn in range(count) for queue in queues if turn < len(queue)]
    return sorted(turns[:count])


def describe_texts(instances: pa.Table, split: str, numbers: list[int]) -> list[dict[str, Any]]:
    """The tokens of each text, which of them are words, and the label; if it has them, also the tokens of its second
    text and the places of the words that hold the answer."""
    place = {row["instance"]: row for row in _rows(instances, split, numbers).to_pylist()}
    return [_describe(number, place[number]) for number in numbers]


def _describe(number: int, row: dict[str, Any]) -> dict[str, Any]:
    text = {
        "number": number,
        "label": row["label"],
        "tokens": row["tokens"],
        "scored": [int(free) for free in row["maskable"]],
    }
    if row["tokens_b"]:
        words = row["maskable_b"] or [True] * len(row["tokens_b"])
        text["second"] = {"tokens": row["tokens_b"], "scored": [int(free) for free in words]}
    if row["evidence"]:
        text["evidence"] = [place for place, holds in enumerate(row["evidence"]) if holds]
    if row["groups"]:
        # The first group is the truth, others only look like it.
        text["groups"] = {place: group for place, group in enumerate(row["groups"]) if group}
    return text


def explain(block: Block, split: str, numbers: list[int], specials: bool = False) -> dict[str, Any]:
    """What a block's models predict for the texts, each measure's scores, and how well measures agree.

    A measure has no scores of a text that a seed has not explained.
    """
    importances: dict[str, dict[tuple[int, int], Told]] = {}
    for measure, table in block.importances:
        rows = _rows(table, split, numbers).to_pylist()
        importances[measure] = {
            (row["seed"], row["instance"]): Told(*(_numbers(row[part]) for part in Told._fields)) for row in rows
        }
    measures = ordered(importances)
    reference = reference_measure(measures) if measures else None
    predicted = _rows(block.predictions, split, numbers)
    said = {(row["seed"], row["instance"]): row["probabilities"] for row in predicted.to_pylist()}
    attacks = _attacks(block.adversaries, split, numbers)
    rivals = _rivals(block, split, numbers, said)
    seeds: dict[str, list[dict[str, Any]]] = {}
    for seed in sorted({seed for seed, _ in (said if measures else rivals)}):
        keys = [(seed, number) for number in numbers]
        told = {
            key: {measure: importances[measure][key] for measure in measures if key in importances[measure]}
            for key in keys
        }
        seeds[str(seed)] = [
            {
                "probable": most_probable(said[key]),
                **plain_scores(told[key]),
                **(taus(told[key], reference, specials) if len(told[key]) > 1 else {}),
                **({"adversaries": attacks[key]} if key in attacks else {}),
                **({"rivals": rivals[key]} if key in rivals else {}),
            }
            for key in keys
        ]
    return {"measures": measures, "reference": reference, "seeds": seeds}


def plain_scores(told: Mapping[str, Told]) -> dict[str, dict[str, list[float | None]]]:
    """What measures tell of one text as plain values, part by part; only `scores` is always there."""
    parts = {
        part: {m: [_short(s) for s in getattr(one, part)] for m, one in told.items() if getattr(one, part) is not None}
        for part in Told._fields
    }
    return {part: scores for part, scores in parts.items() if scores or part == "scores"}


def taus(told: Mapping[str, Told], reference: str | None, specials: bool = False) -> dict[str, Any]:
    """Kendall τ of all pairs of measures on one text: their `mean`, for each measure its τ with the reference and its
    mean with all others, and which tokens are `ranked`. None stands for what is not defined."""
    measures = list(told)
    tokens, scores = common_tokens(list(told.values()), specials)
    # A constant vector has no τ; neither has one that is not finite.
    scores[~np.isfinite(scores).all(1)] = 0.0
    tau = kendall_tau(scores[None])[0][0]
    np.fill_diagonal(tau, np.nan)
    referred = tau[measures.index(reference)] if reference and reference in told else np.full(len(measures), np.nan)
    return {
        "ranked": RANKED[tokens],
        "mean": _mean(tau[np.triu_indices(len(measures), 1)]),
        "tau": {measure: [_short(referred[i]), _mean(tau[i])] for i, measure in enumerate(measures)},
    }


def common_tokens(told: Sequence[Told], specials: bool = False) -> tuple[str, np.ndarray]:
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
    return tokens, np.concatenate([np.stack(part) for part in scores], axis=1)


def most_probable(probabilities: list[float]) -> list[list[float | None]]:
    """The most probable classes, by their number, each with its probability."""
    best = np.argsort(-np.asarray(probabilities), kind="stable")[:MOST_PROBABLE]
    return [[int(label), _short(probabilities[label])] for label in best]


def _attacks(
    adversaries: pa.Table | None, split: str, numbers: list[int]
) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """The best adversary of each seed and text for each epsilon; where none was found only the epsilon."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    rows = [] if adversaries is None else _rows(adversaries, split, numbers).to_pylist()
    for row in sorted(rows, key=lambda row: row["epsilon"]):
        attack = {"epsilon": row["epsilon"]}
        if row["feasible"]:
            attack |= {"jsd": _short(row["jsd"]), "change": _short(row["change"])}
            attack["scores"] = _weights(row["adversary"])
        found.setdefault((row["seed"], row["instance"]), []).append(attack)
    return found


def _rivals(
    block: Block, split: str, numbers: list[int], told: Mapping[tuple[int, int], list[float]]
) -> dict[tuple[int, int], dict[str, Any]]:
    """Of each base seed and text where the base model looks, and where its rivals do, with their JSD from it and their
    probability of its class; means over heads."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    looks = {} if block.attention is None else _looks(block.attention, split, numbers)
    for rival in block.rivals:
        others = _looks(rival.attention, split, numbers)
        rows = _rows(rival.predictions, split, numbers).to_pylist()
        said = {row["instance"]: row["probabilities"] for row in rows if row["seed"] == rival.seed}
        for number in numbers:
            key = rival.base_seed, number
            heads, other = looks[key], others[rival.seed, number].mean(0)
            shown = found.setdefault(key, {"heads": len(heads), "scores": _weights(heads.mean(0)), "models": []})
            shown["models"].append(
                {
                    "title": rival.title,
                    "seed": rival.seed,
                    "jsd": _short(float(attention_divergence(heads.mean(0), other))),
                    "probability": _short(said[number][int(np.argmax(told[key]))]),
                    "scores": _weights(other),
                }
            )
    return found


def _looks(attention: pa.Table, split: str, numbers: list[int]) -> dict[tuple[int, int], np.ndarray]:
    """The weights [heads, words] of each seed and text."""
    rows = _rows(attention, split, numbers).to_pylist()
    return {(row["seed"], row["instance"]): np.reshape(row["attention"], (row["heads"], -1)) for row in rows}


def _rows(table: pa.Table, split: str, numbers: list[int]) -> pa.Table:
    wanted = pc.is_in(table["instance"], pa.array(numbers, table["instance"].type))
    return table.filter(pc.and_(wanted, pc.equal(table["split"].cast(pa.string()), split)))


def _numbers(scores: list[float | None] | None) -> Any:
    """Scores as an array, NaN where one is missing; None if there are none."""
    return None if scores is None else np.array(scores, dtype=np.float64)


def _weights(weights: Iterable[float]) -> list[float | None]:
    """Most words of an adversary have next to no weight, and need no digits."""
    return [round(float(weight), 4) or 0 if np.isfinite(weight) else None for weight in weights]


def _mean(values: np.ndarray) -> float | None:
    """The mean of those that are defined, if any are."""
    known = values[np.isfinite(values)]
    return _short(known.mean()) if len(known) else None


def _short(value: float) -> float | None:
    """Three significant digits are enough for a colour and keep the page small."""
    return float(f"{value:.3g}") if np.isfinite(value) else None
