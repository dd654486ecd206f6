"""One evaluator runs everything that asks a trained model: rows of many instances together, within a token budget.

Rows are sorted by length, identical rows run once, and what comes back does not depend on the budget or the order.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from plumbline.data.instances import Instances
from plumbline.models.batch import Batch, collate, plan
from plumbline.models.budget import Budget, out_of_memory
from plumbline.models.devices import arithmetic


class Evaluator:
    """A trained model in evaluation mode, with its seed and the budget of its forward passes."""

    def __init__(
        self, model: nn.Module, seed: int, budget: Budget | int | None = None, device: torch.device | str = "cpu"
    ) -> None:
        # Any model that keeps the interface of docs/extending.md; its parts are found by name.
        self.model: Any = model.to(device).eval()
        self.seed = seed
        self.budget = budget if isinstance(budget, Budget) else Budget(budget)
        self.device = device

    def token_budget(self, longest: int) -> int:
        """Tokens, padding included, that a pass over rows of up to `longest` tokens may hold."""
        return self.budget.settle(self.model, longest, self.device)

    def each(
        self,
        ids: Sequence[np.ndarray],
        attendable: Sequence[np.ndarray],
        work: Callable[[np.ndarray, Batch], None],
    ) -> None:
        """Call `work` with padded batches of all rows, each with the positions of its rows.

        If it runs out of memory, the budget is halved and it goes on with what is left, so `work` must only store what
        it found.
        """
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        left = np.arange(len(lengths))
        while len(left):
            tokens = self.token_budget(int(lengths[left].max()))
            batches = [left[index] for index in plan(lengths[left], tokens, self.device)]
            try:
                while batches:
                    index = batches[0]
                    with arithmetic():
                        work(index, collate([ids[i] for i in index], [attendable[i] for i in index], self.device))
                    del batches[0]
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
            if not batches:
                return
            left = np.concatenate(batches)
            # Outside the handler, whose traceback would keep the tensors of the failed pass alive.
            self.budget.halve(int(lengths[left].max()), self.device)

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
        found: dict[str, np.ndarray] = {}

        def work(index: np.ndarray, batch: Batch) -> None:
            told = self.model(batch).logits.softmax(dim=-1).cpu().numpy()
            rows = found.setdefault("rows", np.empty((len(distinct), told.shape[1]), dtype=np.float32))
            rows[index] = told

        self.each([ids[i] for i in distinct], [attendable[i] for i in distinct], work)
        return found["rows"][source]

    def predict(self, instances: Instances) -> np.ndarray:
        """Class probabilities [N, C] of instances."""
        return self.probabilities(instances.ids, instances.maskable)
