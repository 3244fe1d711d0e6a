"""The report in a real browser: it sorts, filters, opens failures, and asks nobody anything."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import karat
from karat.reports.page import page as make_page
from karat.reports.panel import lay_side_by_side
from karat.reports.prepare import prepare
from tests import hostile
from tests.browsing import search

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browsing import Watched

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def report(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(make_page(prepare(lay_side_by_side([demo_folder]))), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(watched: Watched, report: str) -> Watched:
    watched.page.goto(report)
    return watched


def accessible(page: Page) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def column(page: Page, place: int) -> list[str]:
    return page.locator(f"#query-rows tr:not(.detail) > td:nth-child({place})").all_inner_texts()


def picker(page: Page, label: str) -> Locator:
    return page.locator("#pickers label", has_text=label).locator("select")


def test_it_opens_on_the_failures(opened: Watched) -> None:
    page = opened.page
    assert page.locator("#chips [aria-pressed=true]").inner_text().startswith("recall@5 is 0")
    for one, other in zip(column(page, 2), column(page, 3), strict=True):
        assert "0.0000" in (one, other)
    opened.require_quiet()
    assert opened.asked == [page.url]


def test_tables_sort(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=all]").click()
    page.locator("[data-sort=b]").click()
    values = [float(each) for each in column(page, 3) if each != "–"]
    assert values == sorted(values)
    assert page.locator("#query-head th:nth-child(3)").get_attribute("aria-sort") == "ascending"
    page.locator("[data-sort=b]").click()
    values = [float(each) for each in column(page, 3) if each != "–"]
    assert values == sorted(values, reverse=True)
    head = page.locator("#overview th button", has_text="nDCG@10")
    head.click()
    head.click()
    assert page.locator("#overview tbody th").all_inner_texts() == ["minilm", "bm25"]
    opened.require_quiet()


def test_search_and_filters_narrow_the_queries(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=all]").click()
    search(page, "error code")
    assert all("error code" in each.lower() for each in column(page, 1))
    assert 0 < len(column(page, 1)) < 20
    search(page, "no such words")
    assert page.locator("#query-empty").is_visible()
    search(page, "")
    picker(page, "wording").select_option("same words")
    expect(page.locator("#query-count")).to_have_text("51 queries")
    picker(page, "Measure").select_option("nDCG@10")
    expect(page.locator("#chips")).to_contain_text("nDCG@10 is 0")
    opened.require_quiet()


def test_a_failing_query_opens_with_two_systems_side_by_side(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=better]").click()
    page.locator("#query-rows button").first.click()
    assert page.locator(".side h3").all_inner_texts() == ["bm25", "minilm"]
    assert page.locator(".side >> nth=0").get_by_text("✗ missed").count() > 0
    assert page.locator(".side >> nth=1").locator(".chunk.hit").count() > 0
    assert "recall@5 (karat) = " in page.locator(".steps").first.inner_text()
    side = page.locator(".side").nth(1)
    assert side.locator(".chunk:visible").count() == 5
    side.get_by_role("button", name="Show ranks 6 to 20").click()
    assert side.locator(".chunk:visible").count() == 20
    opened.require_quiet()


def test_what_is_shown_is_a_link(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=worse]").click()
    picker(page, "kind").select_option("lookup")
    page.locator("#query-rows button").first.click()
    asked, rows = page.url, column(page, 1)
    page.goto("about:blank")
    page.goto(asked)
    assert column(page, 1) == rows
    assert page.locator(".chunk").count() > 0
    opened.require_quiet()


def test_links_of_the_overview_lead_to_the_queries(opened: Watched) -> None:
    page = opened.page
    page.get_by_role("link", name="which").click()
    assert page.locator("#chips [aria-pressed=true]").inner_text() == "no value (4)"
    assert set(column(page, 2)) == {"–"}
    opened.require_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(opened: Watched, scheme: str) -> None:
    page = opened.page
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.locator("#query-rows button").first.click()
    page.locator(".chunk").first.wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    accessible(page)
    opened.require_quiet()


def test_the_theme_can_be_chosen(opened: Watched) -> None:
    page = opened.page
    behind = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(behind)
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.evaluate(behind) != light
    page.emulate_media(color_scheme="dark")
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.evaluate(behind) == light


def test_the_keyboard_reaches_everything(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=none]").click()  # four rows, so that the walk is short
    wanted = page.evaluate(
        """[...document.querySelectorAll('a, button, input, select, summary, [tabindex="0"]')]
        .filter((each) => each.checkVisibility()).length"""
    )
    page.evaluate("document.activeElement.blur()")
    seen = page.evaluate_handle("new Set()")
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        page.evaluate("(seen) => seen.add(document.activeElement)", seen)
    reached = page.evaluate("(seen) => [...seen].filter((e) => e !== document.body).length", seen)
    assert reached >= wanted
    page.locator("#query-rows button").first.focus()
    page.keyboard.press("Enter")
    page.locator(".side").first.wait_for()
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"


def test_a_phone_needs_no_sideways_scrolling(opened: Watched) -> None:
    page = opened.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#query-rows button").first.click()
    page.locator(".chunk").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    accessible(page)


def test_nothing_hostile_runs(watched: Watched, hostile_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(make_page(prepare(lay_side_by_side([hostile_folder]))), encoding="utf-8")
    page = watched.page
    page.goto(path.as_uri())
    page.locator("[data-filter=all]").click()
    for number in range(len(hostile.ATTACKS)):
        page.locator("#query-rows tr:not(.detail) button").nth(number).click()
        page.locator(".chunk").first.wait_for()
        assert page.locator("main script, main img, .detail b, .detail svg[onload]").count() == 0
    shown = page.locator("#query-rows").inner_text()
    assert "<script>window.hacked=1</script>" in shown
    assert "\\u202egnp.exe" in shown
    watched.require_quiet()
    accessible(page)


def test_a_script_that_got_in_would_not_run(opened: Watched) -> None:
    """The policy of the page is the second wall: prove that it stands."""
    page = opened.page
    page.evaluate(
        """() => {
        const script = document.createElement('script');
        script.textContent = 'window.hacked = 1';
        document.body.append(script);
        const image = document.createElement('div');
        image.innerHTML = '<img src="data:," onerror="window.hacked = 1">';
        document.body.append(image);
    }"""
    )
    page.wait_for_function("document.querySelector('img').complete")
    assert page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in each for each in opened.complaints)


def test_ten_thousand_queries_open_and_search(watched: Watched, tmp_path: Path) -> None:
    dice = random.Random(7)
    docs = {f"doc-{number}": "word " * 80 + str(number) for number in range(4000)}
    gold, run = [], []
    for number in range(10_000):
        wanted = dice.sample(list(docs), 2)
        gold.append({"query": f"q{number}", "question": f"Question {number}?", "gold": wanted})
        found = dice.sample(list(docs), 9) + wanted[: number % 3]
        run.append({"query": f"q{number}", "retrieved": found})
    corpus = [{"doc": doc, "text": text} for doc, text in docs.items()]
    result = karat.evaluate({"run": run}, gold, ["recall@10", "nDCG@10"], corpus=corpus, keep=20)
    path = tmp_path / "big.html"
    path.write_text(make_page(prepare(lay_side_by_side([result]))), encoding="utf-8")
    assert path.stat().st_size < 15_000_000
    page = watched.page
    page.goto(path.as_uri())
    assert page.locator("#query-rows tr").count() == 50
    page.locator("[data-filter=all]").click()
    search(page, "question 9999")
    page.get_by_text("Question 9999?").wait_for()
    watched.require_quiet()
