"""Adam, Adam with AMSGrad and AdamW, as PyTorch's fused kernels compute them, and step sizes that change as they go.

`torch.optim.Adam` would do, but the first optimiser of a process imports PyTorch's compiler, which takes longer than
many a small model trains, and its state begins with the first step, which a recording must not hold.
"""

from collections.abc import Iterable
from math import inf
from typing import ClassVar

import torch
from torch import nn
from torch.optim.adam import adam


class Adam:
    """One step size, a number or a tensor that the steps read, and the weight decay of each group.

    Weight decay is a term of the gradient.
    """

    amsgrad: ClassVar[bool] = False
    decoupled: ClassVar[bool] = False

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

    @property
    def parameters(self) -> list[nn.Parameter]:
        """All that it moves."""
        return [parameter for parameters, *_ in self._groups for parameter in parameters]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
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
    """It divides by the largest mean of squared gradients so far, not by the current one."""

    amsgrad = True


class AdamW(Adam):
    """Weight decay is no part of the gradient: each step takes its share of the parameter itself."""

    decoupled = True


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


class PlateauRate:
    """A step size that a factor makes smaller once more than `patience` epochs in a row were no better than the best.

    PyTorch's ReduceLROnPlateau with its other defaults: better is by more than a ten-thousandth of the best, and a
    change of no more than 1e-8 is not made. The value stands on the device, so that recorded steps follow it.
    """

    threshold, least = 1e-4, 1e-8

    def __init__(self, rate: float, patience: int, factor: float, larger: bool, device: torch.device | str) -> None:
        self.patience, self.factor, self.larger = patience, factor, larger
        self.value = torch.full((), rate, device=device)
        self._rate, self._best, self._bad = rate, -inf if larger else inf, 0

    def see(self, told: float) -> None:
        """Set the value for the next epoch from what this one told."""
        share = 1 + self.threshold if self.larger else 1 - self.threshold
        better = told > self._best * share if self.larger else told < self._best * share
        self._best, self._bad = (told, 0) if better else (self._best, self._bad + 1)
        if self._bad > self.patience:
            self._bad, lower = 0, self._rate * self.factor
            if self._rate - lower > self.least:
                self._rate = lower
                self.value.fill_(lower)
