"""Single queries in a real browser: the gold, what a judge said, and files of many queries."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.show import prepare as preparing
from findwell.show.page import page as make_page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from tests.browsing import accessible, fits_a_phone, picker, search

if TYPE_CHECKING:
    from findwell.judges.verdicts import Sample
    from tests.browsing import Watched

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_the_gold_is_a_matrix_with_changes_of_rank(watched: Watched, tmp_path: Path) -> None:
    gold = {"q": ["up", "down", "same", "found", "lost", "never", "deep"]}
    one = ["down", "same", "x", "up", "lost", *"abcdef", "deep"]
    other = ["up", "same", "down", "found", *"abcdef", "y", "deep"]
    runs = {"one": {"q": one}, "two": {"q": other}}
    result = findwell.evaluate(runs, gold, ["recall@10"], reading=findwell.Reading(keep=20))
    path = tmp_path / "matrix.html"
    path.write_text(make_page(prepare(lay_side_by_side([result]))), encoding="utf-8")
    page = watched.page
    page.goto(path.as_uri())
    page.locator("[data-filter=all]").click()
    page.locator("#query-rows button").click()
    page.locator(".gold").wait_for()
    assert page.locator(".gold thead th").all_inner_texts() == ["Item", "one", "two", "Change"]
    rows = [
        [cell.partition(". ")[2] or cell for cell in row.locator("td").all_inner_texts()]
        for row in page.locator(".gold tbody tr").all()
    ]
    assert {row[0]: row[1:] for row in rows} == {
        "up": ["✓ rank 4", "✓ rank 1", "↑ 3 ranks"],
        "down": ["✓ rank 1", "✓ rank 3", "↓ 2 ranks"],
        "same": ["✓ rank 2", "✓ rank 2", "="],
        "found": ["✗ missed", "✓ rank 4", "found"],
        "lost": ["✓ rank 5", "✗ missed", "lost"],
        "never": ["✗ missed", "✗ missed", "–"],
        "deep": ["rank 12, below 10", "rank 12, below 10", "="],
    }
    assert page.get_by_text("one found 5 of 7, two found 5 of 7").is_visible()
    assert page.get_by_text("Nothing relevant").count() == 0
    side = page.locator(".side").first
    side.get_by_role("button", name="Show ranks 6 to 12").click()
    assert side.locator(".ranking > li").nth(10).inner_text().startswith("below rank 10")
    fits_a_phone(page)
    watched.require_quiet()


def made_of(number: int, system: int) -> tuple[list[str], list[str]]:
    """Return the gold and the list of a query: chunks of its own, some of them gold."""
    dice = random.Random(7 + number)
    gold = [f"doc-{dice.randrange(4000)}" for _ in range(2)]
    dice.seed(f"{number} {system}")
    found = [f"doc-{dice.randrange(4000)}" for _ in range(9)]
    return gold, found + gold[: (number + system) % 3]


def prose(seed: int, words: int) -> str:
    """Return as many words as a chunk of prose has, no two alike."""
    dice = random.Random(seed)
    vocabulary = ["".join(dice.choices("aeioulnrst", k=dice.randrange(2, 9))) for _ in range(words)]
    return " ".join(vocabulary).capitalize() + "."


def test_ten_thousand_queries_open_and_search(watched: Watched, tmp_path: Path) -> None:
    docs = {f"doc-{number}": prose(number, 80) for number in range(4000)}
    gold, runs = [], {"one": [], "two": []}  # type: ignore[var-annotated]
    for number in range(10_000):
        about = {
            "query": f"q{number}",
            "question": f"Question {number}?",
            "topic": f"t{number % 9}",
        }
        gold.append({**about, "topic": f"t{number % 9}", "gold": made_of(number, 0)[0]})
        for system, run in enumerate(runs.values()):
            run.append({"query": f"q{number}", "retrieved": made_of(number, system)[1]})
    corpus = [{"doc": doc, "text": text} for doc, text in docs.items()]
    result = findwell.evaluate(
        runs, gold, ["recall@10", "nDCG@10"], corpus=corpus, reading=findwell.Reading(keep=20)
    )
    path = tmp_path / "big.html"
    path.write_text(make_page(prepare(lay_side_by_side([result]))), encoding="utf-8")
    assert path.stat().st_size < 12_000_000
    page = watched.page
    page.goto(path.as_uri())
    assert page.locator("#query-rows tr").count() == 50
    for name in ("zero", "worse", "better", "all"):  # the first of each filter can be opened
        page.locator(f"[data-filter={name}]").click()
        first = page.locator("#query-rows button").first
        assert "values only" not in first.inner_text()
        first.click()
        page.locator(".chunk").first.wait_for()
        page.keyboard.press("Escape")
    picker(page, "topic").select_option("t5")
    assert "values only" not in page.locator("#query-rows button").first.inner_text()
    picker(page, "topic").select_option("all")
    search(page, "question 9999")
    page.get_by_text("Question 9999?").wait_for()
    fits_a_phone(page)
    watched.require_quiet()


def test_a_row_that_cannot_be_opened_says_so(
    watched: Watched, demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "LETTERS", 100_000)
    path = tmp_path / "small.html"
    path.write_text(make_page(prepare(lay_side_by_side([demo_folder]))), encoding="utf-8")
    page = watched.page
    page.goto(path.as_uri())
    for name in ("zero", "worse", "better", "none", "all"):
        page.locator(f"[data-filter={name}]").click()
        assert "values only" not in page.locator("#query-rows button").first.inner_text()
    closed = page.locator("#query-rows button.values").first
    assert "values only; findwell view opens the lists" in closed.inner_text()
    closed.click()
    page.get_by_text("on the folder of the result opens every one").last.wait_for()
    assert page.locator(".chunk").count() == 0
    page.get_by_text("All measures of this query").click()
    assert page.locator("tr.detail").get_by_text("nDCG@10").is_visible()
    accessible(page)
    fits_a_phone(page)
    watched.require_quiet()


def test_a_judged_report_is_small_and_readable(watched: Watched, tmp_path: Path) -> None:
    def judge(sample: Sample) -> dict[str, object]:
        dice = random.Random(sample.query)

        def verdict(text: str) -> dict[str, object]:
            said = {"value": dice.random() < 0.2, "reason": prose(dice.randrange(10**6), 18)}
            return said | {"quote": text[:60], "probability": 0.25}

        return {
            "relevance": [verdict(chunk) for chunk in sample.chunks],
            "claims": [[verdict(chunk) for chunk in sample.chunks] for _ in sample.items["claims"]],
            "statements": [
                [verdict(part) for part in parts] for parts in sample.parts["statements"]
            ],
        }

    records = [
        [
            {
                "query": f"q{number}",
                "question": prose(number, 8),
                "reference": " ".join(prose(number + part, 9) for part in range(3)),
                "contexts": [
                    " ".join(prose(hash((number, system, rank, part)), 18) for part in range(5))
                    for rank in range(20)
                ],
            }
            for number in range(60)
        ]
        for system in range(2)
    ]
    measures = ["recall@10/claims", "nDCG@10/relevance", "P@10/statements"]
    results = {
        name: findwell.evaluate(run, None, measures, judge=judge, reading=findwell.Reading(keep=20))
        for name, run in zip(("one", "two"), records, strict=True)
    }
    path = tmp_path / "judged.html"
    path.write_text(make_page(prepare(lay_side_by_side([results]))), encoding="utf-8")
    assert path.stat().st_size < 2_000_000
    page = watched.page
    page.goto(path.as_uri())
    page.locator("[data-filter=all]").click()
    page.locator("#query-rows button").first.click()
    page.locator(".chunk").first.wait_for()
    assert page.locator(".chunk .tag", has_text="judge: ").count() > 0
    assert page.locator(".chunk .tag", has_text="gold: ").count() == 0
    height = page.locator("tr.detail").evaluate("(node) => node.getBoundingClientRect().height")
    assert height < 2_500
    chunk = page.locator(".chunk", has=page.locator("mark")).first
    assert "statements: yes (probability of yes 0.25) — " in "".join(
        mark.get_attribute("title") or "" for mark in page.locator(".chunk mark[title]").all()
    )
    assert (
        chunk.locator(".refused[title*='statements: no (probability of yes 0.25) — ']").count() > 0
    )
    assert not chunk.locator(".verdicts li").first.is_visible()
    chunk.locator(".said > summary").click()
    assert chunk.locator(".said > .verdicts li").first.is_visible()
    assert (
        "(probability of yes 0.25) — " in chunk.locator(".said > .verdicts li").first.inner_text()
    )
    folded = chunk.locator(".said details")
    assert not folded.locator("li").first.is_visible()
    folded.locator("summary").click()
    assert folded.locator("li").first.is_visible()
    page.locator(".side").first.get_by_role("button", name="Show ranks 6 to 20").click()
    chunks = page.locator(".side").first.locator(".chunk")
    assert [each.locator(".said").count() for each in chunks.all()] == [1] * 10 + [0] * 10
    accessible(page)
    fits_a_phone(page)
    watched.require_quiet()
