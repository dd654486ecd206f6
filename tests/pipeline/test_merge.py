"""A study run in parts and merged has the tables, figures and report of the study run at once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from plumbline.api.results import load_results
from plumbline.merge.jobs import SUMMARIES

from .conftest import CONFIG, LEXICON, PROJECT, planned_jobs, run_snakemake, write_config

pytestmark = pytest.mark.pipeline
DATASETS = {"mock-2": CONFIG["datasets"]["mock-2"], "echo": {}}
STUDY = {
    "name": "tiny study",
    "plugins": ["plugin.py"],
    "datasets": DATASETS,
    "models": {"average-tanh": {"hidden": 8, "training": {"epochs": 2}}},
    "seeds": ["0-1", "2"],
    "measures": ["position", "leave-one-out", "attention"],
    "protocols": {"concentration": {}, "erasure": {"ratios": [50], "draws": 1, "longest": 6}},
    "report": {"examples": 4},
}
PARTS = {
    "whole": {},
    "mock": {"datasets": {"mock-2": DATASETS["mock-2"]}},
    "echo": {"datasets": {"echo": {}}},
    "first": {"seeds": ["0-1"]},
    "last": {"seeds": ["2"]},
}
KEYS = ["rule", "dataset", "variant", "model", "seeds", "measure", "protocol"]
SNAKEFILE = ("--snakefile", str(PROJECT / "Snakefile"))


def run_parts(folder: Path) -> None:
    """Run the whole study and its parts, each in a folder with its own plug-in; they share the raw files."""
    (folder / "raw" / "vader").mkdir(parents=True)
    (folder / "raw" / "vader" / "vader_lexicon.txt").write_text(LEXICON)
    (folder / "raw" / "vader" / "movieReviewSnippets_GroundTruth.txt").write_text("")
    for name, changed in PARTS.items():
        (folder / name).mkdir()
        shutil.copy2(Path(__file__).with_name("plugin.py"), folder / name)
        write_config(folder / name, {**STUDY, **changed, "raw": "../raw"})
        done = run_snakemake(folder / name, "all", *SNAKEFILE, "--configfile", "config.yaml", "--cores", "2")
        assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def parts(once) -> Path:
    """The folder with a folder of each run."""
    return once("parts", run_parts)


def merge(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plumbline.cli", "merge", *arguments]
    environment = os.environ | {"PYTHONPATH": str(PROJECT / "workflow")}
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def check_same_results(merged: Path, whole: Path) -> None:
    """Check every table, by value but for the seconds of timings, and that the report has the same files."""
    one, other = load_results(merged), load_results(whole)
    assert one.tables == other.tables and len(one.tables) > 5
    for name in one.tables:
        frames = [results.table(name) for results in (one, other)]
        if name == "timings":
            keys = [key for key in KEYS if key in frames[0]]
            frames = [frame[keys].astype(str).sort_values(keys, ignore_index=True) for frame in frames]
        else:
            latex = [folder / "results" / "tables" / f"{name}.tex" for folder in (merged, whole)]
            assert latex[0].read_text() == latex[1].read_text(), name
        pd.testing.assert_frame_equal(*frames, check_exact=True)
    files = [
        sorted(str(path.relative_to(folder)) for kind in ("report", "figures") for path in folder.glob(f"{kind}/**/*"))
        for folder in (merged / "results", whole / "results")
    ]
    assert files[0] == files[1]


def finished_rules(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The rules of the jobs that a run finished."""
    lines = [line.split("] finished ") for line in done.stdout.splitlines() if "] finished " in line]
    return {line.split()[0] for _, line in lines} - {"all"}


def check_merge(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout
    rules = finished_rules(done)
    assert {*SUMMARIES} <= rules and all(rule in SUMMARIES or rule.startswith("draw_") for rule in rules)


def test_a_study_split_by_dataset_is_merged(parts, tmp_path):
    into = tmp_path / "merged"
    dry = merge(parts, "mock", "echo", "--into", str(into), "--dry-run")
    assert dry.returncode == 0 and not into.exists()
    # Two blocks with three files of importances, two protocols, and a manifest for each.
    for name in ("mock", "echo"):
        assert f"From '{name}': 34 files, 0.1 MiB (attributions 12, data 6, models 8, scores 8).\n" in dry.stdout
    assert "To compute: 8 tables, the figures of 2 protocols, the report, its explorer.\n" in dry.stdout
    check_merge(merge(parts, "mock", "echo", "--into", str(into), "--cores", "2"))
    check_same_results(into, parts / "whole")
    # The merged folder is a run like any other: nothing is left to do, and a changed option reruns what it affects.
    here = (*SNAKEFILE, "--configfile", "study.yaml")
    assert planned_jobs(into, *here) == set()
    config = yaml.safe_load((into / "study.yaml").read_text())
    config["protocols"]["erasure"]["ratios"] = [20]
    (into / "study.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    planned = planned_jobs(into, *here)
    assert "score_models" in planned and not planned & {"train", "score", "attribute:cheap", "prepare"}


def test_a_study_split_by_seeds_is_merged_from_the_listed_files(parts, tmp_path):
    """Neither weights nor Snakemake's records nor raw files are needed."""
    for name in ("first", "last"):
        listed = merge(parts, "--list", name)
        assert listed.returncode == 0, listed.stdout
        for path in (*listed.stdout.splitlines(), "plugin.py"):
            target = tmp_path / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(parts / name / path, target)
    assert not [*tmp_path.rglob("*.safetensors")] and not [*tmp_path.rglob(".snakemake")]
    check_merge(merge(tmp_path, "first", "last", "--into", "merged", "--cores", "2"))
    check_same_results(tmp_path / "merged", parts / "whole")


def test_cells_that_no_run_has_are_listed_or_left_out(parts, tmp_path):
    """Of runs of one dataset each, with different measures and seeds."""
    arguments = "mock", "last", "--into", str(tmp_path / "merged"), "--dry-run"
    done = merge(parts, *arguments)
    assert done.returncode == 1 and "differs" not in done.stdout
    assert "with --partial:\n" in done.stdout and "train echo average-tanh seeds 0-1" in done.stdout
    assert "they cannot be left out with --partial" in merge(parts, *arguments, "--partial").stdout
