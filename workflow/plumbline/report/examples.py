"""Example texts for the page's heatmaps: the same for all models of a dataset, with every measure's importances."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.data.instances import ragged
from plumbline.data.vocabulary import SOS, SPECIALS
from plumbline.figures.style import ordered, reference_measure
from plumbline.protocols.rank_statistics import kendall_tau
from plumbline.tables.adversary import attention_divergence

# The columns of the table `adversaries` that are shown.
ADVERSARIES = ["seed", "split", "instance", "epsilon", "feasible", "jsd", "change", "adversary"]
# Of many classes so many are shown.
MOST_PROBABLE = 3


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
) -> list[dict[str, Any]]:
    """The examples of every dataset as plain values; `instances` holds each dataset's table, `seconds` what its second
    texts are, `pieces` the table of each dataset and model that has word pieces of its own.

    A dataset's first block chooses the texts for all its models. Datasets come in the order of the summaries.
    """
    found: dict[str, dict[str, Any]] = {}
    for block in blocks:
        if block.dataset not in found:
            classes = next(summary["classes"] for summary in summaries if summary["dataset"] == block.dataset)
            chosen = choose_texts(block.predictions, split, count)
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
        explained = explain(block, split, numbers)
        if explained["seeds"]:
            model = example["models"].setdefault(block.model, {**explained, "seeds": {}})
            model["seeds"] |= explained["seeds"]
            own = (pieces or {}).get((block.dataset, block.model))
            if own is not None:
                model["texts"] = describe_texts(own, split, numbers)
    examples = [found[summary["dataset"]] for summary in summaries if summary["dataset"] in found]
    return [example for example in examples if example["texts"] and example["models"]]


def choose_texts(predictions: pa.Table, split: str, count: int) -> list[int]:
    """Numbers of the texts to show: right and wrong predictions of the first seed, in turn, for each class in turn."""
    here = predictions.filter(pc.equal(predictions["split"].cast(pa.string()), split))
    if not len(here) or not count:
        return []
    here = here.filter(pc.equal(here["seed"], pc.min(here["seed"])))
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
    """The tokens of each text, which of them are words that get a score, and the label; if it has them, also the words
    of its second text and the places of the words that hold the answer."""
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
        # Without the tokens that open and close it; one in word pieces is only closed.
        text["second"] = row["tokens_b"][row["tokens_b"][0] == SPECIALS[SOS] : -1]
    if row["evidence"]:
        text["evidence"] = [place for place, holds in enumerate(row["evidence"]) if holds]
    return text


def explain(block: Block, split: str, numbers: list[int]) -> dict[str, Any]:
    """What a block's models predict for the texts, each measure's scores, and their Kendall τ with the reference."""
    scores: dict[str, dict[tuple[int, int], np.ndarray]] = {}
    for measure, table in block.importances:
        rows = _rows(table, split, numbers)
        keys = zip(rows["seed"].to_pylist(), rows["instance"].to_pylist(), strict=True)
        scores[measure] = dict(zip(keys, ragged(rows["scores"]), strict=True))
    measures = ordered(scores)
    predicted = _rows(block.predictions, split, numbers)
    told = {(row["seed"], row["instance"]): row["probabilities"] for row in predicted.to_pylist()}
    attacks = _attacks(block.adversaries, split, numbers)
    rivals = _rivals(block, split, numbers, told)
    seeds: dict[str, list[dict[str, Any]]] = {}
    for seed in sorted({seed for seed, _ in (told if measures else rivals)}):
        seeds[str(seed)] = [
            {
                "probable": most_probable(told[seed, number]),
                "scores": {measure: [_short(s) for s in scores[measure][seed, number]] for measure in measures},
                "tau": taus([scores[measure][seed, number] for measure in measures], measures),
                **({"adversaries": attacks[seed, number]} if (seed, number) in attacks else {}),
                **({"rivals": rivals[seed, number]} if (seed, number) in rivals else {}),
            }
            for number in numbers
        ]
    return {"measures": measures, "reference": reference_measure(measures) if measures else None, "seeds": seeds}


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


def taus(scores: list[np.ndarray], measures: list[str]) -> dict[str, float | None]:
    """Kendall τ of each measure with the reference on one text; None where it is not defined."""
    if not measures:
        return {}
    matrix = np.stack(scores).astype(np.float64)[None]
    reference = measures.index(reference_measure(measures))
    if matrix.shape[-1] < 2 or not np.isfinite(matrix).all():
        return dict.fromkeys(measures)
    values = kendall_tau(matrix)[0][0, reference]
    return {measure: _short(value) for measure, value in zip(measures, values, strict=True)}


def _rows(table: pa.Table, split: str, numbers: list[int]) -> pa.Table:
    wanted = pc.is_in(table["instance"], pa.array(numbers, table["instance"].type))
    return table.filter(pc.and_(wanted, pc.equal(table["split"].cast(pa.string()), split)))


def _weights(weights: Iterable[float]) -> list[float | None]:
    """Most words of an adversary have next to no weight, and need no digits."""
    return [round(float(weight), 4) or 0 if np.isfinite(weight) else None for weight in weights]


def _short(value: float) -> float | None:
    """Three significant digits are enough for a colour and keep the page small."""
    return float(f"{value:.3g}") if np.isfinite(value) else None
