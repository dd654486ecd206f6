"""Figures of the scorecard: rows, columns and the text of each cell."""

import numpy as np
import pandas as pd
import pytest

from plumbline.protocols.scorecard.figures import NOTHING, meta_evaluation, scorecard
from plumbline.protocols.scorecard.meta import relative_ranks

MEASURES = {"attention": 0.1, "gradient": 0.3, "random": 0.0}


def card(**models: float) -> pd.DataFrame:
    """Two criteria that agree, lower being better for one of them, and one of attention only."""
    rows = []
    for model, factor in models.items():
        usual = {"dataset": "sst", "variant": "plain", "model": model, "status": "ok", "faithfulness": True}
        usual |= {"ci_low": None, "ci_high": None, "degraded_of": None, "reason": None}
        for measure, value in MEASURES.items():
            rows += [
                {**usual, "criterion": "ROAR", "direction": "higher", "measure": measure, "value": factor * value},
                {
                    **usual,
                    "criterion": "sufficiency",
                    "direction": "lower",
                    "measure": measure,
                    "value": -factor * value,
                },
            ]
        rows.append({**usual, "criterion": "AtteFa", "direction": "higher", "measure": "attention", "value": 0.7})
        missing = {**usual, "criterion": "AtteFa", "direction": "higher", "value": None, "status": "missing"}
        rows += [{**missing, "measure": measure} for measure in ("gradient", "random")]
    return pd.DataFrame(rows)


def written(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_ranks_follow_the_direction_of_the_criterion():
    rows = card(net=1.0)
    defined = rows[rows["status"] == "ok"].assign(rank=relative_ranks(rows[rows["status"] == "ok"]))
    found = defined.set_index(["criterion", "measure"])["rank"]
    for criterion in ("ROAR", "sufficiency"):
        assert found[criterion].to_dict() == {"attention": 0.5, "gradient": 1.0, "random": 0.0}
    # A single measure has no rank.
    assert np.isnan(found["AtteFa", "attention"])


def test_degraded_measures_have_no_rank_and_are_not_shown():
    rows = card(net=1.0)
    worse = rows[rows["measure"] == "gradient"].assign(measure="gradient.degraded.1", degraded_of="gradient", value=9.0)
    both = pd.concat([rows, worse], ignore_index=True)
    ranks = relative_ranks(both)
    assert ranks[both["degraded_of"].notna()].isna().all()
    pd.testing.assert_series_equal(ranks[both["degraded_of"].isna()], relative_ranks(rows))
    assert written(scorecard(both, "sst, net")) == written(scorecard(rows, "sst, net"))


def test_one_dataset_and_model_shows_values_and_what_is_missing():
    figure = scorecard(card(net=1.0), "sst, net")
    assert written(figure) == ["0.10", "−0.10", "0.70", "0.30", "−0.30", "–", "0.00", "0.00", "–"]
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["ROAR ↑", "sufficiency ↓", "AtteFa ↑"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["attention", "gradient", "random"]


def test_plain_and_manipulated_texts_have_columns_of_their_own():
    rows = card(net=1.0)
    judged = rows[rows["criterion"] == "sufficiency"].assign(variant="articles")
    truth = judged.assign(criterion="ground truth")
    figure = scorecard(pd.concat([rows, judged, truth]), "sst, net")
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["ROAR ↑", "sufficiency ↓", "AtteFa ↑", "sufficiency, manipulated ↓", "ground truth ↓"]


def test_what_is_not_about_faithfulness_is_last_and_marked():
    rows = card(net=1.0)
    rows.loc[rows["criterion"] == "ROAR", "faithfulness"] = False
    judged = rows[rows["criterion"] == "sufficiency"].assign(variant="articles")
    figure = scorecard(pd.concat([rows, judged]), "sst, net")
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["sufficiency ↓", "AtteFa ↑", "sufficiency, manipulated ↓", "ROAR ↑ †"]
    assert "† not about faithfulness" in figure.axes[0].get_xlabel()
    assert not scorecard(card(net=1.0), "sst, net").axes[0].get_xlabel()


def test_intervals_stand_below_the_values_of_one_dataset_and_model():
    rows = card(net=1.0)
    rows.loc[rows["criterion"] == "ROAR", ["ci_low", "ci_high"]] = [-0.5, 0.5]
    assert written(scorecard(rows, "sst, net"))[:3] == ["0.10", "[−0.50, 0.50]", "−0.10"]
    # Over several models ranks are shown.
    assert "[−0.50, 0.50]" not in written(scorecard(pd.concat([rows, rows.assign(model="other")]), "a study"))


def test_several_models_show_the_mean_rank():
    # The second model reverses both criteria.
    figure = scorecard(card(net=1.0, other=-1.0), "a study")
    # A criterion of attention only has no ranks and shows its value.
    assert written(figure)[:3] == ["0.50", "0.50", "0.70"] and written(figure)[3:5] == ["0.50", "0.50"]


def test_a_table_as_it_is_read_and_one_without_numbers():
    words = ["criterion", "direction", "dataset", "variant", "model", "measure", "status"]
    rows = card(net=1.0)
    assert written(scorecard(rows.astype(dict.fromkeys(words, "category")), "")) == written(scorecard(rows, ""))
    nothing = scorecard(rows[rows["status"] == "missing"], "a study")
    assert nothing.texts[0].get_text() == f"a study: {NOTHING}"


def test_a_figure_without_numbers_gives_the_reasons():
    rows = card(net=1.0).assign(status="missing", reason="seed 0 is left out")
    assert scorecard(rows, "a").texts[0].get_text() == "a: no measure has a score: seed 0 is left out"
    rows.loc[rows["criterion"] == "AtteFa", "reason"] = "it applies to attention only"
    text = scorecard(rows, "a").texts[0].get_text()
    expected = "ROAR, sufficiency: seed 0 is left out; AtteFa: it applies to attention only"
    assert text == f"a: no measure has a score; {expected}"


def test_meta_evaluation_writes_each_pair_once_with_its_interval():
    usual = {"n_cells": 2, "status": "ok", "matched": "variant"}
    rows = pd.DataFrame(
        [
            {**usual, "criterion_a": "a", "criterion_b": "b", "tau": 0.5, "ci_low": -0.25, "ci_high": 1.0},
            {
                **usual,
                "criterion_a": "a",
                "criterion_b": "c",
                "matched": "dataset",
                "tau": -1.0,
                "ci_low": -1.0,
                "ci_high": -0.5,
            },
            {"criterion_a": "b", "criterion_b": "c", "tau": None, "n_cells": 0, "status": "missing"},
        ]
    )
    figure = meta_evaluation(rows, "do they agree?")
    # A pair without a value has a dash.
    assert written(figure) == ["0.50", "[−0.25, 1.00]", "−1.00*", "[−1.00, −0.50]", "–"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["b", "c"]
    alone = meta_evaluation(rows[rows["status"] == "missing"], "do they agree?")
    assert alone.texts[0].get_text() == "do they agree?: no two criteria rank the same measures"


@pytest.mark.parametrize("count", [1, 30])
def test_few_and_many_measures_fit(count):
    rows = pd.DataFrame(
        [
            {
                "dataset": "d",
                "variant": "plain",
                "model": "m",
                "criterion": "ROAR",
                "direction": "higher",
                "faithfulness": True,
                "measure": f"m{i}",
                "value": i,
                "ci_low": i - 0.1,
                "ci_high": i + 0.1,
                "status": "ok",
                "degraded_of": None,
            }
            for i in range(count)
        ]
    )
    assert len(written(scorecard(rows, "many"))) == 2 * count
