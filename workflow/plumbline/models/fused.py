"""Elementwise functions of several tensors that run as one kernel on a GPU.

A loop over the words of a text takes time in proportion to the number of kernels per word, however small they are.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch

Tensors = tuple[torch.Tensor, ...]


class Fused:
    """A function of up to eight tensors, as PyTorch operations and as CUDA code of one kernel.

    The code is a function template: inputs by value, then outputs by reference. It has no derivative. If it does not
    compile, the operations are used instead, with a warning.
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
            outputs = self._kernel(*inputs)
        except RuntimeError as error:
            self._kernel = False
            reason = str(error).splitlines()[0]
            warnings.warn(f"plumbline: a CUDA kernel cannot be compiled, so training is slower: {reason}", stacklevel=2)
            return self.plain(*inputs)
        return (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)
