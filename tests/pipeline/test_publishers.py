"""Datasets that need permission, from generated files in their publishers' formats, through the whole DAG."""

import pyarrow.parquet as pq
import pytest

from .conftest import copy_project, run_snakemake, write_config
from .publishers import write_adr, write_cnn, write_mimic

pytestmark = pytest.mark.studies
RANDOM = {"preparation": {"embedding": {"kind": "random", "dimensions": 16}}}
CONFIG = {
    "name": "publishers' formats",
    "datasets": {
        "diabetes": {},
        "anemia": {},
        "adr": RANDOM,
        "cnn": RANDOM | {"training": {"epochs": 25, "batch_size": 32}},
    },
    "models": {"average-tanh": {"hidden": 32, "training": {"epochs": 12, "learning_rate": 0.01}}},
    "seeds": ["0"],
    "measures": ["attention", "gradient"],
    "protocols": {"agreement": {}, "permutation": {"permutations": 10}, "adversarial_attention": {"steps": 10}},
    "report": {"examples": 2},
}
DOCUMENTS = 200


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = copy_project(tmp_path_factory.mktemp("publishers") / "study")
    for write in (write_mimic, write_adr, write_cnn):
        write(folder / "raw", DOCUMENTS)
    write_config(folder, CONFIG)
    done = run_snakemake(folder, "all", "--cores", "8", "--resources", "gpu=2")
    assert done.returncode == 0, done.stdout
    return folder


def test_every_dataset_reaches_the_report(study):
    performance = pq.read_table(study / "results/tables/performance.parquet").to_pandas()
    test = performance[(performance["split"] == "test") & (performance["metric"] == "accuracy")]
    scores = dict(zip(test["dataset"].astype(str), test["value"], strict=True))
    assert set(scores) == set(CONFIG["datasets"])
    # The words determine the classes; entities are one of three or more.
    assert min(scores[name] for name in ("diabetes", "anemia", "adr")) > 0.7 and scores["cnn"] > 0.5, scores
    for table in ("agreement", "permutation", "adversarial_attention"):
        found = pq.read_table(study / f"results/tables/{table}.parquet").to_pandas()
        assert set(found["dataset"].astype(str)) == set(CONFIG["datasets"]), table
    page = (study / "results/report/index.html").read_text()
    assert all(f"permutation/{name}/" in page or name in page for name in CONFIG["datasets"])


def test_only_entities_of_the_passage_can_be_the_answer(study):
    instances = pq.read_table(study / "results/data/cnn/plain/instances.parquet").to_pandas()
    predictions = pq.read_table(study / "results/models/cnn/plain/average-tanh/0/predictions.parquet").to_pandas()
    entities = instances[["split", "instance", "answers"]].rename(columns={"answers": "entities"})
    both = predictions.merge(entities, on=["split", "instance"])
    assert len(both) > 150
    for row in both.itertuples():
        given = {i for i, p in enumerate(row.probabilities) if p > 0}
        assert given <= set(row.entities) and row.label in row.entities
        # Chance in the table `performance` is that of guessing between them.
        assert list(row.answers) == list(row.entities)


def test_vectors_of_the_notes_are_made_once_and_kept(study):
    vectors = study / "raw/mimic3/discharge_summaries.300d.vec"
    words, dimensions = vectors.read_text().splitlines()[0].split()
    assert int(words) > 30 and dimensions == "300"
    done = run_snakemake(study, "all", "--cores", "2", "-n")
    assert "Nothing to be done" in done.stdout, done.stdout
