"""Archives are downloaded by rules that exist only for missing files that a study needs."""

import hashlib
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from .conftest import planned_jobs, run_snakemake, use_sst

pytestmark = pytest.mark.pipeline

TREES = "(3 (2 A) (3 fine))\n(1 (2 A) (1 bore))\n"
PATHS = [f"raw/sst/trees/{split}.txt" for split in ("train", "dev", "test")]


@pytest.fixture
def sst(fresh, reconfigure, tmp_path, monkeypatch) -> Path:
    """A study of small trees, whose archive is on a server of this machine."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("PLUMBLINE_OFFLINE", raising=False)
    served = tmp_path / "served"
    served.mkdir()
    with zipfile.ZipFile(served / "trees.zip", "w") as pack:
        for path in PATHS:
            pack.writestr(path.removeprefix("raw/sst/"), TREES)
    digest = hashlib.sha256((served / "trees.zip").read_bytes()).hexdigest()

    reconfigure(fresh, lambda config: use_sst(config, embedding={"kind": "random", "dimensions": 4}))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(served))) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        publishers = fresh / "workflow/plumbline/data/publishers.py"
        text = publishers.read_text()
        text = text.replace(
            "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
            f"http://127.0.0.1:{server.server_address[1]}/trees.zip",
            1,
        )
        publishers.write_text(
            text.replace("5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc", digest, 1)
        )
        yield fresh
        server.shutdown()


def test_files_are_downloaded_once_and_those_placed_by_hand_stay(sst):
    by_hand = sst / PATHS[1]
    by_hand.parent.mkdir(parents=True)
    by_hand.write_text(TREES * 2)
    assert "download_sst" in planned_jobs(sst)

    done = run_snakemake(sst, "results/data/sst/plain/instances.parquet", "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert [(sst / path).read_text() for path in PATHS] == [TREES, TREES * 2, TREES]

    done = run_snakemake(sst, "results/data/sst/plain/instances.parquet", "--cores", "1", "-n")
    assert "Nothing to be done" in done.stdout, done.stdout
    jobs = planned_jobs(sst)
    assert "train" in jobs
    assert not jobs & {"download_sst", "prepare"}


def test_offline_the_files_are_refused_before_any_work(sst, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_OFFLINE", "1")
    done = run_snakemake(sst, "all", "-n")
    assert done.returncode != 0
    assert "Dataset 'sst' needs the files 'sst/trees/train.txt'" in done.stdout, done.stdout
