"""Criteria by the share of words that they remove, in a recorded run made by hand."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.errors import PlumblineError
from plumbline.protocols.scorecard.shares import by_share, difference_on_equal_terms, equal_terms
from plumbline.protocols.scorecard.trust import EVERY
from plumbline.record import RecordedRun
from tests.unit.protocols.scorecard.test_trust import card

MEASURES = ("attention", "gradient", "lime", "occlusion", "random")
TRUTH, REVERSED = [4.0, 3.0, 2.0, 1.0, 0.0], [1.0, 2.0, 3.0, 4.0, 0.0]
LAST_TWO = [4.0, 3.0, 1.0, 2.0, 0.0]


def rows(values: list[float], **keys: object) -> pd.DataFrame:
    """A value of each measure for three seeds."""
    return pd.DataFrame(
        {"dataset": "sst", "model": "net", "status": "ok", "seed": seed, "measure": measure, "value": value} | keys
        for seed in range(3)
        for measure, value in zip(MEASURES, values, strict=True)
    )


def of_every_manipulation(found: pd.DataFrame) -> pd.DataFrame:
    return found[found["truth"] == EVERY]


@pytest.fixture
def run(tmp_path: Path) -> RecordedRun:
    """Recursive ROAR ranks measures as the truth does where few words are masked, and the other way round with more;
    comprehensiveness always swaps two."""
    criteria = {
        ("ground truth", "ordered", "net"): TRUTH,
        ("Recursive ROAR", "plain", "net"): REVERSED,
        ("comprehensiveness", "plain", "net"): LAST_TWO,
    }
    curve = {"strategy": "recursive", "unit": "relative", "trained_on": "words", "metric": "f1"}
    # The better the measure, the worse a retrained model.
    worse = [-value for value in TRUTH]
    points = [
        rows(worse, level=20, **curve),
        rows([-value for value in REVERSED], level=80, **curve),
        # These do not count: the ends, another metric and another strategy.
        *(rows(REVERSED, level=level, **curve) for level in (0, 100)),
        rows(REVERSED, level=20, **curve | {"metric": "accuracy"}),
        rows(REVERSED, level=20, **curve | {"strategy": "roar"}),
    ]
    erased = [
        rows(LAST_TWO, variant="plain", metric="comprehensiveness", ratio=20.0),
        rows(REVERSED, variant="ordered", metric="comprehensiveness", ratio=20.0),
        rows(REVERSED, variant="plain", metric="comprehensiveness", ratio=None),
        rows(worse, variant="plain", metric="sufficiency", ratio=20.0),
    ]
    tables = {
        "scorecard": card(criteria, MEASURES),
        "roar": pd.concat(points),
        "faithfulness": pd.DataFrame({"dataset": ["sst"], "metric": ["f1"]}),
        "erasure": pd.concat(erased).rename(columns={"value": "mean"}),
    }
    (tmp_path / "tables").mkdir()
    for name, frame in tables.items():
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / f"tables/{name}.parquet")
    return RecordedRun(tmp_path)


def test_each_share_is_a_criterion(run):
    found = of_every_manipulation(equal_terms(run)).set_index("criterion")
    assert found["tau"].to_dict() == pytest.approx(
        {
            "Recursive ROAR": -1.0,
            "comprehensiveness": 2 / 3,
            "Recursive ROAR, 20 %": 1.0,
            "Recursive ROAR, 80 %": -1.0,
            "comprehensiveness, 20 %": 2 / 3,
            "sufficiency, 20 %": 1.0,
        }
    )
    assert set(found["n_measures"]) == {4} and set(found["resampled"]) == {"seed"}


def test_some_measures_may_be_left_out(run):
    found = of_every_manipulation(equal_terms(run, ("occlusion",))).set_index("criterion")
    assert found["tau"]["comprehensiveness"] == 1.0 and set(found["n_measures"]) == {3}


def test_shares_are_numbers_along_an_axis(run):
    found = of_every_manipulation(by_share(run))
    assert list(zip(found["name"], found["along"], strict=True)) == [
        ("Recursive ROAR", 20.0),
        ("Recursive ROAR", 80.0),
        ("comprehensiveness", 20.0),
        ("sufficiency", 20.0),
    ]


def test_the_difference_has_an_interval_or_a_reason(run):
    assert difference_on_equal_terms(run, "Recursive ROAR, 20 %", "comprehensiveness") == "0.33 [0.33, 0.33]"
    assert difference_on_equal_terms(run, "Recursive ROAR", "Recursive ROAR, 20 %") == "−2.00 [−2.00, −2.00]"
    with pytest.raises(PlumblineError, match="'ROAR' and 'comprehensiveness' are not both compared"):
        difference_on_equal_terms(run, "ROAR", "comprehensiveness")


def test_a_run_without_these_tables_has_the_criteria_of_its_scorecard(run):
    for name in ("roar", "erasure"):
        (run.folder / f"tables/{name}.parquet").unlink()
    assert set(equal_terms(RecordedRun(run.folder))["criterion"]) == {"Recursive ROAR", "comprehensiveness"}
    assert by_share(RecordedRun(run.folder)).empty
