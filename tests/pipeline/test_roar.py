"""Masking and retraining as a whole study: what it writes, and that only what is new runs."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from .conftest import JUDGED, copy_project, run_snakemake, write_config

pytestmark = pytest.mark.studies
TABLES = ("roar", "faithfulness", "sparsity", "reproduction", "quirks", "timings")
AFTER = {*(f"table:{name}" for name in TABLES), "draw_roar", *JUDGED, "report", "explorer"}
CONFIG = {
    "name": "masked study",
    "datasets": {
        "mock-2": {
            "train": 96, "dev": 32, "test": 24, "shortest": 4, "longest": 12,
            "preparation": {"embedding": {"dimensions": 12}},
        },
        "stories": {"train": 60, "dev": 20, "test": 20, "training": {"epochs": 2}},
    },
    "models": {
        "average-tanh": {"hidden": 8, "training": {"epochs": 3}},
        "tiny": {
            "kind": "roberta", "checkpoint": "checkpoint", "datasets": ["mock-2"], "training": {"epochs": 1},
            "measures": ["random", "input-x-gradient"],
        },
    },
    "seeds": ["0-1"],
    "roar": {
        "relative": {"levels": [40, 80], "datasets": ["mock-2"]},
        "absolute": {
            "levels": [1, 2], "datasets": ["stories"], "models": ["average-tanh"], "measures": ["attention"],
            "leakage": True,
        },
    },
    "measures": ["random", "attention", "input-x-gradient"],
    "explain": [],
    "report": {"examples": 2},
}  # fmt: skip


@pytest.fixture(scope="module")
def masked(tmp_path_factory, tiny_checkpoint) -> Path:
    """The study after one whole run."""
    folder = copy_project(tmp_path_factory.mktemp("masked") / "study")
    shutil.copytree(tiny_checkpoint, folder / "checkpoint")
    write_config(folder, CONFIG)
    done = run_snakemake(folder, "all", "--cores", "4", "--resources", "gpu=2")
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture
def study(masked, tmp_path) -> Path:
    """The finished study to change."""
    return shutil.copytree(masked, tmp_path / "study", symlinks=True)


def changed(folder: Path, edit) -> list[str]:
    """The jobs that a changed config plans: `rule`, `table:NAME` or, of cells, `rule DATASET VARIANT MODEL SEEDS` with
    the measures."""
    config = yaml.safe_load((folder / "config.yaml").read_text())
    edit(config)
    write_config(folder, config)
    done = run_snakemake(folder, "all", "-n", "--cores", "2")
    assert done.returncode == 0, done.stdout
    jobs = []
    for block in re.split(r"\n(?=\[)|\n\n", done.stdout):
        rule = re.search(r"^(?:local)?rule (\w+):", block, re.M)
        if rule and rule[1] != "all":
            wildcards = dict(re.findall(r"(\w+)=([^,\s]+)", (re.search(r"wildcards: (.*)", block) or [""])[0]))
            keys = [wildcards[key] for key in ("dataset", "variant", "model", "seeds", "measures") if key in wildcards]
            jobs.append(f"table:{wildcards['table']}" if "table" in wildcards else " ".join([rule[1], *keys]))
    assert len(set(jobs)) == len(jobs)
    return sorted(jobs)


def test_the_curves_are_whole(masked):
    roar = pd.read_parquet(masked / "results/tables/roar.parquet")
    words = roar[roar["trained_on"] == "words"]
    found = words.groupby(["dataset", "model", "unit", "measure"], observed=True)["level"].agg(lambda x: sorted(set(x)))
    assert found["mock-2", "average-tanh", "relative", "attention"] == [0, 40, 80, 100]
    assert found["mock-2", "tiny", "relative", "input-x-gradient"] == [0, 40, 80, 100]
    assert ("mock-2", "tiny", "relative", "attention") not in found.index
    assert found["stories", "average-tanh", "absolute", "attention"] == [0, 1, 2]
    positions = roar[roar["trained_on"] == "positions"]
    assert set(positions["dataset"]) == {"stories"} and {0, 1, 2} <= set(positions["level"])
    faithfulness = pd.read_parquet(masked / "results/tables/faithfulness.parquet")
    assert set(faithfulness["metric"]) == {"macro_f1", "accuracy"}
    assert (faithfulness["n_seeds"] == 2).all() or (faithfulness["status"] == "undefined").any()
    sparsity = pd.read_parquet(masked / "results/tables/sparsity.parquet")
    assert set(sparsity["model"]) == {"average-tanh", "tiny"}
    timings = pd.read_parquet(masked / "results/tables/timings.parquet")
    by_rule = timings.groupby("rule", observed=True)["measure"].agg(set)
    assert by_rule["retrain"] == {"random", "attention", "input-x-gradient"} == by_rule["attribute"]
    assert "tokenize_subwords" in by_rule.index


def test_masks_follow_the_importances_one_level_below(masked):
    """Recomputed word by word from the stored files."""
    checked = 0
    for path in sorted((masked / "results/models").glob("*/*/*/*/*/*/*/masks.parquet")):
        dataset, strategy, unit, measure, level, model, seeds = path.parts[-8:-1]
        below = "unmasked"
        lower = {("relative", "80"): "40", ("absolute", "2"): "1"}.get((unit, level))
        if strategy == "recursive":
            below = f"roar/{unit}/{measure}/{lower}"
        scores = masked / f"results/attributions/{dataset}/{below}/{model}/{seeds}/{measure}.parquet"
        key = ["seed", "split", "instance"]
        table = pd.read_parquet(path).merge(pd.read_parquet(scores), on=key, validate="one_to_one")
        if strategy == "recursive":
            before = pd.read_parquet(masked / f"results/models/{dataset}/{below}/{model}/{seeds}/masks.parquet")
            table = table.merge(before.rename(columns={"masked": "before"}), on=key, validate="one_to_one")
        for row in table.to_dict("records"):
            n = len(row["scores"])
            count = int(level) * n // 100 if unit == "relative" else min(int(level), n)
            already = row.get("before", np.zeros(n, dtype=bool))
            # Which of several words that tie are masked is drawn.
            rank = [(not already[t], -row["scores"][t]) for t in range(n)]
            chosen = np.flatnonzero(row["masked"])
            assert sorted(rank[t] for t in chosen) == sorted(rank)[:count]
            checked += 1
    assert checked > 2000
    explained = pd.read_parquet(
        masked / "results/attributions/mock-2/unmasked/average-tanh/0-1/input-x-gradient.parquet"
    )
    assert set(explained["split"]) == {"train", "dev", "test"}
    labels = pd.read_parquet(masked / "results/data/mock-2/plain/instances.parquet")[["split", "instance", "label"]]
    labelled = explained.merge(labels, on=["split", "instance"])
    assert (labelled["target"] == labelled["label"]).all(), "the gold class is explained"


def test_the_report_and_figures_exist(masked):
    assert 'href="masking.html"' in (masked / "results/report/index.html").read_text()
    assert not (masked / "results/report/other.html").exists(), "every table has a page"
    assert 'id="faithfulness"' in (masked / "results/report/masking.html").read_text()
    for figure in ("faithfulness", "synthetic-roar", "roar-curves/mock-2/tiny", "sparsity/stories/average-tanh"):
        assert (masked / f"results/figures/{figure}.png").stat().st_size > 5000
    check = pd.read_parquet(masked / "results/tables/synthetic_roar.parquet")
    curves = check.pivot_table(index=["seed", "removed"], columns="curve", values="accuracy", observed=True)
    assert (curves["recursive"] - curves["truth"]).abs().max() <= 0.01
    assert curves["roar"].mean() > curves["recursive"].mean() + 0.05
    assert (curves["worst"].unstack("removed")[range(13)] > 0.99).all(axis=None)


def test_nothing_is_left_to_do(study):
    assert changed(study, lambda config: None) == []


def test_a_new_measure_runs_its_own_chain_only(study):
    def edit(config):
        config["measures"].append("gradient-attached")
        config["roar"]["relative"]["models"] = ["average-tanh", "tiny"]

    cell = "mock-2 {} average-tanh 0-1"
    assert changed(study, edit) == sorted(
        [
            f"attribute {cell.format('unmasked')} gradient-attached",
            f"retrain {cell.format('roar/relative/gradient-attached/40')}",
            f"attribute {cell.format('roar/relative/gradient-attached/40')} gradient-attached",
            f"retrain {cell.format('recursive/relative/gradient-attached/80')}",
            *AFTER,
        ]
    )


def test_new_seeds_run_their_own_block_only(study):
    jobs = changed(study, lambda config: config.update(seeds=["0-1", "2"]))
    of_cells = [job for job in jobs if " " in job]
    assert of_cells and all(re.search(r" 2( [\w-]+)?$", job) for job in of_cells)
    assert {job for job in jobs if " " not in job} == {*AFTER, "table:performance"}
    # The same jobs as the first block had: 3 plain, 3 + 4 and 3 + 2 masked, 2 + 2 + 1 and 1 + 4 of positions.
    count = {rule: sum(job.startswith(f"{rule} ") for job in jobs) for rule in ("train", "retrain", "attribute")}
    assert count == {"train": 3 + 5, "retrain": 7 + 5 + 5, "attribute": 5 + 3 + 3}


def test_new_levels_are_all_that_runs(study):
    jobs = changed(study, lambda config: config["roar"]["relative"].update(levels=[40, 80, 90]))
    expected = {*AFTER - {"table:sparsity"}}
    for model, measures in (("average-tanh", ["attention", "input-x-gradient"]), ("tiny", ["input-x-gradient"])):
        cell = f"mock-2 {{}} {model} 0-1"
        expected.add(f"retrain {cell.format('roar/relative/random/90')}")
        for measure in measures:
            expected.add(f"attribute {cell.format(f'recursive/relative/{measure}/80')} {measure}")
            expected.add(f"retrain {cell.format(f'recursive/relative/{measure}/90')}")
    assert jobs == sorted(expected)


def test_the_other_strategy_shares_jobs(study):
    def edit(config):
        config["roar"]["relative"]["strategies"] = ["roar", "recursive"]

    retrained = [job for job in changed(study, edit) if " " in job]
    assert retrained == [
        "retrain mock-2 roar/relative/attention/80 average-tanh 0-1",
        "retrain mock-2 roar/relative/input-x-gradient/80 average-tanh 0-1",
        "retrain mock-2 roar/relative/input-x-gradient/80 tiny 0-1",
    ]


def test_weights_are_deleted_once_nothing_needs_them(study):
    def edit(config):
        config["compute"] = {"keep_retrained": False}
        config["roar"]["relative"].update(levels=[40, 80, 90, 95])

    changed(study, edit)
    here = study / "results/models/mock-2/recursive/relative/attention"
    done = run_snakemake(study, f"{here.relative_to(study)}/95/average-tanh/0-1/predictions.parquet", "--cores", "2")
    assert done.returncode == 0, done.stdout
    assert (here / "90/average-tanh/0-1/masks.parquet").exists()
    assert not (here / "90/average-tanh/0-1/weights.safetensors").exists()
    importances = study / "results/attributions/mock-2/recursive/relative/attention"
    assert (importances / "90/average-tanh/0-1/attention.json").exists()
    assert not (importances / "90/average-tanh/0-1/attention.parquet").exists()
