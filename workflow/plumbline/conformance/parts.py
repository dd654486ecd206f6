"""Checks of the parts of models that measures and protocols read: attention, gradients, layers, maps and vectors."""

from collections.abc import Iterator
from inspect import signature
from typing import Any

import torch

from plumbline.conformance.examples import TOLERANCE
from plumbline.models.batch import Batch
from plumbline.registry import Declaration

# The attributes that a model needs for each part that it provides.
PARTS = {
    **dict.fromkeys(("attention", "heads"), ("encode", "attend", "decode")),
    "layers": ("layers", "readout"),
    "values": ("value_norms",),
    "next tokens": ("next_tokens",),
    "maps": ("maps", "readout_weights"),
}


def check_model_parts(
    declaration: Declaration, model: Any, batch: Batch, singles: list[Batch], together: Any
) -> Iterator[str]:
    """A model has the parts that it declares. together: its output for the batch; singles: batches of single texts."""
    lacking = [
        f"it provides '{part}', but has no `{name}`."
        for part, names in PARTS.items()
        for name in names
        if part in declaration.provides and not hasattr(model, name)
    ]
    if lacking:
        yield from lacking
        return
    for part in ("attention", "heads"):
        if part in declaration.provides:
            yield from _check_attention(model, batch, together, part)
    if getattr(together, "pair_attention", None) is not None:
        yield from _check_pair_attention(together.pair_attention, batch)
    if "gradient" in declaration.provides:
        yield from _check_gradient(model, batch, together.logits)
    if "layers" in declaration.provides:
        yield from _check_layers(model, batch, singles)
    if "maps" in declaration.provides:
        yield from _check_maps(model, batch, together.logits)
    if hasattr(model, "vectors"):
        yield from _check_vectors(model, batch, singles, together.logits)


def _check_attention(model: Any, batch: Batch, output: Any, part: str) -> Iterator[str]:
    """Weights [B, L], or heads [B, K, L] whose mean is the attention."""
    weights = getattr(output, part, None)
    if weights is None:
        yield f"it provides '{part}', but its output has none."
        return
    heads = part == "heads"
    subject, shape = ("one of its heads", "B, K, L") if heads else ("its attention", "B, L")
    if weights.dim() != 2 + heads or (len(weights), weights.shape[-1]) != batch.ids.shape:
        yield f"its `{part}` has shape {tuple(weights.shape)}, not [{shape}]."
        return
    yield from _check_weights(weights, batch.attendable[:, None] if heads else batch.attendable, subject)
    if heads and (output.attention is None or not torch.allclose(output.attention, weights.mean(1), atol=TOLERANCE)):
        yield "its attention is not the mean of its heads."
    with torch.no_grad():
        encoded = model.encode(model.embedding(batch.ids), batch)
        logits = model.decode(encoded, model.attend(encoded, batch))
        stacked = model.decode(encoded, torch.stack([weights, weights.flip(0)]))
    if not torch.allclose(logits, output.logits, atol=TOLERANCE):
        yield "its `encode`, `attend` and `decode` do not reproduce its logits."
    if stacked.shape != (2, *output.logits.shape) or not torch.allclose(stacked[0], output.logits, atol=TOLERANCE):
        yield f"its `decode` does not accept stacked weights [..., {shape}]."


def _check_pair_attention(weights: torch.Tensor, batch: Batch) -> Iterator[str]:
    """Weights [B, M] over second texts."""
    if batch.pair is None or weights.shape != batch.pair.ids.shape:
        yield f"its `pair_attention` has shape {tuple(weights.shape)}, not [B, M]."
        return
    yield from _check_weights(weights, batch.pair.attendable, "its attention to the second text")


def _check_weights(weights: torch.Tensor, attendable: torch.Tensor, subject: str) -> Iterator[str]:
    """Weights [..., L] that sum to 1 and are 0 except on words. attendable: [..., L]."""
    if not torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=TOLERANCE):
        yield f"{subject} does not sum to 1."
    if weights.masked_fill(attendable, 0).abs().max() > 0:
        yield f"{subject} has weight on special tokens or padding."


def _check_gradient(model: Any, batch: Batch, logits: torch.Tensor) -> Iterator[str]:
    """Gradients with respect to the word vectors, including those of second texts."""
    embedded = {"word vectors": model.embedding(batch.ids)}
    if batch.pair is not None:
        if "pair_embedded" not in signature(model.forward).parameters:
            yield "it provides 'gradient', but its forward has no `pair_embedded`, the word vectors of second texts."
            return
        embedded["word vectors of second texts"] = getattr(model, "pair_embedding", model.embedding)(batch.pair.ids)
    vectors = [part.detach().requires_grad_() for part in embedded.values()]
    again = model(batch, *vectors).logits
    if not torch.allclose(again, logits, atol=TOLERANCE):
        yield "its logits for word vectors differ from those for the words."
    for name, gradient in zip(embedded, _gradients(again, vectors), strict=True):
        if not gradient.isfinite().all() or not gradient.abs().sum() > 0:
            yield f"it provides 'gradient', but the gradient to the {name} is zero or not finite."


