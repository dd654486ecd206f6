"""The agreement of criteria with known truths, on scorecards made by hand."""

import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import kendalltau

from plumbline.protocols.scorecard.figures import trust
from plumbline.protocols.scorecard.schemas import TRUST, TRUST_COMMON
from plumbline.protocols.scorecard.trust import (
    EVERY,
    EVERY_FOUND,
    EVERY_MODEL,
    common_difference,
    common_rows,
    trust_rows,
)
from plumbline.protocols.scorecard.trust_page import trust_overview, trust_page, trust_sentences
from plumbline.store import read_table, write_table
from tests.reports import content, sensitivity_frame, trust_common_frame, trust_frame

MEASURES = ("attention", "gradient", "lime", "random")
KINDS = {"planted-r0.5": "planted", "planted-r0.8": "planted", "ordered": "ordered"}


def card(values: dict[tuple[str, str, str], list[float]], measures: tuple[str, ...] = MEASURES) -> pd.DataFrame:
    """A scorecard from the values of the measures by criterion, variant and model; three equal seeds."""
    usual = {"direction": "higher", "faithfulness": True, "dataset": "sst", "status": "ok", "n_seeds": 3}
    return pd.DataFrame(
        usual
        | {"criterion": criterion, "variant": variant, "model": model, "measure": measure, "value": value}
        | {"per_seed": [value] * 3, "twin_of": None, "degraded_of": None}
        for (criterion, variant, model), own in values.items()
        for measure, value in zip(measures, own, strict=True)
    )


def test_each_kind_of_truth_is_compared_on_its_own():
    rising, mixed, falling = [1.0, 2.0, 3.0, 9.0], [1.0, 3.0, 2.0, 9.0], [3.0, 2.0, 1.0, 9.0]
    rows = card(
        {
            ("ground truth", "planted-r0.5", "net"): rising,
            ("ground truth", "planted-r0.8", "net"): mixed,
            ("ground truth", "ordered", "net"): falling,
            ("truth found", "ordered", "net"): mixed,
            **{("comprehensiveness", variant, "net"): rising for variant in KINDS},
            ("Recursive ROAR", "plain", "net"): falling,
        }
    )
    found = trust_rows(rows, "random", KINDS).set_index(["criterion", "truth"])
    third = kendalltau(rising[:3], mixed[:3]).statistic
    assert found["tau"].to_dict() == pytest.approx(
        {
            ("comprehensiveness", EVERY): third / 3,
            ("comprehensiveness", EVERY_FOUND): third,
            ("comprehensiveness", "planted"): (1 + third) / 2,
            ("comprehensiveness", "ordered"): -1.0,
            ("Recursive ROAR", EVERY): -third / 3,
            ("Recursive ROAR", EVERY_FOUND): -third,
            ("Recursive ROAR", "planted"): -(1 + third) / 2,
            ("Recursive ROAR", "ordered"): 1.0,
        }
    )
    assert set(found.loc["Recursive ROAR"]["matched"]) == {"dataset"}
    assert set(found["resampled"]) == {"seed"}


def test_models_are_resampled_if_there_are_three(tmp_path):
    rising, falling = [1.0, 2.0, 3.0, 9.0], [3.0, 2.0, 1.0, 9.0]
    values = {("ground truth", "ordered", model): rising for model in "abc"}
    values |= {("sufficiency", "ordered", model): falling if model == "c" else rising for model in "abc"}
    rows = trust_rows(card(values), "random", KINDS)
    row = rows[rows["truth"] == "ordered"].iloc[0]
    assert (row["tau"], row["n_models"], row["resampled"]) == (pytest.approx(1 / 3), 3, "model, seed")
    # With three draws of three models none is the third with a chance of 8/27, and all are with one of 1/27.
    assert (row["ci_low"], row["ci_high"]) == (-1.0, 1.0)
    write_table(tmp_path / "trust.parquet", TRUST, pa.Table.from_pandas(rows, preserve_index=False))
    assert read_table(tmp_path / "trust.parquet", TRUST).num_rows == 2


