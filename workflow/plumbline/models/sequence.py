"""Texts and second texts of a batch as one sequence with all padding at its end.

Models with relative or rotary positions, or a causal mask, read such sequences as they are; nothing about positions has
to be known.
"""

from typing import NamedTuple

import torch

from plumbline.models.batch import Batch


class Sequence(NamedTuple):
    """present: [B, S] False for padding; second: [B, S] 1 for second texts; order: [B, T] the tokens of the batch,
    texts before second texts, in the order of the sequence, which ends after the first S."""

    present: torch.Tensor
    second: torch.Tensor
    order: torch.Tensor

    @property
    def last(self) -> torch.Tensor:
        """The position of the last token, [B]."""
        return self.present.sum(1) - 1

    def arrange(self, values: torch.Tensor) -> torch.Tensor:
        """Values [B, T, ...] of the batch's tokens, by position, [B, S, ...]."""
        return _taken(values, self.order[:, : self.present.shape[1]])

    def restore(self, values: torch.Tensor) -> torch.Tensor:
        """Values [B, S, ...] by position, by the batch's tokens, [B, T, ...]; 0 for padding after the end."""
        place, width = self.order.argsort(1), self.present.shape[1]
        inside = (place < width).view(*place.shape, *[1] * (values.dim() - 2))
        return torch.where(inside, _taken(values, place.clamp(max=width - 1)), torch.zeros_like(values[:1, :1]))


def _taken(values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    index = order.view(*order.shape, *[1] * (values.dim() - 2))
    return values.gather(1, index.expand(-1, -1, *values.shape[2:]))


def sequence_of(batch: Batch, longest: int) -> Sequence:
    """The sequence of a batch, whatever the place of its padding. No row has more than `longest` tokens, but texts and
    second texts, each padded to its longest, may be wider together."""
    present, second = batch.present, torch.zeros_like(batch.ids)
    if batch.pair is not None:
        present = torch.cat([present, batch.pair.present], dim=1)
        second = torch.cat([second, torch.ones_like(batch.pair.ids)], dim=1)
    order = (~present).to(torch.uint8).argsort(dim=1, stable=True)
    first = order[:, :longest]
    return Sequence(present.gather(1, first), second.gather(1, first), order)
