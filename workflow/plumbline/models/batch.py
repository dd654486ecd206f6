"""Rows of token ids as padded tensors, and how many fit into one forward pass."""

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

    ids: [B, L] token ids; present: [B, L] what is no padding; attendable: [B, L] where attention may fall, which leaves
    out specials and padding; pair: the second texts of paired inputs, such as questions, as a batch of their own;
    answers: [B, K] the classes that may be the answer, counted from 1 and filled up with 0, where not all may.
    """

    ids: torch.Tensor
    present: torch.Tensor
    attendable: torch.Tensor
    pair: "Batch | None" = None
    answers: torch.Tensor | None = None

    @property
    def turned(self) -> torch.Tensor:
        """Positions [B, L] that read each row backwards within its length; padding stays where it is."""
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)
        return torch.where(self.present, self.present.sum(1, keepdim=True) - 1 - positions, positions)

    def take(self, index: torch.Tensor) -> "Batch":
        """The rows at these positions [N], in this order."""
        return Batch(
            self.ids[index],
            self.present[index],
            self.attendable[index],
            None if self.pair is None else self.pair.take(index),
            None if self.answers is None else self.answers[index],
        )

    def repeat(self, times: int) -> "Batch":
        """All rows so many times, one whole batch after the other."""
        return self.take(torch.arange(len(self.ids), device=self.ids.device).repeat(times))

    def barred(self, classes: int) -> torch.Tensor | None:
        """Which of so many classes cannot be the answer, [B, C]; None if all can."""
        if self.answers is None:
            return None
        none = torch.zeros(len(self.answers), classes + 1, dtype=torch.bool, device=self.answers.device)
        return ~none.scatter(1, self.answers, True)[:, 1:]


def collate(
    ids: Sequence[np.ndarray],
    attendable: Sequence[np.ndarray] | None,
    device: torch.device | str = "cpu",
    pair: Sequence[np.ndarray] | None = None,
    answers: Sequence[np.ndarray] | None = None,
    pair_attendable: Sequence[np.ndarray] | None = None,
) -> Batch:
    """Pad rows to the longest of them. Second texts can be attended throughout unless it is said where."""
    padded, present = padded_rows(ids)
    attended = present.copy()
    if attendable is not None:
        attended[present] = np.concatenate([*attendable])
    tokens, there, free = (torch.from_numpy(array).to(device) for array in (padded, present, attended))
    return Batch(
        tokens,
        there,
        free,
        None if pair is None else collate(pair, pair_attendable, device),
        None if answers is None else torch.from_numpy(padded_answers(answers)).to(device),
    )


def padded_rows(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of whole numbers filled up with PAD, which is 0, to [B, longest], and what is no padding."""
    lengths = np.array([len(row) for row in rows])
    present = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full(present.shape, PAD, dtype=np.int64)
    padded[present] = np.concatenate([*rows])
    return padded, present


def padded_answers(answers: Sequence[np.ndarray]) -> np.ndarray:
    """The classes that may be the answer, [B, K]; counted from 1, so that 0 is none."""
    classes, present = padded_rows(answers)
    return (classes + 1) * present


# Padding costs as much as words do, so a batch is cut before padding is more than a tenth of its tokens, once it has
# enough of them to keep the processor busy.
PADDING = 1.1
ENOUGH_TOKENS = {"cpu": 1024, "cuda": 65536}


def plan(
    lengths: np.ndarray, token_budget: int, device: torch.device | str = "cpu", pair: np.ndarray | None = None
) -> list[np.ndarray]:
    """Cut rows, sorted by length, into batches of at most `token_budget` tokens, padding and second texts included.

    pair: the lengths of the second texts, if there are any.
    """
    pair = np.zeros_like(lengths) if pair is None else pair
    if len(lengths) and (lengths + pair).max() > token_budget:
        longest = (lengths + pair).max()
        raise PlumblineError(
            f"A text of {longest} tokens does not fit into `compute.token_budget`, which is {token_budget}; "
            f"raise it to at least {longest}."
        )
    enough = ENOUGH_TOKENS[torch.device(device).type]
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
