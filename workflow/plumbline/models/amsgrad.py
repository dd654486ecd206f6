"""Adam with AMSGrad and AdamW, as PyTorch's fused kernels compute them, and a step size that changes as they go.

`torch.optim.Adam` would do, but the first optimiser of a process imports PyTorch's compiler, which takes longer than
many a small model trains, and its state begins with the first step, which a recording must not hold.
"""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import nn
from torch.optim.adam import adam


class Adam:
    """One step size, a number or a tensor that the steps read, and the weight decay of each group."""

    amsgrad: ClassVar[bool]
    decoupled: ClassVar[bool]

    def __init__(
        self,
        groups: Iterable[tuple[list[nn.Parameter], float]],
        learning_rate: float | torch.Tensor,
        beta2: float = 0.999,
    ) -> None:
        self.learning_rate = learning_rate
        self.beta2 = beta2
        self._groups = []
        for parameters, decay in groups:
            moments = [
                [torch.zeros_like(p, memory_format=torch.preserve_format) for p in parameters]
                for _ in range(3 if self.amsgrad else 2)
            ]
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
            first, second, *largest = ([moment[i] for i in moved] for moment in moments)
            adam(
                [parameters[i] for i in moved],
                [parameters[i].grad for i in moved],  # type: ignore[misc]
                first,
                second,
                largest[0] if largest else [],
                [steps[i] for i in moved],
                fused=True,
                capturable=parameters[0].is_cuda,
                decoupled_weight_decay=self.decoupled,
                amsgrad=self.amsgrad,
                beta1=0.9,
                beta2=self.beta2,
                lr=self.learning_rate,
                weight_decay=decay,
                eps=1e-8,
                maximize=False,
            )


class AmsGrad(Adam):
    """Weight decay is a term of the gradient."""

    amsgrad, decoupled = True, False


class AdamW(Adam):
    """Weight decay is no part of the gradient: each step takes its share of the parameter itself."""

    amsgrad, decoupled = False, True


class LinearRate:
    """A step size that grows from 0 to its peak and then falls to 0, by the same amount each step.

    It is counted on the device, so that recorded steps follow it.
    """

    def __init__(self, peak: float, steps: int, warmup: int, device: torch.device | str) -> None:
        self.peak, self.steps, self.warmup = peak, steps, warmup
        self.value = torch.zeros((), device=device)
        self._step = torch.zeros((), dtype=torch.double, device=device)

    def advance(self) -> None:
        """Set the value for the next step."""
        grown = self._step / max(1, self.warmup)
        left = (self.steps - self._step).clamp(min=0) / max(1, self.steps - self.warmup)
        self.value.copy_(self.peak * torch.where(self._step < self.warmup, grown, left))
        self._step += 1
