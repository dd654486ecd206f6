"""Attention whose outputs are those of single precision and whose gradients are computed in half precision.

PyTorch's fused attention has no fast gradients in single precision: for texts of 300 tokens they take a third of the
time of integrated gradients. Half precision has as many significant bits as TF32, 11, but a small range, so each row's
gradients are scaled to at most 1 before. Queries, keys and values are not: above 65,504 they overflow, and gradients
are NaN. Integrated gradients report that, except for the published form, which has no residual.
"""

from typing import Any

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

# Sizes that the fused kernels can read: of a head, and of the rows of a mask.
_HEAD, _MASK = 8, 16
_TINY = torch.finfo(torch.float32).tiny


class HalfGradients:
    """Computes attention, and remembers the last mask in both precisions: all layers of a model have the same one."""

    def __init__(self) -> None:
        self._last: tuple[tuple[int, int], torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    def attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **others: Any,
    ) -> torch.Tensor:
        """softmax(QKᵀ · scale + mask) V, with the signature of PyTorch's function, which computes what this one
        cannot."""
        if dropout_p or any(others.values()) or not _supports(query, key, value, attn_mask):
            return scaled_dot_product_attention(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **others
            )
        biases = (None, None) if attn_mask is None else self._biases(attn_mask)
        return _Attention.apply(query, key, value, biases, is_causal, scale)

    def _biases(self, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What is added to the scores, in single and in half precision."""
        key = id(mask), mask._version
        if self._last is None or self._last[0] != key:
            single = mask
            if mask.dtype == torch.bool:
                single = torch.zeros_like(mask, dtype=torch.float32).masked_fill_(~mask, -torch.inf)
            # The mask is kept so that its id stays its own.
            self._last = key, mask, _aligned(single.float()), _aligned(single.half())
        return self._last[2:]


def _supports(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None) -> bool:
    """Whether the fused attention on a GPU supports these inputs, and there are gradients to compute."""
    inputs = (query, key, value)
    differentiable = torch.is_grad_enabled() and any(x.requires_grad for x in inputs)
    fits = all(x.is_cuda and x.dtype == torch.float32 and x.dim() == 4 and x.shape[3] % _HEAD == 0 for x in inputs)
    alike = query.shape[:2] == key.shape[:2] == value.shape[:2]
    constant = mask is None or (mask.dim() == 4 and not mask.requires_grad)
    return differentiable and fits and alike and constant


def _aligned(bias: torch.Tensor) -> torch.Tensor:
    """The bias with rows in memory of a multiple of _MASK numbers."""
    width = bias.shape[-1]
    return pad(bias, (0, -width % _MASK))[..., :width]


def _expanded(bias: torch.Tensor | None, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor | None:
    return None if bias is None else bias.expand(*query.shape[:3], key.shape[2])


class _Attention(torch.autograd.Function):
    """Fused attention; its gradients have no derivative."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> torch.Tensor:
        query, key, value, biases, is_causal, scale = inputs
        output, *state = torch.ops.aten._scaled_dot_product_efficient_attention(
            query, key, value, _expanded(biases[0], query, key), True, 0.0, is_causal, scale=scale
        )
        ctx.save_for_backward(query, key, value, output, *state)
        ctx.bias, ctx.is_causal, ctx.scale = biases[1], is_causal, scale
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        query, key, value, output, *state = ctx.saved_tensors
        (gradient,) = gradients
        largest = gradient.abs().amax((1, 2, 3), keepdim=True).clamp(min=_TINY)
        half = [x.half() for x in (query, key, value)]
        bias = _expanded(ctx.bias, query, key)
        # The last of the four flags is for the gradient of the bias.
        results = torch.ops.aten._scaled_dot_product_efficient_attention_backward(
            (gradient / largest).half(), *half, bias, output.half(), *state, 0.0, [True] * 3 + [False], ctx.is_causal,
            scale=ctx.scale,
        )  # fmt: skip
        return *(x * largest for x in results[:3]), None, None, None
