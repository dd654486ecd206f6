"""The recurrence of a bidirectional LSTM, by kernels of its own.

Those of PyTorch's layer read the weights again for every word, take one direction after the other, and fill the GPU, so
that other models hardly train beside them.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear


class Recurrence(torch.autograd.Function):
    """The states [M, B, L, 2, H] of both directions of M models.

    projected: [M, B, L, 2, 4, H], the input's part of the gates; recurrent: [M, 2, 4 * H, H]; lengths: [M, B]. The
    second direction reads each text from its end, and padding last. Further results are for the backward pass.
    """

    @staticmethod
    def forward(projected: torch.Tensor, recurrent: torch.Tensor, lengths: torch.Tensor, run: Any) -> Any:
        """One kernel for all words."""
        projected = projected.contiguous()
        models, texts, words, _, _, units = projected.shape
        hidden, cells, previous = (projected.new_empty(models, texts, words, 2, units) for _ in range(3))
        gates = projected.new_empty(models, texts, words, 2, units, 4)
        lengths = lengths.int().contiguous()
        results = hidden, gates, cells, previous
        run("lstm_forward", recurrent, [projected, lengths], results, texts, words)
        return results

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        """What the backward pass needs."""
        _, recurrent, lengths, ctx.run = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(recurrent, lengths, *output[1:])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """One kernel for all words; the weights' gradient is one product for each direction."""
        recurrent, lengths, gates, cells, previous = ctx.saved_tensors
        models, texts, words, _, units = previous.shape
        d_hidden, d_projected = gradients[0].contiguous(), previous.new_empty(models, texts, words, 2, 4, units)
        before = [d_hidden, lengths.int().contiguous(), gates, cells]
        ctx.run("lstm_backward", recurrent, before, [d_projected], texts, words)
        if not ctx.needs_input_grad[1]:
            return d_projected, None, None, None
        d_gates = d_projected.view(models, texts * words, 2, 4 * units)
        states = previous.view(models, texts * words, 2, units)
        products = [d_gates[:, :, way].transpose(1, 2) @ states[:, :, way] for way in range(2)]
        return d_projected, torch.stack(products, dim=1), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> Any:
        """More models: those of `torch.vmap`, each with the given ones."""
        *tensors, run = inputs
        spread = [
            tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            for tensor, dim in zip(tensors, in_dims, strict=False)
        ]
        results = Recurrence.apply(*(tensor.flatten(0, 1) for tensor in spread), run)
        return tuple(result.unflatten(0, (info.batch_size, -1)) for result in results), (0,) * len(results)


def bidirectional(
    layers: tuple[nn.LSTM, nn.LSTM], embedded: torch.Tensor, lengths: torch.Tensor, run: Any
) -> torch.Tensor:
    """The states [B, L, 2H] of two layers, each of one direction, in which the second reads each text from its end."""
    entering, recurrent, bias, recurrent_bias = (
        torch.cat(parameters) for parameters in zip(*(layer.parameters() for layer in layers), strict=True)
    )
    units = layers[0].hidden_size
    projected = linear(embedded, entering, bias + recurrent_bias).unflatten(-1, (2, 4, units))
    return Recurrence.apply(projected[None], recurrent.unflatten(0, (2, -1))[None], lengths[None], run)[0][0].flatten(2)
