"""Figures of adversaries and seed variance from small frames: the drawn values are those of the data."""

from itertools import combinations, pairwise
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.text import Annotation, Text

from plumbline.figures import style
from plumbline.figures.drawing import Drawing
from plumbline.papers.schemas import REPRODUCTION  # noqa: F401 - its table is read
from plumbline.protocols.adversary.figures import (
    COLUMNS,
    ROW_HEIGHT,
    attefa_violins,
    draw_attefa,
    label_base_seeds,
    seed_variance_figure,
    swarm_offsets,
)
from plumbline.protocols.adversary.plane import CURVE, LEVELS, ONE_SHOT, draw_plane, jsd_tvd_plane
from plumbline.store import schema_of, write_table
from plumbline.tables.sources import File, Sources

MODELS = ["bilstm-tanh", "average-tanh", "cnn-tanh", "bilstm-dot", "average-dot", "cnn-dot"]
# The columns of the table that these figures read.
RUNS = ["dataset", "model", "objective", "strength", "selected_on", "tvd", "jsd", "attefa", "status"]
STRENGTHS = (0.0, 1e-4, 5e-4, 0.001, 0.01)


def runs(
    datasets: list[str], models: int = 2, seeds: int = 6, spread: float = 0.1, splits: tuple[str, ...] = ("dev",)
) -> pd.DataFrame:
    """Scores that differ by cell; those selected on the test split are a little lower."""
    rows = [
        {"dataset": dataset, "model": model, "objective": "attefa", "strength": np.nan, "seed": seed}
        | {"selected_on": split, "tvd": 0.05, "jsd": 0.4, "status": "ok"}
        | {"attefa": (0.3 + 0.13 * (3 * i + j)) % 0.8 + spread * (seed * 7 % 5) / 5 + (0.05 if split == "dev" else 0)}
        for i, dataset in enumerate(datasets)
        for j, model in enumerate(MODELS[:models])
        for seed in range(seeds)
        for split in splits
    ]
    return pd.DataFrame(rows)


def sweep(seeds: int = 3, strengths: tuple[float, ...] = STRENGTHS) -> pd.DataFrame:
    """Adversaries whose attention, and later their output, differs more with their strength; strongest first."""
    rows = [
        {"dataset": "sst", "model": MODELS[0], "objective": "wiegreffe-pinter", "strength": strength, "seed": seed}
        | {"selected_on": "train", "jsd": 0.02 + 0.14 * i + 0.01 * seed, "tvd": 0.01 + 0.012 * i**2 + 0.002 * seed}
        | {"attefa": 0.1, "status": "ok"}
        for i, strength in enumerate(strengths)
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows[::-1])


def one_shot(seeds: int = 3) -> pd.DataFrame:
    frame = runs(["sst"], 1, seeds, splits=("test", "dev"))
    return frame.assign(jsd=np.linspace(0.55, 0.65, len(frame)), tvd=np.linspace(0.02, 0.04, len(frame)))


SEEDS = pd.DataFrame({"seed": [1, 2], "jsd": [0.11, 0.13], "tvd": [0.03, 0.05]})


