"""The figure of erasure from small made-up tables: the drawn values are those of the data."""

import numpy as np
import pandas as pd
import pytest

from plumbline.figures import style
from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.erasure.figures import erasure_figure, erasure_points
from plumbline.protocols.erasure.titles import METRICS

CELL = {"dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "ratio": np.nan, "n": 100, "std": 0.2}
GOOD = {"random": 0.0, "gradient": 0.2, "attention": 0.1}


def rows(seeds: int = 2, **keys) -> list[dict]:
    """Measures with the means of GOOD, of the opposite sign where lower is better."""
    return [
        CELL
        | {"metric": metric, "measure": measure, "seed": seed, "status": "ok"}
        | {"mean": (-mean if metric == "sufficiency" else mean) + 0.01 * seed}
        | keys
        for metric in METRICS
        for measure, mean in GOOD.items()
        for seed in range(seeds)
    ]


def test_intervals_are_over_texts_or_over_enough_seeds():
    points = erasure_points(pd.DataFrame(rows(2))).set_index(["metric", "measure"])
    point = points.loc["comprehensiveness", "gradient"]
    assert point["mean"] == pytest.approx(0.205) and point["high"] - point["mean"] == pytest.approx(1.96 * 0.02)
    point = erasure_points(pd.DataFrame(rows(4))).set_index(["metric", "measure"]).loc["comprehensiveness", "gradient"]
    assert (point["low"], point["high"]) == mean_interval([0.2, 0.21, 0.22, 0.23])


def test_right_is_better_in_every_panel_and_the_best_measure_is_on_top():
    frame = pd.DataFrame([*rows(), *rows(variant="articles"), *rows(ratio=10.0, mean=9.0)])
    figure = erasure_figure(frame, "random", "sst, bilstm-tanh")
    panels = figure.axes
    assert len(panels) == 2 * len(METRICS)
    assert [tick.get_text() for tick in panels[0].get_yticklabels()] == ["gradient", "attention", "random"]
    for panel, metric in zip(panels, [*METRICS, *METRICS], strict=True):
        dots = {line.get_color(): line for line in panel.lines if line.get_marker() == "o"}
        sign = -1 if metric == "sufficiency" else 1
        for y, measure in enumerate(["gradient", "attention", "random"]):
            (x,), (at,) = dots[style.measure_colour(measure)].get_data()
            assert (x, at) == (pytest.approx(sign * GOOD[measure] + 0.005), y)
        assert panel.xaxis_inverted() == (metric == "sufficiency")
    assert {panel.get_ylabel() for panel in panels} == {"articles", "plain", ""}


def test_a_study_may_have_no_random_measure():
    frame = pd.DataFrame(rows())
    for random, labels in (("random", ["a measure", "random importances"]), ("", ["a measure"])):
        shown = frame[(frame["measure"] != "random") | (random != "")]
        (legend,) = erasure_figure(shown, random, "sst").legends
        assert [text.get_text() for text in legend.get_texts()] == labels


def test_nothing_to_draw_is_a_sentence():
    figure = erasure_figure(pd.DataFrame(rows(status="undefined")), "random", "sst")
    assert "no text has a value" in figure.texts[0].get_text()
