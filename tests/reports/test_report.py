"""`findwell.report`: the page as a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.show.report import report

if TYPE_CHECKING:
    from pathlib import Path

GOLD = {"q": ["a", "b"], "r": ["c"]}
OLD, NEW = {"q": ["a"], "r": ["x"]}, {"q": ["a", "b"], "r": ["c"]}


def test_results_folders_and_runs_make_the_same_page(tmp_path: Path) -> None:
    result = findwell.evaluate(
        {"old": OLD, "new": NEW}, GOLD, ["recall@2"], reading=findwell.Reading(keep=50)
    )
    result.save(tmp_path / "saved")
    pages = {
        report(result),
        report(tmp_path / "saved"),
        report({"old": OLD, "new": NEW}, gold=GOLD, measures=["recall@2"]),
    }
    for page in pages:
        assert page.startswith("<!doctype html>")
        assert '"systems":["old","new"]' in page
        assert '"query":["q","r"]' in page


def test_the_page_is_written(tmp_path: Path) -> None:
    page = report({"old": OLD}, gold=GOLD, measures="recall@2", output=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page


def test_the_baseline_comes_first_and_a_slice_alone() -> None:
    gold = [
        {"query": "q", "gold": ["a"], "topic": "x"},
        {"query": "r", "gold": ["c"], "topic": "y"},
    ]
    result = findwell.evaluate({"old": OLD, "new": NEW}, gold, ["recall@2"])
    page = report(result, baseline="new", only=("topic", "y"))
    assert '"systems":["new","old"]' in page
    assert '"query":["r"]' in page


def test_options_that_would_do_nothing_are_refused() -> None:
    result = findwell.evaluate(OLD, GOLD, ["recall@2"])
    with pytest.raises(findwell.FindwellError, match="by has no effect"):
        report(result, by="rouge")
    with pytest.raises(findwell.FindwellError, match="no result to report"):
        report()
