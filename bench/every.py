"""Each registered measure and protocol: on all instances, compared with one instance at a time.

Both versions call the same registered object with its default options, the same model and the same token budget; the
sizes may allow fewer samples.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import torch
from attribution import time_in_turn
from data import WORDS, build_evaluator, defaults, spread, texts
from sizes import Sizes
from timing import Row

from plumbline.attribution.deep_lift import partners
from plumbline.attribution.importances import Importances
from plumbline.attribution.schemas import ATTRIBUTIONS
from plumbline.conformance.examples import example_options
from plumbline.data.datasets.textures import textures
from plumbline.data.instances import Instances, Texts
from plumbline.data.pixels import pack
from plumbline.data.schemas import INSTANCES
from plumbline.models.batch import Batch
from plumbline.models.block import build_model
from plumbline.models.budget import USEFUL_TOKENS
from plumbline.models.evaluator import Evaluator
from plumbline.protocols import explained as reading
from plumbline.protocols.explained import Explained
from plumbline.registry import Declaration, Registry, lacking, load, needed
from plumbline.store import TableSchema, read_table, write_table
from plumbline.training.schemas import PREDICTIONS

# A measure explains the first of these that it supports.
MODELS = ("bilstm-tanh", "bilstm-heads", "minilm-song", "rationale-rl", "resnet-small", "causal")
LENGTH = 20
# Options that set the number of samples of an explanation.
SAMPLED = ("samples", "steps", "draws", "permutations")
# Probabilities are exact to 1e-7, and scores may be a thousandth of them or divided by one.
TOLERANCE = 1e-4
JUMP = 1e-2
# Measures whose scores depend on all explained instances.
DEPEND_ON_ALL = ("expected-gradient",)
# Columns of protocols that are about all instances.
GLOBAL_COLUMNS = ("accuracy", "chance_bound")
Measure = Callable[[Evaluator, Instances], Importances]
MEASURES, SEEDS = ("attention", "gradient", "leave-one-out", "selection"), (0, 1)
# The number of dev texts: enough for p-values of 0.05.
DEV = 80


class Single(Evaluator):
    """An evaluator that runs only one of the instances, with access to the others."""

    def __init__(self, evaluator: Evaluator, index: int) -> None:
        super().__init__(evaluator.model, evaluator.seed, evaluator.budget, evaluator.device)
        self.index = index

    def each(self, texts: Texts | Instances, work: Callable[[np.ndarray, Batch], None], copies: int = 1) -> None:
        """Call `work` with this instance only."""
        index = np.array([self.index])
        super().each(texts.take(index), lambda _, batch: work(index, batch))


def sampled(declaration: Declaration, sizes: Sizes) -> dict[str, Any]:
    """The options of a measure or protocol, with at most as many samples as the sizes allow."""
    return {
        name: min(value, sizes.samples) if name in SAMPLED else value for name, value in defaults(declaration).items()
    }


@cache
def model_evaluator(name: str, device: str, seed: int = 0) -> Evaluator:
    """A registered model of its published size with random weights."""
    declaration = Registry().get("model", name)
    if declaration.reads == "words":
        return build_evaluator(name, USEFUL_TOKENS[device], device, seed=seed)
    torch.manual_seed(seed)
    make = partial(build_model, embedding=None)
    if declaration.reads == "subwords":
        make = _language_model if "prompt" in declaration.required else _minilm
    model = make(declaration.pointer, defaults(declaration), classes=2).requires_grad_(False)
    return Evaluator(model, seed, getattr(model, "useful_tokens", USEFUL_TOKENS)[device], device)


def _minilm(pointer: str, options: Mapping[str, Any], classes: int) -> Any:
    """A subword model of MiniLM's shape, with weights large enough for attention to distinguish tokens."""
    from transformers import BertConfig

    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    with TemporaryDirectory() as folder:
        BertConfig(**shape, initializer_range=0.05).save_pretrained(folder)
        return build_model(pointer, {**options, "checkpoint": folder}, torch.empty(WORDS, 384), classes)


