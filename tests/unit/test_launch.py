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


def test_a_protocol_with_too_few_measures_is_warned_of(executed, capsys):
    Path("my.yaml").write_text(str(CONFIG))
    executed("my.yaml")
    assert capsys.readouterr().err == (
        "plumbline: warning: `protocols.agreement` adds no score of model 'average-tanh' to the scorecard: it needs 2 "
        "measures or more besides random, but there is 1; add a measure, or remove the protocol.\n"
    )
    Path("my.yaml").write_text(str({**CONFIG, "measures": ["attention", "gradient", "random"]}))
    executed("my.yaml")
    assert capsys.readouterr().err == ""


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


OWN = {"kind": "table", "path": "mine.csv", "text": "body", "label": "stars"}
ROWS = "body,stars\n" + "".join(f"text {i},{i % 2}\n" for i in range(40))
FAULTS = {
    "a missing column": (ROWS, {"text": "boddy"}, "'mine.csv' has no column 'boddy'; did you mean 'body'?"),
    "an unreadable file": (ROWS.encode("utf-16"), {}, "line 1 is not utf-8 text: write `encoding: utf-16`"),
    "an unreadable row": (ROWS + '"text,1\n', {}, "the row cannot be read"),
    "an unknown label": (ROWS, {"classes": ["0", "good"]}, "No row has the class 'good'; correct `classes`"),
    "a class without rows": (ROWS + "text,2\n", {}, "Class '2' has 1 rows, none of which was drawn for"),
    "no file": (None, {}, "there is no 'mine.csv' in the working folder"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_own_data_are_found_before_snakemake_starts(fault, tmp_path, monkeypatch, capsys):
    rows, options, message = FAULTS[fault]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launching.os, "execve", lambda *call: pytest.fail("Snakemake starts"))
    if rows is not None:
        Path("mine.csv").write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    Path("my.yaml").write_text(str({**CONFIG, "datasets": {"mine": {**OWN, **options}}}))
    assert main(["run", "my.yaml"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("plumbline: `datasets.mine") and message in line


def test_own_data_without_faults_runs(executed):
    Path("mine.csv").write_text(ROWS)
    Path("my.yaml").write_text(str({**CONFIG, "datasets": {"mine": OWN}}))
    assert parsed(executed("my.yaml")[0]).configfile == [Path("my.yaml")]
    # What changes the config may name other data.
    Path("mine.csv").unlink()
    executed("my.yaml", "--", "--config", "raw=elsewhere")


def test_the_help_of_check_begins_with_configs_and_their_data(capsys):
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        0
        < shown.index("Check a config before a run and preview your own data that it names")
        < shown.index("Python files")
    )


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
        ("snakemake", Launch(), "Snakemake is not installed: pip install 'snakemake"),
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
    with pytest.raises(
        PlumblineError, match=f"The working folder '{tmp_path}', where results/ would be written, is read-only"
    ):
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
    with pytest.raises(PlumblineError, match=r"There is no study or file 'atefa'; did you mean 'attefa'\?"):
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
