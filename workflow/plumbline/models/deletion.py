"""Hidden states of a BiLSTM for a text without each of its words; what these shortened texts share is computed once.

Up to a deleted word, the forward direction reads what it always reads, and from there on the backward one does. Some
words after the deleted one its absence is forgotten. And what a word brings into either direction does not depend on
its neighbours. So what is left to compute is the recurrent part of the steps between.
"""

import torch
from torch import nn

from plumbline.models.encoders import BiLSTM

# States that differ by no more are the same in float32. They are compared only now and then.
EQUAL, EVERY = 2e-7, 8


def states_without(encoder: BiLSTM, embedded: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Hidden states [P, L, H] of one text [L, d] without the word at each of the places [P], in ascending order.

    At a deleted place stands something that must not be attended.
    """
    states = embedded.new_empty(len(places), len(embedded), encoder.size)
    ahead, back = states.split(encoder.size // 2, dim=-1)
    last = len(embedded) - 1
    mirrored = [last - place for place in reversed(places.tolist())]
    _read(encoder.forwards, embedded, places.tolist(), ahead, backwards=False)
    _read(encoder.backwards, embedded.flip(0), mirrored, back, backwards=True)
    return states


def _read(lstm: nn.LSTM, embedded: torch.Tensor, places: list[int], states: torch.Tensor, backwards: bool) -> None:
    """Fill in the states [P, L, H] of one direction, in whose order text and places are.

    `hidden` and `cell` hold, from `done` to `left`, the texts that differ from the whole at this step, and then the
    whole text. At its place a text leaves the whole, and skips the step.
    """
    size, count, last = lstm.hidden_size, len(places), len(embedded) - 1
    # Gates as input, forget, output and candidate, so that those with a sigmoid stand together.
    order = torch.cat([torch.arange(2 * size), torch.arange(3 * size, 4 * size), torch.arange(2 * size, 3 * size)])
    enters, recurs, *biases = (parameter[order] for parameter in lstm.parameters())
    brought = embedded @ enters.T + sum(biases)
    recurrent = recurs.T.contiguous()
    hidden, cell = embedded.new_zeros(2, count + 1, size)
    done = left = 0
    for step in range(len(embedded)):
        skips = left < count and places[left] == step
        before = (hidden[left].clone(), cell[left].clone()) if skips else None
        active = slice(done, left + 1)
        gates = torch.addmm(brought[step], hidden[active], recurrent)
        gates[:, : 3 * size].sigmoid_()
        gates[:, 3 * size :].tanh_()
        enter, keep, tell, new = gates.split(size, dim=1)
        cell[active].mul_(keep).addcmul_(enter, new)
        torch.mul(tell, cell[active].tanh(), out=hidden[active])
        at = last - step if backwards else step
        states[:, at] = hidden[left]
        if backwards:
            states[count - left : count - done, at] = hidden[done:left].flip(0)
        else:
            states[done:left, at] = hidden[done:left]
        if step % EVERY == 0 and left > done:
            apart = torch.stack([state[done:left] - state[left] for state in (hidden, cell)]).abs().amax((0, 2))
            done += int((apart <= EQUAL).cumprod(0).sum())
        if before:
            hidden[left + 1], cell[left + 1] = hidden[left], cell[left]
            hidden[left], cell[left] = before
            left += 1
