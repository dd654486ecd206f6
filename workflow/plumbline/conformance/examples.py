"""Small random texts, images, models and cells, on which objects are checked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from plumbline import store
from plumbline.attribution.files import write_importances
from plumbline.conformance.checkpoints import DIMENSIONS, WORDS, example_checkpoint
from plumbline.data.instances import Instances
from plumbline.data.pixels import pack
from plumbline.data.schemas import INSTANCES
from plumbline.data.vocabulary import EOS, SOS, SPECIALS
from plumbline.models.batch import Batch, collate
from plumbline.models.block import build_model, with_answers
from plumbline.models.evaluator import Evaluator
from plumbline.protocols.explained import Explained
from plumbline.registry import PACKAGE, Declaration, Registry, lacking
from plumbline.training.schemas import PREDICTIONS

CLASSES, ANSWERS, SIDE = 2, 5, 16
# The hidden size of the library's models in checks: it affects their time, not their result.
HIDDEN = 8
TOLERANCE = 1e-6
# A token budget that holds all examples in one forward pass.
LARGE_BUDGET = 10_000


def example_instances(
    count: int = 12, seed: int = 0, paired: bool = False, splits: Sequence[str] = ("test",)
) -> Instances:
    """Texts of two to thirteen random words; if paired, with questions whose possible answers are the label and one
    other class."""
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


def example_images(count: int = 12, seed: int = 0, splits: Sequence[str] = ("test",)) -> Instances:
    """Images of SIDE x SIDE random pixels."""
    texts = example_instances(count, seed, splits=splits)
    pixels = np.random.default_rng(seed).integers(256, size=(count, SIDE, SIDE, 3), dtype=np.uint8)
    return replace(texts, ids=list(pack(pixels)), maskable=list(np.ones((count, SIDE**2), dtype=bool)))


def examples_for(declaration: Declaration, count: int = 12, splits: Sequence[str] = ("test",)) -> Instances:
    """Examples that a model can read: images, pairs of texts if it requires them, or texts."""
    if declaration.reads == "pixels":
        return example_images(count, splits=splits)
    return example_instances(count, paired=needs_pairs(declaration), splits=splits)


def example_model(declaration: Declaration, seed: int = 0, paired: bool = False, **overrides: Any) -> Any:
    """The declared model with random weights; with questions it has ANSWERS classes. Models that start from a
    checkpoint share one, and `seed` draws their output layer. `overrides` are options other than those of examples."""
    classes = ANSWERS if paired else CLASSES
    options = {**example_options(declaration, classes), **overrides}
    torch.manual_seed(seed)
    if declaration.reads == "subwords":
        return build_model(declaration.pointer, options, None, classes)
    if declaration.reads == "pixels":
        return _with_batch_statistics(build_model(declaration.pointer, options, None, classes))
    embedding = torch.randn(WORDS, DIMENSIONS)
    embedding[0] = 0
    pair = torch.randn(WORDS, DIMENSIONS) if paired else None
    return build_model(declaration.pointer, options, embedding, classes, pair)


def _with_batch_statistics(model: Any) -> Any:
    """A model of images with the batch-norm statistics of the examples; in double precision, because a deep model
    amplifies rounding errors."""
    model.double()
    norms = [part for part in model.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    with torch.no_grad():
        model(whole_batch(example_images()))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    return model


def example_options(declaration: Declaration, classes: int = CLASSES) -> Mapping[str, Any]:
    """The options of an example model: defaults except for the checkpoint, the side of images, the hidden size of the
    library's models and the answers of causal ones."""
    options = declaration.defaults
    if "hidden" in options and declaration.path.is_relative_to(PACKAGE):
        options |= {"hidden": HIDDEN}
    if declaration.reads == "pixels" and "side" in options:
        return {**options, "side": SIDE}
    if declaration.reads == "subwords":
        options |= {"checkpoint": example_checkpoint("answers" in options)}
    return with_answers(options, [str(number) for number in range(classes)])


def reads_one_text(declaration: Declaration) -> bool:
    """Whether a model can read single texts."""
    return "classification" in declaration.tasks


def needs_pairs(declaration: Declaration) -> bool:
    """Whether a model reads only pairs of texts."""
    return not reads_one_text(declaration) and declaration.reads != "pixels"


def whole_batch(instances: Instances) -> Batch:
    """All instances in one batch."""
    pairs = instances.pair, instances.answers, instances.pair_maskable
    return collate(instances.ids, instances.maskable, "cpu", *pairs)


def example_explained(folder: Path, model: str = "average-tanh") -> Explained:
    """A small cell with three measures, two seeds and random importances."""
    instances = example_instances(24)
    dev = example_instances(48, seed=1, splits=["dev"])
    random = np.random.default_rng(2)
    seeds = [0, 1]
    keys = {
        "seed": np.repeat(seeds, len(instances)),
        "split": np.tile(instances.split, len(seeds)),
        "instance": np.tile(instances.instance, len(seeds)),
    }
    rows = len(keys["seed"])
    probabilities = [np.array([p, 1 - p], dtype=np.float32) for p in random.random(rows)]
    labels = np.tile(instances.label, len(seeds))
    predictions = folder / "predictions.parquet"
    store.write_table(predictions, PREDICTIONS, {**keys, "label": labels, "probabilities": probabilities})
    words = [int(maskable.sum()) for maskable in instances.maskable] * len(seeds)
    importances = {}
    for measure in ("attention", "gradient", "selection"):
        importances[measure] = folder / f"{measure}.parquet"
        scores = [random.random(n).astype(np.float32) for n in words]
        target = pa.nulls(rows, pa.int32())
        write_importances(importances[measure], {measure: {**keys, "target": target, "scores": scores}})
    texts = folder / "instances.parquet"
    columns, others = _instances_table(instances), _instances_table(dev)
    store.write_table(texts, INSTANCES, {name: [*columns[name], *others[name]] for name in columns})
    models = partial(_example_evaluators, seeds, model)
    recomputed = _example_measures(importances, Registry().get("model", model))
    return Explained(predictions, importances, seeds, ["test"], texts, models, recomputed=recomputed)


def _example_measures(names: Iterable[str], model: Declaration) -> dict[str, dict[str, Any]]:
    """The params of those measures that can explain a model."""
    measures = [Registry().get("measure", name) for name in names]
    return {
        measure.name: {
            "object": measure.pointer,
            "options": measure.defaults,
            "splits": measure.splits,
            "bases": {},
            "stochastic": measure.stochastic,
        }
        for measure in measures
        if not lacking(measure, measure.defaults, model.provides)
    }


def _instances_table(instances: Instances) -> dict[str, Any]:
    columns = {name: getattr(instances, name) for name in ("split", "instance", "label", "ids", "maskable")}
    tokens = [[f"w{id_}" for id_ in ids] for ids in instances.ids]
    optional = dict.fromkeys(("tokens_b", "ids_b", "maskable_b", "answers"), [None] * len(instances))
    evidence = [free & (np.arange(len(free)) % 2 == 1) for free in instances.maskable]
    return columns | {"tokens": tokens, "evidence": evidence} | optional


def _example_evaluators(seeds: list[int], model: str) -> Iterator[Evaluator]:
    """A model for each seed."""
    declaration = Registry().get("model", model)
    for seed in seeds:
        yield Evaluator(example_model(declaration, seed).requires_grad_(False), seed, LARGE_BUDGET)
