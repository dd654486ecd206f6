"""A small whole study, run once; each test gets a copy of it with its results."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from filelock import FileLock

PROJECT = Path(__file__).parents[2]
PARTS = ["Snakefile", "rules", "workflow", "profiles", "envs"]
LEXICON = "".join(f"good{c}\t2.0\t0.5\t[2]\nbad{c}\t-2.0\t0.5\t[-2]\n" for c in "abcdefghij")
CONFIG = {
    "name": "tiny study",
    "plugins": ["plugin.py"],
    "datasets": {
        "mock-2": {
            "train": 96, "dev": 32, "test": 24, "shortest": 4, "longest": 8,
            "preparation": {"embedding": {"dimensions": 12}},
        },
        "echo": {},
    },
    "models": {
        "average-tanh": {"hidden": 8, "training": {"epochs": 3}},
        "bag-of-words": {"training": {"epochs": 2}, "datasets": ["mock-2"]},
        "given": {
            "kind": "average-tanh", "hidden": 8, "attention_of": "average-tanh.attefa", "training": {"epochs": 2},
        },
    },
    "seeds": ["0-1"],
    "adversaries": {
        "attefa": {"datasets": ["mock-2"], "training": {"epochs": 3, "patience": 2}},
        "wiegreffe-pinter": {"datasets": ["mock-2"], "seeds": 0, "strength": [0.01], "training": {"epochs": 2}},
    },
    "measures": ["attention", "gradient", "input-x-gradient", "leave-one-out", "position"],
    "protocols": {"agreement": {"statistics": ["kendall", "top-k-fagin"]}, "concentration": {},
        "permutation": {"permutations": 5}, "adversarial_attention": {"steps": 5}, "seed_variance": {},
        "erasure": {"ratios": [20, 50], "draws": 1, "longest": 6}},
    "report": {"examples": 4},
}  # fmt: skip


# What hangs on the tables of protocols.
JUDGED = {"table:scorecard", "table:meta_evaluation", "draw_scorecard"}


def shared_study(item: Any) -> str:
    """The study that a test shares with other tests, made by `once`; empty if there is none."""
    if "finished" in item.fixturenames or item.path.stem == "test_oracle":
        return "finished" if "finished" in item.fixturenames else "oracle"
    return item.module.JOB_FAULTS[item.callspec.params["fault"]][0] if item.originalname == "test_job_fault" else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First the longest test, or one worker would run it alone at the end; then one test of each shared study, so that
    workers make these studies at the same time and wait for none.
    """
    first = {shared_study(item): item for item in reversed(items) if item.path.parent == Path(__file__).parent}
    makers = [item for study, item in first.items() if study]
    items.sort(key=lambda item: (item.path.stem != "test_tutorial", item not in makers))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The number of faults that were tried, and how they ended."""
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind) if one.when == "call"]
    rows = [({value for key, value in one.user_properties if key == "fault"}, one.duration) for one in reports]
    rows = [row for row in rows if row[0]]
    if not rows:
        return
    early, late = (sum(how in outcome for outcome, _ in rows) for how in ("before any job", "in a job"))
    terminalreporter.section("faults")
    terminalreporter.line(
        f"{len(rows)} faults tried in {sum(seconds for _, seconds in rows):.0f} s: one message reported "
        f"{(early + late) / len(rows):.1%}, {early / len(rows):.1%} were refused before any job, "
        f"{late / len(rows):.1%} by a job that was started once."
    )


def copy_project(into: Path) -> Path:
    into.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source = PROJECT / part
        if source.is_dir():
            shutil.copytree(source, into / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, into / part)
    shutil.copy2(Path(__file__).with_name("plugin.py"), into / "plugin.py")
    write_config(into, CONFIG)
    lexicon = into / "raw" / "vader"
    lexicon.mkdir(parents=True)
    (lexicon / "vader_lexicon.txt").write_text(LEXICON)
    (lexicon / "movieReviewSnippets_GroundTruth.txt").write_text("")
    return into


def write_config(folder: Path, config: dict) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def use_sst(config: dict, **preparation) -> None:
    """Change a config to use only SST, without a length filter."""
    config["datasets"] = {"sst": {"preparation": {"longer_than": None, **preparation}}}
    for entry in (config["models"]["bag-of-words"], *config["adversaries"].values()):
        entry.pop("datasets")


def run_snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PLUMBLINE_DATA")}
    command = [sys.executable, "-m", "snakemake", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def planned_jobs(folder: Path, *arguments: str, targets: Sequence[str] = ("all",)) -> set[str]:
    """The jobs of a dry run, without targets: `rule`, `rule:measures` (attribute) or `table:name`."""
    done = run_snakemake(folder, *targets, "-n", "--cores", "2", *arguments)
    assert done.returncode == 0, done.stdout
    jobs = set()
    for block in re.split(r"\n(?=\[)|\n\n", done.stdout):
        rule = re.search(r"^(?:local)?rule (\w+):", block, re.M)
        if rule and rule[1] not in ("all", "tables", "figures"):
            of = re.search(r"wildcards:.*\b(?:measures|table)=([\w-]+)", block)
            jobs.add(f"{rule[1]}:{of[1]}" if of else rule[1])
    return jobs


def measures_in(path: Path) -> set[str]:
    """The measures whose importances a file holds."""
    return set(pq.ParquetFile(path).read(["measure"])["measure"].to_pylist())


@pytest.fixture(scope="session")
def once(tmp_path_factory, worker_id) -> Callable[[str, Callable[[Path], object]], Path]:
    """A folder that the first worker makes and all workers of a test run share."""
    root = tmp_path_factory.getbasetemp()
    root = root if worker_id == "master" else root.parent

    def folder_of(name: str, make: Callable[[Path], object]) -> Path:
        folder, made = root / name, root / f"{name}.made"
        with FileLock(root / f"{name}.lock"):
            if not made.exists():
                shutil.rmtree(folder, ignore_errors=True)
                make(folder)
                made.touch()
        return folder

    return folder_of


def run_study(folder: Path, config: dict, *arguments: str) -> None:
    """Run a study in a copy of the project."""
    write_config(copy_project(folder), config)
    done = run_snakemake(folder, *arguments)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="session")
def finished(once) -> Path:
    """The tiny study after one whole run, started as on a machine with GPUs."""
    return once("finished", lambda folder: run_study(folder, CONFIG, "all", "--cores", "8", "--resources", "gpu=2"))


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    """A copy of the finished study to change; file times are kept."""
    folder = tmp_path / "study"
    shutil.copytree(finished, folder, symlinks=True)
    return folder


@pytest.fixture
def fresh(tmp_path) -> Path:
    """The tiny study before any run."""
    return copy_project(tmp_path / "fresh")


@pytest.fixture
def reconfigure() -> Callable[..., None]:
    """Change the config of a study: `reconfigure(folder, lambda config: ...)`."""

    def change(folder: Path, edit: Callable[[dict], object]) -> None:
        config = yaml.safe_load((folder / "config.yaml").read_text())
        edit(config)
        write_config(folder, config)

    return change
