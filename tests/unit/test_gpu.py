"""The GPU gives what the CPU gives, within float tolerance."""

import numpy as np
import pytest
import torch

from plumbline.conformance import example_instances, example_model
from plumbline.models.evaluator import Evaluator
from plumbline.registry import Registry, load, needed

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
REGISTRY = Registry()
INSTANCES = example_instances(40)
PAIRS = [
    (measure.name, model.name)
    for measure in REGISTRY.all("measure")
    for model in REGISTRY.all("model")
    if needed(measure, {name: option.default for name, option in measure.options.items()}) <= set(model.provides)
]


@pytest.fixture(autouse=True)
def exact_arithmetic():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


@pytest.mark.parametrize(("measure", "model"), PAIRS)
def test_importances_are_the_same_on_both_devices(measure, model):
    declaration = REGISTRY.get("measure", measure)
    options = {name: option.default for name, option in declaration.options.items()}
    scores = []
    for device in ("cpu", "cuda"):
        evaluator = Evaluator(example_model(REGISTRY.get("model", model)), 0, 200, device)
        scores.append(load(declaration.pointer)(evaluator, INSTANCES, **options).scores)
    for a, b in zip(*scores, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("model", REGISTRY.names("model"))
def test_predictions_are_the_same_on_both_devices(model):
    told = [
        Evaluator(example_model(REGISTRY.get("model", model)), 0, 200, d).predict(INSTANCES) for d in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(*told, atol=1e-5)
