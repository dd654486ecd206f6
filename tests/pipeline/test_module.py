"""Other workflows use this one as a module, with a prefix for its results, from a folder or from a git server."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from .conftest import LEXICON, PROJECT, run_snakemake
from .test_wheel import CONFIG

pytestmark = pytest.mark.pipeline
OUTER = """
configfile: "config/config.yaml"

module first:
    snakefile: {snakefile!r}
    config: config["first"]
    prefix: "explanations/of/first"

use rule * from first as first_*

module second:
    snakefile: {snakefile!r}
    config: config["second"]
    prefix: "explanations/of/second"

use rule * from second as second_*

rule mine:
    default_target: True
    input:
        "explanations/of/first/results/tables/agreement.csv",
        "explanations/of/second/results/data/mock-1/plain/instances.parquet",
    output:
        "mine.txt",
    shell:
        "head -n 1 {{input[0]}} > {{output}}"
"""
# As `snakedeploy deploy-workflow` writes it.
DEPLOYED = """
configfile: "config/config.yaml"

module plumbline:
    snakefile: github("someone/plumbline", path="workflow/Snakefile", branch="main")
    config: config

use rule * from plumbline
"""


def write_workflow(folder: Path, snakefile: str, config: dict) -> None:
    """A workflow in a folder of its own, with the raw data of the tiny study."""
    for path, text in {
        "workflow/Snakefile": snakefile,
        "config/config.yaml": yaml.safe_dump(config),
        "raw/vader/vader_lexicon.txt": LEXICON,
        "raw/vader/movieReviewSnippets_GroundTruth.txt": "",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def test_two_studies_are_modules_of_another_workflow(tmp_path):
    measures = {"attention": {}, "theirs": {"kind": "imported", "path": "theirs.parquet"}}
    second = {**CONFIG, "datasets": {"mock-1": CONFIG["datasets"]["mock-2"]}, "measures": measures}
    pd.DataFrame({"split": ["test"], "instance": [0], "scores": [[0.5]]}).to_parquet(tmp_path / "theirs.parquet")
    outer = OUTER.format(snakefile=str(PROJECT / "workflow" / "Snakefile"))
    write_workflow(tmp_path, outer, {"first": CONFIG, "second": second})
    done = run_snakemake(tmp_path, "--cores", "2")
    assert done.returncode == 0, done.stdout
    results = tmp_path / "explanations/of/first/results"
    taus = pd.read_csv(results / "tables/agreement.csv")
    assert {*taus["measure_a"], *taus["measure_b"]} == set(CONFIG["measures"])
    assert (tmp_path / "mine.txt").read_text() == ",".join(taus.columns) + "\n"
    # Raw data and the working folder have no prefix, and only results are written.
    assert {path.name for path in tmp_path.iterdir()} == {
        "workflow", "config", "raw", "theirs.parquet", "explanations", "mine.txt", ".snakemake",
    }  # fmt: skip
    assert [path.name for path in (tmp_path / "explanations/of/second").iterdir()] == ["results"]
    every = run_snakemake(tmp_path, "first_all", "-n", "--quiet", "rules")
    assert every.returncode == 0 and "first_report" in every.stdout and "first_train" not in every.stdout, every.stdout
    shown = run_snakemake(tmp_path, "second_tables", "-n").stdout
    assert ", theirs.parquet\n" in shown and "second/theirs.parquet" not in shown, shown


@pytest.mark.skipif(not shutil.which("git"), reason="git is missing")
def test_a_deployed_workflow_finds_the_installed_library(tmp_path):
    """Snakemake reads the files of a workflow on a git server one by one; here, the server is a folder."""
    server, home = tmp_path / "server", tmp_path / "home"
    repository = server / "someone" / "plumbline"
    repository.mkdir(parents=True)
    git = ["git", "-C", str(repository), "-c", "user.name=someone", "-c", "user.email=someone@example.org"]
    for part in ("Snakefile", "config.yaml", "rules", "envs", "workflow/Snakefile", "workflow/scripts"):
        copied = shutil.copytree if (PROJECT / part).is_dir() else shutil.copy2
        (repository / part).parent.mkdir(exist_ok=True)
        copied(PROJECT / part, repository / part)
    for arguments in (["init", "--quiet", "--initial-branch=main"], ["add", "."], ["commit", "--quiet", "-m", "All."]):
        subprocess.run([*git, *arguments], check=True)
    write_workflow(tmp_path / "work", DEPLOYED, CONFIG)
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT / "workflow"),
        "XDG_CACHE_HOME": str(home),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{server}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "results/data/mock-2/plain/instances.parquet"]
    done = subprocess.run(
        command, cwd=tmp_path / "work", env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout
    assert len(pd.read_parquet(tmp_path / "work/results/data/mock-2/plain/instances.parquet")) == 32 + 12 + 12


def test_the_project_has_what_the_workflow_catalogue_requires():
    usage = yaml.safe_load((PROJECT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["software-stack-deployment"] and usage["report"] is True
    assert "## " in (PROJECT / "config/README.md").read_text()
    assert (PROJECT / "config/config.yaml").read_text() == (PROJECT / "config.yaml").read_text()
    readme = (PROJECT / "README.md").read_text().lower()
    assert "snakemake" in readme and "workflow" in readme, "by which the catalogue finds it"
