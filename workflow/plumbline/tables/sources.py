"""The sources of a table or figure: files with their keys, and facts of the study."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from plumbline.errors import PlumblineError
from plumbline.store import TableSchema, read_record, read_stamped, read_table
from plumbline.tables.names import argument


class File(NamedTuple):
    """A file of a source and its keys, such as dataset, variant, model and seeds."""

    keys: Mapping[str, Any]
    path: str


class Sources:
    """The files of each source that a declaration `reads`, and the facts named by its `params`."""

    def __init__(self, files: Mapping[str, Sequence[File]], facts: Mapping[str, Any] | None = None) -> None:
        self.files, self.facts = files, facts or {}

    @classmethod
    def of_job(cls, inputs: Any, params: Any) -> "Sources":
        """The sources of a Snakemake job; `params.files` has the keys of each source's files in the order of inputs."""
        files = {source: _files(inputs[argument(source)], keys) for source, keys in params.files.items()}
        return cls(files, params.facts)

    def __contains__(self, source: str) -> bool:
        return bool(self.files.get(source))

    def __getitem__(self, source: str) -> list[File]:
        return list(self.files.get(source, ()))

    def frame(self, kind: TableSchema) -> pd.DataFrame:
        """The study's table of a schema; it is read once."""
        if kind.name not in self._frames:
            if kind.name not in self:
                known = ", ".join(source for source in self.files if source in self)
                raise PlumblineError(f"The table '{kind.name}' is not among the sources: {known or 'none'}.")
            self._frames[kind.name] = read_table(self[kind.name][0].path, kind).to_pandas()
        return self._frames[kind.name]

    def any_frame(self, name: str) -> pd.DataFrame:
        """The study's table of a name, whatever its schema."""
        return read_stamped(self[name][0].path)[1].to_pandas()

    @cached_property
    def _frames(self) -> dict[str, pd.DataFrame]:
        return {}

    def classes(self, source: str) -> dict[str, list[str]]:
        """The class names of each dataset whose record is in a source."""
        records = [read_record(path) for _, path in self[source]]
        return {record["dataset"]: record["classes"] for record in records}


def _files(paths: str | Sequence[str], keys: Sequence[Mapping[str, Any]]) -> list[File]:
    return [File(*file) for file in zip(keys, [paths] if isinstance(paths, str) else paths, strict=True)]
