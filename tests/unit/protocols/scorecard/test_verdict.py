"""The sentences about what a study found, on tables made by hand."""

import pandas as pd
import pytest

from plumbline.protocols.scorecard.meta import meta_rows
from plumbline.protocols.scorecard.trust import EVERY
from plumbline.protocols.scorecard.verdict import verdict

MEASURES = ("attention", "gradient", "lime", "random")


def card(values: dict[tuple[str, str], list[list[float]]], direction: str = "higher") -> pd.DataFrame:
    """A scorecard from the values of each measure's seeds, by criterion and dataset."""
    usual = {"direction": direction, "faithfulness": True, "variant": "plain", "model": "net", "status": "ok"}
    return pd.DataFrame(
        usual
        | {"criterion": criterion, "dataset": dataset, "measure": measure, "value": sum(seeds) / len(seeds)}
        | {"per_seed": seeds, "n_seeds": len(seeds), "twin_of": None, "degraded_of": None}
        for (criterion, dataset), own in values.items()
        for measure, seeds in zip(MEASURES, own, strict=True)
    )


def seeds(mean: float, spread: float = 0.01) -> list[float]:
    return [mean - spread, mean, mean + spread]


def test_leads_are_counted_and_those_within_the_spread_of_seeds_are_told_apart():
    # Lime is better than gradient by 0.05, 0.06 and 0.07, [0.035, 0.085]; then gradient by 0.25, 0.05 and -0.15.
    clear = [seeds(0.3), seeds(0.4), [0.44, 0.46, 0.48], seeds(0.0)]
    noisy = [seeds(0.3), [0.45, 0.45, 0.45], [0.2, 0.4, 0.6], seeds(0.0)]
    found = verdict({"scorecard": card({("erasure", "a"): clear, ("erasure", "b"): noisy})}, "random")
    assert found[0] == (
        "The best measure in 2 rankings (by one criterion on 2 combinations of dataset, variant and model): lime once "
        "and gradient once. It is significantly better than the second in 1 of them (95\u00a0% interval of the "
        "difference over seeds above 0); otherwise it is undecided which is the best."
    )


def test_lower_is_better_where_the_criterion_says_so():
    rows = card({("sufficiency", "a"): [seeds(0.1), seeds(0.2), seeds(0.3), seeds(0.9, 0.02)]}, "lower")
    found = verdict({"scorecard": rows}, "random")
    assert found[0].startswith("The best measure by one criterion: attention once.")
    assert found[1] == (
        "Measures are significantly better than random importances in 3 of 3 comparisons (95\u00a0% interval of the "
        "difference over seeds above 0)."
    )


def test_measures_like_random_ones_are_named():
    rows = card({("erasure", "a"): [seeds(0.0, 0.5), seeds(0.2), seeds(0.3), [0.1, 0.0, 0.05]]})
    assert verdict({"scorecard": rows}, "random")[1].endswith("above 0); not always: attention (0 of 1).")


def test_measures_that_are_all_alike_are_not_listed():
    better, like = [seeds(1, 0.01), seeds(2, 0.01), seeds(3, 0.01)], [seeds(0.0, 0.5)] * 3
    rows = card({("erasure", "a"): [*better, [0.1, 0.0, 0.05]], ("other", "a"): [*like, [0.1, 0.0, 0.05]]})
    assert verdict({"scorecard": rows}, "random")[1].endswith("above 0): each of them in 1 of 2.")


def test_two_seeds_tell_nothing_and_equal_measures_do_not_lead():
    rows = card({("erasure", "a"): [[0.4, 0.4], [0.4, 0.4], [0.1, 0.2], [0.0, 0.0]]})
    (sentence,) = verdict({"scorecard": rows}, "random")
    assert sentence.startswith("The best measure by one criterion: a tie once. An interval over seeds needs 3 or more")


def test_equal_seeds_are_one_model_and_tell_nothing():
    rows = card({("erasure", "a"): [[0.4] * 3, [0.3] * 3, [0.1] * 3, [0.0] * 3]})
    (sentence,) = verdict({"scorecard": rows}, "random")
    assert "attention once. An interval over seeds needs 3 or more seeds that differ" in sentence


@pytest.mark.parametrize("tables", [{}, {"scorecard": card({("erasure", "a"): [seeds(0.1)] * 4}).query("value > 1")}])
def test_no_sentence_without_data(tables):
    assert verdict(tables, "random") == []


