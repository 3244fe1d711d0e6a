"""The built site in a real browser: links, requests, search, accessibility, phones."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

import findwell
from tests.browsing import PHONE, Watched, accessible, browser, expect, fits_a_phone, watched
from tests.lazy import lazy
from tests.members import over

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator

__all__ = ["browser", "watched"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

ROOT = Path(__file__).parents[2]
PAGES = (
    "index",
    "start/first-evaluation",
    "learn/ranking",
    "reference/measures/found",
    "reference/commands/score",
    "glossary",
    "reference/errors",
)
FETCHED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src")}


class Collected(HTMLParser):
    """The names in a page that can be linked to, its links, and what it fetches."""

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at an element."""
        for key, value in attrs:
            if value is None:
                continue
            if key == "id" or (tag, key) == ("a", "name"):
                self.names.add(value)
            elif (tag, key) == ("a", "href"):
                self.links.append(value)
            elif (tag, key) in FETCHED:
                self.fetched.append(value)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does, beside one that may stand in the project."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("src", "website"):  # paths in mkdocs.yml start from its own folder
        (folder / name).symlink_to(ROOT / name)
    (folder / "mkdocs.yml").write_bytes((ROOT / "mkdocs.yml").read_bytes())
    lazy("website.__main__").assemble(folder / ".site" / "docs")
    done = subprocess.run(
        [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / ".site" / "html"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site on this machine."""
    handler = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(timeout=10)


def test_every_link_leads_somewhere_and_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    pages = {path: Collected(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > 70
    dead, outside = [], []
    for path, page in pages.items():
        # links of the first start at the root of a server, those of a report choose queries
        if path.name in ("404.html", "demo-report.html"):
            continue
        outside += [(path.name, url) for url in page.fetched if urlsplit(url).netloc]
        for link in page.links + page.fetched:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            place, anchor = urldefrag(link)
            target = (path.parent / unquote(urlsplit(place).path)).resolve() if place else path
            if target.is_dir():
                target /= "index.html"
            known = pages[target].names if target in pages else set()
            if not target.exists() or (anchor and unquote(anchor) not in known):
                dead.append((str(path.relative_to(site)), link))
    assert not dead
    assert not outside


def test_a_page_opens_from_the_disk(site: Path, watched: Watched) -> None:
    page = watched.page
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="Your first evaluation: five minutes").click()
    expect(page.locator("h1")).to_contain_text("Your first evaluation")
    assert watched.asked
    assert not [url for url in watched.asked if not url.startswith(("file:", "data:"))]


def test_search_works_without_a_network(address: str, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{address}/index.html")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("input:focus")).to_be_visible()
    page.keyboard.type("recall")
    result = page.locator("a[href*='measures/found.html?h=recall#recall']")
    expect(result).to_contain_text("recall", timeout=30_000)
    result.click()
    expect(page.locator("h1")).to_contain_text("Was it found?")
    watched.require_quiet()


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_accessible_quiet_and_fit(name: str, address: str, watched: Watched) -> None:
    page = watched.page
    page.emulate_media(reduced_motion="reduce")  # colours that fade in are pale for a moment
    page.goto(f"{address}/{name}.html")
    accessible(page)
    fits_a_phone(page)
    accessible(page)
    watched.require_quiet()


@pytest.mark.parametrize("name", PAGES[:2])
def test_dark_pages_are_accessible(name: str, address: str, watched: Watched) -> None:
    page = watched.page
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.goto(f"{address}/{name}.html")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    accessible(page)


def test_wide_tables_scroll_in_their_frame(address: str, watched: Watched) -> None:
    page = watched.page
    page.set_viewport_size(PHONE)
    page.goto(f"{address}/how-to/move.html")
    frame = page.locator(".md-typeset__scrollwrap").first
    expect(frame).to_have_attribute("tabindex", "0")
    assert frame.evaluate("each => each.scrollWidth > each.clientWidth")
    fits_a_phone(page)


def test_the_ranked_list_shows_the_values_of_findwell(address: str, watched: Watched) -> None:
    page = watched.page
    page.goto(f"{address}/learn/ranking.html")
    grades, missed = [0, 3, 0, 1, 0, 0, 2, 0], {"missed": 1}
    names = [f"d{number}" for number in range(len(grades))]
    measures = ["recall@5", "P@5", "RR", "AP", "nDCG@5"]

    def agree() -> None:
        gold = {name: grade for name, grade in zip(names, grades, strict=True) if grade} | missed
        expected = findwell.evaluate({"q": names}, {"q": gold}, measures).values
        shown = page.locator(".ranked-list__values dd b").all_inner_texts()
        assert shown == [f"{expected[name]:.3f}" for name in measures]

    agree()
    page.get_by_role("button", name="Move passage G up").click()  # to rank 6
    grades[5], grades[6] = grades[6], grades[5]
    agree()
    page.get_by_role("button", name="Move passage G up").click()  # across the cutoff
    grades[4], grades[5] = grades[5], grades[4]
    agree()
    rows = page.locator(".ranked-list__passages li")
    rows.nth(1).drag_to(rows.nth(7))  # B, the best passage, to the end
    grades.append(grades.pop(1))
    expect(rows.nth(7)).to_contain_text("B")
    agree()
    watched.require_quiet()


CUT = """() => {
  const svg = document.documentElement, [, , width, height] = svg.getAttribute("viewBox").split(" ");
  const within = ({ x, y, width: w, height: h }) => x >= 0 && y >= 0 && x + w <= width && y + h <= height;
  const cut = [...svg.querySelectorAll("text")].filter((each) => !within(each.getBBox()));
  return cut.map((each) => each.textContent);
}"""  # noqa: E501


@over(picture=sorted((ROOT / "docs" / "images" / "learn").glob("*.svg")))
def test_no_label_of_a_diagram_is_cut(picture: Path, watched: Watched) -> None:
    watched.page.goto(picture.as_uri())
    assert watched.page.evaluate(CUT) == []


def test_a_finger_drags_a_passage_and_still_scrolls(address: str, browser: Browser) -> None:
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{address}/learn/ranking.html")
    rows = page.locator(".ranked-list__passages li")
    touch = context.new_cdp_session(page)

    def swipe(place: Locator, onto: Locator) -> None:
        """Draw a finger from the middle of a place up to another row."""
        start, end = place.bounding_box(), onto.bounding_box()
        assert start is not None
        assert end is not None
        x, y = start["x"] + start["width"] / 2, start["y"] + start["height"] / 2
        far = end["y"] + end["height"] / 2 - y
        for step in range(9):
            kind = "touchMove" if step else "touchStart"
            point = {"x": x, "y": y + far * step / 8}
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    page.evaluate("document.querySelector('.ranked-list').scrollIntoView({block: 'center'})")
    swipe(rows.nth(6).locator(".ranked-list__grip"), rows.nth(3))
    expect(rows.nth(3)).to_contain_text("G")
    order = rows.locator(".ranked-list__grip").all_inner_texts()
    at = page.evaluate("scrollY")
    swipe(rows.nth(6).locator("b"), rows.nth(2))  # on the words: the page moves, the list does not
    page.wait_for_function("at => scrollY > at + 40", arg=at)
    assert rows.locator(".ranked-list__grip").all_inner_texts() == order
    context.close()
