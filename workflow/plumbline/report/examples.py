"""Example texts for the page's heatmaps: the same for all models of a dataset, with every measure's importances."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plumbline.data.instances import ragged
from plumbline.figures.style import ordered, reference_measure
from plumbline.protocols.rank_statistics import kendall_tau


@dataclass(frozen=True)
class Block:
    """A block of seeds of one model: what it predicted, and the importances of each measure, read when asked for."""

    dataset: str
    model: str
    predictions: pa.Table
    importances: Iterable[tuple[str, pa.Table]]


def collect(
    blocks: Iterable[Block], summaries: list[dict[str, Any]], instances: Mapping[str, pa.Table], split: str, count: int
) -> list[dict[str, Any]]:
    """The examples of every dataset as plain values; `instances` holds each dataset's table.

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
                "texts": texts,
                "models": {},
            }
        example = found[block.dataset]
        numbers = [text["number"] for text in example["texts"]]
        explained = explain(block, split, numbers)
        if explained["measures"]:
            model = example["models"].setdefault(block.model, {**explained, "seeds": {}})
            model["seeds"] |= explained["seeds"]
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
    """The tokens of each text, which of them are words that get a score, and the label."""
    rows = _rows(instances, split, numbers).to_pylist()
    place = {row["instance"]: row for row in rows}
    return [
        {
            "number": number,
            "label": place[number]["label"],
            "tokens": place[number]["tokens"],
            "scored": [int(free) for free in place[number]["maskable"]],
        }
        for number in numbers
    ]


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
    seeds: dict[str, list[dict[str, Any]]] = {}
    for seed in sorted({seed for seed, _ in told}):
        seeds[str(seed)] = [
            {
                "probabilities": [_short(p) for p in told[seed, number]],
                "scores": {measure: [_short(s) for s in scores[measure][seed, number]] for measure in measures},
                "tau": taus([scores[measure][seed, number] for measure in measures], measures),
            }
            for number in numbers
        ]
    return {"measures": measures, "reference": reference_measure(measures) if measures else None, "seeds": seeds}


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


def _short(value: float) -> float | None:
    """Three significant digits are enough for a colour and keep the page small."""
    return float(f"{value:.3g}") if np.isfinite(value) else None
