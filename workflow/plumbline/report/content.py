"""The content of the report."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Content:
    """The study, its tables by name and its figures as SVG text by paths such as `tau-matrix/movie/cnn-tanh`; `parts`
    has the encoder and attention of models that have them; `variants` are the records of manipulated datasets."""

    study: dict[str, Any]
    cells: list[dict[str, Any]]
    excluded: list[dict[str, Any]]
    summaries: list[dict[str, Any]]
    tables: dict[str, pd.DataFrame]
    figures: dict[str, str] = field(default_factory=dict)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    variants: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def random(self) -> str:
        """The study's name of the random measure, or an empty string."""
        return next(iter(self._of_kind("random")), "")

    @property
    def degraded(self) -> list[str]:
        """The study's names of degraded measures."""
        return self._of_kind("degraded")

    def _of_kind(self, kind: str) -> list[str]:
        return [name for name, entry in self.study["measures"].items() if (entry.get("kind") or name) == kind]

    @property
    def classes(self) -> dict[str, list[str]]:
        """The class names of each dataset."""
        return {summary["dataset"]: summary["classes"] for summary in self.summaries}
