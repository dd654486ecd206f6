"""Figures of sensitivity: panels, lines and cells."""

import pandas as pd

from plumbline.protocols.sensitivity.figures import NOTHING, detection, ladders
from tests.unit.protocols.sensitivity.test_sensitivity import ladder

FALLING = [[0.5, 0.6, 0.55], [0.4, 0.51, 0.45], [0.3, 0.4, 0.36], [0.1, 0.2, 0.14]]
FLAT = [[0.5, 0.6, 0.55], [0.51, 0.6, 0.54], [0.5, 0.59, 0.56], [0.5, 0.61, 0.55]]


def rows() -> pd.DataFrame:
    """A criterion that falls, on plain texts and two kinds of manipulated ones, and one that does not."""
    parts = [ladder(*FALLING, variant=variant) for variant in ("plain", "articles", "planted")]
    return pd.concat([*parts, ladder(*FLAT, criterion="sufficiency", direction="lower")])


def test_a_panel_for_each_criterion_and_a_line_for_each_variant():
    figure = ladders(rows(), "sst, net")
    panels = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_title(loc="left") for panel in panels] == [
        "ROAR\u00a0↑",
        "ROAR, manipulated\u00a0↑",
        "sufficiency\u00a0↓",
    ]
    assert [len(panel.containers) for panel in panels] == [1, 2, 1]
    line = panels[0].containers[0].lines[0]
    assert line.get_xdata().tolist() == [0, 0.25, 0.5, 1] and line.get_ydata()[0] == 0.55
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys == ["loo", "plain", "articles", "planted"]


def test_cells_have_the_smallest_share_or_a_dash():
    panel = detection(rows(), "Which?").axes[0]
    assert [text.get_text() for text in panel.texts] == ["0.25", "0.25", "–"]
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == ["ROAR", "ROAR, manipulated", "sufficiency"]
    assert [label.get_text() for label in panel.get_xticklabels()] == ["3"]


def test_a_study_without_values_or_with_few_seeds_has_a_sentence():
    assert ladders(rows().head(0), "sst, net").texts[0].get_text() == f"sst, net: {NOTHING}"
    assert detection(rows().head(0), "Which?").texts[0].get_text().startswith("Which?: no criterion")
    assert detection(ladder([0.5], [0.4]), "Which?").texts[0].get_text().startswith("Which?: no criterion")
    # One seed has no interval.
    assert len(ladders(ladder([0.5], [0.4]), "sst, net").axes[0].containers) == 1