def test_on_equal_terms_all_rank_the_same_measures_of_the_same_plain_texts(tmp_path):
    measures = ("attention", "gradient", "lime", "occlusion", "random")
    truth, other = [4.0, 3.0, 1.0, 2.0, 0.0], [1.0, 2.0, 3.0, 4.0, 0.0]
    rows = card(
        {
            ("ground truth", "ordered", "net"): truth,
            ("truth found", "ordered", "net"): truth,
            ("comprehensiveness", "plain", "net"): [4.0, 3.0, 9.0, 2.0, 0.0],
            # These are ranked elsewhere too, where ROAR is not.
            ("comprehensiveness", "ordered", "net"): other,
            ("comprehensiveness", "plain", "masked net"): other,
            ("agreement", "plain", "net"): other,
            ("Recursive ROAR", "plain", "net"): truth,
            # A ranking of two measures would leave too few.
            ("ROAR", "plain", "net"): truth,
        },
        measures,
    )
    without = {"Recursive ROAR": ["lime"], "ROAR": ["lime", "occlusion"]}
    left_out = [m in without.get(c, []) for c, m in zip(rows["criterion"], rows["measure"], strict=True)]
    found = common_rows(rows[~pd.Series(left_out)], "random", KINDS)
    assert found.set_index(["criterion", "truth"])["tau"].to_dict() == pytest.approx(
        {
            (criterion, truth): tau
            for criterion, tau in {"comprehensiveness": 1.0, "agreement": -1.0, "Recursive ROAR": 1.0}.items()
            for truth in (EVERY, EVERY_FOUND, "ordered")
        }
    )
    assert set(found["n_measures"]) == {3} and set(found["n_cells"]) == {1} and set(found["matched"]) == {"dataset"}
    assert set(found["resampled"]) == {"seed"}
    write_table(tmp_path / "common.parquet", TRUST_COMMON, pa.Table.from_pandas(found, preserve_index=False))
    assert read_table(tmp_path / "common.parquet", TRUST_COMMON).num_rows == 9


def test_models_are_compared_together_and_each_alone():
    rising, falling = [1.0, 2.0, 3.0, 9.0], [3.0, 2.0, 1.0, 9.0]
    values = {("ground truth", "ordered", model): rising for model in "ab"}
    values |= {("sufficiency", "plain", "a"): rising, ("sufficiency", "plain", "b"): falling}
    values |= {("agreement", "plain", model): rising for model in "ab"}
    found = common_rows(card(values), "random", KINDS)
    ordered = found[found["truth"] == "ordered"].set_index(["criterion", "model"])
    assert ordered["tau"].to_dict() == {
        **{("sufficiency", EVERY_MODEL): 0.0, ("sufficiency", "a"): 1.0, ("sufficiency", "b"): -1.0},
        **{("agreement", model): 1.0 for model in (EVERY_MODEL, "a", "b")},
    }
    assert ordered["n_cells"].to_dict()["sufficiency", EVERY_MODEL] == 2 and set(ordered["n_measures"]) == {3}
    assert set(ordered.loc["sufficiency"].loc[["a", "b"], "n_models"]) == {1}


def test_p_is_the_share_of_exchanged_measures_with_as_strong_an_agreement():
    measures = ("attention", "gradient", "lime", "occlusion", "random")
    truth, close = [4.0, 3.0, 2.0, 1.0, 0.0], [4.0, 3.0, 1.0, 2.0, 0.0]
    values = {("ground truth", kind, "net"): truth for kind in ("planted-r0.5", "ordered")}
    values |= {("sufficiency", "plain", "net"): truth, ("agreement", "plain", "net"): close}
    found = common_rows(card(values, measures), "random", KINDS)
    p = found[found["truth"] == EVERY].set_index("criterion")["p_value"].to_dict()
    # Of the 24 orders of four measures one has τ = 1 and one -1; three have 2/3 and three -2/3. Both kinds of truth
    # rank alike, so that they decide no more than one.
    assert p == pytest.approx({"sufficiency": 2 / 24, "agreement": 8 / 24})
    every = found.set_index(["criterion", "truth"])["p_value"]
    assert every["agreement", "ordered"] == every["agreement", EVERY]


def test_many_measures_are_exchanged_at_random():
    measures = tuple("abcdefghij")
    values = {("ground truth", "ordered", "net"): list(range(10)), ("sufficiency", "plain", "net"): [*range(9), 8.5]}
    values |= {("agreement", "plain", "net"): [1, 0, 5, 8, 3, 2, 7, 9, 4, 6]}
    found = common_rows(card({key: list(map(float, row)) for key, row in values.items()}, measures), "random", KINDS)
    p = found[found["truth"] == EVERY].set_index("criterion")["p_value"]
    exact = kendalltau(list(range(10)), values["agreement", "plain", "net"], method="exact").pvalue
    assert p["agreement"] == pytest.approx(exact, abs=0.03)
    # The given order is one of them, so that p is never 0.
    assert 0 < p["sufficiency"] < 0.001


