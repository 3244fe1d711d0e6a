"""The served page in a real browser: search, comparison, slices, links, news, and safety."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests import hostile
from tests.browsing import search

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
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_the_list_searches_sorts_and_opens(opened: Watched) -> None:
    page = opened.page
    assert "token" not in page.url
    page.get_by_label("Search").fill("tuesday")
    expect(page.locator("#results tbody tr:visible")).to_have_count(1)
    page.get_by_label("Search").fill("")
    page.get_by_role("button", name="Result").click()
    assert page.locator("#results tbody th").all_inner_texts() == ["monday", "nightly/tuesday"]
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
    command = [sys.executable, "-m", "karat", "view", str(results)]
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
