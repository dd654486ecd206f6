"""Our handler of Snakemake's events as a logger plug-in: `--logger plumbline`, when this folder is on the path.

It lies apart, since Snakemake imports every plug-in that it finds before it reads a Snakefile. Were it installed, a
clone would run with the library of another one.
"""

from plumbline.runtime.events import LogHandler

__all__ = ["LogHandler"]
