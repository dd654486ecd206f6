"""A browser, and the report of a small study in it."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from plumbline.report.build import write_site
from tests.reports import content, page_names


@dataclass
class Tab:
    """A page of the browser, and its errors."""

    page: Any
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("requestfailed", lambda request: self.errors.append(request.url))
        self.page.on("console", self._heard)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def shown(self, selector: str) -> list[Any]:
        """The elements that are not hidden."""
        return [element for element in self.page.query_selector_all(selector) if element.is_visible()]

    def field(self, label: str, within: str = "body") -> Any:
        """The field with this label in a part of the page."""
        return self.page.locator(f'{within} label:has(> span:text-is("{label}")) :is(select, input)')

    def choose(self, label: str, value: str, within: str = "body") -> None:
        """Choose a value that a field offers."""
        self.field(label, within).select_option(value)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The system's Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if binary is None:
        pytest.skip("no Chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=binary, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Any) -> Iterator[Callable[..., Tab]]:
    """Opens an address in a new tab, which must have no errors at the end of the test."""
    tabs: list[Tab] = []

    def open_(address: str, scheme: str = "light", width: int = 1280) -> Tab:
        # Without smooth scrolling, a link's target is where it stays at once.
        context = chromium.new_context(
            color_scheme=scheme, reduced_motion="reduce", viewport={"width": width, "height": 800}
        )
        tabs.append(Tab(context.new_page()))
        tabs[-1].page.goto(address)
        return tabs[-1]

    yield open_
    errors = [error for one in tabs for error in one.errors]
    for one in tabs:
        one.page.context.close()
    assert errors == []


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report with every page."""
    folder = tmp_path_factory.mktemp("site")
    study = content()
    write_site(folder, study, page_names(study))
    return folder
