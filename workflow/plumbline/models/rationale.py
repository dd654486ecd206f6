"""Rationale models: select words, then classify from the selection alone (Lei et al. 2016; Bastings et al. 2019).

A generator reads the whole text and selects each word to a degree z from 0 to 1, conditioned on the selection of the
words before it. The classifier reads z x and skips words with z = 0.
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
from plumbline.models.rationale_objectives import Reinforce, Relaxed
from plumbline.models.rcnn import RCNN, cell_backward, cell_forward, glorot, previous_states, stack_steps, step_masks
from plumbline.registry import model

# Units of the recurrent state over the selection so far.
MEMORY = 30

# z [..., 1] of words from the generator's outputs [..., K] and noise, or a deterministic replacement of the noise.
Draw = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
# z [B, L], P(z > 0) [B, L], and log P(z) [B] if z is binary.
Selected = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


class Rationale(NamedTuple):
    """An `Output` with its selection: z [B, L]; words: [B, L], the selectable tokens; open_probability: [B, L],
    P(z > 0); log_probability: [B], log P(z) of the whole text, if z is binary."""

    logits: torch.Tensor
    attention: torch.Tensor | None
    heads: torch.Tensor | None
    pair_attention: torch.Tensor | None
    z: torch.Tensor
    words: torch.Tensor
    open_probability: torch.Tensor
    log_probability: torch.Tensor | None


class Selection(torch.autograd.Function):
    """z [L, B, 1] and the generator outputs [L, B, K] that determine its distribution, word by word.

    The state s is that of the recurrence of `rcnn` over [h; z]. projected: [L, B, K + 3S], the part of the outputs and
    of the recurrence's gate, `first` and `second` that comes from h and the biases; noise: [L, B, N]; masks:
    [2, L, B, 1], `skipped` and `begun`; weight: [S, K + S], from s to outputs and gate; z_weight: [3S], from z to gate,
    `first` and `second`; bias: [S], the initial c2.
    """

    @staticmethod
    def forward(
        ctx: Any, draw: Draw, projected: Any, noise: Any, masks: Any, weight: Any, z_weight: Any, bias: Any
    ) -> Any:
        """For each word a matrix product, the draw of z, its term and `cell_forward`."""
        size = len(weight)
        sizes = [weight.shape[1] - size, 3 * size]
        steps = []
        with torch.autocast(projected.device.type, enabled=False):
            # `first` and `second` do not depend on s.
            whole = torch.cat([weight, weight.new_zeros(size, 2 * size)], dim=1)
            c2 = bias.expand(projected.shape[1], -1)
            c1 = s = torch.zeros_like(c2)
            inputs = (projected.clone(), noise, *masks)
            for projected_t, noise_t, *masks_t in zip(*(part.unbind() for part in inputs), strict=True):
                outputs, parts = projected_t.addmm_(s, whole).split(sizes, dim=1)
                z = draw(outputs, noise_t)
                gate, first, second = torch.addcmul(parts, z, z_weight).chunk(3, dim=1)
                c1, c2, s, *rest = cell_forward(gate, first, second, c1, c2, *masks_t)
                steps.append((z, outputs, s, *rest))
        z, outputs, *rest = stack_steps(steps, 0)
        # Computed here because in `backward` it would be a reentrant backward pass.
        z_gradient = _gradient_of_draw(draw, outputs, noise) if any(ctx.needs_input_grad) else None
        ctx.save_for_backward(masks[1], weight, z_weight, z, z_gradient, *rest)
        return z, outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """For each word, last to first, `cell_backward`, the gradient through z if there is one, and a product."""
        begun, weight, z_weight, z, z_gradient, s, *rest = ctx.saved_tensors
        words = list(zip(*(part.unbind() for part in (s, *rest, begun)), strict=True))
        d_z, d_outputs = gradients
        output_weight, gate_weight = weight.split([d_outputs.shape[-1], len(weight)], dim=1)
        if z_gradient is not None:
            d_outputs = d_outputs + d_z * z_gradient
            z_by_s = z_gradient @ output_weight.T
        d_s = d_outputs @ output_weight.T
        d_c1 = d_c2 = gradient = torch.zeros_like(s[0])
        steps, through_z = [], []
        for t in reversed(range(len(words))):
            *parts, d_c1, d_c2 = cell_backward(gradient, d_c1, d_c2, *words[t])
            steps.append(tuple(parts))
            gradient = d_s[t].addmm_(parts[0], gate_weight.T)
            if z_gradient is not None:
                through_z.append(torch.cat(parts, dim=1) @ z_weight[:, None])
                gradient = torch.addcmul(gradient, through_z[-1], z_by_s[t])
        d_parts = torch.cat(stack_steps(reversed(steps), 0), dim=-1)
        if z_gradient is not None:
            d_outputs = d_outputs + torch.stack(through_z[::-1]) * z_gradient
        d_projected = torch.cat([d_outputs, d_parts], dim=-1)
        d_weight = previous_states(s, 0).flatten(0, 1).T @ d_projected[..., : weight.shape[1]].flatten(0, 1)
        d_z_weight = (z * d_parts).sum((0, 1))
        return None, d_projected, None, None, d_weight, d_z_weight, d_c2.sum(0)


def _gradient_of_draw(draw: Draw, outputs: torch.Tensor, noise: torch.Tensor) -> torch.Tensor | None:
    """The derivative of z with respect to the outputs [L, B, K]; None if the draw is not differentiable."""
    # Own hooks, so that the caller's saved-tensor hooks (the memory probe) do not count these tensors.
    with torch.enable_grad(), saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        inputs = outputs.detach().requires_grad_()
        z = draw(inputs, noise)
        # A word's z depends on its own outputs alone, so the gradient of the sum holds that of each word.
        return torch.autograd.grad(z.sum(), inputs)[0] if z.requires_grad else None


class Generator(nn.Module):
    """Encodes a text in both directions and outputs K numbers per word, the parameters of the distribution of z."""

    def __init__(self, dimensions: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.encoder = RCNN(dimensions, hidden)
        size = self.encoder.size
        self.output = glorot(outputs, size + MEMORY)
        self.output_bias = nn.Parameter(torch.zeros(outputs))
        self.enter = glorot(3, MEMORY, size + 1)
        self.recur = glorot(MEMORY, MEMORY)
        self.gate_bias = nn.Parameter(torch.zeros(MEMORY))
        self.bias = nn.Parameter(torch.zeros(MEMORY))

    def forward(
        self, embedded: torch.Tensor, words: torch.Tensor, draw: Draw, noise: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """z [B, L] and the outputs [B, L, K]. embedded: [B, L, d]; words: [B, L], the tokens that are read; noise:
        [B, L, N]."""
        size = self.encoder.size
        # [h; s] and [h; z] are never concatenated: the terms in h are computed for all words at once.
        weight = torch.cat([self.output[:, size:].T, self.recur], dim=1)
        matrix = torch.cat([self.output[:, :size], self.enter[..., :size].flatten(0, 1)])
        biases = torch.cat([self.output_bias, self.gate_bias, torch.zeros_like(self.bias), self.bias])
        projected = linear(self.encoder(embedded, words), matrix).to(biases.dtype) + biases
        masks = torch.stack(step_masks(words.T[..., None], 0, projected))
        z_weight = self.enter[..., size].flatten()
        z, outputs = Selection.apply(draw, projected, noise.transpose(0, 1), masks, weight, z_weight, self.bias)
        return z.squeeze(-1).T, outputs.transpose(0, 1)


class RationaleModel(nn.Module):
    """Base class: the generator and the classifier of the selected words."""

    def __init__(self, embedding: torch.Tensor, classes: int, hidden: int, dropout: float, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False, padding_idx=0)
        self.generator = Generator(embedding.shape[1], hidden, outputs)
        self.encoder = RCNN(embedding.shape[1], hidden)
        self.output = nn.Linear(self.encoder.size, classes)
        self.dropout = nn.Dropout(dropout)
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def select(self, embedded: torch.Tensor, words: torch.Tensor) -> Selected:
        """The selection of words [B, L] from word vectors [B, L, d]."""
        raise NotImplementedError

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Rationale:
        """Special tokens are neither read nor selected."""
        embedded = self.dropout(self.embedding(batch.ids) if embedded is None else embedded)
        z, open_probability, log_probability = self.select(embedded, batch.attendable)
        logits = self.output(self.dropout(self.encoder.last(embedded * z[..., None], z > 0)))
        return Rationale(logits, None, None, None, z, batch.attendable, open_probability, log_probability)


def _over(outputs: torch.Tensor, threshold: torch.Tensor) -> Tensors:
    return ((outputs >= threshold).to(outputs.dtype),)


_select_over = Fused(
    _over,
    "template <typename T> void over(T output, T threshold, T& z) { z = output >= threshold ? T(1) : T(0); }",
    1,
)


@model(
    "rationale-rl",
    citation="Lei, Barzilay & Jaakkola (2016), Rationalizing Neural Predictions. EMNLP.",
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
class RationaleRL(RationaleModel):
    """Selects words by binary draws, trained by REINFORCE (Lei et al. 2016; RL in Zhou et al. 2022).

    Options:
        penalty: Where the share of selected words is taken: in each text (`code`, as published) or in the batch
            (`paper`).
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
        self.objective = Reinforce(rate, strength, penalty, stop_accuracy, stop_distance)

    def select(self, embedded: torch.Tensor, words: torch.Tensor) -> Selected:
        """A draw in training; in evaluation the words whose probability is at least ½."""
        # o exceeds the logit of a uniform draw with probability σ(o).
        threshold = torch.rand_like(embedded[..., :1]).logit() if self.training else torch.zeros_like(embedded[..., :1])
        threshold = threshold.masked_fill(~words[..., None], torch.inf)
        z, outputs = self.generator(embedded, words, lambda *inputs: _select_over(*inputs)[0], threshold)
        z, odds = z.detach(), outputs.squeeze(-1)
        log_probability = torch.where(words, logsigmoid(torch.where(z > 0, odds, -odds)), 0).sum(1)
        return z, odds.sigmoid() * words, log_probability


