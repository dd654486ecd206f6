"""Figures of masking and retraining from small made-up tables: figures show the values of the tables."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.papers.schemas import REPRODUCTION  # noqa: F401 - its table is read
from plumbline.protocols.bootstrap import mean_interval
from plumbline.protocols.roar.figures import (
    MARKERS,
    SYNTHETIC,
    bands,
    draw_curves,
    draw_sparsity,
    draw_synthetic,
    roar_curves,
    seed_note,
    sparsity_figure,
    synthetic_figure,
)
from plumbline.protocols.roar.forest import TALLEST, draw_faithfulness, faithfulness_figure, lightened
from plumbline.store import schema_of, write_table
from plumbline.tables.sources import File, Sources

SEVEN = ["attention", "gradient", "gradient-norm", "input-x-gradient", "integrated-gradient", "leave-one-out"]
SEVEN += ["mutual-information", "random"]
FIVE = ["attention", "gradient", "input-x-gradient", "integrated-gradient", "random"]
DATASETS, MODELS = ["sst", "imdb"], ["bilstm", "roberta"]
RELATIVE = [("relative", "recursive")]
ALL = [*RELATIVE, ("relative", "roar"), ("absolute", "recursive"), ("absolute", "roar")]
LEVELS = {"relative": range(0, 101, 10), "absolute": range(11)}
TOP, FLOOR = 0.84, 0.36


def frame(name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """As the table of this kind is read, with words as categories."""
    schema = schema_of(name).schema
    return pa.Table.from_pylist(
        [{field.name: row.get(field.name) for field in schema} for row in rows], schema
    ).to_pandas()


def score(measure: str, share: float, seed: int, rng: np.random.Generator) -> float:
    """From the top to the floor, the faster the later the measure is in the list; both ends are shared."""
    drop = share ** (2 / (1 + SEVEN.index(measure) % 7 / 2)) if measure != "random" else share**2.2
    noise = rng.normal(0, 0.012) if 0 < share < 1 else 0.002 * seed
    return float(TOP + (FLOOR - TOP) * drop + noise)


def roar(
    measures: list[str] = FIVE,
    curves: list[tuple[str, str]] = ALL[:3],
    seeds: int = 5,
    leakage: bool = False,
    datasets: list[str] = DATASETS[:1],
    models: list[str] = MODELS[:1],
) -> pd.DataFrame:
    """Curves of two metrics, of which accuracy is .02 above; positions leak most half-way."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset, model, (unit, strategy), measure in product(datasets, models, curves, measures):
        for level, seed in product(LEVELS[unit], range(seeds)):
            share = level / (100 if unit == "relative" else 25)
            value = score(measure, share, seed, rng)
            line = {"dataset": dataset, "model": model, "strategy": strategy, "unit": unit, "measure": measure}
            line |= {"level": level, "variant": "v", "seed": seed, "status": "ok", "trained_on": "words"}
            rows += [
                line | {"metric": "macro_f1", "value": value},
                line | {"metric": "accuracy", "value": value + 0.02},
            ]
            leaked = 0.5 + 0.3 * share * (1 - share) * (measure != "random")
            rows += [line | {"trained_on": "positions", "metric": "macro_f1", "value": leaked}] if leakage else []
    return frame("roar", rows)


def sparsity(measures: list[str] = FIVE, seeds: int = 5) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        {"dataset": "sst", "model": "bilstm", "measure": measure, "seed": seed, "unit": unit, "top": top, "n": 9}
        | {"share": float(1 - (1 - share) ** (2 + i) + (rng.normal(0, 0.005) if share < 1 else 0))}
        for i, measure in enumerate(measures)
        for seed in range(seeds)
        for unit, tops in (("absolute", range(1, 11)), ("relative", range(10, 101, 10)))
        for top in tops
        for share in [top / (20 if unit == "absolute" else 100)]
    ]
    return frame("sparsity", rows)


