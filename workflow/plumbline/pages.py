"""Pages whose numbers are read from recorded runs.

A page is a Jinja template with expressions in place of numbers. It fails where a row is missing, and so cannot go out
of date.
"""

import re
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from textwrap import TextWrapper
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
from matplotlib.figure import Figure

from plumbline.api.results import load_results
from plumbline.errors import PlumblineError, nearest
from plumbline.figures import style
from plumbline.figures.values import lines, values
from plumbline.papers.comparison import counts
from plumbline.papers.figures import published_and_ours
from plumbline.protocols.scorecard import shares
from plumbline.protocols.scorecard.figures import meta_evaluation, scorecard, trust
from plumbline.protocols.scorecard.trust import sign_of
from plumbline.protocols.sensitivity.table import smallest_seen
from plumbline.record import CONFIG, RecordedRun, markdown_table, only, with_interval
from plumbline.report.manifest import MANIFEST
from plumbline.report.tables import number
from plumbline.store import write_text

WIDTH = 120
# What begins an item of a list.
_ITEM = re.compile(r"(?:- |\d+\. )")
# The beginning of every page.
WRITTEN = "<!-- Written by `plumbline fill"
# Folder of a page's pictures, next to the page.
IMAGES = "images"
# Titles of columns of comparisons, where they are not the column's own name.
TITLES = {"predicted_class": "class", "measure_a": "measure", "measure_b": "measure"}
# Figures of a page, each drawn from rows of a table.
PICTURES: dict[str, Callable[[pd.DataFrame, str], Figure]] = {
    "scorecard": scorecard,
    "meta-evaluation": meta_evaluation,
    "trust": trust,
    "published-and-ours": published_and_ours,
    "values": values,
    "lines": lines,
}


def grid(rows: pd.DataFrame, down: str, across: str, decimals: int = 2, intervals: bool = True) -> str:
    """A table of values by two keys: of one row with its interval, of several rows their mean, of none empty."""
    columns = list(rows[across].unique())
    lines = []
    for name, some in rows.groupby(down, sort=False, observed=True):
        cells = []
        for column in columns:
            cell = some[some[across] == column]
            if intervals and len(cell) == 1 and "ci_low" in cell:
                row = cell.iloc[0]
                cells.append(with_interval(row["value"], row["ci_low"], row["ci_high"], decimals))
            else:
                cells.append(number(cell["value"].mean(), decimals) if len(cell) else "")
        lines.append([str(name), *cells])
    return markdown_table([down, *map(str, columns)], lines)


