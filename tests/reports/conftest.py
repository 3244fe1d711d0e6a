"""Results to report, and a browser to look at them."""

from __future__ import annotations

from pathlib import Path

import pytest

import findwell
from findwell.show.page import page as make_page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from tests import hostile
from tests.browsing import Watched, browser, watched

DEMO = Path(findwell.__file__).parent / "demo"

__all__ = ["browser", "watched"]


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the demo's result, with its lists."""
    result = findwell.evaluate(
        [DEMO / "bm25.trec", DEMO / "minilm.trec"],
        DEMO / "questions.jsonl",
        corpus=DEMO / "passages.jsonl",
        reading=findwell.Reading(keep=50),
    )
    return result.save(tmp_path_factory.mktemp("results") / "monday")


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a result in which every text is an attack."""
    return hostile.result().save(tmp_path_factory.mktemp("hostile") / "result")


@pytest.fixture(scope="module")
def report(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the demo's report, and return its address."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(make_page(prepare(lay_side_by_side([demo_folder]))), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(watched: Watched, report: str) -> Watched:
    """Open the demo's report."""
    watched.page.goto(report)
    return watched
