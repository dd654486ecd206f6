"""The report as a site: the pages of a study, their content, and that no text of a dataset becomes markup."""

import json
import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from plumbline.dag.parts import select_pages
from plumbline.registry import Registry, load
from plumbline.report.build import HERE, site, write_site
from plumbline.report.content import Content
from plumbline.report.embed import embedded
from plumbline.report.figures import minified, report_figure
from plumbline.report.manifest import commit, manifest, study_of
from tests.reports import BY_CELL, HOSTILE, OF_DATASETS, OF_MODELS, SVG, WHOLE, Elements, page_names, summary
from tests.reports import content as small_study

ALWAYS = ["index", "reproduction", "explorer", "timings", "about"]
REGISTRY = Registry()
PAGES = sorted(REGISTRY.all("page"), key=lambda page: page.order)
FIGURES = {figure.name: figure for figure in REGISTRY.all("figure")}


def findings(content: Content) -> dict[str, str]:
    """The finding of each page that the study has and that has one."""
    names = page_names(content)
    sentences = {page.name: load(page.pointer)(content).finding for page in PAGES if page.name in names}
    return {name: sentence for name, sentence in sentences.items() if sentence}


def with_tables(content: Content, **tables: pd.DataFrame) -> Content:
    """The study with what every one has and some tables more."""
    return replace(bare(content), tables=bare(content).tables | tables)


@pytest.fixture(scope="module")
def content() -> Content:
    return small_study()


@pytest.fixture(scope="module")
def pages(content: Content) -> dict[str, str]:
    return site(content, page_names(content))


def bare(content: Content) -> Content:
    """The study without anything that it need not have."""
    least = {kind: content.tables[kind] for kind in ("performance", "reproduction", "timings")}
    least["reproduction"] = least["reproduction"].iloc[:0]
    return replace(content, study=content.study | {"sample": None}, excluded=[], tables=least, figures={})


def test_a_study_has_the_pages_of_its_tables() -> None:
    usual = ("performance", "timings", "reproduction")

    def names(*kinds: str, attends: bool = True) -> list[str]:
        return [page.name for page in select_pages(REGISTRY, [*usual, *kinds], ["attention"] if attends else ["lime"])]

    assert names() == ALWAYS
    assert set(names("roar", "faithfulness")) - set(ALWAYS) == {"masking"}
    assert set(names("agreement")) - set(ALWAYS) == {"attention", "disagreement"}
    assert set(names("agreement", attends=False)) - set(ALWAYS) == {"disagreement"}
    assert set(names("permutation", attends=False)) - set(ALWAYS) == {"attention"}
    assert set(names("seed_variance", "mine")) - set(ALWAYS) == {"adversaries", "other"}
    known = {kind.partition(":")[0] for page in PAGES for kind in page.tables} - {"*"}
    assert names(*known) == [page.name for page in PAGES if page.name != "other"]


def test_every_figure_has_a_page_and_a_caption() -> None:
    names = {page.name for page in PAGES}
    assert all(figure.page in names and figure.summary and figure.experiment for figure in FIGURES.values())
    # A page shows its figures in one order.
    places = [(figure.page, figure.order) for figure in FIGURES.values()]
    assert len(set(places)) == len(places)


def test_every_page_leads_to_all_others(pages: dict[str, str]) -> None:
    assert list(pages) == [page.name for page in PAGES]
    for name, html in pages.items():
        links = [attributes for tag, attributes in Elements(html).tags if tag == "a"]
        assert {f"{other}.html" for other in pages} <= {link.get("href") for link in links}
        assert [link["href"] for link in links if "aria-current" in link] == [f"{name}.html"]
        titles = [tag for tag, _ in Elements(html).tags if tag == "h1"]
        assert len(titles) == 1


