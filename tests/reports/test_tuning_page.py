"""The page of a tuning: what to paste, sections in their order, no wider than the screen."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.loop.tuning.tuning import curves_of
from findwell.show.charts.tuning import plateau_in_words
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
    (shown,) = re.findall(r"<pre[^>]*>\n(.*?)</pre>", page(tuning), re.DOTALL)
    assert unescape(shown) == tuning.snippet
    assert shown.count("\n") > 2


def test_the_navigation_has_the_order_of_the_page(tuning: findwell.tuning.Tuning) -> None:
    html = page(tuning)
    linked = re.findall(r'<li><a href="#(\w+)">', html)
    assert linked == re.findall(r'<section id="(\w+)"', html)
    assert linked == ["choice", "curve", "gains", "paste", "findings"]


def test_every_column_has_a_name(tuning: findwell.tuning.Tuning) -> None:
    assert not re.findall(r"<th[^>]*></th>", page(tuning))


def test_the_answer_comes_first_in_the_words_of_the_terminal(
    tuning: findwell.tuning.Tuning,
) -> None:
    html = page(tuning)
    sentence, *facts = tuning.to_markdown().split("\n")[0].replace("**", "").split(": ", 1)
    main = unescape(html[html.index("<main") :])
    assert main.index(sentence) < main.index("The choice")
    for fact in facts[0].split(" · "):
        assert fact.replace("\\", "") in main


def test_the_curve_says_which_settings_cannot_be_distinguished(
    tuning: findwell.tuning.Tuning,
) -> None:
    (curve,) = curves_of(tuning)
    begin, end = curve.plateau
    words = plateau_in_words(curve, "91 queries")
    assert words.startswith(f"share of bm25 {begin:g} to {end:g}")
    assert words.endswith("cannot be distinguished from the best setting with 91 queries")
    html = page(tuning)
    assert f"S{words[1:]}.</figcaption>" in html
    for text in (html, repr(tuning)):
        assert f"plateau: {words}" in re.sub(r"\s+", " ", text)


def test_a_setting_drawn_apart_from_the_best_is_not_on_the_plateau(
    tuning: findwell.tuning.Tuning,
) -> None:
    """The band of the curve and the bar below it come from the same test."""
    for point in curves_of(tuning)[0].points:
        low, high = point.behind.low, point.behind.high
        if low is not None and high is not None:
            assert point.in_plateau == (low <= 0 <= high)


def test_the_best_setting_is_certain_against_itself(tuning: findwell.tuning.Tuning) -> None:
    (curve,) = curves_of(tuning)
    (best,) = (point for point in curve.points if point.setting == tuning.choice.best)
    assert (best.behind.value, best.behind.low, best.behind.high) == (0.0, 0.0, 0.0)
    assert any(point.behind.low != point.behind.high for point in curve.points)


def test_it_says_what_to_keep() -> None:
    found = findwell.tuning.tune(
        {"bm25": DEMO / "bm25.trec", "minilm": DEMO / "minilm.trec"},
        DEMO / "questions.jsonl",
        "nDCG@10",
        engine="elasticsearch-rrf",
        step=0.1,
        permutations=200,
    )
    assert found.keep == "minilm"
    html = page(found)
    assert ">Keep minilm: fusing is not better on held-out queries</h2>" in html
    assert 'id="snippet"' not in html


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_the_button_copies_the_snippet(
    watched: Watched, tuning: findwell.tuning.Tuning, tmp_path: Path
) -> None:
    file = tmp_path / "tuning.html"
    file.write_text(page(tuning))
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched.page.goto(file.as_uri())
    watched.page.get_by_role("button", name="Copy").click()
    watched.page.get_by_text("Copied.").wait_for()
    assert watched.page.evaluate("navigator.clipboard.readText()") == tuning.snippet
    watched.require_quiet()


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
