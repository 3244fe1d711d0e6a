"""TREC files: whatever way they are laid out, the numbers are those of the dict."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import findwell
from findwell.core.errors import InputError
from findwell.evaluation.plan import grouped
from findwell.io.read import known_formats
from findwell.io.read.format import Look
from tests import sample
from tests.sample import kinds, score

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Save

BOM = b"\xef\xbb\xbf"
LAYOUTS: dict[str, Callable[[str], bytes]] = {
    "spaces": str.encode,
    "tabs": lambda text: text.replace(" ", "\t").encode(),
    "runs of spaces": lambda text: text.replace(" ", "    ").encode(),
    "mixed whitespace": lambda text: text.replace(" ", " \t \v\f").encode(),
    "tabs on every other line": lambda text: _every_other(text, lambda s: s.replace(" ", "\t")),
    "one double space": lambda text: text.replace(" ", "  ", 1).encode(),
    "leading spaces": lambda text: _each(text, lambda line: "  " + line),
    "trailing spaces": lambda text: _each(text, lambda line: line + " \t"),
    "carriage returns": lambda text: text.replace("\n", "\r\n").encode(),
    "blank lines": lambda text: b"\n\n" + text.replace("\n", "\n \n\n").encode(),
    "comments": lambda text: _each(text, lambda line: f"# a comment with\ttabs\n{line}\n#"),
    "indented comments": lambda text: _each(text, lambda line: f"{line}\n  # 1 2 3"),
    "no final newline": lambda text: text.rstrip("\n").encode(),
    "byte-order mark": lambda text: BOM + text.encode(),
    "byte-order mark and comment": lambda text: BOM + b"# hello\r\n" + text.encode(),
    "gzip": sample.gzipped,
    "gzip of several members": lambda text: sample.gzipped(text, members=7),
    "gzip, level 0": lambda text: gzip.compress(text.encode(), 0),
}


def _each(text: str, change: Callable[[str], str]) -> bytes:
    return "".join(change(line) + "\n" for line in text.splitlines()).encode()


def _every_other(text: str, change: Callable[[str], str]) -> bytes:
    lines = text.splitlines()
    lines[1::2] = map(change, lines[1::2])
    return "\n".join(lines).encode()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_numbers_of_the_dict(layout: str, save: Save) -> None:
    run = save("run.trec", LAYOUTS[layout](sample.trec_run()))
    gold = save("qrels.txt", LAYOUTS[layout](sample.qrels()))
    assert score(run, gold) == score(sample.RUN, sample.GOLD)
    assert [found.kind for found in findwell.io.check(run, gold)] == ["tied-scores"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lines_in_any_order(layout: str, save: Save) -> None:
    lines = sample.trec_run().splitlines()
    shuffled = "".join(line + "\n" for line in lines[1::2][::-1] + lines[::2])
    run = save("run.trec", LAYOUTS[layout](shuffled))
    assert score(run) == score(sample.RUN)


@pytest.mark.parametrize("text", ["1", "1.0", "+1", "1e0", "10E-1", "1.", "0.1e1", "001"])
def test_scores_as_programs_write_them(text: str, save: Save) -> None:
    run = save("run.trec", f"q1 Q0 a 1 {text} t\nq1 Q0 b 2 0.5 t\nq1 Q0 c 3 -.5e-3 t\n")
    assert findwell.evaluate(run, {"q1": ["b"]}, ["RR"])["RR"] == 0.5


@pytest.mark.parametrize("rank", ["first", "0", "-1", "1.5", "99999999999999999999", "x"])
def test_the_rank_column_may_hold_anything(rank: str, save: Save) -> None:
    run = save("run.trec", f"q1 Q0 a {rank} 2 t\nq1 Q0 b {rank} 1 t\n")
    result = findwell.evaluate(run, {"q1": ["b"]}, ["RR"])
    assert result["RR"] == 0.5
    assert not result.findings


@pytest.mark.parametrize("grade", ["0.5", "2", "1e1", "-2", "3.25"])
def test_grades_are_any_number(grade: str, save: Save) -> None:
    gold = save("qrels.txt", f"q1 0 a {grade}\nq1 0 b 1\n")
    expected = score({"q1": ["a", "b"]}, {"q1": {"a": float(grade), "b": 1}})
    assert score({"q1": ["a", "b"]}, gold) == expected


def test_ids_keep_marks_that_mean_something_elsewhere(save: Save) -> None:
    docs = ['"quoted', "a,b", "it's", "#not-a-comment", "a#1", "\\n", "NULL", "NaN", "=1+1", "{}"]
    run = save("run.trec", "".join(f"q1 Q0 {doc} 1 {9 - i} t\n" for i, doc in enumerate(docs)))
    gold = save("qrels.txt", "".join(f"q1 0 {doc} 1\n" for doc in docs))
    assert findwell.evaluate(run, gold, ["nDCG"])["nDCG"] == pytest.approx(1)


def test_a_missing_column_is_not_hidden_by_a_double_space(save: Save) -> None:
    run = save("run.trec", "q1 Q0 a 1 2 t\nq1  Q0 b 2 1\n")
    with pytest.raises(InputError, match="line 2: found 5 columns instead of 6"):
        score(run, {"q1": ["b"]})


SUBTOPICS = "1 1 a 1\n1 2 a 1\n1 2 b 1\n1 3 c 0\n1 1 d 0\n2 1 x 2\n2 2 y 1\n"
AS_RECORDS = [
    {
        "query": "1",
        "gold": [
            "a",
            ["a", "b"],
            {"docs": ["c"], "grade": 0},
            {"docs": ["d"], "grade": 0},
        ],
    },
    {"query": "2", "gold": [{"docs": ["x"], "grade": 2}, "y"]},
]
SUBTOPIC_RUN = {"1": ["b", "c", "a"], "2": ["y"]}


@pytest.mark.parametrize("options", [{}, {"gold_format": "subtopic-qrels"}])
def test_a_document_judged_for_several_subtopics_makes_groups(
    options: dict[str, Any], save: Save
) -> None:
    gold = save("qrels.txt", SUBTOPICS)
    assert score(SUBTOPIC_RUN, gold, **options) == score(SUBTOPIC_RUN, AS_RECORDS)
    assert not findwell.io.check(SUBTOPIC_RUN, gold, **grouped(options))


def test_subtopics_without_a_shared_document_must_be_named(save: Save) -> None:
    gold = save("qrels.txt", "1 1 a 1\n1 1 b 1\n1 2 c 1\n")
    run = {"1": ["a", "c"]}
    plain = findwell.evaluate(run, gold, ["recall"])
    assert plain["recall"] == pytest.approx(2 / 3)
    assert kinds(plain) == {"iteration-column": 2}
    named = findwell.evaluate(
        run, gold, ["recall"], reading=findwell.Reading(gold_format="subtopic-qrels")
    )
    assert named["recall"] == 1
    assert kinds(named) == {}


def test_an_iteration_column_that_varies_is_a_finding(save: Save) -> None:
    gold = save("qrels.txt", "1 4.5 a 1\n1 0.5 b 0\n1 4.5 c 2\n")
    run = {"1": ["b", "c"]}
    result = findwell.evaluate(run, gold, sample.MEASURES)
    assert kinds(result) == {"iteration-column": 2}
    assert result.findings[0].examples == ("4.5", "0.5")
    assert score(run, gold) == score(run, {"1": {"a": 1, "b": 0, "c": 2}})


def test_one_constant_iteration_is_no_finding(save: Save) -> None:
    gold = save("qrels.txt", "1 7 a 1\n2 7 b 1\n")
    assert not findwell.io.check({"1": ["a"], "2": ["b"]}, gold)


def test_a_repeated_judgement_in_the_same_iteration_is_no_subtopic(save: Save) -> None:
    gold = save("qrels.txt", "1 1 a 1\n1 1 a 1\n1 2 a 1\n1 2 b 1\n")
    result = findwell.evaluate({"1": ["a"]}, gold, ["recall"])
    assert result["recall"] == 0.5
    assert kinds(result) == {"gold-duplicate": 2}


WORDS = st.text(st.characters(min_codepoint=33, exclude_characters=',;|{["#\x7f'), min_size=1)


@given(st.lists(st.lists(WORDS, min_size=4, max_size=7), min_size=1, max_size=3))
@example([["query", "doc", "score", "rank"]])
@example([["trace_id", "span_id", "name", "attributes"]])
def test_only_files_of_trec_begin_with_words_between_spaces(lines: list[list[str]]) -> None:
    head = "".join(" ".join(words) + "\n" for words in lines).encode("utf-8", "replace")
    look = Look("", head)
    if look.only_columns:  # then other formats are not even imported
        others = [each for name, each in known_formats().items() if name not in ("trec", "qrels")]
        assert not any(each.sniff(look, role) for each in others for role in each.roles)