def _gradients(logits: torch.Tensor, vectors: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The gradients of the probability of class 1; 0 for unused vectors."""
    output = logits.softmax(-1)[:, 1].sum()
    return torch.autograd.grad(output, vectors, allow_unused=True, materialize_grads=True)


def _all_present(batch: Batch) -> torch.Tensor:
    """Tokens that are not padding [B, T], first of texts and then of second texts."""
    return batch.present if batch.pair is None else torch.cat([batch.present, batch.pair.present], dim=1)


@torch.no_grad()
def _check_layers(model: Any, batch: Batch, singles: list[Batch]) -> Iterator[str]:
    """Self-attention [B, layers, heads, T, T] and the readout weights [B, T] of the last layer."""
    present = _all_present(batch)
    count, width = present.shape
    layers, readout = model.layers(batch), model.readout(batch)
    if layers.dim() != 5 or layers.shape[0] != count or layers.shape[-2:] != (width, width):
        yield f"its `layers` has shape {tuple(layers.shape)}, not [B, layers, heads, T, T] with T = {width}."
        return
    if readout.shape != present.shape:
        yield f"its `readout` has shape {tuple(readout.shape)}, not [B, T] with T = {width}."
        return
    rows = layers.movedim(3, 1)[present]
    keys = present[:, None].expand(-1, width, -1)[present][:, None, None]
    for name, weights, tokens in (("layers", rows, keys), ("readout", readout, present)):
        if not torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=TOLERANCE):
            yield f"a row of its `{name}` does not sum to 1."
        if weights.masked_fill(tokens, 0).abs().max() > 0:
            yield f"its `{name}` has weight on padding."
    for i, single in enumerate(singles):
        tokens = present[i]
        if not torch.allclose(layers[i][..., tokens, :][..., tokens], model.layers(single)[0], atol=TOLERANCE):
            yield "its `layers` depend on the padding or on the other texts of the batch."
            return
        if not torch.allclose(readout[i, tokens], model.readout(single)[0], atol=TOLERANCE):
            yield "its `readout` depends on the padding or on the other texts of the batch."
            return


@torch.no_grad()
def _check_maps(model: Any, batch: Batch, logits: torch.Tensor) -> Iterator[str]:
    """Non-negative maps [B, K, h, w], whose means and the weights [C, K] give the logits up to a bias."""
    maps, weights = model.maps(batch), model.readout_weights
    if maps.dim() != 4 or len(maps) != len(logits) or weights.shape != (logits.shape[1], maps.shape[1]):
        yield (
            f"its `maps` has shape {tuple(maps.shape)} and its `readout_weights` {tuple(weights.shape)}, not "
            "[B, K, h, w] and [C, K]."
        )
        return
    if maps.min() < 0:
        yield "its `maps` has negative values."
    # The remainder is the bias of each class, the same for all images.
    bias = logits - maps.mean(dim=(2, 3)) @ weights.T
    if not torch.allclose(bias, bias[:1].expand_as(bias), atol=100 * TOLERANCE):
        yield "its logits are not the means of its `maps` times its `readout_weights`, plus a bias."


def _check_vectors(model: Any, batch: Batch, singles: list[Batch], logits: torch.Tensor) -> Iterator[str]:
    """Vectors [B, T, d] from which `read` reproduces the logits."""
    present = _all_present(batch)
    vectors = model.vectors(batch).detach().requires_grad_()
    if vectors.shape[:2] != present.shape:
        yield f"its `vectors` has shape {tuple(vectors.shape)}, not [B, T, d] with T = {present.shape[1]}."
        return
    again = model.read(batch, vectors).logits
    if not torch.allclose(again, logits, atol=TOLERANCE):
        yield "its `read` of its `vectors` does not reproduce its logits."
    (gradient,) = _gradients(again, [vectors])
    if not gradient.isfinite().all() or not gradient.abs().sum() > 0:
        yield "the gradient of its `read` to its `vectors` is zero or not finite."
    with torch.no_grad():
        if not torch.equal(model(batch).logits, logits):
            yield "its logits change after `vectors` and `read` are called."
        for i, single in enumerate(singles):
            if not torch.allclose(vectors[i, present[i]], model.vectors(single)[0], atol=TOLERANCE):
                yield "its `vectors` depend on the padding or on the other texts of the batch."
                return
