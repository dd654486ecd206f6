"""The last layer of an encoder for its first token alone, which is all that most classification heads read.

The other tokens only need keys and values there. In a model of six layers that saves a seventh of the time, in passes
forward and backward.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from plumbline.models.pretrained import trial
from plumbline.models.reader import FUSED

# How near logits must be.
CLOSE = 1e-5


class FirstQuery(nn.Module):
    """Self-attention of BERT's kind; while `first_only` is set, that of the first token over all tokens, without
    dropout."""

    first_only = False

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor | None = None, **others: Any) -> Any:
        """The mixed values [B, T, d], or [B, 1, d] of the first token, and the weights, if there are any."""
        # The other base class is the library's.
        own: Any = self
        if not self.first_only or own.config._attn_implementation != FUSED:
            return super().forward(hidden_states, attention_mask=attention_mask, **others)
        queries = own.query(hidden_states[:, :1])
        query, key, value = (
            part.unflatten(-1, (-1, own.attention_head_size)).transpose(1, 2)
            for part in (queries, own.key(hidden_states), own.value(hidden_states))
        )
        mask = None if attention_mask is None else attention_mask[:, :, :1]
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return mixed.transpose(1, 2).flatten(2), None


class FirstResidual(nn.Module):
    """The layer after it, which adds the inputs of as many tokens as there are."""

    def forward(self, hidden_states: torch.Tensor, input_tensor: torch.Tensor) -> Any:
        """The sum for these tokens, normalised."""
        return super().forward(hidden_states, input_tensor[:, : hidden_states.shape[1]])


def find_first_token_layer(encoder: Any) -> FirstQuery | None:
    """The self-attention of the last layer, able to compute that of the first token alone; None if the encoder has
    another structure, or its logits depend on other tokens of the last layer."""
    parts = [part for part in encoder.base_model.modules() if _fits(part)]
    if not parts:
        return None
    last = parts[-1]
    kinds = type(last.self), type(last.output)
    for part, kind in ((last.self, FirstQuery), (last.output, FirstResidual)):
        part.__class__ = type(f"{kind.__name__}{type(part).__name__}", (kind, type(part)), {})
    if not _same_logits(encoder, last.self):
        last.self.__class__, last.output.__class__ = kinds
        return None
    return last.self


@contextmanager
def first_token_only(layers: list[FirstQuery]) -> Iterator[None]:
    """Compute only the first token of these layers."""
    for layer in layers:
        layer.first_only = True
    try:
        yield
    finally:
        for layer in layers:
            layer.first_only = False


def _fits(part: Any) -> bool:
    attention = getattr(part, "self", None)
    needed = ("query", "key", "value", "attention_head_size")
    return hasattr(part, "output") and all(hasattr(attention, name) for name in needed)


def _same_logits(encoder: Any, layer: FirstQuery) -> bool:
    """Whether logits of two texts, one of them padded, are the same either way."""
    try:
        weight = encoder.get_input_embeddings().weight
        mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], device=weight.device)
        vectors = torch.sin(torch.arange(8 * weight.shape[1]).float()).view(2, 4, -1).to(weight) * mask[:, :, None]
        with trial(encoder):
            whole = encoder(inputs_embeds=vectors, attention_mask=mask).logits
            with first_token_only([layer]):
                first = encoder(inputs_embeds=vectors, attention_mask=mask).logits
    # Whatever a model of unknown code raises.
    except Exception:
        return False
    return torch.allclose(whole, first, atol=CLOSE, rtol=CLOSE)
