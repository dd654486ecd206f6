"""Datasets with a known truth as a whole small study: texts and images, rationales, and models during training."""

import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from plumbline.attribution.files import read_importances
from plumbline.data.pixels import unpack
from plumbline.data.schemas import INSTANCES
from plumbline.store import read_json, read_table

from .conftest import copy_project, measures_in, planned_jobs, run_snakemake, write_config

pytestmark = pytest.mark.studies
SIDE = 32
CONFIG = {
    "name": "small truth",
    "datasets": {
        "reviews": {"train": 300, "dev": 60, "test": 40, "variants": ["articles", "articles-cn"]},
        "textures": {"train": 96, "dev": 32, "test": 12, "side": SIDE, "variants": ["watermark", "noise"]},
    },
    "manipulations": {
        "articles": {},
        "articles-cn": {},
        "watermark": {"height": {"between": [60, 120]}},
        "noise": {"kind": "striped-noise", "probability": {"levels": [0.5]}, "r": [0.5, 1.0]},
    },
    "models": {
        "bilstm-zhou": {"hidden": 16, "training": {"epochs": 4}, "measures": ["attention", "gradient", "random"]},
        "minilm": {
            "checkpoint": "checkpoint", "datasets": ["reviews"], "variants": ["articles-cn"],
            "training": {"epochs": 1}, "measures": ["input-x-gradient"],
        },
        "rl": {
            "kind": "rationale-rl", "rate": 0.1, "hidden": 8, "variants": ["articles"], "measures": ["selection"],
            "training": {"epochs": 2},
        },
        "resnet-small": {
            "width": 4, "training": {"epochs": 3, "batch_size": 32}, "seeds": ["0-1"],
            "measures": ["gradient-channels", "grad-cam", "random"],
        },
    },
    "seeds": ["0"],
    "measures": [
        "attention", "gradient", "input-x-gradient", "selection", "gradient-channels", "grad-cam", "random",
    ],
    "protocols": ["ground_truth", "rationales"],
    "report": {"examples": 2},
}  # fmt: skip
VARIANTS = {
    "reviews": ["articles", "articles-cn"],
    "textures": ["noise-probability0.5-r0.5", "noise-probability0.5-r1", "watermark"],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_bert):
    """The study after one whole run."""
    folder = copy_project(tmp_path_factory.mktemp("truth") / "study")
    shutil.copytree(tiny_bert, folder / "checkpoint")
    write_config(folder, CONFIG)
    done = run_snakemake(folder, "all", "--cores", "3")
    assert done.returncode == 0, done.stdout
    return folder


def table(folder, name):
    return pd.read_parquet(folder / f"results/tables/{name}.parquet")


def test_a_second_run_has_nothing_to_do(finished):
    assert planned_jobs(finished) == set()


def test_every_variant_is_trained_and_scored(finished):
    truth = table(finished, "ground_truth")
    found = truth.groupby("dataset", observed=True)["variant"].agg(lambda of: sorted(set(of)))
    assert found.to_dict() == VARIANTS
    assert set(truth[truth["dataset"] == "textures"]["seed"]) == {0, 1}, "a model has seeds of its own"
    assert set(table(finished, "performance")["variant"]) == {*VARIANTS["reviews"], *VARIANTS["textures"]}


def test_attributed_shares_are_those_of_the_importances(finished):
    cell = "textures/watermark/resnet-small/0-1"
    instances = read_table(finished / "results/data/textures/watermark/instances.parquet", INSTANCES).to_pandas()
    instances = instances[instances["split"] == "test"].set_index("instance")
    folder = finished / f"results/attributions/{cell}"
    (path,) = [path for path in folder.glob("*.parquet") if "gradient-channels" in measures_in(path)]
    scores = read_importances(path, "gradient-channels").to_pandas()
    truth = table(finished, "ground_truth")
    here = truth[(truth["variant"] == "watermark") & (truth["measure"] == "gradient-channels") & truth["truth"]]
    for seed, rows in scores.groupby("seed"):
        shares = [
            np.abs(row["scores"])[instances.loc[row["instance"], "groups"] == 1].sum() / np.abs(row["scores"]).sum()
            for _, row in rows.iterrows()
        ]
        fraction = here[(here["seed"] == seed) & (here["class"] == "all")]["attributed_fraction"].item()
        assert fraction == pytest.approx(np.mean(shares), abs=1e-6)


