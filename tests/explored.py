"""Small handmade tables for the tests of the explorer, and a large one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from plumbline.data.pixels import pack
from plumbline.explorer.blocks import ExplorerOptions, SeedBlock, ShownAdversary, ShownVariant
from plumbline.explorer.build import build_explorer
from plumbline.report.build import write_site
from plumbline.store import schema_of, write_table
from tests.reports import CLASSES, CURVE, HOSTILE, LEVELS, content, summary, table

MEASURES = ["attention", "gradient"]
EXPLAINED = sorted({*MEASURES, "attention", "gradient", "random", "grad-cam"})
SEEDS = (0, 1)
WORDS = len(HOSTILE)
SIDE = 6
# A measure that scores the question and special tokens too: <sos>, and the question's own two.
EVERYWHERE = {"scores": [0.0] * 7 + [0.5], "pair": [-1.0, 2.0, 0.25], "specials": [4.0, 0.0, 1.0]}

Row = dict[str, Any]


def keys(texts: int, seeds: Sequence[int] = SEEDS) -> list[Row]:
    return [{"seed": seed, "split": "test", "instance": i} for seed in seeds for i in range(texts)]


def predictions(texts: int = 6, seeds: Sequence[int] = SEEDS) -> list[Row]:
    """Even texts are negative; texts 4 and 5 are predicted wrongly."""
    probabilities = [[0.9, 0.1], [0.2, 0.8]]
    return [
        key | {"label": i % 2, "probabilities": probabilities[int((i % 2 == 0) != (i < 4))]}
        for key in keys(texts, seeds)
        for i in [key["instance"]]
    ]


def importances(measure: str, texts: int = 6, words: int = WORDS, seeds: Sequence[int] = SEEDS) -> list[Row]:
    rng = np.random.default_rng(len(measure))
    return [key | {"scores": rng.normal(size=words).tolist()} for key in keys(texts, seeds)]


def instances(texts: int = 6) -> list[Row]:
    return [
        {"split": "test", "instance": i, "label": i % 2, "tokens": ["<sos>", *HOSTILE], "ids": list(range(9))}
        | {"maskable": [False] + [True] * 8, "tokens_b": ["<sos>", "who", "<is>", "?", "<eos>"]}
        | {"maskable_b": [False, True, True, True, False], "evidence": [False] * 7 + [True] * 2}
        for i in range(texts)
    ]


def subwords(texts: int = 6) -> list[Row]:
    """The same texts for a model with its own subwords; their second texts only end with a special token."""
    return [
        {"split": "test", "instance": i, "label": i % 2, "tokens": ["<s>", "Ġpie", "ces", "</s>"], "ids": [0, 7, 8, 2]}
        | {"maskable": [False, True, True, False], "tokens_b": [f"Ġwho{i}", "Ġis", "?", "</s>"]}
        | {"maskable_b": [True, True, True, False]}
        for i in range(texts)
    ]


def manipulated(texts: int = 6) -> list[Row]:
    """The first word determines the label, the third only looks like it; the label of text 0 was changed."""
    groups = {"groups": [0, 1, 0, 2] + [0] * 5, "tokens_b": None, "maskable_b": None, "evidence": None}
    return [row | groups | {"original_label": 1 if i == 0 else i % 2} for i, row in enumerate(instances(texts))]


def adversaries(texts: int = 6) -> list[Row]:
    """Only odd texts have an adversary at the smaller epsilon."""
    return [
        key
        | {"predicted_class": 0, "length": 8, "epsilon": epsilon, "feasible": int(epsilon > 0.01) + key["instance"] % 2}
        | {"jsd": 0.51234, "change": 0.012345, "adversary": [0.125] * 8}
        for epsilon in (0.05, 0.01)
        for key in keys(texts)
    ]


def attention(seed: int, *heads: list[float], texts: int = 6) -> list[Row]:
    weights = [weight for head in heads for weight in head]
    return [key | {"heads": len(heads), "attention": weights} for key in keys(texts, [seed])]


def masks(level: int, texts: int = 6, words: int = WORDS, seeds: Sequence[int] = SEEDS) -> list[Row]:
    """The first words are masked for seed 0, the last ones for seed 1; text 3 has one more."""
    count = words * level // 100
    return [
        {"seed": seed, "split": split, "instance": i}
        | {"masked": [(k if seed == 0 else words - 1 - k) < count + (i == 3) for k in range(words)]}
        for seed in seeds
        for split in ("train", "test")
        for i in range(texts)
    ]


def point(measure: str = "attention", level: int = 10, **others: Any) -> Row:
    given = CURVE | {"measure": measure, "level": level, "seeds": "0-1"} | others
    return {"variant": f"{given['strategy']}/{given['unit']}/{measure}/{level}"} | given


def images(texts: int = 6) -> list[Row]:
    """Grey images whose upper left pixel is red; the first row determines the label."""
    rows = []
    for i in range(texts):
        image = np.full((SIDE, SIDE, 3), 40 * i, np.uint8)
        image[0, 0] = 255, 0, 0
        row = {"split": "test", "instance": i, "label": i % 2, "tokens": [], "ids": pack(image).tolist()}
        region = np.arange(SIDE * SIDE) < SIDE
        rows.append(row | {"maskable": [True] * SIDE**2, "groups": region.astype(int).tolist()})
    return rows


class Tables:
    """Tables written to a folder, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def write(self, name: str, rows: list[Row] | pa.Table) -> str:
        """A file of a kind; importances are repeated for every measure of the tests."""
        self._count += 1
        path, kind = self._folder / f"{self._count}.parquet", schema_of(name)
        if name != "attributions":
            write_table(path, kind, rows if isinstance(rows, pa.Table) else table(name, rows))
            return str(path)
        scores = rows if isinstance(rows, pa.Table) else table(name, rows).drop_columns(["measure"])
        copies = [scores.append_column("measure", pa.array([measure] * len(scores))) for measure in EXPLAINED]
        write_table(path, kind, pa.concat_tables(copies), group="measure")
        return str(path)

    def block(self, model: str = "bilstm", **others: Any) -> SeedBlock:
        """A model with two measures."""
        scores = {measure: self.write("attributions", importances(measure)) for measure in MEASURES}
        given: Row = {"predictions": self.write("predictions", predictions()), "importances": scores} | others
        return SeedBlock(model, **given)

    def adversary(self, title: str, base_seed: int, seed: int, weights: list[float]) -> ShownAdversary:
        rows = [key | {"label": 0, "probabilities": [0.1 * seed, 1 - 0.1 * seed]} for key in keys(6, [seed, seed + 1])]
        path = self.write("attention", attention(seed, weights))
        return ShownAdversary(title, base_seed, seed, path, self.write("predictions", rows))

    def shown(self, *blocks: SeedBlock, rows: list[Row] | None = None, **others: Any) -> ShownVariant:
        """A dataset of six texts with questions."""
        path = self.write("instances", instances() if rows is None else rows)
        given = {"dataset": "sst", "variant": "plain", "summary": summary(), "second": "question"} | others
        return ShownVariant(instances=path, blocks=blocks, **given)

    def masked(self, *measures: str, strategy: str = "recursive") -> list[tuple[Row, str]]:
        """The points of a curve for each measure."""
        return [
            (point(measure, level, strategy=strategy), self.write("masks", masks(level)))
            for measure in measures
            for level in LEVELS
        ]


