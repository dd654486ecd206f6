"""Masking and retraining on the page: its tables, its masked texts, and a page without any of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.unit.test_report import HOSTILE, SVG, Elements, instances, opened, summary, table

from plumbline.report import roar
from plumbline.report.build import Content, page
from plumbline.report.inputs import read_masks
from plumbline.report.masked import MOST_TOKENS, collect_masked
from plumbline.report.pictures import KINDS, picture
from plumbline.store import write_table

CURVE = {"dataset": "sst", "model": "bilstm", "strategy": "recursive", "unit": "relative", "measure": "attention"}
MEASURES = ["attention", "gradient", "random"]
LEVELS = (10, 50, 100)


def faithfulness_frame() -> pd.DataFrame:
    line = CURVE | {"metric": "macro_f1", "n_seeds": 5, "n_levels": 11, "status": "ok", "floor": 0.36}
    line |= {"faithfulness": 0.3, "ci_low": 0.2, "ci_high": 0.34, "floor_ci_low": 0.35, "floor_ci_high": 0.38}
    line |= {"unclipped": 0.3, "unclipped_ci_low": 0.2, "unclipped_ci_high": 0.34}
    below = {"faithfulness": -1.0, "ci_low": -1.0, "ci_high": -0.9, "unclipped": -1.4, "unclipped_ci_low": -1.9}
    lost = dict.fromkeys(["faithfulness", "ci_low", "ci_high", "unclipped", "unclipped_ci_low", "unclipped_ci_high"])
    lost |= {"measure": "random-<b>", "status": "undefined", "reason": "no <seed> has a floor", "n_seeds": 0}
    single = {"ci_low": None, "ci_high": None, "n_seeds": 1, "strategy": "roar"}
    rows = [line, line | below | {"measure": "gradient"}, line | lost, line | single]
    return table("faithfulness", rows).to_pandas()


def roar_frame(leakage: bool = True) -> pd.DataFrame:
    """Two seeds; the masks of attention tell most at 50 %, by .2 and .3 above chance."""
    rows = [
        CURVE
        | {"measure": measure, "level": level, "trained_on": seen, "variant": "v", "seed": seed, "metric": metric}
        | {"value": 0.5 + (0.2 + 0.1 * seed) * (level == 50 and measure == "attention"), "status": "ok"}
        for measure in ("attention", "random")
        for level in (0, *LEVELS)
        for seen in (("words", "positions") if leakage else ("words",))
        for seed in range(2)
        for metric in ("macro_f1", "accuracy")
    ]
    return table("roar", rows).to_pandas()


def timings_frame() -> pd.DataFrame:
    """Attention has two levels, the first in two blocks of seeds; only the first level was explained."""
    keys = {"dataset": "sst", "model": "bilstm", "measure": "attention", "device": "cpu"}
    work = [
        ("retrain", "roar/relative/attention/10", "0-1", 10.0),
        ("retrain", "roar/relative/attention/10", "2-3", 20.0),
    ]
    work += [("retrain", "recursive/relative/attention/20", "0-3", 50.0), ("train", "plain", "0-3", 999.0)]
    work += [("attribute_masked", "unmasked", "0-3", 4.0)]
    rows = [keys | {"rule": rule, "variant": v, "seeds": seeds, "seconds": s} for rule, v, seeds, s in work]
    rows += [rows[0] | {"measure": "random", "seconds": 7.0}, rows[0] | {"seconds": None, "event": "out of memory"}]
    return table("timings", rows).to_pandas()


def point(measure: str = "attention", level: int = 10, **others: Any) -> dict[str, Any]:
    given = CURVE | {"measure": measure, "level": level, "seeds": "0-1"} | others
    return {"variant": f"{given['strategy']}/{given['unit']}/{measure}/{level}"} | given


def masks(level: int, texts: int = 6, words: int = len(HOSTILE), seeds: tuple[int, ...] = (0, 1)) -> pa.Table:
    """The first words are masked for seed 0, the last ones for seed 1; text 3 has one more."""
    count = words * level // 100
    rows = [
        {"seed": seed, "split": split, "instance": i}
        | {"masked": [(k if seed == 0 else words - 1 - k) < count + (i == 3) for k in range(words)]}
        for seed in seeds
        for split in ("train", "test")
        for i in range(texts)
    ]
    return table("masks", rows)


def masked_texts() -> list[dict[str, Any]]:
    points = [point(measure, level) for measure in MEASURES[::-1] for level in LEVELS[::-1]]
    points += [point("attention", level, strategy="roar") for level in LEVELS]
    pairs = [(one, masks(one["level"])) for one in points]
    return collect_masked(pairs, {("sst", "bilstm"): instances()}, {"sst": [1, 3]}, "test", {"sst": "question"})


def study() -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": "masked",
        "datasets": {"sst": {}},
        "models": {"bilstm": {"kind": ""}},
        "seeds": ["0"],
    }
    return told | {"measures": {name: {"kind": ""} for name in MEASURES}, "explain": [], "protocols": {}}


@pytest.fixture(scope="module")
def content() -> Content:
    return Content(
        study=study(),
        cells=[{"dataset": "sst", "variant": "plain", "model": "bilstm", "seeds": "0-1", "measures": MEASURES}],
        excluded=[],
        summaries=[summary()],
        performance=table("performance", []).to_pandas(),
        reproduction=table("reproduction", []).to_pandas(),
        timings=timings_frame(),
        roar=roar_frame(),
        faithfulness=faithfulness_frame(),
        figures=dict.fromkeys(["roar-curves/sst/bilstm", "sparsity/sst/bilstm", "faithfulness", "synthetic-roar"], SVG),
        masked=masked_texts(),
    )


@pytest.fixture(scope="module")
def html(content: Content) -> str:
    return page(content)


def test_faithfulness_stands_on_an_axis_from_minus_one_to_one() -> None:
    shown = roar.faithfulness_table(faithfulness_frame())
    attention, single, gradient, lost = shown.rows
    assert [row[0].text for row in shown.rows] == ["sst"] * 4 and attention[5].text == "macro f1"
    assert [row[2].text for row in shown.rows] == ["attention", "attention", "gradient", "random-<b>"]
    assert [cell.text for cell in attention[6:]] == ["5", "0.300 [0.200, 0.340]", "same", "0.360 [0.350, 0.380]"]
    ours = attention[7]
    assert isinstance(ours, roar.Between) and (ours.at, ours.low, ours.high) == pytest.approx((0.65, 0.6, 0.67))
    assert gradient[7].at == 0 and gradient[8].text == "−1.400 [−1.900, 0.340]"
    assert (single[7].text, single[6].text) == ("0.300", "1") and single[7].low == single[7].high == single[7].at
    assert (lost[7].text, lost[7].mark, lost[7].at) == ("no <seed> has a floor", "faint", None)
    assert lost[8].text == "–" and "too narrow" in shown.caption


def test_leakage_is_told_by_the_metric_of_faithfulness() -> None:
    rows = roar.leakage_table(roar_frame(), faithfulness_frame()).rows
    assert [row[2].text for row in rows] == ["attention", "random"]
    told = ["macro f1", "2", "0.500 ± 0.000", "0.750 ± 0.050", "50 %", "0.250 ± 0.050"]
    assert [cell.text for cell in rows[0][5:]] == told
    assert rows[1][-1].text == "0.000 ± 0.000"
    assert len(roar.leakage_table(roar_frame(), None).rows) == 4
    assert not roar.leakage_table(roar_frame(leakage=False), faithfulness_frame()).rows


def test_a_level_costs_what_all_its_seeds_cost() -> None:
    rows = roar.cost_table(timings_frame()).rows
    assert [[cell.text for cell in row[2:]] for row in rows] == [
        ["attention", "2", "40.0", "4.0"],
        ["random", "1", "7.0", "–"],
    ]
    assert not roar.cost_table(timings_frame()[lambda frame: frame["rule"] == "train"]).rows


def test_masked_texts_keep_their_words_and_flags() -> None:
    (cell,) = masked_texts()
    assert (cell["dataset"], cell["model"], cell["seed"], cell["second"]) == ("sst", "bilstm", 0, "question")
    assert [text["number"] for text in cell["texts"]] == [1, 3]
    assert cell["texts"][0]["tokens"] == ["<sos>", *HOSTILE] and cell["texts"][0]["scored"] == [0] + [1] * 8
    assert cell["masks"]["recursive/relative/gradient/50"] == [[4, "11110000"], [5, "11111000"]]
    assert cell["masks"]["recursive/relative/gradient/100"] == [[8, "1" * 8]] * 2
    told = [(curve["strategy"], curve["measure"], [level for level, _ in curve["levels"]]) for curve in cell["curves"]]
    assert told == [*(("recursive", name, list(LEVELS)) for name in MEASURES), ("roar", "attention", list(LEVELS))]


def test_curves_may_share_the_masks_of_a_variant() -> None:
    shared = [point(measure, 100, variant="roar/relative/random/100") for measure in MEASURES]
    pairs = [(one, masks(100)) for one in shared]
    (cell,) = collect_masked(pairs, {("sst", "bilstm"): instances()}, {"sst": [2]})
    assert list(cell["masks"]) == ["roar/relative/random/100"]
    assert [curve["levels"] for curve in cell["curves"]] == [[[100, "roar/relative/random/100"]]] * 3


def test_of_a_long_text_the_beginning_is_shown_and_all_is_counted() -> None:
    long = 2 * MOST_TOKENS
    row = {"split": "test", "instance": 0, "label": 0, "ids": [0] * (long + 1)}
    row |= {"tokens": ["<sos>", *map(str, range(long))], "maskable": [False] + [True] * long}
    (cell,) = collect_masked(
        [(point(level=50), masks(50, 1, long))], {("sst", "bilstm"): table("instances", [row])}, {"sst": [0]}
    )
    (text,) = cell["texts"]
    assert text["words"] == long and len(text["tokens"]) == len(text["scored"]) == MOST_TOKENS
    assert cell["masks"]["recursive/relative/attention/50"] == [[MOST_TOKENS, "1" * (MOST_TOKENS - 1)]]
    assert "second" not in text


def test_only_the_first_block_of_masks_is_read(tmp_path: Path) -> None:
    write_table(tmp_path / "masks.parquet", "masks", masks(10))
    points = [point(), point(seeds="2-3"), point(level=50), point(model="other", seeds="2-3")]
    paths = [str(tmp_path / name) for name in ("masks.parquet", "absent.parquet", "masks.parquet", "masks.parquet")]
    read = list(read_masks(points, paths))
    assert [one for one, _ in read] == [points[0], points[2], points[3]] and len(read[0][1]) == 24
    assert collect_masked(read, {}, {}) == [], "no text was chosen"
    assert collect_masked(read_masks([], []), {}, {}) == []


def test_the_section_has_its_tables_and_its_place(html: str) -> None:
    tags = Elements(html).tags
    sections = [attributes["id"] for tag, attributes in tags if tag == "section"]
    assert sections[3:6] == ["agreement", "roar", "figures"] and 'href="#roar"' in html
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids)) and {"faithfulness-table", "leakage-table", "costs-table", "masked-app"} <= set(
        ids
    )
    # The whisker goes from .2 to .34 of an axis from −1 to 1.
    assert '<u style="left:60.0%;width:7.0%"></u><i style="left:65.0%"></i>' in html
    assert "no better than random" in html and "Explained split" not in html


def test_no_word_of_tables_or_texts_is_markup(html: str, content: Content) -> None:
    assert "random-&lt;b&gt;" in html and "no &lt;seed&gt; has a floor" in html and "<seed>" not in html
    elements = Elements(html)
    assert [tag for tag, _ in elements.tags].count("script") == 2
    assert json.loads(elements.scripts[0])["masked"] == content.masked
    held = html.split('id="data">')[1].split("</script>")[0]
    assert not any(token in held for token in HOSTILE[:5])


def test_a_page_without_masking_says_nothing_of_it(content: Content) -> None:
    bare = replace(content, roar=None, faithfulness=None, masked=[], figures={}, timings=timings_frame().iloc[3:4])
    html = page(bare)
    assert 'id="roar"' not in html and "#roar" not in html and 'id="masked-app"' not in html
    without = page(replace(content, roar=roar_frame(leakage=False), masked=[]))
    assert 'id="roar"' in without and "give the class away?" not in without and 'id="masked-app"' not in without


def test_figures_belong_to_the_experiment_and_are_told_in_words(html: str) -> None:
    kinds = ("roar-curves", "sparsity", "faithfulness", "synthetic-roar")
    assert {KINDS[kind].experiment for kind in kinds} == {"masking and retraining"}
    assert picture("roar-curves/sst/bilstm", SVG).dataset == "sst" and picture("faithfulness", SVG).dataset == ""
    images = [attributes for tag, attributes in Elements(html).tags if tag == "img"]
    assert len(images) == 4 and all("random" in KINDS[kind].caption for kind in ("roar-curves", "faithfulness"))


@pytest.mark.browser
def test_masked_words_are_boxes_that_keep_their_words(html: str, tmp_path: Path) -> None:
    link = "#masked/sst/bilstm/recursive%2C%20percent%20of%20words/gradient/1"
    tags = opened(html, tmp_path, link).tags
    gone = [attributes for tag, attributes in tags if tag == "del" and attributes.get("dir")]
    # Of eight words none is masked at 10 %, four are at 50 % and eight at 100 %, of which four were before.
    assert len(gone) == 12
    assert sum("gone" in (attributes["class"] or "") for attributes in gone) == 4
    assert [attributes["title"] for attributes in gone[:4]] == HOSTILE[:4]
    assert sum("background-color" in (attributes.get("style") or "") for attributes in gone) == 8
    assert [tag for tag, _ in tags].count("h4") == 4
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]


def test_a_seed_that_is_not_finite_has_no_place() -> None:
    assert roar.bracketed(np.nan, np.nan, np.nan).text == "–"
    assert roar.bracketed(0.5, np.nan, 0.6).text == "0.500"
