"""Training of transformers whose weights are the same to the bit in every run on a GPU."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.functional import embedding, one_hot, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

# Of a table with at most this many rows, such as those of positions, gradients are summed by a product of matrices.
SMALL_TABLE = 1024


class RepeatableGradients(TorchFunctionMode):
    """Runs attention and lookups of vectors by kernels whose gradients do not depend on the order of threads.

    Everything else in these models repeats anyway, and PyTorch refuses some of it if asked for determinism everywhere.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if function is embedding and args[0].is_cuda and args[1].requires_grad:
            return _Lookup.apply(args[0], args[1])
        if function is not scaled_dot_product_attention:
            return function(*args, **(kwargs or {}))
        with _deterministic():
            output = function(*args, **(kwargs or {}))
        node = output.grad_fn
        while node is not None and "Attention" not in node.name():
            node = node.next_functions[0][0] if node.next_functions else None
        if node is not None:
            before = torch.are_deterministic_algorithms_enabled()
            node.register_prehook(lambda gradients: torch._C._set_deterministic_algorithms(True))
            node.register_hook(lambda *gradients: torch._C._set_deterministic_algorithms(before))
        return output


class _Lookup(torch.autograd.Function):
    """Rows [..., d] of a table [V, d]. PyTorch's own gradient differs between runs if an index occurs very often, as
    that of a token type does. Padding needs no exception: outputs do not depend on it, so its gradients are 0."""

    @staticmethod
    def forward(ctx: Any, indices: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(indices)
        ctx.rows = len(table)
        return table[indices]

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, torch.Tensor]:
        indices, values = ctx.saved_tensors[0].flatten(), gradients[0].flatten(0, -2)
        if ctx.rows <= SMALL_TABLE:
            return None, one_hot(indices, ctx.rows).to(values.dtype).t() @ values
        zeros = values.new_zeros(ctx.rows, values.shape[-1])
        return None, zeros.index_put_((indices,), values, accumulate=True)


@contextmanager
def _deterministic() -> Iterator[None]:
    # Not `torch.use_deterministic_algorithms`, which imports PyTorch's compiler.
    before = torch.are_deterministic_algorithms_enabled()
    torch._C._set_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(before)
