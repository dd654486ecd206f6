"""Encoders: from embedded tokens [B, L, d] to hidden states [B, L, H].

BiLSTM, CNN and average are those of Jain & Wallace 2019. `summary` reduces a text to one vector [B, H], the form in
which a question or hypothesis enters attention and output.
"""

from math import log
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import nn
from torch.nn.functional import linear, pad

from plumbline.errors import PlumblineError
from plumbline.models.attention import masked_softmax
from plumbline.models.batch import Batch
from plumbline.models.lstm import bidirectional
from plumbline.models.lstm_kernels import Kernels, kernels

Layer = TypeVar("Layer", nn.LSTM, nn.GRU)


class Encoder(nn.Module):
    """Base class of encoders; `size` is H."""

    size: int

    def stackable(self, device: torch.device, tokens: int) -> bool:
        """Whether `torch.vmap` computes steps of several such encoders, with so many tokens in all, on this device."""
        return False

    def summary(self, hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The mean over tokens, [B, H]. The study's code includes padding, so that its mean depends on the batch."""
        present = batch.present[:, :, None].to(hidden.dtype)
        return (hidden * present).sum(1) / present.sum(1)


class Recurrent(Encoder, Generic[Layer]):
    """One recurrent layer, `hidden` units per direction; H = 2 * hidden.

    Each direction runs over the padded rows, the backward one over rows reversed within their own length, so that
    padding comes last in both and never affects a real token. Packed sequences give the same numbers, but their
    training step is two to four times slower on the CPU.
    """

    def __init__(self, layer: type[Layer], dimensions: int, hidden: int) -> None:
        super().__init__()
        self.forwards: Layer = layer(dimensions, hidden, batch_first=True)
        self.backwards: Layer = layer(dimensions, hidden, batch_first=True)
        self.size = 2 * hidden

    def forward(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        order = batch.reversed_positions[:, :, None]
        forwards, _ = self.forwards(embedded)
        backwards, _ = self.backwards(embedded.gather(1, order.expand(-1, -1, embedded.shape[-1])))
        return torch.cat([forwards, backwards.gather(1, order.expand(-1, -1, backwards.shape[-1]))], dim=-1)

    def summary(self, hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The last state of each direction, [B, H]."""
        forwards, backwards = hidden.chunk(2, dim=-1)
        last = batch.present.sum(1)[:, None, None] - 1
        final = forwards.gather(1, last.expand(-1, 1, forwards.shape[-1])).squeeze(1)
        return torch.cat([final, backwards[:, 0]], dim=-1)


class BiLSTM(Recurrent[nn.LSTM]):
    """A bidirectional LSTM layer. Training on a GPU and gradients in TF32 run by kernels of its own, if the GPU has
    room for them."""

    def __init__(self, dimensions: int, hidden: int) -> None:
        super().__init__(nn.LSTM, dimensions, hidden)

    def forward(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        own = self._kernels(embedded)
        if own is None:
            return super().forward(embedded, batch)
        return bidirectional((self.forwards, self.backwards), embedded, batch.present.sum(1), own.run)

    def stackable(self, device: torch.device, tokens: int) -> bool:
        """Whether the LSTM kernels can run, which read several models."""
        return device.type == "cuda" and self._kernels_for(tokens) is not None

    def _kernels(self, embedded: torch.Tensor) -> Kernels | None:
        # Passes without steps are large, for which PyTorch's layer is as fast as exact kernels.
        explained = torch.is_grad_enabled() and torch.backends.cuda.matmul.allow_tf32
        single = embedded.dtype == torch.float32 and not torch.is_autocast_enabled("cuda")
        if not ((self.training or explained) and embedded.is_cuda and single):
            return None
        # The kernels run on the current GPU.
        current = embedded.device.index == torch.cuda.current_device()
        return self._kernels_for(embedded.shape[0] * embedded.shape[1]) if current else None

    def _kernels_for(self, tokens: int) -> Kernels | None:
        units = self.forwards.hidden_size
        # The kernels count the values of gates, four for each unit and direction, in 32 bits.
        return kernels(units, torch.backends.cuda.matmul.allow_tf32) if 8 * tokens * units < 2**31 else None


class GRU(Recurrent[nn.GRU]):
    """A bidirectional GRU layer."""

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
        # The input must be zero at padding too, or a wide filter at the last word would read it.
        present = batch.present[:, :, None]
        signal = embedded * present
        hidden = torch.cat([convolve(signal, layer) for layer in self.convolutions], dim=-1).relu()
        return hidden * present

    def summary(self, hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The maximum of each filter over words, [B, H]; as in the study's code special tokens count as 0, the minimum
        after the ReLU, like padding."""
        return (hidden * batch.attendable[:, :, None]).amax(1)


def convolve(signal: torch.Tensor, layer: Any) -> torch.Tensor:
    """A convolution along the texts of a signal [B, L, d], as one matrix product and a sum of its shifted parts.

    Training with PyTorch's convolution in float32 is two to three times slower on a CPU (see bench/RESULTS.md).
    """
    (width,), length = layer.kernel_size, signal.shape[1]
    filters = layer.weight.permute(2, 0, 1).flatten(0, 1)
    parts = pad(linear(signal, filters), (0, 0, width // 2, width // 2)).unflatten(-1, (width, -1))
    return layer.bias + sum(parts[:, offset : offset + length, offset] for offset in range(width))


class Average(Encoder):
    """A linear map and a nonlinearity for each token; H = hidden. tanh and 128 as in the study's code."""

    def __init__(self, dimensions: int, hidden: int, activation: Literal["tanh", "relu"] = "tanh") -> None:
        super().__init__()
        self.linear = nn.Linear(dimensions, hidden)
        self.activation = {"tanh": torch.tanh, "relu": torch.relu}[activation]
        self.size = hidden

    def stackable(self, device: torch.device, tokens: int) -> bool:
        """Always."""
        return True

    def forward(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        return self.activation(self.linear(embedded))


class Transformer(Encoder):
    """A linear map, sinusoidal positions, `layers` transformer layers and a final norm; H = hidden."""

    def __init__(self, dimensions: int, hidden: int, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        if hidden % heads:
            raise PlumblineError(f"`hidden` is {hidden}; a transformer needs a multiple of {heads}.")
        self.linear = nn.Linear(dimensions, hidden)
        self.layers = nn.ModuleList(TransformerLayer(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.size = hidden

    def forward(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        return self.forward_with_attention(embedded, batch)[0]

    def forward_with_attention(self, embedded: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Hidden states [B, L, H], and the self-attention [B, heads, L, L] of each layer."""
        hidden = self.linear(embedded) + sinusoids(embedded.shape[1], self.size, embedded)
        attention = []
        for layer in self.layers:
            hidden, weights = layer(hidden, batch.present)
            attention.append(weights)
        return self.norm(hidden), attention


class TransformerLayer(nn.Module):
    """Pre-norm self-attention and feed-forward network with residual connections.

    Implemented here because PyTorch's layer uses different kernels in evaluation and in training.
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
    """Sinusoidal position vectors [length, size]: sines and cosines of wavelengths from 2π to nearly 20000π."""
    positions, steps = (torch.arange(count, dtype=like.dtype, device=like.device) for count in (length, size // 2))
    angles = positions[:, None] * (steps * (-2 * log(10000) / size)).exp()
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
