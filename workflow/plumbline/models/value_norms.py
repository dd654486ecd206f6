"""The norms of the value vectors in the attention of transformers models."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import nn

# The name of the attention implementation below among those of transformers.
VALUES = "plumbline-values"
# The implementation that computes attention, and the norms of each layer so far.
_recording: ContextVar[tuple[str, list[torch.Tensor]]] = ContextVar("recording")


def _recording_attention(
    module: nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *others: Any, **options: Any
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention by another implementation, and the norms of the values [B, heads, T]. Heads that share their values, as
    in Llama, have the same ones."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    implementation, norms = _recording.get()
    norms.append(value.norm(dim=-1).repeat_interleave(query.shape[1] // value.shape[1], dim=1))
    return ALL_ATTENTION_FUNCTIONS[implementation](module, query, key, value, *others, **options)


@contextmanager
def recorded_norms(implementation: str) -> Iterator[list[torch.Tensor]]:
    """Let the implementation VALUES compute attention as this one does, and collect the norms of each layer."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    AttentionInterface.register(VALUES, _recording_attention)
    AttentionMaskInterface.register(VALUES, ALL_MASK_ATTENTION_FUNCTIONS[implementation])
    norms: list[torch.Tensor] = []
    token = _recording.set((implementation, norms))
    try:
        yield norms
    finally:
        _recording.reset(token)
