"""Only what changed is rerun."""

import os
from pathlib import Path

import pandas as pd
import pytest

from .conftest import JUDGED, measures_in, planned_jobs, run_snakemake

pytestmark = pytest.mark.pipeline
COMPARED = {"table:reproduction", "table:quirks", "draw_adversary"}
AFTER_SCORES = {"table:agreement", "draw_agreement", *COMPARED, *JUDGED, "table:timings", "report", "explorer"}
# What reads importances; erasure asks the models too.
AFTER_IMPORTANCES = {"score", "score_models", "table:concentration", "table:erasure", "draw_erasure", *AFTER_SCORES}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_second_run_has_nothing_to_do(copy):
    assert planned_jobs(copy) == set()
    assert "Nothing to be done" in run_snakemake(copy, "all", "--cores", "2").stdout


def test_fresh_clone_times_rerun_nothing(copy):
    for path in [copy / "Snakefile", *copy.glob("rules/*"), *copy.glob("workflow/**/*.*"), copy / "config.yaml"]:
        os.utime(path)
    # The page templates are part of the report and published numbers of a table; their content is what counts.
    assert planned_jobs(copy) == set()


def test_comments_and_docstrings_rerun_nothing(copy):
    edit(copy / "workflow/plumbline/training/trainer.py", '"""', '"""Reworded. ')
    edit(copy / "workflow/plumbline/protocols/agreement/rank_statistics.py", "\n\n\n", "\n\n\n# A comment.\n")
    edit(copy / "workflow/scripts/train.py", '"""', '"""Reworded. ')
    assert planned_jobs(copy) == set()


def test_edited_metric_reruns_scores_but_no_training(copy):
    with (copy / "workflow/plumbline/protocols/agreement/rank_statistics.py").open("a") as file:
        file.write("\nANOTHER_CONSTANT = 1\n")
    assert planned_jobs(copy) == {"score", *AFTER_SCORES}


def test_edited_figure_reruns_figures_and_report_only(copy):
    with (copy / "workflow/plumbline/figures/style.py").open("a") as file:
        file.write("\nANOTHER_CONSTANT = 1\n")
    drawn = {f"draw_{group}" for group in ("agreement", "attention", "adversary", "erasure", "scorecard")}
    assert planned_jobs(copy) == {*drawn, "report"}


def test_edited_published_number_reruns_its_comparison_only(copy):
    edit(copy / "workflow/plumbline/papers/published/attefa.csv", ",0.", ",1.")
    assert planned_jobs(copy) == {*COMPARED, "report"}


def test_edited_criterion_reruns_the_scorecard_only(copy):
    with (copy / "workflow/plumbline/protocols/agreement/criteria.py").open("a") as file:
        file.write("\nANOTHER_CONSTANT = 1\n")
    assert planned_jobs(copy) == {*JUDGED, "report"}


def test_edited_experiment_reruns_its_own_branch_only(copy):
    with (copy / "workflow/plumbline/protocols/attention/permutation.py").open("a") as file:
        file.write("\nANOTHER_CONSTANT = 1\n")
    assert planned_jobs(copy) == {
        *("score_models", "table:permutation", "draw_attention", *JUDGED, "table:timings", "report")
    }
    done = run_snakemake(copy, "all", "-n", "--cores", "2").stdout
    assert "protocol=permutation" in done and "protocol=agreement" not in done


def test_changed_option_of_one_measure_reruns_its_branch_only(copy, reconfigure):
    reconfigure(
        copy, lambda c: c.update(measures={**dict.fromkeys(c["measures"]), "leave-one-out": {"output": "predicted"}})
    )
    assert planned_jobs(copy) == {"attribute:leave-one-out", *AFTER_IMPORTANCES}


