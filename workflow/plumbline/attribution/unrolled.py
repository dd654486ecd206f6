"""Recurrent layers step by step, with the arguments and results of `torch.lstm` and `torch.gru`."""

from collections.abc import Callable, Sequence

import torch
from torch.nn.functional import linear

from plumbline.errors import PlumblineError

# One step: from what is read of the input [B, G], what is kept of the last output [B, G] and the last states [B, H] to
# the next states, of which the first is the output. G is as many times H as there are gates.
States = tuple[torch.Tensor, ...]
Step = Callable[[torch.Tensor, torch.Tensor, States], States]


def lstm_step(read: torch.Tensor, kept: torch.Tensor, states: States) -> States:
    """The next output and cell of long short-term memory."""
    gates = read + kept
    opened = gates.sigmoid().chunk(4, dim=-1)
    cell = opened[1] * states[1] + opened[0] * gates.chunk(4, dim=-1)[2].tanh()
    return opened[3] * cell.tanh(), cell


def gru_step(read: torch.Tensor, kept: torch.Tensor, states: States) -> States:
    """The next output of gated recurrent units."""
    reset, update = (read + kept).sigmoid().chunk(3, dim=-1)[:2]
    new = (read.chunk(3, dim=-1)[2] + reset * kept.chunk(3, dim=-1)[2]).tanh()
    return (new + update * (states[0] - new),)


def unrolled(
    step: Step,
    inputs: torch.Tensor,
    starts: torch.Tensor | Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    biased: bool,
    layers: int,
    dropout: float,
    training: bool,
    both_ways: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    """Outputs [L, B, H], or [B, L, H], of inputs likewise, and the last states [layers · ways, B, H].

    There is no dropout between layers, as there is none in evaluation.
    """
    each, ways = 4 if biased else 2, 1 + both_ways
    if len(weights) != each * layers * ways:
        raise PlumblineError("Recurrent layers with `proj_size` cannot be unrolled; take one without it.")
    starts = [starts] if isinstance(starts, torch.Tensor) else starts
    hidden = inputs.transpose(0, 1) if batch_first else inputs
    last = []
    for layer in range(layers):
        outputs = []
        for way in range(ways):
            place, order = layer * ways + way, -1 if way else 1
            own = weights[each * place : each * (place + 1)]
            states: States = tuple(start[place] for start in starts)
            told = []
            for read in linear(hidden, own[0], *own[2:3]).unbind(0)[::order]:
                states = step(read, linear(states[0], own[1], *own[3:]), states)
                told.append(states[0])
            outputs.append(torch.stack(told[::order]))
            last.append(states)
        hidden = torch.cat(outputs, dim=-1)
    return hidden.transpose(0, 1) if batch_first else hidden, *map(torch.stack, zip(*last, strict=True))