def variances(count: int = 40, seeds: int = 3, classes: int = 2) -> pd.DataFrame:
    """Texts of all classes in turn; every second text of a class has its largest weight in the third bin."""
    rng = np.random.default_rng(0)
    rows = [
        {"seed": seed + 1, "split": "test", "instance": i, "predicted_class": i % classes, "base_seed": 0}
        | {"max_attention": 0.6 if i // classes % 2 else 0.1, "jsd": log(2) * rng.random(), "tvd": rng.random() / 2}
        for seed in range(seeds)
        for i in range(count)
    ]
    return pd.DataFrame(rows)


def words(figure: Figure) -> list[str]:
    legends = [text for legend in figure.legends for text in [*legend.get_texts(), legend.get_title()]]
    texts = [text for axes in figure.axes for text in axes.texts]
    return [text.get_text() for text in [*texts, *figure.texts, *legends]]


def dots(panel: Axes, colour: str, marker: str = "o", full: bool = True) -> list[np.ndarray]:
    """The coordinates [N, 2] of each set of marks of a colour."""
    lines = [line for line in panel.lines if line.get_marker() == marker and line.get_color() == colour]
    return [line.get_xydata() for line in lines if (line.get_markerfacecolor() == "white") != full]


def outlines(panel: Axes, colour: str) -> list[np.ndarray]:
    """The outlines of vertical violins of a colour, from left to right."""
    vertices = [
        shape.get_paths()[0].vertices
        for shape in panel.collections
        if isinstance(shape, PolyCollection) and shape.get_edgecolor()[0] == pytest.approx(to_rgba(colour))
    ]
    return sorted(vertices, key=lambda outline: outline[:, 0].mean())


def labels(panel: Axes) -> list[Annotation]:
    """The labels of the curve."""
    return [text for text in panel.texts if isinstance(text, Annotation) and text.get_color() == CURVE]


def assert_apart(figure: Figure, texts: list[Text]) -> None:
    """No two overlap, and all are inside the figure."""
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in texts]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0 for box in boxes)
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def assert_fits(figure: Figure) -> None:
    """Nothing is cut off at the sides, and no panel is under the legend."""
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y1 <= figure.bbox.height
    for panel in figure.axes:
        inner = panel.get_tightbbox()
        assert inner is not None and inner.x0 >= -1 and inner.x1 <= figure.bbox.width + 1 and inner.y1 <= box.y0


def test_every_seed_is_a_dot_at_its_score_and_enough_different_ones_have_a_violin() -> None:
    frame = runs(["sst", "imdb"], splits=("dev", "test"))
    (panel,) = attefa_violins(frame, None).axes
    for i, model in enumerate(MODELS[:2]):
        rows = frame[frame["model"] == model]
        for full, split in ((True, "dev"), (False, "test")):
            swarms = dots(panel, style.class_colour(i), full=full)
            assert len(swarms) == 2
            for points, dataset in zip(swarms, ("sst", "imdb"), strict=True):
                values = rows.loc[(rows["selected_on"] == split) & (rows["dataset"] == dataset), "attefa"]
                assert points[:, 1] == pytest.approx(values.to_numpy())
        violins = outlines(panel, style.class_colour(i))
        assert len(violins) == 2
        for outline, points in zip(violins, dots(panel, style.class_colour(i)), strict=True):
            assert (outline[:, 1].min(), outline[:, 1].max()) == pytest.approx((points[:, 1].min(), points[:, 1].max()))
            assert outline[:, 0].min() < points[:, 0].min() and points[:, 0].max() < outline[:, 0].max()
            mean = [line.get_ydata()[0] for line in panel.lines if line.get_color() == style.INK]
            assert any(value == pytest.approx(points[:, 1].mean()) for value in mean)


@pytest.mark.parametrize(("seeds", "spread", "count"), [(1, 0.1, 0), (2, 0.1, 0), (4, 0.1, 0), (5, 0.1, 2), (9, 0, 0)])
def test_few_seeds_and_equal_ones_are_dots_alone(seeds: int, spread: float, count: int) -> None:
    figure = attefa_violins(runs(["sst"], seeds=seeds, spread=spread), None)
    (panel,) = figure.axes
    assert len(panel.collections) == count
    assert [len(dots(panel, style.class_colour(i))[0]) for i in range(2)] == [seeds] * 2
    assert ("mean" in words(figure)) == (seeds > 1)


def test_dots_of_a_swarm_do_not_hide_each_other() -> None:
    rng = np.random.default_rng(0)
    for values in (np.full(9, 0.3), np.full(2, 1.0), rng.normal(0.5, 0.05, 9), np.array([0.2, 0.9]), np.array([0.1])):
        for width in (0.03, 0.08):
            offsets = swarm_offsets(values, width, 0.04)
            assert abs(offsets).max() <= max(width - 0.02, 0.01) and offsets.shape == values.shape
            dots = np.stack([offsets, ROW_HEIGHT * values], axis=1)
            assert all(np.hypot(*(a - b)) > 0.001 for a, b in combinations(dots, 2))
    assert swarm_offsets(np.array([0.2, 0.9]), 0.08, 0.04).tolist() == [0, 0], "they do not overlap"
    assert swarm_offsets(np.full(2, 0.5), 0.08, 0.04) == pytest.approx([-0.02, 0.02])


