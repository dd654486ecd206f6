"""The tables of a folder of results."""

from pathlib import Path

import pandas as pd

from plumbline.errors import PlumblineError, nearest
from plumbline.store import read_stamped

CELL_KEYS = ["dataset", "variant", "model"]
RANDOM = "random"


class StoredTables:
    """The tables of a folder of results, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def tables(self) -> list[str]:
        """The names of the tables."""
        return sorted(path.stem for path in (self.folder / "tables").glob("*.parquet"))

    def table(self, name: str) -> pd.DataFrame:
        """A table by its name, such as `erasure`; the page *Tables* lists the columns of each."""
        if name not in self.tables:
            raise PlumblineError(f"There is no table '{name}' in '{self.folder}'; {nearest(name, self.tables)}")
        frame: pd.DataFrame = read_stamped(self.folder / "tables" / f"{name}.parquet")[1].to_pandas()
        return frame

    @property
    def scorecard(self) -> pd.DataFrame:
        """The value of every measure (rows) by every criterion that has one (columns); where it is NaN, the table
        `scorecard` has the reason.

        With several datasets, variants or models, rows are also labelled with these.
        """
        rows = self.table("scorecard")
        rows = rows.astype({key: str for key in ("criterion", *CELL_KEYS, "measure")})
        criteria = list(dict.fromkeys(rows["criterion"]))
        wide = rows.pivot(index=[*CELL_KEYS, "measure"], columns="criterion", values="value")[criteria]
        wide = wide.reindex(pd.MultiIndex.from_frame(rows[[*CELL_KEYS, "measure"]].drop_duplicates()))
        for key in CELL_KEYS:
            wide = wide.droplevel(key) if rows[key].nunique() == 1 else wide
        return wide.astype(float).dropna(axis=1, how="all")

    @property
    def directions(self) -> dict[str, str]:
        """Whether a `higher` or a `lower` value is better, by the criteria of `scorecard`."""
        rows = self.table("scorecard").astype({"criterion": str, "direction": str})
        better = dict(zip(rows["criterion"], rows["direction"], strict=True))
        return {criterion: better[criterion] for criterion in map(str, self.scorecard)}

    @property
    def verdict(self) -> list[str]:
        """What was found, in sentences, as the report's overview states it; the random measure must be named so."""
        from plumbline.protocols.scorecard.verdict import verdict

        return verdict({name: self.table(name) for name in self.tables}, RANDOM)
