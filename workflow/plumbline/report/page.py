"""The content of a declared page of the report: a lead, a finding in a sentence, and sections with tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from markupsafe import Markup

from plumbline.report.tables import Table


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading: text, then tables by the id of their element, then its own markup.

    `axis` is the style of small axes in the tables. Text is escaped unless it is Markup.
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
    """The content of a page. `data` are plain values for its `scripts`; these and `styles` are assets."""

    sections: list[Section] = field(default_factory=list)
    lead: str | Markup = ""
    finding: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    template: str = "page.html"
    values: Mapping[str, Any] = field(default_factory=dict)


def table_of(
    frames: Mapping[str, pd.DataFrame], kind: str, make: Callable[[pd.DataFrame], Table | None]
) -> Table | None:
    """A report table made from the study's table of this kind, or None without such a table or without rows."""
    table = make(frames[kind]) if kind in frames else None
    return table if table and table.rows else None
