"""The report in a real browser: it sorts, filters, opens failures, and asks nobody anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findwell.show.page import page as make_page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from tests import hostile
from tests.browsing import accessible, expect, fits_a_phone, picker, search

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browsing import Watched

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def column(page: Page, place: int) -> list[str]:
    return page.locator(f"#query-rows > tr:not(.detail) > td:nth-child({place})").all_inner_texts()


def test_it_opens_on_the_failures(opened: Watched) -> None:
    page = opened.page
    assert page.locator("#chips [aria-pressed=true]").inner_text() == "worse with minilm (9)"
    for one, other in zip(column(page, 2), column(page, 3), strict=True):
        assert float(other) < float(one)
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
    head = page.locator("#where-minilm th button", has_text="difference").first
    head.click()
    first = page.locator("#where-minilm table").first
    gains = [
        float(each.replace("−", "-")) for each in first.locator("td:nth-child(5)").all_inner_texts()
    ]
    assert gains == sorted(gains)
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
    page.locator(".chunk").first.wait_for()
    assert page.locator(".side h3").all_inner_texts() == ["bm25", "minilm"]
    assert page.locator(".side >> nth=1").locator(".chunk.hit").count() > 0
    assert "recall@5 (findwell) = " in page.locator(".steps").first.inner_text()
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
    page.locator(".chunk").first.wait_for()
    opened.require_quiet()


def pressed(page: Page) -> str | None:
    return page.locator("#chips [aria-pressed=true]").get_attribute("data-filter")


def test_back_and_forward_go_through_filters_sorts_and_queries(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=better]").click()
    page.locator("[data-sort=q]").click()
    sorted_by_name = column(page, 1)
    page.locator("#query-rows button").nth(2).click()
    page.locator(".chunk").first.wait_for()
    page.go_back()
    expect(page.locator("tr.detail")).to_have_count(0)
    assert column(page, 1) == sorted_by_name
    page.go_back()
    expect(page.locator("[data-sort=q]").locator("..")).not_to_have_attribute(
        "aria-sort", "ascending"
    )
    assert pressed(page) == "better"
    page.go_back()
    expect(page.locator("[data-filter=worse]")).to_have_attribute("aria-pressed", "true")
    assert "=" not in page.url
    page.go_forward()
    page.go_forward()
    page.go_forward()
    page.locator(".chunk").first.wait_for()
    assert column(page, 1) == sorted_by_name
    opened.require_quiet()


def test_a_search_is_one_step_back(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=all]").click()
    page.locator("#search").press_sequentially("battery")
    expect(page.locator("#query-count")).not_to_have_text("95 queries")
    page.go_back()
    expect(page.locator("#query-count")).to_have_text("95 queries")
    assert pressed(page) == "all"
    assert page.locator("#search").input_value() == ""


def test_a_link_to_a_section_leaves_the_queries_as_they_are(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=better]").click()
    page.get_by_role("navigation").get_by_role("link", name="Cutoffs").click()
    assert pressed(page) == "better"
    page.locator("[data-filter=all]").click()
    page.go_back()
    expect(page.locator("[data-filter=better]")).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(page.locator("[data-filter=better]")).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(page.locator("[data-filter=worse]")).to_have_attribute("aria-pressed", "true")
    opened.require_quiet()


def test_a_link_to_a_query_leads_to_it(watched: Watched, report: str) -> None:
    page = watched.page
    page.goto(f"{report}#query=q88&show=all&sort=q")
    page.locator(".chunk").first.wait_for()
    row = page.locator("tr.open")
    assert "q88" in row.inner_text()
    box = row.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 200  # of a table that is longer than the screen
    watched.require_quiet()


def focused(page: Page) -> str | None:
    found: str | None = page.evaluate("document.activeElement.dataset.query || null")
    return found


def test_keys(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=all]").click()
    page.locator("[data-sort=q]").click()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    assert focused(page) == "q01"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert focused(page) == "q02"
    assert page.locator("tr.detail").count() == 0
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    assert focused(page) == "q03"
    assert "q03" in page.locator("tr.open").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("tr.detail").count() == 0
    assert focused(page) == "q03"
    page.keyboard.press("/")
    page.keyboard.type("jk/?")  # there they are letters
    assert page.locator("#search").input_value() == "jk/?"
    assert not page.locator("#keys").is_visible()
    search(page, "")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    accessible(page)
    page.locator("#use-keys").uncheck()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") != "search"
    opened.require_quiet()


def test_j_goes_on_where_the_page_ends(opened: Watched) -> None:
    page = opened.page
    page.locator("[data-filter=all]").click()
    assert page.locator("[data-query]").count() == 50
    page.locator("[data-query]").last.focus()
    page.keyboard.press("j")
    assert page.locator("[data-query]").count() == 95
    assert focused(page) == page.locator("[data-query]").nth(50).get_attribute("data-query")


def test_links_of_the_overview_lead_to_the_queries(opened: Watched) -> None:
    page = opened.page
    page.get_by_role("link", name="which").click()
    assert page.locator("#chips [aria-pressed=true]").inner_text() == "no value (4)"
    assert set(column(page, 2)) == {"–"}
    opened.require_quiet()


def test_the_verdict_and_the_causes_filter_the_queries(opened: Watched) -> None:
    page = opened.page
    for word, filter_of in (("won 31", "better"), ("tied 51", "tied"), ("lost 9", "worse")):
        page.locator("#overview").get_by_role("link", name=word).click()
        assert pressed(page) == filter_of
        expect(page.locator("#query-count")).to_have_text(f"{word.split()[1]} queries")
    page.keyboard.press("Enter")  # the keyboard goes on in the list
    assert page.locator("tr.open").count() == 1
    page.locator("#causes tbody tr").nth(1).get_by_role("link", name="24").click()
    chosen = page.locator("#chips [aria-pressed=true]")
    assert chosen.inner_text() == "minilm: below the cutoff (24)"
    page.locator("[data-filter=all]").click()
    assert page.locator("[data-filter=missed]").count() == 0
    page.go_back()
    expect(page.locator("[data-filter=missed]")).to_have_attribute("aria-pressed", "true")
    opened.require_quiet()


def test_shared_chunks_lead_to_each_other(watched: Watched, report: str) -> None:
    page = watched.page
    page.goto(f"{report}#query=q41&show=all")
    page.locator(".chunk").first.wait_for()
    first, second = page.locator(".side").all()
    link = first.locator(".moved:visible", has_text="to rank").first
    said, chunk = link.inner_text(), link.locator("xpath=ancestor::li")
    name = chunk.locator(".doc").inner_text()
    other = second.locator(".chunk", has=page.locator(f".doc:text-is('{name}')"))
    assert not other.is_visible()  # it stands below the ranks that are shown
    link.click()
    assert other.is_visible()
    assert other.locator(".moved").evaluate("(node) => node === document.activeElement")
    before, after = (int(each.locator(".rank").inner_text()) for each in (chunk, other))
    assert said.startswith(f"↓{after - before} to rank {after}")
    assert other.locator(".moved").inner_text().startswith(f"↓{after - before} from rank {before}")
    assert page.locator(".chunk.only").count() > 0
    page.get_by_role("button", name="Label this").first.click()
    assert "findwell labels pool " in page.locator(".command:visible code").inner_text()
    watched.require_quiet()


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
        .filter((each) => each.checkVisibility() && !each.matches('[tabindex="-1"]')).length"""
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
    fits_a_phone(page)


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
