"""The report from small handmade tables: its sections, its numbers, and that no text of a dataset becomes markup."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from plumbline.registry import Registry
from plumbline.report import about, agreement, published, tables
from plumbline.report.build import Content, embedded, page, picture
from plumbline.report.examples import Block, choose_texts, collect, taus
from plumbline.report.inputs import read_figures, read_tables
from plumbline.report.manifest import manifest
from plumbline.store import ARTEFACTS, write_table

HOSTILE = [
    "<script>alert(1)</script>",
    "</script>",
    "<!--",
    "\"'&amp;",
    "<img src=x onerror=alert(1)>",
    "שלום",
    "👩‍🔬",
    "a\u2028b",
]
CLASSES = ["negative", "<b>positive</b>"]
MEASURES = ["attention", "gradient"]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle id="a" r="4"/></svg>'


class Elements(HTMLParser):
    """All elements of a page, with their attributes, and the text of each script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    schema = ARTEFACTS[name].schema
    return pa.Table.from_pylist([{field.name: row.get(field.name) for field in schema} for row in rows], schema)


def block(model: str = "bilstm-tanh", seeds: tuple[int, ...] = (0, 1), texts: int = 6) -> Block:
    """Texts of eight words; the even ones are negative, and texts 4 and 5 are predicted wrongly."""
    rng = np.random.default_rng(0)
    keys = [{"seed": seed, "split": "test", "instance": i} for seed in seeds for i in range(texts)]
    told = [[0.9, 0.1] if (key["instance"] % 2 == 0) == (key["instance"] < 4) else [0.2, 0.8] for key in keys]
    predictions = [key | {"label": key["instance"] % 2, "probabilities": p} for key, p in zip(keys, told, strict=True)]
    importances = [
        (measure, table("attributions", [key | {"scores": rng.normal(size=len(HOSTILE)).tolist()} for key in keys]))
        for measure in MEASURES
    ]
    return Block("sst", model, table("predictions", predictions), importances)


def instances(texts: int = 6) -> pa.Table:
    rows = [
        {"split": "test", "instance": i, "label": i % 2, "tokens": ["<sos>", *HOSTILE], "ids": list(range(9))}
        | {"maskable": [False] + [True] * 8}
        for i in range(texts)
    ]
    return table("instances", rows)


def summary() -> dict[str, Any]:
    split = {"instances": 6, "instances_per_class": dict.fromkeys(CLASSES, 3), "mean_length": 8.0}
    split |= {"shortest": 8, "longest": 8, "unknown_share": 0.125}
    dropped = {"length filter": {"test": 2}, "limit": {"test": 0}}
    return {"dataset": "sst", "classes": CLASSES, "splits": {"test": split, "train": split}, "dropped": dropped}