def test_text_of_datasets_is_never_markup(pages: dict[str, str]) -> None:
    for html in pages.values():
        elements = Elements(html)
        # Every image is a figure of ours, so the hostile one is none; and no attribute is a reaction to an event.
        assert all((a["src"] or "").startswith("figures/") for tag, a in elements.tags if tag == "img")
        assert not [name for _, attributes in elements.tags for name in attributes if name.startswith("on")]
        assert all("src" in a or a.get("type") == "application/json" for tag, a in elements.tags if tag == "script")
        for text in ("<b>positive", "<b>lime", "<i>fine", "<u>padding", "random-<b>", HOSTILE[0], HOSTILE[4]):
            assert text not in html
        for name in ("attention", "study", "seed", "sweep", "cell"):
            assert f"<{name}>" not in html
    assert "&lt;img src=x onerror" in pages["index"] and "&lt;b&gt;lime&lt;/b&gt;" in pages["other"]
    assert "random-&lt;b&gt;" in pages["masking"] and "no &lt;seed&gt; has a floor" in pages["masking"]
    assert "&lt;u&gt;padding&lt;/u&gt;" in pages["reproduction"] and "&lt;neither&gt;" in pages["reproduction"]


def test_blocks_of_data_come_back_as_they_were(pages: dict[str, str]) -> None:
    assert json.loads(embedded(HOSTILE)) == HOSTILE
    assert not any(sign in embedded(HOSTILE) for sign in "<>&\u2028")
    data = json.loads(Elements(pages["disagreement"]).scripts[0])
    assert data["words"]["predicted_class"] == ["<b>positive</b>", "all", "negative"] and len(data["rows"]) == 3


