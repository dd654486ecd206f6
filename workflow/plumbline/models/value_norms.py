"""The norms of the value vectors in the attention of transformers models."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn

# The name of the attention implementation below among those of transformers.
VALUES = "plumbline-values"
_norms: ContextVar[list[torch.Tensor]] = ContextVar("norms")


def _recording_attention(
    module: nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *others: Any, **options: Any
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The library's fused attention, which also appends the norms of the values [B, heads, T]. Heads that share their
    values, as in Llama, have the same ones."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    _norms.get().append(value.norm(dim=-1).repeat_interleave(query.shape[1] // value.shape[1], dim=1))
    return ALL_ATTENTION_FUNCTIONS["sdpa"](module, query, key, value, *others, **options)


@contextmanager
def recorded_norms() -> Iterator[list[torch.Tensor]]:
    """Collect the norms of each layer in the order in which layers run."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(VALUES, _recording_attention)
    AttentionMaskInterface.register(VALUES, sdpa_mask)
    norms: list[torch.Tensor] = []
    token = _norms.set(norms)
    try:
        yield norms
    finally:
        _norms.reset(token)
