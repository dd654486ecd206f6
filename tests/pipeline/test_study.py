"""The whole DAG on a tiny study."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from plumbline.config.seeds import parse_seeds
from plumbline.conformance import whole_batch
from plumbline.data.instances import Instances
from plumbline.data.schemas import INSTANCES
from plumbline.models.block import trained_models
from plumbline.papers.schemas import QUIRKS, REPRODUCTION
from plumbline.protocols.adversary.schemas import ADVERSARY
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.attention.schemas import ADVERSARIAL_ATTENTION, ADVERSARIES, PERMUTATION, SEED_VARIANCE
from plumbline.protocols.erasure.schemas import ERASURE
from plumbline.protocols.performance.schemas import PERFORMANCE
from plumbline.protocols.scorecard.schemas import META_EVALUATION, SCORECARD
from plumbline.protocols.timings.schemas import TIMINGS
from plumbline.registry import Registry
from plumbline.store import read_json, read_table
from plumbline.training.schemas import PREDICTIONS

from .conftest import CONFIG, measures_in, run_snakemake

pytestmark = pytest.mark.pipeline
TABLES = [PERFORMANCE, AGREEMENT, PERMUTATION, ADVERSARIAL_ATTENTION, REPRODUCTION, TIMINGS, ADVERSARY, SEED_VARIANCE]
TABLES += [ERASURE, SCORECARD, META_EVALUATION, QUIRKS]
LIBRARY = Path(__file__).parents[2] / "workflow"


def test_every_promised_file_exists(finished):
    results = finished / "results"
    for table in TABLES:
        path = results / "tables" / f"{table.name}.parquet"
        assert read_table(path, table).schema.equals(table.schema)
        for suffix in (".csv", ".tex"):
            assert path.with_suffix(suffix).stat().st_size > 0
    for figure in (
        "tau-histogram/mock-2/average-tanh",
        "tau-matrix/mock-2/bag-of-words",
        "permutation/mock-2/average-tanh",
        "jsd-histogram/echo/average-tanh",
        "jsd-violins/mock-2/average-tanh",
        "adversarial-texts/echo/average-tanh",
        "attefa-violins",
        "jsd-tvd-plane/mock-2/average-tanh",
        "seed-variance/echo/average-tanh",
        "scorecard",
        "scorecard/mock-2/average-tanh",
        "meta-evaluation",
    ):
        for suffix in ("svg", "pdf", "png"):
            assert (results / "figures" / f"{figure}.{suffix}").stat().st_size > 1000
    assert not (results / "figures" / "mean-differences.svg").exists(), "it would have no bar"
    assert "tiny study" in (results / "report" / "index.html").read_text()
    other = (results / "report" / "other.html").read_text()
    assert 'id="table-concentration"' in other and 'id="table-performance"' not in other, "it has a page"


def test_snakemakes_own_report_has_the_figures_of_the_whole_study(copy, tmp_path):
    done = run_snakemake(copy, "--report", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stdout
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for kind in ("scorecard", "meta-evaluation", "attefa-violins", "correlation-matrices/average-tanh"):
        assert f"results/figures/{kind}.svg" in page
    assert Registry().get("figure", "attefa-violins").experiment in page
    # A caption, up to what its markup changes.
    assert "Agreement of every two criteria (rows and columns)" in page


def test_dataset_measure_and_protocol_of_a_plugin_run(finished):
    pairs = read_table(finished / "results/tables/agreement.parquet", AGREEMENT).to_pandas()
    assert "position" in set(pairs["measure_b"]) and "echo" in set(pairs["dataset"])
    own = (finished / "results/tables/concentration.csv").read_text()
    assert "position" in own and own.startswith("seed,measure_a,mean,"), "the plug-in's own columns"


def test_manifest_describes_the_run(finished):
    manifest = json.loads((finished / "results/models/mock-2/plain/average-tanh/0-1/manifest.json").read_text())
    assert manifest["config"]["training"]["epochs"] == 3 and manifest["config"]["seeds"] == [0, 1]
    assert {"torch", "python", "plumbline"} <= set(manifest["versions"]) and manifest["rule"] == "train"
    (part,) = manifest["parts"]
    assert part["seconds"] > 0 and part["rows"] == 2 * 3 * 96
    whole = json.loads((finished / "results/manifest.json").read_text())
    assert {"versions", "host", "devices", "seconds"} <= set(whole)


def test_lack_of_memory_is_survived_and_recorded(finished):
    timings = read_table(finished / "results/tables/timings.parquet", TIMINGS).to_pandas()
    events = timings[timings["event"].notna()]
    assert set(events["measure"]) == {"position"} and events["seconds"].isna().all()
    assert "out of memory: token budget halved to 64" in set(events["event"])
    worked = timings[timings["event"].isna()].set_index("measure")
    assert set(worked.loc["position", "token_budget"]) == {64.0}
    assert set(worked.loc["leave-one-out", "token_budget"]) == {16384.0}
    assert "token budget halved to 64" in (finished / "results/report/timings.html").read_text()


def test_excluded_pairs_are_listed(finished):
    assert "bag-of-words" in (finished / "results/tables/performance.csv").read_text()
    cells = finished / "results/attributions/mock-2/plain"
    measures = {
        model: {measure for path in (cells / model / "0-1").glob("*.parquet") for measure in measures_in(path)}
        for model in ("average-tanh", "bag-of-words")
    }
    assert measures["average-tanh"] == set(CONFIG["measures"])
    assert measures["average-tanh"] - measures["bag-of-words"] == {"attention", "gradient"}
    assert "does not provide" in (finished / "results/report/index.html").read_text()


def test_same_config_gives_the_same_bytes_whatever_cores(finished, fresh):
    tables = ("predictions", "attention", "leave-one-out", "cheap")
    kinds = ["weights.safetensors", *(f"{table}.parquet" for table in tables)]
    # A training of each kind: plain, of an adversary, with another's attention; and what is made of them.
    paths = [path for kind in kinds for path in (finished / "results").rglob(f"mock-2/**/{kind}")]
    paths += (finished / "results/scores").rglob("agreement/mock-2/**/*.parquet")
    assert len(paths) >= 15
    files = [str(path.relative_to(finished)) for path in paths]
    done = run_snakemake(fresh, *files, "--cores", "1")
    assert done.returncode == 0, done.stdout
    for file in files:
        assert (finished / file).read_bytes() == (fresh / file).read_bytes(), file


def test_parsing_imports_nothing_heavy(finished):
    code = (
        "import sys\nfrom snakemake.cli import main\nbefore = set(sys.modules)\n"
        "try:\n    main(['--list-rules', '--quiet', 'all'])\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'torch', 'spacy', 'transformers', 'pandas', 'sklearn', 'captum'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=finished, text=True, capture_output=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_plugins_are_found_next_to_the_config_file_for_any_results_folder(finished, tmp_path):
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
        "import plumbline.training.trainer, plumbline.attribution.run, plumbline.protocols.agreement.score\n"
        "import plumbline.runtime.job\n"
        "import plumbline.data.prepare, plumbline.papers.reproduction, plumbline.conformance\n"
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
    instances = Instances.from_table(read_table(data / "plain/instances.parquet", INSTANCES), ["test"])
    position = {number: i for i, number in enumerate(instances.instance.tolist())}
    stored = read_table(folder / f"results/scores/adversarial_attention/{cell}.parquet", ADVERSARIES).to_pylist()
    classes = len(read_json(data / "dataset.json")["classes"])
    weights = folder / f"results/models/{cell}/weights.safetensors"
    found = 0
    for evaluator in trained_models(weights, declaration.pointer, known, classes, parse_seeds(seeds), 4096):
        for row in (row for row in stored if row["seed"] == evaluator.seed):
            i = position[row["instance"]]
            batch = whole_batch(instances.take([i]))
            with torch.no_grad():
                encoded = evaluator.model.encode(evaluator.model.embedding(batch.ids), batch)
                attention = evaluator.model.attend(encoded, batch)
                adversary = torch.zeros_like(attention)
                adversary[0, instances.maskable[i]] = torch.tensor(row["adversary"])
                before, after = (evaluator.model.decode(encoded, w).softmax(-1)[0] for w in (attention, adversary))
            assert float((before - after).abs().sum()) / 2 <= row["epsilon"]
            divergence = jensenshannon(attention[0].numpy(), adversary[0].numpy()) ** 2
            assert row["jsd"] == pytest.approx(0 if np.isnan(divergence) else divergence, abs=1e-4)
            assert row["jsd"] <= np.log(2)
            found += row["feasible"] > 0
    return found


def model_outputs(folder: Path, model: str, seeds: str, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Attention, text by text, and probabilities of a stored model of average-tanh on mock-2's test texts."""
    declaration = Registry().get("model", "average-tanh")
    options = {name: option.default for name, option in declaration.options.items()} | {"hidden": 8}
    table = read_table(folder / "results/data/mock-2/plain/instances.parquet", INSTANCES)
    instances = Instances.from_table(table, ["test"])
    weights = folder / f"results/models/mock-2/plain/{model}/{seeds}/weights.safetensors"
    (evaluator,) = trained_models(weights, declaration.pointer, options, 2, [seed], 4096)
    with torch.no_grad():
        outputs = [evaluator.model(whole_batch(instances.take([i]))) for i in range(len(instances))]
    words = [output.attention[0, free].numpy() for output, free in zip(outputs, instances.maskable, strict=True)]
    return words, torch.stack([output.logits.softmax(-1)[0, 1] for output in outputs]).numpy()


