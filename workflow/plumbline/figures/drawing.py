"""The argument of a declared figure: its sources, restricted to its dataset and model."""

import pandas as pd

from plumbline.store import TableSchema
from plumbline.tables.sources import File, Sources


class Drawing(Sources):
    """The sources of one figure; `dataset` and `model` are empty if it covers all of them."""

    def __init__(self, sources: Sources, dataset: str = "", model: str = "", title: str = "") -> None:
        super().__init__(sources.files, sources.facts)
        # The figures of a job share the tables that were read.
        self.__dict__["_frames"] = sources._frames
        self.dataset, self.model = dataset, model
        self._title = title

    @property
    def title(self) -> str:
        """The title of the figure, by default its dataset and model."""
        return self._title or ", ".join(filter(None, [self.dataset, self.model]))

    def rows(self, kind: TableSchema) -> pd.DataFrame:
        """The rows of the study's table for this dataset and model."""
        frame = self.frame(kind)
        for key, value in (("dataset", self.dataset), ("model", self.model)):
            if value and key in frame:
                frame = frame[frame[key] == value]
        return frame

    def here(self, source: str) -> list[File]:
        """The files of a source for this dataset and model."""
        cell = {"dataset": self.dataset, "model": self.model}
        return [
            file
            for file in self[source]
            if all(not value or file.keys.get(key, value) == value for key, value in cell.items())
        ]
