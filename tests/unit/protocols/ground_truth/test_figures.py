"""Ground-truth figures of small made-up tables: the drawn values are those of the data."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from plumbline.figures import style
from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.ground_truth.figures import (
    attribution_by_accuracy,
    attribution_by_region,
    average_rows,
    kind_styles,
    truth_found,
)
from plumbline.protocols.ground_truth.level_curves import attribution_by_reassignment, attribution_by_visibility
from plumbline.protocols.ground_truth.rationale_curves import rationale_curves
from plumbline.protocols.ground_truth.word_groups import (
    COLOURS,
    MOST_PANELS,
    MOST_WORDS,
    PLAIN,
    ShownText,
    attention_by_group,
    word_attention,
)
from plumbline.store import schema_of

KINDS = ["peripheral-blur", "striped-hue", "watermark"]
MEASURES = ["gradient", "grad-cam", "random"]


def frame(name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A table of this kind as it is read, with strings as categories."""
    schema = schema_of(name).schema
    return pa.Table.from_pylist(
        [{field.name: row.get(field.name) for field in schema} for row in rows], schema
    ).to_pandas()


def line(**more: Any) -> dict[str, Any]:
    """A row of the table `ground_truth`; its interval is a hundredth to either side."""
    row: dict[str, Any] = {"dataset": "birds", "variant": "v", "model": "net", "seed": 0, "measure": "gradient"}
    row |= {"group": "effective region", "truth": True, "class": "all", "manipulation": "hue", "kind": "striped-hue"}
    row |= {"draw": 0, "r": 0.5, "n": 9, "undefined": 0, "attributed_fraction": 0.5, "region_fraction": 0.3}
    row |= {"found": 0.6, "auc": 0.7, "accuracy": 0.99, "chance_bound": 0.0, "status": "ok", **more}
    return {"ci_low": row["attributed_fraction"] - 0.01, "ci_high": row["attributed_fraction"] + 0.01, **row}


