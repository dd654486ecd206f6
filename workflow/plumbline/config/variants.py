"""Variants of datasets: those of every study, and those made by a manipulation."""

from dataclasses import dataclass
from typing import Any

# The original dataset; the same, with importances of all splits for masking; and the prefix of variants that hold
# nothing but the positions of masked words.
PLAIN, UNMASKED, POSITIONS = "plain", "unmasked", "positions/"


@dataclass(frozen=True)
class Manipulated:
    """A variant made by a manipulation. `level` is the index of its level, from 1, and `visibility` how visible the
    manipulation is, in its own unit."""

    variant: str
    name: str
    kind: str
    options: dict[str, Any]
    r: float | None
    matrix: list[list[float]] | None
    classes: list[str] | None
    draw: int
    level: int | None
    visibility: float | None
    seed: int
    datasets: tuple[str, ...]
