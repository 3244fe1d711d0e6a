"""The served page in a real browser: search, comparison, slices, links, news, and safety."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from findwell.evaluation.results.notes import ResultNotes, write_notes
from tests import hostile
from tests.browsing import expect, search
from tests.lazy import lazy
from tests.web.test_results_list import dated

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browsing import Watched
    from tests.web.conftest import Served

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture
def opened(watched: Watched, served: Served) -> Watched:
    watched.page.goto(served.url)
    return watched


def accessible(page: Page) -> None:
    found = lazy("axe_playwright_python.sync_playwright").Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_the_list_searches_sorts_and_opens(opened: Watched) -> None:
    page = opened.page
    assert "token" not in page.url
    page.get_by_label("Search").fill("tuesday")
    expect(page.locator("#results tbody tr:visible")).to_have_count(1)
    page.get_by_label("Search").fill("")
    page.get_by_role("button", name="Result").click()
    assert page.locator("#results tbody th a").all_inner_texts() == ["monday", "nightly/tuesday"]
    accessible(page)
    page.get_by_role("link", name="monday", exact=True).click()
    expect(page.locator("#query-rows tr").first).to_be_visible()
    opened.require_quiet()


def test_search_open_and_compare_two_results(opened: Watched) -> None:
    page = opened.page
    for box in page.locator("#results input[type=checkbox]").all():
        box.check()
    page.get_by_role("button", name="side by side").click()
    page.locator("#pick-a").select_option(index=0)
    page.locator("#pick-b").select_option(index=4)
    page.locator("[data-filter=all]").click()
    search(page, "error code")
    page.locator("#query-rows button").first.click()
    expect(page.locator(".side h3")).to_have_count(2)
    expect(page.locator(".chunk").first).to_be_visible()
    names = page.locator(".side h3").all_inner_texts()
    assert len(set(names)) == 2
    accessible(page)
    asked = page.url
    page.goto("about:blank")
    page.goto(asked)
    expect(page.locator(".side h3")).to_have_text(names)
    opened.require_quiet()


def test_a_slice_becomes_a_report(opened: Watched) -> None:
    page = opened.page
    page.get_by_role("link", name="monday", exact=True).click()
    page.locator("select[name=slice]").select_option("wording:paraphrase")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".lede")).to_contain_text("44 queries")
    page.locator("#query-rows button").first.click()
    expect(page.locator(".chunk").first).to_be_visible()
    opened.require_quiet()


def test_a_new_result_appears_by_itself(opened: Watched, served: Served) -> None:
    page = opened.page
    expect(page.locator("#results tbody tr")).to_have_count(2)
    shutil.copytree(served.folder / "monday", served.folder / "wednesday")
    expect(page.get_by_role("link", name="wednesday")).to_be_visible(timeout=20_000)
    page.get_by_role("link", name="monday", exact=True).click()
    expect(page.locator("#query-rows tr").first).to_be_visible()
    shutil.copytree(served.folder / "monday", served.folder / "thursday")
    expect(page.locator("#news")).to_be_visible(timeout=20_000)
    opened.require_quiet()


def add(served: Served, name: str, created: str) -> None:
    """Save a result of another time."""
    shutil.copytree(served.folder / "monday", served.folder / name)
    dated(served.folder / name, created)


def test_ticks_and_search_survive_a_new_result_and_the_way_back(
    opened: Watched, served: Served
) -> None:
    page = opened.page
    page.get_by_label("Search").fill("day")
    page.get_by_label("Tick monday").check()
    expect(page.locator("#ticked")).to_have_text("1 result ticked: monday")
    page.get_by_label("Tick monday").focus()
    add(served, "wednesday", "2026-11-01T08:00:00+00:00")
    add(served, "other", "2026-11-02T08:00:00+00:00")
    expect(page.get_by_role("link", name="wednesday")).to_be_visible(timeout=20_000)
    expect(page.locator(".lede")).to_contain_text("4 results", timeout=20_000)
    expect(page.get_by_role("link", name="other")).to_be_hidden()  # it is not what was searched
    expect(page.get_by_label("Search")).to_have_value("day")
    expect(page.get_by_label("Tick monday")).to_be_checked()
    expect(page.get_by_label("Tick monday")).to_be_focused()
    page.get_by_label("Tick nightly/tuesday").check()
    page.get_by_role("link", name="monday", exact=True).click()
    expect(page.locator("#query-rows tr").first).to_be_visible()
    page.go_back()
    expect(page.locator("#ticked")).to_contain_text("2 results ticked")
    expect(page.get_by_label("Search")).to_have_value("day")
    page.reload()
    expect(page.get_by_label("Tick nightly/tuesday")).to_be_checked()
    page.get_by_role("button", name="Untick all").click()
    expect(page.get_by_label("Tick monday")).not_to_be_checked()
    opened.require_quiet()


def test_the_oldest_ticked_is_the_baseline_and_can_be_changed(
    watched: Watched, served: Served
) -> None:
    add(served, "old", "2026-11-01T08:00:00+00:00")
    page = watched.page
    page.goto(served.url)
    page.get_by_label("Tick monday").check()
    expect(page.get_by_label("Baseline")).to_be_hidden()
    page.get_by_label("Tick old").check()
    expect(page.get_by_label("Baseline")).to_have_value(value_of(page, "old"))
    accessible(page)
    page.get_by_role("button", name="side by side").click()
    expect(page.locator(".lede")).to_contain_text("baseline old/bm25")
    page.go_back()
    page.get_by_label("Baseline").select_option(value_of(page, "monday"))
    page.get_by_role("button", name="side by side").click()
    expect(page.locator(".lede")).to_contain_text("baseline monday/bm25")
    watched.require_quiet()


def value_of(page: Page, name: str) -> str:
    return page.get_by_label(f"Tick {name}").input_value()


def test_nothing_ticked_is_explained(opened: Watched) -> None:
    page = opened.page
    page.get_by_role("button", name="side by side").click()
    expect(page.locator("#ticked")).to_contain_text("Nothing is ticked")
    expect(page.locator("#results input").first).to_be_focused()
    assert page.url.endswith("/")
    accessible(page)
    opened.require_quiet()


def test_tags_and_notes_are_added_found_and_kept(opened: Watched, served: Served) -> None:
    page = opened.page
    page.get_by_role("button", name="Add tags or a note of monday").click()
    accessible(page)
    page.get_by_label("Tags, separated").fill("release, new chunker")
    page.get_by_label("Note", exact=True).fill("512 tokens <b>and</b> an overlap")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".label")).to_have_text(["release", "new chunker"])
    expect(page.locator(".remark")).to_have_text("512 tokens <b>and</b> an overlap")
    expect(page.get_by_role("button", name="Change the notes of monday")).to_be_focused()
    accessible(page)
    page.get_by_label("Search").fill("overlap chunker")
    expect(page.locator("#results tbody tr:visible")).to_have_count(1)
    page.reload()
    expect(page.locator(".label")).to_have_text(["release", "new chunker"])
    # somebody else writes while the dialog is open, which stays as it is
    page.get_by_role("button", name="Change the notes of monday").click()
    page.get_by_label("Note", exact=True).fill("mine")
    write_notes(served.folder / "monday", ResultNotes.of(["theirs"], "said meanwhile"))
    expect(page.locator(".label")).to_have_text(["theirs"], timeout=20_000)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("said meanwhile")
    expect(page.get_by_label("Note", exact=True)).to_have_value("mine")
    page.get_by_role("button", name="Replace theirs").click()
    expect(page.locator(".remark")).to_have_text("mine")
    assert [each for each in opened.complaints if "409" not in each] == []


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_list_fits_every_screen(
    width: int, theme: Literal["light", "dark"], watched: Watched, served: Served
) -> None:
    write_notes(served.folder / "monday", ResultNotes.of(["x" * 40], "y" * 300))
    long = "embedding-large-with-a-name-that-never-ends-" * 3
    add(served, long, "2026-11-01T08:00:00+00:00")
    page = watched.page
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    page.goto(served.url)
    for box in page.locator("#results input[type=checkbox]").all():
        box.check()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    frame = page.get_by_role("region", name="Results")
    assert frame.evaluate("(each) => each.scrollWidth - each.clientWidth") <= 1
    for text in ("95", "questions.jsonl", "recall@5", "before:"):
        expect(page.locator("#results tbody tr").first).to_contain_text(text)
    accessible(page)
    watched.require_quiet()


def test_times_are_told_as_people_say_them(watched: Watched, served: Served) -> None:
    hours = datetime.now(UTC) - timedelta(hours=3, minutes=5)
    add(served, "early", hours.isoformat(timespec="seconds"))
    watched.page.goto(served.url)
    row = watched.page.locator("tr", has=watched.page.get_by_role("link", name="early"))
    expect(row.locator("time")).to_have_text("3 hours ago")
    expect(row.locator("time")).to_have_attribute("title", re.compile(r"\d{4}-\d\d-\d\d .* UTC"))


def test_a_first_opening_says_so_and_keeps_the_link(watched: Watched, served: Served) -> None:
    page = watched.page
    page.add_init_script(
        """addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => {
        const told = document.querySelector(".opening");
        if (told) sessionStorage.told = told.textContent; }))"""
    )
    page.goto(served.url)
    address = page.get_by_role("link", name="monday", exact=True).get_attribute("href")
    page.goto(page.url.rstrip("/") + f"{address}#query=q02")
    expect(page.locator(".chunk").first).to_be_visible()
    assert "Opening monday" in page.evaluate("sessionStorage.told")
    assert "wait" not in page.url
    assert "query=q02" in page.url
    watched.require_quiet()


def test_nothing_hostile_runs(watched: Watched, served: Served, hostile_folder: Path) -> None:
    shutil.copytree(hostile_folder, served.folder / "<img src=x onerror=window.hacked=1>")
    page = watched.page
    page.goto(served.url)
    page.get_by_role("link", name="<img src=x").click()
    page.locator("[data-filter=all]").click()
    for number in range(len(hostile.ATTACKS)):
        page.locator("#query-rows tr:not(.detail) button").nth(number).click()
        expect(page.locator(".chunk").first).to_be_visible()
    assert page.locator("main script, main img").count() == 0
    watched.require_quiet()


def test_another_page_can_neither_read_nor_frame_it(watched: Watched, served: Served) -> None:
    page = watched.page
    page.goto(served.url)
    base = re.sub(r"\?.*", "", served.url)
    page.goto("about:blank")
    read = page.evaluate(
        """(url) => fetch(url, {credentials: 'include'}).then((answer) => answer.text(),
        () => 'refused')""",
        base,
    )
    assert "monday" not in read
    page.evaluate(
        """(url) => { const frame = document.createElement('iframe'); frame.src = url;
        document.body.append(frame); }""",
        base,
    )
    page.wait_for_timeout(300)
    for frame in page.frames[1:]:
        assert "monday" not in (frame.locator("body").inner_text() if frame.url != base else "")


def test_the_command_serves_this_machine_and_stops(watched: Watched, results: Path) -> None:
    command = [sys.executable, "-m", "findwell", "view", str(results)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None
        url = run.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", url)
        watched.page.goto(url)
        expect(watched.page.get_by_role("link", name="monday", exact=True)).to_be_visible()
        watched.require_quiet()
        watched.page.goto("about:blank")
        run.send_signal(signal.SIGINT)
        _, complaint = run.communicate(timeout=30)
    finally:
        run.kill()
        run.communicate()
    assert run.returncode in (0, 130)  # 0 where this process was started without Ctrl-C
    assert "Traceback" not in complaint
