"""The whole DAG on a tiny study."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from plumbline.config.study import parse_seeds
from plumbline.conformance import whole_batch
from plumbline.data.instances import Instances
from plumbline.models.block import trained_models
from plumbline.registry import Registry
from plumbline.store import ARTEFACTS, read_json, read_table

from .conftest import run_snakemake

pytestmark = pytest.mark.pipeline
LIBRARY = Path(__file__).parents[2] / "workflow"


def test_every_promised_file_is_there(finished):
    results = finished / "results"
    tables = ("performance", "agreement", "permutation", "adversarial_attention", "reproduction", "timings")
    for table in tables:
        assert read_table(results / "tables" / f"{table}.parquet", table).schema.equals(ARTEFACTS[table].schema)
        assert (results / "tables" / f"{table}.csv").stat().st_size > 0
    for figure in (
        "tau-histogram/mock-2/average-tanh",
        "tau-matrix/mock-2/bag-of-words",
        "permutation/mock-2/average-tanh",
        "jsd-histogram/echo/average-tanh",
        "jsd-violins/mock-2/average-tanh",
        "adversarial-texts/echo/average-tanh",
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


def test_stored_adversaries_keep_their_bound_computed_from_scratch(finished):
    folders = sorted((finished / "results/scores/adversarial_attention").glob("*/plain/average-tanh/0-1.parquet"))
    assert len(folders) == 2
    for path in folders:
        assert recompute(finished, path.parts[-4], "average-tanh", "0-1", {"hidden": 8}) > 0


def recompute(folder: Path, dataset: str, model: str, seeds: str, options: dict) -> int:
    """Recompute every stored adversary of a cell, text by text; returns how many were feasible."""
    declaration = Registry().get("model", model)
    known = {name: option.default for name, option in declaration.options.items()} | options
    data, cell = folder / "results/data" / dataset, f"{dataset}/plain/{model}/{seeds}"
    instances = Instances.from_table(read_table(data / "plain/instances.parquet", "instances"), ["test"])
    place = {number: i for i, number in enumerate(instances.instance.tolist())}
    stored = read_table(folder / f"results/scores/adversarial_attention/{cell}.parquet", "adversaries").to_pylist()
    classes = len(read_json(data / "dataset.json")["classes"])
    weights = folder / f"results/models/{cell}/weights.safetensors"
    found = 0
    for asked in trained_models(weights, declaration.pointer, known, classes, parse_seeds(seeds), 4096):
        for row in (row for row in stored if row["seed"] == asked.seed):
            i = place[row["instance"]]
            batch = whole_batch(instances.take([i]))
            with torch.no_grad():
                encoded = asked.model.encode(asked.model.embedding(batch.ids), batch)
                attention = asked.model.attend(encoded, batch)
                adversary = torch.zeros_like(attention)
                adversary[0, instances.maskable[i]] = torch.tensor(row["adversary"])
                before, after = (asked.model.decode(encoded, w).softmax(-1)[0] for w in (attention, adversary))
            assert float((before - after).abs().sum()) / 2 <= row["epsilon"]
            divergence = jensenshannon(attention[0].numpy(), adversary[0].numpy()) ** 2
            assert row["jsd"] == pytest.approx(0 if np.isnan(divergence) else divergence, abs=1e-4)
            assert row["jsd"] <= np.log(2) and (row["feasible"] > 0 or row["jsd"] == 0)
            found += row["feasible"] > 0
    return found
