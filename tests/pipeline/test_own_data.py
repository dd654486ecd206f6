"""A study of one's own CSV file, from the file to tables, and what runs again when the file changes."""

import os
from pathlib import Path

import pandas as pd
import pytest

from plumbline.store import read_json

from .conftest import copy_project, planned_jobs, run_snakemake, write_config

pytestmark = pytest.mark.pipeline
CONFIG = {
    "name": "own data",
    "datasets": {
        "mine": {
            "kind": "table", "path": "reviews.csv", "text": "body", "label": "stars", "evidence": "why",
            "classes": {1: "negative", 2: "negative", 5: "positive"},
            "preparation": {"embedding": {"dimensions": 8}},
        },
    },
    "models": {"average-tanh": {"hidden": 8, "training": {"epochs": 2}}},
    "measures": ["attention", "random"],
    "protocols": ["agreement", "evidence"],
}  # fmt: skip
WORDS = {1: "awful", 2: "poor", 3: "plain", 5: "great"}
TARGETS = ["results/tables/agreement.parquet", "results/tables/evidence.parquet"]


def write_reviews(folder: Path, noun: str = "film") -> None:
    """Ten reviews of each number of stars, with the word that decides it as evidence."""
    stars = sorted(WORDS) * 10
    rows = [f"A {WORDS[star]} {noun} {k % 7};{star};0 1 0 0" for k, star in enumerate(stars)]
    (folder / "reviews.csv").write_text("\n".join(["body;stars;why", *rows]) + "\n")


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    folder = copy_project(tmp_path_factory.mktemp("own-data") / "study")
    write_reviews(folder)
    write_config(folder, CONFIG)
    done = run_snakemake(folder, *TARGETS, "--cores", "2")
    assert done.returncode == 0, done.stdout
    return folder


def test_the_file_becomes_tables(study):
    record = read_json(study / "results/data/mine/dataset.json")
    assert record["classes"] == ["negative", "positive"] and record["dropped"] == {"label not in classes": {"all": 10}}
    assert record["drawn"] == {"shares": {"train": 0.8, "dev": 0.1, "test": 0.1}, "seed": 0, "stratified": True}
    counts = {split: summary["instances_per_class"] for split, summary in record["splits"].items()}
    assert counts == {
        "train": {"negative": 16, "positive": 8},
        "dev": {"negative": 2, "positive": 1},
        "test": {"negative": 2, "positive": 1},
    }
    texts = pd.read_parquet(study / "results/data/mine/plain/instances.parquet")
    for text in texts.itertuples():
        marked = text.tokens[text.evidence].tolist()
        assert marked == (["great"] if text.label else marked) and marked[0] in {"awful", "poor", "great"}
    evidence = pd.read_parquet(study / TARGETS[1])
    assert set(evidence["measure"]) == {"attention", "random"} and set(evidence["source"]) == {"human"}
    assert set(evidence["n"]) == {3}


def test_the_study_runs_again_if_and_only_if_the_content_changes(study):
    assert planned_jobs(study, targets=TARGETS) == set()
    os.utime(study / "reviews.csv")
    assert planned_jobs(study, targets=TARGETS) == set(), "only the date has changed"
    write_reviews(study, "movie")
    os.utime(study / "reviews.csv", (1, 1))
    scored = {"score", "table:agreement", "table:evidence", "table:performance"}
    assert planned_jobs(study, targets=TARGETS) == {"prepare", "embed", "train", "attribute:cheap", *scored}
    done = run_snakemake(study, *TARGETS, "--cores", "2")
    assert done.returncode == 0, done.stdout
    texts = pd.read_parquet(study / "results/data/mine/plain/instances.parquet")
    assert all(text[3] == "movie" for text in texts["tokens"])
    assert planned_jobs(study, targets=TARGETS) == set()


def test_unreadable_rows_are_refused_before_any_job(study):
    (study / "broken.csv").write_text('body;stars;why\nA great film;5;0 1 0\n"A poor film;1;0 1 0\n')
    config = {**CONFIG, "datasets": {"broken": {**CONFIG["datasets"]["mine"], "path": "broken.csv"}}}
    write_config(study, config)
    done = run_snakemake(study, *TARGETS, "--cores", "2")
    assert done.returncode != 0 and "started" not in done.stdout
    assert "`datasets.broken`: 'broken.csv', line 3: the row cannot be read (unexpected end of data)" in done.stdout
    write_config(study, CONFIG)
