"""Figures of permuted and adversarial attention from small synthetic frames: what is drawn equals the data."""

from itertools import combinations, pairwise
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Polygon

from plumbline.data.schemas import INSTANCES
from plumbline.figures import style
from plumbline.protocols.attention.adversarial_texts import (
    EDGE,
    LABELS,
    MOST_WORDS,
    WEIGHTS,
    WORDS,
    AttackedText,
    adversarial_texts,
    choose_texts,
    read_texts,
    window,
    wrap_words,
)
from plumbline.protocols.attention.bins import BINS
from plumbline.protocols.attention.figures import (
    CHANGES,
    DIVERGENCES,
    jsd_histogram,
    jsd_violins,
    percent,
    permutation_violins,
)
from plumbline.protocols.attention.schemas import ADVERSARIES, PERMUTATION_SCORES
from plumbline.protocols.attention.violins import density
from plumbline.store import read_table, write_table

CLASSES = ["negative", "positive"]


def rows(count: int = 40, classes: int = 2, seeds: int = 1, largest: float = 0.1) -> pd.DataFrame:
    """Texts of all classes in turn; every second one of a class has its largest weight in the third bin."""
    texts = [
        {"seed": seed, "split": "test", "instance": i, "predicted_class": i % classes, "length": 6}
        | {"max_attention": 0.6 if i // classes % 2 else largest, "median_change": (i * 37 % count) / count}
        for seed in range(seeds)
        for i in range(count)
    ]
    return pd.DataFrame(texts)


def divergences(count: int = 40, epsilons: tuple[float, ...] = (0.01, 0.05), **options: int) -> pd.DataFrame:
    """As `rows`, with a divergence; the first quarter of the texts has no adversary at the smaller epsilon."""
    frame = rows(count, **options).rename(columns={"median_change": "jsd"})
    frame["jsd"] *= log(2)
    parts = [frame.assign(epsilon=epsilon, feasible=3) for epsilon in epsilons]
    parts[0].loc[parts[0]["instance"] < count // 4, ["jsd", "feasible"]] = 0
    return pd.concat(parts, ignore_index=True)


def violins(panel: Axes, colour: str) -> list[np.ndarray]:
    """The outlines of a colour, from top to bottom."""
    found = [
        patch.get_xy()
        for patch in panel.patches
        if isinstance(patch, Polygon) and patch.get_facecolor()[:3] == pytest.approx(to_rgba(colour)[:3])
    ]
    return sorted(found, key=lambda outline: outline[:, 1].mean())


def quartile_lines(panel: Axes) -> list[tuple[float, float]]:
    """The position and the middle height of each quartile line."""
    lines = [line for line in panel.lines if line.get_color() == style.INK and len(line.get_xdata()) == 2]
    return [(float(line.get_xdata()[0]), float(np.mean(line.get_ydata()))) for line in lines]


def words(figure: Figure) -> list[str]:
    legends = [text for legend in figure.legends for text in [*legend.get_texts(), legend.get_title()]]
    texts = [text for axes in figure.axes for text in axes.texts]
    return [text.get_text() for text in [*texts, *figure.texts, *legends]]


def test_a_violin_ends_where_its_texts_end_and_shows_their_quartiles() -> None:
    frame = rows()
    panel = permutation_violins(frame, CLASSES, "t").axes[0]
    for number in range(2):
        of_class = frame[frame["predicted_class"] == number]
        outlines = violins(panel, style.class_colour(number))
        assert len(outlines) == 2
        for outline, largest, middle in zip(outlines, (0.1, 0.6), (0, 2), strict=True):
            values = of_class.loc[of_class["max_attention"] == largest, "median_change"]
            assert (outline[:, 0].min(), outline[:, 0].max()) == pytest.approx((values.min(), values.max()))
            # The first class above the line of its bin, the second below it.
            side = outline[:, 1] - middle
            assert (side < 0).all() if number == 0 else (side > 0).all()
            assert abs(side).max() < 0.5
            drawn = [x for x, y in quartile_lines(panel) if (y < middle) == (number == 0) and abs(y - middle) < 0.5]
            assert drawn == pytest.approx(np.quantile(values, [0.25, 0.5, 0.75]))


def test_a_density_ends_at_its_values_and_is_reflected_at_the_bounds() -> None:
    rng = np.random.default_rng(0)
    values = np.abs(rng.normal(0, 0.1, 4000))
    x, width = density(values, (0, 1))
    assert x[0] == values.min() and x[-1] == values.max()
    assert width.max() == 1 and (width >= 0).all()
    # Half a Gaussian: its maximum is at 0, not next to it.
    assert width[0] > 0.9 and np.interp(0.1, x, width) == pytest.approx(np.exp(-0.5), abs=0.08)


def test_each_bin_shows_its_number_of_texts() -> None:
    figure = permutation_violins(rows(seeds=2), CLASSES, "t")
    panel = figure.axes[0]
    assert [label.get_text() for label in panel.get_yticklabels()] == list(BINS)
    assert [text.get_text() for text in panel.texts] == ["20", "20", "0", "0", "20", "20", "0", "0", "texts\n× seeds"]
    assert permutation_violins(rows(), CLASSES, "t").axes[0].texts[-1].get_text() == "texts"


def test_few_texts_are_drawn_as_points() -> None:
    frame = rows(8)
    figure = permutation_violins(frame, CLASSES, "t")
    points = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert not figure.axes[0].patches and sum(len(line.get_xdata()) for line in points) == 8
    assert sorted(x for line in points for x in line.get_xdata()) == sorted(frame["median_change"])
    assert "single texts" in words(figure) and "single texts" not in words(permutation_violins(rows(), CLASSES, "t"))
    # A text with two epsilons counts once.
    assert "single texts" in words(jsd_violins(divergences(8), CLASSES, "t"))


def test_equal_values_are_drawn_as_a_line() -> None:
    panel = permutation_violins(rows().assign(median_change=0.0), CLASSES, "t").axes[0]
    assert not panel.patches
    colours = [style.class_colour(number) for number in range(2)]
    lines = [line for line in panel.lines if line.get_color() in colours]
    assert len(lines) == 4 and all(set(line.get_xdata()) == {0.0} for line in lines)


def test_the_axis_of_changes_covers_all_values() -> None:
    for most, end in ((0.02, 0.25), (0.3, 0.5), (0.6, 0.75), (1.0, 1.0)):
        frame = rows().assign(median_change=np.linspace(0, most, 40))
        assert permutation_violins(frame, CLASSES, "t").axes[0].get_xlim() == (0, end)


@pytest.mark.parametrize("classes", [1, 3])
def test_three_classes_have_violins_of_their_own(classes: int) -> None:
    names = ["entailment", "neutral", "contradiction"]
    figure = permutation_violins(rows(60, classes), names, "t")
    outlines = [violins(figure.axes[0], style.class_colour(number)) for number in range(classes)]
    assert [len(of_class) for of_class in outlines] == [2] * classes
    spans = sorted((o[:, 1].min(), o[:, 1].max()) for of_class in outlines for o in of_class)
    assert all(upper[1] < lower[0] for upper, lower in pairwise(spans)), "violins do not overlap"
    assert set(names[:classes]) <= set(words(figure))


def test_many_classes_are_drawn_together() -> None:
    names = [f"answer {i}" for i in range(40)]
    for figure in (
        permutation_violins(rows(400, 40), names, "t"),
        jsd_violins(divergences(400, classes=40), names, "t"),
    ):
        assert len(violins(figure.axes[0], style.BAR)) == 2 and "all classes" in words(figure)
    # Only two of forty classes are predicted, whose numbers would have the same colour.
    frame = rows().assign(predicted_class=lambda frame: 1 + 6 * frame["predicted_class"])
    panel = permutation_violins(frame, names, "t").axes[0]
    assert [len(violins(panel, style.class_colour(i))) for i in range(2)] == [2, 2]


def bars(panel: Axes, colour: str) -> dict[float, float]:
    """The height of each bar of a colour by its left edge."""
    (shape,) = [
        patch
        for patch in panel.patches
        if isinstance(patch, PathPatch) and patch.get_facecolor()[:3] == pytest.approx(to_rgba(colour)[:3])
    ]
    corners = shape.get_path().vertices.reshape(-1, 5, 2)
    return {round(float(bar[:, 0].min()), 4): float(bar[:, 1].max()) for bar in corners}


def test_histograms_of_divergence_sum_to_one_and_equal_numpy() -> None:
    frame = divergences()
    figure = jsd_histogram(frame, CLASSES, "t")
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["ε = 0.01", "ε = 0.05"]
    for panel, epsilon in zip(figure.axes, (0.01, 0.05), strict=True):
        for number in range(2):
            values = frame.loc[(frame["epsilon"] == epsilon) & (frame["predicted_class"] == number), "jsd"]
            drawn = bars(panel, style.class_colour(number))
            counts, edges = np.histogram(values, 40, (0, 0.7))
            assert drawn == pytest.approx(
                {round(float(a), 4): n / 20 for a, n in zip(edges, counts, strict=False) if n}
            )
            assert sum(drawn.values()) == pytest.approx(1)
            alphas = {patch.get_alpha() for patch in panel.patches}
            assert alphas == {0.6}


def test_histograms_mark_the_maximum_the_means_and_the_feasible_share() -> None:
    frame = divergences(seeds=2)
    figure = jsd_histogram(frame, CLASSES, "t")
    assert [panel.get_title(loc="right") for panel in figure.axes] == ["75 % feasible", "100 % feasible"]
    panel = figure.axes[0]
    assert "ln 2" in [label.get_text() for label in panel.get_xticklabels()]
    assert any(set(np.atleast_1d(line.get_xdata())) == {log(2)} for line in panel.lines)
    marked = sorted(float(line.get_xdata()[0]) for line in panel.lines if line.get_marker() == "v")
    here = frame[frame["epsilon"] == 0.01]
    assert marked == pytest.approx(sorted(here.groupby("predicted_class")["jsd"].mean()))
    assert "mean of each of 2 seeds" in words(figure)


def test_only_exact_shares_are_0_or_100_percent() -> None:
    assert [percent(share) for share in (0, 0.001, 0.5, 0.999, 1)] == ["0 %", "< 1 %", "50 %", "> 99 %", "100 %"]


def test_divergences_have_a_panel_for_each_epsilon() -> None:
    for count in (1, 2, 4):
        figure = jsd_violins(divergences(epsilons=tuple(0.01 * (i + 1) for i in range(count))), CLASSES, "t")
        assert [panel.get_visible() for panel in figure.axes].count(True) == count
        assert [violins(panel, style.class_colour(1)) != [] for panel in figure.axes[:count]] == [True] * count
        # The texts are the same in each panel, so their number is shown once.
        assert [len(panel.texts) for panel in figure.axes[:count]] == [0] * (count - 1) + [9]


def test_empty_frames_and_undefined_values_give_a_message() -> None:
    nothing = "t: no text was scored."
    assert nothing in words(permutation_violins(rows().iloc[:0], CLASSES, "t"))
    for draw in (jsd_histogram, jsd_violins):
        assert nothing in words(draw(divergences().iloc[:0], CLASSES, "t"))
        assert nothing in words(draw(divergences().assign(jsd=np.nan), CLASSES, "t"))
        draw(divergences().assign(jsd=0.0, feasible=0), CLASSES, "t")
    assert "t:\nno text has an adversary that changes\nthe output by 0.01 or less." in words(
        adversarial_texts([], "t", 0.01)
    )


@pytest.mark.filterwarnings("error")
def test_everything_drawn_is_inside_the_figure(tmp_path: Path) -> None:
    frames = [rows(4), rows(seeds=3), rows(60, 3), rows(largest=1.0), rows(1)]
    for frame in frames:
        both = pd.concat(
            [frame.rename(columns={"median_change": "jsd"}).assign(epsilon=e, feasible=1) for e in (0.01, 0.05)]
        )
        figures = [permutation_violins(frame, ["a rather long name of a class", "b", "c"], "t")]
        figures += [
            draw(both, ["a rather long name of a class", "b", "c"], "t") for draw in (jsd_histogram, jsd_violins)
        ]
        for figure in figures:
            style.save(figure, tmp_path / "figure.png")
            for panel in figure.axes:
                box = panel.get_tightbbox()
                assert box is not None and box.x0 >= -1 and box.x1 <= figure.bbox.width + 1


def test_names_of_classes_are_not_parsed_as_formulas(tmp_path: Path) -> None:
    figure = permutation_violins(rows(), ["$x", "\\frac$"], "t")
    style.save(figure, tmp_path / "figure.svg")
    assert {"$x", "\\frac$"} <= set(words(figure))


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        style.save(jsd_violins(divergences(), CLASSES, "t"), tmp_path / f"{name}.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "one.svg").stat().st_size < 100_000


def test_chosen_texts_are_feasible_distinct_and_readable() -> None:
    frame = divergences(seeds=2).assign(length=lambda frame: 6 + frame["instance"])
    frame.loc[frame["instance"] == 10, "length"] = 300
    chosen = choose_texts(frame)
    assert len(chosen) == 4 and chosen["instance"].is_unique
    assert set(chosen["epsilon"]) == {0.01} and (chosen["feasible"] > 0).all() and (chosen["length"] < 31).all()
    assert chosen["length"].is_monotonic_increasing
    assert sorted(chosen["predicted_class"]) == [0, 0, 1, 1]
    readable = frame[(frame["epsilon"] == 0.01) & (frame["feasible"] > 0) & (frame["length"] < 31)]
    best = readable.drop_duplicates("instance").groupby("predicted_class")["jsd"].nlargest(2)
    assert sorted(chosen["jsd"]) == pytest.approx(sorted(best))
    assert choose_texts(frame.assign(feasible=0)).empty
    # Long texts are chosen if there are no others.
    assert len(choose_texts(frame.assign(length=500))) == 4


def test_long_texts_are_truncated_around_their_largest_weights() -> None:
    assert window(np.ones(MOST_WORDS)) == list(range(MOST_WORDS))
    weights = np.zeros(500)
    weights[[3, 250]] = 1, 2
    indices = window(weights)
    kept = [i for i in indices if i is not None]
    assert {0, 3, 6, 247, 250, 253} <= set(kept) and kept == sorted(set(kept)) and len(kept) <= MOST_WORDS
    # None marks exactly the gaps.
    for i, following in pairwise([-1, *indices, 500]):
        assert i is None or following is None or following == i + 1
    assert indices[-1] is None and indices[0] == 0


def test_words_wrap() -> None:
    widths = [30, 30, 30, 500, 10, 10]
    lines = list(wrap_words(widths, 5, 99))
    assert lines == [[0, 1], [2], [3], [4, 5]]
    assert list(wrap_words([], 5, 100)) == []


def text(words: list[str], heavy: int, other: int, second: list[str] | None = None) -> AttackedText:
    attention, adversary = np.full(len(words), 0.01), np.full(len(words), 0.01)
    attention[heavy], adversary[other] = 1, 1
    return AttackedText(
        "test 7, seed 0", words, second or [], attention, adversary, "positive", 0.9, 0.895, 0.005, 0.61
    )


HOSTILE = ["$x^2$", "\\frac{1}{2}", "<b>", "&amp;", "a\nb", "100%", "_", "http://" + "x" * 90, "$"]


def test_words_are_written_literally_twice_and_do_not_overlap() -> None:
    long = [f"word{i}" for i in range(30)]
    figure = adversarial_texts(
        [text(HOSTILE, 0, 1, ["where", "is", "$she$", "?"]), text(long, 3, 20)], "sst, $model$", 0.01, "question"
    )
    (sheet,) = figure.axes
    written = [each.get_text() for each in sheet.texts]
    for word in ("$x^2$", "\\frac{1}{2}", "<b>", "&amp;", "a·b", "100%", "_", "$", *long):
        assert written.count(word) == 2
    assert written.count("$she$") == 1 and written.count("question") == 1
    assert not any(each.get_parse_math() for each in sheet.texts)
    assert "positive 0.900 → 0.895" in written and "change in output 0.005,  JSD 0.61" in written
    figure.draw_without_rendering()
    boxes = [each.get_window_extent() for each in sheet.texts]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0 for box in boxes)
    for a, b in combinations(boxes, 2):
        assert not (a.x0 < b.x1 - 1 and b.x0 < a.x1 - 1 and a.y0 < b.y1 - 1 and b.y0 < a.y1 - 1)


def test_words_with_large_weights_are_shaded() -> None:
    (sheet,) = adversarial_texts([text(["some", "plain", "words"], 0, 2)], "t", 0.01).axes
    darkest: dict[str, tuple[float, float]] = {}
    for patch in sheet.patches:
        red, _, blue, _ = patch.get_facecolor()
        name = "attention" if blue > red else "adversary"
        darkness = 1 - min(patch.get_facecolor()[:3])
        if darkness > darkest.get(name, (0, 0))[0]:
            darkest[name] = (darkness, patch.get_path().vertices[:, 0].min())
    # The first word under the attention, the last one under the adversary.
    assert darkest["attention"][1] == pytest.approx(EDGE + LABELS - 1.2)
    last = next(each for each in sheet.texts if each.get_text() == "words")
    assert darkest["adversary"][1] == pytest.approx(last.get_position()[0] - 1.2)


def test_a_changed_prediction_is_shown() -> None:
    changed = AttackedText("n", ["w"], [], np.ones(1), np.ones(1), "a", 0.51, 0.49, 0.02, 0.1, then="b")
    assert "a 0.510 → 0.490 (now b)" in words(adversarial_texts([changed], "t", 0.05))


def test_only_the_chosen_texts_are_read_from_the_tables(tmp_path: Path) -> None:
    frame = divergences(12)
    lists = {"attention": [0.5, 0.3, 0.2], "adversary": [0.1, 0.1, 0.8]}
    lists |= {"probabilities": [0.2, 0.8], "adversary_probabilities": [0.21, 0.79]}
    columns = frame.to_dict("list") | {"change": [0.01] * len(frame), "length": [3] * len(frame)}
    columns |= {name: [value] * len(frame) for name, value in lists.items()}
    write_table(tmp_path / "scores.parquet", ADVERSARIES, columns)
    without_weights = read_table(tmp_path / "scores.parquet", ADVERSARIES, DIVERGENCES).to_pandas()
    chosen = choose_texts(without_weights, 2)
    instances = [
        {
            "split": "test",
            "instance": i,
            "label": 0,
            "tokens": ["<sos>", f"a{i}", "b", "c", "<eos>"],
            "ids": [2, 5, 6, 7, 3],
        }
        | {"maskable": [False, True, True, True, False], "tokens_b": ["<sos>", "who", "<eos>"]}
        for i in range(12)
    ]
    table = pa.Table.from_pylist(instances, INSTANCES.schema).select(WORDS)
    texts = read_texts(chosen, [read_table(tmp_path / "scores.parquet", ADVERSARIES, WEIGHTS)], table, CLASSES)
    assert [each.words for each in texts] == [[f"a{i}", "b", "c"] for i in chosen["instance"]]
    assert texts[0].second == ["who"] and texts[0].predicted == "positive" and not texts[0].then
    assert texts[0].adversary.tolist() == pytest.approx([0.1, 0.1, 0.8]) and texts[0].after == pytest.approx(0.79)
    assert texts[0].name == f"test {chosen['instance'].iloc[0]}, seed 0"
    # Only the columns that a figure needs, in the order of the table.
    names = PERMUTATION_SCORES.schema.names
    assert [name for name in names if name in CHANGES] == CHANGES
