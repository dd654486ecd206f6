"""Functions of a few tensors, number by number, that a GPU computes in one kernel.

A loop over the words of a text is as slow as the kernels that each word takes are many, however small they are.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch

Tensors = tuple[torch.Tensor, ...]


class Fused:
    """A function of up to eight tensors, as PyTorch's own operations and as the CUDA code of one kernel.

    The code is a template of one function: its inputs by value, then its outputs by reference. It has no derivative.
    Where it cannot be compiled, the operations take its place, with a warning.
    """

    def __init__(self, plain: Callable[..., Tensors], code: str, outputs: int) -> None:
        self.plain, self.code, self.outputs = plain, code, outputs
        self._kernel: Any = None

    def __call__(self, *inputs: torch.Tensor) -> Tensors:
        if not inputs[0].is_cuda or self._kernel is False:
            return self.plain(*inputs)
        try:
            if self._kernel is None:
                self._kernel = torch.cuda.jiterator._create_multi_output_jit_fn(self.code, self.outputs)
            told = self._kernel(*inputs)
        except RuntimeError as error:
            self._kernel = False
            reason = str(error).splitlines()[0]
            warnings.warn(f"plumbline: a kernel cannot be compiled, so training is slower: {reason}", stacklevel=2)
            return self.plain(*inputs)
        return (told,) if isinstance(told, torch.Tensor) else tuple(told)
