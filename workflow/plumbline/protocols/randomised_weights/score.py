"""Randomised weights: do importances depend on what the model has learned? (Adebayo et al. 2018)"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from plumbline.data.instances import Instances
from plumbline.errors import PlumblineError
from plumbline.models.block import predicted_classes
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.agreement.by_text import (
    TextCorrelations,
    correlate_texts,
    identical_texts,
    summarise_texts,
)
from plumbline.protocols.explained import Explained, instance_columns, join_columns
from plumbline.protocols.randomised_weights.layers import layer_groups, randomised
from plumbline.protocols.randomised_weights.schemas import RANDOMISED_WEIGHTS, RANDOMISED_WEIGHTS_SCORES
from plumbline.protocols.sampled import SampledTexts
from plumbline.registry import protocol
from plumbline.runtime.progress import shown
from plumbline.store import TableSchema

KEYS = ["seed", "measure", "mode", "depth", "stage"]


class Stage(NamedTuple):
    """The layers that are randomised together: the last of them by its name and its number from the output."""

    mode: str
    stage: str
    depth: int
    layers: tuple[str, ...]


@protocol(
    "randomised_weights",
    gpu=True,
    recomputes=True,
    equation="mean over texts of τ_b(a of the trained model, a of the model with randomised layers)",
    cost="Per measure, one explanation of `texts` texts of each split for the trained model and for each stage, "
    "about two for each layer of the model.",
    misleads="To pass is necessary, not sufficient: a noisy measure changes more than a smooth one without being "
    "more faithful. A correct measure may hardly change where one word stands out whatever the weights, because "
    "random layers pass on much of their input.",
    citation=[
        "Adebayo, Gilmer, Muelly, Goodfellow, Hardt & Kim (2018), Sanity Checks for Saliency Maps. NeurIPS.",
        "Yona & Greenfeld (2021), Revisiting Sanity Checks for Saliency Maps. arXiv:2110.14297.",
        "Binder, Weber, Lapuschkin, Montavon, Müller & Samek (2023), Shortcomings of Top-Down Randomization-Based "
        "Sanity Checks for Evaluations of Deep Neural Network Explanations. CVPR.",
    ],
    metrics=["weight_dependence"],
    limits={"texts": [1, None]},
)
class RandomisedWeights:
    """Rank correlation of importances before and after the model's weights are replaced by random ones.

    Options:
        texts: Most texts of each split and seed that are explained; more are slower and less noisy.
        stages: Randomise layer after layer from the output to the word vectors (`cascading`), or one layer at a time
            (`independent`).
    """

    table: ClassVar[TableSchema] = RANDOMISED_WEIGHTS
    scores: ClassVar[TableSchema] = RANDOMISED_WEIGHTS_SCORES

    def __init__(
        self,
        *,
        texts: int = 50,
        stages: list[Literal["cascading", "independent"]] = ["cascading", "independent"],  # noqa: B006
    ) -> None:
        if not stages:
            raise PlumblineError("`stages` is empty; write [cascading], [independent] or both.")
        self.texts, self.stages = texts, stages

    def score(self, explained: Explained) -> dict[str, Any]:
        """Columns of the table `randomised_weights_scores`: one row per seed, measure, stage and instance."""
        instances = explained.instances()
        parts = [part for evaluator in explained.models() for part in self._seed(explained, instances, evaluator)]
        return join_columns(parts)

    def _seed(
        self, explained: Explained, instances: Instances, evaluator: Evaluator
    ) -> Iterator[dict[str, np.ndarray]]:
        model, seed = evaluator.model, evaluator.seed
        sample = SampledTexts.draw(explained, instances, seed, self.texts)
        predicted = predicted_classes(evaluator.probabilities(sample.texts))
        trained = _compute(explained, evaluator, sample, predicted)
        groups = layer_groups(model)
        # The first stage is the same in both modes.
        known: dict[tuple[str, ...], dict[str, TextCorrelations]] = {}
        for mode, stage, depth, layers in shown(self._list_stages(list(groups)), f"seed {seed}", "stage"):
            if layers not in known:
                with randomised(model, [name for layer in layers for name in groups[layer]], seed):
                    scores = _compute(explained, evaluator, sample, predicted)
                known[layers] = {measure: correlate_texts(rows, scores[measure]) for measure, rows in trained.items()}
            for measure in explained.importances:
                # Imported importances are the same for any weights.
                correlations = known[layers].get(measure) or identical_texts(len(predicted))
                constants = {"measure": measure, "mode": mode, "stage": stage, "depth": depth}
                yield {
                    **instance_columns(seed, sample.texts, predicted),
                    **{column: np.full(len(predicted), value) for column, value in constants.items()},
                    **correlations.columns(),
                }

    def _list_stages(self, layers: list[str]) -> list[Stage]:
        """The stages of each mode; layers from the output to the input."""
        return [
            Stage(mode, layer, depth, (layer,) if mode == "independent" else tuple(layers[:depth]))
            for mode in self.stages
            for depth, layer in enumerate(layers, start=1)
        ]

    def summarise(self, scores: pa.Table) -> pd.DataFrame:
        """Rows of the table `randomised_weights`: means over texts by seed, measure and stage."""
        return summarise_texts(scores.to_pandas(), KEYS)


def _compute(
    explained: Explained, evaluator: Evaluator, sample: SampledTexts, predicted: np.ndarray
) -> dict[str, list[np.ndarray]]:
    """The scores of the sampled texts by each measure that can be computed; those that explain the predicted class
    explain that of the trained model, whatever the model predicts now."""
    labels = sample.instances.label.copy()
    labels[sample.positions] = predicted
    fixed = {name: _of_label(measure) for name, measure in explained.recomputed.items()}
    of_label = [name for name, measure in fixed.items() if measure != explained.recomputed[name]]
    others = [name for name in fixed if name not in of_label]
    relabelled = replace(sample, instances=replace(sample.instances, label=labels))
    return relabelled.compute(replace(explained, recomputed=fixed), evaluator, of_label) | sample.compute(
        explained, evaluator, others
    )


def _of_label(measure: Mapping[str, Any]) -> dict[str, Any]:
    """A measure, and those that it reads, with the label as the explained class in place of the predicted one."""
    predicted = measure["options"].get("target") == "predicted"
    return {
        **measure,
        "options": {**measure["options"], **({"target": "gold"} if predicted else {})},
        "bases": {name: _of_label(base) for name, base in measure["bases"].items()},
    }
