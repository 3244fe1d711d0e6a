"""Comparisons and gates as text: complete, valid, and nothing in an id is obeyed."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import findwell
from findwell.evaluation.comparison.gates import gate
from findwell.show import comparison as tables
from findwell.show import escape, render
from findwell.show.document import Document, to_html
from findwell.show.gate import as_junit, lines, summary
from findwell.show.grid import Grid
from findwell.show.tables import chance
from tests import values
from tests.comparison.test_comparison import NEW, ODD, OLD
from tests.strategies import examples

TAGS = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li", "p", "b", "br"}
HOSTILE = [
    "<script>alert(1)</script>",
    "</table><img src=x onerror=alert(1)>",
    '"><b>x</b>',
    "a|b\n| c |",
    "[x](javascript:alert(1))",
    r"\input{/etc/passwd}",
    "$x^2$ & 50% #1 ~_",
    "\x1b[31mred\x07\x00",
    "]]>\ud800\uffff",
    "\u202eevil\u2066",
]


def hostile(name: str) -> findwell.Comparison:
    """Compare systems, queries, questions and slices that are all called like this."""
    visible = name.encode("utf-8", "replace").decode()
    records = [
        {"query": f"{visible}{at}", "question": visible, "retrieved": [visible], "gold": [doc]}
        | {"topic": visible}
        for at, doc in enumerate((visible, "other"))
    ]
    others = [{**record, "retrieved": ["other"]} for record in records]
    named = {name: records, f"{name} too": others}
    return findwell.compare(named, measures=["recall", "RR"], slices="topic")


class Tags(HTMLParser):
    """Collects the tags of a page, and what stands in their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= set(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> Tags:
    parser = Tags()
    parser.feed(page)
    parser.close()
    return parser


# everything that should be there


def test_html() -> None:
    found = findwell.compare(values.result(OLD), values.result(NEW), measures=["recall", "P@5"])
    page = parsed(found._repr_html_())
    assert "against run · 30 queries" in page.text
    assert f"{found['recall']['system_value']:.3f}" in page.text
    assert page.tags <= TAGS
    result = values.result(OLD)
    page = parsed(result._repr_html_())
    assert f"{result['recall']:.3f}" in page.text


def test_long_tables_are_cut_in_notebooks() -> None:
    grid = Grid("t", ["a"], [[str(row)] for row in range(150)])
    page = parsed(to_html(Document([grid])))
    assert "and 50 more rows" in page.text
    assert "149" not in page.text


def test_latex_marks_what_is_significant() -> None:
    better = [min(1.0, each + 0.3) for each in OLD]
    table = findwell.compare(
        {"a": values.run(OLD), "b": values.run(better), "c": values.run(OLD)},
        gold=values.gold(30),
        measures=["recall", "P@1"],
    ).to_latex()
    lines_ = {line.split(" & ")[0]: line for line in table.splitlines() if " & " in line}
    assert r"\textbf{" in lines_["b"]
    assert r"\textsuperscript{$\ddagger$}" in lines_["b"]
    assert "dagger" not in lines_["a"] + lines_["c"]
    assert "(Holm)" in table
    assert table.count(r"\begin") == table.count(r"\end") == 2


def test_latex_letters_for_all_pairs() -> None:
    better = [min(1.0, each + 0.3) for each in OLD]
    table = findwell.compare(
        {"a": values.run(OLD), "b": values.run(better)},
        gold=values.gold(30),
        measures="recall",
        all_pairs=True,
    ).to_latex()
    assert r"b (b) & \textbf{" in table
    assert r"\textsuperscript{a}" in table
    assert tables._letters(28)[25:] == ["z", "aa", "ab"]


def test_markdown_and_text_say_the_same() -> None:
    found = findwell.compare(
        {"a": values.run(OLD), "b": values.run(NEW), "c": values.run(ODD)},
        gold=values.gold(30),
        measures=["recall", "P@5"],
    )
    text, marked = render(found, "table"), found.to_markdown()
    for row in found.comparisons.to_dicts():
        assert f"{row['system_value']:.3f}" in text
        assert chance(row["p_adjusted"]) in marked
    assert "p (Holm)" in text
    assert repr(found) in render(found, "table", moved=0, width=80)


@pytest.mark.parametrize(("value", "shown"), [(1e-9, "< 0.001"), (1.0, "1.00"), (None, "–")])
def test_p_values(value: float | None, shown: str) -> None:
    assert chance(value) == shown


# nothing is obeyed


@pytest.mark.parametrize("name", HOSTILE)
def test_html_is_inert(name: str) -> None:
    found = hostile(name)
    page = parsed(found._repr_html_())
    assert page.tags <= TAGS
    assert {key for key, _ in page.attributes} == {"style"}
    assert "\x1b" not in page.text


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_is_inert(name: str) -> None:
    text = hostile(name).to_markdown()
    assert not re.search(r"(?<!\\)<[a-z/]", text)
    assert "](" not in text.replace("\\](", "")
    columns = [len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line[:1] == "|"]
    tables_ = {line.count("|") for line in text.splitlines() if line.startswith("| ---")}
    assert set(columns) <= tables_
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.parametrize("name", HOSTILE)
def test_latex_is_inert(name: str) -> None:
    shown = escape.latex(name)
    words = "backslash|asciicircum|asciitilde|less|greater|bar|quotedbl"
    known = rf"\\text(?:{words})\{{\}}|\\[{{}}$&#%_]"
    assert not re.search(r"[\\{}$&#%_^~<>|\"]", re.sub(known, "", shown))
    assert hostile(name).to_latex().count(r"\input") == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_the_terminal_is_not_steered(name: str) -> None:
    text = render(hostile(name), "table")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def verdicts(name: str) -> Any:
    """Hold a run of this name against requirements; a run may not be called by half a letter."""
    whole = name.encode("utf-8", "replace").decode()
    other = f"not {whole}"
    run, gold = {whole: ["a"], other: ["b"]}, {whole: ["a"], other: ["c"]}
    return gate(findwell.evaluate({whole: run}, gold, "RR"), ["RR>=0.9", "RR>=0", "queries<1"])


@examples(60)
@given(st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1)).filter(lambda name: name.strip()))
def test_junit_is_always_valid_xml(name: str) -> None:
    page = ET.fromstring(as_junit(verdicts(name)).encode("utf-8"))
    cases = list(page.iter("testcase"))
    assert [case.get("name") for case in cases] == ["RR>=0.9", "RR>=0", "queries<1"]
    assert {child.tag for case in cases for child in case} == {"error", "system-out", "failure"}
    assert all(len(child) == 0 for case in cases for child in case)


@pytest.mark.parametrize("name", HOSTILE)
def test_verdicts_are_inert(name: str) -> None:
    found = verdicts(name)
    assert not any(re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", line) for line in lines(found))
    text = summary(found, "")
    assert not re.search(r"(?<!\\)<[a-z/]", text)
