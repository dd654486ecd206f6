"""Training of one seed: its steps, the evaluation after each epoch and the selection of an epoch.

Everything stays on the learner's device, and the host does not wait until an epoch's metrics are read. On a GPU the
steps can be recorded as CUDA graphs; recorded and plain steps compute the same.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from plumbline.config.recipes import Training
from plumbline.data.vocabulary import MASK
from plumbline.models.budget import Budget
from plumbline.models.objectives import Classification
from plumbline.models.rows import DeviceRows, RowChunk
from plumbline.models.widths import choose_widths
from plumbline.runtime.devices import arithmetic, mixed_precision
from plumbline.training.epochs import checkpoint_epochs, select_epoch
from plumbline.training.masked_rows import MaskedRows
from plumbline.training.optimisers import (
    OPTIMISERS,
    Adam,
    LinearRate,
    PlateauRate,
    learning_rate_schedule,
    parameter_groups,
)
from plumbline.training.recorded import Recorded
from plumbline.training.selection import SELECTION_METRICS, selection_metrics

# The number of rows of a step, and the widths to which their texts are padded.
Shape = tuple[int, ...]

# Recording a step of some width costs about as much as this many replays (measured, see bench/RESULTS.md).
RECORDING = 25
# Each width also holds memory until training ends, and more widths save little padding.
MOST_WIDTHS = 12


def class_weights(labels: np.ndarray, classes: int, how: str) -> np.ndarray:
    """Weight per class: size of class 0 over the class's size (Jain & Wallace: N_neg / N_pos for positives), or 1."""
    if how == "none":
        return np.ones(classes, dtype=np.float32)
    counts = np.bincount(labels, minlength=classes)
    return (counts[0] / counts).astype(np.float32)


def batch_order(lengths: np.ndarray, training: Training, random: np.random.Generator) -> list[np.ndarray]:
    """The batches of one epoch. `length-noise` sorts by length with up to 10% noise, which keeps padding small."""
    if training.batching == "length-noise":
        noise = 0.1 * lengths
        order = np.argsort(lengths + np.floor(random.uniform(-noise, noise)), kind="stable")
    else:
        order = random.permutation(len(lengths))
    batches = np.split(order, range(training.batch_size, len(order), training.batch_size))
    return [batches[i] for i in random.permutation(len(batches))]


