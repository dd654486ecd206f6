"""Masked training: the words of half of each batch are masked at random (Madsen et al. 2024)."""

from collections.abc import Sequence

import numpy as np
import torch

from plumbline.data.masking import uniform_masks
from plumbline.models.rows import DeviceRows


class MaskedRows:
    """The training rows of one learner, whose ids are drawn for each epoch; `mask_id` is the id of the mask token."""

    def __init__(self, rows: DeviceRows, mask_id: int) -> None:
        self.rows, self._mask_id = rows.with_own_ids(), mask_id
        self._ids, attendable = (rows.text.columns[name].cpu().numpy() for name in ("ids", "attendable"))
        self._positions = np.flatnonzero(attendable)
        row = np.repeat(np.arange(len(rows)), rows.lengths)
        self._words = np.bincount(row[self._positions], minlength=len(rows))

    @property
    def ids(self) -> torch.Tensor:
        """The ids of all texts that the steps read, on the device."""
        return self.rows.text.columns["ids"]

    def draw(self, batches: Sequence[np.ndarray], random: np.random.Generator) -> torch.Tensor:
        """The ids of an epoch. Of each text in a random half of each batch, a uniform share of the words is masked."""
        chosen = np.zeros(len(self.rows), dtype=bool)
        for batch in batches:
            chosen[random.permutation(batch)[: len(batch) // 2]] = True
        ids = self._ids.copy()
        ids[self._positions[uniform_masks(self._words, chosen, random)]] = self._mask_id
        return torch.from_numpy(ids)
