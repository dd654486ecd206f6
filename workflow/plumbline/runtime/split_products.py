"""Products of matrices nearly as accurate as in single precision, on the tensor cores of a GPU.

Tensor cores multiply matrices of bfloat16 numbers, which have 8 significant bits, more than ten times as fast as
matrices of single precision. A number of single precision is nearly the sum of two such numbers, a large and a small
one, so that three of their products give the whole one with an error of about 2^-16; that of the two small parts is
left out.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import torch
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

# One thread splits four numbers of a row and writes them as large, small and large parts; `width` is a quarter of the
# row's length. Rounding is to the nearest, and to even if two are equally near, as PyTorch does.
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
  ushort4* to = parts + 3 * row * width + (i - row * width);
  to[0] = large;
  to[width] = {rest(v.x, large.x), rest(v.y, large.y), rest(v.z, large.z), rest(v.w, large.w)};
  to[2 * width] = large;
}
"""
_THREADS = 256


def split(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The large and the small part of values, in bfloat16."""
    large = values.bfloat16()
    return large, torch.sub(values, large, out=torch.empty_like(large))


@cache
def _kernel() -> Any:
    """The kernel that splits rows in one pass over memory; None, with a warning, if it cannot be compiled."""
    try:
        return torch.cuda._compile_kernel(_KERNEL, "split")
    except (AttributeError, OSError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        warnings.warn(f"plumbline: a kernel cannot be compiled, so explanations are slower: {reason}", stacklevel=2)
        return None


def beside(x: torch.Tensor) -> torch.Tensor:
    """The large, small and large parts of x [N, I] beside each other, [N, 3I]."""
    rows, width = x.shape
    if x.is_cuda and x.numel() and width % 4 == 0 and (kernel := _kernel()):
        x = x.contiguous()
        if x.data_ptr() % 16 == 0:
            parts = x.new_empty(rows, 3 * width, dtype=torch.bfloat16)
            kernel((-(-rows * width // 4 // _THREADS), 1, 1), (_THREADS, 1, 1), (x, parts, rows, width // 4))
            return parts
    large, small = split(x)
    return torch.cat([large, small, large], dim=1)


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
    """A constant matrix [I, O] as large, large and small parts below each other, [3I, O].

    With `split_gradients` the product of a gradient with its transpose is that of split matrices too, else in TF32.
    """

    def __init__(self, matrix: torch.Tensor, split_gradients: bool = True) -> None:
        self._matrix = matrix.contiguous()
        self._split_gradients = split_gradients
        large, small = split(self._matrix)
        self._parts = torch.cat([large, large, small])

    @cached_property
    def transposed(self) -> "SplitMatrix":
        """The transposed matrix."""
        return SplitMatrix(self._matrix.t())

    def after(self, x: torch.Tensor) -> torch.Tensor:
        """The product of x [N, I] with the matrix."""
        parts = beside(x)
        if not x.is_cuda:
            return parts.float() @ self._parts.float()
        return torch.mm(parts, self._parts, out_dtype=torch.float32)

    def gradient(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient with respect to x, given that with respect to the product."""
        if self._split_gradients:
            return _Product.apply(gradient, self.transposed, None)
        with tf32(True):
            return gradient @ self._matrix.t()


class _Product(torch.autograd.Function):
    """x [N, I] times a split matrix plus a constant bias, differentiable any number of times."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, matrix: SplitMatrix, bias: torch.Tensor | None) -> torch.Tensor:
        ctx.matrix = matrix
        product = matrix.after(x)
        # In place and here: outside, on a view of this function's output, it would cost copies in the backward pass.
        return product if bias is None else product.add_(bias)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return ctx.matrix.gradient(gradients[0]), None, None


class SplitProducts(TorchFunctionMode):
    """Computes the linear layers of a model with constant weights as products of split matrices."""

    def __init__(self, split_gradients: bool = True) -> None:
        super().__init__()
        self._split_gradients = split_gradients
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
            if function is linear and _is_constant(*args):
                return self._product(args[0], args[1], args[2], transposed=True)
            if function is torch.addmm and _is_constant(args[1], args[2], args[0]):
                return self._product(args[1], args[2], args[0])
        return function(*args, **(kwargs or {}))

    def _product(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, transposed: bool = False
    ) -> torch.Tensor:
        if id(weight) not in self._split:
            matrix = weight.detach().t() if transposed else weight.detach()
            self._split[id(weight)] = weight, SplitMatrix(matrix, self._split_gradients)
        return _Product.apply(x.flatten(0, -2), self._split[id(weight)][1], bias).unflatten(0, x.shape[:-1])


def _is_constant(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Whether x and the weight are matrices of single precision, and weight and bias have no gradient."""
    constant = not weight.requires_grad and (bias is None or not bias.requires_grad)
    return x.dtype == weight.dtype == torch.float32 and weight.dim() == 2 and constant
