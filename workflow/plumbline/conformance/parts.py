"""The parts of models that measures and protocols read: attention, gradients, layers, maps and vectors."""

from collections.abc import Iterator
from inspect import signature
from typing import Any

import torch

from plumbline.conformance.examples import TOLERANCE
from plumbline.models.batch import Batch
from plumbline.registry import Declaration

# What a model must have beside `forward` for what it provides.
PARTS = {
    **dict.fromkeys(("attention", "heads"), ("encode", "attend", "decode")),
    "layers": ("layers", "readout"),
    "maps": ("maps", "readout_weights"),
}


def check_model_parts(
    declaration: Declaration, model: Any, batch: Batch, singles: list[Batch], together: Any
) -> Iterator[str]:
    """A model keeps what it says it provides. together: its output for the batch; singles: each text of it alone."""
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
    """Weights [B, L], or with heads [B, K, L] whose mean is the attention."""
    weights = getattr(output, part, None)
    if weights is None:
        yield f"it provides '{part}', but its output has none."
        return
    heads = part == "heads"
    its, several, shape = "its attention", "attentions", "B, L"
    if heads:
        its, several, shape = "one of its heads", "sets of heads", "B, K, L"
    if weights.dim() != 2 + heads or (len(weights), weights.shape[-1]) != batch.ids.shape:
        yield f"its `{part}` came as {tuple(weights.shape)}, not [{shape}]."
        return
    yield from _check_weights(weights, batch.attendable[:, None] if heads else batch.attendable, its)
    if heads and (output.attention is None or not torch.allclose(output.attention, weights.mean(1), atol=TOLERANCE)):
        yield "its attention is not the mean of its heads."
    with torch.no_grad():
        encoded = model.encode(model.embedding(batch.ids), batch)
        again = model.decode(encoded, model.attend(encoded, batch))
        twice = model.decode(encoded, torch.stack([weights, weights.flip(0)]))
    if not torch.allclose(again, output.logits, atol=TOLERANCE):
        yield "its parts encode, attend and decode do not give what the whole gives."
    if twice.shape != (2, *output.logits.shape) or not torch.allclose(twice[0], output.logits, atol=TOLERANCE):
        yield f"its decode does not take several {several} at once, [..., {shape}]."


def _check_pair_attention(weights: torch.Tensor, batch: Batch) -> Iterator[str]:
    """Weights [B, M] over second texts."""
    if batch.pair is None or weights.shape != batch.pair.ids.shape:
        yield f"its `pair_attention` came as {tuple(weights.shape)}, not [B, M]."
        return
    yield from _check_weights(weights, batch.pair.attendable, "its attention to the second text")


def _check_weights(weights: torch.Tensor, attendable: torch.Tensor, its: str) -> Iterator[str]:
    """Weights [..., L] of words alone, which sum to 1. attendable: [..., L]."""
    if not torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=TOLERANCE):
        yield f"{its} does not sum to 1."
    if weights.masked_fill(attendable, 0).abs().max() > 0:
        yield f"{its} falls on special tokens or padding."


def _check_gradient(model: Any, batch: Batch, logits: torch.Tensor) -> Iterator[str]:
    """Gradients to the word vectors, those of second texts too."""
    given = {"word vectors": model.embedding(batch.ids)}
    if batch.pair is not None:
        if "pair_embedded" not in signature(model.forward).parameters:
            yield "it provides 'gradient', but its forward has no `pair_embedded`, the word vectors of second texts."
            return
        given["word vectors of second texts"] = getattr(model, "pair_embedding", model.embedding)(batch.pair.ids)
    vectors = [part.detach().requires_grad_() for part in given.values()]
    again = model(batch, *vectors).logits
    if not torch.allclose(again, logits, atol=TOLERANCE):
        yield "it does not give for word vectors what it gives for the words."
    for name, slopes in zip(given, _slopes(again, vectors), strict=True):
        if not slopes.isfinite().all() or not slopes.abs().sum() > 0:
            yield f"it provides 'gradient', but the gradient to the {name} is zero or not finite."


