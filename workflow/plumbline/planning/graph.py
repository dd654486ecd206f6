"""The rule graph of a study, drawn by graphviz."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from plumbline.errors import PlumblineError
from plumbline.planning.jobs import PlannedJob, dry_run

STYLE = 'node [shape=box, style=rounded, fontname="Helvetica", fontsize=11, height=0.3]; edge [color="#555555"];'


def as_dot(jobs: Sequence[PlannedJob]) -> str:
    """The rule graph of some jobs in the DOT language."""
    rules = [job.rule for job in jobs]
    edges = {(rules[before], rule) for job, rule in zip(jobs, rules, strict=True) for before in job.after}
    lines = [
        *sorted({f'"{rule}";' for rule in rules}),
        *(f'"{first}" -> "{second}";' for first, second in sorted(edges)),
    ]
    return "\n".join(["digraph rules {", STYLE, *lines, "}"])


def draw_rules(config: Path, target: Path) -> None:
    """Draw the rule graph of a study, without edges that a longer path implies."""
    for program in ("tred", "dot"):
        if not shutil.which(program):
            raise PlumblineError(f"The program '{program}', which draws the rules, is not installed; install graphviz.")
    graph = as_dot(dry_run(config, Path(), everything=True).jobs)
    # tred warns of a cycle where a rule reads its own output for another model.
    reduced = subprocess.run(["tred"], input=graph, text=True, capture_output=True, check=True).stdout
    subprocess.run(["dot", "-Tsvg", "-o", str(target)], input=reduced, text=True, check=True)