def together(series: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Rows of several frames, each with its name in the column `series`."""
    return pd.concat([frame.assign(series=name) for name, frame in series.items()], ignore_index=True)


@cache
def tables_of_shares(run: RecordedRun) -> Mapping[str, pd.DataFrame]:
    """The tables of a recorded run from which criteria by share of words are read."""
    return {name: run.rows(name) for name in shares.READ if run.has(name)}


@cache
def equal_terms(run: RecordedRun, without: tuple[str, ...] = ()) -> pd.DataFrame:
    """Criteria on equal terms, also for each share of words, without some measures."""
    return shares.equal_terms(tables_of_shares(run), without)


@cache
def by_share(run: RecordedRun, without: tuple[str, ...] = ()) -> pd.DataFrame:
    """Criteria on equal terms for each share of words."""
    return shares.by_share(tables_of_shares(run), without)


def difference(run: RecordedRun, first: str, second: str, without: tuple[str, ...] = (), model: str = "") -> str:
    """How much higher τ with the truth is on equal terms by one criterion than by another, with its interval."""
    found = shares.difference(tables_of_shares(run), (first, second), without, model)
    if found["status"] != "ok":
        raise PlumblineError(f"'{first}' and '{second}' are not both compared with the truth.")
    return with_interval(found["tau"], found["ci_low"], found["ci_high"], 2)


def agreement(rows: pd.DataFrame, /, **keys: Any) -> str:
    """τ of the row of a table of trust with these values, with its interval, in bold if the criterion agrees with the
    truth or contradicts it; a dash without such a row or value."""
    found = only(rows, **keys)
    if len(found) > 1:
        raise PlumblineError(f"{len(found)} rows have {keys}; add a key.")
    if found.empty or pd.isna(found["tau"].iloc[0]):
        return "–"
    row = found.iloc[0]
    text = with_interval(row["tau"], row["ci_low"], row["ci_high"], 2)
    return f"**{text}**" if sign_of(found).iloc[0] else text


def comparison(rows: pd.DataFrame, *keys: str, decimals: int = 2, notes: bool = False) -> str:
    """A table of published numbers and ours, from rows of the table `reproduction`, by columns that tell them apart.

    The spread of ours is the standard deviation over seeds. With `notes`, those of the rows are the last column.
    """
    later = rows["published_later"].notna().any()
    titles = [*keys, "published", *(["later run"] if later else []), "ours", "tolerance", "within"]
    lines = []
    for row in rows.to_dict("records"):
        cells = ["" if pd.isna(row[key]) else str(row[key]) for key in keys]
        cells.append(with_interval(row["published"], row["published_low"], row["published_high"], decimals))
        cells += [number(row["published_later"], decimals)] if later else []
        spread = "" if pd.isna(row["ours_spread"]) else f" ± {number(row['ours_spread'], decimals)}"
        cells += [number(row["ours"], decimals) + spread, number(row["tolerance"], decimals)]
        cells.append("not judged" if pd.isna(row["within"]) else "yes" if row["within"] else "**no**")
        lines.append([*cells, "" if pd.isna(row["note"]) else str(row["note"])] if notes else cells)
    titles = [TITLES.get(title, title.replace("_", " ")) for title in [*titles, *(["note"] if notes else [])]]
    return markdown_table(titles, lines)


def fill_page(template: Path, folder: Path | None = None, into: Path | None = None) -> str:
    """The page of a template, with numbers of the recorded run in its folder or of another one.

    `recorded(NAME, ...)` is a run in a folder next to the template or next to its folder, or several parts of one; a
    template without its own run has only these. Pictures are drawn next to the file `into`, and named after the
    template's folder.
    """
    home = folder or template.parent
    # Pictures of a template without its own run are named after it, and not after the folder that holds all runs.
    without = folder is None and not (home / "tables").is_dir() and any(home.glob("*/tables"))
    own = template.stem if without else ""

    def recorded(name: str, *parts: str) -> RecordedRun:
        return RecordedRun(*((home if (home / n).is_dir() else home.resolve().parent) / n for n in (name, *parts)))

    def image(title: str, draw: Callable[[], Figure], *parts: str) -> str:
        name = "-".join(filter(None, [own or template.resolve().parent.name, *parts])) + ".png"
        if into:
            style.save(draw(), into.parent / IMAGES / name)
        return f"![{title}]({IMAGES}/{name})"

    def picture(kind: str, rows: pd.DataFrame, title: str, suffix: str = "") -> str:
        if kind not in PICTURES:
            raise PlumblineError(f"there is no picture '{kind}'; {nearest(kind, list(PICTURES))}")
        return image(title, lambda: PICTURES[kind](rows, title), kind, suffix)

    def plot(figure: str, title: str, dataset: str = "", model: str = "", run: str = "") -> str:
        place = recorded(run).folder if run else home
        # Without a manifest, the config next to the tables says what they are of.
        results = load_results(place, None if (place / MANIFEST).is_file() else place / CONFIG)
        return image(title, lambda: results.plot(figure, dataset=dataset, model=model), figure, dataset, model, run)

    environment = Environment(
        loader=FileSystemLoader(template.parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    environment.globals.update(
        recorded=recorded,
        smallest_seen=smallest_seen,
        picture=picture,
        grid=grid,
        comparison=comparison,
        counts=counts,
        only=only,
        together=together,
        with_interval=with_interval,
        equal_terms=equal_terms,
        by_share=by_share,
        difference=difference,
        agreement=agreement,
    )
    if not own:
        run = RecordedRun(home)
        environment.globals.update(
            rows=run.rows, value=run.value, interval=run.interval, verdict=run.verdict, plot=plot
        )
        if (run.folder / MANIFEST).is_file():
            environment.globals["manifest"] = run.manifest
    try:
        page = environment.get_template(template.name).render()
    except (PlumblineError, TemplateError, LookupError, TypeError, ValueError, AttributeError) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(template)]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        said = f"there is no {error}" if isinstance(error, LookupError) else error
        raise PlumblineError(f"{template}{f', line {line}' if line else ''}: {said}") from error
    return f"{WRITTEN} {template.as_posix()}`; change that file. -->\n\n{_wrapped(page)}\n"


def write_page(page: str, file: Path) -> None:
    """Write a page to a new file, or over a page that was written so."""
    if file.exists() and not (
        file.is_file() and file.read_text(encoding="utf-8", errors="replace").startswith(WRITTEN)
    ):
        raise PlumblineError(f"'{file}' exists and was not written by `plumbline fill`; give another file.")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, page)


def _fill_item(item: str) -> str:
    """A paragraph or an item of a list, whose further lines are indented."""
    mark = _ITEM.match(item)
    indent = " " * len(mark[0]) if mark else ""
    wrapper = TextWrapper(WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(" ".join(item.split()))


def _wrapped(page: str) -> str:
    """A page whose paragraphs and list items have lines of at most WIDTH characters, as expressions change lengths."""
    blocks = []
    for block in re.split(r"\n{2,}", page.strip()):
        # Headings, tables, code, images and comments stay as they are.
        if not block.startswith(("#", "|", "    ", "!", "<", "`" * 3)):
            block = "\n".join(map(_fill_item, re.split(rf"\n(?={_ITEM.pattern})", block)))
        blocks.append(block)
    return "\n\n".join(blocks)
