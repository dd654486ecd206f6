"""Instances on a device, from which padded batches are gathered on the device."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
import torch

from plumbline.data.instances import Instances
from plumbline.data.vocabulary import PAD
from plumbline.models.batch import Batch, padded_answers, plan_batches
from plumbline.models.budget import ROWS, Budget

Column = np.ndarray | Sequence[np.ndarray]


class RowChunk(NamedTuple):
    """Rows of one forward pass: their positions, on the device, and the padded widths."""

    positions: torch.Tensor
    widths: tuple[int, ...]


class Ragged:
    """Rows of different lengths, concatenated in one tensor per column."""

    def __init__(self, rows: Mapping[str, Sequence[np.ndarray]], device: torch.device | str) -> None:
        lengths = np.array([len(row) for row in next(iter(rows.values()))], dtype=np.int64)
        self.lengths = lengths
        self.columns: dict[str, torch.Tensor] = {}
        for name, column in rows.items():
            if [len(row) for row in column] != lengths.tolist():
                raise ValueError(f"column '{name}' does not have one value per token")
            self.columns[name] = torch.from_numpy(np.concatenate([*column])).to(device)
        self._length = torch.from_numpy(lengths).to(device)
        self._start = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)[:-1]])).to(device)

    def padded(self, index: torch.Tensor, width: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Every column of the rows at `index` [B], padded with 0 to [B, width], and the mask of what is not padding."""
        positions = torch.arange(width, device=index.device)
        present = positions < self._length[index, None]
        source = torch.where(present, self._start[index, None] + positions, 0)
        return {
            name: values[source] * present.view(*present.shape, *[1] * (values.dim() - 1))
            for name, values in self.columns.items()
        }, present


class DeviceRows:
    """The instances of a split. `columns` adds further inputs of a loss, with one value per row or per token.

    A sequence of arrays, one per row with a value per token, or per token and head, is padded like the text; a NumPy
    array is indexed by row.
    """

    def __init__(
        self, instances: Instances, device: torch.device | str, columns: Mapping[str, Column] | None = None
    ) -> None:
        assert PAD == 0, "columns are padded with zeros"
        tokens: dict[str, Sequence[np.ndarray]] = {"ids": instances.ids, "attendable": instances.maskable}
        self.columns = {"label": torch.from_numpy(instances.label.astype(np.int64)).to(device)}
        for name, column in (columns or {}).items():
            if isinstance(column, np.ndarray):
                self.columns[name] = torch.from_numpy(column).to(device)
            else:
                tokens[name] = column
        self.text = Ragged(tokens, device)
        self.pair = None
        if instances.pair is not None:
            words = [instances.pair_words(row) for row in range(len(instances))]
            self.pair = Ragged({"ids": instances.pair, "attendable": words}, device)
        self.answers = None
        if instances.answers is not None:
            self.answers = torch.from_numpy(padded_answers(instances.answers)).to(device)
        self.device = device

    def with_own_ids(self) -> "DeviceRows":
        """The same rows with a copy of the ids of their texts, which may be changed; the rest is shared."""
        rows = copy(self)
        rows.text = copy(self.text)
        rows.text.columns = {**self.text.columns, "ids": self.text.columns["ids"].clone()}
        return rows

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """All columns, by the kind of rows and their name."""
        named = {f"text/{name}": column for name, column in self.text.columns.items()}
        if self.pair:
            named |= {f"pair/{name}": column for name, column in self.pair.columns.items()}
        if self.answers is not None:
            named["answers"] = self.answers
        return named | {f"row/{name}": column for name, column in self.columns.items()}

    def replaced(self, tensors: Mapping[str, torch.Tensor]) -> "DeviceRows":
        """The same rows with other values of some `tensors`."""
        rows = copy(self)
        rows.text, rows.pair, rows.columns = copy(self.text), copy(self.pair), dict(self.columns)
        for name, tensor in tensors.items():
            kind, _, column = name.partition("/")
            if kind == "answers":
                rows.answers = tensor
            elif kind == "row":
                rows.columns[column] = tensor
            else:
                texts = rows.text if kind == "text" else rows.pair
                assert texts
                texts.columns = {**texts.columns, column: tensor}
        return rows

    def __len__(self) -> int:
        return len(self.text.lengths)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each row's text."""
        return self.text.lengths

    def widths(self, index: np.ndarray) -> tuple[int, ...]:
        """The padded widths of the texts of these rows, and of their second texts if any."""
        return tuple(int(texts.lengths[index].max()) for texts in (self.text, self.pair) if texts)

    def batch(self, index: torch.Tensor, width: int, pair_width: int = 0) -> tuple[Batch, dict[str, torch.Tensor]]:
        """The rows at `index` [B] as a batch of texts of `width` tokens, and their columns."""
        columns, present = self.text.padded(index, width)
        pair = None
        if self.pair:
            seconds, pair_present = self.pair.padded(index, pair_width)
            pair = Batch(seconds["ids"].long(), pair_present, seconds["attendable"])
        answers = None if self.answers is None else self.answers[index]
        batch = Batch(columns.pop("ids").long(), present, columns.pop("attendable"), pair, answers)
        return batch, {name: column[index] for name, column in self.columns.items()} | columns

    def plan_chunks(self, model: Any, budget: Budget) -> list[RowChunk]:
        """Chunks of all rows within the token budget of a model."""
        pair = self.pair.lengths if self.pair else None
        whole = self.lengths + (0 if pair is None else pair)
        longest = np.full(ROWS, whole.argmax())

        def example() -> Batch:
            return self.batch(torch.from_numpy(longest).to(self.device), *self.widths(longest))[0]

        tokens = budget.settle(model, int(whole.max()), example)
        return [
            RowChunk(torch.from_numpy(index).to(self.device), self.widths(index))
            for index in plan_batches(self.lengths, tokens, self.device, pair)
        ]
