"""The recurrent convolution over bigrams of Lei et al. 2015, 2016, which rationale models read texts with.

For each word x, from the state c1, c2, h before it, which is 0 before the first:

    λ = σ(W_λ x + U h + b_λ),  c1 ← λ c1 + (1 - λ) W1 x,  c2 ← λ c2 + (1 - λ) (c1 + W2 x),  h = tanh(c2 + b)

where the c1 in the third is the one before. A word that is skipped has λ = 1 and so leaves the state as it was.

The loop over words is what takes the time. What does not depend on the state is computed before it, for all words at
once; what is left is a product and a `Fused` function for each word, and as much on the way back, whose derivatives are
written down here, because PyTorch would start some twenty kernels for them.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from plumbline.models.fused import Fused, Tensors


def _advanced(
    gate: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    c1: torch.Tensor,
    c2: torch.Tensor,
    skipped: torch.Tensor,
    begun: torch.Tensor,
) -> Tensors:
    kept = torch.maximum(gate.sigmoid(), skipped)
    steep, entering = torch.addcmul(kept, kept, kept, value=-1), c1 + second
    after = torch.lerp(entering, c2, kept)
    return torch.lerp(first, c1, kept), after, after.tanh() * begun, kept, (c1 - first) * steep, (c2 - entering) * steep


def _retreated(
    slope: torch.Tensor,
    d_c1: torch.Tensor,
    d_c2: torch.Tensor,
    h: torch.Tensor,
    kept: torch.Tensor,
    by_c1: torch.Tensor,
    by_c2: torch.Tensor,
    begun: torch.Tensor,
) -> Tensors:
    # Before the first word h is 0 whatever c2 is, and so is its slope.
    total = torch.addcmul(d_c2, slope, torch.addcmul(begun, h, h, value=-1))
    d_gate = torch.addcmul(total * by_c2, d_c1, by_c1)
    before = total * kept
    return d_gate, torch.addcmul(d_c1, d_c1, kept, value=-1), total - before, torch.lerp(total, d_c1, kept), before


# One word: c1, c2, h and λ, and how c1 and c2 change with the gate, which is what λ is the sigmoid of. `first` is W1 x
# and `second` W2 x + b: here c2 has b in it, and begins with it. `skipped` is 1 for a word that is not read, `begun`
# for one that is read or comes after one that is.
advance = Fused(
    _advanced,
    """template <typename T> void advance(
        T gate, T first, T second, T c1, T c2, T skipped, T begun,
        T& next_c1, T& next_c2, T& h, T& kept, T& by_c1, T& by_c2) {
        T entering = c1 + second;
        kept = skipped > T(0) ? T(1) : T(1) / (T(1) + ::exp(-gate));
        next_c1 = kept * c1 + (T(1) - kept) * first;
        next_c2 = kept * c2 + (T(1) - kept) * entering;
        h = begun * ::tanh(next_c2);
        by_c1 = (c1 - first) * kept * (T(1) - kept);
        by_c2 = (c2 - entering) * kept * (T(1) - kept);
    }""",
    6,
)
# The way back: from the slopes of the loss by h, c1 and c2 after a word, those by the first five inputs of `advance`.
retreat = Fused(
    _retreated,
    """template <typename T> void retreat(
        T slope, T d_c1, T d_c2, T h, T kept, T by_c1, T by_c2, T begun,
        T& d_gate, T& d_first, T& d_second, T& before_c1, T& before_c2) {
        T total = d_c2 + slope * (begun - h * h);
        d_gate = total * by_c2 + d_c1 * by_c1;
        d_first = (T(1) - kept) * d_c1;
        d_second = (T(1) - kept) * total;
        before_c1 = kept * d_c1 + d_second;
        before_c2 = kept * total;
    }""",
    5,
)


def steps_of(read: torch.Tensor, dim: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`skipped` and `begun` of each word, from whether it is read, along a dimension."""
    return (~read).to(like.dtype), (read.cumsum(dim) > 0).to(like.dtype)


def stacked(words: Iterable[Tensors], dim: int) -> list[torch.Tensor]:
    """Each of the things that words gave as one tensor, in which words follow each other along a dimension."""
    return [torch.stack(column, dim) for column in zip(*words, strict=True)]


def earlier(h: torch.Tensor, dim: int) -> torch.Tensor:
    """The states before each word."""
    return torch.cat([torch.zeros_like(h.narrow(dim, 0, 1)), h.narrow(dim, 0, h.shape[dim] - 1)], dim)