def test_cheap_measures_share_a_job_and_its_start(copy):
    timings = pd.read_parquet(copy / "results/tables/timings.parquet").set_index(["dataset", "model", "measure"])
    cell = timings.loc["mock-2", "average-tanh"]
    cheap, costly = cell.loc[["attention", "gradient", "input-x-gradient"]], cell.loc[["leave-one-out", "position"]]
    folder = copy / "results/attributions/mock-2/plain/average-tanh/0-1"
    files = {path.stem: measures_in(path) for path in folder.glob("*.parquet")}
    assert files["cheap"] == set(cheap.index) and all(files[measure] == {measure} for measure in costly.index)
    assert set(cell.loc[[*cheap.index, *costly.index], "rule"]) == {"attribute"}
    assert (
        cheap["startup_seconds"].nunique() == 1 and (cheap["startup_seconds"] < costly["startup_seconds"].min()).all()
    )
    gradients = cheap.loc[["gradient", "input-x-gradient"], "seconds"]
    assert gradients.nunique() == 1, "they come from shared passes"


def test_changed_option_of_a_cheap_measure_reruns_the_cheap_ones_only(copy, reconfigure):
    measures = {"gradient": {"sign": "signed"}}
    reconfigure(copy, lambda c: c.update(measures={**dict.fromkeys(c["measures"]), **measures}))
    assert planned_jobs(copy) == {"attribute:cheap", *AFTER_IMPORTANCES}


def test_edited_measure_reruns_its_branch_only(copy):
    with (copy / "workflow/plumbline/attribution/leave_one_out.py").open("a") as file:
        file.write("\nANOTHER_CONSTANT = 1\n")
    assert planned_jobs(copy) == {"attribute:leave-one-out", *AFTER_IMPORTANCES}


def test_users_edited_plugin_reruns_what_uses_it(copy):
    with (copy / "plugin.py").open("a") as file:
        file.write("\nANOTHER_CONSTANT = 1\n")
    jobs = planned_jobs(copy)
    assert {"attribute:position", "attribute:cheap", "table:concentration"} <= jobs, "the dataset is in the same file"


def test_changed_training_reruns_one_model(copy, reconfigure):
    reconfigure(copy, lambda c: c["models"]["bag-of-words"]["training"].update(epochs=3))
    done = run_snakemake(copy, "all", "-n", "--cores", "2").stdout
    assert "model=bag-of-words" in done and "model=average-tanh" not in done
    assert "rule prepare" not in done and "rule embed" not in done


def test_changed_adversary_reruns_what_reads_it_only(copy, reconfigure):
    reconfigure(copy, lambda c: c["adversaries"]["wiegreffe-pinter"].update(strength=[0.02]))
    done = run_snakemake(copy, "all", "-n", "--cores", "2").stdout
    assert "model=average-tanh.wiegreffe-pinter.0.02" in done
    assert "model=average-tanh.attefa" not in done and "model=average-tanh," not in done
    reconfigure(copy, lambda c: c["adversaries"]["attefa"]["training"].update(epochs=2))
    done = run_snakemake(copy, "all", "-n", "--cores", "2").stdout
    assert "model=average-tanh.attefa" in done and "model=given" in done, "its attention is another"
    assert "model=average-tanh," not in done


def test_new_measure_and_new_seeds_leave_the_old_alone(copy, reconfigure):
    reconfigure(copy, lambda c: c["measures"].append("random"))
    # Random importances are cheap, and so computed with the other cheap ones.
    assert planned_jobs(copy) == {"attribute:cheap", *AFTER_IMPORTANCES}
    costly = {"other": {"kind": "leave-one-out", "output": "gold"}}
    reconfigure(copy, lambda c: c.update(measures={**dict.fromkeys(c["measures"][:-1]), **costly}))
    assert planned_jobs(copy) == {"attribute:other", *AFTER_IMPORTANCES}
    reconfigure(copy, lambda c: (c["measures"].pop("other"), c["seeds"].append("7")))
    done = run_snakemake(copy, "all", "-n", "--cores", "2").stdout
    assert "seeds=7" in done and "seeds=0-1" not in done


def test_token_budget_reruns_nothing(copy, reconfigure):
    reconfigure(copy, lambda c: c.update(compute={"token_budget": 99, "slots_per_gpu": 3}))
    assert planned_jobs(copy) <= {"report"}
