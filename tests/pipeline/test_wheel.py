"""A built wheel in a fresh environment and an empty folder runs the same workflow as a clone."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

from .conftest import PROJECT, copy_project, run_snakemake, write_config

pytestmark = pytest.mark.pipeline
CONFIG = {
    "name": "tiny wheel",
    "datasets": {
        "mock-2": {
            "train": 32, "dev": 12, "test": 12, "shortest": 4, "longest": 8,
            "preparation": {"embedding": {"dimensions": 8}},
        },
    },
    "models": {"average-tanh": {"hidden": 8, "training": {"epochs": 2}}},
    "measures": ["attention", "gradient", "random"],
    "protocols": {"agreement": {}},
}  # fmt: skip
BUILT_FROM = ["setup.py", "pyproject.toml", "README.md", "LICENSE", "studies"]


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A clone with a tiny study whose tables are made."""
    folder = copy_project(tmp_path_factory.mktemp("clone") / "project")
    write_config(folder, CONFIG)
    for part in BUILT_FROM:
        copied = shutil.copytree if (PROJECT / part).is_dir() else shutil.copy2
        copied(PROJECT / part, folder / part)
    done = run_snakemake(folder, "tables", "--cores", "2")
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture(scope="module")
def wheel(clone, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(clone)], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel, tmp_path_factory) -> Path:
    """The installed command. The environment has the dependencies of this one by a path file, but not its library."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(pip, check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "plumbline"


def call(program: Path, folder: Path, *arguments: str) -> str:
    """The output of the installed command in a folder."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PLUMBLINE_DATA")}
    done = subprocess.run(
        [program, *arguments], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def study(program, clone, tmp_path_factory) -> Path:
    """An empty folder but for a config and raw files, after `plumbline run`."""
    folder = tmp_path_factory.mktemp("work")
    shutil.copytree(clone / "raw", folder / "raw")
    (folder / "my.yaml").write_text(yaml.safe_dump(CONFIG))
    call(program, folder, "run", "my.yaml", "--cores", "2", "--gpus", "1", "--", "tables")
    return folder


def test_the_wheel_has_the_workflow_and_no_tests(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    carried = {name.removeprefix("plumbline/workflow/") for name in names if name.startswith("plumbline/workflow/")}
    for pattern in ("Snakefile", "config.yaml", "rules/*.smk", "workflow/scripts/*.py", "profiles/*/*", "studies/*"):
        assert {path.relative_to(PROJECT).as_posix() for path in PROJECT.glob(pattern)} <= carried, pattern
    assert "envs/plumbline.yaml" in carried, "which rules name"
    assert not [name for name in names if "tests/" in name]
    assert {name.split("/")[0] for name in names} == {"plumbline", f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"}
    assert wheel.stat().st_size < 2_000_000


def test_tables_are_those_of_the_clone(study, clone):
    tables = sorted(path.name for path in (clone / "results" / "tables").iterdir())
    assert tables == sorted(path.name for path in (study / "results" / "tables").iterdir()) and len(tables) > 12
    for name in tables:
        own, theirs = (folder / "results" / "tables" / name for folder in (study, clone))
        if name == "timings.parquet":
            kept = ["rule", "dataset", "model", "measure", "rows"]
            pd.testing.assert_frame_equal(pd.read_parquet(own)[kept], pd.read_parquet(theirs)[kept])
        elif not name.startswith("timings"):
            assert own.read_bytes() == theirs.read_bytes(), name


def test_a_clone_finds_nothing_left_to_do(study, clone):
    """So params and hashes of code are the same, and a study may go on in the other."""
    done = run_snakemake(clone, "tables", "-n", "--configfile", str(study / "my.yaml"), "--directory", str(study))
    assert done.returncode == 0 and "Nothing to be done" in done.stdout, done.stdout


def test_the_installed_library_did_the_work_and_wrote_only_into_the_working_folder(study, program):
    installed = program.parents[1]
    manifest = json.loads((study / "results/models/mock-2/plain/average-tanh/0/manifest.json").read_text())
    assert manifest["config"]["object"].startswith("plumbline."), "no path"
    assert not list(installed.rglob("results")) and not list(installed.rglob(".snakemake"))
    assert {path.name for path in study.iterdir()} == {"my.yaml", "raw", "results", ".snakemake"}
    where = call(program, study, "run", "--list").splitlines()[-1]
    assert str(installed) in where and str(PROJECT) not in where


def test_a_second_run_has_nothing_to_do_and_a_plan_knows_it(study, program):
    assert "Nothing to be done" in call(program, study, "run", "my.yaml", "--cores", "2", "--", "tables")
    dry = call(program, study, "run", "my.yaml", "--slurm", "--", "tables", "-n")
    assert "plumbline/workflow/profiles/slurm for setting" in dry and "Nothing to be done" in dry
    plan = call(program, study, "plan", "my.yaml", "--gpus", "0", "--cores", "2")
    assert "tiny wheel" in plan and "train" not in plan and "report" in plan
