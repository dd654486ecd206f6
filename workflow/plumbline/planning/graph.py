"""The rules of a study and which of them needs which, drawn by graphviz."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.planning.jobs import PlannedJob, dry_run

STYLE = 'node [shape=box, style=rounded, fontname="Helvetica", fontsize=11, height=0.3]; edge [color="#555555"];'


def as_dot(jobs: Sequence[PlannedJob]) -> str:
    """The rules of some jobs as a graph in graphviz's language."""
    rules = [job.rule for job in jobs]
    edges = {(rules[before], rule) for job, rule in zip(jobs, rules, strict=True) for before in job.after}
    lines = [*sorted({f'"{rule}";' for rule in rules}), *(f'"{one}" -> "{other}";' for one, other in sorted(edges))]
    return "\n".join(["digraph rules {", STYLE, *lines, "}"])


def draw_rules(config: Path | None, target: Path) -> None:
    """Draw the rules of a study, without arrows that a longer way implies."""
    for program in ("tred", "dot"):
        if not shutil.which(program):
            raise PlumblineError(f"There is no program '{program}', which draws the rules: install graphviz.")
    graph = as_dot(dry_run(config, Path(), everything=True).jobs)
    # Where rules read what came of themselves, for another model, tred warns of a circle.
    reduced = subprocess.run(["tred"], input=graph, text=True, capture_output=True, check=True).stdout
    subprocess.run(["dot", "-Tsvg", "-o", str(target)], input=reduced, text=True, check=True)
