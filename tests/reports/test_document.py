"""Documents: the answer comes first on every surface, in the same words and digits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

import findwell
from findwell.show import document_of, render
from findwell.show.charts import CHARTS, Chart, register_chart, svg
from findwell.show.document import (
    SCREEN_ROWS,
    Code,
    Document,
    Headline,
    LetterChart,
    Line,
    Notes,
    write,
)
from findwell.show.grid import Grid
from findwell.show.page import page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from tests import values
from tests.comparison.test_comparison import NEW, ODD, OLD
from tests.reports.conftest import DEMO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.show.document import Part
    from findwell.show.panel import Panel

RUNS = (DEMO / "bm25.trec", DEMO / "minilm.trec")
GOLD = DEMO / "questions.jsonl"
ANSWER = "minilm is better than bm25"
CHANGE = "recall@5 0.618 → 0.814 (+0.089 to +0.300)"
COUNTS = "won 31, tied 51, lost 9"
WHERE = "better in wording paraphrase (+0.464)"


@pytest.fixture(scope="module")
def comparison() -> findwell.Comparison:
    return findwell.compare(*RUNS, gold=GOLD, measures="recall@5", slices="wording")


@pytest.mark.parametrize("how", ["table", "markdown", "html", "text"])
def test_every_surface_begins_with_the_same_answer(
    how: str, comparison: findwell.Comparison
) -> None:
    plain = re.sub(r"<[^>]*>|\*\*|\\", "", render(comparison, how)).strip()
    assert plain.startswith(ANSWER)
    places = [plain.index(part) for part in (ANSWER, CHANGE, COUNTS, WHERE, "against bm25")]
    assert places == sorted(places)


def test_the_report_says_it_in_the_same_words() -> None:
    result = findwell.evaluate(list(RUNS), GOLD, "recall@5")
    html = page(prepare(lay_side_by_side([result]), cases=False))
    card = re.sub(r"<title>.*?</title>|<[^>]*>", "", html[html.index('<section id="overview"') :])
    places = [card.index(part) for part in (ANSWER, CHANGE, *COUNTS.split(", "), WHERE)]
    assert places == sorted(places)


def test_the_answer_is_that_of_the_verdict(comparison: findwell.Comparison) -> None:
    (headline,) = document_of(comparison).headlines
    assert headline.word == comparison.verdicts["bm25", "minilm", "recall@5"].word == "better"
    (back,) = document_of(findwell.compare(*RUNS[::-1], gold=GOLD, measures="recall@5")).headlines
    assert back.sentence == "bm25 is worse than minilm"
    assert back.facts == ("recall@5 0.814 → 0.618 (−0.300 to −0.089)", "won 9, tied 51, lost 31")


def test_what_is_unclear_says_how_many_queries_would_tell() -> None:
    noisy = [min(1.0, value + (0.1 if at % 3 else -0.15)) for at, value in enumerate(OLD)]
    found = findwell.compare(
        {"old": values.run(OLD), "new": values.run(noisy)}, gold=values.gold(30), measures="recall"
    )
    needed = found.needed("new", "recall")
    assert found["recall"]["verdict"] == "unclear"
    assert needed is not None
    assert needed > 30
    plan = findwell.statistics.power(
        {"old": values.run(OLD), "new": values.run(noisy)},
        gold=values.gold(30),
        measures="recall",
        difference=abs(found["recall"]["difference"]),
    )["recall"]
    assert plan.needed is not None
    assert plan.needed.value == needed
    (headline,) = document_of(found).headlines
    assert headline.sentence == "new is not clearly different from old"
    assert re.fullmatch(
        r"about [\d,]+ queries would show a difference this small", headline.facts[2]
    )


def test_queries_that_moved_are_those_of_the_systems_with_a_headline() -> None:
    gold, old = values.gold(30), values.run(OLD)
    runs = {f"s{at}": values.run([min(1.0, each + at / 10) for each in OLD]) for at in range(1, 6)}
    found = findwell.compare({"old": old, **runs}, gold=gold, measures="recall")
    assert {row["system"] for row in found.moved_rows} == set(runs)
    document = document_of(found)
    (grid,) = (
        each
        for each in document.parts
        if isinstance(each, Grid) and each.title.startswith("queries")
    )
    named = {each.system for each in document.headlines if each.system}
    assert {row[0] for row in grid.rows} == named == {"s3", "s4", "s5"}


def test_no_number_of_queries_is_named_where_it_would_say_nothing() -> None:
    gold, run = values.gold(30), values.run(OLD)
    same = findwell.compare({"old": run, "again": run}, gold=gold, measures="recall")
    assert same.needed("again", "recall") is None
    (headline,) = document_of(same).headlines
    assert headline.sentence == "again scores the same as old on every query"
    better = [min(1.0, each + 0.3) for each in OLD]
    clear = findwell.compare({"old": run, "new": values.run(better)}, gold=gold, measures="recall")
    assert clear.needed("new", "recall") is None


def test_of_many_systems_the_best_have_a_headline_and_the_others_are_counted() -> None:
    systems = {f"s{n}": values.run([min(1.0, each + n / 20) for each in OLD]) for n in range(6)}
    for name, lost in (("low", 0.3), ("lower", 0.4)):
        systems[name] = values.run([max(0.0, each - lost) for each in OLD])
    found = findwell.compare(systems, gold=values.gold(30), measures="recall")
    sentences = [each.sentence for each in document_of(found).headlines]
    assert [each.partition(" ")[0] for each in sentences] == ["s5", "s4", "s3", "4"]
    assert re.fullmatch(r"4 more: .*, 2 worse \(lower, low\)", sentences[-1])


def test_many_systems_are_ranked_with_the_signs_of_their_verdicts() -> None:
    """The best first; each value with a sign where the verdict is clear."""
    moved = {"up": 0.3, "same": 0.0, "down": -0.3}
    runs = {"old": values.run(OLD)}
    for name, by in moved.items():
        runs[name] = values.run([min(1.0, max(0.0, each + by)) for each in OLD])
    found = findwell.compare(runs, gold=values.gold(30), measures="recall")
    grid = next(iter(document_of(found).parts))
    assert isinstance(grid, Grid)
    assert [row[0] for row in grid.rows] in (
        ["up", "old (baseline)", "same", "down"],
        ["up", "same", "old (baseline)", "down"],
    )
    signs = {row[0]: row[1][5:].strip() for row in grid.rows}
    assert signs == {"up": "▲", "same": "", "old (baseline)": "", "down": "▼"}
    assert grid.good == {(0, 1)}
    assert grid.bad == {(3, 1)}
    two = findwell.compare(
        {"old": runs["old"], "up": runs["up"]}, gold=values.gold(30), measures="recall"
    )
    assert "all systems" not in render(two, "table")
    assert "all systems, the best by recall first" in found.to_markdown()


@pytest.mark.parametrize("width", [60, 80])
def test_words_never_break(width: int, comparison: findwell.Comparison) -> None:
    three = findwell.compare(
        {"a": values.run(OLD), "b": values.run(NEW), "c": values.run(ODD)},
        gold=values.gold(30),
        measures=["recall", "P@5"],
    )
    for found in (comparison, three):
        text, narrow = (render(found, "table", moved=0, width=each) for each in (None, width))
        assert max(map(cell_len, narrow.splitlines())) <= width
        assert set(narrow.replace("─", "").split()) <= set(text.replace("─", "").split())
        title = f"against {found.baseline}"
        assert narrow.count(title) == text.count(title)
    assert " measure                recall@5\n" in render(comparison, "table", width=60)


def test_what_python_prints_fits_a_screen() -> None:
    gold = values.gold(30)
    queries = [{"query": name, "topic": f"t{name}"} for name in gold]
    found = findwell.compare(
        {"old": values.run(OLD), "new": values.run(NEW)},
        gold=gold,
        measures="recall",
        queries=queries,
        slices="topic",
    )
    assert len(repr(found).splitlines()) < 60
    assert f"and {30 - SCREEN_ROWS} more rows" in repr(found)
    result = findwell.evaluate(list(RUNS), GOLD, "recall@5")
    assert "0.52 … 0.71" in str(result)
    assert "note: 4 queries have no relevant item" in str(result)
    assert str(findwell.gate(result, "recall@5>=0.2")).startswith("requirements: pass")
    assert "to see a difference" in str(findwell.statistics.power(sd=0.3, difference=0.05))
    assert max(map(cell_len, repr(result).splitlines())) <= 80


def test_writers_show_every_kind_of_part() -> None:
    parts: list[Part] = [
        Line("a line <b>", in_papers=True),
        Grid("title", ["x"], [["1"]], marks={(0, 0): "†"}),
        Notes(("first", "second")),
        LetterChart(lambda width: "*" * width),
        Code("To paste", "a = 1\nb = 2"),
    ]
    made = Document(iter(parts), headlines=[Headline("It is so", ("by a fact",))])
    text = write(made, "table", width=40)
    assert text.startswith("It is so\n  by a fact\n\na line <b>\n\ntitle\n")
    assert "  first\n  second\n" in text
    assert "*" * 40 in text
    assert text.endswith("to paste:\n\na = 1\nb = 2\n\n")
    marked = write(made, "markdown")
    assert marked.startswith("**It is so**: by a fact\n\na line \\<b\\>\n\n**title**")
    assert marked.endswith("To paste:\n\n```\na = 1\nb = 2\n```\n")
    html = write(made, "html")
    assert "<p>a line &lt;b&gt;</p>" in html
    assert "<li>second</li>" in html
    assert "a = 1\nb = 2\n</pre>" in html
    paper = write(made, "latex")
    assert paper.startswith("% a line <b>\n")
    assert r"1\textsuperscript{$\dagger$}" in paper
    for how in ("json", "csv"):
        with pytest.raises(TypeError, match=f"cannot be shown as {how}"):
            write(made, how)


def test_a_chart_of_a_plugin_is_drawn_in_reports_and_by_name() -> None:
    def draw(panel: Panel) -> Iterator[Chart | str]:
        says = f"{len(panel.names)} systems"
        drawn = svg.drawing(100, 50, says, [svg.label("own <chart>", 5, 20)])
        yield Chart("own", "An own chart", says, drawn, Grid("", ["x"], [["1"]]))
        yield "Something was left out."

    try:
        register_chart("own")(draw)
        result = findwell.evaluate(list(RUNS), GOLD, "recall@5")
        assert repr(result.plot("own")) == "<chart own: 2 systems>"
        html = page(prepare(lay_side_by_side([result]), cases=False))
        assert '<section id="more"' in html
        assert "own &lt;chart&gt;" in html
        assert "Something was left out." in html
    finally:
        del CHARTS.registered["own"]
    assert '<section id="more"' not in page(prepare(lay_side_by_side([result]), cases=False))
