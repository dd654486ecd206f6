"""Classifiers with several attention heads over the same hidden states."""

from typing import Literal

import torch
from torch import nn

from plumbline.errors import PlumblineError
from plumbline.models.attention import TanhAttention
from plumbline.models.batch import Batch
from plumbline.models.classifier import AttentionClassifier, Encoded, Head, MixedHead, Output
from plumbline.models.distances import MOST_HEADS
from plumbline.registry import model


class TanhHeads(nn.Module):
    """K additive attentions with separate weights over the same hidden states; scores [K, B, L]."""

    def __init__(self, heads: int, size: int, queried: bool = False) -> None:
        super().__init__()
        self.heads = nn.ModuleList(TanhAttention(size, queried) for _ in range(heads))

    def forward(self, hidden: torch.Tensor, query: torch.Tensor | None = None) -> torch.Tensor:
        return torch.stack([head(hidden, query) for head in self.heads])


@model("average-heads", encoder="average", hidden=128)
@model(
    "bilstm-heads",
    citation="Lin et al. (2017), A Structured Self-attentive Sentence Embedding. ICLR.",
    limits={"hidden": [1, None], "heads": [1, 7]},
    provides=["gradient", "heads"],
    tasks=["classification", "question answering", "inference", "paraphrase"],
    encoder="bilstm",
    hidden=128,
)
class MultiHeadClassifier(AttentionClassifier):
    """Embedding, encoder, K tanh attentions over the same hidden states and an output over all K contexts.

    Attention weights are [B, K, L], where models with one attention have [B, L].

    Options:
        heads: Number K of attentions.
    """

    def __init__(
        self,
        embedding: torch.Tensor,
        classes: int,
        pair: torch.Tensor | None = None,
        *,
        encoder: Literal["bilstm", "cnn", "average", "gru", "transformer"] = "bilstm",
        hidden: int = 128,
        activation: Literal["tanh", "relu"] = "tanh",
        temperature: float = 1.0,
        heads: int = 4,
    ) -> None:
        if not 1 <= heads <= MOST_HEADS:
            raise PlumblineError(f"`heads` is {heads}; it must be from 1 to {MOST_HEADS}.")
        super().__init__(
            embedding, classes, pair, encoder=encoder, hidden=hidden, activation=activation, temperature=temperature
        )
        size, queried = self.encoder.size, pair is not None
        self.attention = TanhHeads(heads, size, queried)
        self.head = MixedHead(size, classes, heads) if queried else Head(heads * size, classes)

    def attend(self, encoded: Encoded, batch: Batch) -> torch.Tensor:
        """Attention weights [B, K, L] of all heads."""
        return super().attend(encoded, batch).transpose(0, 1)

    def _context(self, hidden: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...bkl,blh->...bkh", attention, hidden).flatten(-2)

    def forward(
        self, batch: Batch, embedded: torch.Tensor | None = None, pair_embedded: torch.Tensor | None = None
    ) -> Output:
        output = super().forward(batch, embedded, pair_embedded)
        assert output.attention is not None
        return output._replace(attention=output.attention.mean(1), heads=output.attention)