def test_adversaries_are_as_far_from_their_base_as_the_table_says(finished):
    table = read_table(finished / "results/tables/adversary.parquet", ADVERSARY).to_pandas()
    assert set(table["model"]) == {"average-tanh"} and set(table["base_seed"]) == {0}
    attefa = table[table["adversary"] == "attefa"]
    assert len(attefa) == 4 and set(attefa["selected_on"]) == {"dev", "test"}
    assert table[table["adversary"] == "wiegreffe-pinter"][["strength", "selected_on"]].values.tolist() == [
        [0.01, "train"]
    ]
    base = model_outputs(finished, "average-tanh", "0-1", 0)
    for _, row in attefa[attefa["selected_on"] == "dev"].iterrows():
        attention, probabilities = model_outputs(finished, "average-tanh.attefa", "0-1", row["seed"])
        jsd = np.mean([jensenshannon(a, b) ** 2 for a, b in zip(attention, base[0], strict=True)])
        tvd = np.abs(probabilities - base[1]).mean() / 2
        assert (row["tvd"], row["jsd"]) == pytest.approx((tvd, jsd), abs=1e-5)
        assert row["attefa"] == pytest.approx(min(tvd / 0.5 / (jsd / np.log(2)), 1), abs=1e-4)
    test = attefa.pivot(index="seed", columns="selected_on", values=["tvd", "jsd"])
    loss = test["tvd"] / 0.5 - test["jsd"] / np.log(2)
    assert (loss["test"] <= loss["dev"] + 1e-9).all(), "chosen on test, it is no worse there"


