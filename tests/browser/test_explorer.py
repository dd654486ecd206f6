"""The explorer in a browser, from files: drawing, navigation and speed."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plumbline.explorer.blocks import ExplorerOptions
from tests.explored import SIDE, everything, large, write_explorer
from tests.reports import HOSTILE

pytestmark = pytest.mark.browser

ALL = ExplorerOptions("all", ["test"])
MANY = 100_000
# Seconds from the address to the first heatmap, and from one instance to another: one or two on a quiet machine, but
# tests run in parallel.
SOON = 10.0
WORDS = ".measure .word[title]"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The explorer of a small study with everything."""
    folder = tmp_path_factory.mktemp("explorer")
    return write_explorer(folder / "site", everything(folder), ALL).as_uri()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The explorer of a hundred thousand texts."""
    folder = tmp_path_factory.mktemp("many")
    return write_explorer(folder / "site", [large(folder, MANY)], ALL).as_uri()


@pytest.fixture
def opened(tab: Callable[..., Any], address: str) -> Callable[..., Any]:
    """Opens the explorer at a link and waits until it is drawn."""

    def open_(link: str = "", **how: Any) -> Any:
        found = tab(address + link, **how)
        found.page.wait_for_selector(".panel")
        return found

    return open_


def stands_at(tab: Any, title: str) -> None:
    """Waits until an instance is drawn."""
    tab.page.wait_for_selector(f'.bar h2:text-is("{title}")')
    tab.page.wait_for_selector('.stage[aria-busy="false"]')


def texts(tab: Any, selector: str) -> list[str]:
    return [element.text_content() for element in tab.page.query_selector_all(selector)]


def listed(tab: Any) -> list[str]:
    return texts(tab, ".instance b")


def rows(tab: Any) -> dict[str, list[Any]]:
    """The tokens of each line of heat, by its name."""
    found: dict[str, list[Any]] = {}
    for line in tab.page.query_selector_all(".measure"):
        name = line.query_selector("h4 .chip")
        if name:
            found[name.text_content()] = line.query_selector_all(".word")
    return found


def test_texts_of_datasets_are_shown_as_text_and_nothing_of_them_runs(opened: Callable[..., Any]) -> None:
    tab = opened()
    dialogs: list[str] = []
    tab.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    tab.page.reload()
    tab.page.wait_for_selector(".panel")
    assert [word.text_content() for word in rows(tab)["attention"]] == ["<sos>", *HOSTILE]
    tab.page.wait_for_selector(f'.snippet:has-text("{HOSTILE[0]}")')
    tab.page.click("summary:text-is('Scores as a table')")
    tab.page.wait_for_selector(".stage table")
    assert texts(tab, "tbody th")[:8] == HOSTILE
    assert "✓ <b>positive</b>" in texts(tab, ".instance .right")
    # Scripts of data leave no element behind, and no element but the page's own came of a text.
    assert {script.get_attribute("src") for script in tab.page.query_selector_all("script")} == {
        "assets/common.js",
        "assets/site.js",
        "explorer/index.js",
        "assets/explorer.js",
    }
    assert not tab.page.query_selector_all("#explorer :is(script, img, iframe)")
    assert tab.page.query_selector("#explorer b > *") is None and dialogs == []


def test_every_measure_has_its_heat_and_one_scale(opened: Callable[..., Any]) -> None:
    tab = opened("#sst/plain/average/0/test/1")
    lines = rows(tab)
    # <sos>, eight words, then <sos>, three words and <eos> of the question.
    titles = ["4", *["0"] * 7, "0.5", "0", "−1", "2", "0.25", "1"]
    assert [word.get_attribute("title") for word in lines["gradient"]] == titles
    negative = [i for i, word in enumerate(lines["gradient"]) if "negative" in word.get_attribute("class")]
    assert negative == [10] and "negative score" in tab.page.inner_text(".scale")
    red = [
        word.evaluate("e => Number(getComputedStyle(e).backgroundColor.match(/\\d+/g)[2])")
        for word in lines["gradient"]
    ]
    paper = tab.page.evaluate("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[2])")
    whole = paper - red[0]
    # Against the special token that has most; −1 is as strong as 1.
    assert [(paper - red[i]) / whole for i in (10, 11, 12, 13)] == pytest.approx([0.25, 0.5, 0.0625, 0.25], abs=0.02)
    tab.choose("Shade by", "rank")
    tab.page.wait_for_selector(".scale:has-text('highest rank in both texts')")


def test_attention_is_shown_with_its_adversaries_and_adversarial_models(opened: Callable[..., Any]) -> None:
    tab = opened("#sst/plain/bilstm/1/test/1")
    assert list(rows(tab)) == [
        "attention",
        "gradient",
        "attention of the model",
        "adversarial attention, ε = 0.01",
        "adversarial attention, ε = 0.05",
        "base model",
        "adversarial model (<attefa>)",
    ]
    assert "seed 5, JSD 0.69" in tab.page.inner_text(".stage")
    assert "question: who <is> ?" in tab.page.inner_text(".second")
    evidence = [word.text_content() for word in rows(tab)["gradient"] if "evidence" in word.get_attribute("class")]
    assert evidence == HOSTILE[6:] and "on the evidence" in tab.page.inner_text(".stage")
    tab.page.goto(tab.page.url.replace("/1/test/1", "/0/test/0"))
    stands_at(tab, "test 0")
    assert "base model" not in rows(tab) and "no different attention" in tab.page.inner_text(".stage")


def test_words_that_determine_the_label_are_marked_and_changed_labels_shown(opened: Callable[..., Any]) -> None:
    tab = opened("#sst/articles/bilstm/0/test/0")
    marks = [word.get_attribute("class") for word in rows(tab)["gradient"]]
    assert "evidence" in marks[1] and "decoy" in marks[3] and sum("evidence" in mark for mark in marks) == 1
    shown = tab.page.inner_text(".stage")
    assert "on the truth" in shown and "which was <b>positive</b> before the dataset was changed" in shown
    assert "determines the label" in shown and "part of the manipulation" in shown


def test_masks_are_shown_level_by_level(opened: Callable[..., Any]) -> None:
    tab = opened("#sst/plain/bilstm/0/test/1")
    tab.choose("Measure", "gradient", ".masked")
    masked = tab.page.query_selector_all(".masked .measure del")
    # Of eight words none is masked at 10 %, four are at 50 % and eight at 100 %, of which four were before.
    assert len(masked) == 12 and sum("masked-before" in word.get_attribute("class") for word in masked) == 4
    assert [word.get_attribute("title") for word in masked[:4]] == HOSTILE[:4]
    assert texts(tab, ".masked h4 small") == [f"{n} of 8 masked" for n in (0, 0, 4, 8)]
    tab.choose("Strategy", "roar, percent of words", ".masked")
    assert texts(tab, ".masked label:has-text('Measure') option") == ["attention"]
    # What was chosen stays chosen.
    tab.choose("Strategy", "recursive, percent of words", ".masked")
    tab.choose("Measure", "gradient", ".masked")
    tab.page.keyboard.press("Tab")
    tab.page.click("button:has-text('Next')")
    stands_at(tab, "test 2")
    assert tab.field("Measure", ".masked").input_value() == "gradient"


def test_models_with_subwords_show_their_own(opened: Callable[..., Any]) -> None:
    tab = opened("#sst/plain/roberta/0/test/2")
    assert [word.text_content() for word in rows(tab)["gradient"]] == ["<s>", "Ġpie", "ces", "</s>"]
    assert "question: Ġwho2 Ġis ?" in tab.page.inner_text(".second")


def test_images_are_drawn_under_each_map_with_the_region(opened: Callable[..., Any]) -> None:
    tab = opened("#dots/plain/resnet/0/test/2")
    assert texts(tab, ".map .chip") == ["image", "grad-cam", "random"]
    pixels = "e => [...e.getContext('2d').getImageData(0, 0, 2, 1).data]"
    plain, *maps = tab.page.query_selector_all(".map canvas")
    assert plain.get_attribute("width") == str(SIDE)
    assert plain.evaluate(pixels) == [255, 0, 0, 255, 80, 80, 80, 255]
    # Where a map is nothing or anything, its colour lies between pale grey and red or blue.
    for canvas in maps:
        red, green, blue, _ = canvas.evaluate(pixels)[4:]
        assert green <= 140 + 0.45 * 80 + 1 and (red, green, blue) != (80, 80, 80)
    assert len(tab.page.query_selector_all(".frame svg path")) == 3
    assert "inside the outline" in maps[0].get_attribute("aria-label")
    assert tab.page.query_selector_all(".instance canvas.thumb") and not tab.field("Search").is_visible()
    tab.page.click("summary:text-is('Scores as a table')")
    tab.page.wait_for_selector(".stage table")
    assert texts(tab, "tbody th") == ["grad-cam", "random"]


def test_links_lead_to_an_instance_and_survive_reload_and_back(opened: Callable[..., Any]) -> None:
    tab = opened("#sst/plain/average/1/test/3")
    stands_at(tab, "test 3")
    assert tab.field("Model").input_value() == "average" and tab.field("Seed").input_value() == "1"
    tab.page.reload()
    stands_at(tab, "test 3")
    tab.page.click("button:has-text('Next')")
    stands_at(tab, "test 4")
    assert tab.page.url.endswith("#sst/plain/average/1/test/4")
    tab.choose("Model", "roberta")
    tab.page.wait_for_selector(".panel[aria-label='roberta, seed 1']")
    assert tab.page.url.endswith("#sst/plain/roberta/1/test/4")
    tab.page.go_back()
    tab.page.wait_for_selector(".panel[aria-label='average, seed 1']")
    tab.page.go_back()
    stands_at(tab, "test 3")


@pytest.mark.parametrize(
    ("link", "reached"),
    [
        ("", "#sst/plain/bilstm/0/test/0"),
        ("#nothing/at/all", "#sst/plain/bilstm/0/test/0"),
        ("#sst/articles", "#sst/articles/bilstm/0/test/0"),
        ("#sst/none/average/7/dev/2", "#sst/plain/average/0/test/2"),
        ("#dots/plain/resnet/1/test/999", "#dots/plain/resnet/1/test/0"),
        ("#%zz/%", "#sst/plain/bilstm/0/test/0"),
        ("#sst/plain/bilstm/0/test/1/average/9", "#sst/plain/bilstm/0/test/1/average/0"),
    ],
)
def test_unknown_parts_of_a_link_are_ignored(opened: Callable[..., Any], link: str, reached: str) -> None:
    tab = opened(link)
    assert tab.page.url.endswith(reached)


def test_datasets_and_variants_are_chosen(opened: Callable[..., Any]) -> None:
    tab = opened()
    tab.choose("Variant", "articles")
    tab.page.wait_for_selector(".stage:has-text('before the dataset was changed')")
    tab.choose("Dataset", "dots")
    tab.page.wait_for_selector(".map")
    assert not tab.field("Variant").is_visible()
    tab.page.go_back()
    tab.page.wait_for_selector(".measure")
    assert tab.field("Variant").input_value() == "articles"


def test_two_models_are_shown_side_by_side(opened: Callable[..., Any]) -> None:
    tab = opened("#sst/plain/bilstm/0/test/2")
    tab.field("Compare with").select_option(label="average, seed 1")
    tab.page.wait_for_selector(".panel + .panel")
    assert texts(tab, ".whose") == ["bilstm, seed 0", "average, seed 1"]
    assert tab.page.url.endswith("/bilstm/0/test/2/average/1")
    tab.page.click("button:has-text('Next')")
    stands_at(tab, "test 3")
    assert len(tab.page.query_selector_all(".panel")) == 2
    tab.choose("Compare with", "")
    tab.page.wait_for_selector(".panel + .panel", state="detached")


def test_the_list_is_filtered_and_sorted(opened: Callable[..., Any]) -> None:
    tab = opened()
    assert listed(tab) == [f"test {i}" for i in range(6)]
    tab.choose("Outcome", "0")
    assert listed(tab) == ["test 4", "test 5"] and "2 of 6 instances match" in tab.page.inner_text(".finder .count")
    tab.choose("Class", "1")
    assert listed(tab) == ["test 5"]
    tab.choose("Predicted", "1")
    assert listed(tab) == []
    for label in ("Outcome", "Class", "Predicted"):
        tab.choose(label, "")
    tab.choose("Sort by", "probability")
    assert listed(tab) == [f"test {i}" for i in (1, 3, 4, 0, 2, 5)]
    tab.page.click("button.reverse")
    assert listed(tab) == [f"test {i}" for i in (0, 2, 5, 1, 3, 4)]
    tab.choose("Sort by", "tau")
    means = []
    for title in listed(tab):
        tab.page.click(f".instance:has(b:text-is('{title}'))")
        stands_at(tab, title)
        means.append(float(tab.page.inner_text(".summary:has-text('Mean τ') b").replace("−", "-")))
    assert means == sorted(means, reverse=True) and len(set(means)) > 2


def test_a_click_counts_though_the_list_is_repainted_meanwhile(opened: Callable[..., Any]) -> None:
    tab = opened()
    box = tab.page.locator(".instance:has(b:text-is('test 3'))").bounding_box()
    tab.page.mouse.move(box["x"] + 9, box["y"] + 9)
    tab.page.mouse.down()
    # As when texts arrive.
    tab.page.evaluate("dispatchEvent(new Event('resize'))")
    tab.page.mouse.up()
    stands_at(tab, "test 3")
    tab.page.eval_on_selector("#instance-1", "row => row.click()")
    stands_at(tab, "test 1")


def test_keys_move_and_leave_fields_alone(opened: Callable[..., Any]) -> None:
    tab = opened()
    for key, title in (("j", "test 1"), ("ArrowRight", "test 2"), ("k", "test 1"), ("ArrowLeft", "test 0")):
        tab.page.keyboard.press(key)
        stands_at(tab, title)
    tab.page.focus(".list")
    for key, title in (("End", "test 5"), ("ArrowUp", "test 4"), ("Home", "test 0"), ("ArrowDown", "test 1")):
        tab.page.keyboard.press(key)
        stands_at(tab, title)
    assert tab.page.get_attribute(".list", "aria-activedescendant") == "instance-1"
    assert tab.page.get_attribute("#instance-1", "aria-selected") == "true"
    tab.page.keyboard.press("/")
    assert tab.page.evaluate("document.activeElement.type") == "search"
    tab.page.keyboard.type("jk")
    assert tab.field("Search").input_value() == "jk" and texts(tab, ".bar h2") == ["test 1"]


def test_words_under_the_pointer_are_marked_in_every_row(opened: Callable[..., Any]) -> None:
    tab = opened("#sst/plain/average/0/test/0")
    rows(tab)["gradient"][3].hover()
    assert texts(tab, ".word.same") == [HOSTILE[2]] * 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_letters_can_be_read(opened: Callable[..., Any], scheme: str) -> None:
    tab = opened("#sst/plain/bilstm/0/test/1", width=390, scheme=scheme)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    shaded = tab.page.query_selector_all(f"{WORDS}[style]")
    colours = "e => ['color', 'backgroundColor'].map((key) => getComputedStyle(e)[key].match(/\\d+/g).map(Number))"
    assert shaded and min(contrast(*word.evaluate(colours)) for word in shaded) >= 4.5


def contrast(one: list[int], other: list[int]) -> float:
    """The contrast ratio, as defined by WCAG."""

    def luminance(colour: list[int]) -> float:
        parts = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        return sum(part * weight for part, weight in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))

    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("link", ["#sst/plain/bilstm/1/test/1", "#sst/articles/bilstm/0/test/0", "#dots"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_accessibility_violation(opened: Callable[..., Any], link: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    tab = opened(link, scheme=scheme)
    tab.page.click("summary:text-is('Scores as a table')")
    tab.page.wait_for_selector(".stage table")
    found = axe.Axe().run(tab.page, options={"preload": False}).response
    assert "color-contrast" in {rule["id"] for rule in found["passes"]}
    assert [(fault["id"], [node["html"] for node in fault["nodes"]][:3]) for fault in found["violations"]] == []


def test_missing_files_are_reported(tmp_path: Path, tab: Callable[..., Any]) -> None:
    (tmp_path / "tables").mkdir()
    page = write_explorer(tmp_path / "site", everything(tmp_path / "tables"), ALL)
    (tmp_path / "site/explorer/0/1/0/explanations/0.js").unlink()
    found = tab(page.as_uri() + "#sst/plain/average/0/test/1")
    found.page.wait_for_selector("[role=alert]")
    assert "explorer/0/1/0/explanations/0.js cannot be loaded" in found.page.inner_text("[role=alert]")
    assert found.errors
    found.errors.clear()


def test_a_study_without_instances_has_a_message(tmp_path: Path, tab: Callable[..., Any]) -> None:
    page = write_explorer(tmp_path / "site", [], ALL)
    assert "There are no instances to show" in tab(page.as_uri()).page.inner_text("#explorer")


def test_a_hundred_thousand_instances_load_at_once(many: str, tab: Callable[..., Any]) -> None:
    found = tab(many)
    found.page.wait_for_selector(f"{WORDS}[style]")
    # Milliseconds since the browser went to the address.
    first = found.page.evaluate("performance.now()") / 1000
    started = time.perf_counter()
    found.page.evaluate("location.hash = '#many/plain/bilstm/0/test/99999'")
    stands_at(found, f"test {MANY - 1}")
    jump = time.perf_counter() - started
    assert found.page.get_attribute('[aria-selected="true"]', "id") == f"instance-{MANY - 1}"
    assert len(found.page.query_selector_all(".instance")) < 60
    started = time.perf_counter()
    found.choose("Sort by", "tau")
    found.page.focus(".list")
    found.page.keyboard.press("Home")
    found.page.wait_for_selector('.bar .count:text-is("1 of 100\u202f000")')
    sorting = time.perf_counter() - started
    started = time.perf_counter()
    found.field("Search").fill("needle")
    found.page.wait_for_selector("progress[value]:not([hidden])")
    stands_at(found, "test 77777")
    searched = time.perf_counter() - started
    times = (
        f"first heatmap {first:.2f} s, last instance {jump:.2f} s, sorted {sorting:.2f} s, searched {searched:.2f} s"
    )
    print(f"\n{MANY} instances: {times}")
    assert "1 of 100\u202f000 instances match" in found.page.inner_text(".finder .count")
    assert first < SOON and jump < SOON and sorting < SOON
    assert found.page.evaluate("document.querySelectorAll('script').length") < 10
