"""Each registered measure and protocol on many instances together against one instance at a time.

Both ways call the same registered object, at its default options, with the same model and token budget; the sizes may
allow fewer samples.
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
from attribution import in_turn
from data import WORDS, evaluator, spread, texts
from sizes import Sizes
from timing import Row

from plumbline.attribution.deep_lift import partners
from plumbline.attribution.importances import Importances
from plumbline.attribution.schemas import ATTRIBUTIONS
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
from plumbline.registry import Declaration, Registry, load, needed
from plumbline.store import TableSchema, read_table, write_table
from plumbline.training.schemas import PREDICTIONS

# A measure is asked about the first of these that it suits.
MODELS = ("bilstm-tanh", "bilstm-heads", "minilm-song", "rationale-rl", "resnet-small")
LENGTH = 20
# Options that say how many samples an explanation takes.
SAMPLED = ("samples", "steps", "draws", "permutations")
# Probabilities are exact to 1e-7, and scores may be a thousandth of them or divided by so little.
TOLERANCE = 1e-4
JUMP = 1e-2
# Scores of these depend on all instances that are explained.
OF_OTHERS = ("expected-gradient",)
# What protocols tell of all instances together.
OF_ALL = ("accuracy", "chance_bound")
Measure = Callable[[Evaluator, Instances], Importances]
MEASURES, SEEDS = ("attention", "gradient", "leave-one-out", "selection"), (0, 1)


class Single(Evaluator):
    """An evaluator that runs one of the instances it is asked about, which knows of the others."""

    def __init__(self, asked: Evaluator, place: int) -> None:
        super().__init__(asked.model, asked.seed, asked.budget, asked.device)
        self.place = place

    def each(self, texts: Texts | Instances, work: Callable[[np.ndarray, Batch], None]) -> None:
        """Call `work` with that one alone."""
        one = np.array([self.place])
        super().each(texts.take(one), lambda _, batch: work(one, batch))


def defaults(declaration: Declaration) -> dict[str, Any]:
    """The options of an object as they are declared."""
    return {name: option.default for name, option in declaration.options.items()}


def sampled(declaration: Declaration, sizes: Sizes) -> dict[str, Any]:
    """The options of a measure or protocol, with no more samples than the sizes allow."""
    return {
        name: min(value, sizes.samples) if name in SAMPLED else value for name, value in defaults(declaration).items()
    }


@cache
def asked_of(name: str, device: str, seed: int = 0) -> Evaluator:
    """A registered model of the study's size with random weights."""
    declaration = Registry().get("model", name)
    if declaration.reads == "words":
        return evaluator(name, USEFUL_TOKENS[device], device, seed=seed)
    torch.manual_seed(seed)
    make = _minilm if declaration.reads == "subwords" else partial(build_model, embedding=None)
    model = make(declaration.pointer, defaults(declaration), classes=2).requires_grad_(False)
    return Evaluator(model, seed, getattr(model, "useful_tokens", USEFUL_TOKENS)[device], device)


def _minilm(pointer: str, options: Mapping[str, Any], classes: int) -> Any:
    """A model of subwords of MiniLM's shape, whose weights are wide enough for attention to tell tokens apart."""
    from transformers import BertConfig

    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    with TemporaryDirectory() as folder:
        BertConfig(**shape, initializer_range=0.05).save_pretrained(folder)
        return build_model(pointer, {**options, "checkpoint": folder}, torch.empty(WORDS, 384), classes)


@cache
def pictures(count: int, side: int) -> Instances:
    """Generated pictures."""
    made = textures(Path(), 0, train=1, dev=1, test=count, side=side).pictures[2:]
    ids = list(pack(np.stack([one.pixels for one in made])))
    free = list(np.ones((count, side**2), dtype=bool))
    return Instances(np.array(["test"] * count), np.arange(count), np.array([one.label for one in made]), ids, free)


def suitable(declaration: Declaration) -> str | None:
    """The name of the first model that provides what a measure needs."""
    for name in MODELS:
        model = Registry().get("model", name)
        if needed(declaration, defaults(declaration)) <= set(model.provides) and (
            model.reads != "pixels" or declaration.pixels
        ):
            return name
    return None


