"""The whole DAG on a tiny study."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.store import ARTEFACTS, read_table

from .conftest import run_snakemake

pytestmark = pytest.mark.pipeline
LIBRARY = Path(__file__).parents[2] / "workflow"


def test_every_promised_file_is_there(finished):
    results = finished / "results"
    for table in ("performance", "agreement", "reproduction", "timings"):
        assert read_table(results / "tables" / f"{table}.parquet", table).schema.equals(ARTEFACTS[table].schema)
        assert (results / "tables" / f"{table}.csv").stat().st_size > 0
    for figure in (
        "tau-histogram/mock-2/average-tanh",
        "tau-matrix/mock-2/bag-of-words",
        "mean-differences",
        "rule-graph",
    ):
        for suffix in ("svg", "pdf", "png"):
            assert (results / "figures" / f"{figure}.{suffix}").stat().st_size > 1000
    assert "tiny study" in (results / "report" / "index.html").read_text()


def test_users_dataset_measure_and_protocol_went_through(finished):
    pairs = read_table(finished / "results/tables/agreement.parquet", "agreement").to_pandas()
    assert "position" in set(pairs["measure_b"]) and "echo" in set(pairs["dataset"])
    own = (finished / "results/tables/concentration.csv").read_text()
    assert "position" in own and "concentration" not in ARTEFACTS


def test_manifest_says_what_ran(finished):
    manifest = json.loads((finished / "results/models/mock-2/plain/average-tanh/0-1/manifest.json").read_text())
    assert manifest["config"]["training"]["epochs"] == 3 and manifest["config"]["seeds"] == [0, 1]
    assert {"torch", "python", "plumbline"} <= set(manifest["versions"]) and manifest["seconds"] > 0
    whole = json.loads((finished / "results/manifest.json").read_text())
    assert {"versions", "host", "devices", "seconds"} <= set(whole)


def test_lack_of_memory_is_survived_and_told(finished):
    timings = read_table(finished / "results/tables/timings.parquet", "timings").to_pandas()
    told = timings[timings["event"].notna()]
    assert set(told["measure"]) == {"position"} and told["seconds"].isna().all()
    assert "out of memory: token budget halved to 64" in set(told["event"])
    worked = timings[timings["event"].isna()].set_index("measure")
    assert set(worked.loc["position", "token_budget"]) == {64.0}
    assert set(worked.loc["leave-one-out", "token_budget"]) == {16384.0}
    assert "token budget halved to 64" in (finished / "results/report/index.html").read_text()


def test_excluded_pairs_are_told(finished):
    assert "bag-of-words" in (finished / "results/tables/performance.csv").read_text()
    assert not (finished / "results/attributions/mock-2/plain/bag-of-words/0-1/attention.parquet").exists()
    assert "does not provide" in (finished / "results/report/index.html").read_text()


def test_same_config_gives_the_same_bytes_whatever_cores(finished, fresh):
    assert run_snakemake(fresh, "tables", "--cores", "1").returncode == 0
    kinds = ["weights.safetensors", "predictions.parquet", "attention.parquet", "leave-one-out.parquet"]
    paths = [path for kind in kinds for path in (finished / "results").rglob(kind)]
    paths += [finished / "results/tables/agreement.parquet", finished / "results/tables/performance.csv"]
    assert len(paths) >= 10
    for path in paths:
        assert path.read_bytes() == (fresh / path.relative_to(finished)).read_bytes(), path.name


def test_parsing_imports_nothing_heavy(finished):
    code = (
        "import sys\nfrom snakemake.cli import main\nbefore = set(sys.modules)\n"
        "try:\n    main(['--list-rules', '--quiet', 'all'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'torch', 'spacy', 'transformers', 'pandas', 'sklearn', 'captum'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=finished, text=True, capture_output=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_plugins_lie_beside_the_config_file_wherever_results_go(finished, tmp_path):
    (tmp_path / "studies").mkdir()
    for name in ("config.yaml", "plugin.py"):
        (tmp_path / "studies" / name).write_text((finished / name).read_text())
    config = str(tmp_path / "studies" / "config.yaml")
    done = run_snakemake(
        finished, "all", "-n", "--cores", "1", "--configfile", config, "--directory", str(tmp_path / "out")
    )
    assert done.returncode == 0 and "attribute" in done.stdout, done.stdout


def test_library_works_without_snakemake():
    code = (
        "import sys\nsys.modules['snakemake'] = None\n"
        "import plumbline.models.trainer, plumbline.attribution.run, plumbline.protocols.agreement, plumbline.job\n"
        "import plumbline.data.prepare, plumbline.tables.reproduction, plumbline.conformance\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(LIBRARY)})
