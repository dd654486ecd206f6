"""What is compared, how much of it, and how far apart it is at most."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isinf, isnan, nan
from typing import Any

Key = tuple[Any, ...]
Row = Mapping[str, Any]


@dataclass
class Check:
    """One comparison: its rows, the largest difference among them, where that is, and what is allowed."""

    name: str
    tolerance: float
    rows: int = 0
    difference: float = 0.0
    worst: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is further apart than allowed."""
        return self.difference <= self.tolerance


def apart(expected: Any, stored: Any) -> float:
    """How far two values are from each other: 0 if both are missing, infinite if one is or if texts differ."""
    if isinstance(expected, str) or isinstance(stored, str):
        return 0.0 if expected == stored else inf
    one, other = (nan if value is None else float(value) for value in (expected, stored))
    if isnan(one) or isnan(other):
        return 0.0 if isnan(one) and isnan(other) else inf
    if isinf(one) or isinf(other):
        return 0.0 if one == other else inf
    return abs(one - other)


@dataclass
class Checks:
    """All comparisons by name, in the order in which they began, and what was left out."""

    found: dict[str, Check] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def note(self, name: str, difference: float, tolerance: float, where: Any = "") -> None:
        """Count one row that is so far off."""
        check = self.found.setdefault(name, Check(name, tolerance))
        check.rows += 1
        if difference > check.difference or isnan(difference):
            check.difference, check.worst = (inf if isnan(difference) else difference), str(where)

    def same(
        self, name: str, expected: Iterable[Any], stored: Iterable[Any] | None, tolerance: float, where: Any = ""
    ) -> None:
        """Compare one row of values."""
        one, other = list(expected), [] if stored is None else list(stored)
        far = inf if len(one) != len(other) else max(map(apart, one, other), default=0.0)
        self.note(name, far, tolerance, where)

    def tables(
        self,
        name: str,
        expected: Iterable[Row],
        stored: Iterable[Row],
        keys: Sequence[str],
        tolerance: float,
        columns: Sequence[str],
    ) -> None:
        """Compare the rows of two tables by their keys; a row that one of them lacks is infinitely far off."""
        one, other = (indexed(rows, keys) for rows in (expected, stored))
        for key in {**one, **other}:
            if key in one and key in other:
                self.same(name, [one[key][c] for c in columns], [other[key][c] for c in columns], tolerance, key)
            else:
                self.note(name, inf, tolerance, f"{key} is {'not stored' if key in one else 'not expected'}")

    def skip(self, line: str) -> None:
        """Say once what is left out."""
        if line not in self.skipped:
            self.skipped.append(line)

    @property
    def failed(self) -> list[Check]:
        """Those that are further off than allowed."""
        return [check for check in self.found.values() if not check.passed]

    def table(self) -> str:
        """Everything as lines of text."""
        rows = [("check", "rows", "largest difference", "allowed", "")]
        for one in self.found.values():
            verdict = "" if one.passed else f"FAILED at {one.worst}"
            rows.append((one.name, str(one.rows), f"{one.difference:.1e}", f"{one.tolerance:.0e}", verdict))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [
            " | ".join([c.ljust(w) for c, w in zip(row, widths, strict=False)] + [row[4]]).rstrip(" |") for row in rows
        ]
        return "\n".join([*lines, *(f"skipped: {line}" for line in self.skipped)])


def indexed(rows: Iterable[Row], keys: Sequence[str]) -> dict[Key, Row]:
    """Rows by some of their columns; two rows with the same ones are an error."""
    found: dict[Key, Row] = {}
    for row in rows:
        key = tuple("" if row[name] is None or row[name] != row[name] else row[name] for name in keys)
        if key in found:
            raise ValueError(f"two rows have the key {key}")
        found[key] = row
    return found


def grouped(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """Rows by a key, in their order."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
