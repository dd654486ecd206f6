"""The CUDA kernels of the recurrence of a bidirectional LSTM, one for each pass, with weights that stay on the chip."""

import warnings
from functools import cache
from typing import Any, NamedTuple

import torch

from plumbline.models.budget import out_of_memory
from plumbline.models.lstm_rounded_source import ROUNDED_SOURCE, TENSOR_CORES
from plumbline.models.lstm_source import EXACT_SOURCE, SHARED_SOURCE
from plumbline.runtime.kernels import FAILURES, load_kernels

PASSES = ("lstm_forward", "lstm_backward")
# Units whose recurrent weights fit into a thread's registers.
OWN = 32
# Bytes of the four gates of a unit.
GATES = 16


class Layout(NamedTuple):
    """The texts that a block reads, the number of units whose weights lie in shared memory, and the bytes of shared
    memory for each pass."""

    rows: int
    held: int
    forward: int
    backward: int


def layout(units: int, available: int) -> Layout | None:
    """Where the weights of a layer lie on a chip that has so many bytes of shared memory for a block; None if they do
    not fit, or if the units are no whole warps."""
    # With more texts, each weight that is read serves more; with fewer, more processors share a batch, and a word is
    # sooner done. An earlier version was faster with two than with eight (bench/RESULTS.md).
    rows = 4 if units > 32 else 2
    # Registers are nearest; a block has some weights in shared memory.
    held = max(units - OWN, 4)
    # Two sets of what the units of a block send each other: states, or the gradients of gates.
    sent = 2 * rows * units
    found = Layout(rows, held, held * units * GATES + sent * 4, held * units * GATES + sent * GATES)
    return None if units % 32 or found.backward > available else found


# The texts of a block of rounded kernels, which have all weights of at most so many units in registers.
ROUNDED_ROWS, MOST_ROUNDED = 8, 128
# How far results of rounded kernels may be from exact ones, relative to the largest.
TOLERANCE = 0.01


def arranged(name: str, recurrent: torch.Tensor) -> torch.Tensor:
    """The recurrent weights [M, 2, 4 * H, H] as an exact kernel reads them: for each unit of what it multiplies, the
    weights for the four gates of all units."""
    models, _, _, units = recurrent.shape
    order = (0, 1, 4, 3, 2) if name == "lstm_forward" else (0, 1, 3, 4, 2)
    return recurrent.reshape(models, 2, 4, units, units).permute(order).contiguous()


class Kernels(NamedTuple):
    """Both passes for layers of one size, exact or, without a layout, rounded."""

    passes: dict[str, Any]
    layout: Layout | None

    def run(self, name: str, recurrent: torch.Tensor, before: Any, results: Any, texts: int, words: int) -> None:
        """One pass over so many texts of each model [M, 2, 4 * H, H], in both directions; the first of the tensors
        `before` comes before the weights."""
        models, _, _, units = recurrent.shape
        rows, threads, shared = ROUNDED_ROWS, 2 * units, 0
        weights = recurrent.contiguous()
        if self.layout:
            rows, threads = self.layout.rows, units
            shared = self.layout.forward if name == "lstm_forward" else self.layout.backward
            weights = arranged(name, recurrent)
        first, *others = before
        arguments = [first, weights, *others, *results, texts, words]
        self.passes[name]((-(-texts // rows), 2, models), (threads, 1, 1), arguments, shared)


@cache
def kernels(units: int, rounded: bool = False) -> Kernels | None:
    """The kernels for layers of so many units on the current GPU; None if it cannot run them.

    `rounded` are those whose products have factors of 11 significant bits, as TF32; the exact ones where the GPU
    cannot run these, or computes something else by them.
    """
    if rounded:
        exact, found = kernels(units), _rounded_kernels(units)
        if exact and found and agree(units, exact, found):
            return found
        return exact
    available = getattr(torch.cuda.get_device_properties(), "shared_memory_per_block_optin", 0)
    placed = layout(units, available)
    if placed is None:
        return None
    defined = {"H": units, "HELD": placed.held, "ROWS": placed.rows}
    shared = {"lstm_forward": placed.forward, "lstm_backward": placed.backward}
    passes = load_kernels(SHARED_SOURCE + EXACT_SOURCE, PASSES, defined, "the trainings of LSTMs", shared)
    return Kernels(passes, placed) if passes else None


def _rounded_kernels(units: int) -> Kernels | None:
    if units % 32 or units > MOST_ROUNDED or torch.cuda.get_device_capability() < (8, 0):
        return None
    source = SHARED_SOURCE + TENSOR_CORES + ROUNDED_SOURCE
    passes = load_kernels(source, PASSES, {"H": units}, "the trainings of LSTMs in TF32")
    return Kernels(passes, None) if passes else None


def agree(units: int, exact: Any, rounded: Any, device: str = "cuda") -> bool:
    """Whether two kinds of kernels give the same states and gradients of random texts, but for rounding."""
    generator = torch.Generator(device).manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device, generator=generator)

    models, texts, words = 2, 11, 5
    lengths = (torch.arange(models * texts, device=device) % words + 1).int().view(models, texts)
    projected, d_hidden = random(models, texts, words, 2, 4, units), random(models, texts, words, 2, units)
    recurrent = random(models, 2, 4 * units, units) / units**0.5
    found = []
    try:
        for one in (exact, rounded):
            hidden, cells, previous = (torch.empty_like(d_hidden) for _ in range(3))
            gates, d_projected = d_hidden.new_empty(*d_hidden.shape, 4), torch.empty_like(projected)
            one.run("lstm_forward", recurrent, [projected, lengths], [hidden, gates, cells, previous], texts, words)
            one.run("lstm_backward", recurrent, [d_hidden, lengths, gates, cells], [d_projected], texts, words)
            found.append((hidden, d_projected))
        if all((a - b).abs().max() <= TOLERANCE * a.abs().max() for a, b in zip(*found, strict=True)):
            return True
        fault = "give other results than exact ones"
    except FAILURES as error:
        if isinstance(error, RuntimeError) and out_of_memory(error):
            raise
        fault = f"do not run ({str(error).splitlines()[0]})"
    warnings.warn(
        f"plumbline: on this GPU the kernels of LSTMs in TF32 {fault}, so exact ones are used, which are slower.",
        stacklevel=3,
    )
    return False
