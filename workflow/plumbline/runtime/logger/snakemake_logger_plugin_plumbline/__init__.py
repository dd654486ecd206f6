"""Our handler of Snakemake's log events as a logger plug-in: `--logger plumbline`, with this folder on the path.

It has a folder of its own, since Snakemake imports every installed plug-in before it reads a Snakefile: a clone would
then run with the library of another clone.
"""

from plumbline.runtime.events import LogHandler

__all__ = ["LogHandler"]
