"""Rows of token ids as padded tensors, and how many fit into one forward pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from plumbline.data.vocabulary import PAD
from plumbline.errors import PlumblineError


@dataclass(frozen=True)
class Batch:
    """Padded rows.

    ids: [B, L] token ids; present: [B, L] what is no padding; attendable: [B, L] where attention may fall, which leaves
    out specials and padding.
    """

    ids: torch.Tensor
    present: torch.Tensor
    attendable: torch.Tensor

    @property
    def turned(self) -> torch.Tensor:
        """Positions [B, L] that read each row backwards within its length; padding stays where it is."""
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)
        return torch.where(self.present, self.present.sum(1, keepdim=True) - 1 - positions, positions)


def collate(ids: Sequence[np.ndarray], attendable: Sequence[np.ndarray], device: torch.device | str = "cpu") -> Batch:
    """Pad rows to the longest of them."""
    lengths = np.array([len(row) for row in ids])
    present = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full(present.shape, PAD, dtype=np.int64)
    attended = np.zeros(present.shape, dtype=bool)
    padded[present] = np.concatenate([*ids])
    attended[present] = np.concatenate([*attendable])
    return Batch(*(torch.from_numpy(array).to(device) for array in (padded, present, attended)))


# Padding costs as much as words do, so a batch is cut before padding is more than a tenth of its tokens, once it has
# enough of them to keep the processor busy.
PADDING = 1.1
ENOUGH_TOKENS = {"cpu": 1024, "cuda": 65536}


def plan(lengths: np.ndarray, token_budget: int, device: torch.device | str = "cpu") -> list[np.ndarray]:
    """Cut rows, sorted by length, into batches of at most `token_budget` tokens, padding included."""
    if len(lengths) and lengths.max() > token_budget:
        raise PlumblineError(
            f"A text of {lengths.max()} tokens does not fit into `compute.token_budget`, which is {token_budget}; "
            f"raise it to at least {lengths.max()}."
        )
    enough = ENOUGH_TOKENS[torch.device(device).type]
    order = np.argsort(lengths, kind="stable")
    batches, start, held = [], 0, 0
    for end, row in enumerate(order):
        length = int(lengths[row])
        padded = (end + 1 - start) * length
        if padded > token_budget or (held >= enough and padded > PADDING * (held + length)):
            batches.append(order[start:end])
            start, held = end, 0
        held += length
    return [*batches, order[start:]] if len(order) else []
