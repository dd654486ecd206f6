"""The masks of each level, for the explorer."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.data.schemas import MASKS
from plumbline.explorer.examples import to_base64
from plumbline.explorer.rows import ChosenInstances, InstanceRows
from plumbline.figures.conventions import ordered

CURVE = ("strategy", "unit", "measure")


def masking_curves(points: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Curves with measures in the order of figures, and their ascending levels, each with its variant."""
    levels: dict[tuple[str, ...], list[list[Any]]] = {}
    for point in points:
        levels.setdefault(tuple(point[name] for name in CURVE), []).append([point["level"], point["variant"]])
    measures = ordered(measure for *_, measure in levels)
    return [
        dict(zip(CURVE, key, strict=True)) | {"levels": sorted(levels[key])}
        for key in sorted(levels, key=lambda key: (key[1] != "relative", key[0], measures.index(key[2])))
    ]


class Masks:
    """The masks of a model's variants for its first seed; several curves may share a variant."""

    def __init__(self, masked: Sequence[tuple[Mapping[str, Any], str]], chosen: ChosenInstances, folder: Path) -> None:
        paths = {point["variant"]: path for point, path in masked}
        self._rows = {variant: InstanceRows(path, MASKS, ["masked"], chosen, folder) for variant, path in paths.items()}
        self.seed = min((seed for rows in self._rows.values() for seed in rows.seeds), default=0)

    def between(self, start: int, stop: int) -> dict[str, list[str | None]]:
        """For each variant the mask of each text as packed bits, None for a text without one."""
        masks: dict[str, list[str | None]] = {}
        for variant, rows in self._rows.items():
            packed = {i: to_base64(np.packbits(row["masked"])) for i, row in rows.between(self.seed, start, stop)}
            masks[variant] = [packed.get(i) for i in range(stop - start)]
        return masks
