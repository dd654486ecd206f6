"""The table of sensitivity on scorecards made by hand: power, order of the ladder, the smallest share that is seen."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from plumbline.protocols.scorecard.schemas import SCORECARD
from plumbline.protocols.sensitivity.page import _finding, sensitivity_overview
from plumbline.protocols.sensitivity.schemas import SENSITIVITY
from plumbline.protocols.sensitivity.table import ladder_tau, power, seed_subsets, sensitivity_rows, smallest_seen
from plumbline.store import read_table, write_table
from plumbline.tables.export import latex

CELL = {"dataset": "sst", "variant": "plain", "model": "net"}
DEGRADED = {f"loo.degraded.{share:g}": {"of": "loo", "share": share} for share in (0.25, 0.5, 1.0)}


def card(values: dict[str, list[float]], criterion: str = "ROAR", direction: str = "higher", **cell) -> pd.DataFrame:
    """A scorecard with these values of each measure's seeds."""
    usual = {**CELL, **cell, "criterion": criterion, "direction": direction, "status": "ok"}
    rows = [
        {
            **usual,
            "measure": measure,
            "n_seeds": len(seeds),
            "per_seed": seeds,
            "value": np.mean(seeds),
            "degraded_of": DEGRADED.get(measure, {}).get("of"),
        }
        for measure, seeds in values.items()
    ]
    return pd.DataFrame(rows, columns=SCORECARD.columns)


def ladder(*rungs: list[float], direction: str = "higher", criterion: str = "ROAR", **cell) -> pd.DataFrame:
    """The rows of a measure with these values at the shares 0, 0.25, 0.5 and 1."""
    names = ["loo", *DEGRADED][: len(rungs)]
    return sensitivity_rows(card(dict(zip(names, rungs, strict=True)), criterion, direction, **cell), DEGRADED)


def test_subsets_are_all_or_a_thousand():
    assert seed_subsets(4, 3).tolist() == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
    assert seed_subsets(9, 9).tolist() == [list(range(9))]
    drawn = seed_subsets(20, 9)
    assert drawn.shape == (1000, 9) and all(len(set(row)) == 9 for row in drawn.tolist())
    assert np.array_equal(drawn, seed_subsets(20, 9))


def test_power_by_hand():
    # Of 1, 2, 3 and -4: t of (1, 2, 3) is 2 / (1 / √3) = 3.46, above 2.92, the quantile of two degrees of freedom; the
    # means of the other sets of three are below 1/3, with deviations above 3.
    worse = np.array([1.0, 2.0, 3.0, -4.0])
    assert power(worse, 3) == 0.25
    assert power(worse, 4) == 0.0
    assert power(np.array([1.0, 2.0, 3.0]), 3) == 1.0
    # t of (1, 2, 6) is 3 / (2.646 / √3) = 1.96.
    assert power(np.array([1.0, 2.0, 6.0]), 3) == 0.0
    assert np.isnan(power(np.array([1.0, 2.0]), 2))


def test_equal_differences_are_seen_unless_they_are_rounding_errors():
    assert power(np.full(5, 0.1), 3) == 1.0
    assert power(np.zeros(5), 3) == power(np.full(5, 1e-9), 3) == power(np.full(5, -0.1), 3) == 0.0


def test_power_is_that_of_scipy():
    worse = np.random.default_rng(0).normal(0.6, 1, 9)
    for count in (3, 5, 9):
        tests = [ttest_1samp(worse[rows], 0, alternative="greater").pvalue < 0.05 for rows in seed_subsets(9, count)]
        assert power(worse, count) == pytest.approx(np.mean(tests))


def test_a_spoiled_measure_is_rarely_seen_by_chance():
    """Where nothing differs, a test at 5 % sees something in 5 % of the sets."""
    normal = np.random.default_rng(1).normal(size=(400, 9))
    assert np.mean([power(worse, 5) for worse in normal]) == pytest.approx(0.05, abs=0.015)


def test_tau_is_one_if_every_step_is_worse():
    assert ladder_tau([0, 1, 2, 3]) == 1 and ladder_tau([3, 2, 1, 0]) == -1
    # Of six pairs one is reversed.
    assert ladder_tau([0, 2, 1, 3]) == pytest.approx(4 / 6)
    # Of six pairs one is tied.
    assert ladder_tau([0, 1, 1 + 1e-9, 3]) == pytest.approx(5 / np.sqrt(5 * 6))
    assert np.isnan(ladder_tau([1, 1, 1]))


def test_rows_are_of_each_share_and_number_of_seeds():
    start, fall = np.linspace(0.5, 0.6, 9), np.linspace(0.018, 0.022, 9)
    rows = ladder(*(list(start - step * fall) for step in range(4)))
    assert list(zip(rows["share"], rows["n_seeds"], strict=True)) == [
        (share, count) for share in (0, 0.25, 0.5, 1) for count in (3, 5, 9)
    ]
    assert set(rows["measure"]) == {"loo"} and set(rows["status"]) == {"ok"}
    means = rows.groupby("share")[["value", "difference", "power"]].mean()
    assert means["value"].tolist() == pytest.approx([0.55, 0.53, 0.51, 0.49])
    assert means["difference"].tolist() == pytest.approx([0, 0.02, 0.04, 0.06])
    assert means["power"].tolist() == [0, 1, 1, 1] and set(rows["tau"]) == {1.0} and rows["in_order"].all()
    # The measure itself is not seen.
    assert rows.set_index("share")["seen"].groupby("share").all().tolist() == [False, True, True, True]


