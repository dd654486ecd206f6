"""Encoders of Jain & Wallace 2019: from embedded tokens [B, L, d] to hidden states [B, L, H].

`summary` is a whole text as one vector [B, H], which is how a question or hypothesis enters attention and output.
"""

from typing import Literal

import torch
from torch import nn

from plumbline.models.batch import Batch


class BiLSTM(nn.Module):
    """One layer, `hidden` units per direction; H = 2 * hidden.

    Each direction runs over the padded rows, the backward one over rows turned round within their own length, so that
    padding comes last for both and never reaches a real token. Packed sequences would give the same numbers, but on the
    CPU their training step is two to four times slower.
    """

    def __init__(self, dimensions: int, hidden: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(dimensions, hidden, batch_first=True)
        self.backwards = nn.LSTM(dimensions, hidden, batch_first=True)
        self.size = 2 * hidden

    def forward(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        turned = batch.turned[:, :, None]
        ahead, _ = self.forwards(embedded)
        back, _ = self.backwards(embedded.gather(1, turned.expand(-1, -1, embedded.shape[-1])))
        return torch.cat([ahead, back.gather(1, turned.expand(-1, -1, back.shape[-1]))], dim=-1)

    def summary(self, hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The last state of each direction, [B, H]."""
        ahead, back = hidden.chunk(2, dim=-1)
        last = batch.present.sum(1)[:, None, None] - 1
        return torch.cat([ahead.gather(1, last.expand(-1, 1, ahead.shape[-1])).squeeze(1), back[:, 0]], dim=-1)


class CNN(nn.Module):
    """Parallel convolutions of widths 1, 3, 5 and 7 with `hidden` filters each, ReLU; H = 4 * hidden."""

    def __init__(self, dimensions: int, hidden: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(dimensions, hidden, width, padding="same") for width in (1, 3, 5, 7)
        )
        self.size = 4 * hidden

    def forward(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        # Padding must be zero on the way in too, or a wide filter at the last word would see it.
        present = batch.present[:, None, :]
        signal = embedded.transpose(1, 2) * present
        hidden = torch.cat([convolution(signal) for convolution in self.convolutions], dim=1).relu()
        return (hidden * present).transpose(1, 2)

    def summary(self, hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The largest value of each filter, [B, H]; padding is 0, which no filter goes below."""
        return hidden.amax(1)


class Average(nn.Module):
    """Each token by itself: a linear map and a nonlinearity; H = hidden. tanh and 128 as in the study's code."""

    def __init__(self, dimensions: int, hidden: int, activation: Literal["tanh", "relu"] = "tanh") -> None:
        super().__init__()
        self.linear = nn.Linear(dimensions, hidden)
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.size = hidden

    def forward(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        return self.activation(self.linear(embedded))

    def summary(self, hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The mean over tokens, [B, H]. The study's code counts padding among them, so that it depends on the batch."""
        present = batch.present[:, :, None].to(hidden.dtype)
        return (hidden * present).sum(1) / present.sum(1)
