"""Figures from small synthetic frames: what is drawn, the message if nothing can be drawn, and the bytes."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import seaborn as sns
from matplotlib import pyplot, rcParams
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from plumbline.figures import style
from plumbline.figures.intervals import interval
from plumbline.protocols.agreement.differences import Roles, differences, mean_differences
from plumbline.protocols.agreement.figures import (
    compared_measures,
    kendall_rows,
    mean_and_spread,
    pair_rows,
    tau_histogram,
    tau_matrix,
)
from plumbline.protocols.agreement.matrices import correlation_matrices
from plumbline.protocols.agreement.schemas import AGREEMENT
from plumbline.protocols.schemas import SCORES

TEXTS = 12


def taus(values: dict[tuple[str, str], float], seeds: int = 2, classes: int = 2, **keys: str) -> pd.DataFrame:
    """τ of each pair: its value, plus a small step by text and by seed."""
    rows = [
        {"seed": seed, "split": "test", "instance": text, "predicted_class": text % classes}
        | {
            "measure_a": a,
            "measure_b": b,
            "value": value + 0.01 * (text - (TEXTS - 1) / 2) + 0.1 * (seed - (seeds - 1) / 2),
        }
        for (a, b), value in values.items()
        for seed in range(seeds)
        for text in range(TEXTS)
    ]
    return pd.DataFrame(rows).assign(**keys)


THREE = {("attention", "gradient"): 0.2, ("attention", "leave-one-out"): 0.1, ("gradient", "leave-one-out"): 0.5}


def heights(figure: Figure, panel: int, colour: str) -> list[float]:
    return [
        bar.get_height()
        for bar in figure.axes[panel].patches
        if isinstance(bar, Rectangle) and bar.get_facecolor()[:3] == pytest.approx(to_rgba(colour)[:3])
    ]


def words(figure: Figure) -> str:
    legends = [text.get_text() for legend in figure.legends for text in [*legend.get_texts(), legend.get_title()]]
    return "\n".join(
        [text.get_text() for axes in figure.axes for text in axes.texts]
        + [text.get_text() for text in figure.texts]
        + legends
    )


def test_histograms_sum_to_one_in_every_class() -> None:
    figure = tau_histogram(taus(THREE), ["negative", "positive"], "sst, bilstm-tanh")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["gradient", "leave-one-out"]
    for panel in range(2):
        for number in range(2):
            bars = heights(figure, panel, style.class_colour(number))
            assert len(bars) == 30
            assert sum(bars) == pytest.approx(1)
    assert "negative" in words(figure) and "positive" in words(figure) and "sst, bilstm-tanh" in words(figure)


def test_histogram_bins_hold_the_values_they_should() -> None:
    frame = taus({("attention", "gradient"): 0.0}, seeds=1).assign(
        value=[-1.0, -0.99, 0.01, 0.01] + [0.99] * 8, predicted_class=0
    )
    bars = heights(tau_histogram(frame, ["only"], "t"), 0, style.class_colour(0))
    assert bars[0] == pytest.approx(2 / 12) and bars[15] == pytest.approx(2 / 12) and bars[29] == pytest.approx(8 / 12)


def test_without_attention_the_first_measure_is_the_reference() -> None:
    figure = tau_histogram(taus({("gradient", "random"): 0.1}), ["a", "b"], "t")
    assert figure._supxlabel.get_text() == "Kendall τ with gradient"  # type: ignore[attr-defined]


def test_many_classes_are_drawn_together() -> None:
    figure = tau_histogram(taus(THREE, classes=5), list("abcde"), "t")
    assert sum(heights(figure, 0, style.BAR)) == pytest.approx(1)
    assert "all classes" in words(figure)


def test_the_interval_counts_each_text_once() -> None:
    frame = taus({("attention", "gradient"): 0.2}, seeds=2)
    mean, half = interval(frame)
    texts = 0.01 * np.arange(TEXTS)
    assert mean == pytest.approx(0.2)
    assert half == pytest.approx(1.96 * texts.std(ddof=1) / np.sqrt(TEXTS))
    assert np.isnan(interval(frame[frame["instance"] == 0])[1])


def test_the_matrix_is_symmetric_and_has_means_and_spreads() -> None:
    frame = taus(THREE)
    mean, spread = mean_and_spread(frame, compared_measures(frame))
    assert np.array_equal(mean, mean.T, equal_nan=True) and np.isnan(np.diag(mean)).all()
    assert mean.loc["gradient", "attention"] == pytest.approx(0.2)
    assert spread.loc["leave-one-out", "gradient"] == pytest.approx(0.05)
    texts = [text.get_text() for text in tau_matrix(frame, "t").axes[0].texts]
    assert texts.count("0.20\n±0.05") == 2 and texts.count("0.50\n±0.05") == 2


@pytest.mark.parametrize("count", [2, 12])
def test_matrices_of_any_size_are_drawn(count: int) -> None:
    names = [f"measure-{i:02}" for i in range(count)]
    figure = tau_matrix(taus(dict.fromkeys(combinations(names, 2), 0.3)), "t")
    assert len([text for text in figure.axes[0].texts if "±" in text.get_text()]) == count * (count - 1)


def agreement_frame(
    values: dict[tuple[str, str], float], dataset: str = "sst", tokens: str = "text", seeds: int = 2
) -> pd.DataFrame:
    """Rows of the table `agreement` with this mean for every seed."""
    rows = [
        {"dataset": dataset, "variant": "plain", "model": "m", "seed": seed, "measure_a": a, "measure_b": b}
        | {"statistic": "kendall", "tokens": tokens, "predicted_class": "all", "n": 401, "dropped": 0}
        | {"mean": value, "std": 0.25, "significant_fraction": 0.0, "status": "ok"}
        for (a, b), value in values.items()
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows, columns=AGREEMENT.schema.names)


def test_each_set_of_tokens_has_a_row_with_a_panel_for_each_dataset() -> None:
    means = [("sst", "texts", 0.9), ("sst", "all", -0.4), ("imdb", "texts", 0.1), ("imdb", "all", 0.0)]
    frames = [agreement_frame({**THREE, ("attention", "gradient"): value}, *keys) for *keys, value in means]
    figure = correlation_matrices(pd.concat(frames), ["imdb", "sst", "absent"], "net")
    titles = [panel.get_title(loc="left") for panel in figure.axes[:-1]]
    assert titles == ["imdb\nall words", "sst\nall words", "imdb\nall tokens", "sst\nall tokens"]
    for panel, value in zip(figure.axes, (0.1, 0.9, 0.0, -0.4), strict=False):
        texts = [text.get_text() for text in panel.texts]
        # By rows: gradient with attention, then leave-one-out with both; the spread of 401 texts of two seeds, ddof 1.
        assert texts == [style.signed(value), "0.25", "0.10", "0.25", "0.50", "0.25"]
        ground = np.asarray(panel.collections[0].get_array())
        assert ground[0, 0] == pytest.approx(sns.color_palette("vlag", as_cmap=True)((value + 1) / 2))
        assert ground[0, 1] == pytest.approx(1)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["gradient", "leave-one-out"]
    assert [label.get_text() for label in figure.axes[2].get_xticklabels()] == ["attention", "gradient"]
    assert "over the texts of 2 seeds" in words(figure)


def test_a_pair_without_correlation_has_a_dash_and_a_single_dataset_its_name() -> None:
    incomplete = {pair: value for pair, value in THREE.items() if pair != ("attention", "leave-one-out")}
    figure = correlation_matrices(agreement_frame(incomplete, seeds=1), ["sst"], "net")
    assert figure.axes[0].get_title(loc="left") == "sst" and len(figure.axes) == 2
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.20", "0.25", "–", "0.50", "0.25"]
    assert "over the texts of one seed" in words(figure)
    pearson = agreement_frame(THREE).assign(statistic="pearson")
    assert "no pair of measures" in words(correlation_matrices(pearson, ["sst"], "net"))


@pytest.mark.parametrize("count", [2, 5, 12])
@pytest.mark.parametrize("datasets", [1, 5])
def test_all_labels_of_correlation_matrices_are_inside_the_figure(count: int, datasets: int) -> None:
    names = [f"a-measure-of-some-length-{i:02}" for i in range(count)]
    frames = [agreement_frame(dict.fromkeys(combinations(names, 2), 0.3), f"data-{i}") for i in range(datasets)]
    figure = correlation_matrices(pd.concat(frames), [f"data-{i}" for i in range(datasets)], "net")
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) > -0.02
    assert box.x1 < figure.get_figwidth() + 0.02 and box.y1 < figure.get_figheight() + 0.02


def test_differences_match_their_labels() -> None:
    frame = pd.concat(
        [
            taus(THREE, dataset="sst", model="bilstm-tanh"),
            taus({**THREE, ("attention", "leave-one-out"): 0.7}, dataset="sst", model="average-tanh"),
        ]
    )
    panels = differences(frame, Roles())
    assert [panel.missing for panel in panels] == ["", "", ""]
    bars = [panel.bars["sst"] for panel in panels]
    assert [bar[0] for bar in bars] == pytest.approx([0.5 - 0.1, 0.5 - 0.2, 0.7 - 0.1])
    # The small steps are the same in both pairs of a text, so their difference does not vary.
    assert bars[0][1] == pytest.approx(0, abs=1e-12) and bars[2][1] > 0
    assert bars[0][2] == pytest.approx([0.4, 0.4])
    widths = [bar.get_width() for bar in mean_differences(frame).axes[0].patches if isinstance(bar, Rectangle)]
    assert widths == pytest.approx([0.4])


def test_missing_measures_and_models_are_named() -> None:
    frame = taus({("attention", "leave-one-out"): 0.1}, dataset="sst", model="bilstm-tanh")
    shown = words(mean_differences(frame))
    assert "no\nmeasure “gradient”" in shown and "no\nmodel “average-tanh”" in shown


def test_entry_names_of_the_study_are_mapped_to_registered_names() -> None:
    roles = Roles.of({"my-slope": "gradient", "attention": "attention", "lstm": "bilstm-tanh"})
    assert roles == Roles(gradient="my-slope", recurrent="lstm")


def test_an_empty_frame_gives_a_figure_with_a_message() -> None:
    empty = taus(THREE).iloc[:0]
    for figure in (tau_histogram(empty, ["a"], "sst"), tau_matrix(empty, "sst")):
        assert "no pair of measures" in words(figure)


def test_only_defined_kendall_rows_are_read() -> None:
    frame = taus(THREE).assign(statistic="kendall", tokens="text", status="ok", reason=None, p_value=0.5, length=9)
    frame.loc[frame["instance"] == 0, "status"] = "dropped"
    frame.loc[frame["instance"] == 1, "statistic"] = "pearson"
    # Of several sets of tokens the smallest is used.
    frame = pd.concat([frame.assign(tokens="all", value=0.9), frame])
    read = kendall_rows(pa.Table.from_pandas(frame, SCORES.schema, preserve_index=False))
    assert sorted(read["instance"].unique()) == list(range(2, TEXTS))
    assert len(pair_rows(read, "leave-one-out", "gradient")) == 2 * (TEXTS - 2)


def test_a_measure_has_one_colour() -> None:
    assert style.measure_colour("attention") == "#0072B2"
    assert style.measure_colour("mine") == style.measure_colour("mine") in style.OTHER_MEASURES
    assert len(set(style.MEASURES.values())) == len(style.MEASURES)
    assert not set(style.MEASURES.values()) & set(style.OTHER_MEASURES)
    assert style.ordered(["zeta", "random", "attention"]) == ["attention", "random", "zeta"]


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        style.save(tau_matrix(taus(THREE), "t"), tmp_path / name)
    for suffix in style.FORMATS:
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


def test_a_figure_is_saved_to_the_given_paths(tmp_path: Path) -> None:
    style.save(style.sentence_figure("nothing"), [tmp_path / "v1.2.svg", tmp_path / "v1.2.png"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v1.2.png", "v1.2.svg"]


def test_drawing_leaves_no_state_behind(tmp_path: Path) -> None:
    before = dict(rcParams)
    style.save(tau_histogram(taus(THREE), ["a", "b"], "t"), tmp_path / "figure.png")
    assert dict(rcParams) == before and pyplot.get_fignums() == []
