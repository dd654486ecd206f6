"""The scorecard and the meta-evaluation, on tables made by hand."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from plumbline.protocols.criteria import Criterion, Measures, criterion_of
from plumbline.protocols.scorecard.meta import meta_rows, rankings, tau_of_signs
from plumbline.protocols.scorecard.schemas import META_EVALUATION, SCORECARD
from plumbline.protocols.scorecard.table import scorecard_rows, values_of
from plumbline.registry import Registry
from plumbline.store import read_table, write_table

KINDS = {"attention": "attention", "gradient": "gradient", "lime": "lime", "random": "random", "loo": "leave-one-out"}
CELL = {"dataset": "sst", "variant": "plain", "model": "net"}
MEASURES = Measures(KINDS, "random", {})
CRITERIA = [
    criterion_of(
        {
            "name": one.name,
            "object": one.pointer,
            "facts": one.facts,
            "options": {name: option.default for name, option in one.options.items()},
        }
    )
    for one in sorted(Registry().all("criterion"), key=lambda one: one.order)
]


def of(tables: dict[str, pd.DataFrame]) -> list[Criterion]:
    """The criteria of these tables."""
    return [criterion for criterion in CRITERIA if criterion.table in tables]


def erasure(means: dict[str, list[float]], metric: str = "comprehensiveness", **cell) -> pd.DataFrame:
    """The table `erasure` with a mean for each measure and seed."""
    rows = [
        {
            **CELL, **cell, "seed": seed, "measure": measure, "metric": metric, "ratio": ratio, "n": 100, "dropped": 0,
            "mean": mean + (ratio or 0), "std": 0.5, "status": "ok", "reason": None,
        }
        for measure, seeds in means.items() for seed, mean in enumerate(seeds) for ratio in (None, 10.0)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def faithfulness(means: dict[str, list[float]], strategy: str = "recursive", **cell) -> pd.DataFrame:
    """The table `faithfulness` with a value for each measure and seed."""
    usual = {"dataset": "sst", "model": "net", **cell, "strategy": strategy, "unit": "relative", "status": "ok"}
    return pd.DataFrame([{**usual, "measure": measure, "per_seed": seeds} for measure, seeds in means.items()])


def agreement() -> pd.DataFrame:
    pairs = {("attention", "gradient"): 0.2, ("attention", "lime"): 0.4, ("gradient", "lime"): 0.6}
    pairs |= {(measure, "random"): 0.0 for measure in ("attention", "gradient", "lime")}
    usual = {**CELL, "statistic": "kendall", "tokens": "text", "predicted_class": "all", "n": 25, "status": "ok"}
    return pd.DataFrame(
        [{**usual, "seed": 0, "measure_a": a, "measure_b": b, "mean": mean} for (a, b), mean in pairs.items()]
    )


def found(tables: dict[str, pd.DataFrame], measures: Measures = MEASURES) -> pd.DataFrame:
    return values_of(of(tables), tables, measures)


def card(tables: dict[str, pd.DataFrame], measures: Measures = MEASURES) -> pd.DataFrame:
    return scorecard_rows(of(tables), found(tables, measures), [], measures)


def test_agreement_is_the_mean_with_all_others_but_the_random_one():
    values = found({"agreement": agreement()}).set_index("measure")["value"]
    assert values.to_dict() == pytest.approx({"attention": 0.3, "gradient": 0.4, "lime": 0.5})


def test_twins_count_once_in_agreement():
    """A twin of gradient neither agrees with it nor counts for others as well."""
    rows = agreement()
    twin = rows[(rows["measure_a"] == "gradient") | (rows["measure_b"] == "gradient")].replace("gradient", "twin")
    both = rows.head(1).assign(measure_a="gradient", measure_b="twin", mean=1.0)
    alike = pd.concat([rows, twin, both])
    counted_twice = found({"agreement": alike}).set_index("measure")["value"]
    assert counted_twice["gradient"] == pytest.approx((0.2 + 0.6 + 1.0) / 3)
    twins = MEASURES._replace(twins={("sst", "plain", "net"): {"twin": "gradient"}})
    values = found({"agreement": alike}, twins).set_index("measure")["value"]
    assert values.to_dict() == pytest.approx({"attention": 0.3, "gradient": 0.4, "lime": 0.5, "twin": 0.4})
    twin_of = card({"agreement": alike}, twins).set_index("measure")["twin_of"]
    assert twin_of["twin"] == "gradient" and twin_of.drop("twin").isna().all()


def spoil(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The same tables with two degraded measures: one like gradient, one better than all others."""
    rungs, spoiled = {"gradient.degraded.0.25": 0.0, "gradient.degraded.1": 0.5}, {}
    for name, table in tables.items():
        parts = [table]
        for rung, gain in rungs.items():
            if name == "agreement":
                own = table[(table["measure_a"] == "gradient") | (table["measure_b"] == "gradient")]
                parts += [own.replace("gradient", rung).assign(mean=own["mean"] + gain)]
                parts += [own.head(1).assign(measure_a="gradient", measure_b=rung, mean=1.0)]
            elif name == "erasure":
                own = table[table["measure"] == "gradient"]
                parts += [own.assign(measure=rung, mean=own["mean"] + gain)]
            else:
                own = table[table["measure"] == "gradient"]
                better = [[value + gain for value in seeds] for seeds in own["per_seed"]]
                parts += [own.assign(measure=rung, per_seed=better)]
        spoiled[name] = pd.concat(parts, ignore_index=True)
    return spoiled


