"""A classifier of text pairs that encodes both texts with the same weights and compares them."""

from typing import Literal

import torch
from torch import nn

from plumbline.models.attention import masked_softmax
from plumbline.models.batch import Batch
from plumbline.models.classifier import AttentionClassifier
from plumbline.registry import model


class ComparingHead(nn.Module):
    """A linear layer to C class logits over the contexts of both texts, [c; q; |c - q|; c ⊙ q]."""

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(4 * size, classes)

    def forward(self, context: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        query = query.expand_as(context)
        return self.linear(torch.cat([context, query, (context - query).abs(), context * query], dim=-1))


@model("bilstm-shared-uniform", attention="uniform")
@model(
    "bilstm-shared",
    citation="Neely, Schouten, Bleeker & Lucic (2022), A Song of (Dis)agreement: Evaluating the Evaluation of "
    "Explainable Artificial Intelligence in Natural Language Processing. HHAI.",
    provides=["attention", "gradient"],
    tasks=["inference", "paraphrase"],
    training={
        "epochs": 40,
        "patience": 5,
        "first_eligible_epoch": 1,
        "class_weights": "none",
        "reduction": "mean",
        "no_decay": [],
        "batching": "length-noise",
        "select_by": "accuracy",
    },
)
class SharedClassifier(AttentionClassifier):
    """One embedding, one BiLSTM and one attention for both texts, and an output that compares them (Neely et al. 2022).

    The second text's context is the query, so that attention over the first text can vary while that over the second is
    fixed. `pair`, the vectors of second texts, is ignored: both texts share `embedding`.
    """

    def __init__(
        self,
        embedding: torch.Tensor,
        classes: int,
        pair: torch.Tensor | None = None,
        *,
        attention: Literal["tanh", "uniform"] = "tanh",
        hidden: int = 128,
    ) -> None:
        super().__init__(embedding, classes, attention=attention, hidden=hidden)
        self.head = ComparingHead(self.encoder.size, classes)

    @property
    def pair_embedding(self) -> nn.Embedding:
        """The vectors of both texts."""
        return self.embedding

    def _summarise_pair(self, embedded: torch.Tensor, second: Batch) -> tuple[torch.Tensor, ...]:
        hidden = self.encoder(embedded, second)
        attention = masked_softmax(self.attention(hidden), second.attendable)
        return self._context(hidden, attention), attention