def test_a_model_with_another_attention_predicts_with_it(finished):
    """The stored predictions are those with the attention of the adversary's first seed."""
    declaration = Registry().get("model", "average-tanh")
    options = {name: option.default for name, option in declaration.options.items()} | {"hidden": 8}
    table = read_table(finished / "results/data/mock-2/plain/instances.parquet", INSTANCES)
    instances = Instances.from_table(table, ["test"])
    given, _ = model_outputs(finished, "average-tanh.attefa", "0-1", 0)
    folder = finished / "results/models/mock-2/plain/given/0-1"
    stored = read_table(folder / "predictions.parquet", PREDICTIONS).to_pandas()
    stored = stored[(stored["seed"] == 1) & (stored["split"] == "test")].set_index("instance")["probabilities"]
    (evaluator,) = trained_models(folder / "weights.safetensors", declaration.pointer, options, 2, [1], 4096)
    for i, weights in enumerate(given):
        batch = whole_batch(instances.take([i]))
        spread = torch.zeros(1, batch.ids.shape[1])
        spread[0, instances.maskable[i]] = torch.from_numpy(weights)
        with torch.no_grad():
            encoded = evaluator.model.encode(evaluator.model.embedding(batch.ids), batch)
            expected = evaluator.model.decode(encoded, spread).softmax(-1)[0].numpy()
        np.testing.assert_allclose(stored[instances.instance[i]], expected, atol=1e-5)
    assert not (finished / "results/models/echo/plain/given").exists(), "there is no adversary there"