def test_degraded_measures_change_no_other_row():
    means = {"attention": [0.1, 0.2, 0.4], "gradient": [0.3, 0.2, 0.2], "lime": [0.25, 0.3, 0.5], "random": [0.0] * 3}
    other = {name: seeds[::-1] for name, seeds in means.items() if name != "random"}
    tables = {"agreement": agreement(), "erasure": erasure(means), "faithfulness": faithfulness(other)}
    degraded = {"gradient.degraded.0.25": "gradient", "gradient.degraded.1": "gradient"}
    measures = MEASURES._replace(kinds={**KINDS, **dict.fromkeys(degraded, "degraded")}, degraded=degraded)
    plain, spoiled = card(tables), card(spoil(tables), measures)
    rungs = spoiled["measure"].isin(list(degraded))
    assert spoiled[~rungs].astype(object).fillna("").values.tolist() == plain.astype(object).fillna("").values.tolist()
    pd.testing.assert_frame_equal(meta_rows(spoiled, "random"), meta_rows(plain, "random"))
    assert (
        spoiled[rungs]["degraded_of"].tolist() == ["gradient"] * rungs.sum() and spoiled[rungs]["twin_of"].isna().all()
    )
    values = spoiled[rungs & (spoiled["status"] == "ok")].set_index(["criterion", "measure"])["value"]
    assert values["comprehensiveness", "gradient.degraded.1"] == pytest.approx(0.7 / 3 + 0.5)
    # Like its base, it is compared with attention and lime, and not with its base or other degraded ones.
    assert values["agreement", "gradient.degraded.0.25"] == pytest.approx(0.4)
    assert values["agreement", "gradient.degraded.1"] == pytest.approx(0.9)


def test_a_degraded_measure_is_not_compared_with_twins_of_its_base():
    measures = MEASURES._replace(
        twins={("sst", "plain", "net"): {"lime": "gradient"}}, degraded={"gradient.degraded.0.25": "gradient"}
    )
    values = found({"agreement": spoil({"agreement": agreement()})["agreement"]}, measures).set_index("measure")[
        "value"
    ]
    assert values["gradient.degraded.0.25"] == pytest.approx(0.2)


