"""Padded batches of token ids, and the assignment of rows to batches within a token budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from plumbline.data.vocabulary import PAD
from plumbline.errors import PlumblineError


@dataclass(frozen=True)
class Batch:
    """Padded rows.

    ids: [B, L] token ids; present: [B, L] False for padding; attendable: [B, L] False for padding and special tokens;
    pair: the batch of second texts, such as questions; answers: [B, K] the admissible classes, counted from 1 and
    padded with 0, or None if all classes are admissible.
    """

    ids: torch.Tensor
    present: torch.Tensor
    attendable: torch.Tensor
    pair: "Batch | None" = None
    answers: torch.Tensor | None = None

    @property
    def reversed_positions(self) -> torch.Tensor:
        """Positions [B, L] that reverse each row within its length; padding keeps its position."""
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)
        return torch.where(self.present, self.present.sum(1, keepdim=True) - 1 - positions, positions)

    def take(self, index: torch.Tensor) -> "Batch":
        """The rows at `index` [N], in this order."""
        return Batch(
            self.ids[index],
            self.present[index],
            self.attendable[index],
            None if self.pair is None else self.pair.take(index),
            None if self.answers is None else self.answers[index],
        )

    def repeat(self, times: int) -> "Batch":
        """The whole batch, `times` times in a row."""
        return self.take(torch.arange(len(self.ids), device=self.ids.device).repeat(times))

    def excluded(self, classes: int) -> torch.Tensor | None:
        """Mask [B, C] of the classes that are not admissible; None if all are."""
        if self.answers is None:
            return None
        admissible = torch.zeros(len(self.answers), classes + 1, dtype=torch.bool, device=self.answers.device)
        return ~admissible.scatter(1, self.answers, True)[:, 1:]


def collate(
    ids: Sequence[np.ndarray],
    attendable: Sequence[np.ndarray] | None,
    device: torch.device | str = "cpu",
    pair: Sequence[np.ndarray] | None = None,
    answers: Sequence[np.ndarray] | None = None,
    pair_attendable: Sequence[np.ndarray] | None = None,
) -> Batch:
    """Pad rows to the longest one. Without `attendable` or `pair_attendable` all tokens are attendable."""
    padded, present = padded_rows(ids)
    mask = present.copy()
    if attendable is not None:
        mask[present] = np.concatenate([*attendable])
    return Batch(
        torch.from_numpy(padded).to(device),
        torch.from_numpy(present).to(device),
        torch.from_numpy(mask).to(device),
        None if pair is None else collate(pair, pair_attendable, device),
        None if answers is None else torch.from_numpy(padded_answers(answers)).to(device),
    )


def padded_rows(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Integer rows padded with PAD, which is 0, to [B, longest], and the mask of what is not padding."""
    lengths = np.array([len(row) for row in rows])
    present = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full(present.shape, PAD, dtype=np.int64)
    padded[present] = np.concatenate([*rows])
    return padded, present


def padded_answers(answers: Sequence[np.ndarray]) -> np.ndarray:
    """The admissible classes [B, K], counted from 1 so that 0 is padding."""
    classes, present = padded_rows(answers)
    return (classes + 1) * present


# Padding costs as much as words, so a batch ends before padding exceeds a tenth of its tokens, once it has enough
# tokens to keep the processor busy.
PADDING = 1.1
ENOUGH_TOKENS = {"cpu": 1024, "cuda": 65536}
# With more copies, what is done once for each batch would take longer than padding.
MOST_COPIES = 64


def plan_batches(
    lengths: np.ndarray,
    token_budget: int,
    device: torch.device | str = "cpu",
    pair: np.ndarray | None = None,
    copies: int = 1,
) -> list[np.ndarray]:
    """Split rows, sorted by length, into batches of at most `token_budget` tokens, padding and second texts included.

    pair: the lengths of the second texts, if any. `copies` of a batch fill a pass, so that small batches are enough.
    """
    pair = np.zeros_like(lengths) if pair is None else pair
    if len(lengths) and (lengths + pair).max() > token_budget:
        longest = (lengths + pair).max()
        raise PlumblineError(
            f"A text of {longest} tokens does not fit into `compute.token_budget`, which is {token_budget}; "
            f"raise it to at least {longest}."
        )
    enough = ENOUGH_TOKENS[torch.device(device).type] // min(copies, MOST_COPIES)
    order = np.lexsort((pair, lengths))
    batches, start, held, widest = [], 0, 0, 0
    for end, row in enumerate(order):
        length, second = int(lengths[row]), int(pair[row])
        padded = (end + 1 - start) * (length + max(widest, second))
        if padded > token_budget or (held >= enough and padded > PADDING * (held + length + second)):
            batches.append(order[start:end])
            start, held, widest = end, 0, 0
        held += length + second
        widest = max(widest, second)
    return [*batches, order[start:]] if len(order) else []


def output_of(model: Any, batch: Batch) -> Any:
    """A model's output, which must have logits."""
    output = model(batch)
    if not hasattr(output, "logits"):
        raise PlumblineError(
            f"The model '{type(model).__name__}' returns a {type(output).__name__}; its `forward` must return "
            "Output(logits), from plumbline.models.classifier."
        )
    return output