def _slopes(logits: torch.Tensor, vectors: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The gradient of one class's probability; 0 to vectors that have no part in it."""
    output = logits.softmax(-1)[:, 1].sum()
    return torch.autograd.grad(output, vectors, allow_unused=True, materialize_grads=True)


def _all_present(batch: Batch) -> torch.Tensor:
    """What is no padding [B, T], of texts and of the second texts after them."""
    return batch.present if batch.pair is None else torch.cat([batch.present, batch.pair.present], dim=1)


@torch.no_grad()
def _check_layers(model: Any, batch: Batch, singles: list[Batch]) -> Iterator[str]:
    """Self-attention [B, layers, heads, T, T] and the weights [B, T] with which the last layer is read."""
    present = _all_present(batch)
    count, width = present.shape
    layers, readout = model.layers(batch), model.readout(batch)
    if layers.dim() != 5 or layers.shape[0] != count or layers.shape[-2:] != (width, width):
        yield f"its `layers` came as {tuple(layers.shape)}, not [B, layers, heads, T, T] with T = {width}."
        return
    if readout.shape != present.shape:
        yield f"its `readout` came as {tuple(readout.shape)}, not [B, T] with T = {width}."
        return
    rows = layers.movedim(3, 1)[present]
    keys = present[:, None].expand(-1, width, -1)[present][:, None, None]
    for name, weights, there in (("layers", rows, keys), ("readout", readout, present)):
        if not torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=TOLERANCE):
            yield f"a row of its `{name}` does not sum to 1."
        if weights.masked_fill(there, 0).abs().max() > 0:
            yield f"its `{name}` has weight on padding."
    for i, single in enumerate(singles):
        own = present[i]
        if not torch.allclose(layers[i][..., own, :][..., own], model.layers(single)[0], atol=TOLERANCE):
            yield "its `layers` depend on the padding or on the other texts of the batch."
            return
        if not torch.allclose(readout[i, own], model.readout(single)[0], atol=TOLERANCE):
            yield "its `readout` depends on the padding or on the other texts of the batch."
            return


@torch.no_grad()
def _check_maps(model: Any, batch: Batch, logits: torch.Tensor) -> Iterator[str]:
    """Maps [B, K, h, w] that are not negative, of whose means the weights [C, K] make the logits."""
    maps, weights = model.maps(batch), model.readout_weights
    if maps.dim() != 4 or len(maps) != len(logits) or weights.shape != (logits.shape[1], maps.shape[1]):
        yield f"its `maps` came as {tuple(maps.shape)} and its `readout_weights` as {tuple(weights.shape)}."
        return
    if maps.min() < 0:
        yield "some of the numbers of its `maps` are negative."
    # What is left is the bias of each class, the same for all pictures.
    bias = logits - maps.mean(dim=(2, 3)) @ weights.T
    if not torch.allclose(bias, bias[:1].expand_as(bias), atol=100 * TOLERANCE):
        yield "its logits are not what its `readout_weights` make of the means of its `maps`."


def _check_vectors(model: Any, batch: Batch, singles: list[Batch], logits: torch.Tensor) -> Iterator[str]:
    """Vectors [B, T, d] from which `read` tells what the words give."""
    present = _all_present(batch)
    vectors = model.vectors(batch).detach().requires_grad_()
    if vectors.shape[:2] != present.shape:
        yield f"its `vectors` came as {tuple(vectors.shape)}, not [B, T, d] with T = {present.shape[1]}."
        return
    again = model.read(batch, vectors).logits
    if not torch.allclose(again, logits, atol=TOLERANCE):
        yield "its `read` does not give for its `vectors` what it gives for the words."
    (slopes,) = _slopes(again, [vectors])
    if not slopes.isfinite().all() or not slopes.abs().sum() > 0:
        yield "the gradient of its `read` to its `vectors` is zero or not finite."
    with torch.no_grad():
        if not torch.equal(model(batch).logits, logits):
            yield "it gives something else once `vectors` and `read` were called."
        for i, single in enumerate(singles):
            if not torch.allclose(vectors[i, present[i]], model.vectors(single)[0], atol=TOLERANCE):
                yield "its `vectors` depend on the padding or on the other texts of the batch."
                return