def test_of_twins_one_ranks_in_the_meta_evaluation():
    means = {"attention": [0.1] * 3, "gradient": [0.2] * 3, "loo": [0.2] * 3, "lime": [0.3] * 3}
    tables = {"erasure": erasure(means), "faithfulness": faithfulness(means)}
    twins = MEASURES._replace(twins={("sst", "plain", "net"): {"loo": "gradient"}})
    ranked = rankings(card(tables, twins), "random")["comprehensiveness"]["sst", "plain", "net"]
    assert ranked.measures == ["attention", "gradient", "lime"]


def evidence(means: dict[str, list[float]], source: str) -> pd.DataFrame:
    """The table `evidence` with a value for each measure and seed."""
    rows = [
        {**CELL, "seed": seed, "measure": measure, "source": source, "above_random": value, "status": "ok"}
        for measure, seeds in means.items()
        for seed, value in enumerate(seeds)
    ]
    return pd.DataFrame(rows)


def test_evidence_by_rule_is_faithfulness_and_that_of_people_is_not():
    means = {"attention": [0.1] * 3, "gradient": [0.2] * 3, "lime": [0.3] * 3}
    for source, name, other in (("rule", "evidence", "plausibility"), ("human", "plausibility", "evidence")):
        tables = {"erasure": erasure(means), "evidence": evidence(means, source)}
        rows = card(tables)
        valued = rows[rows["status"] == "ok"].set_index(["criterion", "measure"])["value"]
        assert valued[name].to_dict() == pytest.approx({"attention": 0.1, "gradient": 0.2, "lime": 0.3})
        assert other not in valued
        about = rows.groupby("criterion")["faithfulness"].all()
        assert about["evidence"] and not about["plausibility"] and about["comprehensiveness"]
        compared = meta_rows(rows, "random", resamples=5)
        pairs = set(zip(compared["criterion_a"], compared["criterion_b"], strict=True))
        assert pairs == ({("evidence", "comprehensiveness")} if source == "rule" else set())


def test_measures_that_differ_by_rounding_are_in_no_order():
    means = {"attention": [0.6857881988] * 3, "gradient": [0.6857882012] * 3, "lime": [0.3] * 3}
    other = {"attention": [0.9] * 3, "gradient": [0.5] * 3, "lime": [0.1] * 3}
    rows = meta_rows(card({"erasure": erasure(means), "faithfulness": faithfulness(other)}), "random")
    # Two of three pairs are ordered by both, of three and of two.
    assert rows["tau"].tolist() == [pytest.approx(2 / np.sqrt(2 * 3))]


def test_erasure_counts_its_areas_and_roar_its_seeds():
    tables = {
        "erasure": erasure({"attention": [0.1, 0.3], "gradient": [0.4, 0.6]}),
        "faithfulness": faithfulness({"attention": [0.2, 0.4, 0.6]}),
    }
    values = found(tables)
    lists = values.groupby(["criterion", "measure"])["value"].agg(list).to_dict()
    assert lists == {
        ("comprehensiveness", "attention"): [0.1, 0.3],
        ("comprehensiveness", "gradient"): [0.4, 0.6],
        ("Recursive ROAR", "attention"): [0.2, 0.4, 0.6],
    }


def test_criteria_of_attention_apply_to_every_name_of_it():
    usual = {**CELL, "seed": 0, "predicted_class": "all", "max_attention_bin": "all", "n": 9, "status": "ok"}
    attacked = pd.DataFrame([{**usual, "epsilon": e, "jsd_mean": e * 10} for e in (0.01, 0.05)])
    permuted = pd.DataFrame(
        [{**usual, "median_change_mean": 0.3}, {**usual, "max_attention_bin": "x", "median_change_mean": 1}]
    )
    named = Measures({"att": "attention", "other": "lime"}, "random", {})
    values = found({"adversarial_attention": attacked, "permutation": permuted}, named)
    assert values.set_index("criterion")["value"].to_dict() == {"adversarial attention": 0.5, "permutation": 0.3}
    assert set(values["measure"]) == {"att"}