def test_nothing_outside_of_the_region_changes(finished):
    plain = pq.read_table(finished / "results/data/textures/plain/instances.parquet").to_pandas()
    changed = pq.read_table(finished / "results/data/textures/watermark/instances.parquet").to_pandas()
    both = plain.merge(changed, on=["split", "instance"], suffixes=("", "_new"))
    assert len(both) == len(changed) == 140
    region = both["groups_new"].iloc[0].reshape(SIDE, SIDE) == 1
    before, after = (unpack(np.stack(both[column])) for column in ("ids", "ids_new"))
    assert np.array_equal(before[:, ~region], after[:, ~region])
    differs = (before != after).any((1, 2, 3))
    assert np.array_equal(differs, both["label_new"] == 1), "the second class alone is manipulated"


def test_labels_follow_the_inserted_words(finished):
    instances = pq.read_table(finished / "results/data/reviews/articles/instances.parquet").to_pandas()
    for _, row in instances.head(50).iterrows():
        articles = {word for word, group in zip(row["tokens"], row["groups"], strict=True) if group}
        assert articles == {"the" if row["label"] else "a"}
    assert 0.3 < (instances["label"] == instances["original_label"]).mean() < 0.7
    record = read_json(finished / "results/data/reviews/articles/dataset.json")["manipulation"]
    assert (record["kind"], record["p_star"]) == ("articles", 0.5)


def test_subwords_keep_the_groups_of_their_words(finished):
    folder = finished / "results/data/reviews/articles-cn"
    words = pq.read_table(folder / "instances.parquet").to_pandas()
    subwords = pq.read_table(folder / "subwords/minilm/instances.parquet").to_pandas()
    for (_, whole), (_, cut) in zip(words.head(20).iterrows(), subwords.head(20).iterrows(), strict=True):
        groups = whole["groups"][whole["maskable"]]
        assert np.array_equal(cut["groups"][cut["maskable"]], groups[cut["word"]])


def test_models_are_explained_during_training(finished):
    trace = table(finished, "trace")
    assert set(trace["variant"]) == set(VARIANTS["textures"])
    assert (trace.groupby(["variant", "seed"], observed=True)["epoch"].min() == 1).all()


def test_rationales_are_scored(finished):
    rationales = table(finished, "rationales")
    assert rationales["target_rate"].tolist() == pytest.approx([0.1])
    assert rationales["precision"].between(0, 1).all()


def test_every_figure_exists_and_the_report_shows_the_texts(finished):
    figures = {
        path.relative_to(finished / "results/figures").as_posix() for path in finished.glob("results/figures/**/*.svg")
    }
    for stem in ("truth-found", "saliency/textures/resnet-small", "rationale-curves/reviews"):
        assert f"{stem}.svg" in figures
    page = (finished / "results/report/index.html").read_text()
    assert "reviews (articles-cn)" in page


def test_a_changed_probability_reruns_what_depends_on_it(finished):
    config = {**CONFIG, "manipulations": {**CONFIG["manipulations"], "articles": {"r": 0.6}}}
    write_config(finished, config)
    try:
        jobs = planned_jobs(finished)
    finally:
        write_config(finished, CONFIG)
    assert {"manipulate", "train", "attribute:cheap", "score", "table:ground_truth"} <= jobs
    assert not jobs & {"prepare", "embed", "tokenize_subwords", "trace", "attribute:grad-cam"}, "other variants stay"


def test_variants_are_deleted_once_nothing_needs_them(finished, tmp_path):
    study = shutil.copytree(finished, tmp_path / "study", symlinks=True)
    write_config(study, {**CONFIG, "compute": {"keep_variants": False}})
    scores = study / "results/scores/ground_truth/textures/watermark/resnet-small/0-1.parquet"
    before = scores.read_bytes()
    scores.unlink()
    done = run_snakemake(study, str(scores.relative_to(study)), "--cores", "2")
    assert done.returncode == 0, done.stdout
    assert scores.read_bytes() == before
    assert not (study / "results/data/textures/watermark/instances.parquet").exists()
    assert (study / "results/data/textures/watermark/dataset.json").exists()
    assert (study / "results/data/textures/noise-probability0.5-r1/instances.parquet").exists()