def test_the_difference_of_two_criteria_is_by_the_same_resamples():
    rising, falling = [1.0, 2.0, 3.0, 9.0], [3.0, 2.0, 1.0, 9.0]
    rows = card(
        {
            ("ground truth", "ordered", "net"): rising,
            ("sufficiency", "plain", "net"): rising,
            ("agreement", "plain", "net"): falling,
        }
    )
    # In one of three seeds both criteria rank the other way round, so that their difference is small in it.
    judged = rows["criterion"].isin(["sufficiency", "agreement"])
    changed = [[value, value, 4.0 - value] for value in rows.loc[judged, "value"]]
    rows.loc[judged, "per_seed"] = pd.Series(changed, index=rows.index[judged])
    same = common_difference(rows, "random", KINDS, ("sufficiency", "sufficiency"))
    assert (same["tau"], same["ci_low"], same["ci_high"]) == (0.0, 0.0, 0.0)
    unlike = common_difference(rows, "random", KINDS, ("sufficiency", "agreement"), "ordered")
    assert (unlike["tau"], unlike["resampled"]) == (2.0, "seed")
    # With the changed seed drawn twice or more both rankings are reversed: 1 - (-1) becomes -1 - 1.
    assert (unlike["ci_low"], unlike["ci_high"]) == (-2.0, 2.0)
    assert common_difference(rows, "random", KINDS, ("sufficiency", "ROAR"))["status"] == "missing"


def test_without_a_cell_that_all_rank_the_reason_says_so():
    rising = [1.0, 2.0, 3.0, 9.0]
    values = {("ground truth", "ordered", model): rising for model in "ab"}
    values |= {("agreement", "plain", "a"): rising, ("sufficiency", "plain", "b"): rising}
    found = common_rows(card(values), "random", KINDS)
    assert set(found["criterion"]) == {"agreement", "sufficiency"} and set(found["status"]) == {"missing"}
    assert (
        set(found["n_measures"]) == {0}
        and set(found["model"]) == {EVERY_MODEL}
        and found["reason"].str.startswith("no dataset and model").all()
    )


def test_a_study_without_a_truth_has_no_row():
    rows = card({("sufficiency", "plain", "net"): [1.0, 2.0, 3.0, 4.0]})
    assert trust_rows(rows, "random", {}).empty and common_rows(rows, "random", {}).empty


def test_sentences_state_what_the_intervals_show():
    (sentence,) = trust_sentences(trust_frame(), sensitivity_frame())
    assert sentence.startswith("agreement agrees with planted (τ 0.50 [0.30, 0.70], p 0.010)")
    assert "contradicts <ordered> (τ −0.50" in sentence and "unless (τ 0.10 [−0.10, 0.30], p 0.010)" in sentence
    assert sentence.endswith("it ranks all permuted shares in order and detects a permuted share of 0.5.")
    assert EVERY not in sentence


def test_the_page_escapes_names_and_counts_criteria():
    page = trust_page(content())
    assert "&lt;ordered&gt;" in str(page.sections[0].html) and "<ordered>" not in str(page.sections[0].html)
    assert page.finding == "0 of 1 criteria agree with some kind of known truth and contradict none."


def test_the_tables_say_how_many_small_p_chance_would_give():
    assert "4 of 4 p are at most 0.05; if no criterion were related to the truth, 0.2 or fewer would be" in (
        trust_overview(trust_frame()).caption
    )
    assert " 1 of 2 p are at most 0.05; " in trust_overview(trust_common_frame()).caption
    assert " p are " not in trust_overview(trust_frame().assign(p_value=float("nan"))).caption


def test_the_figure_has_a_cell_for_each_criterion_and_truth():
    texts = [text.get_text() for text in trust(trust_frame(), "title").axes[0].texts]
    weights = {text.get_text(): text.get_weight() for text in trust(trust_frame(), "title").axes[0].texts}
    assert weights["0.50"] == weights["−0.50"] == "bold" and weights["0.10"] == weights["[0.30, 0.70]"] == "normal"
    assert texts.count("–") == 0 and {"0.50", "−0.50", "0.10", "0.00"} <= set(texts)