def units(options: Mapping[str, Any], instances: Instances, count: int) -> np.ndarray:
    """The places [units, 1] of a few instances, each to be explained alone; [units, 2] if a measure mixes pairs."""
    if options.get("mixed", "no") == "no":
        return spread(instances, count)[:, None]
    firsts = spread(instances, count // 2)
    return np.stack([firsts, partners(instances)[firsts]], axis=1)


def one_at_a_time(
    declaration: Declaration, measure: Measure, asked: Evaluator, instances: Instances, places: np.ndarray
) -> list[np.ndarray]:
    """The scores of some units, each explained beside no more than the splits that the measure counts."""
    if declaration.name in OF_OTHERS:
        return [measure(Single(asked, place), instances).scores[place] for place in places.ravel()]
    counted = np.flatnonzero(np.isin(instances.split, declaration.splits))
    return [
        scores for unit in places for scores in measure(asked, instances.take([*counted, *unit])).scores[len(counted) :]
    ]


class Refused(Exception):
    """Why something cannot be measured."""


def apart(ours: Sequence[Any], plain: Sequence[Any]) -> tuple[float, float]:
    """How far numbers, or arrays of them, are apart at most, and the largest; NaN is the same as NaN alone."""
    a, b = (np.concatenate([np.atleast_1d(np.asarray(one, dtype=float)) for one in way]) for way in (ours, plain))
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf, 1.0
    return float(np.nanmax(np.abs(a - b), initial=0)), float(np.nanmax(np.abs(b), initial=0))


def same(ours: list[np.ndarray], plain: list[np.ndarray]) -> str:
    """How far scores are apart as a share of the largest, if that is little.

    Where a gradient jumps, as that of a rectifier does at 0, rounding alone may move a few instances by more.
    """
    gaps = [apart([one], [other])[0] for one, other in zip(ours, plain, strict=True)]
    shares = np.array(gaps) / (apart(ours, plain)[1] or 1.0)
    worst, many = shares.max(), int((shares > TOLERANCE).sum())
    if not (worst <= JUMP and 2 * many <= len(shares)):
        raise Refused(f"scores of the two ways differ by {worst:.0e} of the largest")
    return f"scores differ by at most {worst:.0e} of the largest" + (f", in {many} of {len(gaps)}" if many else "")


def explained_instances(declaration: Declaration, pixels: bool, sizes: Sizes) -> tuple[str, Instances, Instances]:
    """What a measure explains, in words and as instances, and these with those of the splits that it counts."""
    options, limit = sampled(declaration, sizes), sizes.every_pictures if pixels else sizes.every_texts
    samples = max(options.get("samples", 1), options.get("steps", 1))
    count = min(limit.instances, max(2 * sizes.every_timed, limit.rows // samples))
    if pixels:
        made = pictures(count, sizes.side)
        return f"{count} pictures of {sizes.side} x {sizes.side}", made, made
    name = f"{count} texts of {LENGTH} words"
    if not declaration.splits:
        return name, texts(count, LENGTH), texts(count, LENGTH)
    split = np.array(["test"] * count + declaration.splits[:1] * sizes.counted)
    whole = replace(texts(len(split), LENGTH), split=split)
    return f"{name} and {sizes.counted} of training", whole.take(np.arange(count)), whole


def measure_row(declaration: Declaration, device: str, sizes: Sizes) -> Row:
    """One measure, both ways."""
    if declaration.required:
        raise Refused(f"only a config can set its option `{declaration.required[0]}`")
    model, options = suitable(declaration), sampled(declaration, sizes)
    if model is None:
        wanted = ", ".join(sorted(needed(declaration, options)))
        raise Refused(f"none of {', '.join(MODELS)} provides {wanted} to it")
    asked, measure = asked_of(model, device), partial(load(declaration.pointer), **options)
    pixels = Registry().get("model", model).reads == "pixels"
    name, instances, whole = explained_instances(declaration, pixels, sizes)
    places = units(options, instances, sizes.every_timed)
    plain = partial(one_at_a_time, declaration, measure, asked, whole)

    def together() -> list[np.ndarray]:
        found = measure(asked, whole)
        return [found.scores[place] for place in places.ravel()]

    plain(places[:1])
    measure(asked, whole.take([*places.ravel(), *range(len(instances), len(whole))]))
    drawn = ", with the same draws" if "samples" in options else ""
    what = f"{declaration.name}, {model}, {name}, {device}"
    unit = ("one", "two")[places.shape[1] - 1]
    return row(what, partial(plain, places), together, len(instances), sizes, drawn, unit)


def row(
    what: str,
    plain: Callable[[], Any],
    ours: Callable[[], Any],
    count: int,
    sizes: Sizes,
    note: str,
    unit: str = "one",
    check: Callable[[Any, Any], str] = same,
) -> Row:
    """The two ways in turn, if they find the same; the plain one's time, of a few instances, is scaled to all."""
    taken: list[list[float]] = []
    while len(taken) < sizes.turns and sum(map(sum, taken)) < sizes.patience:
        told = in_turn({"plain": plain, "ours": ours}, 1)
        taken.append([told[way][0] for way in ("plain", "ours")])
    found = check(told["ours"][1], told["plain"][1])
    slow, fast = map(min, zip(*taken, strict=True))
    slow *= count / sizes.every_timed
    speeds = f"{count / slow:,.1f} → {count / fast:,.1f} a second"
    what = f"{what} ({unit} at a time: {sizes.every_timed} of them timed)"
    return Row(what, slow, fast, f"{speeds}; {found}{note}")


def stored(kind: TableSchema, columns: dict[str, Any]) -> pa.Table:
    """A table as it is when it is read from its file."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        write_table(path, kind, columns)
        return read_table(path, kind)


@contextmanager
def in_memory(protocol: Any) -> Iterator[None]:
    """Let a protocol take tables, and the record of its dataset, where it would read their files."""

    def selected(table: pa.Table, kind: TableSchema | str, columns: Sequence[str] | None = None) -> pa.Table:
        return table.select(list(columns)) if columns else table

    with ExitStack() as stack:
        for module in {reading, sys.modules[type(protocol).__module__]}:
            takers = {"read_table": selected, "read_importances": selected, "read_json": lambda record: record}
            for name, taken in takers.items():
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, taken))
        yield


@cache
def cell(count: int, device: str) -> Explained:
    """Texts of which one word in five decides, and random importances of a few measures and two seeds."""
    instances, random = texts(count, LENGTH), np.random.default_rng(0)
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
    lists = {"ids": instances.ids, "maskable": instances.maskable}
    lists["tokens"] = [[f"w{id_}" for id_ in ids] for ids in instances.ids]
    lists["groups"] = [((random.random(len(free)) < 0.2) & free).astype(np.int8) for free in instances.maskable]
    columns = {"split": instances.split, "instance": instances.instance, "label": instances.label, **lists}
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
        lambda: [asked_of(MODELS[0], device, seed) for seed in SEEDS],
        summary={"manipulation": truth},
    )


def only(whole: Explained, place: int) -> Explained:
    """The same cell with one instance."""

    def cut(table: pa.Table) -> pa.Table:
        return table.filter(pc.equal(table["instance"], place))

    importances = {measure: cut(table) for measure, table in whole.importances.items()}
    return replace(whole, predictions=cut(whole.predictions), importances=importances, texts=cut(whole.texts))


def frame(parts: list[Mapping[str, Any]], places: np.ndarray) -> pd.DataFrame:
    """What was scored of the instances at some places, in one order whichever way it came."""
    found = pd.concat([pd.DataFrame({name: list(values) for name, values in part.items()}) for part in parts])
    found = found[found["instance"].isin(places)].drop(columns=[*OF_ALL], errors="ignore")
    return found.sort_values(["seed", "instance"], kind="stable", ignore_index=True)


def same_frames(ours: pd.DataFrame, plain: pd.DataFrame) -> str:
    """How far the numbers of two frames are apart, if that is little and all else is equal."""
    gaps = []
    for column in plain:
        told = list(ours[column]), list(plain[column])
        if any(isinstance(value, str) for value in told[1]):
            gaps.append(0.0 if told[0] == told[1] else np.inf)
        else:
            gaps.append(apart(*told)[0])
    if not max(gaps) <= TOLERANCE:
        raise Refused(f"scores of the two ways differ by {max(gaps):.0e}")
    return f"scores differ by at most {max(gaps):.0e}"


def protocol_row(declaration: Declaration, device: str, sizes: Sizes) -> Row:
    """One protocol, both ways."""
    count = sizes.every_texts.instances
    whole, places = cell(count, device), spread(texts(count, LENGTH), sizes.every_timed)
    singles = [only(whole, place) for place in places]
    protocol = load(declaration.pointer)(**sampled(declaration, sizes))
    asks = declaration.gpu
    with in_memory(protocol):
        protocol.score(singles[0])
        return row(
            f"{declaration.name}, {MODELS[0] if asks else f'{len(MEASURES)} measures'}, {len(SEEDS)} seeds, "
            f"{count} texts of {LENGTH} words, {device if asks else 'host'}",
            lambda: frame([protocol.score(one) for one in singles], places),
            lambda: frame([protocol.score(whole)], places),
            count,
            sizes,
            "" if asks else "; a table operation, no model is asked",
            check=same_frames,
        )


def rows(device: str, sizes: Sizes) -> Iterator[Row | str]:
    """All registered measures and protocols, with a sentence for what cannot be measured."""
    for kind, make in (("measure", measure_row), ("protocol", protocol_row)):
        for declaration in Registry().all(kind):
            try:
                yield make(declaration, device, sizes)
            except (ImportError, Refused) as error:
                yield f"left out: {declaration.name}, {device} ({error})"
