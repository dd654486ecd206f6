"""Tests of the model my-model; run them with pytest."""

from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from plumbline.conformance import check, example_instances, example_model, whole_batch
from plumbline.registry import Registry

FILE = Path(__file__).with_name("my_model.py")
REGISTRY = Registry([FILE])


def test_it_conforms() -> None:
    assert check("model", "my-model", REGISTRY) == []


def test_it_learns_a_few_texts_by_heart() -> None:
    instances = example_instances()
    batch, labels = whole_batch(instances), torch.from_numpy(instances.label).long()
    model = example_model(REGISTRY.get("model", "my-model"))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(100):
        optimiser.zero_grad()
        cross_entropy(model(batch).logits, labels).backward()
        optimiser.step()
    assert torch.equal(model(batch).logits.argmax(1), labels)
