"""What a declared figure is given: the sources that it reads, restricted to the dataset and model that it is about."""

import pandas as pd

from plumbline.store import TableSchema
from plumbline.tables.sources import File, Sources


class Drawing(Sources):
    """The sources of one figure. Its dataset and model are empty where it is about all of them."""

    def __init__(self, sources: Sources, dataset: str = "", model: str = "") -> None:
        super().__init__(sources.files, sources.facts)
        # Figures of one job read the same tables.
        self.__dict__["_frames"] = sources._frames
        self.dataset, self.model = dataset, model

    @property
    def title(self) -> str:
        """What the figure is about."""
        return ", ".join(filter(None, [self.dataset, self.model]))

    def rows(self, kind: TableSchema) -> pd.DataFrame:
        """The rows of the study's table about this dataset and model."""
        frame = self.frame(kind)
        for key, value in (("dataset", self.dataset), ("model", self.model)):
            if value and key in frame:
                frame = frame[frame[key] == value]
        return frame

    def here(self, source: str) -> list[File]:
        """The files of a source about this dataset and model."""
        wanted = {"dataset": self.dataset, "model": self.model}
        return [
            file
            for file in self[source]
            if all(not value or file.keys.get(key, value) == value for key, value in wanted.items())
        ]
