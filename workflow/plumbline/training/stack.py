"""The training steps of several seeds as one: each kernel computes all models.

A step of a small model is about two hundred kernels of a few microseconds each. Beside other jobs of the same GPU their
number seems to decide the time (bench/RESULTS.md).
"""

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, vmap

from plumbline.config.recipes import Training
from plumbline.models.objectives import Classification
from plumbline.models.rows import DeviceRows
from plumbline.runtime.devices import arithmetic
from plumbline.training.learner import Learner, RoundedWidths, Shape, descend, objective_of_model
from plumbline.training.optimisers import OPTIMISERS, learning_rate_schedule, parameter_groups
from plumbline.training.recorded import Recorded

# Larger models have longer kernels, between which less time is idle. The limit is a choice, not measured.
MOST_PARAMETERS = 1_000_000


def can_stack(
    models: Sequence[nn.Module], rows: DeviceRows, training: Training, objective: Classification | None
) -> bool:
    """Whether the steps of these models can be one.

    The models must be small and allow it (`stackable`). The loss must be one of single rows, and no step may depend on
    a seed's earlier ones but by its parameters. Batches of texts sorted by length would all be padded to the longest of
    them.
    """
    alike = training.batching == "shuffle" and training.masking == "none" and training.precision != "bfloat16"
    constant = training.schedule != "plateau" and training.clip_norm is None and training.epochs > 0
    classified = all(type(objective_of_model(model, objective)) is Classification for model in models)
    if len(models) < 2 or not (alike and constant and classified):
        return False
    if sum(parameter.numel() for parameter in models[0].parameters() if parameter.requires_grad) > MOST_PARAMETERS:
        return False
    longest = max(rows.widths(np.arange(len(rows))))
    device, tokens = torch.device(rows.device), len(models) * training.batch_size * longest
    # In the arithmetic of training, so that its kernels are there before `torch.vmap` traces a step.
    with arithmetic(training.precision):
        stackable = all(getattr(model, "stackable", lambda *_: False)(device, tokens) for model in models)
    return stackable and not any(_fixed_values_differ(models[0], model) for model in models[1:])


def _fixed_values_differ(model: nn.Module, other: nn.Module) -> bool:
    """Whether two models differ in what is not trained."""
    others = other.state_dict()
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return any(name not in trained and not values.equal(others[name]) for name, values in model.state_dict().items())


class _RowLosses(nn.Module):
    """The losses [B] of a model for the rows at `index` [B], some of whose columns are the seed's own."""

    def __init__(self, model: nn.Module, rows: DeviceRows) -> None:
        super().__init__()
        self.model = model
        self._rows, self._objective = rows, Classification()

    def forward(self, own: dict[str, torch.Tensor], index: torch.Tensor, widths: Sequence[int]) -> torch.Tensor:
        batch, row = self._rows.replaced(own).batch(index, *widths)
        return self._objective.losses(self._objective.run(self.model, batch, row), row)


class Stack:
    """Learners whose steps are one. On a GPU it is recorded on the given stream.

    A learner draws its batches, evaluates its model and selects an epoch as it does alone; its model has the parameters
    of the last `end_epoch`.
    """

    def __init__(self, learners: Sequence[Learner], stream: torch.cuda.Stream | None = None) -> None:
        first = learners[0]
        self._learners, self._training, self._stream = learners, first.training, stream
        rows = [learner.train for learner in learners]
        self._own = _different_columns(rows)
        self._losses = _RowLosses(first.model, rows[0])
        models = [dict(learner.model.named_parameters()) for learner in learners]
        trained = {
            name: nn.Parameter(torch.stack([model[name].detach() for model in models]))
            for name, parameter in models[0].items()
            if parameter.requires_grad
        }
        self._parameters: dict[str, torch.Tensor] = {f"model.{name}": parameter for name, parameter in trained.items()}
        self._copies = [
            (model[name], values)
            for name, parameter in trained.items()
            for model, values in zip(models, parameter.detach(), strict=True)
        ]
        self._order = torch.stack([learner.order for learner in learners])
        _, steps, size = self._order.shape
        self._rate = learning_rate_schedule(first.training, steps, first.train.device)
        self._optimiser = OPTIMISERS[first.training.optimiser](
            parameter_groups(trained.items(), first.training),
            self._rate.value if self._rate else first.training.learning_rate,
            first.training.beta2,
        )
        # The number of rows of each step, which is smaller in one step of an epoch, for each seed in another.
        self._counts = self._order.new_zeros(len(learners), steps)
        self._slots = torch.arange(size, device=self._order.device)
        self._position = self._order.new_zeros(1)
        self._loss = torch.zeros(len(learners), device=self._order.device)
        for learner, order, loss in zip(learners, self._order, self._loss, strict=True):
            learner.read_from(order, loss)
        self._widths = RoundedWidths(rows[0], first.training.epochs) if stream else None
        self._run = Recorded(self._step, stream, first.seed) if stream else self._step
        self._shapes: list[Shape] = []

    def begin_epoch(self) -> list[int]:
        """Start the next epoch. Returns the number of rows of each step of a learner."""
        for learner in self._learners:
            learner.begin_epoch()
        counts = torch.tensor([[count for count, *_ in learner.shapes] for learner in self._learners])
        needed = np.max([[widths for _, *widths in learner.shapes] for learner in self._learners], axis=0)
        if self._widths:
            needed = self._widths.round(needed)
        self._shapes = [tuple(map(int, widths)) for widths in needed]
        with self._on_its_stream():
            self._counts.copy_(counts.pin_memory() if self._stream else counts, non_blocking=True)
            self._position.zero_()
        if isinstance(self._run, Recorded):
            self._run.expect(self._shapes)
        return counts[0].tolist()

    def step(self, number: int) -> None:
        """One optimiser step of every model on its next batch."""
        self._run(*self._shapes[number])

    def _step(self, *widths: int) -> None:
        index = self._order.index_select(1, self._position)[:, 0]
        count = self._counts.index_select(1, self._position)

        def losses(
            parameters: dict[str, torch.Tensor], own: dict[str, torch.Tensor], index: torch.Tensor
        ) -> torch.Tensor:
            return functional_call(self._losses, parameters, (own, index, widths))

        with arithmetic(self._training.precision):
            each = vmap(losses)(self._parameters, self._own, index)
            loss = (each * (self._slots < count)).sum(1)
            # No model's loss depends on another's parameters, so that the gradient of the sum is that of each.
            whole = loss if self._training.reduction == "sum" else loss / count[:, 0]
            descend(self._optimiser, self._rate, whole.sum())
        self._loss += loss.detach()
        self._position += 1

    @torch.no_grad()
    def end_epoch(self) -> None:
        """Give each learner's model its parameters."""
        with self._on_its_stream():
            for parameter, values in self._copies:
                parameter.copy_(values)

    def _on_its_stream(self) -> torch.cuda.StreamContext | nullcontext[None]:
        return torch.cuda.stream(self._stream) if self._stream else nullcontext()

    def finish(self) -> None:
        """Free the recorded steps and their memory."""
        del self._run


def _different_columns(rows: Sequence[DeviceRows]) -> dict[str, torch.Tensor]:
    """The columns in which the rows of seeds differ, stacked, [seeds, ...]."""
    every = [one.tensors for one in rows]
    return {
        name: torch.stack([columns[name] for columns in every])
        for name, first in every[0].items()
        if not all(columns[name] is first or torch.equal(columns[name], first) for columns in every)
    }
