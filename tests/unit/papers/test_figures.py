"""Published numbers against ours, on rows made by hand."""

import pandas as pd
import pytest

from plumbline.papers.figures import published_and_ours

ROWS = pd.DataFrame(
    {
        "model": ["a", "a", "b", "b"],
        "published": [0.1, 0.2, 0.3, 0.4],
        "ours": [0.15, 0.5, 0.35, 0.45],
        "ours_spread": [0.01, 0.02, None, 0.01],
        "within": [True, False, True, None],
    }
)


def test_numbers_outside_their_tolerance_are_hollow_and_those_not_judged_left_out():
    panel = published_and_ours(ROWS, "τ").axes[0]
    marks = [line for line in panel.lines if line.get_marker() in "os"]
    drawn = {(x, y): line.get_markerfacecolor() for line in marks for x, y in zip(*line.get_data(), strict=True)}
    assert drawn.keys() == {(0.1, 0.15), (0.2, 0.5), (0.3, 0.35)}
    assert [place for place, colour in drawn.items() if colour == "white"] == [(0.2, 0.5)]


def test_the_diagonal_spans_all_numbers():
    panel = published_and_ours(ROWS, "τ").axes[0]
    (diagonal,) = [line for line in panel.lines if line.get_linestyle() == "-"]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == pytest.approx([0.1, 0.5])


def test_nothing_judged_is_said():
    assert "no published number" in published_and_ours(ROWS[3:], "τ").texts[0].get_text()