def test_the_scorecard_has_reasons_and_intervals():
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
                    "status": "ok",
                }
            ]
        ),
    }
    explained = [("sst", "plain", "net", measure) for measure in ("attention", "gradient", "lime")]
    rows = scorecard_rows(of(tables), found(tables), explained, MEASURES).set_index(["criterion", "measure"])
    attention = rows.loc["comprehensiveness", "attention"]
    # Two seeds are too few for an interval.
    assert attention["value"] == pytest.approx(0.2) and np.isnan([attention["ci_low"], attention["ci_high"]]).all()
    roar = rows.loc["Recursive ROAR", "attention"]
    # Student's t of two degrees of freedom is 4.3027; the deviation of 0.2, 0.4, 0.6 is 0.2.
    reach = 4.302653 * 0.2 / np.sqrt(3)
    assert roar["per_seed"] == [0.2, 0.4, 0.6]
    assert (roar["ci_low"], roar["ci_high"]) == pytest.approx((0.4 - reach, 0.4 + reach), abs=1e-6)
    assert rows.loc["permutation", "attention"]["value"] == 0.3
    assert rows.loc["permutation", "gradient"]["reason"] == "it applies to attention only"
    assert rows.loc["comprehensiveness", "lime"]["reason"] == "it has no value for this measure"
    assert rows.loc["ROAR", "lime"]["reason"].startswith("the study does not compute it")
    assert set(rows["status"]) == {"ok", "missing"} and "agreement" not in rows.index.get_level_values(0)
    assert rows.loc["sufficiency", "attention"]["direction"] == "lower"


@pytest.mark.parametrize(
    ("metric", "seeds", "ends"),
    [
        ("sufficiency", [0.95, 0.99, 0.85], (None, 1.0)),
        ("soft_sufficiency", [0.9, 0.99, 0.5], (None, 1.0)),
        ("soft_comprehensiveness", [0.01, 0.3, 0.02], (0.0, None)),
    ],
)
def test_an_interval_stays_within_the_range_of_its_metric(metric, seeds, ends):
    rows = card({"erasure": erasure({"attention": seeds}, metric)})
    row = rows[rows["status"] == "ok"].iloc[0]
    for end, bound in zip(("ci_low", "ci_high"), ends, strict=True):
        assert bound is None or row[end] == bound
    assert row["ci_low"] < np.mean(seeds) < row["ci_high"]


METRICS = {
    "agreement": "kendall", "adversarial attention": "jsd", "AtteFa": "attefa", "ROAR": "faithfulness",
    "Recursive ROAR": "faithfulness", "ground truth": "above_region", "truth found": "found",
    "comprehensiveness": "comprehensiveness", "sufficiency": "sufficiency",
    "soft comprehensiveness": "soft_comprehensiveness",
    "soft sufficiency": "soft_sufficiency", "normalised AOPC": "normalised_aopc", "LeRF minus MoRF": "morf_lerf",
    "permutation": None, "rationale precision": None, "evidence": "above_random", "plausibility": "above_random",
    "masked erasure": "faithfulness", "randomised weights": "weight_dependence", "reliability": "kendall",
}  # fmt: skip


def test_bounds_are_those_of_the_registered_metrics():
    assert set(METRICS) == {criterion.name for criterion in CRITERIA}
    for criterion in CRITERIA:
        if name := METRICS[criterion.name]:
            low, high = Registry().get("metric", name).range
            expected = (-np.inf if low is None else low, np.inf if high is None else high)
            assert criterion.bounds == pytest.approx(expected, abs=1e-4), criterion.name


