"""What a model computes everything from, as one tensor: a vector for each token of the text, then of the second text.

T is the tokens of both, padding included. Most models begin with word vectors; one that adds positions to them first
has a `vectors` and a `read` of its own.
"""

from dataclasses import replace
from typing import Any, Literal

import torch

from plumbline.data.vocabulary import PAD
from plumbline.models.batch import Batch
from plumbline.models.classifier import Output

Baseline = Literal["pad", "zero"]
Explained = Literal["first", "both"]


def input_vectors(model: Any, batch: Batch) -> torch.Tensor:
    """The vectors [B, T, d] from which the model computes what it says of the batch, without their history."""
    if hasattr(model, "vectors"):
        return model.vectors(batch).detach()
    vectors = model.embedding(batch.ids)
    if batch.pair is not None:
        vectors = torch.cat([vectors, _pair_embedding(model)(batch.pair.ids)], dim=1)
    return vectors.detach()


def read(model: Any, batch: Batch, vectors: torch.Tensor) -> Output:
    """What the model says if these are the vectors [B, T, d] of the batch."""
    if hasattr(model, "vectors"):
        return model.read(batch, vectors)
    if batch.pair is None:
        return model(batch, vectors)
    return model(batch, *vectors.split([batch.ids.shape[1], batch.pair.ids.shape[1]], dim=1))


def baseline_of(model: Any, batch: Batch, kind: Baseline) -> torch.Tensor:
    """The vectors [B, T, d] of a text that says nothing: of zeros, or of as many tokens that are padding."""
    if kind == "zero":
        return torch.zeros_like(input_vectors(model, batch))
    nothing = replace(batch, ids=torch.full_like(batch.ids, _padding(model.embedding)))
    if batch.pair is not None:
        padding = _padding(_pair_embedding(model))
        nothing = replace(nothing, pair=replace(batch.pair, ids=torch.full_like(batch.pair.ids, padding)))
    return input_vectors(model, nothing)


def features(batch: Batch, texts: Explained = "both", specials: bool = True) -> torch.Tensor:
    """The tokens [B, T] that are explained, and so move: those of the text or of both, all of them or words alone."""
    own = batch.present if specials else batch.attendable
    if batch.pair is None:
        return own
    seconds = batch.pair.present if specials else batch.pair.attendable
    return torch.cat([own, seconds if texts == "both" else torch.zeros_like(seconds)], dim=1)


def _pair_embedding(model: Any) -> Any:
    """The word vectors of second texts: the same as those of texts unless the model has some of their own."""
    return getattr(model, "pair_embedding", model.embedding)


def _padding(embedding: torch.nn.Embedding) -> int:
    return PAD if embedding.padding_idx is None else embedding.padding_idx
