"""Tests of the measure my-measure; run them with pytest."""

from pathlib import Path

import numpy as np
import pytest

from plumbline.conformance import check, example_instances, example_model
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry, load

FILE = Path(__file__).with_name("my_measure.py")
REGISTRY = Registry([FILE])


def test_it_conforms() -> None:
    assert check("measure", "my-measure", REGISTRY) == []


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_scores_are_the_norms_of_word_vectors(power: float) -> None:
    instances = example_instances()
    model = example_model(REGISTRY.get("model", "bag-of-words"))
    importances = load(f"{FILE}:my_measure")(Evaluator(model, seed=0, budget=1000), instances, power=power)
    norms = np.linalg.norm(model.embedding.weight.detach().numpy(), axis=1) ** power
    for ids, words, scores in zip(instances.ids, instances.maskable, importances.scores, strict=True):
        assert np.allclose(scores, norms[ids[words]])
