"""Instances that are split over several jobs, and their importances joined."""

import numpy as np
import pytest

from plumbline.attribution.files import join_importances, write_importances
from plumbline.attribution.importances import Importances
from plumbline.attribution.run import MeasureCall, attribute
from plumbline.attribution.schemas import ATTRIBUTIONS
from plumbline.conformance import example_instances, example_model
from plumbline.data.instances import Instances
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry, load
from plumbline.store import read_table

SEEDS = [4, 3]


def numbered(evaluator: Evaluator, instances: Instances) -> Importances:
    """A word's place after the number of its text, with the seed; fails without texts, as most measures do."""
    places = [
        evaluator.seed + i + np.linspace(0, 0.5, m.sum())
        for i, m in zip(instances.instance, instances.maskable, strict=True)
    ]
    np.concatenate(places)
    return Importances(places, instances.label.astype(np.int32))


def explain(instances: Instances, path, measures, part: str = "1-of-1") -> None:
    """Explain a part of the sample of each seed, as a job does."""
    model = example_model(Registry().get("model", "average-tanh")).requires_grad_(False)
    evaluators = [Evaluator(model, seed, 500) for seed in SEEDS]
    columns, _ = attribute(evaluators, instances, measures, lambda seed: instances.sampled(4, seed).part(part))
    write_importances(path, columns)


def test_parts_take_turns():
    instances = example_instances(8)
    parts = [instances.part(f"{k}-of-3").instance.tolist() for k in (1, 2, 3)]
    assert parts == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert instances.part("1-of-1").instance.tolist() == list(range(8))
    assert len(instances.part("9-of-9")) == 0


@pytest.mark.parametrize("number", [2, 3, 11])
def test_joined_parts_are_the_whole(tmp_path, number):
    """Two seeds sample eight texts each, of two splits, so that eleven jobs leave three without any."""
    instances = example_instances(24, splits=["train", "test"])
    measures = {"z": MeasureCall(numbered, {}), "lime": MeasureCall(load("plumbline.attribution.lime:lime"), {})}
    measures["lime"] = measures["lime"]._replace(options={"samples": 7})
    explain(instances, tmp_path / "whole", measures)
    parts = [tmp_path / f"{k}" for k in range(1, number + 1)]
    for k, path in enumerate(parts, 1):
        explain(instances, path, measures, f"{k}-of-{number}")
    join_importances(parts, tmp_path / "joined", list(measures), SEEDS)
    whole, joined = (read_table(tmp_path / name, ATTRIBUTIONS) for name in ("whole", "joined"))
    assert len(whole) == 2 * 2 * 8
    computed = ["scores", "specials"]
    keys = [name for name in whole.column_names if name not in (*computed, "residual")]
    assert joined.select(keys).to_pylist() == whole.select(keys).to_pylist()
    # Batches of other sizes round differently on some processors.
    for name in computed:
        for found, expected in zip(joined[name].to_pylist(), whole[name].to_pylist(), strict=True):
            np.testing.assert_allclose(found or [], expected or [], rtol=0, atol=1e-6)
