"""Snakemake's name for our handler of its events: `--logger plumbline` finds this package when it is on the path."""

from plumbline.runtime.events import LogHandler

__all__ = ["LogHandler"]
