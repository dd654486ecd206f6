"""The input of a model as one tensor: a vector for each token of the text, then of the second text.

T is the number of tokens of both, padding included. Most models start from word vectors; one that adds position
embeddings to them has its own methods `vectors` and `read`.
"""

from dataclasses import replace
from typing import Any, Literal

import torch

from plumbline.data.vocabulary import PAD
from plumbline.models.batch import Batch
from plumbline.models.classifier import Output

Baseline = Literal["pad", "zero"]


def input_vectors(model: Any, batch: Batch) -> torch.Tensor:
    """The vectors [B, T, d] from which the model computes its output, detached."""
    if hasattr(model, "vectors"):
        return model.vectors(batch).detach()
    vectors = model.embedding(batch.ids)
    if batch.pair is not None:
        vectors = torch.cat([vectors, _pair_embedding(model)(batch.pair.ids)], dim=1)
    return vectors.detach()


def forward_vectors(model: Any, batch: Batch, vectors: torch.Tensor) -> Output:
    """The model's output for these vectors [B, T, d] in place of the batch's own."""
    if hasattr(model, "vectors"):
        return model.read(batch, vectors)
    if batch.pair is None:
        return model(batch, vectors)
    return model(batch, *vectors.split([batch.ids.shape[1], batch.pair.ids.shape[1]], dim=1))


def baseline_vectors(model: Any, batch: Batch, kind: Baseline) -> torch.Tensor:
    """The baseline [B, T, d]: zeros, or the vectors of a text of the same length that consists of padding."""
    if kind == "zero":
        return torch.zeros_like(input_vectors(model, batch))
    padding = torch.full_like(batch.ids, _padding(model, model.embedding))
    if batch.pair is not None:
        second = torch.full_like(batch.pair.ids, _padding(model, _pair_embedding(model)))
        padding = torch.cat([padding, second], dim=1)
    return vectors_of(model, batch, padding)


def vectors_of(model: Any, batch: Batch, ids: torch.Tensor) -> torch.Tensor:
    """The vectors [B, T, d] of these tokens [B, T] in place of the batch's own."""
    width = batch.ids.shape[1]
    pair = None if batch.pair is None else replace(batch.pair, ids=ids[:, width:])
    return input_vectors(model, replace(batch, ids=ids[:, :width], pair=pair))


def feature_mask(batch: Batch, texts: Literal["first", "both"] = "both", specials: bool = True) -> torch.Tensor:
    """The tokens [B, T] to score: those of the first text or of both, with or without special tokens."""
    first = batch.present if specials else batch.attendable
    if batch.pair is None:
        return first
    second = batch.pair.present if specials else batch.pair.attendable
    return torch.cat([first, second if texts == "both" else torch.zeros_like(second)], dim=1)


def is_prompted(model: Any) -> bool:
    """Whether the special tokens of a model's texts are the words of a prompt, which no measure changes or ranks."""
    return getattr(model, "prompted", False)


def _pair_embedding(model: Any) -> Any:
    """The embedding of second texts: that of texts unless the model has a separate one."""
    return getattr(model, "pair_embedding", model.embedding)


def _padding(model: Any, embedding: torch.nn.Embedding) -> int:
    """The id of padding: the model's own `pad_id`, if it has one, or that of its embedding."""
    padding = getattr(model, "pad_id", embedding.padding_idx)
    return PAD if padding is None else padding
