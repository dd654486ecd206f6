"""Adam, AMSGrad and AdamW on PyTorch's fused kernels, and learning rate schedules.

Not `torch.optim.Adam`: the first optimiser of a process imports PyTorch's compiler, which takes longer than training
many small models, and its state is created in the first step, which a CUDA graph must not record.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from math import inf
from typing import ClassVar

import torch
from torch import nn
from torch.optim.adam import adam

from plumbline.config.recipes import Training


class Adam:
    """Adam with one learning rate, a number or a tensor that the steps read, and a weight decay per group.

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
        """The parameters of all groups."""
        return [parameter for parameters, *_ in self._groups for parameter in parameters]

    def zero_grad(self) -> None:
        """Reset all gradients to None."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for parameters, decay, moments, steps in self._groups:
            updated = [i for i, parameter in enumerate(parameters) if parameter.grad is not None]
            if not updated:
                continue
            first, second, *largest = ([moment[i] for i in updated] for moment in moments)
            adam(
                [parameters[i] for i in updated],
                [parameters[i].grad for i in updated],  # type: ignore[misc]
                first,
                second,
                largest[0] if largest else [],
                [steps[i] for i in updated],
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
    """Adam that divides by the largest running mean of squared gradients so far, not by the current one."""

    amsgrad = True


class AdamW(Adam):
    """Adam with decoupled weight decay, applied to the parameters instead of the gradients."""

    decoupled = True


class LinearRate:
    """Linear warmup from 0 to the peak, then linear decay to 0.

    The step is counted on the device, so that recorded steps follow the schedule.
    """

    def __init__(self, peak: float, steps: int, warmup: int, device: torch.device | str) -> None:
        self.peak, self.steps, self.warmup = peak, steps, warmup
        self.value = torch.zeros((), device=device)
        self._step = torch.zeros((), dtype=torch.double, device=device)

    def advance(self) -> None:
        """Set the value for the next step."""
        rising = self._step / max(1, self.warmup)
        falling = (self.steps - self._step).clamp(min=0) / max(1, self.steps - self.warmup)
        self.value.copy_(self.peak * torch.where(self._step < self.warmup, rising, falling))
        self._step += 1


class PlateauRate:
    """A learning rate that is multiplied by `factor` after more than `patience` epochs in a row without improvement.

    PyTorch's ReduceLROnPlateau with its defaults: an improvement is more than a ten-thousandth of the best value, and
    changes of at most 1e-8 are not made. The value is on the device, so that recorded steps follow it.
    """

    threshold, least = 1e-4, 1e-8

    def __init__(self, rate: float, patience: int, factor: float, larger: bool, device: torch.device | str) -> None:
        self.patience, self.factor, self.larger = patience, factor, larger
        self.value = torch.full((), rate, device=device)
        self._rate, self._best, self._bad = rate, -inf if larger else inf, 0

    def update(self, metric: float) -> None:
        """Set the value for the next epoch from this epoch's metric."""
        factor = 1 + self.threshold if self.larger else 1 - self.threshold
        better = metric > self._best * factor if self.larger else metric < self._best * factor
        self._best, self._bad = (metric, 0) if better else (self._best, self._bad + 1)
        if self._bad > self.patience:
            self._bad, lower = 0, self._rate * self.factor
            if self._rate - lower > self.least:
                self._rate = lower
                self.value.fill_(lower)


OPTIMISERS: dict[str, type[Adam]] = {"amsgrad": AmsGrad, "adam": Adam, "adamw": AdamW}


def parameter_groups(
    named: Iterable[tuple[str, nn.Parameter]], training: Training
) -> list[tuple[list[nn.Parameter], float]]:
    """Parameters with and without weight decay, each group with its decay."""
    patterns = [name if "*" in name else f"{name}*" for name in training.no_decay]
    decayed: list[nn.Parameter] = []
    undecayed: list[nn.Parameter] = []
    for name, parameter in named:
        if parameter.requires_grad:
            (undecayed if any(fnmatchcase(name, pattern) for pattern in patterns) else decayed).append(parameter)
    return [group for group in ((decayed, training.weight_decay), (undecayed, 0.0)) if group[0]]


def learning_rate_schedule(
    training: Training, steps: int, device: torch.device | str
) -> LinearRate | PlateauRate | None:
    """The learning rate schedule of a recipe, None if constant; `steps` is the number of steps per epoch."""
    if training.schedule == "linear":
        total = training.epochs * steps
        return LinearRate(training.learning_rate, total, int(training.warmup * total), device)
    if training.schedule == "plateau":
        patience, factor = training.plateau_patience, training.plateau_factor
        return PlateauRate(training.learning_rate, patience, factor, training.larger_is_better, device)
    return None
