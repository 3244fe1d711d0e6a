"""`findwell.labels.Labels`: what is said is kept, counted, undone and never lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError, OptionError, SaveError

if TYPE_CHECKING:
    from pathlib import Path

RUNS = {
    "one": {"q1": ["a", "b", "c"], "q2": ["d", "e", "f"]},
    "two": {"q1": ["c", "g"], "q2": ["e", "h"]},
}
TEXTS = {doc: f"Text of {doc}." for doc in "abcdefgh"}
QUESTIONS = {"q1": "What is one?", "q2": "What is two?"}


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    findwell.labels.pool(RUNS, tmp_path / "pool", queries=QUESTIONS, corpus=TEXTS)
    return tmp_path / "pool"


def test_all_pairs_are_offered_once(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        seen: list[tuple[str, str]] = []
        while (pair := labels.next()) is not None:
            assert pair.text == f"Text of {pair.doc}."
            assert pair.question == QUESTIONS[pair.query]
            assert (pair.position, pair.total) == (len(seen) + 1, 8)
            seen.append((pair.query, pair.doc))
            labels.set(pair.query, pair.doc, 1 if pair.doc in "ae" else 0)
        assert len(set(seen)) == len(seen) == 8
        assert [query for query, _ in seen] in (["q1"] * 4 + ["q2"] * 4, ["q2"] * 4 + ["q1"] * 4)
        gold = labels.gold().rows()
    assert gold.filter(pl.col("grade") > 0).sort("doc").select("query", "doc").rows() == [
        ("q1", "a"),
        ("q2", "e"),
    ]


def test_it_goes_on_where_it_stopped(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        first = labels.next()
        assert first is not None
        labels.set(first.query, first.doc, 3, note="clear", start=0, end=4)
    with findwell.labels.Labels.open(pool / "labels.db", "ann") as labels:
        second = labels.next()
        assert second is not None
        assert (second.query, second.doc) != (first.query, first.doc)
        assert second.position == 2
        row = labels.frame().row(0, named=True)
        assert (row["grade"], row["note"], row["start"], row["end"]) == (3.0, "clear", 0, 4)
        assert (row["annotator"], row["design"], row["state"]) == ("ann", "mm-ns", "labelled")
        assert row["time"].utcoffset() is not None


def test_undo_is_of_the_annotator_and_is_recorded(pool: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        labels.set("q1", "a", 1, annotator="ann")
        labels.set("q1", "a", 2, annotator="ann")
        labels.set("q1", "a", 0, annotator="ben")
        undone = labels.undo("ann")
        assert undone is not None
        assert (undone.doc, undone.grade) == ("a", 1.0)  # the label before holds again
        assert sorted(labels.frame().select("annotator", "grade").rows()) == [
            ("ann", 1.0),
            ("ben", 0.0),
        ]
        assert labels.undo("ann") is not None
        assert labels.undo("ann") is None
        history = labels.history()
        assert history["kind"].to_list() == ["label", "label", "label", "undo", "undo"]
        assert history["undone"].to_list() == [True, True, False, False, False]
        assert labels.frame().height == 1


def test_skipped_and_unsure_pairs(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        labels.skip("q1", "a")
        labels.unsure("q1", "b", note="says half of it")
        progress = labels.progress()
        assert (progress.labelled, progress.skipped, progress.unsure, progress.left) == (0, 1, 1, 6)
        offered = set()
        while (pair := labels.next()) is not None:
            offered.add(pair.doc)
            labels.set(pair.query, pair.doc, 0)
        assert offered == set("cdefgh")
        assert labels.next("ben") is not None  # somebody else may know
        (doubt,) = labels.disagreements()
        assert (doubt.doc, doubt.grades) == ("b", {"ann": None})
        assert doubt.notes == {"ann": "says half of it"}


def test_adjudication_decides(pool: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        labels.set("q1", "a", 0, annotator="ann")
        labels.set("q1", "a", 2, annotator="ben")
        (open_,) = labels.disagreements()
        assert open_.grades == {"ann": 0.0, "ben": 2.0}
        gold = labels.gold()
        assert gold.rows().row(0) == ("q1", "a", 0.0, None)  # the lower one, and it is said
        assert [found.kind for found in gold.findings] == ["disputed-label"]
        labels.adjudicate("q1", "a", 2, annotator="eva")
        assert labels.disagreements() == []
        assert labels.gold().rows().row(0) == ("q1", "a", 2.0, None)
        labels.undo("eva")
        assert len(labels.disagreements()) == 1


def test_most_annotators_decide(pool: Path) -> None:
    with findwell.labels.Labels.open(pool) as labels:
        for name, first, second in (("a", 3, 0), ("b", 1, 2), ("c", 1, 3)):
            labels.set("q1", "a", first, annotator=name)
            labels.set("q1", "b", second, annotator=name)
        grades = dict(labels.gold().rows().select("doc", "grade").rows())
    assert grades == {"a": 1.0, "b": 2.0}  # the most frequent; of three the middle one


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("q1", "h", 1), InputError, "document 'h' is not in the pool for query 'q1'"),
        (("q3", "a", 1), InputError, "query 'q3' is not in the pool"),
        (("q1", "a", 4), OptionError, "the grade is 4"),
        (("q1", "a", 0.5), OptionError, "the grade is 0.5"),
        (("q1", "a", float("nan")), OptionError, "the grade is nan"),
    ],
)
def test_what_cannot_be_said(
    pool: Path, arguments: tuple[str, str, float], error: type[Exception], message: str
) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        labels.set("q1", "b", 1)
        with pytest.raises(error, match=message):
            labels.set(*arguments)
        with pytest.raises(OptionError, match="characters 3 to 99"):
            labels.set("q1", "a", 1, start=3, end=99)
        assert labels.frame()["doc"].to_list() == ["b"]


def test_somebody_must_say_it(pool: Path) -> None:
    with (
        findwell.labels.Labels.open(pool) as labels,
        pytest.raises(OptionError, match="no annotator is named"),
    ):
        labels.set("q1", "a", 1)


def test_notes(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        labels.note("q1", "a", "first")
        assert labels.next() is not None
        assert labels.frame().height == 0  # a note is no label
        labels.set("q1", "a", 1)
        labels.note("q1", "a", "second")
        labels.note("q1", "a", "of somebody else", annotator="ben")
        labels.set("q1", "b", 1, note="its own")
        notes = dict(labels.frame().select("doc", "note").rows())
    assert notes == {"a": "second", "b": "its own"}


def test_many_labels_are_read_at_once(tmp_path: Path) -> None:
    """Four times the labels take no more than some times as long, also with notes."""
    took = []
    for size in (500, 2000):
        run = {f"q{number}": ["a"] for number in range(size)}
        findwell.labels.pool([run], tmp_path / str(size))
        with findwell.labels.Labels.open(tmp_path / str(size), "ann") as labels:
            labels.import_labels({query: {"a": 1} for query in run})
            labels.note("q1", "a", "x")
            labels.frame()
            spent = []
            for _ in range(3):
                before = time.process_time()
                labels.frame()
                spent.append(time.process_time() - before)
            took.append(min(spent))
    assert took[1] < 10 * took[0]


def test_guidelines_are_kept(pool: Path) -> None:
    with findwell.labels.Labels.open(pool, "ann") as labels:
        assert labels.guidelines == ""
        labels.guidelines = "2 means that it answers the question."
    with findwell.labels.Labels.open(pool) as labels:
        assert labels.guidelines == "2 means that it answers the question."


def test_a_pool_is_never_replaced(pool: Path) -> None:
    with pytest.raises(SaveError, match="never replaced"):
        findwell.labels.pool(RUNS, pool)


def test_no_labels_here(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no labels here"):
        findwell.labels.Labels.open(tmp_path)