def test_the_direction_is_that_of_the_criterion():
    rungs = [[0.1, 0.2, 0.3, 0.1], [0.2, 0.31, 0.4, 0.2], [0.3, 0.4, 0.52, 0.3]]
    lower, higher = ladder(*rungs, direction="lower"), ladder(*rungs)
    assert set(lower["tau"]) == {1.0} and lower["in_order"].all()
    assert set(higher["tau"]) == {-1.0} and not higher["in_order"].any()
    assert lower["difference"].tolist() == pytest.approx((-higher["difference"]).tolist())
    assert lower.loc[lower["share"] > 0, "seen"].all() and not higher["seen"].any()


def test_too_few_seeds_have_a_difference_and_no_power():
    rows = ladder([0.3, 0.4], [0.1, 0.2])
    assert rows["n_seeds"].tolist() == [2, 2] and rows["power"].isna().all() and rows["seen"].isna().all()
    assert rows["difference"].tolist() == pytest.approx([0, 0.2]) and rows["in_order"].all()
    assert smallest_seen(rows, ["criterion"]).empty


def test_what_cannot_be_compared_has_a_reason():
    rows = ladder([0.3, 0.4, 0.5], [0.1, 0.2], [0.1, 0.2, 0.3]).set_index("share")
    assert rows.loc[0.25, "reason"] == "the measure itself has other seeds" and rows.loc[0.5, "status"] == "ok"
    alone = card(dict(zip(DEGRADED, [[0.1] * 3, [0.2] * 3, [0.3] * 3], strict=True)))
    assert set(sensitivity_rows(alone, DEGRADED)["reason"]) == {"the measure itself has no value"}
    # A criterion of the base alone, such as ROAR without its rungs, has no ladder.
    assert ladder([0.1, 0.2, 0.3]).empty


def test_the_same_share_of_two_entries_counts_once():
    twice = {**DEGRADED, "loo.worse.0.25": {"of": "loo", "share": 0.25}, "loo.worse.0": {"of": "loo", "share": 0.0}}
    values = {name: [0.1, 0.2, 0.3] for name in ("loo", *twice)}
    assert sensitivity_rows(card(values), twice)["share"].tolist() == [0, 0.25, 0.5, 1]


def seen_at(*powers: float, **keys) -> pd.DataFrame:
    usual = {"criterion": "ROAR", "direction": "higher", **CELL, "measure": "loo", "n_seeds": 3, "status": "ok"}
    usual |= {"tau": 1.0, "in_order": True, "difference": 0.1, "value": 0.5}
    shares = (0, 0.25, 0.5, 1)[: len(powers)]
    rows = [{**usual, **keys, "share": s, "power": p, "seen": p >= 0.8} for s, p in zip(shares, powers, strict=True)]
    return pd.DataFrame(rows)


def test_the_smallest_share_is_by_the_mean_power():
    rows = pd.concat([seen_at(0, 0.5, 0.9, 1), seen_at(0, 1, 1, 1, dataset="imdb"), seen_at(0, 0.1, 0.2, n_seeds=5)])
    found = smallest_seen(rows, ["criterion"])
    # The means over datasets are 0.75, 0.95 and 1.
    assert found["ROAR", 3] == 0.5 and np.isnan(found["ROAR", 5])
    assert smallest_seen(rows, ["dataset"])["imdb", 3] == 0.25


def test_a_share_counts_as_seen_if_all_larger_ones_are():
    assert smallest_seen(seen_at(0, 1, 0.5, 1), ["criterion"])["ROAR", 3] == 1
    assert np.isnan(smallest_seen(seen_at(0, 1, 1, 0.5), ["criterion"])["ROAR", 3])


def test_the_page_says_how_many_criteria_see_the_smallest_share():
    rows = pd.concat(
        [
            seen_at(0, 0.9, 1, 1),
            seen_at(0, 0.1, 0.7, 0.9, criterion="agreement").assign(in_order=False, tau=0.5),
            seen_at(0, 1, 1, 1, dataset="imdb"),
        ]
    )
    assert _finding(rows) == (
        "1 of 2 criteria rank all permuted shares in order; with 3 seeds 1 of 2 detect a permuted share of 0.25."
    )
    table = sensitivity_overview(rows)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["sst", "net", "loo", "ROAR ↑", "1.00", "0.100", "0.25"],
        ["sst", "net", "loo", "agreement ↑", "0.50", "0.100", "1"],
        ["imdb", "net", "loo", "ROAR ↑", "1.00", "0.100", "0.25"],
    ]


def test_the_table_can_be_stored_and_printed(tmp_path):
    rows = pd.concat([ladder([0.3, 0.4, 0.5], [0.1, 0.2, 0.31]), ladder([0.3, 0.4], [0.1, 0.2], criterion="agreement")])
    for frame in (rows, rows.head(0)):
        write_table(tmp_path / "table", SENSITIVITY, {column: frame[column] for column in frame})
        assert read_table(tmp_path / "table", SENSITIVITY).num_rows == len(frame)
    assert "ROAR" in latex(SENSITIVITY, rows) and "0.25" in latex(SENSITIVITY, rows)
