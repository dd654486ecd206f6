"""Explain the instances of a cell with one measure, seed by seed."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from plumbline.attribution.importances import Importances
from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.evaluator import Evaluator


def attribute(
    evaluators: Iterable[Evaluator],
    instances: Instances,
    measure: Callable[..., Importances],
    options: Mapping[str, Any],
) -> dict[str, list[Any]]:
    """Columns of the table `attributions`."""
    words = [int(maskable.sum()) for maskable in instances.maskable]
    columns: dict[str, list[Any]] = {key: [] for key in ("seed", "split", "instance", "target", "scores")}
    for evaluator in evaluators:
        importances = measure(evaluator, instances, **options)
        check_scores(importances, words)
        columns["seed"] += [evaluator.seed] * len(instances)
        columns["split"] += instances.split.tolist()
        columns["instance"] += instances.instance.tolist()
        columns["target"] += [None] * len(instances) if importances.target is None else importances.target.tolist()
        columns["scores"] += [np.asarray(scores, dtype=np.float32) for scores in importances.scores]
    return columns


def check_scores(importances: Importances, words: list[int]) -> None:
    """A measure must give one number per word of every instance."""
    if len(importances.scores) != len(words):
        raise PlumblineError(f"The measure gave scores for {len(importances.scores)} of {len(words)} instances.")
    for i, (scores, count) in enumerate(zip(importances.scores, words, strict=True)):
        if np.shape(scores) != (count,):
            raise PlumblineError(
                f"The measure gave scores of shape {np.shape(scores)} for instance {i}, which has {count} words."
            )
