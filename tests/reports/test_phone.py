"""Reports on a phone: nothing is cut, nothing needs sideways scrolling, verdicts are in sight."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell
from tests.browsing import PHONE, accessible, expect, fits_a_phone

if TYPE_CHECKING:
    from tests.browsing import Watched

ROWS = ("open", "detail")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_on_a_phone_a_query_stands_under_its_row(opened: Watched) -> None:
    page = opened.page
    page.set_viewport_size(PHONE)
    page.locator("[data-filter=better]").click()
    page.locator("#query-rows button").first.click()
    page.locator(".picked .chunk").first.wait_for()
    fits_a_phone(page)
    row, detail = (page.locator(f"#query-rows tr.{name}").bounding_box() for name in ROWS)
    assert row is not None
    assert detail is not None
    assert (row["x"], row["width"]) == (detail["x"], detail["width"])
    assert 340 <= detail["width"] <= 390
    assert abs(row["y"] + row["height"] - detail["y"]) < 2
    # nothing around it scrolls or cuts
    assert not page.evaluate(
        """[...function* (node) { while ((node = node.parentElement)) yield node; }
        (document.querySelector("tr.detail"))].slice(0, -2)
        .some((each) => getComputedStyle(each).overflowX !== "visible")"""
    )
    # a value says whose it is, as the head of its column is far away
    named = "(cell) => getComputedStyle(cell, '::before').content"
    assert "minilm" in page.locator("#query-rows tr.open > td:nth-child(3)").evaluate(named)
    accessible(page)
    opened.require_quiet()


def test_on_a_phone_rows_of_charts_are_blocks_with_verdicts(opened: Watched) -> None:
    page = opened.page
    page.set_viewport_size(PHONE)
    rows = page.locator("#forest tbody tr")
    assert rows.count() == 6
    assert all("better" in text for text in rows.all_inner_texts())
    for row in page.locator("table.strips tbody tr:visible").all():
        box = row.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    page.locator("#where-minilm").get_by_role("link", name="wording: paraphrase").click()
    expect(page.locator("#query-count")).to_have_text("44 queries")
    opened.require_quiet()


def test_on_a_phone_the_systems_of_a_query_are_tabs(opened: Watched) -> None:
    page = opened.page
    assert not page.locator(".side-tabs").count()
    page.locator("#query-rows button").first.click()
    page.locator(".chunk").first.wait_for()
    assert [side.is_visible() for side in page.locator(".side").all()] == [True, True]
    page.set_viewport_size(PHONE)
    assert [side.is_visible() for side in page.locator(".side").all()] == [False, True]
    page.locator(".side-tabs").get_by_role("button", name="bm25").click()
    assert [side.is_visible() for side in page.locator(".side").all()] == [True, False]
    accessible(page)
    opened.require_quiet()


def test_twelve_systems_fit_a_phone(watched: Watched, tmp_path: Path) -> None:
    gold = {f"q{n}": ["d"] for n in range(40)}
    runs = {
        f"system {at}": {query: ["d" if n >= 3 * at else "x"] for n, query in enumerate(gold)}
        for at in range(12)
    }
    path = tmp_path / "many.html"
    findwell.report(findwell.evaluate(runs, gold, ["recall@1", "RR"]), output=path)
    page = watched.page
    page.goto(path.as_uri())
    ladder, other = page.locator("#ladder"), page.locator("#ladder-RR")
    assert [ladder.is_visible(), other.is_visible()] == [True, False]
    page.get_by_role("button", name="RR", exact=True).click()
    assert [ladder.is_visible(), other.is_visible()] == [False, True]
    page.set_viewport_size(PHONE)
    box = other.bounding_box()
    assert box is not None
    assert box["height"] < PHONE["height"]
    fits_a_phone(page)
    accessible(page)
    watched.require_quiet()


def test_on_a_phone_all_sections_are_in_sight(opened: Watched) -> None:
    page = opened.page
    page.set_viewport_size(PHONE)
    for link in page.get_by_role("navigation").get_by_role("link").all():
        box = link.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["height"] >= 24


def test_no_report_of_any_test_is_wider_than_a_phone(watched: Watched, tmp_path: Path) -> None:
    made = ["tests/reports", "tests/web/test_app.py", "tests/web/test_server.py"]
    made += ["tests/cli/test_demo.py", "tests/test_named_relations.py"]
    asked = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*asked, "-p", "tests.reports.made", *made],
        env={**os.environ, "FINDWELL_PAGES": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    pages = sorted(tmp_path.glob("*.html"))
    assert len(pages) > 30
    page = watched.page
    page.set_viewport_size(PHONE)
    wide = {}
    for path in pages:
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        if page.locator("[data-filter=all]").count():
            page.locator("[data-filter=all]").click()
            page.locator("#query-rows button").first.click()
            page.locator("tr.detail .empty[role=status]").wait_for(state="detached")
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 390:
            wide[path.name] = (width, page.title())
    assert not wide
