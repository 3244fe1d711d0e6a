"""A real browser for the tests: Debian's Chromium, headless, that asks nobody outside."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import pytest

from tests.lazy import lazy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Route, ViewportSize

playwright = lazy("playwright.sync_api")
PHONE: ViewportSize = {"width": 390, "height": 844}
CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass
class Watched:
    """A page, what it complained about, and whom it asked."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def require_quiet(self) -> None:
        """Fail if the page complained, ran what it was told, or asked anybody else."""
        assert not self.complaints
        assert not [url for url in self.asked if not url.startswith(("file:", "http://127.0.0.1:"))]
        assert self.page.evaluate("window.hacked") is None


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start the browser; while it runs, no test of this process can have an event loop."""
    if CHROMIUM is None:
        pytest.skip("no chromium; `make slow` installs it")
    with playwright.sync_playwright() as tool:
        started = tool.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield started
        started.close()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """Open a fresh page that refuses to ask anybody but this machine."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found = Watched(context.new_page())

    def told(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            found.complaints.append(message.text)

    def gate(route: Route) -> None:
        url = route.request.url
        found.asked.append(url)
        if url.startswith(("file:", "http://127.0.0.1:")):
            route.continue_()
        else:
            route.abort()

    found.page.on("console", told)
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.on("dialog", lambda dialog: found.complaints.append(dialog.message))
    context.route("**/*", gate)
    yield found
    context.close()


def expect(seen: Page | Locator) -> Any:
    """Return what can be said about a page or a part of it."""
    return playwright.expect(seen)


def search(page: Page, words: str) -> None:
    """Search the queries of a report, and wait until that is what is shown."""
    page.locator("#search").fill(words)
    told = re.compile(f"search={re.escape(quote_plus(words))}(&|$)")
    if words:
        expect(page).to_have_url(told)
    else:
        expect(page).not_to_have_url(re.compile("search="))


def accessible(page: Page) -> None:
    """Fail if axe finds anything that keeps people from reading a page."""
    found = lazy("axe_playwright_python.sync_playwright").Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def picker(page: Page, label: str) -> Locator:
    """Return the choice of a report with this label."""
    return page.locator("#pickers label", has_text=label).locator("select")


def fits_a_phone(page: Page) -> None:
    """Fail if a page is wider than the screen of a phone."""
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