def drawn(panel: Axes, marker: str | None = None) -> list[tuple[float, float]]:
    """The points of a panel that have a marker, or this one."""
    lines = [line for line in panel.lines if line.get_marker() not in ("None", None, "")]
    return [
        (float(x), float(y))
        for line in lines
        if marker is None or line.get_marker() == marker
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def panels(figure: Figure) -> dict[str, Axes]:
    return {panel.get_title(loc="left"): panel for panel in figure.axes if panel.get_visible()}


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def note(figure: Figure) -> str:
    return figure.get_supxlabel().replace("\n", " ")


def test_points_by_region_are_full_for_the_manipulated_class_and_inaccurate_models_are_left_out():
    rows = [
        line(measure=measure, variant=f"{kind}-{draw}", kind=kind, region_fraction=0.1 + 0.2 * draw, accuracy=accuracy,
             attributed_fraction=0.5 + 0.1 * int(label), **{"class": label})
        for measure, kind, (draw, accuracy), label in product(MEASURES, KINDS, enumerate((0.99, 0.97, 0.95)), "01")
    ]  # fmt: skip
    rows += [line(measure=measure, **{"class": "all"}) for measure in MEASURES]
    figure = attribution_by_region(frame("ground_truth", rows), "birds")
    shown = panels(figure)
    assert list(shown) == ["gradient", "grad-cam", "random"]
    points = drawn(shown["grad-cam"])
    assert len(points) == 3 * 2 * 2 and {round(x, 6) for x, _ in points} == {0.1, 0.3}
    dots = [artist for artist in shown["random"].lines if artist.get_marker() == "o"]
    faces = {dot.get_ydata()[0]: dot.get_markerfacecolor() for dot in dots}
    styles = kind_styles(KINDS)
    assert faces[0.5] == "white" and faces[0.6] == styles["peripheral-blur"]["color"]
    assert "6 models with" in note(figure) and "3 less accurate left out" in note(figure)
    assert {*KINDS, "manipulated class", "other class"} <= set(labels(figure))


def test_variants_with_kept_labels_are_not_drawn_by_region():
    rows = [line(r=r, attributed_fraction=r, variant=f"r{r}", **{"class": "1"}) for r in (0.5, 0.8)]
    (panel,) = panels(attribution_by_region(frame("ground_truth", rows), "t")).values()
    assert drawn(panel) == [(0.3, 0.5)]


def test_runs_by_accuracy_are_lines_in_the_order_of_epochs():
    rows = [
        {"dataset": "birds", "variant": "a", "model": "net", "seed": seed, "epoch": epoch, "measure": "gradient"}
        | {"group": group, "truth": group == "region", "n": 5, "undefined": 0, "accuracy": accuracy}
        | {"attributed_fraction": epoch / 10, "region_fraction": 0.2}
        for seed, group in product((0, 1), ("region", "other"))
        for epoch, accuracy in ((5, 0.7), (1, 0.9), (3, 0.6))
    ]
    truth = frame("ground_truth", [line(variant="a", kind="watermark")])
    figure = attribution_by_accuracy(frame("trace", rows), truth, "t")
    (panel,) = panels(figure).values()
    lines = [artist for artist in panel.lines if len(artist.get_xdata()) == 3]
    runs = [artist for artist in lines if artist.get_linestyle() == "-"]
    assert [artist.get_ydata().tolist() for artist in lines if artist not in runs] == [[0.2] * 3] * 2, "region's share"
    assert len(runs) == 2 and runs[0].get_xdata().tolist() == [0.9, 0.6, 0.7]
    assert runs[0].get_ydata().tolist() == [0.1, 0.3, 0.5] and labels(figure) == ["watermark"]
    assert "each of 2 runs" in note(figure)


def test_levels_are_lines_by_draw_measure_and_manipulation():
    rows = [
        line(measure=measure, manipulation=name, draw=draw, level=level, attributed_fraction=0.1 * level + 0.3 * draw)
        for measure, name, draw, level in product(("gradient", "random"), ("blur", "hue"), (0, 1), (1, 2, 3))
    ]
    figure = attribution_by_visibility(frame("ground_truth", [*rows, line(level=None)]), "t")
    assert len(figure.axes) == 4 and [figure.axes[i].get_title(loc="left") for i in (0, 1)] == ["blur", "hue"]
    assert [figure.axes[i].get_ylabel() for i in (0, 2)] == ["gradient", "random"]
    expected = sorted((level, 0.1 * level + 0.3 * draw) for draw in (0, 1) for level in (1, 2, 3))
    assert np.allclose(sorted(drawn(figure.axes[3])), expected)
    assert labels(figure) == ["draw 0", "draw 1", "region's share"]


def test_each_model_has_its_own_columns():
    rows = [line(model=model, level=level) for model in ("deep", "flat") for level in (1, 2)]
    figure = attribution_by_visibility(frame("ground_truth", rows), "t")
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["hue, deep", "hue, flat"]


def test_the_band_of_shapley_values_follows_the_accuracy():
    rows = [line(r=r, draw=draw, accuracy=0.9 + 0.1 * draw) for r in (0.5, 0.75, 1.0) for draw in (0, 1)]
    figure = attribution_by_reassignment(frame("ground_truth", [*rows, line(manipulation="one")]), "t")
    (panel,) = figure.axes
    band = next(shape for shape in panel.collections if to_rgba("#d9e4d3") == tuple(shape.get_facecolor()[0]))
    corners = band.get_paths()[0].vertices
    # At the mean accuracy .95: (1.9 - r - .5) / .9.
    least = {r: corners[np.isclose(corners[:, 0], r), 1].min() for r in (0.5, 0.75, 1.0)}
    assert least == pytest.approx({0.5: 1.0, 0.75: 0.65 / 0.9, 1.0: 0.4 / 0.9})
    assert "region's share of the Shapley values" in labels(figure)


def test_measures_are_sorted_by_found_within_a_dataset_and_variants_are_averaged():
    found = {"gradient": 0.2, "grad-cam": 0.8, "random": 0.1}
    rows = [
        line(measure=measure, variant=f"hue-{draw}", found=value, attributed_fraction=value / 2 + 0.01 * draw)
        for (measure, value), draw in product(found.items(), range(4))
    ]
    rows += [line(dataset="beer", measure="attention", manipulation="articles", variant="articles")]
    rows += [line(manipulation="blur", variant="blur", chance_bound=0.04)]  # The model may not use it.
    rows += [line(model="alone", measure="selection", variant="hue-0")]  # It has its own figure.
    figure = truth_found(frame("ground_truth", rows))
    shown = panels(figure)
    assert list(shown) == ["beer\narticles\nnet", "birds\nhue\nnet"]
    panel = shown["birds\nhue\nnet"]
    assert [text.get_text() for text in panel.get_yticklabels()] == ["grad-cam", "gradient", "random"]
    points = sorted(drawn(panel, "o"), key=lambda point: point[1])
    assert [x for x, _ in points] == pytest.approx([0.415, 0.115, 0.065])
    assert [x for x, _ in sorted(drawn(panel, "D"), key=lambda point: point[1])] == pytest.approx([0.8, 0.2, 0.1])


def test_intervals_are_over_seeds_from_three_on_and_else_over_instances():
    rows = frame("ground_truth", [line(seed=seed, attributed_fraction=value) for seed, value in enumerate((0.1, 0.3))])
    (two,) = average_rows(rows, ["measure"]).to_dict("records")
    assert (two["low"], two["high"], two["attributed_fraction"]) == pytest.approx((0.19, 0.21, 0.2))
    values = [0.1, 0.3, 0.35, 0.2]
    rows = frame("ground_truth", [line(seed=seed, attributed_fraction=value) for seed, value in enumerate(values)])
    (four,) = average_rows(rows, ["measure"]).to_dict("records")
    assert (four["low"], four["high"]) == pytest.approx(mean_interval(values))


def group_rows(variants: list[str], measures: list[str]) -> pd.DataFrame:
    rows = []
    for variant, measure, seed in product(variants, measures, (0, 1, 2)):
        groups = ["correlating", *(["idle"] if variant != "articles" else []), "other"]
        for i, group in enumerate(groups):
            rows.append(
                line(dataset="beer", variant=variant, measure=measure, seed=seed, group=group, truth=i == 0,
                     attributed_fraction=0.1 * (i + 1) + 0.01 * seed, region_fraction=0.08)
            )  # fmt: skip
    return frame("ground_truth", rows)


def test_groups_of_words_are_columns_with_bars_and_spread():
    figure = attention_by_group(group_rows(["articles", "articles-cn"], ["attention", "random"]), "beer")
    shown = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_title(loc="left") for panel in shown] == ["correlating", "other", "correlating", "idle", "other"]
    bars = [patch.get_width() for patch in shown[0].patches]
    assert bars == pytest.approx([0.11, 0.11])
    (whisker,) = [c for c in shown[0].collections if len(c.get_segments()) == 1][:1]
    ends = whisker.get_segments()[0][:, 0]
    # The population standard deviation over seeds, as in the published tables.
    half_width = 0.01 * np.sqrt(2 / 3)
    assert ends == pytest.approx([0.11 - half_width, 0.11 + half_width]) and "3 seeds" in note(figure)
    assert any(artist.get_xdata()[0] == 0.08 for artist in shown[0].lines)