def _language_model(pointer: str, options: Mapping[str, Any], classes: int) -> Any:
    """A small language model of two layers."""
    example = example_options(Registry().get("model", "causal"), classes)
    return build_model(pointer, {**options, **example}, torch.empty(WORDS, 1), classes)


@cache
def images(count: int, side: int) -> Instances:
    """Generated images."""
    generated = textures(Path(), 0, train=1, dev=1, test=count, side=side).images[2:]
    ids = list(pack(np.stack([image.pixels for image in generated])))
    free = list(np.ones((count, side**2), dtype=bool))
    return Instances(
        np.array(["test"] * count), np.arange(count), np.array([image.label for image in generated]), ids, free
    )


def suitable(declaration: Declaration) -> str | None:
    """The first model that provides what a measure needs."""
    for name in MODELS:
        model = Registry().get("model", name)
        if not lacking(declaration, defaults(declaration), model.provides) and (
            model.reads != "pixels" or declaration.pixels
        ):
            return name
    return None


def units(options: Mapping[str, Any], instances: Instances, count: int) -> np.ndarray:
    """The indices [units, 1] of a few instances to explain alone, or [units, 2] if a measure mixes pairs."""
    if options.get("mixed", "no") == "no":
        return spread(instances, count)[:, None]
    firsts = spread(instances, count // 2)
    return np.stack([firsts, partners(instances)[firsts]], axis=1)


def one_at_a_time(
    declaration: Declaration, measure: Measure, evaluator: Evaluator, instances: Instances, indices: np.ndarray
) -> list[np.ndarray]:
    """The scores of some units, each explained with only the splits that the measure counts."""
    if declaration.name in DEPEND_ON_ALL:
        return [measure(Single(evaluator, index), instances).scores[index] for index in indices.ravel()]
    counted = np.flatnonzero(np.isin(instances.split, declaration.splits))
    return [
        scores
        for unit in indices
        for scores in measure(evaluator, instances.take([*counted, *unit])).scores[len(counted) :]
    ]


class Refused(Exception):
    """The reason why something cannot be measured."""


def largest_gap(ours: Sequence[Any], plain: Sequence[Any]) -> tuple[float, float]:
    """The largest difference of numbers or arrays, and the largest number; NaN equals only NaN."""
    a, b = (np.concatenate([np.atleast_1d(np.asarray(x, dtype=float)) for x in side]) for side in (ours, plain))
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf, 1.0
    return float(np.nanmax(np.abs(a - b), initial=0)), float(np.nanmax(np.abs(b), initial=0))


def check_equal(ours: list[np.ndarray], plain: list[np.ndarray]) -> str:
    """The largest difference of scores as a fraction of the largest score, if it is within tolerance.

    Where a gradient jumps, as that of a ReLU does at 0, rounding may change a few instances by more.
    """
    gaps = np.array([largest_gap([a], [b])[0] for a, b in zip(ours, plain, strict=True)])
    gaps /= largest_gap(ours, plain)[1] or 1.0
    worst, many = gaps.max(), int((gaps > TOLERANCE).sum())
    if not (worst <= JUMP and 2 * many <= len(gaps)):
        raise Refused(f"scores of the two versions differ by {worst:.0e} of the largest")
    return f"scores differ by at most {worst:.0e} of the largest" + (f", in {many} of {len(gaps)}" if many else "")


def explained_instances(declaration: Declaration, pixels: bool, sizes: Sizes) -> tuple[str, Instances, Instances]:
    """A description of the explained instances, these instances, and all with the splits that the measure counts."""
    options, limit = sampled(declaration, sizes), sizes.every_images if pixels else sizes.every_texts
    samples = max(options.get("samples", 1), options.get("steps", 1))
    count = min(limit.instances, max(2 * sizes.every_timed, limit.rows // samples))
    if pixels:
        generated = images(count, sizes.side)
        return f"{count} images of {sizes.side} x {sizes.side}", generated, generated
    name = f"{count} texts of {LENGTH} words"
    if not declaration.splits:
        return name, texts(count, LENGTH), texts(count, LENGTH)
    split = np.array(["test"] * count + declaration.splits[:1] * sizes.counted)
    whole = replace(texts(len(split), LENGTH), split=split)
    return f"{name} and {sizes.counted} of training", whole.take(np.arange(count)), whole


def measure_row(declaration: Declaration, device: str, sizes: Sizes) -> Row:
    """The row of one measure."""
    if declaration.required:
        raise Refused(f"only a config can set its option `{declaration.required[0]}`")
    model, options = suitable(declaration), sampled(declaration, sizes)
    if model is None:
        needs = ", ".join(sorted(needed(declaration, options)))
        raise Refused(f"none of {', '.join(MODELS)} provides {needs}")
    evaluator, measure = model_evaluator(model, device), partial(load(declaration.pointer), **options)
    pixels = Registry().get("model", model).reads == "pixels"
    name, instances, whole = explained_instances(declaration, pixels, sizes)
    indices = units(options, instances, sizes.every_timed)
    plain = partial(one_at_a_time, declaration, measure, evaluator, whole)

    def together() -> list[np.ndarray]:
        scores = measure(evaluator, whole).scores
        return [scores[index] for index in indices.ravel()]

    plain(indices[:1])
    measure(evaluator, whole.take([*indices.ravel(), *range(len(instances), len(whole))]))
    drawn = ", with the same draws" if "samples" in options else ""
    what = f"{declaration.name}, {model}, {name}, {device}"
    unit = ("one", "two")[indices.shape[1] - 1]
    return row(what, partial(plain, indices), together, len(instances), sizes, drawn, unit)


def row(
    what: str,
    plain: Callable[[], Any],
    ours: Callable[[], Any],
    count: int,
    sizes: Sizes,
    note: str,
    unit: str = "one",
    check: Callable[[Any, Any], str] = check_equal,
) -> Row:
    """Both versions in turn, if their results are equal; the plain time, of a few instances, is scaled to all."""
    taken: list[list[float]] = []
    while len(taken) < sizes.turns and sum(map(sum, taken)) < sizes.patience:
        timed = time_in_turn({"plain": plain, "ours": ours}, 1)
        taken.append([timed[version][0] for version in ("plain", "ours")])
    difference = check(timed["ours"][1], timed["plain"][1])
    slow, fast = map(min, zip(*taken, strict=True))
    slow *= count / sizes.every_timed
    speeds = f"{count / slow:,.1f} → {count / fast:,.1f} a second"
    what = f"{what} ({unit} at a time: {sizes.every_timed} of them timed)"
    return Row(what, slow, fast, f"{speeds}; {difference}{note}")


def stored(kind: TableSchema, columns: dict[str, Any]) -> pa.Table:
    """A table as read from its file."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        write_table(path, kind, columns)
        return read_table(path, kind)


@contextmanager
def in_memory(protocol: Any) -> Iterator[None]:
    """Let a protocol take tables and the record of its dataset in place of their files."""

    def selected(table: pa.Table, kind: TableSchema | str, columns: Sequence[str] | None = None) -> pa.Table:
        return table.select(list(columns)) if columns else table

    with ExitStack() as stack:
        for module in {reading, sys.modules[type(protocol).__module__]}:
            readers = {"read_table": selected, "read_importances": selected, "read_json": lambda record: record}
            for name, reader in readers.items():
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, reader))
        yield


@cache
def cell(count: int, device: str) -> Explained:
    """Texts with a random fifth of their words as truth, and random importances of a few measures and two seeds; some
    more are the dev split, which some protocols refer to."""
    random = np.random.default_rng(0)
    every = replace(texts(count + DEV, LENGTH), split=np.array(["test"] * count + ["dev"] * DEV))
    instances = every.take(np.arange(count))
    keys = {
        "seed": np.repeat(SEEDS, count),
        "split": np.tile(instances.split, len(SEEDS)),
        "instance": np.tile(instances.instance, len(SEEDS)),
    }
    share = random.random(len(keys["seed"]))
    predictions = {
        **keys,
        "label": np.tile(instances.label, len(SEEDS)),
        "probabilities": list(np.stack([share, 1 - share], axis=1)),
    }
    words = [int(free.sum()) for free in instances.maskable] * len(SEEDS)
    lists = {"ids": every.ids, "maskable": every.maskable}
    lists["tokens"] = [[f"w{id_}" for id_ in ids] for ids in every.ids]
    lists["groups"] = [((random.random(len(free)) < 0.2) & free).astype(np.int8) for free in every.maskable]
    columns = {"split": every.split, "instance": every.instance, "label": every.label, **lists}
    truth = {"name": "random", "groups": ["truth"], "p_star": 0.5}
    return Explained(
        stored(PREDICTIONS, predictions),
        {
            measure: stored(
                ATTRIBUTIONS,
                {"measure": [measure] * len(words), **keys, "scores": [random.random(n) for n in words]},
            )
            for measure in MEASURES
        },
        [*SEEDS],
        ["test"],
        stored(INSTANCES, columns),
        lambda: [model_evaluator(MODELS[0], device, seed) for seed in SEEDS],
        summary={"manipulation": truth},
    )


def select_instance(whole: Explained, index: int) -> Explained:
    """The cell with only one instance."""

    def cut(table: pa.Table) -> pa.Table:
        return table.filter(pc.equal(table["instance"], index))

    importances = {measure: cut(table) for measure, table in whole.importances.items()}
    dev = whole.texts.filter(pc.equal(whole.texts["split"].cast(pa.string()), "dev"))
    texts = pa.concat_tables([cut(whole.texts), dev])
    return replace(whole, predictions=cut(whole.predictions), importances=importances, texts=texts)


def score_frame(parts: list[Mapping[str, Any]], indices: np.ndarray) -> pd.DataFrame:
    """The scores of the instances at some indices, sorted."""
    frame = pd.concat([pd.DataFrame({name: list(values) for name, values in part.items()}) for part in parts])
    frame = frame[frame["instance"].isin(indices)].drop(columns=[*GLOBAL_COLUMNS], errors="ignore")
    return frame.sort_values(["seed", "instance"], kind="stable", ignore_index=True)


def check_equal_frames(ours: pd.DataFrame, plain: pd.DataFrame) -> str:
    """The largest difference of numbers in two frames, if it is within tolerance and all else is equal."""
    gaps = []
    for column in plain:
        sides = list(ours[column]), list(plain[column])
        if any(isinstance(value, str) for value in sides[1]):
            gaps.append(0.0 if sides[0] == sides[1] else np.inf)
        else:
            gaps.append(largest_gap(*sides)[0])
    if not max(gaps) <= TOLERANCE:
        raise Refused(f"scores of the two versions differ by {max(gaps):.0e}")
    return f"scores differ by at most {max(gaps):.0e}"


def protocol_row(declaration: Declaration, device: str, sizes: Sizes) -> Row:
    """The row of one protocol."""
    count = sizes.every_texts.instances
    whole, indices = cell(count, device), spread(texts(count, LENGTH), sizes.every_timed)
    singles = [select_instance(whole, index) for index in indices]
    protocol = load(declaration.pointer)(**sampled(declaration, sizes))
    queries_model = declaration.gpu
    with in_memory(protocol):
        protocol.score(singles[0])
        return row(
            f"{declaration.name}, {MODELS[0] if queries_model else f'{len(MEASURES)} measures'}, {len(SEEDS)} seeds, "
            f"{count} texts of {LENGTH} words, {device if queries_model else 'host'}",
            lambda: score_frame([protocol.score(single) for single in singles], indices),
            lambda: score_frame([protocol.score(whole)], indices),
            count,
            sizes,
            "" if queries_model else "; a table operation without a model",
            check=check_equal_frames,
        )


def rows(device: str, sizes: Sizes) -> Iterator[Row | str]:
    """All registered measures and protocols, with a line for each that cannot be measured."""
    for kind, make in (("measure", measure_row), ("protocol", protocol_row)):
        for declaration in Registry().all(kind):
            try:
                yield make(declaration, device, sizes)
            except (ImportError, Refused) as error:
                yield f"left out: {declaration.name}, {device} ({error})"