def test_models_at_chance_are_left_out_with_a_reason():
    tables = {"erasure": erasure({"attention": [0.5, 0.7], "gradient": [0.2, 0.2]})}
    tables["erasure"].loc[tables["erasure"]["seed"] == 0, "status"] = "at chance"
    left_out = {("sst", "plain", "net", 0): "because"}
    rows = scorecard_rows(of(tables), found(tables), [], MEASURES, left_out)
    row = rows[rows["criterion"] == "comprehensiveness"].set_index("measure").loc["attention"]
    assert (row["value"], row["n_seeds"], row["status"]) == (0.7, 1, "ok")
    assert row["reason"] == "seed 0 is left out, hardly better than guessing"
    every = {**left_out, ("sst", "plain", "net", 1): "because"}
    tables["erasure"]["status"] = "at chance"
    explained = [("sst", "plain", "net", "attention")]
    rows = scorecard_rows(of(tables), found(tables), explained, MEASURES, every)
    assert set(rows["status"]) == {"missing"}
    assert set(rows["reason"]) == {"seeds 0, 1 are left out, hardly better than guessing"}


def test_agreement_with_random_alone_is_missing_with_the_reason():
    explained = [("sst", "plain", "net", measure) for measure in ("gradient", "random")]
    rows = scorecard_rows(of({"agreement": agreement()}), found({}), explained, MEASURES)
    assert set(rows["reason"]) == {"it compares 2 measures or more besides random, and there is 1"}
    more = [*explained, ("sst", "plain", "net", "lime")]
    (reason,) = set(scorecard_rows(of({"agreement": agreement()}), found({}), more, MEASURES)["reason"])
    assert "compares" not in reason


def test_tau_is_that_of_scipy():
    random = np.random.default_rng(0)
    for _ in range(20):
        a, b = random.integers(4, size=(2, 7))
        pairs = [(i, j) for i in range(7) for j in range(i)]
        signs = [np.array([np.sign(x[i] - x[j]) for i, j in pairs]) for x in (a, b)]
        assert tau_of_signs(*signs) == pytest.approx(kendalltau(a, b).statistic, nan_ok=True)


def test_criteria_agree_whatever_their_direction():
    """More comprehensive and less sufficient by number is the same order; the random one does not count."""
    means = {"attention": [0.1] * 3, "gradient": [0.2] * 3, "lime": [0.3] * 3, "random": [0.9] * 3}
    tables = {
        "erasure": pd.concat(
            [erasure(means), erasure({name: [-x for x in seeds] for name, seeds in means.items()}, "sufficiency")]
        ),
        "faithfulness": faithfulness({"attention": [0.3] * 3, "gradient": [0.2] * 3, "lime": [0.1] * 3}),
    }
    rows = meta_rows(card(tables), "random").set_index(["criterion_a", "criterion_b"])
    assert rows.loc[("comprehensiveness", "sufficiency"), "tau"] == 1.0
    assert rows.loc[("Recursive ROAR", "comprehensiveness"), "tau"] == -1.0
    assert set(zip(rows["ci_low"], rows["ci_high"], strict=True)) == {(1.0, 1.0), (-1.0, -1.0)}


def test_a_criterion_with_fewer_seeds_ranks_by_its_own_means():
    """Such as one whose tables leave a seed out: no seed of it counts twice because the other criterion has more."""
    tables = {
        "erasure": erasure({"attention": [0.0, 0.5], "gradient": [0.2, 0.2], "lime": [0.1, 0.1]}),
        "faithfulness": faithfulness({"attention": [0.3] * 3, "gradient": [0.2] * 3, "lime": [0.1] * 3}),
    }
    (row,) = meta_rows(card(tables), "random").to_dict("records")
    assert row["tau"] == 1.0


def opposite(datasets: list[str]) -> pd.DataFrame:
    """Two criteria that agree on the measures of the first dataset's models and disagree on all others; one seed."""
    rising = {"attention": [0.1], "gradient": [0.2], "lime": [0.3]}
    falling = {name: [-seeds[0]] for name, seeds in rising.items()}
    parts = [(name, model, rising if name == datasets[0] else falling) for name in datasets for model in ("m1", "m2")]
    tables = {
        "erasure": pd.concat([erasure(rising, dataset=name, model=model) for name, model, _ in parts]),
        "faithfulness": pd.concat([faithfulness(means, dataset=name, model=model) for name, model, means in parts]),
    }
    return meta_rows(card(tables), "random")


