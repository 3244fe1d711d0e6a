"""The page of a tuning: what to paste, sections in their order, no wider than the screen."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.show.tuning import page
from tests.browsing import PHONE, accessible

if TYPE_CHECKING:
    from tests.browsing import Watched

DEMO = Path(findwell.__file__).parent / "demo"


@pytest.fixture(scope="module", params=["weaviate-relative", "opensearch-min_max-arithmetic"])
def tuning(request: Any) -> findwell.tuning.Tuning:
    found: findwell.tuning.Tuning = findwell.tuning.tune(
        {"bm25": DEMO / "bm25.trec", "minilm": DEMO / "minilm.trec"},
        DEMO / "questions.jsonl",
        "nDCG@10",
        engine=request.param,
        step=0.1,
        permutations=200,
    )
    assert found.snippet is not None
    return found


def test_the_snippet_can_be_copied(tuning: findwell.tuning.Tuning) -> None:
    (shown,) = re.findall(r"<pre>\n(.*?)</pre>", page(tuning), re.DOTALL)
    assert unescape(shown) == tuning.snippet
    assert shown.count("\n") > 2


def test_the_navigation_has_the_order_of_the_page(tuning: findwell.tuning.Tuning) -> None:
    html = page(tuning)
    linked = re.findall(r'<li><a href="#(\w+)">', html)
    assert linked == re.findall(r'<section id="(\w+)"', html)
    assert linked == ["choice", "curve", "gains", "paste", "findings"]


def test_every_column_has_a_name(tuning: findwell.tuning.Tuning) -> None:
    assert not re.findall(r"<th[^>]*></th>", page(tuning))


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_it_is_no_wider_than_the_screen_and_accessible(
    watched: Watched, tuning: findwell.tuning.Tuning, tmp_path: Path
) -> None:
    file = tmp_path / "tuning.html"
    file.write_text(page(tuning))
    for size in ({"width": 1440, "height": 900}, PHONE):
        watched.page.set_viewport_size(size)  # type: ignore[arg-type]
        watched.page.goto(file.as_uri())
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        accessible(watched.page)
    watched.require_quiet()
