"""Tables for the terminal and for papers: sparklines where they fit, colour where it is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import findwell
from findwell.show import render
from findwell.show.grid import Grid
from findwell.show.result import spread_line
from findwell.show.tables import BARS, latex, terminal
from tests import hostile

if TYPE_CHECKING:
    from tests.conftest import Findwell

DEMO = Path(findwell.__file__).parent / "demo"


@pytest.fixture(scope="module")
def result(demo_folder: Path) -> findwell.Result:
    return findwell.load(demo_folder)


def test_sparklines_where_the_width_allows(result: findwell.Result) -> None:
    plain = render(result, "table")
    assert not set(render(result, "table", width=60)) & set(BARS)
    wide = render(result, "table", width=140)
    assert "spread" not in plain
    lines = [line for line in wide.splitlines() if line.startswith(" spread")]
    assert len(lines) == 2
    assert set("".join(lines)) <= {*BARS, *" spread"}
    assert all(len(line) <= 140 for line in wide.splitlines())
    best = render(result, "table", width=140, color=True)
    assert "\x1b[1;32m0.814\x1b[0m" in best
    assert best.count("\x1b[1;32m") == 6


def test_one_run_has_a_column_for_it() -> None:
    one = findwell.evaluate({"q1": ["a"], "q2": ["b"]}, {"q1": ["a"], "q2": ["a"]}, ["RR"])
    assert "█        █" in render(one, "table", width=100)


@given(st.lists(st.floats(0, 1) | st.just(float("nan"))))
@settings(deadline=None)
def test_a_sparkline_has_a_bar_where_there_are_queries(values: list[float]) -> None:
    line = spread_line(np.array(values))
    known = [value for value in values if value == value]  # noqa: PLR0124
    assert len(line) == (10 if known else 0)
    assert (line.strip() != "") == bool(known)
    assert not known or "█" in line


def test_explanations_in_colour() -> None:
    (told,) = findwell.explain(
        DEMO / "bm25.trec", DEMO / "questions.jsonl", "recall@5", query="q42"
    )
    plain, bright = (render(told, "table", color=color) for color in (False, True))
    assert "\x1b" not in plain
    assert "\x1b[32m✓ hit\x1b[0m" in bright
    assert "\x1b[31m✗\x1b[0m" in bright
    assert bright.replace("\x1b[32m", "").replace("\x1b[31m", "").replace("\x1b[0m", "") == plain


def test_latex_of_a_result(cli: Findwell, result: findwell.Result) -> None:
    done = cli(
        *("score", DEMO / "bm25.trec", "--gold", DEMO / "questions.jsonl"),
        *("-m", "recall@5", "--format", "latex"),
    )
    assert done.code == 0
    assert r"recall@5 & 0.618 & 0.52 \ldots{} 0.71 & 91 & 4 \\" in done.out
    assert r"\textbf{0.814}" in render(result, "latex")


def test_latex_obeys_nothing() -> None:
    content = render(hostile.result(), "latex")
    assert r"\textless{}script\textgreater{}" in content
    table = latex(Grid(r"\input{x}", ["a_b", "%"], [["$x$", "&"]]))
    assert r"\caption{\textbackslash{}input\{x\}}" in table
    assert r"\$x\$ & \& \\" in table


def test_a_judge_card_says_what_its_numbers_mean() -> None:
    pairs = [("yes", True)] * 6 + [("yes", False)] * 2 + [("no", False)] * 4
    labels = [
        {"question": f"q{at}", "chunk": said, "label": int(truth)}
        for at, (said, truth) in enumerate(pairs)
    ]
    card = findwell.judges.card(
        labels, judge=lambda sample: {"relevance": [int(each == "yes") for each in sample.chunks]}
    )
    shown = render(card, "table")
    assert "κ 0.67 is substantial agreement beyond chance" in shown
    assert "the judge says yes 17 points more often than people" in shown


def test_a_table_on_its_side_is_cut_between_its_rows() -> None:
    header = ["measure", "verdict", "before", "after", "an interval of it", "won/tied/lost"]
    rows = [[f"m{at}", "better", f"0.{at}", "0.9", "+0.089 … +0.300", "31/51/9"] for at in range(3)]
    grid = Grid("three", header, rows, left=2, named_by=1, good={(2, 1)})
    whole = terminal(grid, width=80)
    assert len(whole.strip().split("\n\n")) == 2  # the title and one table
    title, first, second = terminal(grid, width=56, color=True).strip().split("\n\n")
    assert title == "three"
    assert first.splitlines()[0].split() == ["measure", "m0", "m1"]
    assert second.splitlines()[0].split() == ["measure", "m2"]
    assert ["\x1b[32m" in each for each in (first, second)] == [False, True]
    assert all(cell_len(line) <= 56 for line in terminal(grid, width=56).splitlines())


def test_wide_characters_and_long_names_fit() -> None:
    grid = Grid("t", ["run", "AP", "RR"], [["検索" * 30, "0.5", "0.25"], ["x" * 90, "1", "0"]])
    for width in (30, 40, 60):
        lines = terminal(grid, width=width).splitlines()
        assert max(map(cell_len, lines)) <= width
    assert "0.25" in terminal(grid, width=30)


def test_only_what_is_clearly_best_is_marked() -> None:
    gold = {f"q{at}": ["a"] for at in range(40)}
    found = {query: ["a"] for query in gold}
    nearly = found | {"q0": ["x"]}
    near = render(findwell.evaluate({"one": found, "two": nearly}, gold, ["RR"]), "markdown")
    assert "**" not in near.replace("**40 queries**", "")
    far = {query: ["x"] for query in gold} | {"q0": ["a"]}
    apart = render(findwell.evaluate({"one": found, "two": far}, gold, ["RR"]), "markdown")
    assert "**" in apart.replace("**40 queries**", "")
