"""The evaluator runs all queries of a trained model: rows of many instances in one batch, within a token budget.

Rows are sorted by length, identical rows run once, and results do not depend on the budget or the order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from plumbline.data.instances import Instances, Texts, take_rows
from plumbline.models.batch import Batch, collate, plan_batches
from plumbline.models.budget import ROWS, Budget, out_of_memory
from plumbline.runtime.devices import PRECISIONS, arithmetic
from plumbline.runtime.progress import Progress

# `encode_without` stores only hidden states, nothing for a backward pass, so that this many times the tokens fit.
WITHOUT_GRADIENTS = 4
# Shorter texts are faster in large batches, each read from its start (measured, see bench/RESULTS.md).
LONG_TEXT = 64


class Evaluator:
    """A trained model in evaluation mode, with its seed and the token budget of its forward passes.

    In a study `cell` names the dataset, variant and model.
    """

    def __init__(
        self, model: nn.Module, seed: int, budget: Budget | int | None = None, device: torch.device | str = "cpu"
    ) -> None:
        # Any model with the interface of docs/how-to/extending.md (duck typing).
        self.model: Any = model.to(device).eval()
        self.seed = seed
        self.budget = Budget.of(budget)
        self.device = device
        self.cell: Mapping[str, str] = {}
        # The arithmetic of passes on a GPU.
        self.precision = PRECISIONS[0]
        # The importances of another measure for the texts being explained, by its name in the study.
        self.importances_of: Callable[[str], Any] | None = None

    def token_budget(self, instances: Instances) -> int:
        """Tokens, padding included, that a pass over these instances may hold."""
        return self._settle_budget(instances, np.arange(len(instances)))

    def _settle_budget(self, texts: Texts | Instances, index: np.ndarray) -> int:
        tokens = [len(texts.ids[i]) + (len(texts.pair[i]) if texts.pair is not None else 0) for i in index]
        longest = int(np.argmax(tokens))
        return self.budget.settle(self.model, tokens[longest], lambda: self._batch(texts, [int(index[longest])] * ROWS))

    def _batch(self, texts: Texts | Instances, index: Sequence[int] | np.ndarray) -> Batch:
        ids, maskable = [texts.ids[i] for i in index], [texts.maskable[i] for i in index]
        optional = [take_rows(column, index) for column in (texts.pair, texts.answers, texts.pair_maskable)]
        return collate(ids, maskable, self.device, *optional)

    def each(self, texts: Texts | Instances, work: Callable[[np.ndarray, Batch], None], copies: int = 1) -> None:
        """Call `work(index, batch)` with padded batches of all rows; `index` holds the positions of the batch's rows.
        `copies` is how many times `work` runs each of them.

        When memory runs out, the budget is halved and `work` is called for the remaining rows, the failed batch
        included, so it must do nothing but store its results.
        """
        lengths = np.array([len(row) for row in texts.ids], dtype=np.int64)
        seconds = np.zeros_like(lengths)
        if texts.pair is not None:
            seconds = np.array([len(row) for row in texts.pair], dtype=np.int64)
        pending = np.arange(len(lengths))
        with Progress(len(texts.ids), f"seed {self.seed}", "text") as progress:
            while len(pending):
                tokens = self._settle_budget(texts, pending)
                planned = plan_batches(lengths[pending], tokens, self.device, seconds[pending], copies)
                batches = [pending[index] for index in planned]
                progress.describe(f"seed {self.seed}", len(batches))
                try:
                    with arithmetic(self.precision):
                        while batches:
                            work(batches[0], self._batch(texts, batches[0]))
                            progress.update(len(batches.pop(0)))
                except RuntimeError as error:
                    if not out_of_memory(error):
                        raise
                if not batches:
                    return
                pending = np.concatenate(batches)
                # Outside the handler, whose traceback would keep the tensors of the failed pass alive.
                self.budget.halve(int((lengths + seconds)[pending].max()), self.device)

    @torch.no_grad()
    def probabilities_without(self, texts: Texts | Instances, row: int) -> np.ndarray | None:
        """Class probabilities [words, C] of one text with each of its words deleted, for long texts and models with
        `encode_without`; None otherwise, and on a GPU, where batches of shortened texts are faster."""
        encode_without = getattr(self.model, "encode_without", None)
        if encode_without is None or torch.device(self.device).type != "cpu" or len(texts.ids[row]) < LONG_TEXT:
            return None
        batch = self._batch(texts, [row])
        words = torch.from_numpy(np.flatnonzero(texts.maskable[row]))
        probabilities = []
        tokens = WITHOUT_GRADIENTS * self._settle_budget(texts, np.array([row]))
        for positions in words.split(max(1, tokens // batch.ids.shape[1])):
            result = encode_without(batch, positions)
            if result is None:
                return None
            encoded, rows = result
            probabilities.append(self.model.decode(encoded, self.model.attend(encoded, rows)).double().softmax(dim=-1))
        return torch.cat(probabilities).numpy()

    @torch.no_grad()
    def probabilities(self, texts: Texts | Instances) -> np.ndarray:
        """Class probabilities [texts, C], in double precision: in single precision those near 1 would be equal."""
        first: dict[tuple[bytes, ...], int] = {}
        distinct: list[int] = []
        source = np.empty(len(texts.ids), dtype=np.int64)
        optional = (texts.pair, texts.answers, texts.pair_maskable)
        columns = [texts.ids, texts.maskable, *(column for column in optional if column is not None)]
        for i, row in enumerate(zip(*columns, strict=True)):
            key = tuple(part.tobytes() for part in row)
            if key not in first:
                first[key] = len(distinct)
                distinct.append(i)
            source[i] = first[key]
        results: dict[str, np.ndarray] = {}

        def work(index: np.ndarray, batch: Batch) -> None:
            probabilities = self.model(batch).logits.double().softmax(dim=-1).cpu().numpy()
            rows = results.setdefault("rows", np.empty((len(distinct), probabilities.shape[1]), dtype=np.float64))
            rows[index] = probabilities

        ids, maskable = [texts.ids[i] for i in distinct], [texts.maskable[i] for i in distinct]
        self.each(Texts(ids, maskable, *(take_rows(column, distinct) for column in optional)), work)
        return results["rows"][source]
