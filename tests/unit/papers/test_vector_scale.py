"""Published numbers by the scale of word vectors, on rows made by hand."""

import pandas as pd
import pytest

from plumbline.papers.vector_scale import MOST, by_scale, vector_scale

VECTORS = {
    "half": {"kind": "sst", "vectors": "file", "scale": 0.5},
    "whole": {"kind": "sst", "vectors": "file", "scale": 1.0},
    "random": {"kind": "sst", "vectors": "random", "scale": 1.0},
    "other": {"kind": "imdb", "vectors": "file", "scale": 1.0},
}
USUAL = {
    "study": "J&W", "variant": None, "model": "bilstm-tanh", "measure_a": "attention", "measure_b": "gradient",
    "selected_on": None, "seed": None, "metric": "kendall_tau", "published": 0.4, "ours_spread": 0.1,
    "n_seeds": 3,
}  # fmt: skip


def rows() -> pd.DataFrame:
    """τ of two classes at two scales and with random vectors, of another dataset, a size, an epoch selected on test
    data, a single seed and a published number of one run."""
    values = {"half": (0.1, 0.3), "whole": (0.3, 0.5), "random": (0.6, 0.6), "other": (0.7, 0.7)}
    lines = [
        USUAL | {"dataset": name, "predicted_class": str(number), "ours": value}
        for name, of_classes in values.items()
        for number, value in enumerate(of_classes)
    ]
    for key, value in {"metric": "vocab_size", "selected_on": "test"}.items():
        lines += [USUAL | {"dataset": name, key: value, "ours": 9.0} for name in ("half", "whole")]
    lines.append(USUAL | {"dataset": "half", "n_seeds": 1, "ours": 9.0})
    return pd.DataFrame([*lines, USUAL | {"dataset": "half", "seed": 3, "ours": 9.0}])


def test_numbers_at_several_scales_are_means_over_classes():
    found = by_scale(rows(), VECTORS)
    assert set(found["kind"]) == {"sst"} and set(found["metric"]) == {"kendall_tau"}
    assert {(line.vectors, line.scale): line.ours for line in found.itertuples()} == {
        ("file", 0.5): pytest.approx(0.2), ("file", 1.0): pytest.approx(0.4), ("random", 1.0): pytest.approx(0.6)
    }  # fmt: skip


def test_published_numbers_are_dashed_lines_of_the_same_colour():
    more = rows().assign(measure_b="leave-one-out", published=0.2)
    panel = vector_scale(by_scale(pd.concat([rows(), more]), VECTORS), "Scales").axes[0]
    dashed = [line for line in panel.lines if line.get_linestyle() == "--"]
    assert sorted(line.get_ydata()[0] for line in dashed) == pytest.approx([0.2, 0.4])
    drawn = [line for line in panel.lines if len(line.get_xdata()) == 2 and line.get_marker() in "os"]
    assert [list(line.get_ydata()) for line in drawn] == [pytest.approx([0.2, 0.4])] * 2
    assert {line.get_color() for line in drawn} == {line.get_color() for line in dashed}
    assert [text.get_text() for text in panel.get_legend().get_texts()] == ["gradient", "leave-one-out"]
    assert panel.get_title(loc="left") == "J&W, sst: mean τ with attention"
    assert [label.get_text() for label in panel.get_xticklabels()] == ["0.5", "1", "random"]
    hollow = [line for line in panel.lines if line.get_fillstyle() == "none" and line.get_marker() in "os"]
    assert {tuple(line.get_xdata()) for line in hollow} == {(panel.get_xticks()[-1],)}


def test_the_numbers_that_change_the_most_are_drawn():
    many = [
        rows().assign(measure_b=f"m{number}", ours=lambda frame, step=number: frame["ours"] * step)
        for number in range(MOST + 3)
    ]
    panel = vector_scale(by_scale(pd.concat(many), VECTORS), "Scales").axes[0]
    shown = [text.get_text() for text in panel.get_legend().get_texts()]
    assert shown == [f"m{number}" for number in reversed(range(3, MOST + 3))]


def test_nothing_to_draw_is_said():
    figure = vector_scale(by_scale(rows()[:0], VECTORS), "Scales")
    assert "no published number at two scales" in figure.texts[0].get_text()
