"""What a declared page of the report shows: a lead, a finding in a sentence, and sections with tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from markupsafe import Markup

from plumbline.report.tables import Table


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading: words, then tables by the name of their element, then markup of its own.

    `axis` says how small axes in the tables are drawn. Text is escaped unless it is Markup.
    """

    name: str
    title: str
    text: str | Markup = ""
    tables: Mapping[str, Table | None] = field(default_factory=dict)
    axis: str = ""
    html: str | Markup = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.html and not any(table and table.rows for table in self.tables.values())


@dataclass(frozen=True)
class Page:
    """The content of a page. `data` are plain values for its `scripts`, which are assets, as `styles` are."""

    sections: list[Section] = field(default_factory=list)
    lead: str | Markup = ""
    finding: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    template: str = "page.html"
    values: Mapping[str, Any] = field(default_factory=dict)


def made(frames: Mapping[str, pd.DataFrame], kind: str, make: Callable[[pd.DataFrame], Table | None]) -> Table | None:
    """A table made from the one of this kind, if the study has it and there is something to tell."""
    table = make(frames[kind]) if kind in frames else None
    return table if table and table.rows else None
