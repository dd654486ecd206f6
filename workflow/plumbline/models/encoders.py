"""Encoders: from embedded tokens [B, L, d] to hidden states [B, L, H].

BiLSTM, CNN and average are those of Jain & Wallace 2019. `summary` is a whole text as one vector [B, H], which is how a
question or hypothesis enters attention and output.
"""

from math import log
from typing import Generic, Literal, TypeVar

import torch
from torch import nn

from plumbline.errors import PlumblineError
from plumbline.models.attention import masked_softmax
from plumbline.models.batch import Batch

Layer = TypeVar("Layer", nn.LSTM, nn.GRU)


class Encoder(nn.Module):
    """What all encoders share; `size` is H."""

    size: int

    def summary(self, hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The mean over tokens, [B, H]. The study's code counts padding among them, so that it depends on the batch."""
        present = batch.present[:, :, None].to(hidden.dtype)
        return (hidden * present).sum(1) / present.sum(1)


class Recurrent(Encoder, Generic[Layer]):
    """One recurrent layer, `hidden` units per direction; H = 2 * hidden.

    Each direction runs over the padded rows, the backward one over rows turned round within their own length, so that
    padding comes last for both and never reaches a real token. Packed sequences would give the same numbers, but on the
    CPU their training step is two to four times slower.
    """

    def __init__(self, layer: type[Layer], dimensions: int, hidden: int) -> None:
        super().__init__()
        self.forwards: Layer = layer(dimensions, hidden, batch_first=True)
        self.backwards: Layer = layer(dimensions, hidden, batch_first=True)
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


class BiLSTM(Recurrent[nn.LSTM]):
    """A layer of long short-term memory in both directions."""

    def __init__(self, dimensions: int, hidden: int) -> None:
        super().__init__(nn.LSTM, dimensions, hidden)


class GRU(Recurrent[nn.GRU]):
    """A layer of gated recurrent units in both directions."""

    def __init__(self, dimensions: int, hidden: int) -> None:
        super().__init__(nn.GRU, dimensions, hidden)


class CNN(Encoder):
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
        """The largest value of each filter over words, [B, H]; as in the study's code special tokens are 0 like
        padding, and no filter goes below."""
        return (hidden * batch.attendable[:, :, None]).amax(1)


class Average(Encoder):
    """Each token by itself: a linear map and a nonlinearity; H = hidden. tanh and 128 as in the study's code."""

    def __init__(self, dimensions: int, hidden: int, activation: Literal["tanh", "relu"] = "tanh") -> None:
        super().__init__()
        self.linear = nn.Linear(dimensions, hidden)
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.size = hidden

    def forward(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        return self.activation(self.linear(embedded))


class Transformer(Encoder):
    """A linear map, sinusoidal positions, `layers` transformer layers and a last norm; H = hidden."""

    def __init__(self, dimensions: int, hidden: int, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        if hidden % heads:
            raise PlumblineError(f"`hidden` is {hidden}; a transformer needs a multiple of {heads}.")
        self.linear = nn.Linear(dimensions, hidden)
        self.layers = nn.ModuleList(TransformerLayer(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.size = hidden

    def forward(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        return self.attending(embedded, batch)[0]

    def attending(self, embedded: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Hidden states [B, L, H], and the self-attention [B, heads, L, L] of each layer."""
        hidden = self.linear(embedded) + sinusoids(embedded.shape[1], self.size, embedded)
        told = []
        for layer in self.layers:
            hidden, weights = layer(hidden, batch.present)
            told.append(weights)
        return self.norm(hidden), told


class TransformerLayer(nn.Module):
    """Self-attention and two linear layers for each token, each added to what it reads, of which it reads the norm.

    Written down, because PyTorch's own layer takes other kernels in evaluation than in training.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (size // heads) ** -0.5
        self.norm = nn.LayerNorm(size)
        self.project = nn.Linear(size, 3 * size)
        self.join = nn.Linear(size, size)
        self.feed = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size))

    def forward(self, hidden: torch.Tensor, present: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        query, key, value = self.project(self.norm(hidden)).unflatten(-1, (3, self.heads, -1)).unbind(2)
        scores = torch.einsum("bqnd,bknd->bnqk", query, key) * self.scale
        weights = masked_softmax(scores, present[:, None, None])
        hidden = hidden + self.join(torch.einsum("bnqk,bknd->bqnd", weights, value).flatten(2))
        return hidden + self.feed(hidden), weights


def sinusoids(length: int, size: int, like: torch.Tensor) -> torch.Tensor:
    """Places in a text as vectors [length, size]: sines and cosines of wavelengths from 2π to nearly 20000π."""
    places, steps = (torch.arange(count, dtype=like.dtype, device=like.device) for count in (length, size // 2))
    angles = places[:, None] * (steps * (-2 * log(10000) / size)).exp()
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
