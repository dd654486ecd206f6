"""What every registered object must do, the user's too. Each check returns sentences about what is wrong; none is good.

A new measure that passes gives one finite number per word, the same whatever the batch, the padding and the order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from inspect import signature
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from plumbline import store
from plumbline.data.instances import Instances
from plumbline.data.manipulation import Words
from plumbline.data.pixels import pack
from plumbline.data.vocabulary import EOS, SOS, SPECIALS
from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch, collate
from plumbline.models.block import build
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.explained import Explained, scores_of
from plumbline.registry import PAIRED, PICTURES, Declaration, Kind, Registry, load, needed

WORDS, DIMENSIONS, CLASSES, ANSWERS, SIDE = 40, 8, 2, 5, 16
TOLERANCE = 1e-6
# An option `steps` or `samples` of a measure is so many here: what is checked does not depend on it, and time does.
FEW_STEPS = 4


def example_instances(
    count: int = 12, seed: int = 0, paired: bool = False, splits: Sequence[str] = ("test",)
) -> Instances:
    """Texts of two to thirteen random words, as a dataset would give them; with questions, if asked for, to which the
    answer must be the label or one other class."""
    random = np.random.default_rng(seed)
    words = [random.integers(len(SPECIALS), WORDS, size=2 + i % 12) for i in range(count)]
    ids = [np.concatenate([[SOS], text, [EOS]]).astype(np.int32) for text in words]
    maskable = [np.concatenate([[False], np.ones(len(text), dtype=bool), [False]]) for text in words]
    instance = np.arange(count, dtype=np.int32)
    split = np.array(splits)[instance * len(splits) // count]
    label = np.arange(count, dtype=np.int32) % CLASSES
    if not paired:
        return Instances(split, instance, label, ids, maskable)
    questions = [random.integers(len(SPECIALS), WORDS, size=2 + i % 5).astype(np.int32) for i in range(count)]
    answers = [np.array([i % CLASSES, (i + 1 + i % 2) % ANSWERS], dtype=np.int32) for i in range(count)]
    pair_words = [np.ones(len(question), dtype=bool) for question in questions]
    return Instances(split, instance, label, ids, maskable, questions, answers, pair_words)


def example_pictures(count: int = 12, seed: int = 0, splits: Sequence[str] = ("test",)) -> Instances:
    """Pictures of SIDE x SIDE random pixels, as a dataset would give them."""
    texts = example_instances(count, seed, splits=splits)
    pixels = np.random.default_rng(seed).integers(256, size=(count, SIDE, SIDE, 3), dtype=np.uint8)
    return replace(texts, ids=list(pack(pixels)), maskable=list(np.ones((count, SIDE**2), dtype=bool)))


def examples_for(declaration: Declaration, count: int = 12, splits: Sequence[str] = ("test",)) -> Instances:
    """What a model reads: pictures, pairs of texts if it cannot do without second ones, or texts."""
    if declaration.reads == "pixels":
        return example_pictures(count, splits=splits)
    return example_instances(count, paired=needs_pairs(declaration), splits=splits)


def example_model(declaration: Declaration, seed: int = 0, paired: bool = False) -> Any:
    """The declared model with random weights; one for questions has ANSWERS classes. Those that start from a checkpoint
    start from the same one, and `seed` draws their output."""
    options, classes = _example_options(declaration), ANSWERS if paired else CLASSES
    torch.manual_seed(seed)
    if declaration.reads == "pieces":
        return build(declaration.pointer, options, None, classes)
    if declaration.reads == "pixels":
        return _settled(build(declaration.pointer, options, None, classes))
    embedding = torch.randn(WORDS, DIMENSIONS)
    embedding[0] = 0
    pair = torch.randn(WORDS, DIMENSIONS) if paired else None
    return build(declaration.pointer, options, embedding, classes, pair)


def _settled(model: Any) -> Any:
    """A model of pictures that has met some, so that the means and variances by which it normalises are theirs; in
    double precision, because a deep one makes much of the last digits of noise."""
    model.double()
    norms = [part for part in model.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    usual = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        model(whole_batch(example_pictures()))
    for norm, momentum in zip(norms, usual, strict=True):
        norm.momentum = momentum
    return model


def _example_options(declaration: Declaration) -> dict[str, Any]:
    """The options of an example model: as declared, but for the checkpoint and the side of pictures."""
    options = {name: option.default for name, option in declaration.options.items()}
    if declaration.reads == "pixels" and "side" in options:
        return {**options, "side": SIDE}
    return {**options, "checkpoint": _example_checkpoint().name} if declaration.reads == "pieces" else options


@cache
def _example_checkpoint() -> "TemporaryDirectory[str]":
    """A folder with a checkpoint, which is there as long as the process is."""
    folder = TemporaryDirectory()
    torch.manual_seed(0)
    save_example_checkpoint(folder.name)
    return folder


def save_example_checkpoint(folder: str | Path) -> None:
    """A small RoBERTa with random weights and no dropout, for models that start from a checkpoint."""
    from transformers import RobertaConfig, RobertaModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    config = RobertaConfig(
        vocab_size=WORDS,
        hidden_size=2 * DIMENSIONS,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=4 * DIMENSIONS,
        max_position_embeddings=64,
        type_vocab_size=1,
        initializer_range=0.3,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
    )
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)


def reads_one_text(declaration: Declaration) -> bool:
    """Whether a model can do without second texts."""
    return "classification" in declaration.tasks


def needs_pairs(declaration: Declaration) -> bool:
    """Whether a model reads nothing but texts with second ones."""
    return not reads_one_text(declaration) and declaration.reads != "pixels"


def whole_batch(instances: Instances) -> Batch:
    """All instances in one batch."""
    beside = instances.pair, instances.answers, instances.pair_maskable
    return collate(instances.ids, instances.maskable, "cpu", *beside)


def _documented(declaration: Declaration, *facts: str) -> Iterator[str]:
    if not declaration.summary:
        yield "it has no docstring; say in one sentence what it is."
    for fact in facts:
        if not getattr(declaration, fact):
            yield f"its declaration does not state `{fact}`."


def check_metric(declaration: Declaration) -> Iterator[str]:
    """A metric states which direction is better, its range and the equation it implements."""
    yield from _documented(declaration, "direction", "range", "unit", "equation")
    if declaration.direction not in ("higher", "lower"):
        yield f"its direction is '{declaration.direction}'; it must be 'higher' or 'lower'."


def check_dataset(declaration: Declaration) -> Iterator[str]:
    """A dataset states where its files come from and under which licence."""
    yield from _documented(declaration, "source", "licence")
    if not callable(load(declaration.pointer)):
        yield "it cannot be called."


def check_manipulation(declaration: Declaration) -> Iterator[str]:
    """A manipulation says of each word or pixel what group it is in, and changes nothing outside of its groups."""
    yield from _documented(declaration, "groups", "equation")
    if declaration.visibility and declaration.visibility not in declaration.options:
        yield f"its visibility is '{declaration.visibility}', which is none of its options."
    options = {name: option.default for name, option in declaration.options.items()}
    check = _check_of_pictures if declaration.reads == "pixels" else _check_of_texts
    yield from check(declaration, load(declaration.pointer), options)


def _check_of_texts(declaration: Declaration, function: Any, options: dict[str, Any]) -> Iterator[str]:
    texts = [["the", "film", "was", "a", "dull", "one"], ["an", "old", "man"], ["good"], ["A", "word", "and", "the"]]
    for label, first in product(range(CLASSES), texts):
        texts_before = first, texts[1]
        text = Words(*texts_before)
        change, again = (function(text, label, np.random.default_rng(0), **options) for _ in range(2))
        if change != again:
            yield "it gives something else when it is run again."
        for before, after, groups in zip(texts_before, change[::2], change[1::2], strict=True):
            if after is None or groups is None:
                # What says nothing of the second text leaves it as it is.
                continue
            if len(after) != len(groups):
                yield f"it gives {len(groups)} groups for {len(after)} words."
            elif not set(groups) <= set(range(len(declaration.groups) + 1)):
                yield f"it gives groups beyond the {len(declaration.groups)} that it names."
            elif set(after) - {*declaration.words, *options.get("tokens", []), *before}:
                yield "it puts words into texts that it does not name as `words`."
            elif [w for w, g in zip(after, groups, strict=True) if not g and w not in before]:
                yield "it changes words that it says are in no group."


def _check_of_pictures(declaration: Declaration, function: Any, options: dict[str, Any]) -> Iterator[str]:
    for size in (SIDE, 3 * SIDE):
        made = function(size, **options)
        if made.region.shape != (size, size) or made.region.dtype != bool or not made.region.any():
            yield f"its region came as {made.region.dtype} {made.region.shape}, or empty, for pictures of side {size}."
            return
        picture = np.random.default_rng(1).integers(256, size=(size, size, 3), dtype=np.uint8)
        before = picture.copy()
        change, again = (made.change(picture, np.random.default_rng(0)) for _ in range(2))
        if not np.array_equal(picture, before):
            yield "it writes into the picture that it is given."
        if change.shape != picture.shape or change.dtype != np.uint8:
            yield f"it gives pictures of {change.dtype} {change.shape}."
        elif not np.array_equal(change, again):
            yield "it gives something else when it is run again."
        elif not np.array_equal(change[~made.region], before[~made.region]):
            yield "it changes pixels outside of its region."


def check_model(declaration: Declaration) -> Iterator[str]:
    """A model gives finite logits that do not depend on padding, and keeps what it says it provides."""
    yield from _documented(declaration, "provides")
    if {"classification", PICTURES} & set(declaration.tasks):
        yield from _check_model(declaration, False)
    if set(PAIRED) & set(declaration.tasks):
        yield from (f"with questions, {fault}" for fault in _check_model(declaration, True))


def _check_model(declaration: Declaration, paired: bool) -> Iterator[str]:
    instances = example_pictures() if declaration.reads == "pixels" else example_instances(paired=paired)
    model = example_model(declaration, paired=paired).eval()
    batch = whole_batch(instances)
    singles = [whole_batch(instances.take([i])) for i in range(len(instances))]
    with torch.no_grad():
        together = model(batch)
        alone = [model(single).logits[0] for single in singles]
    if together.logits.shape != (len(instances), ANSWERS if paired else CLASSES):
        yield f"its logits have shape {tuple(together.logits.shape)}, not [instances, classes]."
        return
    allowed = torch.ones_like(together.logits, dtype=torch.bool)
    if instances.answers is not None:
        allowed = torch.stack([torch.isin(torch.arange(ANSWERS), torch.from_numpy(a)) for a in instances.answers])
    if not together.logits[allowed].isfinite().all():
        yield "its logits are not finite."
    if (together.logits.softmax(-1)[~allowed] > 0).any():
        yield "it gives probability to classes that cannot be the answer."
    if not torch.allclose(together.logits.softmax(-1), torch.stack(alone).softmax(-1), atol=TOLERANCE):
        yield "its logits depend on the padding or on the other texts of the batch."
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


def check_measure(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """A measure gives one finite number per word, the same for any budget and order, on every model it fits."""
    yield from _documented(declaration, "direction", "equation")
    measure = load(declaration.pointer)
    options = {name: option.default for name, option in declaration.options.items()}
    fitting = [model for model in registry.all("model") if needed(declaration, options) <= set(model.provides)]
    models = [model for model in fitting if model.reads != "pixels" or declaration.pixels]
    if not models:
        yield f"no registered model provides what it needs: {', '.join(sorted(needed(declaration, options)))}."
    told: dict[str, list[str]] = {}
    # Models that differ in their checkpoint alone are the same here, and those of pictures that differ in size.
    alike: dict[str, list[Declaration]] = {}
    for model in models:
        made = "" if model.reads == "pixels" else f" {_example_options(model)}"
        alike.setdefault(f"{model.pointer}{made}", []).append(model)
    few = _with_few_steps(options)
    for same in alike.values():
        instances = examples_for(same[0], splits=[*declaration.splits, "test"])
        rest = partial(_frozen, same[0], needs_pairs(same[0])), instances, declaration.range
        faults = list(_check_measure_on(measure, few, *rest))
        # A measure may ask for more steps than that.
        if faults and few != options:
            faults = list(_check_measure_on(measure, options, *rest))
        for fault in faults:
            told.setdefault(fault, []).extend(f"'{model.name}'" for model in same)
    for fault, names in told.items():
        where = "every model" if len(names) == len(models) > 1 else f"model {', '.join(names)}"
        yield f"on {where} {fault}"


def _with_few_steps(options: dict[str, Any]) -> dict[str, Any]:
    many = {name: value for name, value in options.items() if name in ("steps", "samples") and isinstance(value, int)}
    return {**options, **{name: min(value, FEW_STEPS) for name, value in many.items()}}


def _frozen(declaration: Declaration, paired: bool) -> torch.nn.Module:
    """A model as measures meet it: its parameters take no gradients."""
    return example_model(declaration, paired=paired).requires_grad_(False)


def _check_measure_on(
    measure: Callable[..., Any],
    options: dict[str, Any],
    make: Callable[[], torch.nn.Module],
    instances: Instances,
    limits: list[float] | None,
) -> Iterator[str]:
    seconds = 0 if instances.pair is None else [len(ids) for ids in instances.pair]
    longest = int((instances.lengths + np.array(seconds)).max())

    def scores(some: Instances, budget: int) -> list[np.ndarray]:
        with torch.enable_grad():
            importances = measure(Evaluator(make(), 0, budget), some, **options)
        return list(importances.scores)

    try:
        whole = scores(instances, 10_000)
    except Exception as error:
        yield f"it fails with {type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}."
        return
    if len(whole) != len(instances):
        yield f"it gives scores for {len(whole)} of {len(instances)} texts."
        return
    for i, (found, free) in enumerate(zip(whole, instances.maskable, strict=True)):
        if np.shape(found) != (free.sum(),):
            yield f"it gives scores of shape {np.shape(found)} for a text of {free.sum()} words."
            return
        if not np.isfinite(found).all():
            yield f"its scores of text {i} are not finite."
            return
    values = np.concatenate(whole)
    if limits and (values.min() < limits[0] - TOLERANCE or values.max() > limits[1] + TOLERANCE):
        yield f"its scores reach from {values.min():.3g} to {values.max():.3g}, outside its declared range {limits}."
    order = np.random.default_rng(1).permutation(len(instances))
    shuffled = scores(instances.take(order), 3 * longest)
    again = {
        "differ when it is run again": scores(instances, 10_000),
        "depend on the token budget": scores(instances, longest),
        "depend on the order of the texts": [shuffled[j] for j in np.argsort(order)],
    }
    for fault, others in again.items():
        if not all(np.allclose(a, b, atol=TOLERANCE) for a, b in zip(whole, others, strict=True)):
            yield f"its scores {fault}."


def check_protocol(declaration: Declaration) -> Iterator[str]:
    """A protocol turns importances into valid rows of scores, deterministically, and scores into its table."""
    yield from _documented(declaration, "equation")
    protocol = load(declaration.pointer)(**{name: option.default for name, option in declaration.options.items()})
    with TemporaryDirectory() as folder:
        explained = example_explained(Path(folder))
        scores = protocol.score(explained)
        path, kind = Path(folder, "scores.parquet"), scores_of(protocol)
        try:
            store.write_table(path, kind, scores)
        except PlumblineError as error:
            yield f"its scores cannot be stored: {error}"
            return
        table = store.read_table(path, kind)
        store.write_table(path, kind, protocol.score(explained))
        if not table.equals(store.read_table(path, kind)):
            yield "its scores differ when it is run again."
        if protocol.table not in store.ARTEFACTS:
            yield f"its table '{protocol.table}' is not declared; call plumbline.store.declare in its file."
            return
        summary = protocol.summarise(table)
        expected = set(store.ARTEFACTS[protocol.table].schema.names) - {"dataset", "variant", "model"}
        if set(summary.columns) != expected:
            differing = ", ".join(sorted(set(summary.columns) ^ expected))
            yield f"its summary differs from its declared table in {differing}."


def example_explained(folder: Path) -> Explained:
    """A small cell with three measures, two seeds and random importances."""
    instances = example_instances(24)
    random = np.random.default_rng(2)
    seeds = [0, 1]
    keys = {
        "seed": np.repeat(seeds, len(instances)),
        "split": np.tile(instances.split, len(seeds)),
        "instance": np.tile(instances.instance, len(seeds)),
    }
    rows = len(keys["seed"])
    share = random.random(rows)
    probabilities = [np.array([p, 1 - p], dtype=np.float32) for p in share]
    labels = np.tile(instances.label, len(seeds))
    predictions = folder / "predictions.parquet"
    store.write_table(predictions, "predictions", {**keys, "label": labels, "probabilities": probabilities})
    words = [int(free.sum()) for free in instances.maskable] * len(seeds)
    importances = {}
    for measure in ("attention", "gradient", "selection"):
        importances[measure] = folder / f"{measure}.parquet"
        scores = [random.random(n).astype(np.float32) for n in words]
        target = pa.nulls(rows, pa.int32())
        store.write_table(importances[measure], "attributions", {**keys, "target": target, "scores": scores})
    texts = folder / "instances.parquet"
    store.write_table(texts, "instances", _instances_table(instances))
    models = partial(_example_evaluators, seeds)
    return Explained(predictions, importances, seeds, ["test"], texts, models)


def _instances_table(instances: Instances) -> dict[str, Any]:
    columns = {name: getattr(instances, name) for name in ("split", "instance", "label", "ids", "maskable")}
    tokens = [[f"w{id_}" for id_ in ids] for ids in instances.ids]
    optional = dict.fromkeys(("tokens_b", "ids_b", "maskable_b", "answers", "evidence"), [None] * len(instances))
    return columns | {"tokens": tokens} | optional


def _example_evaluators(seeds: list[int]) -> Iterator[Evaluator]:
    """A model with attention for each seed."""
    declaration = Registry().get("model", "average-tanh")
    for seed in seeds:
        yield Evaluator(example_model(declaration, seed).requires_grad_(False), seed, 10_000)


def check(kind: Kind, name: str, registry: Registry) -> list[str]:
    """All that is wrong with one registered object, as sentences."""
    declaration = registry.get(kind, name)
    faults: dict[str, Callable[[], Iterator[str]]] = {
        "metric": lambda: check_metric(declaration),
        "dataset": lambda: check_dataset(declaration),
        "manipulation": lambda: check_manipulation(declaration),
        "model": lambda: check_model(declaration),
        "measure": lambda: check_measure(declaration, registry),
        "protocol": lambda: check_protocol(declaration),
    }
    told: list[str] = []
    try:
        told += faults[kind]()
    except PlumblineError as error:
        told.append(str(error))
    return [f"The {kind} '{name}': {fault}" for fault in told]