def test_cells_of_one_dataset_are_resampled_together():
    """Four cells of two datasets are two witnesses, too few for an interval; eight of four are four."""
    two = opposite(["sst", "imdb"]).iloc[0]
    assert (two["tau"], two["n_cells"], two["n_datasets"]) == (0.0, 4, 2) and np.isnan(two["ci_low"])
    four = opposite(["sst", "imdb", "agnews", "adr"]).iloc[0]
    assert (four["tau"], four["n_cells"], four["n_datasets"]) == (-0.5, 8, 4)
    # Four draws of four datasets are all the first with a chance of 1/256, which Student's interval does not leave out.
    assert (four["ci_low"], four["ci_high"]) == (-1.0, 1.0)


def test_cells_share_the_seeds_drawn_and_three_seeds_span_all_resamples():
    """By all 27 draws of three seeds; independent draws for each variant would have a narrower interval."""
    random = np.random.default_rng(1)
    names = ["attention", "gradient", "lime", "loo", "occlusion"]

    def drawn() -> np.ndarray:
        return np.arange(5)[:, None] + 2 * random.normal(size=(5, 3))

    plain, variants = drawn(), {f"v{i}": drawn() for i in range(6)}

    def means(values: np.ndarray) -> dict[str, list[float]]:
        return dict(zip(names, values.tolist(), strict=True))

    tables = {
        "faithfulness": faithfulness(means(plain)),
        "erasure": pd.concat([erasure(means(values)).assign(variant=name) for name, values in variants.items()]),
    }
    (row,) = meta_rows(card(tables), "random").to_dict("records")
    taus = [
        np.mean([kendalltau(plain[:, seeds].mean(1), v[:, seeds].mean(1)).statistic for v in variants.values()])
        for seeds in map(list, product(range(3), repeat=3))
    ]
    assert (row["matched"], row["n_cells"], row["resampled"]) == ("dataset", 6, "seed")
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((min(taus), max(taus)))
    assert row["ci_low"] < row["tau"] < row["ci_high"]


def test_seeds_and_cells_make_the_interval():
    random = np.random.default_rng(0)
    names = ["attention", "gradient", "lime", "loo"]

    def drawn(spread: float) -> dict[str, list[float]]:
        return {name: (rank + spread * random.normal(size=5)).tolist() for rank, name in enumerate(names)}

    def interval(spread: float, cells: int) -> float:
        tables = {
            "erasure": pd.concat([erasure(drawn(spread), dataset=f"d{i}") for i in range(cells)]),
            "faithfulness": pd.concat([faithfulness(drawn(spread), dataset=f"d{i}") for i in range(cells)]),
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
            {**usual, "measure": measure, "seed": seed, "above_region": share, "found": share}
            for measure, shares in means.items()
            for seed, share in enumerate(shares)
        ]
    )


def test_the_truth_is_compared_with_criteria_of_the_same_variant_or_else_of_the_same_dataset():
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
    variants = card(tables).groupby("criterion")["variant"].agg(set)
    assert variants["ground truth"] == {"articles"} and variants["comprehensiveness"] == {"plain", "articles"}


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
    scorecard = card(tables)
    rows = meta_rows(scorecard, "random")
    assert rows.empty
    for kind, table in ((SCORECARD, scorecard), (META_EVALUATION, rows)):
        write_table(tmp_path / kind.name, kind, {column: table[column] for column in table})
        assert len(read_table(tmp_path / kind.name, kind)) == len(table)


def test_criteria_have_names_of_their_own():
    assert len({criterion.name for criterion in CRITERIA}) == len(CRITERIA)
