"""The model my-model. It works unchanged; replace it with your own."""

import torch
from torch import nn

from plumbline.models.batch import Batch
from plumbline.models.classifier import Output
from plumbline.registry import model


@model("my-model", provides=["gradient"], training={"epochs": 5})
class MyModel(nn.Module):
    """One hidden layer on the mean of a text's word vectors."""

    def __init__(self, embedding: torch.Tensor, classes: int, *, hidden: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False, padding_idx=0)
        self.head = nn.Sequential(nn.Linear(embedding.shape[1], hidden), nn.Tanh(), nn.Linear(hidden, classes))

    def forward(self, batch: Batch, embedded: torch.Tensor | None = None) -> Output:
        """Logits [B, C] of the words, or of the given word vectors [B, L, d]."""
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        words = batch.attendable[:, :, None].to(embedded.dtype)  # 0 on special tokens and padding
        return Output(self.head((embedded * words).sum(1) / words.sum(1).clamp(min=1)))
