"""Models that first select words and then classify by these alone (Lei et al. 2016; Bastings et al. 2019).

A generator reads the whole text and decides word by word, each decision knowing those before it, how much of the word
is passed on: z, from 0 to 1. The classifier reads z x, and skips the words whose z is 0.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.functional import linear, logsigmoid

from plumbline.models import hardkuma
from plumbline.models.batch import Batch
from plumbline.models.fused import Fused, Tensors
from plumbline.models.rationale_objectives import Relaxed, Rewarded
from plumbline.models.rcnn import RCNN, advance, earlier, glorot, retreat, stacked, steps_of
from plumbline.registry import model

# Units of the state that remembers which words were selected.
MEMORY = 30

# z [..., 1] of words from what the generator gives for them [..., K] and chance, or what stands in its place.
Draw = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Rationale(NamedTuple):
    """An `Output` with the selection that it rests on: z [B, L]; words: [B, L], what could be selected;
    open_probability: [B, L], that z is above 0; log_probability: [B], of the z of all words, if each is 0 or 1."""

    logits: torch.Tensor
    attention: torch.Tensor | None
    heads: torch.Tensor | None
    pair_attention: torch.Tensor | None
    z: torch.Tensor
    words: torch.Tensor
    open_probability: torch.Tensor
    log_probability: torch.Tensor | None


class Selection(torch.autograd.Function):
    """z [L, B, 1] and the outputs [L, B, K] that it is drawn by, word by word.

    The state s is that of a bigram recurrence over [h; z]. entering: [L, B, K + 3S], what h and the biases give of the
    outputs and of the recurrence's gate, `first` and `second`; noise: [L, B, N]; steps: [2, L, B, 1], `skipped` and
    `begun`; weight: [S, K + S], what outputs and gate have of s; effect: [3S], what z adds to gate, `first` and
    `second`; bias: [S], in which c2 begins.
    """

    @staticmethod
    def forward(
        ctx: Any, draw: Draw, entering: Any, noise: Any, steps: Any, weight: Any, effect: Any, bias: Any
    ) -> Any:
        """A product, a draw, its effect and `advance` for each word."""
        size = len(weight)
        sizes = [weight.shape[1] - size, 3 * size]
        told = []
        with torch.autocast(entering.device.type, enabled=False):
            # Neither `first` nor `second` has anything of s.
            whole = torch.cat([weight, weight.new_zeros(size, 2 * size)], dim=1)
            c2 = bias.expand(entering.shape[1], -1)
            c1 = s = torch.zeros_like(c2)
            for entering_t, noise_t, *steps_t in zip(
                *(p.unbind() for p in (entering.clone(), noise, *steps)), strict=True
            ):
                outputs, parts = entering_t.addmm_(s, whole).split(sizes, dim=1)
                z = draw(outputs, noise_t)
                gate, first, second = torch.addcmul(parts, z, effect).chunk(3, dim=1)
                c1, c2, s, *rest = advance(gate, first, second, c1, c2, *steps_t)
                told.append((z, outputs, s, *rest))
        z, outputs, *rest = stacked(told, 0)
        # Here and not on the way back, where PyTorch would have to go back within going back.
        steep = _steepness(draw, outputs, noise) if any(ctx.needs_input_grad) else None
        ctx.save_for_backward(steps[1], weight, effect, z, steep, *rest)
        return z, outputs

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        """`retreat`, the slope by z if it has one, and a product for each word, last to first."""
        begun, weight, effect, z, steep, s, *rest = ctx.saved_tensors
        words = list(zip(*(part.unbind() for part in (s, *rest, begun)), strict=True))
        d_z, d_outputs = slopes
        of_outputs, of_gate = weight.split([d_outputs.shape[-1], len(weight)], dim=1)
        if steep is not None:
            d_outputs = d_outputs + d_z * steep
            by_z = steep @ of_outputs.T
        passed = d_outputs @ of_outputs.T
        d_c1 = d_c2 = slope = torch.zeros_like(s[0])
        told, through = [], []
        for t in reversed(range(len(words))):
            *parts, d_c1, d_c2 = retreat(slope, d_c1, d_c2, *words[t])
            told.append(tuple(parts))
            slope = passed[t].addmm_(parts[0], of_gate.T)
            if steep is not None:
                through.append(torch.cat(parts, dim=1) @ effect[:, None])
                slope = torch.addcmul(slope, through[-1], by_z[t])
        d_parts = torch.cat(stacked(reversed(told), 0), dim=-1)
        if steep is not None:
            d_outputs = d_outputs + torch.stack(through[::-1]) * steep
        d_entering = torch.cat([d_outputs, d_parts], dim=-1)
        d_weight = earlier(s, 0).flatten(0, 1).T @ d_entering[..., : weight.shape[1]].flatten(0, 1)
        d_effect = (z * d_parts).sum((0, 1))
        return None, d_entering, None, None, d_weight, d_effect, d_c2.sum(0)


def _steepness(draw: Draw, outputs: torch.Tensor, noise: torch.Tensor) -> torch.Tensor | None:
    """How z changes with each of the outputs [L, B, K] that it is drawn by; None if it does not."""
    # Whoever watches what the model keeps must not meet what is kept for this.
    with torch.enable_grad(), saved_tensors_hooks(lambda kept: kept, lambda kept: kept):
        given = outputs.detach().requires_grad_()
        z = draw(given, noise)
        # A word's z is a function of its own outputs alone, so the slope of the sum holds that of each.
        return torch.autograd.grad(z.sum(), given)[0] if z.requires_grad else None


class Generator(nn.Module):
    """Reads a text both ways, then gives K numbers for each word, by which its z is drawn."""

    def __init__(self, dimensions: int, hidden: int, kinds: int) -> None:
        super().__init__()
        self.encoder = RCNN(dimensions, hidden)
        size = self.encoder.size
        self.output = glorot(kinds, size + MEMORY)
        self.output_bias = nn.Parameter(torch.zeros(kinds))
        self.enter = glorot(3, MEMORY, size + 1)
        self.recur = glorot(MEMORY, MEMORY)
        self.gate_bias = nn.Parameter(torch.zeros(MEMORY))
        self.bias = nn.Parameter(torch.zeros(MEMORY))

    def forward(
        self, embedded: torch.Tensor, words: torch.Tensor, draw: Draw, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """z [B, L] and the numbers [B, L, K] that it is drawn by. embedded: [B, L, d]; words: [B, L], what is read and
        remembered; noise: [B, L, N]."""
        size = self.encoder.size
        # [h; s] and [h; z] are never put together: what h gives is computed for all words at once.
        weight = torch.cat([self.output[:, size:].T, self.recur], dim=1)
        matrix = torch.cat([self.output[:, :size], self.enter[..., :size].flatten(0, 1)])
        biases = torch.cat([self.output_bias, self.gate_bias, torch.zeros_like(self.bias), self.bias])
        entering = linear(self.encoder(embedded, words), matrix).to(biases.dtype) + biases
        steps = torch.stack(steps_of(words.T[..., None], 0, entering))
        effect = self.enter[..., size].flatten()
        z, outputs = Selection.apply(draw, entering, noise.transpose(0, 1), steps, weight, effect, self.bias)
        return z.squeeze(-1).T, outputs.transpose(0, 1)


class Selective(nn.Module):
    """What both models share: the generator, the classifier of what it selects, and the parts of the objective."""

    def __init__(self, embedding: torch.Tensor, classes: int, hidden: int, dropout: float, kinds: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False, padding_idx=0)
        self.generator = Generator(embedding.shape[1], hidden, kinds)
        self.encoder = RCNN(embedding.shape[1], hidden)
        self.output = nn.Linear(self.encoder.size, classes)
        self.dropout = nn.Dropout(dropout)
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def select(
        self, embedded: torch.Tensor, words: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """z [B, L], the probability [B, L] that it is above 0, and the logarithm [B] of that of all of z where there is
        one."""
        raise NotImplementedError

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Rationale:
        """Special tokens are neither read nor selected."""
        embedded = self.dropout(self.embedding(batch.ids) if embedded is None else embedded)
        z, opened, log_probability = self.select(embedded, batch.attendable)
        logits = self.output(self.dropout(self.encoder.last(embedded * z[..., None], z > 0)))
        return Rationale(logits, None, None, None, z, batch.attendable, opened, log_probability)


def _over(outputs: torch.Tensor, threshold: torch.Tensor) -> Tensors:
    return ((outputs >= threshold).to(outputs.dtype),)


_selected = Fused(
    _over,
    "template <typename T> void over(T output, T threshold, T& z) { z = output >= threshold ? T(1) : T(0); }",
    1,
)


@model(
    "rationale-rl",
    limits={"rate": [0.0001, 1], "hidden": [1, None], "strength": [0, None], "dropout": [0, 1]},
    provides=["selection"],
    training={
        "epochs": 100,
        "batch_size": 256,
        "optimiser": "adam",
        "learning_rate": 4e-4,
        "weight_decay": 2e-6,
        "no_decay": [],
        "clip_norm": 5.0,
        "class_weights": "none",
        "reduction": "mean",
        "select_by": "loss",
        "first_eligible_epoch": 1,
    },
)
class RationaleRL(Selective):
    """Selects words by draws of 0 or 1 that it learns from rewards (Lei et al. 2016; Zhou et al. 2022's RL).

    `rate` is the share of words to select and `strength` what a share off it costs; `penalty` counts the share in each
    text (`code`, the published code) or in the whole batch (`paper`). Training ends with the first epoch whose accuracy
    on dev is `stop_accuracy` or more and whose share selected there is within `stop_distance` of the rate.
    """

    def __init__(
        self,
        embedding: torch.Tensor,
        classes: int,
        *,
        rate: float = 0.1,
        hidden: int = 200,
        strength: float = 1.0,
        dropout: float = 0.2,
        penalty: Literal["paper", "code"] = "code",
        stop_accuracy: float = 0.97,
        stop_distance: float = 0.01,
    ) -> None:
        super().__init__(embedding, classes, hidden, dropout, 1)
        self.objective = Rewarded(rate, strength, penalty, stop_accuracy, stop_distance)

    def select(
        self, embedded: torch.Tensor, words: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Draws in training; otherwise what has a probability of a half or more."""
        # A draw is 1 with probability σ(o) if o exceeds the logit of a uniform number.
        threshold = torch.rand_like(embedded[..., :1]).logit() if self.training else torch.zeros_like(embedded[..., :1])
        threshold = threshold.masked_fill(~words[..., None], torch.inf)
        z, outputs = self.generator(embedded, words, lambda *given: _selected(*given)[0], threshold)
        z, odds = z.detach(), outputs.squeeze(-1)
        log_probability = torch.where(words, logsigmoid(torch.where(z > 0, odds, -odds)), 0).sum(1)
        return z, odds.sigmoid() * words, log_probability


@model(
    "rationale-cr",
    limits={"rate": [0.0001, 1], "hidden": [1, None], "strength": [0, None], "dropout": [0, 1]},
    provides=["selection"],
    training={
        "epochs": 100,
        "batch_size": 256,
        "optimiser": "adam",
        "learning_rate": 4e-4,
        "weight_decay": 2e-6,
        "no_decay": [],
        "clip_norm": 5.0,
        "class_weights": "none",
        "reduction": "mean",
        "select_by": "loss",
        "first_eligible_epoch": 1,
    },
)
class RationaleCR(Selective):
    """Selects words by HardKuma draws, through which gradients pass (Bastings et al. 2019; Zhou et al. 2022's CR).

    As `rationale-rl`, but for `penalty`, which is about expected shares: that of all words of a batch (`paper`) or the
    mean of those of its texts (`code`). `continuous` says what z is between 0 and 1 without chance; `published` is the
    mean of the variable before it is stretched.
    """

    def __init__(
        self,
        embedding: torch.Tensor,
        classes: int,
        *,
        rate: float = 0.1,
        hidden: int = 200,
        strength: float = 1.0,
        dropout: float = 0.2,
        penalty: Literal["paper", "code"] = "paper",
        stop_accuracy: float = 0.97,
        stop_distance: float = 0.01,
        continuous: Literal["stretched", "published"] = "stretched",
    ) -> None:
        super().__init__(embedding, classes, hidden, dropout, 2)
        self.objective = Relaxed(rate, strength, penalty, stop_accuracy, stop_distance)
        self.continuous = continuous

    def select(
        self, embedded: torch.Tensor, words: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Draws in training; otherwise the likeliest of 0, 1 and what is between."""
        noise = words[..., None].to(embedded.dtype)
        if self.training:
            uniform = hardkuma.MARGIN + (1 - 2 * hardkuma.MARGIN) * torch.rand_like(noise)
            z, outputs = self.generator(embedded, words, hardkuma.draw_selection, torch.cat([uniform, noise], dim=-1))
        else:
            likeliest = partial(hardkuma.likeliest, continuous=self.continuous)
            z, outputs = self.generator(embedded, words, likeliest, noise)
        return z, hardkuma.open_probability(outputs).squeeze(-1) * words, None