def test_words_of_a_text_are_coloured_by_group_and_long_texts_are_truncated():
    words = [f"w{i}" for i in range(MOST_WORDS + 5)]
    groups = ["a", "b", *[""] * (len(words) - 2)]
    scores = np.zeros(len(words))
    scores[:3] = 2, -1, 1
    text = ShownText("test 3", words, groups, {"random": scores, "attention": scores})
    figure = word_attention(
        [text, ShownText("test 4", words[:4], groups[:4], {"attention": np.zeros(4)})], ["a", "b"], "t"
    )
    first, second, third = figure.axes
    assert len(first.patches) == MOST_WORDS and [p.get_height() for p in first.patches[:3]] == [0.5, 0.25, 0.25]
    assert [p.get_facecolor() for p in first.patches[:3]] == [to_rgba(c) for c in (COLOURS[0], COLOURS[1], PLAIN)]
    assert first.get_title(loc="left") == f"test 3 (the first {MOST_WORDS} of {len(words)} words)"
    assert (first.get_ylabel(), second.get_ylabel()) == ("attention", "random")
    assert {text.get_text() for text in first.get_xticklabels()} == {""}
    assert [text.get_text() for text in second.get_xticklabels()][:2] == ["w0", "w1"]
    assert [p.get_height() for p in third.patches] == [0] * 4


