"""The report in a browser, from files: tables sort and filter, links open what they name, and all can use it."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import plumbline.templates.new
from plumbline.dag.parts import select_pages
from plumbline.registry import Registry
from plumbline.report.build import write_site
from tests.browser.conftest import Tab
from tests.reports import BY_CELL, HOSTILE, OF_MODELS, SVG, agreement_frame, content, page_names

pytestmark = pytest.mark.browser

Open = Callable[..., Tab]
# The explorer has tests of its own.
NAMES = [page for page in page_names(content()) if page != "explorer"]
ROWS = "#performances tbody tr"


def address(site: Path, name: str, link: str = "") -> str:
    return (site / f"{name}.html").as_uri() + link


def column(tab: Tab, number: int) -> list[str]:
    """The words in a column of the rows of the performance table that are shown."""
    return [row.query_selector_all("th, td")[number].inner_text() for row in tab.shown(ROWS)]


@pytest.mark.parametrize("name", NAMES)
def test_every_page_opens_from_files_with_its_figures(site: Path, tab: Open, name: str) -> None:
    page = tab(address(site, name)).page
    assert page.locator("h1").count() == 1 and page.locator("nav [aria-current]").count() == 1
    for image in page.query_selector_all("img"):
        image.scroll_into_view_if_needed()
        page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=image)


def test_the_policy_holds_on_a_server_too(site: Path, tab: Open) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        opened = tab(f"http://127.0.0.1:{server.server_address[1]}/disagreement.html")
        assert len(opened.shown("#agreement-app tbody tr")) == 1
        assert opened.page.evaluate("document.styleSheets.length") == 1
        opened.page.evaluate(
            "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
        )
        assert opened.page.evaluate("window.ran === undefined"), "the policy forbids scripts that are written in a page"
        opened.errors.clear()
    finally:
        server.shutdown()


def test_tables_are_sorted_by_click_and_by_key(site: Path, tab: Open) -> None:
    opened = tab(address(site, "index"))
    header = opened.page.locator("#performances th[aria-sort]").nth(3)
    before = column(opened, 3)
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending" and column(opened, 3) == sorted(before)
    header.locator("button").press("Enter")
    assert header.get_attribute("aria-sort") == "descending" and column(opened, 3) == sorted(before, reverse=True)
    opened.page.locator("#performances th[aria-sort] button").nth(1).click()
    assert header.get_attribute("aria-sort") == "none"


def test_long_tables_are_filtered_and_links_keep_the_filters(site: Path, tab: Open) -> None:
    opened = tab(address(site, "index"))
    assert len(column(opened, 1)) == 10
    opened.field("filter", "#performance").fill("model 0.6")
    assert column(opened, 1) == ["model-0"] and "1 of 10 rows." in opened.page.inner_text("#performance")
    opened.field("filter", "#performance").fill("")
    opened.choose("model", "bag-of-words", "#performance")
    assert column(opened, 1) == ["bag-of-words"]
    again = tab(opened.page.url)
    assert opened.page.url.endswith("#performances//*/bag-of-words") and column(again, 1) == ["bag-of-words"]
    assert column(tab(address(site, "index", "#performances/%3Cimg/none/none")), 1) == [HOSTILE[4]]
    assert not opened.shown("#models + .controls"), "short tables need no filters"


def test_rows_without_a_word_are_shown_until_one_is_chosen(tmp_path: Path, tab: Open) -> None:
    """Not all jobs are about a dataset or a measure."""
    given = content()
    jobs = given.tables["timings"]
    blank = jobs.head(1).assign(rule="synthetic_roar", dataset=None, model=None, measure=None)
    other = jobs.assign(dataset="imdb", model="cnn")
    many = pd.concat([blank, *([jobs, other] * 5)], ignore_index=True)
    write_site(tmp_path, replace(given, tables={**given.tables, "timings": many}), ["index", "timings"])
    opened = tab(address(tmp_path, "timings"))

    words = opened.page.locator("select").evaluate_all("all => all.map((one) => one.value)")
    assert words and set(words) == {"*"}
    assert f"{len(many)} of {len(many)} rows." in opened.page.inner_text("main")


def test_names_are_escaped_everywhere(site: Path, tab: Open) -> None:
    opened = tab(address(site, "index"))
    opened.choose("model", HOSTILE[4], "#performance")
    assert column(opened, 1) == [HOSTILE[4]]
    assert opened.page.query_selector("img[src=x]") is None
    assert "<b>positive</b>" in tab(address(site, "disagreement")).page.inner_text("#agreement-app")
    for name, text in (
        ("other", "<b>lime</b>"),
        ("masking", "no <seed> has a floor"),
        ("scorecard", "applies to <attention> only"),
    ):
        assert text in tab(address(site, name)).page.inner_text("main")


def figures(tab: Tab) -> list[tuple[str, ...]]:
    keys = ("dataset", "model", "experiment")
    return [tuple(f.get_attribute(f"data-{key}") for key in keys) for f in tab.shown("#figures-app figure")]


def test_all_figures_are_shown_until_some_are_chosen(site: Path, tab: Open) -> None:
    opened = tab(address(site, "attention"))
    kinds = [kind for kind in BY_CELL if Registry().get("figure", kind).page == "attention"]
    # And one about the whole study, which belongs to every choice but that of another experiment.
    assert len(figures(opened)) == 2 * len(kinds) + 1
    opened.choose("model", "bag-of-words")
    assert {model for _, model, _ in figures(opened)} == {"bag-of-words", ""}
    opened.choose("experiment", "permutation")
    assert figures(opened) == [("sst", "bag-of-words", "permutation")]
    assert figures(tab(opened.page.url)) == figures(opened)
    assert [kind.inner_text().split("\n")[0] for kind in opened.shown(".kind")] == ["Permutation"]
    assert not opened.field("dataset").is_visible(), "there is one dataset"


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("#figures/sst/bilstm-tanh/*/*/permutation", {("bilstm-tanh", "permutation")}),
        ("#figures/*/*/*/none/adversarial%20attention", {("bag-of-words", "adversarial attention")}),
        ("#figures/*/*/*/*/correlation", {(model, "correlation") for model in ("bilstm-tanh", "bag-of-words", "")}),
        # What leads to nothing is passed over.
        ("#figures/sst/bag-of-words/*/tanh/permutation", {("bag-of-words", "permutation")}),
    ],
)
def test_a_link_opens_the_figures_it_names(site: Path, tab: Open, link: str, shown: set[tuple[str, str]]) -> None:
    opened = tab(address(site, "attention", link))
    assert {figure[1:] for figure in figures(opened)} == shown
    assert opened.page.evaluate("document.getElementById('figures').getBoundingClientRect().top") < 400


def test_figures_about_all_datasets_belong_to_each(site: Path, tab: Open) -> None:
    shown = figures(tab(address(site, "disagreement", "#figures/sst/bilstm-tanh")))
    assert ("", "bilstm-tanh", "correlation") in shown and len(shown) == 1 + len(OF_MODELS)


def test_the_fewest_tokens_are_chosen_first(tmp_path: Path, tab: Open) -> None:
    frame = agreement_frame()
    twice = pd.concat([frame.assign(tokens="all", mean=0.9), frame], ignore_index=True)
    write_site(tmp_path, replace(content(), tables={"agreement": twice}), ["disagreement"])
    opened = tab(address(tmp_path, "disagreement"))
    assert "1 of 1 rows that match, 6 in total." in opened.page.inner_text("#agreement-app")
    assert opened.field("ranked").input_value() == "words of the text"


def test_agreement_is_filtered_sorted_and_linked(site: Path, tab: Open) -> None:
    opened = tab(address(site, "disagreement"))
    assert "1 of 1 rows that match, 3 in total." in opened.page.inner_text("#agreement-app")
    opened.choose("predicted class", "")
    rows = "#agreement-app tbody tr"
    assert len(opened.shown(rows)) == 3 and len(tab(opened.page.url).shown(rows)) == 3
    opened.page.locator("#agreement-app th button", has_text="predicted class").click()
    assert opened.shown(rows)[0].inner_text().split("\t")[4] == "<b>positive</b>"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [360, 800])
def test_no_page_is_wider_than_a_screen(site: Path, tab: Open, name: str, width: int) -> None:
    page = tab(address(site, name), width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_follow_the_colours_of_the_system(site: Path, tab: Open, scheme: str) -> None:
    page = tab(address(site, "index"), scheme=scheme).page
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red = int(ground.removeprefix("rgb(").split(",")[0])
    assert red > 200 if scheme == "light" else red < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_no_serious_accessibility_violation(site: Path, tab: Open, name: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = tab(address(site, name), scheme=scheme).page
    # It would fetch the style sheet, which the policy forbids.
    found = axe.Axe().run(page, options={"preload": False}).response
    assert "color-contrast" in {rule["id"] for rule in found["passes"]}
    serious = [fault for fault in found["violations"] if fault["impact"] in ("serious", "critical")]
    assert [(fault["id"], [node["html"] for node in fault["nodes"]][:3]) for fault in serious] == []


def test_the_keyboard_reaches_everything(site: Path, tab: Open) -> None:
    page = tab(address(site, "index")).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0, (
        "it is seen while it has the focus"
    )
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")
    assert page.evaluate("getComputedStyle(document.activeElement, '::after').outlineStyle") == "solid"


def test_a_plug_in_protocol_has_its_page_figure_and_scorecard_column(tmp_path: Path, tab: Open) -> None:
    """The template of `plumbline new protocol` in the report of a study that uses it."""
    plugin = Path(plumbline.templates.new.__file__).with_name("my_protocol.py")
    study = content()
    own = pd.DataFrame({"dataset": ["sst"], "model": ["bilstm"], "measure": ["lime"], "seed": [0], "mean": [0.25]})
    card = study.tables["scorecard"]
    card = pd.concat([card, card.iloc[:1].astype({"criterion": object}).assign(criterion="my-protocol", value=0.25)])
    extended = replace(
        study,
        study=study.study | {"plugins": [str(plugin)]},
        tables=study.tables | {"my-protocol": own, "scorecard": card},
        figures=study.figures | {"my-protocol": SVG},
    )
    names = [page.name for page in select_pages(Registry([plugin]), extended.tables, ["attention"])]
    write_site(tmp_path, extended, names)
    page = tab(address(tmp_path, "my-protocol")).page
    assert page.locator("h1").inner_text() == "My protocol" and page.locator("#means tbody tr").count() == 1
    assert page.locator("figure img").get_attribute("src") == "figures/my-protocol.svg"
    assert page.locator("nav [aria-current]").inner_text() == "My protocol"
    page = tab(address(tmp_path, "scorecard")).page
    assert "my-protocol" in page.locator("#scorecard thead").inner_text()
    assert "My protocol" in tab(address(tmp_path, "index")).page.locator("#pages").inner_text()
