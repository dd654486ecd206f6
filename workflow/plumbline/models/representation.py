"""The final representation of texts by a model."""

from typing import Any

import torch
from torch import nn

from plumbline.models.batch import Batch


@torch.no_grad()
def represent(model: Any, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits [B, C] and the final representation [B, H], the input of the last linear layer that the model applies.

    The representation is the logits if the model has no such layer with one row per text.
    """
    inputs: list[torch.Tensor] = []

    def keep(layer: nn.Module, arguments: tuple[torch.Tensor, ...]) -> None:
        inputs[:] = arguments[:1]

    hooks = [layer.register_forward_pre_hook(keep) for layer in model.modules() if isinstance(layer, nn.Linear)]
    try:
        logits = model(batch).logits
    finally:
        for hook in hooks:
            hook.remove()
    representation = inputs[0] if inputs else logits
    # A language model reads one position of each text.
    representation = representation.squeeze(1) if representation.dim() == 3 else representation
    return logits, representation if representation.shape[:-1] == logits.shape[:-1] else logits
