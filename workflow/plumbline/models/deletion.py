"""Hidden states of a BiLSTM for a text with each of its words deleted in turn; shared computation is done once.

Before the deleted word the forward states are those of the whole text, as are the backward states after it. Some words
past the deletion the state converges to that of the whole text. The input projection of a word does not depend on its
neighbours. So only the recurrent part of the steps in between is computed.
"""

import torch
from torch import nn

from plumbline.models.encoders import BiLSTM

# States that differ by at most TOLERANCE are equal in float32; they are compared every INTERVAL steps.
TOLERANCE, INTERVAL = 2e-7, 8


def states_without(encoder: BiLSTM, embedded: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Hidden states [P, L, H] of one text [L, d] with the word at each of `positions` [P], ascending, deleted.

    The state at a deleted position is undefined and must not be attended.
    """
    states = embedded.new_empty(len(positions), len(embedded), encoder.size)
    forwards, backwards = states.split(encoder.size // 2, dim=-1)
    last = len(embedded) - 1
    mirrored = [last - position for position in reversed(positions.tolist())]
    _fill_states(encoder.forwards, embedded, positions.tolist(), forwards, backwards=False)
    _fill_states(encoder.backwards, embedded.flip(0), mirrored, backwards, backwards=True)
    return states


def _fill_states(
    lstm: nn.LSTM, embedded: torch.Tensor, positions: list[int], states: torch.Tensor, backwards: bool
) -> None:
    """Fill in the states [P, L, H] of one direction; text and positions are in the order of that direction.

    `hidden` and `cell` hold in rows `first` to `last` - 1 the texts whose state differs from the whole text's at this
    step, and in row `last` the whole text. A text becomes such a row at its position, where it skips the step.
    """
    size, count, end = lstm.hidden_size, len(positions), len(embedded) - 1
    # Gates in the order input, forget, output, candidate: the ones with a sigmoid are contiguous.
    order = torch.cat([torch.arange(2 * size), torch.arange(3 * size, 4 * size), torch.arange(2 * size, 3 * size)])
    input_weight, recurrent_weight, *biases = (parameter[order] for parameter in lstm.parameters())
    projected = embedded @ input_weight.T + sum(biases)
    recurrent = recurrent_weight.T.contiguous()
    hidden, cell = embedded.new_zeros(2, count + 1, size)
    first = last = 0
    for step in range(len(embedded)):
        skips = last < count and positions[last] == step
        before = (hidden[last].clone(), cell[last].clone()) if skips else None
        active = slice(first, last + 1)
        gates = torch.addmm(projected[step], hidden[active], recurrent)
        gates[:, : 3 * size].sigmoid_()
        gates[:, 3 * size :].tanh_()
        input_gate, forget_gate, output_gate, candidate = gates.split(size, dim=1)
        cell[active].mul_(forget_gate).addcmul_(input_gate, candidate)
        torch.mul(output_gate, cell[active].tanh(), out=hidden[active])
        position = end - step if backwards else step
        states[:, position] = hidden[last]
        if backwards:
            states[count - last : count - first, position] = hidden[first:last].flip(0)
        else:
            states[first:last, position] = hidden[first:last]
        if step % INTERVAL == 0 and last > first:
            distance = torch.stack([state[first:last] - state[last] for state in (hidden, cell)]).abs().amax((0, 2))
            first += int((distance <= TOLERANCE).cumprod(0).sum())
        if before:
            hidden[last + 1], cell[last + 1] = hidden[last], cell[last]
            hidden[last], cell[last] = before
            last += 1
