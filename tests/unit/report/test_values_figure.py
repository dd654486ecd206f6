"""Values by name and series, on rows made by hand."""

import pandas as pd
import pytest

from plumbline.figures.values import lines, values


def ends(figure):
    """The ends of all intervals."""
    segments = [segment for bars in figure.axes[0].collections for segment in bars.get_segments()]
    return sorted((round(float(a[0]), 6), round(float(b[0]), 6)) for a, b in segments)


def marks(figure):
    """The lines with the marks of each series."""
    return [line for line in figure.axes[0].lines if line.get_marker() in ("o", "s")]


def test_marks_are_means_of_rows_which_are_small_marks():
    rows = pd.DataFrame({"name": ["a", "a", "b"], "series": "x", "value": [0.1, 0.3, 0.5]})
    figure = values(rows, "Values")
    small, means = marks(figure)
    assert list(means.get_xdata()) == pytest.approx([0.2, 0.5]) and list(means.get_ydata()) == [0, 1]
    assert list(small.get_xdata()) == [0.1, 0.3, 0.5] and list(small.get_ydata()) == [0, 0, 1]
    assert small.get_markersize() < means.get_markersize()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b"]


def test_known_intervals_are_drawn_and_series_keep_apart():
    rows = pd.DataFrame(
        {"name": ["a", "a"], "series": ["x", "y"], "value": [0.2, 0.6], "ci_low": [0.1, 0.5], "ci_high": [0.4, 0.8]}
    )
    figure = values(rows, "Values")
    assert ends(figure) == [pytest.approx((0.1, 0.4)), pytest.approx((0.5, 0.8))]
    assert [line.get_ydata()[0] for line in marks(figure)] == [pytest.approx(-0.175), pytest.approx(0.175)]
    assert [text.get_text() for text in figure.legends[0].get_texts()][-2:] == ["x", "y"]


def test_nothing_to_draw_is_said():
    empty = pd.DataFrame({"name": ["a"], "series": ["x"], "value": [None]})
    assert "no values" in values(empty, "Values").texts[0].get_text()


def test_lines_have_a_panel_per_series_and_a_line_per_name():
    rows = pd.DataFrame({"series": ["x", "x", "x", "y"], "name": ["a", "a", "b", "a"], "along": [10.0, 1.0, 1.5, 10.0]})
    rows = rows.assign(value=[0.2, 0.6, 0.4, 0.5], ci_low=[0.1, 0.6, 0.4, 0.4], ci_high=[0.4, 0.7, 0.5, 0.6])
    figure = lines(rows, "Lines")
    assert [panel.get_title() for panel in figure.axes] == ["x", "y"]
    first, second = marks(figure)
    assert list(first.get_ydata()) == [0.6, 0.2] and list(second.get_ydata()) == [0.4], "in order along the axis"
    assert list(first.get_xdata()) == pytest.approx([1, 10], rel=0.05)
    # Intervals are vertical; the label of 1.5 would overlap that of 1.
    segments = [bars.get_segments() for bars in figure.axes[0].collections]
    assert sorted(float(segment[0][1]) for found in segments for segment in found) == pytest.approx([0.1, 0.4, 0.6])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1", "10"]
    assert "no values" in lines(rows.assign(value=None), "Lines").texts[0].get_text()
