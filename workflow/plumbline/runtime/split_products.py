"""Products of matrices nearly as accurate as in single precision, on the tensor cores of a GPU.

Tensor cores multiply matrices of bfloat16 numbers, which have 8 significant bits, more than ten times as fast as
matrices of single precision. A number of single precision is nearly the sum of two such numbers, a large and a small
one, so that three of their products give the whole one with an error of about 2^-16; that of the two small parts is
left out.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import torch
from torch.nn.functional import linear, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from plumbline.runtime.half_gradients import HalfGradients
from plumbline.runtime.kernels import load_kernels

# One thread splits four numbers of a row and writes them as large, small and large parts. The first one of a row also
# writes its last columns, three ones and five zeros. `width` is a quarter of the row's length. Rounding is to the
# nearest, and to even if two are equally near, as PyTorch does.
_KERNEL = """
__device__ unsigned short rounded(float value) {
  unsigned int bits = __float_as_uint(value);
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
__device__ unsigned short rest(float value, unsigned short large) {
  return rounded(value - __uint_as_float((unsigned int)large << 16));
}
extern "C" __global__ void split(const float4* values, ushort4* parts, int rows, int width) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  long long row = i / width;
  if (row >= rows) return;
  float4 v = values[i];
  ushort4 large = {rounded(v.x), rounded(v.y), rounded(v.z), rounded(v.w)};
  long long column = i - row * width;
  ushort4* to = parts + row * (3 * width + 2) + column;
  if (column == 0) {
    to[3 * width] = {0x3f80, 0x3f80, 0x3f80, 0};
    to[3 * width + 1] = {0, 0, 0, 0};
  }
  to[0] = large;
  to[width] = {rest(v.x, large.x), rest(v.y, large.y), rest(v.z, large.z), rest(v.w, large.w)};
  to[2 * width] = large;
}
"""
_THREADS = 256
# Columns after the parts of x, three of them ones, by which a product adds a bias in three parts: 24 significant bits.
# Eight of them keep rows aligned.
_ONES, _ADDED = 3, 8


def split(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The large and the small part of values, in bfloat16."""
    large = values.bfloat16()
    return large, torch.sub(values, large, out=torch.empty_like(large))


@cache
def _kernels() -> dict[str, Any] | None:
    """The kernel `split`, which splits rows in one pass over memory; None if it cannot be compiled."""
    return load_kernels(_KERNEL, ["split"], {}, "explanations")


def beside(x: torch.Tensor) -> torch.Tensor:
    """The large, small and large parts of x [N, I] beside each other, and columns of ones and zeros: [N, 3I + 8]."""
    rows, width = x.shape
    if x.is_cuda and x.numel() and width % 4 == 0 and (kernels := _kernels()):
        x = x.contiguous()
        if x.data_ptr() % 16 == 0:
            parts = x.new_empty(rows, 3 * width + _ADDED, dtype=torch.bfloat16)
            kernels["split"]((-(-rows * width // 4 // _THREADS), 1, 1), (_THREADS, 1, 1), (x, parts, rows, width // 4))
            return parts
    large, small = split(x)
    added = large.new_zeros(rows, _ADDED)
    added[:, :_ONES] = 1
    return torch.cat([large, small, large, added], dim=1)


class Splitter:
    """Splits matrices, and remembers the last one: the layers of queries, keys and values have the same input."""

    def __init__(self) -> None:
        self._last: tuple[Any, torch.Tensor, torch.Tensor] | None = None

    def beside(self, x: torch.Tensor) -> torch.Tensor:
        """The parts of x as `beside` returns them."""
        key = x.data_ptr(), x._version, x.shape, x.stride()
        if self._last is None or self._last[0] != key:
            # The matrix is kept so that its memory, by which it is recognised, stays its own.
            self._last = key, x, beside(x)
        return self._last[2]


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Allow TF32 in products of matrices and in recurrent and convolutional layers on a GPU, or forbid it."""
    backends: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
    before = [backend.allow_tf32 for backend in backends]
    for backend in backends:
        backend.allow_tf32 = allowed
    try:
        yield
    finally:
        for backend, was_allowed in zip(backends, before, strict=True):
            backend.allow_tf32 = was_allowed


class SplitMatrix:
    """A constant matrix [I, O] as large, large and small parts below each other, and a bias in three parts,
    [3I + 8, O].

    With `split_gradients` the product of a gradient with its transpose is that of split matrices too, else in TF32.
    """

    def __init__(
        self,
        matrix: torch.Tensor,
        bias: torch.Tensor | None = None,
        splitter: Splitter | None = None,
        split_gradients: bool = True,
    ) -> None:
        self._matrix = matrix.contiguous()
        self._splitter = splitter
        self._split_gradients = split_gradients
        large, small = split(self._matrix)
        added = large.new_zeros(_ADDED, large.shape[1])
        if bias is not None:
            for row in range(_ONES):
                added[row] = bias
                bias = bias - added[row]
        self._parts = torch.cat([large, large, small, added])

    @cached_property
    def transposed(self) -> "SplitMatrix":
        """The transposed matrix, without bias."""
        return SplitMatrix(self._matrix.t())

    def after(self, x: torch.Tensor) -> torch.Tensor:
        """The product of x [N, I] with the matrix, plus the bias."""
        parts = self._splitter.beside(x) if self._splitter else beside(x)
        if not x.is_cuda:
            return parts.float() @ self._parts.float()
        return torch.mm(parts, self._parts, out_dtype=torch.float32)

    def gradient(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient with respect to x, given that with respect to the product."""
        if self._split_gradients:
            return _Product.apply(gradient, self.transposed)
        with tf32(True):
            return gradient @ self._matrix.t()


class _Product(torch.autograd.Function):
    """x [N, I] times a split matrix plus its constant bias, differentiable any number of times."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, matrix: SplitMatrix) -> torch.Tensor:
        ctx.matrix = matrix
        return matrix.after(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return ctx.matrix.gradient(gradients[0]), None


class SplitProducts(TorchFunctionMode):
    """Computes the linear layers of a model with constant weights as products of split matrices."""

    def __init__(self, split_gradients: bool = True) -> None:
        super().__init__()
        self._split_gradients = split_gradients
        self._splitter = Splitter()
        self._half_gradients = HalfGradients()
        # Each with its weight and bias, so that their ids stay their own.
        self._split: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor | None, SplitMatrix]] = {}

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if not kwargs and len(args) == 3:
            if function is linear and _is_constant(*args):
                return self._product(args[0], args[1], args[2], transposed=True)
            if function is torch.addmm and _is_constant(args[1], args[2], args[0]):
                return self._product(args[1], args[2], args[0])
        if function is scaled_dot_product_attention and not self._split_gradients:
            return self._half_gradients.attention(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))

    def _product(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, transposed: bool = False
    ) -> torch.Tensor:
        key = id(weight), id(bias)
        if key not in self._split:
            matrix = weight.detach().t() if transposed else weight.detach()
            self._split[key] = weight, bias, SplitMatrix(matrix, bias, self._splitter, self._split_gradients)
        return _Product.apply(x.flatten(0, -2), self._split[key][2]).unflatten(0, x.shape[:-1])


def _is_constant(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Whether x and the weight are matrices of single precision, the bias is a vector, and weight and bias have no
    gradient."""
    constant = not weight.requires_grad and (bias is None or (bias.dim() == 1 and not bias.requires_grad))
    return x.dtype == weight.dtype == torch.float32 and weight.dim() == 2 and constant