@torch.no_grad()
def evaluate_rows(
    model: nn.Module, objective: Classification, rows: DeviceRows, chunks: list[RowChunk]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Class probabilities [N, C] and the objective's quantities [N, Q] of all rows, on the device."""
    parts = []
    for chunk in chunks:
        batch, row = rows.batch(chunk.positions, *chunk.widths)
        output = objective.run(model, batch, row)
        parts.append((output.logits.softmax(dim=-1), objective.quantities(output, row)))
    order = torch.cat([chunk.positions for chunk in chunks])
    columns = [torch.cat(column) for column in zip(*parts, strict=True)]
    probabilities, quantities = (torch.empty_like(column).index_copy_(0, order, column) for column in columns)
    return probabilities, quantities


def objective_of_model(model: nn.Module, given: Classification | None) -> Classification:
    """The given objective, else the model's own, else classification."""
    return given or getattr(model, "objective", None) or Classification()


def descend(
    optimiser: Adam, rate: LinearRate | PlateauRate | None, loss: torch.Tensor, clip_norm: float | None = None
) -> None:
    """One optimiser step on a loss."""
    optimiser.zero_grad()
    loss.backward()
    if clip_norm is not None:
        clip_grad_norm_(optimiser.parameters, clip_norm)
    if isinstance(rate, LinearRate):
        rate.advance()
    optimiser.step()


class RoundedWidths:
    """Widths of batches rounded up to a few, for which steps are recorded; the first epoch determines them."""

    def __init__(self, rows: DeviceRows, epochs: int) -> None:
        self._longest, self._epochs = rows.widths(np.arange(len(rows))), epochs
        self._widths: list[np.ndarray] | None = None

    def round(self, needed: np.ndarray) -> np.ndarray:
        """The widths [batches, texts] of an epoch's batches, rounded up."""
        if self._widths is None:
            self._widths, cost = [], RECORDING
            for column, largest in zip(needed.T, self._longest, strict=True):
                self._widths.append(choose_widths(column, largest, self._epochs, cost, MOST_WIDTHS))
                # Each width of the second texts may occur with any width of the first.
                cost *= len(self._widths[-1])
        columns = [
            widths[np.searchsorted(widths, column)] for widths, column in zip(self._widths, needed.T, strict=True)
        ]
        return np.stack(columns, axis=1)


class MetricKey(NamedTuple):
    """The name of a value in an epoch's metrics."""

    split: str
    metric: str


class Learner:
    """A model, its training rows and the rows that select its epoch.

    Several splits may each select an epoch; the model keeps the parameters of the epoch that `select_on` selects. The
    objective is the given one, else the model's `objective`, else classification. `record` replays the steps as CUDA
    graphs on the learner's own stream; `stack` leaves them to a `Stack`, on its stream if it has one. `mask_id` is the
    mask token of masked training. Learners are independent: the result does not depend on which others train
    concurrently, but for rounding in a stack.
    """

    def __init__(
        self,
        model: nn.Module,
        seed: int,
        rows: Mapping[str, DeviceRows],
        training: Training,
        budget: Budget,
        objective: Classification | None = None,
        record: bool = False,
        mask_id: int = MASK,
        stack: bool = False,
        stream: torch.cuda.Stream | None = None,
    ) -> None:
        self._masked = MaskedRows(rows["train"], mask_id) if training.masking == "uniform" else None
        self.train = train = self._masked.rows if self._masked else rows["train"]
        device = train.device
        self.seed, self.training = seed, training
        self.objective = objective_of_model(model, objective)
        self.model = model.to(device)
        selecting = (training.select_on, *training.also_select_on)
        # The loss of the training split is the mean over the epoch's steps.
        self.held_out = {split: rows[split] for split in (*selecting, *self.objective.reports) if split != "train"}
        metrics = (*SELECTION_METRICS, *self.objective.metrics)
        self.metric_keys = [
            MetricKey("train", "loss"),
            *(MetricKey(split, metric) for split in self.held_out for metric in metrics),
        ]
        self.selection_keys = {split: MetricKey(split, training.select_by) for split in selecting}
        self.history: list[dict[MetricKey, float]] = []
        # The parameters of checkpoint epochs, on the host.
        self.checkpoints: dict[int, dict[str, torch.Tensor]] = {}
        # Whether training is over according to `select_on`, and according to every selecting split.
        self.closed = self.done = False
        self._random = np.random.default_rng(seed)
        self._stream = stream or (torch.cuda.Stream(device) if record else None)
        self._evaluation_stream = torch.cuda.current_stream(device) if self._stream else None
        recorded = record and self._stream
        self._run: Callable[..., None] = Recorded(self._step, recorded, seed) if recorded else self._step
        self._widths = RoundedWidths(self.train, training.epochs) if record else None
        # The number of rows of each step of the epoch, and the widths of its texts.
        self.shapes: list[Shape] = []
        self._next_epoch: tuple[list[Shape], list[torch.Tensor]] | None = None
        self._chunks = {name: split.plan_chunks(self.model, budget) for name, split in self.held_out.items()}
        steps = -(-len(train) // training.batch_size)
        self._rate = learning_rate_schedule(training, steps, device)
        # A model that is not trained here needs no moments.
        self._optimiser = OPTIMISERS[training.optimiser](
            parameter_groups(model.named_parameters(), training) if training.epochs and not stack else [],
            self._rate.value if self._rate else training.learning_rate,
            training.beta2,
        )
        # The rows of each step.
        self.order = torch.zeros(steps, training.batch_size, dtype=torch.long, device=device)
        # What is sent to the device before each epoch.
        self._sent = [self.order, *([self._masked.ids] if self._masked else [])]
        self._position = torch.zeros(1, dtype=torch.long, device=device)
        self._loss = torch.zeros((), device=device)
        shape = (training.epochs, len(self.metric_keys))
        self._metrics = torch.full(shape, torch.nan, dtype=torch.double, device=device)
        self._best = torch.full((), -torch.inf, dtype=torch.double, device=device)
        self._selected = torch.zeros((), dtype=torch.long, device=device)
        kept = self.model.state_dict() if training.epochs else {}
        self._kept = {name: tensor.detach().clone() for name, tensor in kept.items()}

    @staticmethod
    def _wait(waiting: torch.cuda.Stream | None, awaited: torch.cuda.Stream | None) -> None:
        """Let later work on the first stream wait for the work already submitted to the second."""
        if waiting and awaited:
            waiting.wait_stream(awaited)

    def read_from(self, order: torch.Tensor, loss: torch.Tensor) -> None:
        """Let a `Stack` hold the order of the rows and the loss of the epoch."""
        self.order, self._loss = order, loss
        self._sent[0] = order

    def draw_order(self) -> None:
        """Draw the batches and masks of the next epoch; may run while the GPU computes the current one."""
        if self._next_epoch is not None:
            return
        batches = batch_order(self.train.lengths, self.training, self._random)
        needed = np.array([self.train.widths(batch) for batch in batches])
        if self._widths:
            needed = self._widths.round(needed)
        shapes = [(len(batch), *map(int, widths)) for batch, widths in zip(batches, needed, strict=True)]
        order = np.zeros(self.order.shape, dtype=np.int64)
        for row, batch in zip(order, batches, strict=True):
            # A stack also computes the rest of a smaller batch, with weight 0.
            row[: len(batch)], row[len(batch) :] = batch, batch[0]
        masked = [self._masked.draw(batches, self._random)] if self._masked else []
        self._next_epoch = shapes, [torch.from_numpy(order), *masked]

    def begin_epoch(self) -> list[int]:
        """Start the next epoch. Returns the number of rows of each step."""
        self.draw_order()
        assert self._next_epoch
        (self.shapes, drawn), self._next_epoch = self._next_epoch, None
        with torch.cuda.stream(self._stream) if self._stream else nullcontext():
            self._wait(self._stream, self._evaluation_stream)
            for sent, values in zip(self._sent, drawn, strict=True):
                sent.copy_(values.pin_memory() if self._stream else values, non_blocking=True)
            self._position.zero_()
            self._loss.zero_()
        self.model.train()
        if isinstance(self._run, Recorded):
            self._run.expect(self.shapes)
        return [count for count, *_ in self.shapes]

    def step(self, number: int) -> None:
        """One optimiser step on the next batch of the epoch."""
        self._run(*self.shapes[number])

    def _step(self, count: int, *widths: int) -> None:
        # The position in the epoch is counted on the device, so that a replay needs nothing from the host.
        index = self.order.index_select(0, self._position)[0, :count]
        precision = self.training.precision
        with arithmetic(precision):
            with mixed_precision(index.device, precision == "bfloat16"):
                batch, row = self.train.batch(index, *widths)
                losses = self.objective.losses(self.objective.run(self.model, batch, row), row)
            # Under Adam the reductions differ only in the relative weight of the decay.
            loss = losses.sum()
            whole = loss if self.training.reduction == "sum" else loss / count
            descend(self._optimiser, self._rate, whole, self.training.clip_norm)
        self._loss += loss.detach()
        self._position += 1

    def end_epoch(self, epoch: int) -> None:
        """Evaluate the held-out rows and keep the parameters if this is the best eligible epoch so far."""
        self.model.eval()
        # On the stream that all learners share: a large evaluation fills the GPU by itself, and memory is cached per
        # stream, so that each learner would reserve as much again.
        self._wait(self._evaluation_stream, self._stream)
        with torch.no_grad(), arithmetic():
            metrics = [(self._loss / len(self.train)).double()[None]]
            metrics += [self._evaluate(rows, self._chunks[split]) for split, rows in self.held_out.items()]
            self._metrics[epoch - 1] = torch.cat(metrics)
            if epoch >= self.training.first_eligible_epoch and not self.closed:
                key = self.selection_keys[self.training.select_on]
                value = self._metrics[epoch - 1, self.metric_keys.index(key)]
                value = value if self.training.larger_is_better else -value
                better = (value > self._best) | (self._selected == 0)
                self._best = torch.where(better & value.isfinite(), value, self._best)
                self._selected = torch.where(better, epoch, self._selected)
                for name, tensor in self.model.state_dict().items():
                    self._kept[name].copy_(torch.where(better, tensor, self._kept[name]))

    def _evaluate(self, rows: DeviceRows, chunks: list[RowChunk]) -> torch.Tensor:
        """SELECTION_METRICS of a split, then the objective's own metrics."""
        probabilities, quantities = evaluate_rows(self.model, self.objective, rows, chunks)
        summary = self.objective.summary(quantities.double().mean(0))
        return torch.cat([selection_metrics(probabilities, rows.columns["label"]), summary])

    def read_epoch(self, epoch: int) -> dict[MetricKey, float]:
        """Wait for an epoch and return its metrics: the mean loss of its steps and the held-out metrics.

        Updates the learning rate and decides whether training goes on.
        """
        metrics = dict(zip(self.metric_keys, self._metrics[epoch - 1].tolist(), strict=True))
        self.history.append(metrics)
        training = self.training
        if isinstance(self._rate, PlateauRate):
            self._rate.update(metrics[self.selection_keys[training.select_on]])
        if training.checkpoint_gain is not None:
            accuracies = [past[MetricKey(training.select_on, "accuracy")] for past in self.history]
            if checkpoint_epochs(accuracies, training.checkpoint_gain)[-1] == epoch:
                self.checkpoints[epoch] = {
                    name: tensor.detach().to("cpu", copy=True) for name, tensor in self.model.state_dict().items()
                }
        over = {
            split: select_epoch(
                [past[key] for past in self.history],
                training.first_eligible_epoch,
                training.patience,
                training.larger_is_better,
                training.stop_at,
            )[1]
            for split, key in self.selection_keys.items()
        }
        self.closed, self.done = over[training.select_on], all(over.values())
        reached = getattr(self.objective, "reached", None)
        if reached and epoch >= training.first_eligible_epoch and reached(metrics):
            self._selected.fill_(epoch)
            for name, tensor in self.model.state_dict().items():
                self._kept[name].copy_(tensor)
            self.closed = self.done = True
        return metrics

    def finish(self) -> int:
        """Load the selected epoch's parameters into the model, in evaluation mode; returns the epoch.

        The last epoch, if training ended before any was eligible.
        """
        self._wait(self._evaluation_stream, self._stream)
        selected = int(self._selected)
        if selected:
            self.model.load_state_dict(self._kept)
        self.model.eval()
        del self._run  # Frees the recorded steps and their memory.
        return selected or len(self.history)
