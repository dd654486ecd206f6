"""One evaluator runs everything that asks a trained model: rows of many instances together, within a token budget.

Rows are sorted by length, identical rows run once, and what comes back does not depend on the budget or the order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from plumbline.data.instances import Instances, Texts, taken
from plumbline.models.batch import Batch, collate, plan
from plumbline.models.budget import ROWS, Budget, out_of_memory
from plumbline.runtime.devices import arithmetic
from plumbline.runtime.progress import Progress

# A token of a shortened text keeps its hidden state alone, and not all that a gradient would need.
CHEAPER = 4
# Shorter texts are faster many at a time, each read anew (measured, see bench/RESULTS.md).
LONG = 64


class Evaluator:
    """A trained model in evaluation mode, with its seed and the budget of its forward passes.

    In a study `cell` names the dataset, the variant and the model that are explained.
    """

    def __init__(
        self, model: nn.Module, seed: int, budget: Budget | int | None = None, device: torch.device | str = "cpu"
    ) -> None:
        # Any model that keeps the interface of docs/extending.md; its parts are found by name.
        self.model: Any = model.to(device).eval()
        self.seed = seed
        self.budget = Budget.of(budget)
        self.device = device
        self.cell: Mapping[str, str] = {}

    def token_budget(self, instances: Instances) -> int:
        """Tokens, padding included, that a pass over these instances may hold."""
        return self._settled(instances, np.arange(len(instances)))

    def _settled(self, texts: Texts | Instances, left: np.ndarray) -> int:
        tokens = [len(texts.ids[i]) + (len(texts.pair[i]) if texts.pair is not None else 0) for i in left]
        longest = int(np.argmax(tokens))
        return self.budget.settle(self.model, tokens[longest], lambda: self._batch(texts, [int(left[longest])] * ROWS))

    def _batch(self, texts: Texts | Instances, index: Sequence[int] | np.ndarray) -> Batch:
        ids, free = [texts.ids[i] for i in index], [texts.maskable[i] for i in index]
        beside = [taken(column, index) for column in (texts.pair, texts.answers, texts.pair_maskable)]
        return collate(ids, free, self.device, *beside)

    def each(self, texts: Texts | Instances, work: Callable[[np.ndarray, Batch], None]) -> None:
        """Call `work` with padded batches of all rows, each with the positions of its rows.

        If it runs out of memory, the budget is halved and it goes on with what is left, so `work` must only store what
        it found.
        """
        with Progress(len(texts.ids), f"seed {self.seed}", "text") as progress:
            self._each(texts, work, progress)

    def _each(self, texts: Texts | Instances, work: Callable[[np.ndarray, Batch], None], progress: Progress) -> None:
        lengths = np.array([len(row) for row in texts.ids], dtype=np.int64)
        seconds = np.zeros_like(lengths)
        if texts.pair is not None:
            seconds = np.array([len(row) for row in texts.pair], dtype=np.int64)
        left = np.arange(len(lengths))
        while len(left):
            tokens = self._settled(texts, left)
            batches = [left[index] for index in plan(lengths[left], tokens, self.device, seconds[left])]
            progress.describe(f"seed {self.seed}", len(batches))
            try:
                while batches:
                    with arithmetic():
                        work(batches[0], self._batch(texts, batches[0]))
                    progress.update(len(batches.pop(0)))
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
            if not batches:
                return
            left = np.concatenate(batches)
            # Outside the handler, whose traceback would keep the tensors of the failed pass alive.
            self.budget.halve(int((lengths + seconds)[left].max()), self.device)

    @torch.no_grad()
    def probabilities_without(self, texts: Texts | Instances, place: int) -> np.ndarray | None:
        """Class probabilities [words, C] of one text without each of its words, if there is a faster way than to read
        each shortened text: for long ones, by models that know it. Not on a GPU, which many texts at once suit better.
        """
        shortened = getattr(self.model, "encode_without", None)
        if shortened is None or torch.device(self.device).type != "cpu" or len(texts.ids[place]) < LONG:
            return None
        batch = self._batch(texts, [place])
        words = torch.from_numpy(np.flatnonzero(texts.maskable[place]))
        told = []
        room = CHEAPER * self._settled(texts, np.array([place]))
        for places in words.split(max(1, room // batch.ids.shape[1])):
            found = shortened(batch, places)
            if found is None:
                return None
            encoded, rows = found
            told.append(self.model.decode(encoded, self.model.attend(encoded, rows)).double().softmax(dim=-1))
        return torch.cat(told).numpy()

    @torch.no_grad()
    def probabilities(self, texts: Texts | Instances) -> np.ndarray:
        """Class probabilities [texts, C], in double precision: near 1 those of a sure model would else be equal."""
        first: dict[tuple[bytes, ...], int] = {}
        distinct: list[int] = []
        source = np.empty(len(texts.ids), dtype=np.int64)
        beside = (texts.pair, texts.answers, texts.pair_maskable)
        columns = [texts.ids, texts.maskable, *(column for column in beside if column is not None)]
        for i, row in enumerate(zip(*columns, strict=True)):
            key = tuple(part.tobytes() for part in row)
            if key not in first:
                first[key] = len(distinct)
                distinct.append(i)
            source[i] = first[key]
        found: dict[str, np.ndarray] = {}

        def work(index: np.ndarray, batch: Batch) -> None:
            told = self.model(batch).logits.double().softmax(dim=-1).cpu().numpy()
            rows = found.setdefault("rows", np.empty((len(distinct), told.shape[1]), dtype=np.float64))
            rows[index] = told

        ids, maskable = [texts.ids[i] for i in distinct], [texts.maskable[i] for i in distinct]
        self.each(Texts(ids, maskable, *(taken(column, distinct) for column in beside)), work)
        return found["rows"][source]