@contextmanager
def recurrent_products() -> Iterator[None]:
    """Let products round their factors where PyTorch's own recurrent layers may."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class Recurrence(torch.autograd.Function):
    """The states h [D, L, B, H] of D directions, each of which reads from 0 to L.

    inputs: [D, L, B, d]; skipped, begun: [D, L, B, 1]; enter: [D, d, 3H], for gate, `first` and `second`, as their
    biases are, [D, 1, 3H], of which that of `second` is b; recur: [D, H, H].
    """

    @staticmethod
    def forward(ctx: Any, inputs: Any, skipped: Any, begun: Any, enter: Any, biases: Any, recur: Any) -> Any:
        """A product and `advance` for each word."""
        told = []
        with torch.autocast(inputs.device.type, enabled=False), recurrent_products():
            flat = inputs.flatten(1, 2)
            entering = torch.baddbmm(biases, flat, enter).unflatten(1, inputs.shape[1:3])
            c2 = biases.chunk(3, dim=-1)[2].expand(-1, inputs.shape[2], -1)
            c1 = h = torch.zeros_like(c2)
            for entering_t, *steps in zip(*(part.unbind(1) for part in (entering, skipped, begun)), strict=True):
                gate, first, second = entering_t.chunk(3, dim=-1)
                gate.baddbmm_(h, recur)
                c1, c2, h, *rest = advance(gate, first, second, c1, c2, *steps)
                told.append((h, *rest))
        h, *rest = stacked(told, 1)
        ctx.save_for_backward(flat, begun, enter, recur, h, *rest)
        return h

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        """`retreat` and a product for each word, last to first; what the weights get, for all words at once."""
        flat, begun, enter, recur, h, *rest = ctx.saved_tensors
        words = list(zip(*(part.unbind(1) for part in (h, *rest, begun)), strict=True))
        slope = slopes[0].clone()
        d_c1 = d_c2 = torch.zeros_like(slope[:, 0])
        told = []
        with recurrent_products():
            for t in reversed(range(len(words))):
                *parts, d_c1, d_c2 = retreat(slope[:, t], d_c1, d_c2, *words[t])
                told.append(tuple(parts))
                if t:
                    slope[:, t - 1].baddbmm_(parts[0], recur.transpose(1, 2))
            d_entering = torch.cat(stacked(reversed(told), 1), dim=-1).flatten(1, 2)
            d_inputs = None
            if ctx.needs_input_grad[0]:
                d_inputs = torch.bmm(d_entering, enter.transpose(1, 2)).unflatten(1, h.shape[1:3])
            d_enter = torch.bmm(flat.transpose(1, 2), d_entering)
            before, size = earlier(h, 1).flatten(1, 2), h.shape[-1]
            d_recur = torch.bmm(before.transpose(1, 2), d_entering[..., :size])
        d_biases = d_entering.sum(1, keepdim=True)
        d_biases[..., 2 * size :] += d_c2.sum(1, keepdim=True)
        return d_inputs, None, None, d_enter, d_biases, d_recur


def glorot(*shape: int) -> nn.Parameter:
    """Matrices [..., out, in], each drawn by itself from Glorot's uniform distribution."""
    weight = torch.empty(shape)
    for matrix in weight.view(-1, *shape[-2:]):
        nn.init.xavier_uniform_(matrix)
    return nn.Parameter(weight)


class RCNN(nn.Module):
    """Both directions of the recurrence in one loop, `hidden` units each."""

    def __init__(self, dimensions: int, hidden: int) -> None:
        super().__init__()
        self.enter = glorot(2, 3, hidden, dimensions)
        self.recur = glorot(2, hidden, hidden)
        self.gate_bias = nn.Parameter(torch.zeros(2, 1, hidden))
        self.bias = nn.Parameter(torch.zeros(2, 1, hidden))
        self.size = 2 * hidden

    def forward(self, inputs: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """The states h [L, B, 2H] after each word of inputs [B, L, d], forwards and backwards.

        Words are skipped where `read` [B, L] is False.
        """
        ahead, back = self._states(inputs, read).unbind()
        return torch.cat([ahead, back.flip(0)], dim=-1)

    def last(self, inputs: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """The last state of each direction, [B, 2H]; 0 if no word is read."""
        return self._states(inputs, read)[:, -1].transpose(0, 1).flatten(1)

    def _states(self, inputs: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """States [2, L, B, H], the second direction from the last word to the first."""
        both, reads = (torch.stack([part, part.flip(0)]) for part in (inputs.transpose(0, 1), read.T[..., None]))
        biases = torch.cat([self.gate_bias, torch.zeros_like(self.bias), self.bias], dim=-1)
        enter = self.enter.flatten(1, 2).transpose(1, 2)
        return Recurrence.apply(both, *steps_of(reads, 1, both), enter, biases, self.recur)
