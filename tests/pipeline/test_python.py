"""The Python API against the pipeline: the same numbers, a config that it accepts, and a finished study opened."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import plumbline

from .conftest import CONFIG, copy_project, run_snakemake

pytestmark = pytest.mark.pipeline
TEXTS = ["the film was good", "a dull film and a bad cast", "great !", "a worse plot , there", "good cast and plot"]
LABELS = ["good", "bad", "good", "bad", "good"]
TRAINING = ["good film", "bad film", "great plot", "dull plot"] * 5, ["good", "bad"] * 10
MEASURES = {"random": {}, "gradient-norm": {"function": "logit"}, "leave-one-out": {}, "lime": {"samples": 20}}
TARGETS = [f"results/tables/{name}.parquet" for name in ("agreement", "erasure", "performance")]


@pytest.fixture(scope="module")
def checkpoint(tiny_bert, tmp_path_factory):
    """The folder of a BERT with random weights that classifies."""
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    folder = tmp_path_factory.mktemp("classifier")
    config = AutoConfig.from_pretrained(tiny_bert, id2label={0: "bad", 1: "good"}, num_labels=2)
    torch.manual_seed(0)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def evaluated(checkpoint):
    lengths = [[len(word) for word in text.split()] for text in TEXTS]
    return plumbline.evaluate(
        checkpoint,
        texts=TEXTS,
        labels=LABELS,
        measures=MEASURES,
        importances={"lengths": lengths},
        protocols={"agreement": {"statistics": ["kendall", "spearman"]}, "erasure": {"ratios": [20, 50], "draws": 2}},
        seeds=[3, 5],
        progress=False,
    )


@pytest.fixture(scope="module")
def study(evaluated, tmp_path_factory) -> Path:
    """The study of the config that the evaluation writes, run up to its tables."""
    folder = copy_project(tmp_path_factory.mktemp("python") / "study")
    evaluated.to_config(folder / "my.yaml", *TRAINING)
    done = run_snakemake(folder, *TARGETS, "--configfile", "my.yaml", "--cores", "2")
    assert done.returncode == 0, done.stdout
    return folder


def test_the_numbers_are_those_of_the_pipeline(study, evaluated):
    for path in TARGETS:
        name = Path(path).stem
        theirs = pd.read_parquet(study / path).query("model == 'model'").reset_index(drop=True)
        if name == "performance":
            theirs = theirs.query("split == 'test'").reset_index(drop=True)
        ours = evaluated.table(name)
        assert len(ours) == len(theirs) > 0
        pd.testing.assert_frame_equal(ours, theirs, check_categorical=False, check_dtype=False, rtol=0, atol=1e-6)
    cell = study / "results/attributions/texts/plain/model/3,5"
    theirs = pd.concat([pd.read_parquet(path) for path in cell.glob("*.parquet")])
    theirs = theirs.set_index(["measure", "seed", "instance"])
    ours = evaluated.importances.set_index(["measure", "seed", "instance"])
    assert len(ours) == len(theirs) == 5 * 2 * len(TEXTS)
    for key, row in ours.iterrows():
        np.testing.assert_allclose(row["scores"], theirs.loc[key, "scores"], atol=1e-6, err_msg=str(key))
        assert row["target"] == theirs.loc[key, "target"] or pd.isna(row["target"])


def test_the_written_config_retrains_the_checkpoint(study):
    dry = run_snakemake(study, "all", "-n", "--configfile", "my.yaml", "--cores", "2")
    assert dry.returncode == 0, dry.stdout
    assert "rule retrain:" in dry.stdout and "model=retrained" in dry.stdout


def test_a_finished_study_is_opened(finished):
    results = plumbline.load(finished)
    assert {"scorecard", "adversary", "erasure"} <= set(results.tables)
    frame = pd.read_parquet(finished / "results/tables/scorecard.parquet")
    wide = results.scorecard
    assert not wide.isna().all().any()
    for row in frame[frame["criterion"].isin(wide.columns)].itertuples():
        found = wide.loc[(row.dataset, row.model, row.measure), row.criterion]
        assert found == pytest.approx(row.value, abs=0, nan_ok=True)
    (file,) = (finished / "results/attributions/mock-2/plain/average-tanh/0-1").glob("leave-one-out.parquet")
    stored = pd.read_parquet(file)["scores"].tolist()
    rows = results.importances.query("dataset == 'mock-2' and model == 'average-tanh' and measure == 'leave-one-out'")
    assert all(np.array_equal(one, other) for one, other in zip(rows["scores"], stored, strict=True))
    assert [len(row) for row in rows["tokens"]] == [len(row) for row in rows["scores"]]
    study = json.loads((finished / "results/manifest.json").read_text())["study"]
    assert {*results.predictions["model"]} == {*study["models"]}
    drawn = {
        path.relative_to(finished / "results/figures").parts[0] for path in finished.glob("results/figures/**/*.svg")
    }
    assert {name.removesuffix(".svg") for name in drawn} == set(results.figures)
    for name in results.figures:
        assert results.plot(name).axes is not None
    assert "attention" in str(results.show(0, dataset="echo"))


def test_a_trained_model_gives_the_numbers_of_its_study(finished):
    """The study's test texts, joined by spaces, are the same instances; so even random draws are the same."""
    results = plumbline.load(finished)
    own = "dataset == 'mock-2' and model == 'average-tanh'"
    texts = results.instances.query(own)
    trained = results.model("mock-2", "average-tanh")
    found = plumbline.evaluate(
        trained,
        texts=[" ".join(words) for words in texts["tokens"]],
        labels=texts["label"].tolist(),
        measures=CONFIG["measures"],
        protocols=CONFIG["protocols"],
        least_above_chance=0.2,
        progress=False,
    )
    assert trained.seeds == [0, 1] and found.instances["tokens"].tolist() == texts["tokens"].tolist()
    keys = ["measure", "seed", "instance"]
    theirs = results.importances.query(own).set_index(keys)
    ours = found.importances.set_index(keys)
    assert len(ours) == len(theirs) == len(CONFIG["measures"]) * 2 * len(texts)
    for key, row in ours.iterrows():
        np.testing.assert_allclose(row["scores"], theirs.loc[key, "scores"], atol=1e-6, err_msg=str(key))
    predicted = results.predictions.query(f"{own} and split == 'test'")["probabilities"]
    np.testing.assert_allclose(np.stack(found.predictions["probabilities"]), np.stack(predicted), atol=1e-6)
    cell = ["dataset", "model"]
    for name in CONFIG["protocols"]:
        one, other = (
            table.drop(columns=cell).reset_index(drop=True)
            for table in (found.table(name), results.table(name).query(own))
        )
        assert len(one) == len(other) > 0
        pd.testing.assert_frame_equal(one, other, check_categorical=False, check_dtype=False, rtol=0, atol=1e-6)


def test_an_adversary_is_a_trained_model(finished):
    results = plumbline.load(finished)
    texts = results.instances.query("dataset == 'mock-2' and model == 'average-tanh'")["tokens"]
    adversary = results.model("mock-2", "average-tanh.attefa")
    found = plumbline.explain(
        adversary, texts=[" ".join(words) for words in texts], measures=["attention"], seeds=0, progress=False
    )
    stored = pd.read_parquet(finished / "results/models/mock-2/plain/average-tanh.attefa/0-1/attention.parquet")
    stored = stored.query("split == 'test' and seed == 0")["attention"]
    assert len(stored) == len(found.importances) > 0
    for one, other in zip(found.importances["scores"], stored, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
