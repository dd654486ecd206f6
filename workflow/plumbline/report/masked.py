"""Texts with their words masked, level by level, for the page."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from plumbline.figures.style import ordered
from plumbline.report.examples import describe_texts

CURVE = ("strategy", "unit", "measure")
# At most so many texts of a dataset are shown, and of a longer text so many tokens.
MOST_TEXTS = 4
MOST_TOKENS = 150


def collect_masked(
    masked: Iterable[tuple[Mapping[str, Any], pa.Table]],
    instances: Mapping[tuple[str, str], pa.Table],
    numbers: Mapping[str, list[int]],
    split: str = "test",
    seconds: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """The masked texts of every dataset and model as plain values, of the first seed.

    `masked` pairs points of curves (dataset, model, strategy, unit, measure, level, variant) with tables `masks`;
    `instances` has the texts of each dataset as each model reads them, and `numbers` which of a dataset's are shown.
    The masks of a variant are, for each text, how many words are masked and, for those that are shown, a string of 0
    and 1; curves name the variant of each level, as several may share one.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for point, table in masked:
        key = dataset, model = point["dataset"], point["model"]
        if not numbers.get(dataset):
            continue
        if key not in found:
            texts = [_shortened(text) for text in describe_texts(instances[key], split, numbers[dataset])]
            second = (seconds or {}).get(dataset, "second text")
            seed = pc.min(table["seed"]).as_py()
            found[key] = {"dataset": dataset, "model": model, "split": split, "second": second, "seed": seed}
            found[key] |= {"texts": texts, "masks": {}, "curves": {}}
        here = found[key]
        if point["variant"] not in here["masks"]:
            here["masks"][point["variant"]] = _masks(table, split, here["seed"], here["texts"])
        curve = here["curves"].setdefault(tuple(point[name] for name in CURVE), [])
        curve.append([point["level"], point["variant"]])
    return [shown | {"curves": _listed(shown["curves"])} for shown in found.values()]


def _shortened(text: dict[str, Any]) -> dict[str, Any]:
    """The beginning of a text, and how many words the whole of it has."""
    kept = {key: text[key] for key in ("number", "label", "second") if key in text}
    cut = {key: text[key][:MOST_TOKENS] for key in ("tokens", "scored")}
    return kept | cut | {"words": sum(text["scored"])}


def _masks(table: pa.Table, split: str, seed: int, texts: list[dict[str, Any]]) -> list[list[Any]]:
    """How many words of each text are masked, and which of those that are shown."""
    numbers = pa.array([text["number"] for text in texts], table["instance"].type)
    wanted = pc.and_(pc.is_in(table["instance"], numbers), pc.equal(table["seed"], seed))
    here = table.filter(pc.and_(wanted, pc.equal(table["split"].cast(pa.string()), split)))
    flags = dict(zip(here["instance"].to_pylist(), here["masked"].to_pylist(), strict=True))
    return [
        [sum(flags[text["number"]]), "".join("01"[flag] for flag in flags[text["number"]][: sum(text["scored"])])]
        for text in texts
    ]


def _listed(curves: dict[tuple[str, ...], list[list[Any]]]) -> list[dict[str, Any]]:
    """Curves in the order in which figures show measures, their levels from few to many."""
    place = {measure: i for i, measure in enumerate(ordered(measure for *_, measure in curves))}
    return [
        dict(zip(CURVE, key, strict=True)) | {"levels": sorted(curves[key])}
        for key in sorted(curves, key=lambda key: (key[1] != "relative", key[0], place[key[2]]))
    ]