def test_published_values_are_next_to_ours() -> None:
    frame = runs(["sst", "imdb"])
    values = [("sst", MODELS[0], 0.4, 0.1), ("imdb", MODELS[1], 0.9, np.nan), ("other", MODELS[0], 0.5, 0.1)]
    published = pd.DataFrame(values, columns=["dataset", "model", "value", "std"])
    figure = attefa_violins(frame, published)
    (panel,) = figure.axes
    marks = [line.get_xydata()[0] for line in panel.lines if line.get_marker() == "D"]
    assert [point[1] for point in marks] == [0.4, 0.9]
    # Left of the seeds of the same dataset and model.
    seeds = dots(panel, style.class_colour(0))[0], dots(panel, style.class_colour(1))[1]
    assert all(0 < swarm[:, 0].min() - point[0] < 0.4 for point, swarm in zip(marks, seeds, strict=True))
    (bar, _) = [shape.get_segments() for shape in panel.collections if not isinstance(shape, PolyCollection)]
    assert bar[0][:, 1] == pytest.approx([0.3, 0.5])
    published = "published mean ± standard deviation"
    assert published in words(figure) and published not in words(attefa_violins(frame, None))


def test_the_legend_explains_the_direction_and_all_marks() -> None:
    figure = attefa_violins(runs(["sst", "imdb", "adr"], 6, splits=("dev", "test")), None)
    assert figure.legends[0].get_title().get_text() == "0: other attention gives the same output, 1: it does not"
    assert {*MODELS, "mean", "a seed, epoch chosen on dev", "a seed, epoch chosen on test"} <= set(words(figure))
    assert figure.axes[0].get_ylabel() == "AtteFa"
    assert "1: it does not" in words(attefa_violins(runs(["sst"]), None))[-1].split("\n")


def test_only_trained_adversaries_of_attefa_are_drawn() -> None:
    frame = runs(["sst", "imdb", "adr"])
    frame.loc[frame["dataset"] == "imdb", "status"] = "skipped"
    frame.loc[(frame["dataset"] == "adr") & (frame["model"] == MODELS[0]), "attefa"] = np.nan
    (panel,) = attefa_violins(pd.concat([sweep(), frame]), None).axes
    assert [label.get_text() for label in panel.get_xticklabels()] == ["sst", "adr"]
    assert [len(dots(panel, style.class_colour(i))) for i in range(2)] == [1, 2]


NAMES = ["sst", "imdb", "agnews", "newsgroups", "adr", "mimic-anaemia", "mimic-diabetes", "babi-1", "babi-2", "babi-3"]
NAMES += ["cnn", "snli", "mock-10", "a-rather-long-name-of-a-dataset_that_$nobody$_would_choose"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("count", "models"), [(14, 2), (1, 6), (14, 6), (2, 1), (5, 3)])
def test_datasets_keep_their_order_and_their_names_do_not_overlap(count: int, models: int) -> None:
    names = NAMES[::-1][:count]
    frame = runs(names, models, 9, splits=("dev", "test"))
    published = frame.rename(columns={"attefa": "value"}).assign(std=0.05).drop_duplicates(["dataset", "model"])
    figure = attefa_violins(frame, published)
    ticks = [label for panel in figure.axes for label in panel.get_xticklabels()]
    assert ["".join(label.get_text().split()) for label in ticks] == names
    assert_apart(figure, ticks)
    assert_fits(figure)
    for panel in figure.axes:
        sets = [dots(panel, style.class_colour(i), full=full) for i in range(models) for full in (True, False)]
        assert {len(swarms) for swarms in sets} == {len(panel.get_xticklabels())}
        # From left to right: each dataset, its models, the dev and then the test split.
        in_order = [swarms[i] for i in range(len(sets[0])) for swarms in sets]
        assert all(left[:, 0].max() < right[:, 0].min() for left, right in pairwise(in_order))


