"""Bad input ends in one clear sentence and a failing exit, before any training."""

from pathlib import Path

import pytest

from .conftest import run_snakemake, use_sst

pytestmark = pytest.mark.pipeline
# The first of a study's tables that needs its models.
TRAINED = "results/tables/performance.parquet"


def refused(folder: Path, sentence: str, target: str = "all") -> None:
    # One attempt: what is wrong does not mend itself.
    done = run_snakemake(folder, target, "--cores", "2", "--retries", "0")
    assert done.returncode != 0
    assert sentence in done.stdout, done.stdout
    assert "Traceback" not in done.stdout
    assert not list((folder / "results").rglob("weights.safetensors")) if (folder / "results").exists() else True


CONFIG_FAULTS = {
    "unknown key": (
        lambda c: c.update(seed=3),
        "`seed` (set to 3) is not a key that is known here; did you mean 'seeds'?",
    ),
    "misspelt dataset": (
        lambda c: c["datasets"].update({"mock-22": {}}),
        "`datasets.mock-22`: There is no dataset 'mock-22'; did you mean 'mock-2'?",
    ),
    "repeated seeds": (lambda c: c.update(seeds=["0-1", "1"]), "seed 1 stands twice"),
    "impossible measure": (
        lambda c: c["models"]["bag-of-words"].update(measures=["attention"]),
        "measure 'attention' needs attention, which model 'bag-of-words' does not provide",
    ),
    "adversary of a model without attention": (
        lambda c: c["adversaries"]["attefa"].update(of=["bag-of-words"]),
        "`adversaries.attefa.of`: model 'bag-of-words' provides no attention",
    ),
    "missing raw file": (
        lambda c: c["datasets"].update({"mock-1": {"words": "opinion-lexicon"}}),
        "Dataset 'mock-1' needs the files 'opinion_lexicon/positive-words.txt'",
    ),
}


@pytest.mark.parametrize("fault", CONFIG_FAULTS)
def test_faulty_config(fresh, reconfigure, fault):
    edit, sentence = CONFIG_FAULTS[fault]
    reconfigure(fresh, edit)
    refused(fresh, sentence)


def write_trees(folder: Path, train: str) -> None:
    trees = folder / "raw" / "sst" / "trees"
    trees.mkdir(parents=True)
    good, bad = "(3 (2 A) (3 fine))", "(1 (2 A) (1 bore))"
    for split in ("dev", "test"):
        (trees / f"{split}.txt").write_text(f"{good}\n{bad}\n")
    (trees / "train.txt").write_text(train.format(good=good, bad=bad))


def test_malformed_tree(fresh, reconfigure):
    write_trees(fresh, "{good}\n{bad}\n(3 (2 A) (2 fine)\n")
    reconfigure(fresh, lambda c: use_sst(c, embedding={"kind": "random", "dimensions": 4}))
    refused(fresh, "line 3", TRAINED)


def test_empty_class(fresh, reconfigure):
    write_trees(fresh, "{good}\n{good}\n")
    reconfigure(fresh, lambda c: use_sst(c, embedding={"kind": "random", "dimensions": 4}))
    refused(fresh, "Dataset 'sst', split 'train' holds no text of class 'negative'", TRAINED)


def test_truncated_vectors(fresh, reconfigure):
    write_trees(fresh, "{good}\n{bad}\n")
    (fresh / "raw/vectors.txt").write_text("a 0.1 0.2 0.3\nfine 0.1 0.2")
    reconfigure(fresh, lambda c: use_sst(c, embedding={"kind": "file", "path": "vectors.txt", "dimensions": 3}))
    refused(fresh, "line 2", TRAINED)


def test_corrupted_artefact(fresh):
    done = run_snakemake(
        fresh,
        "results/data/mock-2/plain/instances.parquet",
        "results/data/echo/plain/instances.parquet",
        "--cores",
        "2",
    )
    assert done.returncode == 0, done.stdout
    for path in fresh.glob("results/data/*/plain/instances.parquet"):
        path.write_bytes(path.read_bytes()[:200])
    refused(fresh, "is damaged and cannot be read as Parquet. Run again, and it is set aside and made anew", TRAINED)
