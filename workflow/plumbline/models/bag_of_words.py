"""A linear model over words with a known explanation: each word contributes its weight."""

import torch
from torch import nn

from plumbline.models.batch import Batch
from plumbline.models.classifier import Head, Output
from plumbline.registry import model


@model("bag-of-words", provides=["gradient"], training={"first_eligible_epoch": 1})
class BagOfWords(nn.Module):
    """A linear layer over the mean of a text's word vectors, without attention: the simplest baseline."""

    def __init__(self, embedding: torch.Tensor, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(embedding.clone(), freeze=False, padding_idx=0)
        self.head = Head(embedding.shape[1], classes)

    def forward(self, batch: Batch, embedded: torch.Tensor | None = None) -> Output:
        embedded = self.embedding(batch.ids) if embedded is None else embedded
        words = batch.attendable[:, :, None].to(embedded.dtype)
        return Output(self.head((embedded * words).sum(1) / words.sum(1).clamp(min=1)))
