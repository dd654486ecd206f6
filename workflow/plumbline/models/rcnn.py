"""The recurrent convolution over bigrams of Lei et al. 2015, 2016, the encoder of rationale models.

For each word x and the previous state c1, c2, h, initially 0:

    λ = σ(W_λ x + U h + b_λ),  c1 ← λ c1 + (1 - λ) W1 x,  c2 ← λ c2 + (1 - λ) (c1 + W2 x),  h = tanh(c2 + b)

where the c1 in the third equation is the previous one. A skipped word has λ = 1 and leaves the state unchanged.

The loop over words dominates the running time. Everything that does not depend on the state is computed before it for
all words at once; what remains is a product and a `Fused` function per word in each pass. The backward pass is written
by hand because autograd would launch about twenty kernels per word.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from plumbline.models.fused import Fused, Tensors


def _cell_forward(
    gate: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    c1: torch.Tensor,
    c2: torch.Tensor,
    skipped: torch.Tensor,
    begun: torch.Tensor,
) -> Tensors:
    kept = torch.maximum(gate.sigmoid(), skipped)
    d_gate, entering = torch.addcmul(kept, kept, kept, value=-1), c1 + second
    after = torch.lerp(entering, c2, kept)
    by_c1, by_c2 = (c1 - first) * d_gate, (c2 - entering) * d_gate
    return torch.lerp(first, c1, kept), after, after.tanh() * begun, kept, by_c1, by_c2


def _cell_backward(
    gradient: torch.Tensor,
    d_c1: torch.Tensor,
    d_c2: torch.Tensor,
    h: torch.Tensor,
    kept: torch.Tensor,
    by_c1: torch.Tensor,
    by_c2: torch.Tensor,
    begun: torch.Tensor,
) -> Tensors:
    # Before the first word h is 0 for any c2, and so is its gradient.
    total = torch.addcmul(d_c2, gradient, torch.addcmul(begun, h, h, value=-1))
    d_gate = torch.addcmul(total * by_c2, d_c1, by_c1)
    before = total * kept
    return d_gate, torch.addcmul(d_c1, d_c1, kept, value=-1), total - before, torch.lerp(total, d_c1, kept), before


# One word: c1, c2, h, λ, and the derivatives of c1 and c2 with respect to the gate, the pre-activation of λ. `first` is
# W1 x and `second` W2 x + b: here c2 includes b, which is its initial value. `skipped` is 1 for a word that is not
# read, `begun` is 1 from the first word that is read.
cell_forward = Fused(
    _cell_forward,
    """template <typename T> void cell_forward(
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
# From the gradients with respect to h, c1 and c2 after a word, those of the first five inputs of `cell_forward`.
cell_backward = Fused(
    _cell_backward,
    """template <typename T> void cell_backward(
        T gradient, T d_c1, T d_c2, T h, T kept, T by_c1, T by_c2, T begun,
        T& d_gate, T& d_first, T& d_second, T& before_c1, T& before_c2) {
        T total = d_c2 + gradient * (begun - h * h);
        d_gate = total * by_c2 + d_c1 * by_c1;
        d_first = (T(1) - kept) * d_c1;
        d_second = (T(1) - kept) * total;
        before_c1 = kept * d_c1 + d_second;
        before_c2 = kept * total;
    }""",
    5,
)


def step_masks(read: torch.Tensor, dim: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`skipped` and `begun` of each word along `dim`, from the mask of words that are read."""
    return (~read).to(like.dtype), (read.cumsum(dim) > 0).to(like.dtype)


def stack_steps(steps: Iterable[Tensors], dim: int) -> list[torch.Tensor]:
    """The tensors of each step, stacked over steps along `dim`."""
    return [torch.stack(column, dim) for column in zip(*steps, strict=True)]


def previous_states(h: torch.Tensor, dim: int) -> torch.Tensor:
    """The states before each word."""
    return torch.cat([torch.zeros_like(h.narrow(dim, 0, 1)), h.narrow(dim, 0, h.shape[dim] - 1)], dim)


@contextmanager
def recurrent_products() -> Iterator[None]:
    """Allow TF32 in matrix products wherever it is allowed in PyTorch's recurrent layers."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class Recurrence(torch.autograd.Function):
    """The states h [D, L, B, H] of D directions, each read from 0 to L.

    inputs: [D, L, B, d]; skipped, begun: [D, L, B, 1]; enter: [D, d, 3H] and biases: [D, 1, 3H], for gate, `first` and
    `second`, whose bias is b; recur: [D, H, H].
    """

    @staticmethod
    def forward(ctx: Any, inputs: Any, skipped: Any, begun: Any, enter: Any, biases: Any, recur: Any) -> Any:
        """A product and `cell_forward` for each word."""
        steps = []
        with torch.autocast(inputs.device.type, enabled=False), recurrent_products():
            flat = inputs.flatten(1, 2)
            projected = torch.baddbmm(biases, flat, enter).unflatten(1, inputs.shape[1:3])
            c2 = biases.chunk(3, dim=-1)[2].expand(-1, inputs.shape[2], -1)
            c1 = h = torch.zeros_like(c2)
            for projected_t, *masks in zip(*(part.unbind(1) for part in (projected, skipped, begun)), strict=True):
                gate, first, second = projected_t.chunk(3, dim=-1)
                gate.baddbmm_(h, recur)
                c1, c2, h, *rest = cell_forward(gate, first, second, c1, c2, *masks)
                steps.append((h, *rest))
        h, *rest = stack_steps(steps, 1)
        ctx.save_for_backward(flat, begun, enter, recur, h, *rest)
        return h

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """`cell_backward` and a product for each word, last to first; weight gradients for all words at once."""
        flat, begun, enter, recur, h, *rest = ctx.saved_tensors
        words = list(zip(*(part.unbind(1) for part in (h, *rest, begun)), strict=True))
        gradient = gradients[0].clone()
        d_c1 = d_c2 = torch.zeros_like(gradient[:, 0])
        steps = []
        with recurrent_products():
            for t in reversed(range(len(words))):
                *parts, d_c1, d_c2 = cell_backward(gradient[:, t], d_c1, d_c2, *words[t])
                steps.append(tuple(parts))
                if t:
                    gradient[:, t - 1].baddbmm_(parts[0], recur.transpose(1, 2))
            d_projected = torch.cat(stack_steps(reversed(steps), 1), dim=-1).flatten(1, 2)
            d_inputs = None
            if ctx.needs_input_grad[0]:
                d_inputs = torch.bmm(d_projected, enter.transpose(1, 2)).unflatten(1, h.shape[1:3])
            d_enter = torch.bmm(flat.transpose(1, 2), d_projected)
            before, size = previous_states(h, 1).flatten(1, 2), h.shape[-1]
            d_recur = torch.bmm(before.transpose(1, 2), d_projected[..., :size])
        d_biases = d_projected.sum(1, keepdim=True)
        d_biases[..., 2 * size :] += d_c2.sum(1, keepdim=True)
        return d_inputs, None, None, d_enter, d_biases, d_recur


def glorot(*shape: int) -> nn.Parameter:
    """Matrices [..., out, in], each initialised by Glorot's uniform distribution."""
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
        forwards, backwards = self._states(inputs, read).unbind()
        return torch.cat([forwards, backwards.flip(0)], dim=-1)

    def last(self, inputs: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """The last state of each direction, [B, 2H]; 0 if no word is read."""
        return self._states(inputs, read)[:, -1].transpose(0, 1).flatten(1)

    def _states(self, inputs: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
        """States [2, L, B, H], the second direction from the last word to the first."""
        both, reads = (torch.stack([part, part.flip(0)]) for part in (inputs.transpose(0, 1), read.T[..., None]))
        biases = torch.cat([self.gate_bias, torch.zeros_like(self.bias), self.bias], dim=-1)
        enter = self.enter.flatten(1, 2).transpose(1, 2)
        return Recurrence.apply(both, *step_masks(reads, 1, both), enter, biases, self.recur)