def agreement_frame() -> pd.DataFrame:
    rows = [
        {"dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "seed": seed, "measure_a": "attention"}
        | {"measure_b": "gradient", "statistic": "kendall", "predicted_class": label, "n": 3, "dropped": 1}
        | {"mean": 0.2 + 0.2 * seed, "std": 0.1, "significant_fraction": 0.5, "status": "ok"}
        for seed in range(2)
        for label in ("0", "1", "all")
    ]
    return table("agreement", rows).to_pandas()


def reproduction_frame() -> pd.DataFrame:
    line = {"study": "J&W", "table": "T2", "dataset": "sst", "model": "bilstm-tanh", "measure_a": "attention"}
    line |= {"measure_b": "gradient", "predicted_class": "1", "metric": "kendall_tau", "published": 0.40, "n_seeds": 2}
    rows = [
        line | {"ours": 0.3, "ours_spread": 0.1, "tolerance": 0.11, "within": True, "note": "<i>fine</i>"},
        line | {"ours": 0.9, "ours_spread": 0.1, "tolerance": 0.11, "within": False},
        line | {"metric": "vocab_size", "model": None, "published": 13686.0, "predicted_class": None},
    ]
    return table("reproduction", rows).to_pandas()


@pytest.fixture(scope="module")
def content() -> Content:
    study = {
        "name": "A <study> & more",
        "datasets": {"sst": {"kind": ""}},
        "plugins": [],
        "seeds": ["0-1"],
        "explain": ["test"],
    }
    study |= {"models": {"bilstm-tanh": {"kind": "", "training": {"epochs": 6}, "measures": None, "datasets": None}}}
    study |= {"measures": {measure: {"kind": ""} for measure in MEASURES}, "protocols": {"agreement": {}}}
    performance = [
        {"dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "seed": seed, "split": split, "metric": "f1"}
        | {"value": 0.8 + 0.02 * seed, "status": "ok"}
        for seed in range(2)
        for split in ("train", "test")
    ]
    timings = [
        {
            "rule": "train",
            "dataset": "sst",
            "model": "bilstm-tanh",
            "seconds": 2.5,
            "device": "cpu",
            "startup_seconds": 1.0,
        }
        | {"peak_rss": 100.0, "peak_gpu": 0.0, "rows": 6, "rows_per_second": 2.4}
    ]
    return Content(
        study=study,
        cells=[{"dataset": "sst", "variant": "plain", "model": "bilstm-tanh", "seeds": "0-1", "measures": MEASURES}],
        excluded=[{"dataset": "", "model": "bag-of-words", "measure": "attention", "reason": "no <attention> there"}],
        summaries=[summary()],
        performance=table("performance", performance).to_pandas(),
        reproduction=reproduction_frame(),
        timings=table("timings", timings).to_pandas(),
        agreement=agreement_frame(),
        figures={"tau-matrix/sst/bilstm-tanh": SVG, "mean-differences": SVG, "rule-graph": SVG},
        examples=collect([block()], [summary()], {"sst": instances()}, "test", 4),
        versions={"python": "3.11"},
    )


@pytest.fixture(scope="module")
def html(content: Content) -> str:
    return page(content)


def test_the_page_has_all_its_sections(html: str) -> None:
    found = [attributes["id"] for tag, attributes in Elements(html).tags if tag == "section"]
    wanted = ["what-ran", "published", "performance", "agreement", "figures", "examples", "timings", "about"]
    assert found == wanted
    assert all(f'href="#{name}"' in html for name in wanted)


def test_text_of_datasets_is_never_markup(html: str) -> None:
    elements = Elements(html)
    assert [tag for tag, _ in elements.tags].count("script") == 2
    assert "alert(1)" not in elements.scripts[1]
    # Every image is a figure of ours, so the hostile one is none; and no element reacts to an event by an attribute.
    assert all(
        attributes["src"].startswith("data:image/svg+xml;base64,") for tag, attributes in elements.tags if tag == "img"
    )
    assert not [name for _, attributes in elements.tags for name in attributes if name.startswith("on")]
    for text in ("<b>positive</b>", "<i>fine</i>", "no <attention> there", "A <study>"):
        assert text not in html
    for token in HOSTILE[:5]:
        assert token not in html.split('id="data">')[1].split("</script>")[0]


def test_the_data_come_back_as_they_were(html: str, content: Content) -> None:
    data = json.loads(Elements(html).scripts[0])
    assert data["examples"] == content.examples
    assert data["examples"][0]["texts"][0]["tokens"] == ["<sos>", *HOSTILE]
    assert data["measures"] == {"attention": "#0072B2", "gradient": "#D55E00"}
    assert json.loads(embedded(HOSTILE)) == HOSTILE


def test_nothing_is_loaded_from_elsewhere(html: str) -> None:
    for tag, attributes in Elements(html).tags:
        for name in ("src", "href", "action", "data", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    assert not re.search(r"url\(|@import|https?://|fetch\(|XMLHttpRequest|innerHTML|eval\(", html)


def test_only_the_pages_own_script_may_run(html: str) -> None:
    script = html.rsplit("<script>", 1)[1].split("</script>")[0]
    policy = next(a["content"] for tag, a in Elements(html).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in (policy or "")


def test_tables_are_readable_without_sight(html: str) -> None:
    tags = Elements(html).tags
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in tags if tag == "th")
    assert all(attributes.get("alt") for tag, attributes in tags if tag == "img")
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["aria-labelledby"] for tag, attributes in tags if tag == "table"} <= set(ids)


def test_the_page_says_what_was_left_out_and_how_it_compares(html: str) -> None:
    assert "no &lt;attention&gt; there" in html
    assert html.count("1 of 2 cells within tolerance; 1 more could not be judged.") == 2
    assert "0.810 ± 0.010" in html
    assert "sst: length filter, 2 of test" in html


def test_a_study_with_nothing_to_compare_or_to_show(content: Content) -> None:
    bare = Content(
        content.study,
        content.cells,
        [],
        content.summaries,
        content.performance,
        content.reproduction.iloc[:0],
        content.timings,
    )
    html = page(bare)
    assert "there is nothing to compare" in html and "had to be left out" in html
    assert "has no agreement protocol" in html and "draws no figures" in html and "No example texts" in html


def test_reproduction_marks_what_is_within_and_what_is_not() -> None:
    rows = published.reproduction_table(reproduction_frame(), {"sst": CLASSES}).rows
    assert [row[8].mark for row in rows] == ["good", "bad", "faint"]
    assert rows[0][2].text == "mean τ, attention and gradient" and rows[0][3].text == CLASSES[1]
    assert (rows[0][5].text, rows[0][6].text) == ("0.30 ± 0.10", "−0.100")
    # A tenth below by a tolerance of .11; far above is put at the end of the axis.
    assert rows[0][6].at == pytest.approx(0.5 - 0.1 / 0.11 / 6) and rows[1][6].at == 1.0
    assert rows[2][4].text == "13\u202f686" and rows[2][5].text == "–"


def test_agreement_is_gathered_over_seeds() -> None:
    data = agreement.all_rows(agreement_frame(), {"sst": CLASSES})
    assert data["words"]["predicted_class"] == [CLASSES[1], "all", CLASSES[0]]
    row = data["rows"][0]
    assert row[6:] == pytest.approx([0.3, 0.1, 0.1, 0.5, 6, 2])
    overview = agreement.overview(agreement_frame())
    assert overview is not None and overview.rows[0][2].text == "0.30 ± 0.10"
    assert agreement.overview(agreement_frame().assign(measure_a="random")) is None


def test_examples_are_spread_and_the_same_for_all_models() -> None:
    assert choose_texts(block().predictions, "test", 4) == choose_texts(block().predictions, "test", 4)
    chosen = choose_texts(block(texts=6).predictions, "test", 4)
    # One right and one wrong of each class: 4 and 5 are the wrong ones.
    assert {4, 5} <= set(chosen) and {number % 2 for number in chosen if number < 4} == {0, 1}
    blocks = [block("a", (0,)), block("b", (0, 1)), block("a", (1,))]
    (example,) = collect(blocks, [summary()], {"sst": instances()}, "test", 4)
    assert list(example["models"]) == ["a", "b"]
    assert list(example["models"]["a"]["seeds"]) == ["0", "1"]
    assert len(example["models"]["a"]["seeds"]["1"]) == len(example["texts"]) == 4
    assert collect([block()], [summary()], {"sst": instances()}, "test", 0) == []


def test_tau_of_an_example() -> None:
    up, down = np.arange(4.0), -np.arange(4.0)
    assert taus([up, down, up], ["attention", "gradient", "mine"]) == {"attention": 1, "gradient": -1, "mine": 1}
    assert taus([up, np.zeros(4)], ["attention", "gradient"])["gradient"] is None
    assert taus([up[:1], down[:1]], ["attention", "gradient"]) == {"attention": None, "gradient": None}
    assert taus([up, np.full(4, np.nan)], ["attention", "gradient"])["gradient"] is None


def test_numbers_for_people() -> None:
    assert [tables.number(v) for v in (1234.5, -0.001, -0.5, None, float("nan"))] == [
        "1\u202f234.50",
        "0.00",
        "−0.50",
        "–",
        "–",
    ]


def test_every_measure_and_metric_is_explained() -> None:
    registry = Registry()
    rows = about.measures_table(registry, {"measures": {"mine": {"kind": "gradient"}}}).rows
    assert {row[0].text for row in rows} == set(registry.names("measure"))
    assert (rows[0][0].text, rows[0][1].text) == ("gradient", "mine")
    assert [row[0].text for row in about.metrics_table(registry).rows] == registry.names("metric")


def test_a_table_of_an_unknown_kind_is_shown_as_it_stands(content: Content) -> None:
    own = pd.DataFrame({"measure": ["<b>lime</b>"], "share": [0.25], "n": [3], "empty": [None]})
    text = page(replace(content, others={"my_own": own}))
    assert '<section id="table-my_own">' in text and "&lt;b&gt;lime&lt;/b&gt;" in text and "0.250" in text
    assert tables.any_table("my_own", own).columns == ["measure", "share", "n"]


def test_figures_carry_their_place() -> None:
    one = picture("tau-matrix/sst/cnn", SVG)
    assert (one.kind, one.dataset, one.model) == ("tau-matrix", "sst", "cnn")
    assert base64.b64decode(one.source.split(",")[1]).decode() == SVG
    assert picture("new-kind", SVG).caption == "new kind"


def test_files_are_read_by_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table("results/tables/mine.parquet", "agreement", dict(agreement_frame()))
    assert list(read_tables(["results/tables/mine.parquet"])) == ["agreement"]
    figure = tmp_path / "results/figures/tau-matrix/sst/v1.5.svg"
    figure.parent.mkdir(parents=True)
    figure.write_text(SVG)
    assert read_figures(["results/figures/tau-matrix/sst/v1.5.svg"]) == {"tau-matrix/sst/v1.5": SVG}


def test_the_manifest_adds_up_the_jobs(content: Content) -> None:
    told = manifest(content.study, content.excluded, content.timings)
    assert told["seconds"] == 2.5 and told["devices"] == ["cpu"] and told["study"]["name"] == "A <study> & more"
    assert json.loads(json.dumps(told)) == told


def test_the_same_content_gives_the_same_page(content: Content, html: str) -> None:
    assert page(content) == html
