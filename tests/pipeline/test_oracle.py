"""A small study compared with an oracle that shares no code with the library and recomputes every number."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.oracle.run import run
from tests.pipeline.conftest import PROJECT, run_study

pytestmark = pytest.mark.pipeline

SMALL = {"preparation": {"embedding": {"dimensions": 8}}}
RECIPE = {"epochs": 6, "learning_rate": 0.02}
USUAL = ["attention", "gradient", "input-x-gradient", "leave-one-out", "random"]
STUDY = {
    "name": "oracle",
    "datasets": {
        "mock-2": {"strength": "strong", "train": 160, "dev": 20, "test": 20, "shortest": 3, "longest": 6, **SMALL},
        "stories": {"people": 2, "places": 2, "longest": 3, "train": 60, "dev": 10, "test": 10, **SMALL},
        "reviews": {"train": 160, "dev": 16, "test": 16, "variants": ["articles"], **SMALL},
    },
    "manipulations": {"articles": {"datasets": ["reviews"]}},
    "models": {
        "average-tanh": {"hidden": 8, "datasets": ["mock-2"], "training": RECIPE},
        "bilstm-tanh": {"hidden": 8, "datasets": ["mock-2", "reviews"], "training": RECIPE, "measures": USUAL},
        "cnn-tanh": {"hidden": 8, "datasets": ["mock-2"], "training": RECIPE, "measures": ["attention", "occlusion"]},
        "transformer-tanh": {
            "hidden": 8, "datasets": ["stories"], "training": RECIPE,
            "measures": ["attention", "gradient", "integrated-gradient-pad", "contrast"],
        },
        "bag-of-words": {"datasets": ["mock-2"], "training": RECIPE, "measures": ["input-x-gradient", "deep-lift"]},
    },
    "seeds": ["0-2"],
    "adversaries": {
        "attefa": {"of": ["average-tanh"], "datasets": ["mock-2"], "training": {"epochs": 3, "patience": 2}},
    },
    "roar": {
        "relative": {
            "strategies": ["roar", "recursive"], "levels": [40, 80], "models": ["average-tanh"],
            "datasets": ["mock-2"], "measures": ["attention", "input-x-gradient"],
        },
    },
    "measures": {
        **dict.fromkeys([*USUAL, "gradient-attached", "integrated-gradient-pad", "occlusion", "deep-lift"]),
        "contrast": {"kind": "integrated-gradient-pad", "function": "difference"},
    },
    "protocols": {
        "agreement": {"statistics": ["kendall", "top-k-fagin"], "top_k_minimum": 3},
        "permutation": {"permutations": 10, "datasets": ["mock-2", "stories"]},
        "adversarial_attention": {"steps": 20, "datasets": ["mock-2"]},
        "seed_variance": {"datasets": ["mock-2"], "base_seed": 2},
        "ground_truth": {},
        "evidence": {},
        "erasure": {"ratios": [20, 50], "draws": 1, "longest": 9, "datasets": ["mock-2", "reviews"]},
        "erasure-published": {
            "kind": "erasure", "ratios": [50], "draws": 1, "soft": "min-max", "removal": "mask", "longest": 0,
            "datasets": ["mock-2"],
        },
    },
}  # fmt: skip
# With what these rest on, all that the oracle computes.
TABLES = ("meta_evaluation", "seed_variance")
# What every such study must have been compared in.
CHECKED = {
    *("predictions", "attention", "gradient", "gradient-attached", "input-x-gradient", "leave-one-out", "occlusion"),
    *("integrated-gradient-pad", "contrast", "deep-lift: linear model"),
    *("agreement: kendall", "masks: words that should not be"),
    *(f"table {name}" for name in ("performance", "agreement", "permutation", "adversarial_attention", "adversary")),
    *(f"table {name}" for name in ("seed_variance", "roar", "faithfulness", "ground_truth", "evidence", "erasure")),
    *("erasure: soft falls", "erasure: area between curves", "erasure: normalised AOPC"),
    *("scorecard: values by seed", "scorecard: twins", "table meta_evaluation"),
}


@pytest.fixture(scope="module")
def study(once) -> Path:
    """The results of the small study."""
    targets = [f"results/tables/{name}.parquet" for name in TABLES]
    return once("oracle", lambda folder: run_study(folder, STUDY, *targets, "--cores", "2")) / "results"


def test_every_number_is_the_oracle_s(study: Path) -> None:
    checks = run(study)
    print(checks.table())
    assert not checks.failed, checks.table()
    assert set(checks.found) >= CHECKED
    assert all(check.rows for check in checks.found.values())


def change_number(source: Path, target: Path, column: str, measure: str) -> None:
    """Move a number, or the first of a list, by 0.001 in the first row of the test split that has a value; where
    importances are changed, of the measure."""
    table = pq.ParquetFile(source).read()
    rows = table.to_pylist()
    place = next(
        i
        for i, row in enumerate(rows)
        if row.get("split", "test") == "test"
        and row.get("status", "ok") == "ok"
        and row[column] is not None
        and ("attributions" not in source.parts or row["measure"] == measure)
    )
    values = [row[column] for row in rows]
    first = values[place][0] if isinstance(values[place], list) else values[place]
    other = not first if isinstance(first, bool) else first + 1e-3
    values[place] = [other, *values[place][1:]] if isinstance(values[place], list) else other
    index = table.schema.get_field_index(column)
    changed = pa.array(values, table.schema.types[index])
    pq.write_table(table.set_column(index, table.schema.field(column), changed), target)


MASKS = "models/mock-2/recursive/relative/attention/80/average-tanh/0-2/masks.parquet"
ERASED = "scores/erasure/mock-2/plain/bilstm-tanh/0-2.parquet"
ADVERSARIES = "scores/adversarial_attention/mock-2/plain/average-tanh/0-2.parquet"


@pytest.mark.parametrize(
    ("file", "column", "part", "found"),
    [
        ("models/mock-2/plain/bilstm-tanh/0-2/predictions.parquet", "probabilities", "predictions", "predictions"),
        ("attributions/mock-2/plain/average-tanh/0-2/cheap.parquet", "scores", "importances", "input-x-gradient"),
        ("attributions/mock-2/plain/bilstm-tanh/0-2/cheap.parquet", "scores", "importances", "attention"),
        ("attributions/mock-2/plain/cnn-tanh/0-2/occlusion.parquet", "scores", "importances", "occlusion"),
        ("scores/agreement/mock-2/plain/average-tanh/0-2.parquet", "value", "agreement", "agreement: kendall"),
        ("tables/agreement.parquet", "mean", "agreement", "table agreement"),
        ("tables/permutation.parquet", "median_change_mean", "permutation", "table permutation"),
        (ADVERSARIES, "jsd", "adversaries", "adversaries: JSD of stored weights"),
        ("tables/adversary.parquet", "attefa", "adversary", "table adversary"),
        (MASKS, "masked", "masks", "masks: words that should not be"),
        ("tables/faithfulness.parquet", "faithfulness", "curves", "table faithfulness"),
        ("tables/ground_truth.parquet", "above_region", "ground truth", "table ground_truth"),
        ("scores/evidence/stories/plain/transformer-tanh/0-2.parquet", "auprc", "evidence", "evidence: scores"),
        ("tables/erasure.parquet", "mean", "erasure", "table erasure"),
        (ERASED, "soft_fall_alone", "erasure", "erasure: soft falls"),
        (ERASED, "morf_lerf", "erasure", "erasure: area between curves"),
        ("tables/performance.parquet", "value", "ids", "table performance"),
        ("tables/scorecard.parquet", "per_seed", "scorecard", "scorecard: values by seed"),
        ("tables/scorecard.parquet", "value", "scorecard", "scorecard: mean and interval"),
        ("tables/meta_evaluation.parquet", "tau", "meta", "table meta_evaluation"),
    ],
)
def test_a_changed_number_is_found(study: Path, tmp_path: Path, file: str, column: str, part: str, found: str) -> None:
    copy = tmp_path / "results"
    shutil.copytree(study, copy, copy_function=os.link)
    (copy / file).unlink()
    change_number(study / file, copy / file, column, found)
    failed = {check.name for check in run(copy, 1, [part]).failed}
    # One number alone was changed, and so nothing else of this part is wrong but what is computed from it.
    assert found in failed and len(failed) <= 2, failed


def test_the_oracle_can_check_any_results(study: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.oracle", str(study), "--texts", "1", "--part", "predictions"]
    done = subprocess.run(command, cwd=PROJECT, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("check ")
    none = subprocess.run([*command[:3], str(tmp_path)], cwd=PROJECT, text=True, capture_output=True, check=False)
    assert none.returncode == 1 and "no models" in none.stderr


def test_the_oracle_shares_nothing_with_the_library() -> None:
    for path in sorted((PROJECT / "tests" / "oracle").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in named if name.split(".")[0] == "plumbline"], path
        assert "import_module" not in path.read_text(encoding="utf-8"), path