@model(
    "rationale-cr",
    citation="Bastings, Aziz & Titov (2019), Interpretable Neural Predictions with Differentiable Binary Variables. "
    "ACL.",
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
class RationaleCR(RationaleModel):
    """Selects words by differentiable HardKuma draws (Bastings et al. 2019; CR in Zhou et al. 2022).

    Options:
        penalty: Expected share over all words of a batch (`paper`), or the mean of the texts' expected shares (`code`).
        continuous: z between 0 and 1 in evaluation: the mean of the stretched variable or, `published`, the
            unstretched.
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

    def select(self, embedded: torch.Tensor, words: torch.Tensor) -> Selected:
        """A draw in training; in evaluation the most probable of 0, 1 and the interval between them."""
        noise = words[..., None].to(embedded.dtype)
        if self.training:
            uniform = hardkuma.MARGIN + (1 - 2 * hardkuma.MARGIN) * torch.rand_like(noise)
            z, outputs = self.generator(embedded, words, hardkuma.draw_selection, torch.cat([uniform, noise], dim=-1))
        else:
            draw = partial(hardkuma.most_probable, continuous=self.continuous)
            z, outputs = self.generator(embedded, words, draw, noise)
        return z, hardkuma.open_probability(outputs).squeeze(-1) * words, None