def test_the_curve_joins_the_means_in_order_of_strength() -> None:
    frame = pd.concat([one_shot(), sweep()])
    figure = jsd_tvd_plane(frame, SEEDS, "t")
    (panel,) = figure.axes
    (curve,) = [line for line in panel.lines if line.get_color() == CURVE and line.get_linestyle() == "-"]
    means = sweep().groupby("strength")[["jsd", "tvd"]].mean().sort_index()
    assert curve.get_xydata() == pytest.approx(means.to_numpy())
    singles = [line for line in panel.lines if line.get_color() == CURVE and line.get_alpha()]
    assert singles[0].get_xydata() == pytest.approx(sweep()[["jsd", "tvd"]].to_numpy())
    assert [label.get_text() for label in labels(panel)] == ["λ = 0", "0.0001", "0.0005", "0.001", "0.01"]
    assert np.array([label.xy for label in labels(panel)]) == pytest.approx(means.to_numpy())
    # AtteFa's adversaries with epochs chosen on the dev split.
    chosen = one_shot().query("selected_on == 'dev'")[["jsd", "tvd"]]
    seeds, mean = dots(panel, ONE_SHOT, "*")
    assert seeds == pytest.approx(chosen.to_numpy()) and mean[0] == pytest.approx(chosen.mean().to_numpy())
    assert dots(panel, style.FAINT, "x")[0] == pytest.approx(SEEDS[["jsd", "tvd"]].to_numpy())
    legend = {"adversaries, by λ", "AtteFa's adversary", "single seeds", "base model, other seeds", "equal AtteFa", "t"}
    assert legend <= set(words(figure))


def test_lines_of_equal_attefa_are_labelled_at_the_border() -> None:
    for most, top in ((0.01, 0.1), (0.12, 0.15), (0.48, 0.5)):
        figure = jsd_tvd_plane(one_shot().assign(tvd=most), None, "t")
        (panel,) = figure.axes
        assert panel.get_ylim() == (0, top)
        lines = [
            line.get_xydata() for line in panel.lines if len(line.get_xydata()) == 2 and not line.get_xydata()[0].any()
        ]
        assert [(end[1] / 0.5) / (end[0] / log(2)) for _, end in lines] == pytest.approx(LEVELS)
        assert all(end[0] == pytest.approx(log(2)) or end[1] == pytest.approx(top) for _, end in lines)
        assert [text.get_text() for text in panel.texts] == [".1", ".25", ".5", ".75", "1"]
        assert "ln 2" in [label.get_text() for label in panel.get_xticklabels()]
        assert_apart(figure, panel.texts)
        assert_fits(figure)


def test_labels_of_the_curve_are_inside_and_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    many = tuple(0.001 * 2**i for i in range(12))
    frames = [sweep(), sweep(strengths=many).assign(jsd=rng.uniform(0, 0.69, 36), tvd=rng.uniform(0, 0.5, 36))]
    frames += [sweep(strengths=many).assign(jsd=rng.uniform(0, 0.1, 36), tvd=rng.uniform(0, 0.02, 36))]
    frames += [sweep(1).assign(jsd=log(2), tvd=np.linspace(0, 0.5, 5)), sweep(1).assign(tvd=0.0)]
    for frame in frames:
        figure = jsd_tvd_plane(pd.concat([frame, one_shot()]), SEEDS, "t")
        (panel,) = figure.axes
        assert_apart(figure, panel.texts)
        assert_fits(figure)
        for label in labels(panel):
            box = Text.get_window_extent(label)
            assert panel.bbox.x0 <= box.x0 and box.x1 <= panel.bbox.x1
            assert panel.bbox.y0 <= box.y0 + 1 and box.y1 <= panel.bbox.y1 + 1


def test_coinciding_points_share_a_label() -> None:
    frame = sweep(1).sort_values("strength").assign(jsd=[0.1, 0.101, 0.102, 0.5, 0.6], tvd=0.05)
    (panel,) = jsd_tvd_plane(frame, None, "t").axes
    assert [label.get_text() for label in labels(panel)] == ["λ = 0, 0.0001, 0.0005", "0.001", "0.01"]
    assert labels(panel)[0].xy == pytest.approx((0.101, 0.05))


