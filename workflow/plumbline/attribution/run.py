"""Explain the instances of a cell with some measures, seed by seed."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator
from plumbline.runtime.progress import stage

KEYS = ("seed", "split", "instance", "target", "scores", "pair", "specials", "residual")


class MeasureCall(NamedTuple):
    """A measure of the study: its registered function and its options."""

    function: Callable[..., Importances]
    options: Mapping[str, Any]


def attribute(
    evaluators: Iterable[Evaluator],
    instances: Instances,
    measures: Mapping[str, MeasureCall],
    variant: Callable[[int], Instances] | None = None,
    cell: Mapping[str, str] | None = None,
) -> tuple[dict[str, dict[str, list[Any]]], dict[str, float]]:
    """For each measure the columns of its table `attributions`, and the seconds it took.

    Measures that one function computes in shared passes share their seconds too. `variant` gives the texts of each seed
    where seeds differ in them; else they are the instances. `cell` names what is explained.
    """
    columns: dict[str, dict[str, list[Any]]] = {name: {key: [] for key in KEYS} for name in measures}
    seconds = dict.fromkeys(measures, 0.0)
    families: dict[Any, list[str]] = {}
    for name, asked in measures.items():
        families.setdefault(getattr(asked.function, "together", name), []).append(name)
    for evaluator in evaluators:
        evaluator.cell = cell or {}
        texts = instances if variant is None else variant(evaluator.seed)
        for together, names in families.items():
            started = time.perf_counter()
            try:
                # What one measure does to the gradient mode does not reach the next.
                with torch.enable_grad(), stage(", ".join(names)):
                    if callable(together):
                        found = together(evaluator, texts, [measures[name].options for name in names])
                    else:
                        found = [measures[n].function(evaluator, texts, **measures[n].options) for n in names]
            except Exception as error:
                error.add_note(f"This came from the measure {' or '.join(repr(name) for name in names)}.")
                raise
            share = (time.perf_counter() - started) / len(names)
            for name, importances in zip(names, found, strict=True):
                seconds[name] += share
                check_scores(importances, texts, name)
                table = columns[name]
                table["seed"] += [evaluator.seed] * len(texts)
                table["split"] += texts.split.tolist()
                table["instance"] += texts.instance.tolist()
                target = importances.target
                table["target"] += [None] * len(texts) if target is None else target.tolist()
                residual = importances.residual
                table["residual"] += [None] * len(texts) if residual is None else residual.tolist()
                for column in ("scores", "pair", "specials"):
                    told = getattr(importances, column)
                    table[column] += [None if told is None else _numbers(told[i], i, name) for i in range(len(texts))]
    return columns, seconds


def _numbers(scores: Any, i: int, name: str) -> np.ndarray:
    """The scores of an instance in single precision."""
    try:
        return np.asarray(scores, np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        told = getattr(scores, "dtype", type(scores).__name__)
        raise PlumblineError(
            f"The measure '{name}' gave scores of type {told} for instance {i}, which are no NumPy array of numbers "
            f"({str(error).splitlines()[0].rstrip('.')}); return `scores.float().cpu().numpy()` of a tensor."
        ) from error


def check_scores(importances: Importances, texts: Instances, name: str) -> None:
    """A measure must give one number per word of every instance, and may of its second text."""
    named = f"The measure '{name}'"
    if not isinstance(importances, Importances):
        raise PlumblineError(f"{named} must return Importances, not {type(importances).__name__}.")
    told = [("words", importances.scores, [int(free.sum()) for free in texts.maskable])]
    if importances.pair is not None:
        seconds = [int(texts.pair_words(i).sum()) if texts.pair else 0 for i in range(len(texts))]
        told.append(("words in its second text", importances.pair, seconds))
    for what, rows, counts in told:
        if len(rows) != len(counts):
            raise PlumblineError(f"{named} gave scores for {len(rows)} of {len(counts)} instances.")
        for i, (scores, count) in enumerate(zip(rows, counts, strict=True)):
            if np.shape(scores) != (count,):
                raise PlumblineError(
                    f"{named} gave scores of shape {np.shape(scores)} for instance {i}, which has {count} {what}."
                )
