"""Where the artefacts of a study lie in a folder of results, whatever its name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.dag.sources import SourceFile
from plumbline.tables.sources import File, Sources

# The folder of results in the paths of a study.
RESULTS = "results"


def place(folder: Path, path: str) -> Path:
    """An artefact of a study in a folder of its results."""
    return folder / Path(path).relative_to(RESULTS)


def sources_of(folder: Path, reads: Mapping[str, list[SourceFile]], facts: Mapping[str, Any]) -> Sources:
    """The sources of a table or figure."""
    files = {
        source: [File(file.keys, str(place(folder, file.path))) for file in listed] for source, listed in reads.items()
    }
    return Sources(files, facts)