def everything(folder: Path) -> list[ShownVariant]:
    """Texts with questions, adversaries, adversarial models, masks and subwords; a manipulated variant; images."""
    tables = Tables(folder)
    own = tables.write("attention", attention(1, [0.5, 0.5] + [0.0] * 6))
    adversary = tables.adversary("<attefa>", 1, 5, [0.0] * 7 + [1.0])
    attacked = tables.write("adversaries", adversaries())
    bilstm = tables.block("bilstm", adversaries=attacked, attention=own, adversarial_models=[adversary])
    whole = [key | EVERYWHERE for key in keys(6)]
    average = tables.block("average", importances={name: tables.write("attributions", whole) for name in MEASURES})
    cut = {name: tables.write("attributions", importances(name, words=2)) for name in MEASURES}
    texts = tables.shown(
        bilstm,
        average,
        tables.block("roberta", importances=cut),
        subwords={"roberta": tables.write("instances", subwords())},
        masks={"bilstm": [*tables.masked(*MEASURES), *tables.masked("attention", strategy="roar")]},
    )
    changed = tables.shown(tables.block(), rows=manipulated(), variant="articles")
    maps = {name: tables.write("attributions", importances(name, words=SIDE**2)) for name in ("grad-cam", "random")}
    dots = tables.shown(tables.block("resnet", importances=maps), rows=images(), dataset="dots", images=True)
    return [texts, changed, dots]


def large(folder: Path, count: int) -> ShownVariant:
    """Texts of six to fourteen words with a model of one seed and three measures; text 77777 has a unique word."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(6, 15, count)
    words = np.array([f"word{i}" for i in range(500)])
    tokens = np.split(words[rng.integers(0, 500, lengths.sum())], np.cumsum(lengths)[:-1])
    if count > 77777:
        tokens[77777][0] = "needle"
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    number, label = np.arange(count), rng.integers(0, 2, count)
    key = {"split": pa.array(["test"] * count).dictionary_encode(), "instance": pa.array(number, pa.int32())}

    def lists(values: pa.Array) -> pa.Array:
        return pa.ListArray.from_arrays(offsets, values)

    whole = int(lengths.sum())
    texts = {"label": pa.array(label, pa.int32()), "tokens": lists(pa.array(np.concatenate(tokens)))}
    texts |= {"ids": lists(pa.array(np.zeros(whole, np.int32))), "maskable": lists(pa.array(np.ones(whole, bool)))}
    share = rng.random(count).astype(np.float32)
    probabilities = pa.ListArray.from_arrays(
        pa.array(np.arange(count + 1) * 2, pa.int32()), pa.array(np.stack([share, 1 - share], 1).ravel())
    )
    seed = {"seed": pa.array(np.zeros(count, np.int64))}
    tables = Tables(folder)
    scores = {
        measure: tables.write(
            "attributions", pa.table({**seed, **key, "scores": lists(pa.array(rng.normal(size=whole), pa.float32()))})
        )
        for measure in ("attention", "gradient", "random")
    }
    predicted = pa.table({**seed, **key, "label": texts["label"], "probabilities": probabilities})
    split = {"instances": count, "mean_length": float(lengths.mean())}
    return ShownVariant(
        "many",
        "plain",
        {"classes": CLASSES, "splits": {"test": split}},
        tables.write("instances", pa.table({**key, **texts})),
        [SeedBlock("bilstm", tables.write("predictions", predicted), scores)],
    )


def write_explorer(folder: Path, shown: Sequence[ShownVariant], options: ExplorerOptions) -> Path:
    """The page of the explorer with its data."""
    write_site(folder, content(), ["explorer"])
    build_explorer(folder / "explorer", "A <study>", shown, options)
    return folder / "explorer.html"
