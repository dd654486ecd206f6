"""One seed in training: its steps, its evaluation after each epoch and the epoch it keeps.

Everything stays on the learner's device, and the host waits for nothing until an epoch's numbers are read. On a GPU the
steps can be recorded; what a step does is the same either way.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from plumbline.config.recipes import Training
from plumbline.models.budget import Budget
from plumbline.models.objectives import Classification
from plumbline.models.rows import DeviceRows, RowChunk
from plumbline.models.widths import choose_widths
from plumbline.runtime.devices import arithmetic, mixed_precision
from plumbline.training.amsgrad import Adam, AdamW, AmsGrad, LinearRate, PlateauRate
from plumbline.training.epochs import chosen_epoch, gained
from plumbline.training.recorded import Recorded
from plumbline.training.selection import METRICS, scores

# How many rows a step takes, and the widths to which their texts are padded.
Shape = tuple[int, ...]

# To record a step of some width costs about as much as to replay it this often (measured, see bench/RESULTS.md).
RECORDING = 25
# Each also takes memory of its own for as long as training lasts, and more of them save little padding.
MOST_WIDTHS = 12

OPTIMISERS: dict[str, type[Adam]] = {"amsgrad": AmsGrad, "adam": Adam, "adamw": AdamW}


def class_weights(labels: np.ndarray, classes: int, how: str) -> np.ndarray:
    """Weight per class: size of class 0 over its own size (Jain & Wallace: N_neg / N_pos for positives), or 1."""
    if how == "none":
        return np.ones(classes, dtype=np.float32)
    counts = np.bincount(labels, minlength=classes)
    return (counts[0] / counts).astype(np.float32)


def batch_order(lengths: np.ndarray, training: Training, random: np.random.Generator) -> list[np.ndarray]:
    """The batches of one epoch. `length-noise` sorts by length, off by up to 10%, so that there is little padding."""
    if training.batching == "length-noise":
        reach = 0.1 * lengths
        order = np.argsort(lengths + np.floor(random.uniform(-reach, reach)), kind="stable")
    else:
        order = random.permutation(len(lengths))
    cuts = np.split(order, range(training.batch_size, len(order), training.batch_size))
    return [cuts[i] for i in random.permutation(len(cuts))]


def parameter_groups(model: nn.Module, training: Training) -> list[tuple[list[nn.Parameter], float]]:
    """Parameters with and without weight decay, each group with its decay."""
    patterns = [name if "*" in name else f"{name}*" for name in training.no_decay]
    decay: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (free if any(fnmatchcase(name, pattern) for pattern in patterns) else decay).append(parameter)
    return [group for group in ((decay, training.weight_decay), (free, 0.0)) if group[0]]


def _rate(training: Training, steps: int, device: torch.device | str) -> LinearRate | PlateauRate | None:
    """The step size, where it is not always the same; `steps` are those of an epoch."""
    if training.schedule == "linear":
        total = training.epochs * steps
        return LinearRate(training.learning_rate, total, int(training.warmup * total), device)
    if training.schedule == "plateau":
        patience, factor = training.plateau_patience, training.plateau_factor
        return PlateauRate(training.learning_rate, patience, factor, training.larger_is_better, device)
    return None


@torch.no_grad()
def outputs(
    model: nn.Module, objective: Classification, rows: DeviceRows, chunks: list[RowChunk]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Class probabilities [N, C] and the objective's quantities [N, Q] of all rows, on the device."""
    parts = []
    for chunk in chunks:
        batch, row = rows.batch(chunk.places, *chunk.widths)
        output = objective.run(model, batch, row)
        parts.append((output.logits.softmax(dim=-1), objective.quantities(output, row)))
    order = torch.cat([chunk.places for chunk in chunks])
    told = [torch.cat(column) for column in zip(*parts, strict=True)]
    first, second = (torch.empty_like(column).index_copy_(0, order, column) for column in told)
    return first, second


class MetricKey(NamedTuple):
    """A number that an epoch tells: which metric of which split."""

    split: str
    metric: str


