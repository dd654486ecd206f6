"""The checks of the Snakefile on a config before any job, in the test's process."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plumbline.config.external import locate, locate_files
from plumbline.config.resolve import resolve
from plumbline.config.runs import Runs, list_runs
from plumbline.data.raw import check_raw, downloads


def parsed(config: dict[str, Any], folders: Sequence[Path], raw_there: bool = True) -> Runs:
    """The runs of a study, its files checked as `rules/common.smk` checks them; the first error is raised."""
    resolved = resolve(locate_files(config, folders))
    runs = list_runs(resolved)
    raw = Path(os.environ.get("PLUMBLINE_DATA") or locate(resolved.study.raw, folders))
    if raw_there:
        check_raw(resolved, raw)
    downloads(resolved, raw)
    return runs
