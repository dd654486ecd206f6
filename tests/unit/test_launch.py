"""`plumbline run`: which study, which Snakemake command, and what is refused before it."""

import os
import sys
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser

from plumbline import launch as launching
from plumbline.cli import main
from plumbline.errors import PlumblineError
from plumbline.launch import Launch, check_environment, snakemake_command
from plumbline.project import PROJECT, current_project, find_study, library, study_files

CONFIG = {
    "datasets": {"reviews": {}},
    "models": {"average-tanh": {}},
    "measures": ["attention", "random"],
    "protocols": ["agreement"],
}


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """The command and the environment of Snakemake after arguments of `plumbline run`, from an empty folder."""
    monkeypatch.chdir(tmp_path)
    calls = []
    monkeypatch.setattr(launching.os, "execve", lambda *call: calls.append(call))

    def execute(*arguments: str) -> tuple[list[str], dict[str, str]]:
        assert main(["run", *arguments]) == 0
        ((program, command, environment),) = calls
        calls.clear()
        assert program == sys.executable and command[:3] == [sys.executable, "-m", "snakemake"]
        return command[3:], environment

    return execute


def parsed(command: list[str]):
    """The arguments as Snakemake reads them."""
    return get_argument_parser().parse_args(command)


def test_without_arguments_the_default_study_runs_on_all_cores(executed):
    command, environment = executed()
    options = parsed(command)
    assert options.configfile == [PROJECT / "config.yaml"] and Path(options.snakefile) == PROJECT / "Snakefile"
    assert command[command.index("--cores") + 1] == "all" and not options.targets and not options.resources
    assert environment == dict(os.environ)


def test_a_study_is_a_name_or_a_file(executed):
    assert parsed(executed("jain-wallace-public")[0]).configfile == [PROJECT / "studies/jain-wallace-public.yaml"]
    Path("my.yaml").write_text(str(CONFIG))
    assert parsed(executed("my.yaml")[0]).configfile == [Path("my.yaml")]


def test_options_become_those_of_snakemake(executed):
    command, environment = executed("--cores", "3", "--gpus", "2", "--", "tables", "--dry-run")
    options = parsed(command)
    assert options.cores == 3 and dict(options.resources) == {"gpu": 2}
    assert options.targets == ["tables"] and options.dryrun, "a target is no value of the option before it"
    assert environment.get("CUDA_VISIBLE_DEVICES") == os.environ.get("CUDA_VISIBLE_DEVICES")


def test_a_study_with_files_in_another_working_folder_is_checked_there(executed, capsys):
    Path("my.yaml").write_text(str({**CONFIG, "plugins": ["mine.py"]}))
    Path("elsewhere").mkdir()
    Path("elsewhere/mine.py").touch()
    assert main(["run", "my.yaml"]) == 1 and "The plug-in file 'mine.py' does not exist" in capsys.readouterr().err
    assert Path(parsed(executed("my.yaml", "--", "--directory", "elsewhere")[0]).directory) == Path("elsewhere")


def test_without_gpus_jobs_see_none(executed):
    command, environment = executed("--gpus", "0")
    assert environment["CUDA_VISIBLE_DEVICES"] == "" and "--resources" not in command


def test_on_slurm_the_profile_sets_the_number_of_jobs(monkeypatch):
    command = snakemake_command(Launch(slurm=True), PROJECT, Path("my.yaml"))[3:]
    assert command[command.index("--workflow-profile") + 1] == "slurm" and "--cores" not in command
    assert (PROJECT / "profiles" / "slurm" / "config.yaml").is_file(), "where Snakemake finds it: by the Snakefile"
    assert "--cores" in snakemake_command(Launch(slurm=True, cores=4), PROJECT, Path("my.yaml"))


@pytest.mark.parametrize(
    ("missing", "launch", "sentence"),
    [
        ("snakemake", Launch(), "Snakemake is missing in this environment: pip install 'snakemake"),
        ("snakemake_executor_plugin_slurm", Launch(slurm=True), "pip install 'snakemake-executor-plugin-slurm>=2.8'."),
    ],
)
def test_missing_packages_are_named(monkeypatch, missing, launch, sentence):
    monkeypatch.setattr(launching, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(PlumblineError) as refused:
        check_environment(launch)
    assert sentence in str(refused.value)


def test_a_folder_without_write_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launching.os, "access", lambda path, mode: not (Path(path) == tmp_path and mode == os.W_OK))
    with pytest.raises(PlumblineError, match=f"You may not write into the working folder '{tmp_path}'"):
        check_environment(Launch())
    for option in (["--directory", "elsewhere"], ["-d", "elsewhere"], ["--directory=elsewhere"]):
        check_environment(Launch(options=option))


def test_the_list_has_a_line_for_each_study(capsys):
    assert main(["run", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["default", "default", "study"]
    names = [line.split()[0] for line in lines[: lines.index("")]]
    assert names == ["default", *sorted(path.stem for path in (PROJECT / "studies").glob("*.yaml"))]
    assert "Jain & Wallace 2019: Attention is not Explanation" in "\n".join(lines)
    assert str(PROJECT) in lines[-1]


def test_an_unknown_study_is_refused_with_the_nearest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlumblineError, match=r"There is no study 'atefa', and no such file; did you mean 'attefa'\?"):
        find_study("atefa")
    assert find_study("gone.yaml") == Path("gone.yaml"), "whoever reads it reports it"


def test_a_clone_in_the_working_folder_is_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Snakefile").touch()
    assert current_project() == PROJECT, "a Snakefile alone may be any workflow's"
    (tmp_path / "workflow" / "plumbline").mkdir(parents=True)
    assert current_project() == tmp_path and library(tmp_path) == tmp_path / "workflow" / "plumbline"
    assert study_files(tmp_path) == {"default": tmp_path / "config.yaml"}
    assert library(tmp_path / "elsewhere") == library(PROJECT)