def test_nothing_is_loaded_from_elsewhere(content: Content, pages: dict[str, str], tmp_path: Path) -> None:
    write_site(tmp_path, content, list(pages))
    others = {"explorer/index.js", "assets/explorer.js", "assets/explorer.css"}
    for name, html in pages.items():
        assert (tmp_path / f"{name}.html").read_text(encoding="utf-8") == html
        for tag, attributes in Elements(html).tags:
            for key in ("src", "href", "action", "data", "srcset"):
                address = (attributes.get(key) or "#").split("#")[0]
                known = not address or address == "data:," or address in others or (tmp_path / address).is_file()
                assert known, (tag, attributes)
        assert not re.search(r"url\(|@import|https?://", html)
    for script in (HERE / "assets").glob("*.js"):
        # The name of a language, not an address.
        text = script.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|fetch\(|XMLHttpRequest|innerHTML|\beval\(|new Function", text), script.name


def test_only_scripts_next_to_the_pages_may_run(pages: dict[str, str]) -> None:
    for html in pages.values():
        (policy,) = [a["content"] for tag, a in Elements(html).tags if a.get("http-equiv") == "Content-Security-Policy"]
        rules = dict(rule.split(" ", 1) for rule in (policy or "").split("; "))
        assert rules["default-src"] == "'none'" and rules["script-src"] == "'self' file:"


def test_pages_are_readable_without_sight(pages: dict[str, str]) -> None:
    for html in pages.values():
        tags = Elements(html).tags
        assert all(attributes.get("scope") in ("col", "row") for tag, attributes in tags if tag == "th")
        assert all(attributes.get("alt") for tag, attributes in tags if tag == "img")
        ids = Counter(attributes["id"] for _, attributes in tags if "id" in attributes)
        assert set(ids.values()) <= {1}, ids.most_common(1)
        assert {attributes["aria-labelledby"] for tag, attributes in tags if tag == "table"} <= set(ids)


def test_the_overview_lists_what_ran_what_was_left_out_and_published_values(pages: dict[str, str]) -> None:
    html = pages["index"]
    assert "no &lt;attention&gt; there" in html and "0.810 ± 0.010" in html and "sst: length filter, 2 of test" in html
    assert html.count("Published results: 1 of 2 within tolerance. Published sizes of datasets: 1 not judged.") == 2
    assert "60 instances of each, a different sample for each seed" in html
    assert "figures/scorecard.svg" in html and "figures/meta-evaluation.svg" in html
    found = html[html.index("Findings") : html.index('id="pages"')]
    assert "The best measure by 2 criteria: random once and attention once." in found, "random is a usual measure here"
    assert "hardly better" not in found, "no model is at chance"


def test_a_study_with_nothing_to_compare_or_to_show(content: Content) -> None:
    least = bare(content)
    assert page_names(least) == ALWAYS
    pages = site(least, ALWAYS)
    assert "there is nothing to compare" in pages["index"] and "there is nothing to compare" in pages["reproduction"]
    assert "could be applied to every dataset and model" in pages["index"] and "Adversaries:" not in pages["index"]
    assert "sample for each seed" not in pages["index"] and 'id="scorecard"' not in pages["index"]
    assert 'id="published"' not in pages["index"] and 'id="verdict"' not in pages["index"]
    assert 'id="on-quirks"' not in pages["reproduction"] and 'id="all"' not in pages["reproduction"]
    assert not any("<figure" in html for html in pages.values())


def test_pages_show_only_tables_of_the_study(content: Content) -> None:
    kinds = ("performance", "reproduction", "timings", "permutation", "seed_variance", "roar")
    some = replace(content, tables={kind: content.tables[kind] for kind in kinds}, figures={})
    pages = site(some, page_names(some))
    assert 'id="permuted"' in pages["attention"] and 'id="agreement"' not in pages["attention"]
    assert 'id="adversarial"' not in pages["attention"] and 'id="figures"' not in pages["attention"]
    assert 'id="models"' not in pages["adversaries"] and 'id="seeds"' in pages["adversaries"]
    assert 'id="leaking"' in pages["masking"] and 'id="faithfulness"' not in pages["masking"]


def test_findings_are_sentences_of_the_tables(content: Content) -> None:
    assert findings(content) == {
        "scorecard": "Mean Kendall τ between the rankings of one pair of criteria: −0.50.",
        "trust": "0 of 1 criteria agree with some kind of known truth and contradict none.",
        "sensitivity": (
            "1 of 2 criteria rank all permuted shares in order; with 3 seeds 1 of 2 detect a permuted share of 0.5."
        ),
        "attention": "Mean Kendall τ with attention: gradient 0.30.",
        "disagreement": "Mean Kendall τ over the one pair of measures: 0.30.",
        "adversaries": "AtteFa: 0.40 (1 is the most faithful).",
        "masking": "Mean faithfulness (0: as masking at random, 1 at most): attention 0.30, gradient −1.00.",
        "masked_erasure": "Mean faithfulness (0: as masking at random, 1 at most): attention 0.30, gradient −1.00.",
        "truth": "Mean importance on the truth (0: as equal importances, 1: all of it): gradient 0.33.",
        "evidence": (
            "Mean AUPRC relative to a random order (plausibility, not faithfulness): attention 0.33, gradient 0.33."
        ),
        "erasure": "Mean comprehensiveness (higher is better): attention 0.21, gradient 0.21.",
        "randomised-weights": (
            "Mean dependence on the weights (0: none, 1: full): attention 0.70, gradient 0.70, random 0.00."
        ),
        "reliability": "Mean τ between two runs with different random draws: lime 0.65, random 0.00.",
        "reproduction": "Published results: 1 of 2 within tolerance. Published sizes of datasets: 1 not judged.",
    }
    assert list(findings(bare(content))) == ["reproduction"]
    agreement = content.tables["agreement"]
    for nothing in (agreement.assign(n=0, status="undefined"), agreement.assign(status="at chance")):
        assert list(findings(with_tables(content, agreement=nothing))) == ["reproduction"]
    # What is random or degraded has no part in it.
    for kind in ("random", "degraded"):
        study = content.study | {"measures": {"attention": {}, "gradient": {"kind": kind}}}
        assert "disagreement" not in findings(replace(with_tables(content, agreement=agreement), study=study))


def test_figures_are_on_the_page_of_their_kind(content: Content, pages: dict[str, str]) -> None:
    for page in PAGES:
        found = [a for tag, a in Elements(pages[page.name]).tags if tag == "figure"]
        expected = sum(
            (kind in WHOLE) + (kind in OF_DATASETS) + 2 * (kind in [*BY_CELL, *OF_MODELS])
            for kind, figure in FIGURES.items()
            if figure.page == page.name
        )
        # The overview shows those of the scorecard too.
        assert len(found) == (2 if page.name == "index" else expected), page.name
        assert not any("hidden" in figure for figure in found), "without scripts all of them are shown"
    shown = [a for tag, a in Elements(pages["attention"]).tags if tag == "figure"]
    keys = ("dataset", "model", "encoder", "attention", "experiment")
    cells = [tuple(figure[f"data-{key}"] for key in keys) for figure in shown]
    assert cells.count(("sst", "bilstm-tanh", "bilstm", "tanh", "adversarial attention")) == 3
    assert cells.count(("sst", "bag-of-words", "bag-of-words", "none", "permutation")) == 1
    images = [a for html in pages.values() for tag, a in Elements(html).tags if tag == "img"]
    assert all(image["loading"] == "lazy" for image in images)


def test_figures_have_their_dataset_and_model() -> None:
    parts = {"cnn": {"encoder": "convolution", "attention": "dot"}, "mine": {}}
    one = report_figure("tau-matrix/sst/cnn", SVG, FIGURES["tau-matrix"], parts)
    assert (one.kind, one.dataset, one.model) == ("tau-matrix", "sst", "cnn")
    assert (one.encoder, one.attention, one.experiment) == ("convolution", "dot", "correlation")
    assert (one.source, one.width, one.height, one.wide) == ("figures/tau-matrix/sst/cnn.svg", 500, 333, False)
    # A model without these parts stands for its own encoder.
    other = report_figure("permutation/sst/mine", SVG, FIGURES["permutation"], parts)
    assert (other.encoder, other.attention, other.experiment) == ("mine", "none", "permutation")
    whole = report_figure("correlation-matrices/cnn", SVG, FIGURES["correlation-matrices"], parts)
    assert (whole.dataset, whole.model, whole.experiment) == ("", "cnn", "correlation")
    found = FIGURES["truth-found"]
    assert (
        report_figure("truth-found/sst", SVG, found, parts).dataset,
        report_figure("truth-found", SVG, found).dataset,
    ) == (
        "sst",
        "",
    )
    assert report_figure("truth-found/a b/c", SVG, found).source == "figures/truth-found/a%20b/c.svg"


def test_only_figures_are_minified(content: Content, tmp_path: Path) -> None:
    svg = """<?xml version="1.0"?>
<svg width="9pt" height="9pt" viewBox="0 0 9 9">
 <metadata><date>today</date></metadata>
 <g id="text_1">
  <!-- a & b -->
  <g style="fill: #22262b" transform="translate(7.123456 8) scale(0.075 -0.075)">
   <path id="DejaVuSans-41" d="M 10.123456 20
L 2.5 -3
z
" transform="scale(0.015625)"/>
   <use xlink:href="#DejaVuSans-41" transform="translate(61.279297 0)"/>
  </g>
 </g>
</svg>"""
    small = (
        '<svg width="9pt" height="9pt" viewBox="0 0 9 9"><g>'
        '<g style="fill: #22262b" transform="translate(7.12 8) scale(0.075 -0.075)">'
        '<path id="41" d="M10.12 20L2.5 -3z" transform="scale(0.015625)"/>'
        '<use href="#41" x="61.27"/></g></g></svg>'
    )
    assert minified(svg) == small
    write_site(tmp_path, replace(content, figures={"tau-matrix/sst/v1.5": svg}), ALWAYS)
    assert (tmp_path / "figures/tau-matrix/sst/v1.5.svg").read_text() == small


def test_partial_data_have_a_warning(content: Content) -> None:
    some = summary() | {"partial": {"test": {"texts": 6, "published": 1821}}}
    sentence = "Results on sst are from partial data: 6 of the 1\u202f821 published test texts."
    assert sentence in site(replace(content, summaries=[some]), ["index"])["index"]


def test_the_manifest_adds_up_the_jobs(content: Content) -> None:
    partial = {"test": {"texts": 6, "published": 1821}}
    summaries = [summary(), summary() | {"dataset": "imdb", "partial": partial}]
    record = manifest(content.study, content.excluded, content.tables["timings"], summaries)
    assert record["seconds"] == 1189 and record["devices"] == ["cpu"] and record["study"]["name"] == "A <study> & more"
    assert json.loads(json.dumps(record)) == record
    assert record["partial"] == {"imdb": partial}
    ordered = manifest({"seeds": ["0"], "models": {"b": {}, "a": {}}}, [], content.tables["timings"])
    assert ordered["order"] == {"models": ["b", "a"]}
    stored = json.loads(json.dumps(ordered, sort_keys=True))
    assert list(stored["study"]["models"]) == ["a", "b"] and list(study_of(stored)["models"]) == ["b", "a"]


def test_the_manifest_names_the_commit_of_a_clone(tmp_path: Path) -> None:
    assert commit(tmp_path) == "", "no repository"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (tmp_path / "file").write_text("one")
    for command in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert commit(tmp_path) == head.stdout.strip()
    (tmp_path / "file").write_text("two")
    assert commit(tmp_path) == head.stdout.strip() + "+"


def test_the_same_content_gives_the_same_pages(content: Content, pages: dict[str, str]) -> None:
    assert site(content, page_names(content)) == pages
