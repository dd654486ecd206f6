"""Criteria by the share of words that they remove, in tables made by hand."""

import pandas as pd
import pytest

from plumbline.protocols.scorecard.shares import by_share, difference, equal_terms
from plumbline.protocols.scorecard.trust import EVERY
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
def tables() -> dict[str, pd.DataFrame]:
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
    return {
        "scorecard": card(criteria, MEASURES),
        "roar": pd.concat(points),
        "faithfulness": pd.DataFrame({"dataset": ["sst"], "metric": ["f1"]}),
        "erasure": pd.concat(erased).rename(columns={"value": "mean"}),
    }


def test_each_share_is_a_criterion(tables):
    found = of_every_manipulation(equal_terms(tables)).set_index("criterion")
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


def test_some_measures_may_be_left_out(tables):
    found = of_every_manipulation(equal_terms(tables, ("occlusion",))).set_index("criterion")
    assert found["tau"]["comprehensiveness"] == 1.0 and set(found["n_measures"]) == {3}


def test_shares_are_numbers_along_an_axis(tables):
    found = of_every_manipulation(by_share(tables))
    assert list(zip(found["name"], found["along"], strict=True)) == [
        ("Recursive ROAR", 20.0),
        ("Recursive ROAR", 80.0),
        ("comprehensiveness", 20.0),
        ("sufficiency", 20.0),
    ]


def test_the_difference_is_paired_or_missing(tables):
    found = difference(tables, ("Recursive ROAR, 20 %", "comprehensiveness"))
    assert [found[key] for key in ("tau", "ci_low", "ci_high")] == pytest.approx([1 / 3] * 3)
    assert difference(tables, ("Recursive ROAR", "Recursive ROAR, 20 %"), model="net")["tau"] == -2.0
    assert difference(tables, ("Recursive ROAR, 20 %", "comprehensiveness"), ("occlusion",))["tau"] == 0.0
    assert difference(tables, ("ROAR", "comprehensiveness"))["status"] == "missing"


def test_a_run_without_these_tables_has_the_criteria_of_its_scorecard(tables):
    own = {"scorecard": tables["scorecard"]}
    assert set(equal_terms(own)["criterion"]) == {"Recursive ROAR", "comprehensiveness"} and by_share(own).empty
