"""Methods of Captum, a checkpoint and importances from a file, named in a config, through a whole small study."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from .conftest import copy_project, planned_jobs, run_snakemake, write_config

pytestmark = pytest.mark.studies
OWN = """
from captum.attr import Saliency

class Doubled(Saliency):
    def attribute(self, inputs):
        return 2 * super().attribute(inputs)
"""
CONFIG = {
    "name": "way in",
    "datasets": {
        "mock-2": {
            "train": 32, "dev": 12, "test": 12, "shortest": 4, "longest": 8,
            "preparation": {"embedding": {"dimensions": 8}},
        },
    },
    "models": {
        "average-tanh": {"hidden": 8, "training": {"epochs": 2}},
        "my-bert": {
            "checkpoint": "checkpoint", "head": "own", "labels": ["good", "bad"], "training": {"epochs": 0},
            "measures": ["my-ig"],
        },
    },
    "measures": {
        "random": {},
        "my-ig": {"kind": "captum", "method": "captum.attr.IntegratedGradients", "arguments": {"n_steps": 5}},
        "doubled": {"kind": "captum", "method": "own.Doubled", "function": "logit"},
    },
    "protocols": {"agreement": {}, "erasure": {}},
    "report": {"examples": 2},
}  # fmt: skip
INSTANCES = "results/data/mock-2/plain/instances.parquet"
MASKS = "results/models/mock-2/roar/relative/theirs/50/average-tanh/0/masks.parquet"
TARGETS = ["results/tables/agreement.parquet", "results/tables/erasure.parquet", MASKS]
CELL = "results/attributions/mock-2/plain/average-tanh/0"


def save_classifier(folder: Path, tiny_bert: Path) -> None:
    """A BERT that classifies, with its tokenizer."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    shutil.copytree(tiny_bert, folder)
    config = AutoConfig.from_pretrained(tiny_bert, id2label={0: "bad", 1: "none", 2: "good"}, num_labels=3)
    torch.manual_seed(0)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)


def import_importances(folder: Path) -> None:
    """A file of importances for the model, as if computed elsewhere."""
    texts = pd.read_parquet(folder / INSTANCES)
    words = [
        [word for word, free in zip(*row, strict=True) if free] for row in texts[["tokens", "maskable"]].to_numpy()
    ]
    scores = [[float(len(word)) for word in text] for text in words]
    table = texts[["split", "instance"]].assign(dataset="mock-2", model="average-tanh", scores=scores)
    table.to_parquet(folder / "theirs.parquet")


def with_import() -> dict:
    """The study with imported importances, which also determine the masked words."""
    measures = {**CONFIG["measures"], "theirs": {"kind": "imported", "path": "theirs.parquet"}}
    roar = {"levels": [50], "strategies": ["roar"], "measures": ["theirs"], "models": ["average-tanh"]}
    return {**CONFIG, "measures": measures, "roar": {"relative": roar}}


@pytest.fixture(scope="module")
def study(tmp_path_factory, tiny_bert) -> Path:
    """The study after its texts are prepared, then run with importances for them."""
    folder = copy_project(tmp_path_factory.mktemp("way-in") / "study")
    (folder / "own.py").write_text(OWN)
    save_classifier(folder / "checkpoint", tiny_bert)
    for config, targets in ((CONFIG, [INSTANCES]), (with_import(), TARGETS)):
        write_config(folder, config)
        done = run_snakemake(folder, *targets, "--cores", "2")
        assert done.returncode == 0, done.stdout
        if config is CONFIG:
            import_importances(folder)
    return folder


def test_external_methods_run_in_a_study(study):
    files = [pd.read_parquet(path) for path in (study / CELL).glob("*.parquet")]
    tables = {measure: table for file in files for measure, table in file.groupby("measure", observed=True)}
    assert {*tables} == {*with_import()["measures"]}
    texts = pd.read_parquet(study / INSTANCES).set_index(["split", "instance"])
    for _, row in tables["theirs"].iterrows():
        text = texts.loc[row["split"], row["instance"]]
        assert row["scores"].tolist() == [len(word) for word in np.array(text["tokens"])[np.array(text["maskable"])]]
    found = pd.read_parquet(study / "results/tables/agreement.parquet")
    assert {*found["measure_a"], *found["measure_b"]} == {*tables}
    erased = pd.read_parquet(study / "results/tables/erasure.parquet")
    assert {"theirs", "doubled"} <= set(erased["measure"]) and set(erased["model"]) == {"average-tanh", "my-bert"}
    masks = pd.read_parquet(study / MASKS).set_index(["split", "instance"])["masked"]
    longest = max(texts.loc["train", 0]["tokens"][1:-1], key=len)
    masked = np.array(texts.loc["train", 0]["tokens"][1:-1])[masks["train", 0]]
    assert longest in masked and len(masked) == len(masks["train", 0]) // 2


def test_the_checkpoint_is_used_unchanged(study):
    from transformers import AutoModelForSequenceClassification

    subwords = pd.read_parquet(study / "results/data/mock-2/plain/subwords/my-bert/instances.parquet")
    predicted = pd.read_parquet(study / "results/models/mock-2/plain/my-bert/0/predictions.parquet")
    predicted = predicted.set_index(["split", "instance"])["probabilities"]
    model = AutoModelForSequenceClassification.from_pretrained(study / "checkpoint").eval()
    for _, text in subwords[subwords["split"] == "test"].iterrows():
        with torch.no_grad():
            logits = model(input_ids=torch.tensor(text["ids"].astype(np.int64))[None]).logits[0, [2, 0]]
        np.testing.assert_allclose(predicted[text["split"], text["instance"]], logits.softmax(-1), atol=1e-5)


def test_a_changed_file_reruns_what_depends_on_it(study):
    table = pd.read_parquet(study / "theirs.parquet")
    table.assign(scores=table["scores"].map(lambda row: -row)).to_parquet(study / "theirs.parquet")
    jobs = planned_jobs(study, targets=TARGETS)
    assert {job for job in jobs if job.startswith("attribute")} == {"attribute:theirs"}
    assert "retrain" in jobs and "train" not in jobs
    planned = run_snakemake(study, *TARGETS, "-n", "--cores", "2").stdout
    explained = re.findall(r"variant=(\S+), .*measures=theirs$", planned, re.M)
    assert sorted(explained) == ["plain", "unmasked"], "scored importances, and those that determine masks"
    import_importances(study)


def test_a_changed_captum_method_reruns_only_itself(study):
    (study / "own.py").write_text(OWN.replace("2 *", "3 *"))
    jobs = planned_jobs(study, targets=TARGETS)
    (study / "own.py").write_text(OWN)
    assert "attribute:doubled" in jobs and not {"attribute:my-ig", "train", "retrain"} & jobs
