"""Text classifiers whose parts can be called one by one: encode, attend, decode."""

from typing import Literal, NamedTuple

import torch
from torch import nn

from plumbline.models.attention import DotAttention, TanhAttention, masked_softmax
from plumbline.models.batch import Batch
from plumbline.models.encoders import CNN, Average, BiLSTM
from plumbline.registry import model


class Output(NamedTuple):
    """logits: [B, C]; attention: [B, L], or None if the model has none."""

    logits: torch.Tensor
    attention: torch.Tensor | None = None


class Head(nn.Module):
    """A linear layer to C class logits.

    For two classes it is the studies' single output z with a sigmoid, written as the logits (-z/2, z/2): their softmax
    is (1 - sigmoid(z), sigmoid(z)) and their cross entropy the binary one, so nothing after it need know.
    """

    def __init__(self, size: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, 1 if classes == 2 else classes)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        logits = self.linear(features)
        return torch.cat([-logits / 2, logits / 2], dim=-1) if logits.shape[-1] == 1 else logits


@model("average-dot", encoder="average", attention="dot", hidden=128)
@model("average-tanh", encoder="average", attention="tanh", hidden=128)
@model("cnn-dot", encoder="cnn", attention="dot", hidden=64)
@model("cnn-tanh", encoder="cnn", attention="tanh", hidden=64)
@model("bilstm-dot", encoder="bilstm", attention="dot", hidden=128)
@model("bilstm-tanh", provides=["attention", "gradient"], encoder="bilstm", attention="tanh", hidden=128)
class AttentionClassifier(nn.Module):
    """Embedding, encoder, attention and a linear output, as in Jain & Wallace 2019 (spec of their code, not paper)."""

    def __init__(
        self,
        embedding: torch.Tensor,
        classes: int,
        *,
        encoder: Literal["bilstm", "cnn", "average"] = "bilstm",
        attention: Literal["tanh", "dot"] = "tanh",
        hidden: int = 128,
        activation: Literal["tanh", "relu"] = "tanh",
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False, padding_idx=0)
        dimensions = embedding.shape[1]
        if encoder == "average":
            self.encoder: nn.Module = Average(dimensions, hidden, activation)
        else:
            self.encoder = {"bilstm": BiLSTM, "cnn": CNN}[encoder](dimensions, hidden)
        size = int(self.encoder.size)  # type: ignore[arg-type]
        self.attention = {"tanh": TanhAttention, "dot": DotAttention}[attention](size)
        self.head = Head(size, classes)

    def encode(self, embedded: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Hidden states [B, L, H] of embedded tokens [B, L, d]."""
        return self.encoder(embedded, batch)

    def attend(self, hidden: torch.Tensor, batch: Batch) -> torch.Tensor:
        """Attention weights [B, L] over hidden states."""
        return masked_softmax(self.attention(hidden), batch.attendable)

    def decode(self, hidden: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        """Logits [B, C] from hidden states and any attention weights [B, L]."""
        return self.head(torch.einsum("bl,blh->bh", attention, hidden))

    def forward(self, batch: Batch, embedded: torch.Tensor | None = None) -> Output:
        hidden = self.encode(self.embedding(batch.ids) if embedded is None else embedded, batch)
        attention = self.attend(hidden, batch)
        return Output(self.decode(hidden, attention), attention)
