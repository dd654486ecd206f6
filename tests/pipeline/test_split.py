"""Jobs that are cut by seeds and split by instances have the results of whole ones."""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from plumbline.attribution.schemas import ATTRIBUTIONS
from plumbline.protocols.timings.schemas import TIMINGS
from plumbline.store import read_json, read_table

from .conftest import CONFIG, measures_in, planned_jobs, run_snakemake, run_study, write_config

pytestmark = pytest.mark.pipeline
EXPLAINED = {
    "name": "split study",
    "datasets": {"mock-2": CONFIG["datasets"]["mock-2"]},
    "models": {"average-tanh": {"hidden": 8, "training": {"epochs": 2}}},
    "seeds": ["0-1"],
    "explain": ["train", "test"],
    # Of 14 texts, three jobs explain 5, 5 and 4.
    "sample": 7,
    "roar": {"relative": {"levels": [40, 80], "strategies": ["recursive"], "measures": ["lime"]}},
    "measures": {
        "random": {},
        "attention": {},
        "lime": {"samples": 4},
        "integrated-gradient": {"steps": 2, "tolerance": 0},
        # Counts in all training texts, so that it is not split.
        "mutual-information": {},
        "permuted": {"kind": "degraded", "of": ["attention", "lime"], "share": 0.5},
    },
    # One text in each pass, so that rounding does not depend on the others either.
    "compute": {"token_budget": 10},
}
COSTLY = ("lime", "integrated-gradient")
TEXTS = 7 + 7
CELL = Path("results/attributions/mock-2/plain/average-tanh/0-1")
MASKED = Path("results/attributions/mock-2/roar/relative/lime/40/average-tanh/0-1")
UNMASKED = Path("results/attributions/mock-2/unmasked/average-tanh/0-1")
FILES = [CELL / f"{name}.parquet" for name in (*COSTLY, "mutual-information", "cheap")]
FILES += [UNMASKED / "lime.permuted.0.5.parquet", UNMASKED / "random.parquet", MASKED / "lime.parquet"]
TARGETS = [*map(str, FILES), "results/tables/timings.parquet"]


@pytest.fixture(scope="module")
def whole(once) -> Path:
    """The study with one job for each measure."""
    return once("whole", lambda folder: run_study(folder, EXPLAINED, *TARGETS, "--cores", "4"))


def split_study(whole: Path, folder: Path, parts: int, **compute) -> Path:
    """The study with the measures of one dataset split over jobs, after a run that continues the other one."""
    shutil.copytree(whole, folder, symlinks=True)
    jobs = {"mock-2": {"attribution_parts": parts}}
    write_config(folder, EXPLAINED | {"compute": {**EXPLAINED["compute"], "jobs": jobs, **compute}})
    return folder


def test_split_instances_have_the_importances_of_whole_ones(whole, tmp_path, reconfigure):
    folder = split_study(whole, tmp_path / "study", 3)
    repeated = planned_jobs(folder, targets=TARGETS)
    assert {job for job in repeated if "attribute" in job} == {f"attribute_part:{name}" for name in COSTLY}
    done = run_snakemake(folder, *TARGETS, "--cores", "4")
    assert done.returncode == 0, done.stdout
    for path in FILES:
        expected, found = (read_table(at / path, ATTRIBUTIONS) for at in (whole, folder))
        assert found.equals(expected), path
    assert measures_in(folder / CELL / "lime.parquet") == {"lime", "lime.permuted.0.5"}
    assert not planned_jobs(folder, targets=TARGETS), "nothing is left to do"
    check_timings(whole, folder)
    # The parts are deleted, yet it is known how they were computed.
    reconfigure(folder, lambda config: config["measures"]["integrated-gradient"].update(steps=3))
    changed = {f"{rule}:integrated-gradient" for rule in ("attribute_part", "join_importances")}
    assert planned_jobs(folder, targets=TARGETS) == {*changed, "table:timings"}


def check_timings(whole: Path, folder: Path) -> None:
    """Every part is a row of the timings, and their rows sum to those of the whole."""
    sizes = [read_json(folder / CELL / f"integrated-gradient.{k}-of-3.json")["parts"][0]["rows"] for k in (1, 2, 3)]
    assert sizes == [2 * 5, 2 * 5, 2 * 4]
    assert not list(folder.glob("results/attributions/**/*-of-3.parquet"))
    tables = [read_table(at / "results/tables/timings.parquet", TIMINGS).to_pandas() for at in (whole, folder)]
    costly = [table[table["event"].isna() & table["measure"].isin(COSTLY)] for table in tables]
    before, after = (table[table["rule"].str.startswith("attribute")] for table in costly)
    rows = [table.groupby(["variant", "measure"], observed=True)["rows"].sum().to_dict() for table in (before, after)]
    assert rows[0] == rows[1] and rows[0]["plain", "lime"] == 2 * TEXTS
    assert set(before["rule"]) == {"attribute"} and set(after["rule"]) == {"attribute_part"}


def test_more_jobs_than_texts_and_deleted_importances(whole, tmp_path):
    folder = split_study(whole, tmp_path / "study", TEXTS + 1, keep_retrained=False)
    target = CELL / "lime.parquet"
    assert run_snakemake(folder, str(target), "--cores", "4").returncode == 0
    expected, found = (read_table(at / target, ATTRIBUTIONS) for at in (whole, folder))
    assert found.equals(expected)
    assert "join_masked_importances" in {job.partition(":")[0] for job in planned_jobs(folder, targets=TARGETS)}


def test_cut_blocks_have_the_tables_of_whole_ones(finished, tmp_path):
    """The study with adversaries and another's attention; only the protocol that compares seeds needs their block."""
    compared = CONFIG["protocols"] | {"seed_variance": {"datasets": ["echo"]}}
    jobs = {"mock-2": {"seeds": 1, "attribution_parts": 2}}
    cut = tmp_path / "cut"
    run_study(cut, CONFIG | {"protocols": compared, "compute": {"jobs": jobs}}, "tables", "--cores", "4")
    names = {path.name for path in (finished / "results/tables").glob("*.parquet")}
    names -= {"seed_variance.parquet", "timings.parquet"}
    assert len(names) > 10
    for name in names:
        tables = [pq.read_table(folder / "results/tables" / name).to_pandas() for folder in (finished, cut)]
        pd.testing.assert_frame_equal(*tables, check_categorical=False)
