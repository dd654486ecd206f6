"""Adam with AMSGrad, as PyTorch's fused kernels compute it.

`torch.optim.Adam` would do, but the first optimiser of a process imports PyTorch's compiler, which takes longer than
many a small model trains, and its state begins with the first step, which a recording must not hold.
"""

from collections.abc import Iterable

import torch
from torch import nn
from torch.optim.adam import adam


class AmsGrad:
    """One step size, and the weight decay of each group as a term of the gradient (Adam's, not AdamW's)."""

    def __init__(self, groups: Iterable[tuple[list[nn.Parameter], float]], learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self._groups = []
        for parameters, decay in groups:
            moments = [[torch.zeros_like(p, memory_format=torch.preserve_format) for p in parameters] for _ in range(3)]
            steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in parameters]
            self._groups.append((parameters, decay, moments, steps))

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameters, *_ in self._groups:
            for parameter in parameters:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for parameters, decay, moments, steps in self._groups:
            moved = [i for i, parameter in enumerate(parameters) if parameter.grad is not None]
            if not moved:
                continue
            first, second, largest = ([moment[i] for i in moved] for moment in moments)
            adam(
                [parameters[i] for i in moved],
                [parameters[i].grad for i in moved],  # type: ignore[misc]
                first,
                second,
                largest,
                [steps[i] for i in moved],
                fused=True,
                capturable=parameters[0].is_cuda,
                amsgrad=True,
                beta1=0.9,
                beta2=0.999,
                lr=self.learning_rate,
                weight_decay=decay,
                eps=1e-8,
                maximize=False,
            )