@pytest.mark.filterwarnings("error")
def test_a_plane_can_lack_curve_star_or_seeds(tmp_path: Path) -> None:
    empty = sweep().iloc[:0]
    for frame, seeds, legend in (
        (sweep(1), None, {"adversaries, by λ"}),
        (sweep(1, (0.5,)), None, {"adversaries, by λ"}),
        (one_shot(1), None, {"AtteFa's adversary"}),
        (one_shot(2), SEEDS, {"AtteFa's adversary", "single seeds", "base model, other seeds"}),
        (empty, SEEDS, {"base model, other seeds"}),
    ):
        figure = jsd_tvd_plane(frame, seeds, "t")
        style.save(figure, tmp_path / "figure.png")
        assert_fits(figure)
        assert {text.get_text() for text in figure.legends[0].get_texts()} == {*legend, "equal AtteFa"}
        # The panel's tick labels start at the left edge.
        box = figure.axes[0].get_tightbbox()
        assert box is not None and box.x0 < 0.03 * figure.bbox.width
    for frame in (empty, sweep().assign(status="skipped"), sweep().assign(tvd=np.nan)):
        assert "t: no adversary was trained." in words(jsd_tvd_plane(frame, None, "t"))
        assert "AtteFa: no adversary was trained." in words(attefa_violins(frame, None))


def bins(panel: Axes, colour: str) -> list[np.ndarray]:
    """The outlines of horizontal violins of a colour, from top to bottom."""
    shapes = [patch for patch in panel.patches if isinstance(patch, Polygon)]
    polygons = [shape.get_xy() for shape in shapes if shape.get_facecolor()[:3] == pytest.approx(to_rgba(colour)[:3])]
    return sorted(polygons, key=lambda outline: outline[:, 1].mean())


def test_seeds_are_averaged_for_each_text() -> None:
    frame = variances()
    figure = seed_variance_figure(frame, ["negative", "positive"], "t")
    left, right = figure.axes
    texts = frame.groupby("instance").agg(
        {"predicted_class": "first", "max_attention": "first", "jsd": "median", "tvd": "mean"}
    )
    for number in range(2):
        of_class = texts[texts["predicted_class"] == number]
        violins = bins(left, style.class_colour(number))
        assert len(violins) == 2
        for outline, largest in zip(violins, (0.1, 0.6), strict=True):
            values = of_class.loc[of_class["max_attention"] == largest, "jsd"]
            assert (outline[:, 0].min(), outline[:, 0].max()) == pytest.approx((values.min(), values.max()))
    (cloud,) = right.collections
    drawn = {(round(float(x), 6), round(float(y), 6)): tuple(colour) for (x, y), colour in
             zip(cloud.get_offsets(), cloud.get_facecolor(), strict=True)}  # fmt: skip
    expected = {
        (round(jsd, 6), round(2 * tvd, 6)): to_rgba(style.class_colour(int(number)), 0.7)
        for number, _, jsd, tvd in texts.itertuples(index=False)
    }
    assert drawn == expected
    assert right.get_ylim() == (0, 1)
    assert [text.get_text() for text in left.texts] == ["10", "10", "0", "0", "10", "10", "0", "0", "texts"]
    assert {"negative", "positive", "median", "quartiles", "t"} <= set(words(figure))
    assert {panel.get_xlabel() for panel in figure.axes} == {"median JSD to 3 other seeds"}


@pytest.mark.filterwarnings("error")
def test_few_and_many_texts_seeds_and_classes_are_drawn(tmp_path: Path) -> None:
    for frame in (variances(4), variances(1), variances(60, 1, 3), variances(2000, 2, 40), variances().assign(jsd=0.0)):
        figure = seed_variance_figure(frame, [], "t")
        style.save(figure, tmp_path / "figure.png")
        assert_fits(figure)
        (cloud,) = figure.axes[1].collections
        texts = frame["instance"].nunique()
        assert len(cloud.get_offsets()) == texts and cloud.get_rasterized() == (texts > 500)
        assert ("all classes" in words(figure)) == (frame["predicted_class"].nunique() > 3)
    assert "JSD to another seed" in seed_variance_figure(variances(seeds=1), [], "t").axes[0].get_xlabel()
    for frame in (variances().iloc[:0], variances().assign(jsd=np.nan)):
        assert "t: no text was scored." in words(seed_variance_figure(frame, [], "t"))


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    for kind in ("svg", "pdf"):
        for name in ("first", "second"):
            style.save(attefa_violins(runs(["sst"]), None), tmp_path / f"violins-{name}.{kind}")
            style.save(jsd_tvd_plane(sweep(), SEEDS, "t"), tmp_path / f"plane-{name}.{kind}")
            style.save(seed_variance_figure(variances(600), [], "t"), tmp_path / f"seeds-{name}.{kind}")
        for figure in ("violins", "plane", "seeds"):
            first, second = ((tmp_path / f"{figure}-{name}.{kind}").read_bytes() for name in ("first", "second"))
            assert first == second and len(first) < 150_000


