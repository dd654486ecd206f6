"""Plans of whole studies, compared with runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.planning.measured import manifests
from plumbline.planning.plan import Machine, Plan, plan_study

from .conftest import PROJECT, run_snakemake, use_sst

pytestmark = pytest.mark.pipeline


def plan_of(folder: Path, *arguments: str) -> tuple[str, list[dict]]:
    """The printed and the written plan of the study in a folder."""
    command = [sys.executable, "-m", "plumbline.cli", "plan", "--gpus", "0", "--cores", "2", "--json", "plan.json"]
    done = subprocess.run(
        [*command, *arguments], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout, json.loads((folder / "plan.json").read_text())


def test_a_plan_counts_the_jobs_that_a_run_has(fresh):
    done = run_snakemake(fresh, "all", "--dry-run", "--cores", "2")
    counted = int(next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("total")))
    shown, (plan,) = plan_of(fresh)
    assert plan["jobs"] == counted - 1  # Without the target.
    assert plan["wall_seconds"] >= plan["chain_seconds"] > 0
    assert "tiny study" in shown and "on 2 cores" in shown


def test_a_finished_study_has_nothing_left_and_all_of_it_is_measured(copy):
    shown, (plan,) = plan_of(copy)
    assert plan["jobs"] == 0 and "Nothing is left to do." in shown
    _, (whole,) = plan_of(copy, "--all")
    heavy = [
        rule for rule in whole["rules"] if rule["rule"] in ("train", "attribute", "score_models", "extract_attention")
    ]
    assert heavy and all(set(rule["basis"]) <= {"measured", "scaled"} for rule in heavy)
    trained = sum(part["seconds"] for part in manifests(copy / "results") if part["rule"] == "train")
    (rule,) = [rule for rule in whole["rules"] if rule["rule"] == "train"]
    assert rule["seconds"] - rule["startup_seconds"] == pytest.approx(trained, rel=0.1)


def test_a_study_is_planned_before_its_data_are_there(fresh, reconfigure, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_OFFLINE", "1")
    monkeypatch.delenv("PLUMBLINE_DATA", raising=False)
    reconfigure(fresh, use_sst)
    assert run_snakemake(fresh, "all", "--dry-run", "--cores", "2").returncode != 0
    shown, (plan,) = plan_of(fresh)
    assert plan["not_counted"] == ["bring"] and plan["jobs"] > 20
    assert "Not counted: bring." in shown


def too_long(plan: Plan) -> int:
    """The number of jobs that are expected to exceed the time that they request."""
    return sum(rule.over for rule in plan.rules)


@pytest.mark.parametrize("study", ["jain-wallace", "song-of-disagreement", "recursive-roar"])
def test_no_job_of_the_largest_studies_exceeds_its_time(study, tmp_path, monkeypatch):
    monkeypatch.chdir(PROJECT)
    plan = plan_study(Path(f"studies/{study}.yaml"), Machine(8, 64), tmp_path, [], everything=False)
    assert too_long(plan) == 0, "put what `plumbline plan --cut` prints into the study"


def test_a_study_is_cut_until_all_jobs_fit(tmp_path, monkeypatch):
    """On cores, for which the study is not made."""
    monkeypatch.chdir(PROJECT)
    study, machine = Path("studies/jain-wallace.yaml"), Machine(0, 64)
    whole, cut = (plan_study(study, machine, tmp_path, [], False, cut=cut) for cut in (False, True))
    assert too_long(whole) > 0 and whole.sizes is None
    assert too_long(cut) == 0 and cut.jobs > whole.jobs and cut.sizes["cnn"].seeds == 1
