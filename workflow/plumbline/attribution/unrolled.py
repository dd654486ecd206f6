"""Recurrent layers unrolled over time, with the arguments and results of `torch.lstm` and `torch.gru`."""

from collections.abc import Callable, Sequence

import torch
from torch.nn.functional import linear

from plumbline.errors import PlumblineError

# One time step: from the projections of the input [B, G] and of the last output [B, G] and the last states [B, H] to
# the next states, of which the first is the output. G is H times the number of gates.
States = tuple[torch.Tensor, ...]
Step = Callable[[torch.Tensor, torch.Tensor, States], States]


def lstm_step(inputs: torch.Tensor, hidden: torch.Tensor, states: States) -> States:
    """The next output and cell of an LSTM."""
    gates = inputs + hidden
    input_gate, forget_gate, _, output_gate = gates.sigmoid().chunk(4, dim=-1)
    cell = forget_gate * states[1] + input_gate * gates.chunk(4, dim=-1)[2].tanh()
    return output_gate * cell.tanh(), cell


def gru_step(inputs: torch.Tensor, hidden: torch.Tensor, states: States) -> States:
    """The next output of a GRU."""
    reset, update = (inputs + hidden).sigmoid().chunk(3, dim=-1)[:2]
    new = (inputs.chunk(3, dim=-1)[2] + reset * hidden.chunk(3, dim=-1)[2]).tanh()
    return (new + update * (states[0] - new),)


def unroll(
    step: Step,
    inputs: torch.Tensor,
    starts: torch.Tensor | Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    biased: bool,
    layers: int,
    dropout: float,
    training: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    """Outputs [L, B, H], or [B, L, H] if `batch_first`, and the last states [layers · directions, B, H].

    There is no dropout between layers, as in evaluation mode.
    """
    each, directions = 4 if biased else 2, 1 + bidirectional
    if len(weights) != each * layers * directions:
        raise PlumblineError("Recurrent layers with `proj_size` cannot be unrolled; use layers without it.")
    starts = [starts] if isinstance(starts, torch.Tensor) else starts
    hidden = inputs.transpose(0, 1) if batch_first else inputs
    last = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            number, order = layer * directions + direction, -1 if direction else 1
            own = weights[each * number : each * (number + 1)]
            states: States = tuple(start[number] for start in starts)
            steps = []
            for projected in linear(hidden, own[0], *own[2:3]).unbind(0)[::order]:
                states = step(projected, linear(states[0], own[1], *own[3:]), states)
                steps.append(states[0])
            outputs.append(torch.stack(steps[::order]))
            last.append(states)
        hidden = torch.cat(outputs, dim=-1)
    return hidden.transpose(0, 1) if batch_first else hidden, *map(torch.stack, zip(*last, strict=True))
