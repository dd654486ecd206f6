"""The scorecard and the meta-evaluation, on tables made by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from plumbline.store import read_table, write_table
from plumbline.tables.scorecard import CRITERIA, meta_rows, rankings, scorecard_rows, tau, values_of

KINDS = {"attention": "attention", "gradient": "gradient", "lime": "lime", "random": "random", "loo": "leave-one-out"}
CELL = {"dataset": "sst", "variant": "plain", "model": "net"}


def erasure(means: dict[str, list[float]], metric: str = "comprehensiveness", **cell) -> pd.DataFrame:
    """The table `erasure` with a mean for each measure and seed."""
    rows = [
        {
            **CELL, **cell, "seed": seed, "measure": measure, "metric": metric, "ratio": ratio, "n": 100, "dropped": 0,
            "mean": mean + (ratio or 0), "std": 0.5, "status": "ok", "reason": None,
        }
        for measure, told in means.items() for seed, mean in enumerate(told) for ratio in (None, 10.0)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def faithfulness(means: dict[str, list[float]], strategy: str = "recursive", **cell) -> pd.DataFrame:
    """The table `faithfulness` with a value for each measure and seed."""
    usual = {"dataset": "sst", "model": "net", **cell, "strategy": strategy, "unit": "relative", "status": "ok"}
    return pd.DataFrame([{**usual, "measure": measure, "per_seed": told} for measure, told in means.items()])


def agreement() -> pd.DataFrame:
    pairs = {("attention", "gradient"): 0.2, ("attention", "lime"): 0.4, ("gradient", "lime"): 0.6}
    pairs |= {(measure, "random"): 0.0 for measure in ("attention", "gradient", "lime")}
    usual = {**CELL, "statistic": "kendall", "tokens": "text", "predicted_class": "all", "n": 25, "std": 0.1}
    return pd.DataFrame(
        [{**usual, "seed": 0, "measure_a": a, "measure_b": b, "mean": mean} for (a, b), mean in pairs.items()]
    )


def found(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return values_of(tables, "random", KINDS)


def card(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return scorecard_rows(found(tables), tables, [], KINDS)


def test_agreement_is_the_mean_with_all_others_but_the_random_one():
    values = found({"agreement": agreement()}).set_index("measure")["value"]
    assert values.to_dict() == pytest.approx({"attention": 0.3, "gradient": 0.4, "lime": 0.5})


def test_erasure_counts_its_areas_and_roar_its_seeds():
    tables = {
        "erasure": erasure({"attention": [0.1, 0.3], "gradient": [0.4, 0.6]}),
        "faithfulness": faithfulness({"attention": [0.2, 0.4, 0.6]}),
    }
    values = found(tables)
    told = values.groupby(["criterion", "measure"])["value"].agg(list).to_dict()
    assert told == {
        ("comprehensiveness", "attention"): [0.1, 0.3],
        ("comprehensiveness", "gradient"): [0.4, 0.6],
        ("Recursive ROAR", "attention"): [0.2, 0.4, 0.6],
    }


def test_what_is_about_attention_alone_is_so_for_every_name_of_it():
    usual = {**CELL, "seed": 0, "predicted_class": "all", "max_attention_bin": "all", "n": 9}
    attacked = pd.DataFrame([{**usual, "epsilon": e, "jsd_mean": e * 10, "jsd_std": 0.1} for e in (0.01, 0.05)])
    permuted = pd.DataFrame(
        [{**usual, "median_change_mean": 0.3}, {**usual, "max_attention_bin": "x", "median_change_mean": 1}]
    )
    values = values_of(
        {"adversarial_attention": attacked, "permutation": permuted}, "random", {"att": "attention", "other": "lime"}
    )
    assert values.set_index("criterion")["value"].to_dict() == {"adversarial attention": 0.5, "permutation": 0.3}
    assert set(values["measure"]) == {"att"}


def test_the_scorecard_says_what_is_missing_and_how_sure_it_is():
    tables = {
        "erasure": erasure({"attention": [0.1, 0.3], "gradient": [0.4, 0.6]}),
        "faithfulness": faithfulness({"attention": [0.2, 0.4, 0.6], "gradient": [0.1, 0.1, 0.1]}),
        "permutation": pd.DataFrame(
            [
                {
                    **CELL,
                    "seed": 0,
                    "predicted_class": "all",
                    "max_attention_bin": "all",
                    "n": 9,
                    "median_change_mean": 0.3,
                }
            ]
        ),
    }
    explained = [("sst", "plain", "net", measure) for measure in ("attention", "gradient", "lime")]
    rows = scorecard_rows(found(tables), tables, explained, KINDS).set_index(["criterion", "measure"])
    attention = rows.loc["comprehensiveness", "attention"]
    # Two seeds: the interval is over texts, 1.96 * 0.5 / sqrt(100) to each side.
    assert attention["value"] == pytest.approx(0.2) and attention["interval"] == "texts"
    assert (attention["ci_low"], attention["ci_high"]) == pytest.approx((0.102, 0.298))
    roar = rows.loc["Recursive ROAR", "attention"]
    assert (
        roar["interval"] == "seeds" and roar["ci_low"] < 0.4 < roar["ci_high"] and roar["per_seed"] == [0.2, 0.4, 0.6]
    )
    assert rows.loc["permutation", "attention"]["value"] == 0.3
    assert rows.loc["permutation", "gradient"]["reason"] == "it is about attention alone"
    assert rows.loc["comprehensiveness", "lime"]["reason"] == "it has no number for this measure"
    assert rows.loc["ROAR", "lime"]["reason"].startswith("the study does not have it")
    assert set(rows["status"]) == {"ok", "missing"} and "agreement" not in rows.index.get_level_values(0)
    assert rows.loc["sufficiency", "attention"]["direction"] == "lower"


def test_an_interval_stays_within_what_a_correlation_can_be():
    close = agreement().assign(mean=0.99, std=0.5)
    rows = card({"agreement": close[close["measure_b"] != "random"]})
    assert (rows["ci_high"] == 1.0).all() and (rows["ci_low"] < 0.99).all()


def test_tau_is_that_of_scipy():
    random = np.random.default_rng(0)
    for _ in range(20):
        a, b = random.integers(4, size=(2, 7))
        pairs = [(i, j) for i in range(7) for j in range(i)]
        signs = [np.array([np.sign(x[i] - x[j]) for i, j in pairs]) for x in (a, b)]
        assert tau(*signs) == pytest.approx(kendalltau(a, b).statistic, nan_ok=True)


def test_criteria_agree_by_what_is_better():
    """More comprehensive and less sufficient by number is the same order; the random one does not count."""
    means = {"attention": [0.1] * 3, "gradient": [0.2] * 3, "lime": [0.3] * 3, "random": [0.9] * 3}
    tables = {
        "erasure": pd.concat(
            [erasure(means), erasure({name: [-x for x in told] for name, told in means.items()}, "sufficiency")]
        ),
        "faithfulness": faithfulness({"attention": [0.3] * 3, "gradient": [0.2] * 3, "lime": [0.1] * 3}),
    }
    rows = meta_rows(card(tables), "random").set_index(["criterion_a", "criterion_b"])
    assert rows.loc[("comprehensiveness", "sufficiency"), "tau"] == 1.0
    assert rows.loc[("Recursive ROAR", "comprehensiveness"), "tau"] == -1.0
    assert set(zip(rows["ci_low"], rows["ci_high"], strict=True)) == {(1.0, 1.0), (-1.0, -1.0)}


def test_seeds_and_cells_make_the_interval():
    random = np.random.default_rng(0)
    names = ["attention", "gradient", "lime", "loo"]

    def drawn(spread: float) -> dict[str, list[float]]:
        return {name: (place + spread * random.normal(size=5)).tolist() for place, name in enumerate(names)}

    def interval(spread: float, cells: int) -> float:
        tables = {
            "erasure": pd.concat([erasure(drawn(spread), model=f"m{i}") for i in range(cells)]),
            "faithfulness": pd.concat([faithfulness(drawn(spread), model=f"m{i}") for i in range(cells)]),
        }
        (row,) = meta_rows(card(tables), "random", 500).to_dict("records")
        assert row["n_cells"] == cells and row["ci_low"] <= row["tau"] <= row["ci_high"]
        return row["ci_high"] - row["ci_low"]

    assert interval(0.01, 4) == 0.0
    assert interval(3.0, 2) > 0.2


def truth(means: dict[str, list[float]], **cell) -> pd.DataFrame:
    """The table `ground_truth` with a share of importance for each measure and seed."""
    usual = {**CELL, "variant": "articles", **cell, "truth": True, "class": "all", "n": 50, "status": "ok"}
    return pd.DataFrame(
        [
            {**usual, "measure": measure, "seed": seed, "attributed_fraction": share}
            for measure, told in means.items()
            for seed, share in enumerate(told)
        ]
    )


def test_the_truth_is_set_against_criteria_of_the_same_variant_or_else_of_the_same_dataset():
    rising = {"attention": [0.1], "gradient": [0.2], "lime": [0.3]}
    falling = {"attention": [0.3], "gradient": [0.2], "lime": [0.1]}
    tables = {
        "ground_truth": truth(rising),
        "erasure": pd.concat([erasure(falling), erasure(rising, variant="articles")]),
        "faithfulness": faithfulness(falling),
    }
    rows = meta_rows(card(tables), "random").set_index(["criterion_a", "criterion_b"])
    erased, masked = rows.loc["ground truth", "comprehensiveness"], rows.loc["Recursive ROAR", "ground truth"]
    assert (erased["tau"], erased["matched"], erased["n_cells"]) == (1.0, "variant", 1)
    assert (masked["tau"], masked["matched"], masked["n_cells"]) == (-1.0, "dataset", 1)
    # Where the truth is not known it is not missing either.
    told = card(tables).groupby("criterion")["variant"].agg(set)
    assert told["ground truth"] == {"articles"} and told["comprehensiveness"] == {"plain", "articles"}


def test_too_few_measures_in_common_are_a_reason():
    tables = {
        "erasure": erasure({"attention": [0.1], "gradient": [0.2], "random": [0.0]}),
        "faithfulness": faithfulness({"attention": [0.1], "gradient": [0.2]}),
    }
    (row,) = meta_rows(card(tables), "random").to_dict("records")
    assert row["status"] == "missing" and "3 measures" in row["reason"]
    assert "random" not in rankings(card(tables), "random")["comprehensiveness"]["sst", "plain", "net"].measures


@pytest.mark.parametrize("means", [{}, {"attention": [0.1], "gradient": [0.2]}])
def test_one_criterion_or_none_makes_empty_tables_that_can_be_stored(tmp_path, means):
    tables = {"faithfulness": faithfulness(means)} if means else {"erasure": erasure({"attention": [0.1]}).head(0)}
    told = card(tables)
    rows = meta_rows(told, "random")
    assert rows.empty
    for name, table in (("scorecard", told), ("meta_evaluation", rows)):
        write_table(tmp_path / name, name, {column: table[column] for column in table})
        assert len(read_table(tmp_path / name, name)) == len(table)


def test_criteria_have_names_of_their_own():
    assert len({criterion.name for criterion in CRITERIA}) == len(CRITERIA)
