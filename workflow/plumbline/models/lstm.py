"""The recurrence of a bidirectional LSTM in training, by kernels of its own.

Those of PyTorch's layer read the weights again for every word, take one direction after the other, and fill the GPU, so
that other models hardly train beside them.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear


class Recurrence(torch.autograd.Function):
    """The states [B, L, 2, H] of both directions.

    projected: [B, L, 2, 4, H], the input's part of the gates; recurrent: [2, 4 * H, H]; lengths: [B]. The second
    direction reads each text from its end, and padding last.
    """

    @staticmethod
    def forward(ctx: Any, projected: torch.Tensor, recurrent: torch.Tensor, lengths: torch.Tensor, run: Any) -> Any:
        """One kernel for all words."""
        projected = projected.contiguous()
        texts, words, _, _, units = projected.shape
        hidden, cells, previous = (projected.new_empty(texts, words, 2, units) for _ in range(3))
        gates = projected.new_empty(texts, words, 2, units, 4)
        lengths = lengths.int()
        # For each unit of the state, its weights for the four gates of all units.
        weights = recurrent.view(2, 4, units, units).permute(0, 3, 2, 1).contiguous()
        run("lstm_forward", texts, projected, weights, lengths, hidden, gates, cells, previous, texts, words)
        ctx.save_for_backward(recurrent, lengths, gates, cells, previous)
        ctx.run = run
        return hidden

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """One kernel for all words; the weights' gradient is one product for each direction."""
        recurrent, lengths, gates, cells, previous = ctx.saved_tensors
        texts, words, _, units = previous.shape
        d_hidden, d_projected = gradients[0].contiguous(), previous.new_empty(texts, words, 2, 4, units)
        weights = recurrent.view(2, 4, units, units).permute(0, 2, 3, 1).contiguous()
        ctx.run("lstm_backward", texts, d_hidden, weights, lengths, gates, cells, d_projected, texts, words)
        d_gates = d_projected.view(texts * words, 2, 4 * units).permute(1, 2, 0)
        d_recurrent = torch.bmm(d_gates, previous.view(texts * words, 2, units).transpose(0, 1))
        return d_projected, d_recurrent, None, None


def bidirectional(
    layers: tuple[nn.LSTM, nn.LSTM], embedded: torch.Tensor, lengths: torch.Tensor, run: Any
) -> torch.Tensor:
    """The states [B, L, 2H] of two layers, each of one direction, in which the second reads each text from its end."""
    entering, recurrent, bias, recurrent_bias = (
        torch.cat(parameters) for parameters in zip(*(layer.parameters() for layer in layers), strict=True)
    )
    units = layers[0].hidden_size
    projected = linear(embedded, entering, bias + recurrent_bias).unflatten(-1, (2, 4, units))
    return Recurrence.apply(projected, recurrent.unflatten(0, (2, -1)), lengths, run).flatten(2)
