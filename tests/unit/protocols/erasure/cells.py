"""Cells in memory, on which erasure is tested."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import torch

from plumbline.conformance import example_model, whole_batch
from plumbline.data.instances import Instances
from plumbline.data.vocabulary import MASK
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.erasure.schemas import ERASURE_SCORES
from plumbline.protocols.explained import Explanations
from plumbline.registry import Registry


@dataclass
class Cell:
    """An in-memory cell."""

    texts: Instances
    evaluators: list[Evaluator]
    importances: dict[str, list[np.ndarray]]
    masking: str = "none"
    mask_id: int = MASK

    def instances(self) -> Instances:
        return self.texts

    def models(self) -> list[Evaluator]:
        return self.evaluators

    def by_seed(self) -> list[Explanations]:
        classes = np.zeros(len(self.texts), dtype=np.int32)
        keys = self.texts.split, self.texts.instance, classes
        return [Explanations(evaluator.seed, *keys, self.importances) for evaluator in self.evaluators]


def make_evaluator(
    name: str = "bilstm-tanh", paired: bool = False, budget: int = 10_000, sharp: float = 20.0
) -> Evaluator:
    """A random model whose output depends on its words."""
    model = example_model(Registry().get("model", name), paired=paired)
    with torch.no_grad():
        for parameter in model.head.parameters() if hasattr(model, "head") else model.parameters():
            parameter *= sharp
    return Evaluator(model.requires_grad_(False), 3, budget)


def drawn(instances: Instances, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.random(int(free.sum())).astype(np.float32) for free in instances.maskable]


def probabilities(evaluator: Evaluator, text: Instances, vectors: torch.Tensor | None = None) -> np.ndarray:
    """The output of one text alone."""
    batch = whole_batch(text)
    output = evaluator.model(batch) if vectors is None else evaluator.model(batch, vectors)
    return output.logits.double().softmax(-1)[0].numpy()


def kept(text: Instances, words: np.ndarray) -> Instances:
    """One text with only some of its words."""
    stay = ~text.maskable[0]
    stay[np.flatnonzero(text.maskable[0])[words]] = True
    return replace(text, ids=[text.ids[0][stay]], maskable=[text.maskable[0][stay]])


def table(columns: dict) -> pa.Table:
    schema = ERASURE_SCORES.schema
    return pa.table({name: pa.array([*columns[name]], schema.field(name).type) for name in schema.names})
