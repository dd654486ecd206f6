"""Variants of datasets: those that every study has, and those that a manipulation makes."""

from dataclasses import dataclass
from typing import Any

# As it is; the same where masking asks for importances of all splits; and with nothing left but which words are masked.
PLAIN, UNMASKED, POSITIONS = "plain", "unmasked", "positions/"


@dataclass(frozen=True)
class Manipulated:
    """A variant that a manipulation makes: `options` are values, `level` counts those of its levels from 1, and
    `visibility` is how visible it is, in the manipulation's own terms."""

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
