"""The files that the report is made from, read."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from plumbline.report.adversary import title
from plumbline.report.examples import ADVERSARIES, Block, Rival
from plumbline.report.tables import named
from plumbline.store import read_stamped, read_table

FIGURES = Path("results", "figures")


def read_tables(paths: Sequence[str]) -> dict[str, pd.DataFrame]:
    """The study's tables by their kind, as each file states it; a user's protocol may have brought kinds of its own."""
    return {kind: table.to_pandas() for kind, table in map(read_stamped, paths)}


def read_figures(paths: Sequence[str]) -> dict[str, str]:
    """SVG text by the path below the folder of figures, without suffix."""
    return {
        Path(path).relative_to(FIGURES).with_suffix("").as_posix(): Path(path).read_text(encoding="utf-8")
        for path in paths
    }


def read_blocks(
    cells: list[dict[str, Any]],
    predictions: Sequence[str],
    importances: Sequence[str],
    adversaries: Sequence[str] = (),
    attention: Sequence[str] = (),
    rivals: Sequence[str] = (),
) -> Iterator[Block]:
    """One block per cell, read one at a time. `importances` lists the files of the first cell's measures, then on;
    `adversaries` one file of each cell that has them. Of a cell with rivals `attention` lists its own file and theirs,
    `rivals` their predictions."""
    files, attacked, looks, said = map(iter, (importances, adversaries, attention, rivals))
    for cell, path in zip(cells, predictions, strict=True):
        told = [(measure, next(files)) for measure in cell["measures"]]
        tables = ((measure, read_table(file, "attributions")) for measure, file in told)
        found = read_table(next(attacked), "adversaries", ADVERSARIES) if cell.get("attacked") else None
        against = cell.get("rivals", [])
        own = read_table(next(looks), "attention") if against else None
        others = [
            Rival(
                title(rival["adversary"], rival["objective"], rival["strength"]),
                rival["base_seed"],
                rival["seed"],
                read_table(next(looks), "attention"),
                read_table(next(said), "predictions"),
            )
            for rival in against
        ]
        shown_as = named(cell["dataset"], cell.get("variant", "plain"))
        yield Block(shown_as, cell["model"], read_table(path, "predictions"), tables, found, own, others)


def read_masks(points: Sequence[dict[str, Any]], paths: Sequence[str]) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """Each point of a curve with its table of masks, one at a time; only of a dataset's and model's first block."""
    first: dict[tuple[str, str], str] = {}
    for point, path in zip(points, paths, strict=True):
        if first.setdefault((point["dataset"], point["model"]), point["seeds"]) == point["seeds"]:
            yield point, read_table(path, "masks")
