"""Products of matrices nearly as accurate as in single precision, on the tensor cores of a GPU.

Tensor cores multiply matrices of bfloat16 numbers, which have 8 significant bits, more than ten times as fast as
matrices of single precision. A number of single precision is nearly the sum of two such numbers, a large and a small
one, so that three of their products give the whole one with an error of about 2^-16; that of the two small parts is
left out.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode


def split(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The large and the small part of values, in bfloat16."""
    large = values.bfloat16()
    return large, torch.sub(values, large, out=torch.empty_like(large))


class SplitMatrix:
    """A constant matrix [I, O] as large, large and small parts below each other, [3I, O]."""

    def __init__(self, matrix: torch.Tensor) -> None:
        self._matrix = matrix.contiguous()
        large, small = split(self._matrix)
        self._parts = torch.cat([large, large, small])

    @cached_property
    def transposed(self) -> "SplitMatrix":
        """The transposed matrix."""
        return SplitMatrix(self._matrix.t())

    def after(self, x: torch.Tensor) -> torch.Tensor:
        """The product of x [N, I], as large, small and large parts beside each other, with the matrix."""
        large, small = split(x)
        parts = torch.cat([large, small, large], dim=1)
        if not x.is_cuda:
            return parts.float() @ self._parts.float()
        return torch.mm(parts, self._parts, out_dtype=torch.float32)


class _Product(torch.autograd.Function):
    """x [N, I] times a split matrix, differentiable any number of times."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, matrix: SplitMatrix) -> torch.Tensor:
        ctx.matrix = matrix
        return matrix.after(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return _Product.apply(gradients[0], ctx.matrix.transposed), None


class SplitProducts(TorchFunctionMode):
    """Computes the linear layers of a model with constant weights as products of split matrices."""

    def __init__(self) -> None:
        super().__init__()
        # Each with its weight, so that the weight's id stays its own.
        self._split: dict[int, tuple[torch.Tensor, SplitMatrix]] = {}

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if not kwargs and len(args) == 3:
            if function is linear and _is_constant(args[0], args[1]):
                return self._product(args[0], args[1], args[2], transposed=True)
            if function is torch.addmm and _is_constant(args[1], args[2]):
                return self._product(args[1], args[2], args[0])
        return function(*args, **(kwargs or {}))

    def _product(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, transposed: bool = False
    ) -> torch.Tensor:
        if id(weight) not in self._split:
            self._split[id(weight)] = weight, SplitMatrix(weight.detach().t() if transposed else weight.detach())
        product = _Product.apply(x.flatten(0, -2), self._split[id(weight)][1]).unflatten(0, x.shape[:-1])
        return product if bias is None else product.add_(bias)


def _is_constant(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether both are matrices of single precision, and the second has no gradient."""
    return x.dtype == weight.dtype == torch.float32 and weight.dim() == 2 and not weight.requires_grad
