"""The one place where models are asked for outputs: many rows together, under a token budget.

Rows are sorted by length, identical rows run once, and what comes back does not depend on the budget or the order.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from plumbline.data.instances import Instances
from plumbline.models.batch import Batch, collate, plan


class Evaluator:
    """A trained model in evaluation mode, with its seed and the budget of its forward passes."""

    def __init__(self, model: nn.Module, seed: int, token_budget: int, device: torch.device | str = "cpu") -> None:
        # Any model that keeps the interface of docs/extending.md; its parts are found by name.
        self.model: Any = model.to(device).eval()
        self.seed = seed
        self.token_budget = token_budget
        self.device = device

    def batches(
        self, ids: Sequence[np.ndarray], attendable: Sequence[np.ndarray]
    ) -> Iterator[tuple[np.ndarray, Batch]]:
        """Padded batches of all rows, each with the positions of its rows."""
        for index in plan(np.array([len(row) for row in ids], dtype=np.int64), self.token_budget):
            yield index, collate([ids[i] for i in index], [attendable[i] for i in index], self.device)

    @torch.no_grad()
    def probabilities(self, ids: Sequence[np.ndarray], attendable: Sequence[np.ndarray]) -> np.ndarray:
        """Class probabilities [rows, C]."""
        first: dict[tuple[bytes, bytes], int] = {}
        distinct: list[int] = []
        source = np.empty(len(ids), dtype=np.int64)
        for i, (row, free) in enumerate(zip(ids, attendable, strict=True)):
            key = (row.tobytes(), free.tobytes())
            if key not in first:
                first[key] = len(distinct)
                distinct.append(i)
            source[i] = first[key]
        found: np.ndarray | None = None
        for index, batch in self.batches([ids[i] for i in distinct], [attendable[i] for i in distinct]):
            probabilities = self.model(batch).logits.softmax(dim=-1).cpu().numpy()
            if found is None:
                found = np.empty((len(distinct), probabilities.shape[1]), dtype=np.float32)
            found[index] = probabilities
        assert found is not None, "no rows were given"
        return found[source]

    def predict(self, instances: Instances) -> np.ndarray:
        """Class probabilities [N, C] of instances."""
        return self.probabilities(instances.ids, instances.maskable)