class Learner:
    """A model, the rows that it learns from and those that choose its epoch.

    Several splits may each choose an epoch; the model that is kept is the choice of `select_on`. What is learnt is the
    objective that is given, or the model's own `objective`, or classification. `record` replays the steps as CUDA
    graphs, on a stream of this learner's own. Learners do not touch each other: what one learns does not depend on
    which others train beside it.
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
    ) -> None:
        self.train = train = rows["train"]
        device = train.device
        self.seed, self.training = seed, training
        self.objective: Classification = objective or getattr(model, "objective", None) or Classification()
        self.model = model.to(device)
        choosing = (training.select_on, *training.also_select_on)
        # The loss of the training split is that of the epoch's own steps.
        self.held_out = {split: rows[split] for split in (*choosing, *self.objective.reports) if split != "train"}
        told = (*METRICS, *self.objective.told)
        self.told = [
            MetricKey("train", "loss"),
            *(MetricKey(split, metric) for split in self.held_out for metric in told),
        ]
        self.deciding = {split: MetricKey(split, training.select_by) for split in choosing}
        self.history: list[dict[MetricKey, float]] = []
        # The parameters of epochs that are kept beside the chosen one, on the host.
        self.checkpoints: dict[int, dict[str, torch.Tensor]] = {}
        # Whether training is over for the model that is kept, and for every split that chooses.
        self.closed = self.done = False
        self._random = np.random.default_rng(seed)
        self._stream = torch.cuda.Stream(device) if record else None
        self._evaluator = torch.cuda.current_stream(device) if record else None
        self._run: Callable[..., None] = Recorded(self._step, self._stream, seed) if self._stream else self._step
        self._widths: list[np.ndarray] | None = None
        self._shapes: list[Shape] = []
        self._drawn: tuple[list[Shape], torch.Tensor] | None = None
        self._evaluation = {name: split.planned(self.model, budget) for name, split in self.held_out.items()}
        steps = -(-len(train) // training.batch_size)
        self._rate = _rate(training, steps, device)
        self._optimiser = OPTIMISERS[training.optimiser](
            parameter_groups(model, training),
            self._rate.value if self._rate else training.learning_rate,
            training.beta2,
        )
        self._order = torch.zeros(steps, training.batch_size, dtype=torch.long, device=device)
        self._position = torch.zeros(1, dtype=torch.long, device=device)
        self._loss = torch.zeros((), device=device)
        self._seen = torch.full((training.epochs, len(self.told)), torch.nan, dtype=torch.double, device=device)
        self._best = torch.full((), -torch.inf, dtype=torch.double, device=device)
        self._chosen = torch.zeros((), dtype=torch.long, device=device)
        self._kept = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    @staticmethod
    def _wait(one: torch.cuda.Stream | None, other: torch.cuda.Stream | None) -> None:
        """Let what comes next on one stream wait for what is already on the other."""
        if one and other:
            one.wait_stream(other)

    def _here(self) -> AbstractContextManager[Any]:
        return torch.cuda.stream(self._stream) if self._stream else nullcontext()

    def draw_order(self) -> None:
        """Draw and lay out the batches of the next epoch, which may be done while the GPU is busy with this one."""
        if self._drawn is not None:
            return
        batches = batch_order(self.train.lengths, self.training, self._random)
        needed = np.array([self.train.widths(batch) for batch in batches])
        if self._stream:
            needed = self._rounded(needed)
        shapes = [(len(batch), *map(int, widths)) for batch, widths in zip(batches, needed, strict=True)]
        order = np.zeros(self._order.shape, dtype=np.int64)
        for row, batch in zip(order, batches, strict=True):
            row[: len(batch)] = batch
        self._drawn = shapes, torch.from_numpy(order)

    def _rounded(self, needed: np.ndarray) -> np.ndarray:
        """Widths [batches, texts] rounded up to the few that are recorded, which the first epoch settles."""
        if self._widths is None:
            self._widths, cost = [], RECORDING
            longest = self.train.widths(np.arange(len(self.train)))
            for column, largest in zip(needed.T, longest, strict=True):
                self._widths.append(choose_widths(column, largest, self.training.epochs, cost, MOST_WIDTHS))
                # Each width of the second texts may be met with any of the first.
                cost *= len(self._widths[-1])
        columns = [known[np.searchsorted(known, column)] for known, column in zip(self._widths, needed.T, strict=True)]
        return np.stack(columns, axis=1)

    def begin_epoch(self) -> list[int]:
        """Go to the start of the next epoch. Returns how many rows each step takes."""
        self.draw_order()
        assert self._drawn
        (self._shapes, order), self._drawn = self._drawn, None
        with self._here():
            self._wait(self._stream, self._evaluator)
            self._order.copy_(order.pin_memory() if self._stream else order, non_blocking=True)
            self._position.zero_()
            self._loss.zero_()
        self.model.train()
        if isinstance(self._run, Recorded):
            self._run.expect(self._shapes)
        return [count for count, *_ in self._shapes]

    def step(self, number: int) -> None:
        """One step of the optimiser, on the next batch of the epoch."""
        self._run(*self._shapes[number])

    def _step(self, count: int, *widths: int) -> None:
        # The place in the epoch is counted on the device, so that a replay needs nothing from the host.
        index = self._order.index_select(0, self._position)[0, :count]
        precision = self.training.precision
        with arithmetic(precision):
            with mixed_precision(index.device, precision == "bfloat16"):
                batch, row = self.train.batch(index, *widths)
                losses = self.objective.losses(self.objective.run(self.model, batch, row), row)
            self._optimiser.zero_grad()
            # Under Adam the two differ by the weight of the decay alone.
            loss = losses.sum()
            (loss if self.training.reduction == "sum" else loss / count).backward()
            if self.training.clip_norm is not None:
                clip_grad_norm_(self._optimiser.parameters, self.training.clip_norm)
            if isinstance(self._rate, LinearRate):
                self._rate.advance()
            self._optimiser.step()
        self._loss += loss.detach()
        self._position += 1

    def end_epoch(self, epoch: int) -> None:
        """Score the held-out rows and keep the parameters if no eligible epoch was better."""
        self.model.eval()
        # On the stream that all learners share: a large evaluation fills the GPU by itself, and memory is kept per
        # stream, so that each learner would take as much again.
        self._wait(self._evaluator, self._stream)
        with torch.no_grad(), arithmetic():
            told = [(self._loss / len(self.train)).double()[None]]
            told += [self._score(rows, self._evaluation[split]) for split, rows in self.held_out.items()]
            self._seen[epoch - 1] = torch.cat(told)
            if epoch >= self.training.first_eligible_epoch and not self.closed:
                value = self._seen[epoch - 1, self.told.index(self.deciding[self.training.select_on])]
                value = value if self.training.larger_is_better else -value
                better = (value > self._best) | (self._chosen == 0)
                self._best = torch.where(better & value.isfinite(), value, self._best)
                self._chosen = torch.where(better, epoch, self._chosen)
                for name, tensor in self.model.state_dict().items():
                    self._kept[name].copy_(torch.where(better, tensor, self._kept[name]))

    def _keep(self, epoch: int) -> None:
        """Choose the epoch that has just ended, whatever it scored."""
        self._chosen.fill_(epoch)
        for name, tensor in self.model.state_dict().items():
            self._kept[name].copy_(tensor)

    def _score(self, rows: DeviceRows, chunks: list[RowChunk]) -> torch.Tensor:
        """METRICS of a split, then what the objective tells of it."""
        probabilities, quantities = outputs(self.model, self.objective, rows, chunks)
        told = self.objective.summary(quantities.double().mean(0))
        return torch.cat([scores(probabilities, rows.columns["label"]), told])

    def read_epoch(self, epoch: int) -> dict[MetricKey, float]:
        """Wait for an epoch and return what it told: the mean loss of its steps and the held-out scores.

        What follows from it for those to come is settled here: whether there are any, and at which step size.
        """
        told = dict(zip(self.told, self._seen[epoch - 1].tolist(), strict=True))
        self.history.append(told)
        training = self.training
        if isinstance(self._rate, PlateauRate):
            self._rate.see(told[self.deciding[training.select_on]])
        if training.checkpoint_gain is not None:
            accuracies = [past[MetricKey(training.select_on, "accuracy")] for past in self.history]
            if gained(accuracies, training.checkpoint_gain)[-1] == epoch:
                self.checkpoints[epoch] = {
                    name: tensor.detach().to("cpu", copy=True) for name, tensor in self.model.state_dict().items()
                }
        ended = {
            split: chosen_epoch(
                [past[key] for past in self.history],
                training.first_eligible_epoch,
                training.patience,
                training.larger_is_better,
                training.stop_at,
            )[1]
            for split, key in self.deciding.items()
        }
        self.closed, self.done = ended[training.select_on], all(ended.values())
        reached = getattr(self.objective, "reached", None)
        if reached and epoch >= training.first_eligible_epoch and reached(told):
            self._keep(epoch)
            self.closed = self.done = True
        return told

    def finish(self) -> int:
        """Put the chosen epoch's parameters back into the model, in evaluation mode; returns the epoch.

        The last one, if training broke off before any was eligible.
        """
        self._wait(self._evaluator, self._stream)
        chosen = int(self._chosen)
        if chosen:
            self.model.load_state_dict(self._kept)
        self.model.eval()
        del self._run  # The recorded steps and their memory go.
        return chosen or len(self.history)
