"""Answers that are kept as they come: what counts again, and what does not."""

import json
import os
from pathlib import Path

import pytest

import findwell
from findwell.core.errors import InputError, OptionError, SaveError
from findwell.retrievers.answers import AnswerLog

QUERIES = {f"q{n}": f"question {n}" for n in range(1, 11)}


class Index:
    """Counts what it is asked, and fails for some."""

    def __init__(self, broken: str = "") -> None:
        self.asked: list[str] = []
        self.broken = broken

    def retrieve(self, question: str) -> list[tuple[str, float]]:
        self.asked.append(question)
        if question == self.broken:
            raise KeyboardInterrupt if self.broken == "question 6" else ValueError("away")
        return [(f"doc of {question}", 0.5), ("d2", 0.1)]


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    log, first = tmp_path / "run.part", Index("question 6")
    with pytest.raises(KeyboardInterrupt):
        findwell.retrieve(first, QUERIES, resume=log)
    assert len(log.read_text().splitlines()) == 5
    second = Index()
    run = findwell.retrieve(second, QUERIES, resume=log)
    assert second.asked == [f"question {n}" for n in range(6, 11)]
    whole = findwell.retrieve(Index(), QUERIES)
    assert run.rows.equals(whole.rows)
    assert [found.kind for found in run.findings] == ["resumed-answer"]
    assert run.about is not None
    starts = run.about["started_s"].to_list()
    assert starts == sorted(starts)  # the time between the processes is nobody's
    third = Index()
    again = findwell.retrieve(third, QUERIES, resume=log)
    assert third.asked == []
    assert again.rows.equals(whole.rows)


def test_a_failure_is_asked_again(tmp_path: Path) -> None:
    log = tmp_path / "run.part"
    findwell.retrieve(Index("question 3"), QUERIES, resume=log)
    second = Index()
    run = findwell.retrieve(second, QUERIES, resume=log)
    assert second.asked == ["question 3"]
    assert run.about is not None
    assert run.about["error"].count() == 0


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    log = tmp_path / "run.part"
    findwell.retrieve(Index(), QUERIES, resume=log)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    second = Index()
    findwell.retrieve(second, QUERIES, resume=log)
    assert second.asked == [f"question {n}" for n in range(5, 11)]
    assert all(json.loads(line) for line in log.read_text().splitlines())


def test_other_questions_and_other_options_are_asked(tmp_path: Path) -> None:
    log = tmp_path / "run.part"
    findwell.retrieve(Index(), QUERIES, resume=log)
    second = Index()
    findwell.retrieve(second, QUERIES | {"q2": "something else"}, resume=log)
    assert second.asked == ["something else"]
    third = Index()
    run = findwell.retrieve(third, QUERIES, k=1, resume=log)
    assert len(third.asked) == len(QUERIES)
    assert run.rows.height == len(QUERIES)
    assert "other-configuration" in {found.kind for found in run.findings}


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("my notes\n")
    with pytest.raises(InputError, match="not a file of answers"):
        findwell.retrieve(Index(), QUERIES, resume=other)
    assert other.read_text() == "my notes\n"
    other.write_text("my notes, one line")  # as if it were torn
    with pytest.raises(InputError, match="not a file of answers"):
        findwell.retrieve(Index(), QUERIES, resume=other)
    assert other.read_text() == "my notes, one line"
    with pytest.raises(SaveError, match="cannot be kept here"):
        findwell.retrieve(Index(), QUERIES, resume=tmp_path / "nowhere" / "run.part")


@pytest.mark.skipif(os.name == "nt", reason="files are not locked there")
def test_two_at_a_time_do_not_mix(tmp_path: Path) -> None:
    log = tmp_path / "run.part"
    with (
        AnswerLog(log, "x", []),
        pytest.raises(OptionError, match="another process is writing its answers"),
    ):
        findwell.retrieve(Index(), QUERIES, resume=log)