def test_criteria_that_contradict_each_other_are_named_with_intervals():
    rising, falling = [seeds(i) for i in (1, 2, 3, 0)], [seeds(i) for i in (3, 2, 1, 0)]
    rows = card({("one", "a"): rising, ("two", "a"): rising, ("three", "a"): falling})
    found = verdict({"meta_evaluation": meta_rows(rows, "random", resamples=50)}, "random")
    assert found == [
        "The mean Kendall τ between the rankings of two criteria is −0.33 over 3 pairs: 1 agree (95\u00a0% interval "
        "above 0), 2 contradict each other and 0 are undecided. Contradictions: one with three (τ −1.00 [−1.00, "
        "−1.00]) and two with three (τ −1.00 [−1.00, −1.00])."
    ]
    known = card({("one", "a"): rising, ("two", "a"): rising, ("ground truth", "a"): falling})
    (sentence,) = verdict({"meta_evaluation": meta_rows(known, "random", resamples=50)}, "random")
    assert sentence.startswith(
        "The mean Kendall τ between the rankings of two criteria without a known truth is 1.00 ov"
    )
    alone = card({("one", "a"): [row[:2] for row in rising], ("two", "a"): [row[:2] for row in falling]})
    (sentence,) = verdict({"meta_evaluation": meta_rows(alone, "random", resamples=50)}, "random")
    assert sentence.endswith("over one pair; there is no interval, so it is undecided which criteria disagree.")


def test_criteria_are_compared_with_the_known_truth():
    usual = {"truth": EVERY, "status": "ok", "p_value": 0.025}
    rows = pd.DataFrame(
        [
            usual | {"criterion": "one", "tau": 0.5, "ci_low": 0.25, "ci_high": 0.75},
            usual | {"criterion": "two", "tau": -0.5, "ci_low": -0.75, "ci_high": -0.25},
            usual | {"criterion": "three", "tau": 0.1, "ci_low": -0.2, "ci_high": 0.3},
            usual | {"criterion": "four", "tau": 0.9, "ci_low": None, "ci_high": None},
            # Seeds are sure of it, but there are too few measures.
            usual | {"criterion": "five", "tau": 0.8, "ci_low": 0.6, "ci_high": 0.9, "p_value": 0.08},
        ]
    )
    assert verdict({"trust": rows}, "random") == [
        "Kendall τ with the ranking by the known truth of manipulated texts is above 0 for one (τ 0.50 [0.25, 0.75], p "
        "0.025); below 0 for two (τ −0.50 [−0.75, −0.25], p 0.025); undecided for three (τ 0.10 [−0.20, 0.30], p "
        "0.025) and five (τ 0.80 [0.60, 0.90], p 0.080)."
    ]
    # A comparison on equal terms counts, if there is one.
    common = rows.assign(n_measures=6, model="every model")
    assert verdict({"trust": rows, "trust_common": common[common["criterion"] == "one"]}, "random") == [
        "On equal terms (the same 6 measures on plain texts), Kendall τ with the ranking by the known truth of "
        "manipulated texts is above 0 for one (τ 0.50 [0.25, 0.75], p 0.025)."
    ]
    # So does what holds for all models together, but not for each of them.
    alone = common.assign(model="net", ci_low=[-0.1, -0.75, 0.2, None, 0], tau=[0.2, -0.5, 0.25, None, 0])
    (sentence,) = verdict({"trust": rows, "trust_common": pd.concat([common, alone])}, "random")
    assert sentence.endswith(". Not by each model alone: one of net (τ 0.20 [−0.10, 0.75], p 0.025).")
    assert verdict({"trust": rows, "trust_common": common.assign(status="missing")}, "random") == verdict(
        {"trust": rows}, "random"
    )


def test_models_at_chance_are_counted():
    usual = {"dataset": "a", "variant": "plain", "model": "net", "metric": "above_chance", "split": "test"}
    rows = [usual | {"seed": seed, "status": "ok", "reason": None} for seed in (0, 1)]
    rows.append(usual | {"seed": 2, "status": "at chance", "reason": "it guesses"})
    assert verdict({"performance": pd.DataFrame(rows)}, "random") == [
        "Of 3 trained models, 1 is hardly better than guessing and is excluded from all findings."
    ]
    assert verdict({"performance": pd.DataFrame(rows[:2])}, "random") == []
