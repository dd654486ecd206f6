"""Snakemake's jobs as lines of JSON. Snakemake finds this package by its name, when its folder is on the path.

A logger is the interface that Snakemake documents for tools that follow a run; in a dry run it is told of every job.
"""

import json
import os
from logging import LogRecord
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

# The file that takes the lines.
FILE = "PLUMBLINE_PLAN"


class LogHandler(LogHandlerBase):
    """Keeps a line for each job: its rule, wildcards, threads, GPUs, minutes, inputs and outputs."""

    def __post_init__(self) -> None:
        self.lines: list[str] = []

    def emit(self, record: LogRecord) -> None:
        """Keep one line, if the record is about a job."""
        if getattr(record, "event", None) != LogEvent.JOB_INFO:
            return
        told = vars(record)
        resources = dict(told["resources"].items())
        job = {
            "rule": told["rule_name"],
            "wildcards": dict(told["wildcards"]),
            "threads": told["threads"],
            "gpus": int(resources.get("gpu", 0)),
            "minutes": resources.get("runtime"),
            "inputs": list(map(str, told["input"])),
            "outputs": list(map(str, told["output"])),
        }
        self.lines.append(json.dumps(job))

    def close(self) -> None:
        """Write the file, as the run has ended."""
        Path(os.environ[FILE]).write_text("\n".join(self.lines), encoding="utf-8")
        super().close()

    @property
    def writes_to_stream(self) -> bool:
        """Whether it writes to the terminal."""
        return False

    @property
    def writes_to_file(self) -> bool:
        """Whether it writes a log that Snakemake should name."""
        return False

    @property
    def has_filter(self) -> bool:
        """Whether it chooses what it is told; it wants the jobs however quiet Snakemake is."""
        return True

    @property
    def has_formatter(self) -> bool:
        """Whether it formats by itself."""
        return True

    @property
    def needs_rulegraph(self) -> bool:
        """Whether it needs the graph of the rules."""
        return False
