"""What a table or figure is made from: files, each with the keys of what it is about, and facts of the study."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from plumbline.errors import PlumblineError
from plumbline.store import TableSchema, read_record, read_stamped, read_table
from plumbline.tables.names import argument


class File(NamedTuple):
    """A file of a source and the keys of what it is about, such as dataset, variant, model and seeds."""

    keys: Mapping[str, Any]
    path: str


class Sources:
    """The files of each source that a declaration `reads`, and the facts that it `params`."""

    def __init__(self, files: Mapping[str, Sequence[File]], facts: Mapping[str, Any] | None = None) -> None:
        self.files, self.facts = files, facts or {}

    @classmethod
    def of_job(cls, inputs: Any, params: Any) -> "Sources":
        """Those of a Snakemake job, whose params have the `files` of each source: their keys in the order of inputs."""
        return cls({source: _files(inputs[argument(source)], of) for source, of in params.files.items()}, params.facts)

    def __contains__(self, source: str) -> bool:
        return bool(self.files.get(source))

    def __getitem__(self, source: str) -> list[File]:
        return list(self.files.get(source, ()))

    def frame(self, kind: TableSchema) -> pd.DataFrame:
        """The study's table of a kind; it is read once."""
        if kind.name not in self._frames:
            if kind.name not in self:
                known = ", ".join(source for source in self.files if source in self)
                raise PlumblineError(f"There is no table '{kind.name}' among what is read: {known or 'nothing'}.")
            self._frames[kind.name] = read_table(self[kind.name][0].path, kind).to_pandas()
        return self._frames[kind.name]

    def any_frame(self, name: str) -> pd.DataFrame:
        """The study's table of a name, whatever kind it says it is."""
        return read_stamped(self[name][0].path)[1].to_pandas()

    @cached_property
    def _frames(self) -> dict[str, pd.DataFrame]:
        return {}

    def classes(self, source: str) -> dict[str, list[str]]:
        """The names of the classes of each dataset whose record is among a source."""
        records = [read_record(path) for _, path in self[source]]
        return {record["dataset"]: record["classes"] for record in records}


def _files(paths: str | Sequence[str], keys: Sequence[Mapping[str, Any]]) -> list[File]:
    found = [paths] if isinstance(paths, str) else list(paths)
    return [File(of, path) for of, path in zip(keys, found, strict=True)]