def faithfulness(
    datasets: list[str] = DATASETS, models: list[str] = MODELS, curves: list[tuple[str, str]] = ALL[:3]
) -> pd.DataFrame:
    """Roberta has no attention; no two values are the same."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset, model, (unit, strategy), measure in product(datasets, models, curves, FIVE[:4]):
        value = float(rng.uniform(-0.3, 0.7))
        line = {"dataset": dataset, "model": model, "strategy": strategy, "unit": unit, "measure": measure}
        line |= {"metric": "macro_f1", "n_seeds": 5, "status": "ok", "faithfulness": value}
        if (model, measure) != ("roberta", "attention"):
            rows.append(line | {"ci_low": value - 0.07, "ci_high": value + 0.04})
    return frame("faithfulness", rows)


def published(ours: pd.DataFrame) -> pd.DataFrame:
    rows = ours[(ours["unit"] == "relative") & (ours["strategy"] == "recursive")]
    value = rows["faithfulness"] + 0.1
    return rows.assign(value=value, ci_low=value - 0.05, ci_high=value + 0.02)[
        ["dataset", "model", "measure", "value", "ci_low", "ci_high"]
    ]


def words(figure: Figure) -> list[str]:
    legends = [text for legend in figure.legends for text in [*legend.get_texts(), legend.get_title()]]
    panels = [text for panel in figure.axes for text in (panel.xaxis.label, panel.yaxis.label, panel._left_title)]
    return [text.get_text() for text in [*legends, *panels, figure._supxlabel or legends[0]]]


def line_of(panel: Axes, measure: str) -> Line2D:
    (line,) = [line for line in panel.lines if line.get_label() == measure]
    return line


def band_of(panel: Axes, colour: str) -> np.ndarray:
    """The corners of the band of a colour."""
    (band,) = [
        shape
        for shape in panel.collections
        if isinstance(shape, PolyCollection) and shape.get_facecolor()[0][:3] == pytest.approx(to_rgba(colour)[:3])
    ]
    return band.get_paths()[0].vertices


def dotted(panel: Axes) -> list[float]:
    """The heights of the lines from side to side."""
    return [float(line.get_ydata()[0]) for line in panel.lines if line.get_label().startswith("_")]


def assert_fits(figure: Figure) -> None:
    """Nothing is cut off at any side, and no panel is under the legend or on the sentence below."""
    figure.draw_without_rendering()
    (legend,) = figure.legends
    head, foot = legend.get_window_extent(), figure._supxlabel.get_window_extent()
    for box in (head, foot):
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0 and box.y1 <= figure.bbox.height
    for panel in figure.axes:
        box = panel.get_tightbbox()
        assert box is not None and box.x0 >= -1 and box.x1 <= figure.bbox.width + 1
        assert box.y1 <= head.y0 + 1 and box.y0 >= foot.y1 - 1
        assert panel.get_window_extent().height > 20


def test_a_line_is_the_mean_over_seeds_and_its_band_the_interval() -> None:
    rows = roar(curves=RELATIVE)
    (panel,) = roar_curves(rows, "macro_f1", "sst, bilstm", "random").axes
    for measure in FIVE:
        here = rows[(rows["measure"] == measure) & (rows["metric"] == "macro_f1")]
        line, levels = line_of(panel, measure), sorted(here["level"].unique())
        assert line.get_xdata().tolist() == levels
        assert line.get_ydata() == pytest.approx(here.groupby("level")["value"].mean().to_numpy())
        corners = band_of(panel, style.measure_colour(measure))
        for level in (10, 50, 100):
            low, high = mean_interval(here.loc[here["level"] == level, "value"])
            heights = corners[corners[:, 0] == level, 1]
            assert (heights.min(), heights.max()) == pytest.approx((low, high))
    assert line_of(panel, "random").get_linestyle() == "--" and line_of(panel, "attention").get_linestyle() == "-"


def test_the_floor_is_where_everything_is_masked() -> None:
    rows = roar()
    everything = rows[(rows["level"] == 100) & (rows["metric"] == "accuracy")]["value"].mean()
    figure = roar_curves(rows, "accuracy", "sst, bilstm")
    assert [dotted(panel) for panel in figure.axes] == [[pytest.approx(everything)]] * 3
    assert "everything masked" in words(figure)
    figure = roar_curves(roar(curves=ALL[2:]), "accuracy", "sst, bilstm")
    assert [dotted(panel) for panel in figure.axes] == [[], []] and "everything masked" not in words(figure)


def test_each_strategy_and_unit_of_the_table_has_a_panel() -> None:
    figure = roar_curves(roar(curves=ALL[::-1]), "macro_f1", "sst, bilstm")
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["Recursive ROAR", "ROAR"] * 2
    labels = [panel.get_xlabel() for panel in figure.axes]
    assert labels == ["masked words, %"] * 2 + ["number of masked words"] * 2
    assert figure.axes[0].get_ylabel() == "macro f1"
    note = " ".join(words(figure)[-1].split())
    assert "Lower is more faithful" in note and "5 seeds" in note and "95 %" in note


def test_absolute_levels_alone_have_no_panels_of_relative_ones() -> None:
    rows = roar(curves=ALL)
    everything = (rows["unit"] == "relative") & (rows["level"] == 100) & (rows["measure"] == "random")
    figure = roar_curves(rows[(rows["unit"] == "absolute") | everything], "accuracy", "sst, bilstm", "random")
    assert [panel.get_xlabel() for panel in figure.axes] == ["number of masked words"] * 2
    floor = rows[everything & (rows["metric"] == "accuracy")]["value"].mean()
    assert [dotted(panel) for panel in figure.axes] == [[pytest.approx(floor)]] * 2


def test_a_single_seed_is_a_line_without_a_band() -> None:
    figure = roar_curves(roar(seeds=1), "macro_f1", "sst, bilstm")
    assert not any(panel.collections for panel in figure.axes)
    assert all(len(line_of(panel, "gradient").get_xdata()) == 11 for panel in figure.axes)
    assert "One seed." in " ".join(words(figure)[-1].split())


def test_leakage_has_a_second_row() -> None:
    figure = roar_curves(roar(leakage=True), "macro_f1", "sst, bilstm")
    assert len(figure.axes) == 6
    for panel in figure.axes[3:]:
        assert dotted(panel) == [pytest.approx(0.5)], "chance"
    assert line_of(figure.axes[3], "gradient").get_ydata()[5] == pytest.approx(0.575)
    assert line_of(figure.axes[3], "random").get_ydata() == pytest.approx(np.full(11, 0.5))
    assert line_of(figure.axes[0], "gradient").get_ydata().max() > 0.8
    assert "masks alone reveal the class" in " ".join(figure.axes[3].get_title(loc="left").split())
    assert "everything masked, chance" in words(figure)


def test_measures_differ_by_more_than_colour() -> None:
    figure = roar_curves(roar(SEVEN, ALL), "macro_f1", "sst, bilstm", "random")
    (panel, *_) = figure.axes
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [*style.ordered(SEVEN[:-1]), "random", "everything masked"]
    lines = [line_of(panel, name) for name in names[:-2]]
    assert {line.get_marker() for line in lines} == set(MARKERS) and len({line.get_color() for line in lines}) == 7
    assert [line.get_color() for line in lines] == [style.measure_colour(name) for name in names[:-2]]
    assert line_of(panel, "random").get_marker() == "None"


def test_the_baseline_is_known_by_what_it_is_and_not_by_its_name() -> None:
    rows = roar(FIVE, RELATIVE)
    rows = rows.assign(measure=rows["measure"].astype(object).replace("random", "chance"))
    (panel,) = roar_curves(rows, "macro_f1", "t", "chance").axes
    assert line_of(panel, "chance").get_linestyle() == "--"
    (panel,) = roar_curves(roar(FIVE, RELATIVE), "macro_f1", "t", "chance").axes
    assert line_of(panel, "random").get_linestyle() == "-"


def test_missing_scores_are_not_drawn() -> None:
    rows = roar(curves=RELATIVE)
    lost = (rows["measure"] == "gradient") & (rows["level"] == 50) & (rows["seed"] == 0)
    rows.loc[lost, ["value", "status"]] = [np.nan, "ok"]
    (panel,) = roar_curves(rows, "macro_f1", "sst, bilstm").axes
    assert line_of(panel, "gradient").get_ydata()[5] == pytest.approx(
        rows[(rows["measure"] == "gradient") & (rows["level"] == 50) & (rows["metric"] == "macro_f1")]["value"].mean()
    )
    for empty in (rows.iloc[:0], rows[rows["metric"] == "accuracy"]):
        figure = roar_curves(empty, "macro_f1", "sst, bilstm")
        assert not figure.axes and "sst, bilstm" in figure.texts[0].get_text()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("measures", "curves", "leakage"),
    [
        (FIVE, ALL[:3], False),
        (SEVEN, ALL, True),
        (SEVEN, RELATIVE, True),
        (FIVE, ALL[:2], False),
        (FIVE, RELATIVE, False),
    ],
)
def test_curves_fit_their_page(measures: list[str], curves: list[tuple[str, str]], leakage: bool) -> None:
    assert_fits(roar_curves(roar(measures, curves, 2, leakage), "macro_f1", "imdb, bilstm-tanh"))


def test_sparsity_by_number_and_by_percent_of_words() -> None:
    rows = sparsity()
    left, right = (figure := sparsity_figure(rows, "sst, bilstm")).axes
    assert line_of(left, "attention").get_xdata().tolist() == list(range(1, 11))
    assert line_of(right, "attention").get_xdata().tolist() == list(range(10, 101, 10))
    here = rows[(rows["measure"] == "gradient") & (rows["unit"] == "relative")]
    assert line_of(right, "gradient").get_ydata() == pytest.approx(here.groupby("top")["share"].mean().to_numpy())
    corners = band_of(right, style.measure_colour("gradient"))
    heights = corners[corners[:, 0] == 30, 1]
    assert (heights.min(), heights.max()) == pytest.approx(mean_interval(here.loc[here["top"] == 30, "share"]))
    assert right.get_ylim() == (0, 1.02) and "share of the importance" in words(figure)
    assert_fits(figure)
    assert not any(panel.collections for panel in sparsity_figure(sparsity(seeds=1), "a").axes)
    assert not sparsity_figure(rows.iloc[:0], "a").axes


def marks(panel: Axes, marker: str) -> list[Line2D]:
    return [line for line in panel.lines if line.get_marker() == marker]


def test_every_faithfulness_is_a_point_on_its_interval() -> None:
    ours = faithfulness()
    left, right = (figure := faithfulness_figure(ours, None)).axes
    for panel, unit in ((left, "relative"), (right, "absolute")):
        here = ours[ours["unit"] == unit]
        points = marks(panel, "o")
        assert sorted(point.get_xdata()[0] for point in points) == pytest.approx(sorted(here["faithfulness"]))
        for point in points:
            line = here[np.isclose(here["faithfulness"], point.get_xdata()[0])].iloc[0]
            assert point.get_color() == style.measure_colour(line["measure"])
            assert (point.get_markerfacecolor() == "white") == (line["strategy"] == "roar")
            bars = [
                bar for bar in panel.lines if len(bar.get_xdata()) == 2 and bar.get_ydata()[0] == point.get_ydata()[0]
            ]
            assert bars[0].get_xdata() == pytest.approx([line["ci_low"], line["ci_high"]])
        zero = [line for line in panel.lines if list(line.get_xdata()) == [0, 0]]
        assert len(zero) == 1 and zero[0].get_color() == style.INK
    assert [label.get_text() for label in left.get_yticklabels()] == [
        "\n".join(pair) for pair in product(DATASETS, MODELS)
    ]
    assert {"Recursive ROAR", "ROAR", "by percent of words", "by number of words"} <= set(words(figure))
    assert "from random to all masked" in left.get_xlabel() and "Further right is better" in words(figure)[-1]


def test_points_lie_in_their_own_row_and_none_on_another() -> None:
    ours = faithfulness()
    panel = faithfulness_figure(ours, published(ours)).axes[0]
    heights = [float(line.get_ydata()[0]) for kind in "oD" for line in marks(panel, kind)]
    assert len(set(heights)) == len(heights)
    edges = [
        0,
        *sorted(line.get_ydata()[0] for line in panel.lines if line.get_color() == "#d3d7dc"),
        panel.get_ylim()[0],
    ]
    for row, (dataset, model) in enumerate(product(DATASETS, MODELS)):
        here = ours[(ours["dataset"] == dataset) & (ours["model"] == model) & (ours["unit"] == "relative")]
        inside = [line for line in marks(panel, "o") if edges[row] < line.get_ydata()[0] < edges[row + 1]]
        assert sorted(line.get_xdata()[0] for line in inside) == pytest.approx(sorted(here["faithfulness"]))


def test_published_values_are_pale_diamonds_next_to_ours() -> None:
    ours = faithfulness()
    theirs = published(ours)
    other = theirs.iloc[:1].assign(dataset="snli")
    unknown = theirs.iloc[1:2].assign(value=np.nan)
    left, right = (figure := faithfulness_figure(ours, pd.concat([theirs.iloc[:2], other, unknown]))).axes
    assert not marks(right, "D")
    diamonds = marks(left, "D")
    assert [diamond.get_xdata()[0] for diamond in diamonds] == pytest.approx(theirs["value"].iloc[:2].tolist())
    for diamond, measure, value in zip(diamonds, theirs["measure"], theirs["value"], strict=False):
        assert diamond.get_color() == lightened(style.measure_colour(measure))
        (bar,) = [line for line in left.lines if len(line.get_xdata()) == 2 and line.get_color() == diamond.get_color()
                  and line.get_ydata()[0] == diamond.get_ydata()[0]]  # fmt: skip
        assert bar.get_xdata() == pytest.approx([value - 0.05, value + 0.02])
        (circle,) = [
            line for line in marks(left, "o") if line.get_ydata()[0] == pytest.approx(diamond.get_ydata()[0] + 1)
        ]
        assert circle.get_xdata()[0] == pytest.approx(value - 0.1)
    assert "published (recursive)" in words(figure)
    assert "published (recursive)" not in words(faithfulness_figure(ours, other))
    assert lightened("#000000") == "#808080"


def test_faithfulness_that_is_not_defined_is_left_out() -> None:
    ours = faithfulness(curves=RELATIVE)
    ours.loc[0, "faithfulness"] = np.nan
    ours.loc[1, ["ci_low", "ci_high"]] = np.nan
    (panel,) = faithfulness_figure(ours, None).axes
    assert len(marks(panel, "o")) == len(ours) - 1
    assert not faithfulness_figure(ours.iloc[:0], None).axes


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("datasets", "curves", "panels"),
    [(1, RELATIVE, 1), (2, ALL[:3], 2), (8, ALL[:2], 2), (8, ALL[:3], 4), (2, ALL[2:], 1)],
)
def test_the_overview_fits_a_page(datasets: int, curves: list[tuple[str, str]], panels: int) -> None:
    names = [*DATASETS, "snli", "babi-1", "babi-2", "babi-3", "mimic-anaemia", "mimic-diabetes"][:datasets]
    ours = faithfulness(names, curves=curves)
    figure = faithfulness_figure(ours, published(ours))
    assert len(figure.axes) == panels and figure.get_figheight() < TALLEST + 1.5
    labels = [label.get_text().split("\n")[0] for panel in figure.axes for label in panel.get_yticklabels()]
    assert [label for label in labels if label] == [name for name in names for _ in MODELS]
    assert sum(len(marks(panel, "o")) for panel in figure.axes) == len(ours)
    assert_fits(figure)


def test_truth_can_be_seen_under_the_recursive_curve() -> None:
    curves = {"truth": [1.0, 0.8, 0.5], "recursive": [1.0, 0.8, 0.5], "roar": [1.0, 0.9, 0.5], "worst": [1.0, 1.0, 0.5]}
    rows = [
        {"seed": 0, "curve": name, "removed": removed, "accuracy": value}
        for name, values in curves.items()
        for removed, value in enumerate(values)
    ]
    (panel,) = (figure := synthetic_figure(frame("synthetic_roar", rows))).axes
    found = {name: line_of(panel, look["label"]) for name, look in SYNTHETIC.items()}
    assert all(line.get_ydata().tolist() == curves[name] for name, line in found.items())
    assert found["truth"].get_linewidth() > 3 * found["recursive"].get_linewidth()
    assert panel.lines.index(found["truth"]) < panel.lines.index(found["recursive"])
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == ["truth", "Recursive ROAR"]
    assert dotted(panel) == [0.5]
    assert_fits(figure)


def test_bands_of_one_value_have_no_width_that_is_known() -> None:
    rows = pd.DataFrame({"level": [0, 10, 10, 10], "value": [0.5, 0.4, 0.5, 0.6]})
    line = bands(rows, "level", "value")
    assert (
        line["mean"].tolist() == pytest.approx([0.5, 0.5])
        and np.isnan(line["low"][0])
        and line["low"][10] < 0.5 < line["high"][10]
    )


def test_declared_figures_draw_their_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ours = faithfulness(DATASETS[:1], MODELS[:1], RELATIVE)
    row = {"study": "Recursive ROAR", "table": "T2", "dataset": "sst", "model": "bilstm", "measure_a": "gradient"}
    row |= {"metric": "faithfulness", "published": 0.1, "within": False}
    others = [{"study": "another", "published": 0.9}, {"measure_a": "attention", "within": None}]
    synthetic = [
        {"seed": 0, "curve": name, "removed": i, "accuracy": 1 - i / 4} for name in SYNTHETIC for i in range(3)
    ]
    tables = {
        "roar": roar(FIVE[:2], RELATIVE, 2),
        "faithfulness": ours,
        "sparsity": sparsity(FIVE[:2], 2),
        "reproduction": frame("reproduction", [row, *(row | other for other in others)]),
        "synthetic_roar": frame("synthetic_roar", synthetic),
    }
    for name, table in tables.items():
        write_table(f"{name}.parquet", schema_of(name), dict(table))
    files = {name: [File({}, f"{name}.parquet")] for name in tables}
    sources = Sources(files, {"headlines": {"sst": "accuracy"}, "random": "random", "order": ["sst", "bilstm"]})
    cell = Drawing(sources, "sst", "bilstm")
    assert draw_curves(cell).axes[0].get_ylabel() == "accuracy" and len(draw_sparsity(cell).axes) == 2
    overview = draw_faithfulness(Drawing(sources))
    assert [diamond.get_xdata()[0] for diamond in marks(overview.axes[0], "D")] == [0.1]
    assert len(draw_synthetic(Drawing(sources)).axes) == 1


@pytest.mark.parametrize(("seeds", "note"), [(1, "One seed."), (2, "too few for intervals"), (5, "95 % intervals")])
def test_intervals_are_mentioned_only_where_they_are_drawn(seeds: int, note: str) -> None:
    assert note in seed_note(pd.DataFrame({"seed": range(seeds)}))
