"""Texts with their words masked, level by level, for the explorer."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.data.schemas import MASKS
from plumbline.explorer.examples import packed
from plumbline.explorer.rows import Chosen, InstanceRows
from plumbline.figures.conventions import ordered

CURVE = ("strategy", "unit", "measure")


def curves(points: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Curves in the order in which figures show measures, their levels from few to many, each with its variant."""
    found: dict[tuple[str, ...], list[list[Any]]] = {}
    for point in points:
        found.setdefault(tuple(point[name] for name in CURVE), []).append([point["level"], point["variant"]])
    place = {measure: i for i, measure in enumerate(ordered(measure for *_, measure in found))}
    return [
        dict(zip(CURVE, key, strict=True)) | {"levels": sorted(found[key])}
        for key in sorted(found, key=lambda key: (key[1] != "relative", key[0], place[key[2]]))
    ]


class Masks:
    """The masks of a model's variants for its first seed; several curves may share those of one."""

    def __init__(self, masked: Sequence[tuple[Mapping[str, Any], str]], chosen: Chosen, folder: Path) -> None:
        paths = {point["variant"]: path for point, path in masked}
        self._rows = {variant: InstanceRows(path, MASKS, ["masked"], chosen, folder) for variant, path in paths.items()}
        self.seed = min((seed for rows in self._rows.values() for seed in rows.seeds), default=0)

    def of(self, start: int, stop: int) -> dict[str, list[str | None]]:
        """For each variant the flags of each text's words, as bits."""
        told: dict[str, list[str | None]] = {}
        for variant, rows in self._rows.items():
            flags = dict(rows.of(self.seed, start, stop))
            of = [flags[place]["masked"] if place in flags else None for place in range(stop - start)]
            told[variant] = [None if one is None else packed(np.packbits(one)) for one in of]
        return told