def test_many_measures_are_rows_of_shaded_words():
    words, groups = ["a", "b", "c"], ["one", "", ""]
    scores = {f"m{number:02}": np.array([2.0, -1, 0]) for number in range(MOST_PANELS)} | {"random": np.zeros(3)}
    (panel,) = word_attention([ShownText("test 3", words, groups, scores)], ["one"], "t").axes
    shades = np.asarray(panel.images[0].get_array())
    assert shades[:-1].tolist() == [[1, 0.5, 0]] * MOST_PANELS and not shades[-1].any()
    assert [text.get_text() for text in panel.get_yticklabels()] == list(scores)
    assert [text.get_text() for text in panel.get_xticklabels()] == words
    assert [text.get_color() for text in panel.get_xticklabels()][:1] == [COLOURS[0]]


def test_rationales_with_both_optima():
    rows = [
        {"dataset": "beer", "variant": variant, "model": model, "seed": 0, "selection_rate": rate}
        | {"precision": 0.5, "recall": rate, "accuracy": 0.99, "n": 9, "status": "ok"}
        for variant, model, rate in product(("articles", "cn"), ("rl", "cr"), (0.05, 0.1))
    ]
    rows.append({**rows[0], "selection_rate": 0.0, "precision": None, "status": "undefined"})
    best = [
        {"variant": variant, "of": of, "rate": rate, "precision": 1 - rate, "recall": rate * (1 + (of == "text"))}
        for variant, of, rate in product(("articles", "cn"), ("dataset", "text"), (0.2, 0.0, 0.1))
    ]
    figure = rationale_curves(frame("rationales", rows), pd.DataFrame(best), "beer")
    shown = panels(figure)
    assert list(shown) == ["precision, articles", "recall, articles", "precision, cn", "recall, cn"]
    recall = shown["recall, cn"]
    assert np.allclose(sorted(drawn(recall)), [(0.05, 0.05)] * 2 + [(0.1, 0.1)] * 2)
    curves = {
        artist.get_label(): artist.get_ydata().tolist() for artist in recall.lines if len(artist.get_xdata()) == 3
    }
    assert curves == {
        "optimum over all texts together": [0, 0.1, 0.2],
        "optimum with the same share in each text": [0, 0.2, 0.4],
    }
    assert labels(figure) == ["cr", "rl", *curves]


@pytest.mark.parametrize(("count", "kinds"), [(1, len(KINDS)), (12, 1)])
def test_every_figure_can_be_written_for_many_manipulations_and_for_many_measures(
    tmp_path: Path, count: int, kinds: int
):
    """Each count is varied alone: a panel is drawn for each measure and manipulation."""
    measures = list(style.MEASURES)[:count]
    rows = [
        line(measure=measure, variant=f"{kind}-{level}-{r}", manipulation=kind, kind=kind, level=level, r=r)
        | {"class": label}
        for measure, kind, level, r, label in product(measures, KINDS[:kinds], (1, 2), (0.5, 1.0), ("all", "1"))
    ]  # fmt: skip
    table = frame("ground_truth", rows)
    figures = [
        attribution_by_region(table, "t"),
        attribution_by_visibility(table, "t"),
        attribution_by_reassignment(table, "t"),
        truth_found(table),
        attention_by_group(group_rows(["articles"], measures), "t"),
    ]
    for i, figure in enumerate(figures):
        style.save(figure, tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 5000


def test_figures_without_data_are_a_sentence():
    empty = frame("ground_truth", [])
    undefined = frame("ground_truth", [line(attributed_fraction=0.0, status="undefined", ci_low=None, ci_high=None)])
    for table in (empty, undefined):
        for draw in (attribution_by_region, attribution_by_visibility, attribution_by_reassignment, attention_by_group):
            assert "t: no " in draw(table, "t").texts[0].get_text()
        assert "no model" in truth_found(table).texts[0].get_text()
    assert "no model" in attribution_by_accuracy(frame("trace", []), empty, "t").texts[0].get_text()
    assert "no text" in word_attention([], [], "t").texts[0].get_text()
    few = frame("ground_truth", [line(accuracy=0.8, **{"class": "1"})])
    assert "accuracy above 95 %" in attribution_by_region(few, "t").texts[0].get_text()