def test_only_columns_of_the_tables_are_read_in_their_order() -> None:
    for columns, table in ((RUNS, "adversary"), (COLUMNS, "seed_variance_scores")):
        assert [name for name in schema_of(table).schema.names if name in columns] == columns
    # Strings are categories in the tables.
    frame = pd.concat([one_shot(), sweep()])[RUNS]
    frame = frame.astype(dict.fromkeys(["dataset", "model", "objective", "selected_on", "status"], "category"))
    (panel,) = attefa_violins(frame, None).axes
    assert [len(dots(panel, style.class_colour(0), full=full)[0]) for full in (True, False)] == [3, 3]
    assert len(labels(jsd_tvd_plane(frame, None, "t").axes[0])) == len(STRENGTHS)
    assert seed_variance_figure(variances()[COLUMNS].astype({"split": "category"}), [], "t").axes[1].collections


def of_two_base_seeds() -> pd.DataFrame:
    """Adversaries of two base seeds of one model with distant scores, and those of one base seed of another model."""
    first = runs(["sst"], 2, 3, spread=0.02).assign(base_seed=0)
    second = first[first["model"] == MODELS[0]].assign(base_seed=7, attefa=first["attefa"] + 0.5, jsd=0.6)
    return pd.concat([first, second], ignore_index=True)


def test_adversaries_of_several_base_seeds_are_separate_models() -> None:
    frame = of_two_base_seeds()
    labelled = label_base_seeds(frame)
    assert labelled["model"].unique().tolist() == [f"{MODELS[0]}, seed 0", MODELS[1], f"{MODELS[0]}, seed 7"]
    (panel,) = attefa_violins(labelled, None).axes
    for i, rows in enumerate([frame.iloc[:3], frame.iloc[3:6], frame.iloc[6:]]):
        (points,) = dots(panel, style.class_colour(i))
        assert points[:, 1] == pytest.approx(rows["attefa"].to_numpy())
    means = [line.get_ydata()[0] for line in panel.lines if line.get_color() == style.INK]
    mixed = frame[frame["model"] == MODELS[0]]["attefa"].mean()
    assert len(means) == 3 and min(abs(mean - mixed) for mean in means) > 0.1
    single = frame[frame["base_seed"] == 0]
    assert label_base_seeds(single)["model"].tolist() == single["model"].tolist()


def test_declared_figures_draw_one_base_seed_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = of_two_base_seeds().assign(variant="plain", adversary="attefa")
    other = {"seed": [1, 2], "base_seed": [0, 7], "jsd_mean": [0.1, 0.5], "tvd_mean": [0.02, 0.3]}
    seeds = pd.DataFrame(other).assign(dataset="sst", variant="plain", model=MODELS[0], max_attention_bin="all")
    seeds = seeds.assign(n=9, status="ok")
    tables = {"adversary": frame, "seed_variance": seeds, "reproduction": pd.DataFrame()}
    for name, table in tables.items():
        kind = schema_of(name)
        write_table(f"{name}.parquet", kind, {key: list(table.get(key, [None] * len(table))) for key in kind.columns})
    files = {name: [File({}, f"{name}.parquet")] for name in tables}
    sources = Sources(files, {"order": ["sst", *MODELS]})
    names = {f"{MODELS[0]}, seed 0", f"{MODELS[0]}, seed 7", MODELS[1]}
    assert names <= set(words(draw_attefa(Drawing(sources))))
    several, single = (draw_plane(Drawing(sources, "sst", model)) for model in MODELS[:2])
    assert f"sst, {MODELS[0]}, seed 0" in words(several) and f"sst, {MODELS[1]}" in words(single)
    stars = np.concatenate(dots(several.axes[0], ONE_SHOT, "*"))
    assert stars[:, 0] == pytest.approx(np.full(len(stars), 0.4)), "those of seed 7 are at 0.6"
    (chance,) = dots(several.axes[0], style.FAINT, "x")
    assert chance.tolist() == [[0.1, 0.02]]
