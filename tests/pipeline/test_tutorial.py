"""The tutorial as on its page: its files are written and its commands run in order in a copy of the project."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from .conftest import PROJECT, copy_project

PAGE = PROJECT / "docs" / "tutorials" / "own-method.md"
NAMED = re.compile(r"# ([\w.-]+)\n")


def blocks() -> list[str]:
    """The indented blocks of the page, without their indent."""
    found = re.findall(r"(?:^(?: {4}.*)?\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return ["".join(line[4:] or "\n" for line in block.splitlines(keepends=True)).strip("\n") + "\n" for block in found]


def commands(block: str) -> list[str]:
    if block.startswith("import plumbline\n"):
        return [f"python -c {shlex.quote(block)}"]
    return [line for line in block.splitlines() if line.startswith(("plumbline ", "snakemake ", "python "))]


@pytest.mark.studies
def test_the_tutorial_ends_in_a_scorecard_with_the_new_method(tmp_path: Path) -> None:
    project, outputs, began = copy_project(tmp_path / "project"), [], time.perf_counter()
    for block in blocks():
        if named := NAMED.match(block):
            (project / named[1]).write_text(block[named.end() :], encoding="utf-8")
        for command in commands(block):
            done = subprocess.run(
                command.replace("--cores all", "--cores 2"),
                shell=True,
                cwd=project,
                capture_output=True,
                text=True,
                env=_environment(),
            )
            assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
            outputs.append(done.stdout)
    print(f"The tutorial took {time.perf_counter() - began:.0f} s.")
    assert "norm-attention: conforms" in outputs[0] and "norm-attention" in outputs[-1]
    results = project / "my-runs" / "results"
    card = pd.read_parquet(results / "tables" / "scorecard.parquet")
    new = card[(card["measure"] == "norm-attention") & (card["status"] == "ok")]
    judged = {"agreement", "Recursive ROAR", "ground truth", "comprehensiveness", "sufficiency"}
    assert judged <= set(new["criterion"]) and set(new["model"]) == {"average-tanh", "bilstm-tanh"}
    truth = card[card["criterion"] == "ground truth"].groupby("measure", observed=True)["value"].mean()
    assert truth["norm-attention"] > truth["random"]
    for file in ("report/index.html", "report/scorecard.html", "figures/scorecard.pdf", "tables/scorecard.tex"):
        assert (results / file).stat().st_size > 0


def test_the_method_of_the_tutorial_has_fifteen_lines() -> None:
    method = next(block for block in blocks() if block.startswith("# norm_attention.py"))
    lines = [line for line in method.splitlines()[1:] if line.strip()]
    assert len(lines) <= 15, len(lines)
    assert "my.yaml" in {named[1] for block in blocks() if (named := NAMED.match(block))}


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
