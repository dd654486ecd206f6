"""Compute several measures for the instances of a cell, seed by seed."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from plumbline.attribution.importances import Importances
from plumbline.attribution.inputs import is_prompted
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.encoders import BiLSTM
from plumbline.models.evaluator import Evaluator
from plumbline.models.reader import VectorReader
from plumbline.registry import load
from plumbline.runtime.devices import PRECISIONS
from plumbline.runtime.progress import stage

KEYS = ("seed", "split", "instance", "target", "scores", "pair", "specials", "residual")


class MeasureCall(NamedTuple):
    """A measure of the study: its registered function, its options, and the measures that it reads, by name."""

    function: Callable[..., Importances]
    options: Mapping[str, Any]
    bases: Mapping[str, "MeasureCall"] = {}


def load_calls(measures: Mapping[str, Mapping[str, Any]]) -> dict[str, MeasureCall]:
    """The measures of a job from its params: `object`, `options` and `bases` of each."""
    return {
        name: MeasureCall(load(measure["object"]), measure["options"], load_calls(measure.get("bases", {})))
        for name, measure in measures.items()
    }


def attribute(
    evaluators: Iterable[Evaluator],
    instances: Instances,
    measures: Mapping[str, MeasureCall],
    seed_instances: Callable[[int], Instances] | None = None,
    cell: Mapping[str, str] | None = None,
) -> tuple[dict[str, dict[str, list[Any]]], dict[str, float]]:
    """The columns of the table `attributions` and the seconds of each measure.

    The time of measures computed in shared passes is divided among them. `seed_instances` returns the texts of
    a seed if seeds have different texts. `cell` names the dataset, variant and model.
    """
    columns: dict[str, dict[str, list[Any]]] = {name: {key: [] for key in KEYS} for name in measures}
    seconds = dict.fromkeys(measures, 0.0)
    families: dict[Any, list[str]] = {}
    # Measures that read others come after them, so that these are computed once.
    for name, call in sorted(measures.items(), key=lambda measure: bool(measure[1].bases)):
        families.setdefault(getattr(call.function, "together", name), []).append(name)
    for evaluator in evaluators:
        evaluator.cell = cell or {}
        texts = seed_instances(evaluator.seed) if seed_instances else instances
        if not len(texts):
            continue  # Of a few instances that are split over more jobs.
        computed: dict[str, Importances] = {}
        evaluator.importances_of = _importances_of(evaluator, texts, measures, computed)
        for together, names in families.items():
            started = time.perf_counter()
            try:
                # A measure that changes the gradient mode does not affect the next one.
                functions = [measures[name].function for name in names]
                with torch.enable_grad(), stage(", ".join(names)), _arithmetic_of(evaluator, functions):
                    if callable(together):
                        results = together(evaluator, texts, [measures[name].options for name in names])
                    else:
                        results = [measures[n].function(evaluator, texts, **measures[n].options) for n in names]
            except Exception as error:
                error.add_note(f"The error occurred in the measure {' or '.join(repr(name) for name in names)}.")
                raise
            share = (time.perf_counter() - started) / len(names)
            for name, importances in zip(names, results, strict=True):
                seconds[name] += share
                check_scores(importances, texts, name)
                if is_prompted(evaluator.model):
                    # The words of a prompt are not ranked.
                    importances = replace(importances, specials=None)
                computed[name] = importances
                table = columns[name]
                table["seed"] += [evaluator.seed] * len(texts)
                table["split"] += texts.split.tolist()
                table["instance"] += texts.instance.tolist()
                for column in ("target", "residual"):
                    values = getattr(importances, column)
                    table[column] += [None] * len(texts) if values is None else values.tolist()
                for column in ("scores", "pair", "specials"):
                    rows = getattr(importances, column)
                    table[column] += [None if rows is None else _numbers(rows[i], i, name) for i in range(len(texts))]
    return columns, seconds


@contextmanager
def _arithmetic_of(evaluator: Evaluator, functions: Sequence[Callable[..., Any]]) -> Iterator[None]:
    """Give the passes of a transformer or BiLSTM on a GPU the precision of these measures, or of the most exact one."""
    before, name = evaluator.precision, ""
    if isinstance(evaluator.model, VectorReader):
        name = "precision"
    elif isinstance(getattr(evaluator.model, "encoder", None), BiLSTM):
        name = "bilstm_precision"
    if name and torch.device(evaluator.device).type == "cuda":
        evaluator.precision = min((getattr(f, name, PRECISIONS[0]) for f in functions), key=PRECISIONS.index)
    try:
        yield
    finally:
        evaluator.precision = before


def _importances_of(
    evaluator: Evaluator, texts: Instances, measures: Mapping[str, MeasureCall], computed: dict[str, Importances]
) -> Callable[[str], Importances]:
    """A function that returns the importances of a measure by name; `computed` holds those that are known."""
    bases = {name: base for call in measures.values() for name, base in call.bases.items()}

    def importances_of(name: str) -> Importances:
        if name not in computed:
            call = bases[name]
            with _arithmetic_of(evaluator, [call.function]):
                computed[name] = call.function(evaluator, texts, **call.options)
        return computed[name]

    return importances_of


def _numbers(scores: Any, i: int, name: str) -> np.ndarray:
    """The scores of an instance as a float32 array."""
    try:
        return np.asarray(scores, np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        type_ = getattr(scores, "dtype", type(scores).__name__)
        raise PlumblineError(
            f"The measure '{name}' gave scores of type {type_} for instance {i}, which cannot be converted to a NumPy "
            f"array of numbers ({str(error).splitlines()[0].rstrip('.')}); return `scores.float().cpu().numpy()` of a "
            "tensor."
        ) from error


def check_scores(importances: Importances, texts: Instances, name: str) -> None:
    """Refuse a result without one number per word of every instance and, if it has `pair`, of every second text."""
    subject = f"The measure '{name}'"
    if not isinstance(importances, Importances):
        raise PlumblineError(f"{subject} must return Importances, not {type(importances).__name__}.")
    parts = [("words", importances.scores, [int(words.sum()) for words in texts.maskable])]
    if importances.pair is not None:
        counts = [int(texts.pair_words(i).sum()) if texts.pair else 0 for i in range(len(texts))]
        parts.append(("words in its second text", importances.pair, counts))
    for unit, rows, counts in parts:
        if len(rows) != len(counts):
            raise PlumblineError(f"{subject} gave scores for {len(rows)} of {len(counts)} instances.")
        for i, (scores, count) in enumerate(zip(rows, counts, strict=True)):
            if np.shape(scores) != (count,):
                raise PlumblineError(
                    f"{subject} gave scores of shape {np.shape(scores)} for instance {i}, which has {count} {unit}."
                )
