"""`findwell choose`: every combination of answers ends in a command that can be run."""

from __future__ import annotations

import itertools
import json
import os
import pty
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import findwell
from findwell.evaluation.choose import QUESTIONS, RULES
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell

NAMES = [question.name for question in QUESTIONS]
JOBS = list(itertools.product(*(question.answers for question in QUESTIONS)))


def test_every_job_has_measures_that_exist() -> None:
    used: set[str] = set()
    for job in JOBS:
        advice = findwell.statistics.choose(**dict(zip(NAMES, job, strict=True)), k=7)
        for name in advice.measures:
            assert findwell.plugins.parse_measure(name).name
        assert 2 <= len(advice.measures) <= 5, job
        used |= advice.measures.keys()
    assert used == {rule.measure.format(k=7) for rule in RULES}  # no rule that never fires


@pytest.mark.parametrize("k", ["0", "abc", "-3", 0, 2.5])
def test_a_cutoff_that_is_none_is_refused(k: object) -> None:
    with pytest.raises(findwell.FindwellError, match="recall@"):
        findwell.statistics.choose(k=k)  # type: ignore[arg-type]
    assert "recall@2000tokens" in findwell.statistics.choose(k="2000tokens").measures


@pytest.mark.parametrize("known", ["ids", "grades", "nothing", "answers"])
@pytest.mark.parametrize("use", ["all", "order", "first"])
def test_the_command_can_be_run(
    cli: Findwell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str, use: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("demo", "--files", "demo").code == 0
    record = {"question": "why?", "retrieved_contexts": ["Why not?"], "reference": "It rains."}
    (tmp_path / "samples.jsonl").write_text(json.dumps(record))
    run = "demo/bm25.trec" if known in ("ids", "grades") else "samples.jsonl"
    command = findwell.statistics.choose(known=known, use=use).command
    command = command.replace("GOLD", "demo/questions.jsonl").replace("RUN", run)
    done = cli(*shlex.split(command)[1:])
    assert done.code in (0, 3), done.err
    assert "not measured" not in done.err or known == "nothing"


def test_questions_are_asked_at_a_terminal() -> None:
    person, end = pty.openpty()
    os.write(person, b"5\n2\n\n10\n")  # a good answer; order; the usual one; how many
    done = subprocess.run(
        [sys.executable, "-m", "findwell", "choose"],
        stdin=end, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    os.close(person)
    os.close(end)
    assert (
        done.stdout.splitlines()[-1]
        == findwell.statistics.choose(known="answers", use="order", k=10).command
    )
    assert "Were all relevant documents labelled?" not in done.stderr  # there are no labels


def test_the_advice_fits_a_narrow_terminal() -> None:
    shown, code = on_terminal(["choose", "--known", "ids", "--usual"], 60)
    assert code == 0
    assert "findwell score RUN --gold GOLD -m recall@5 -m P@5" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_without_a_terminal_the_options_answer(cli: Findwell) -> None:
    done = cli("choose", "--known", "ids")
    assert (done.code, "answer with --use" in done.err) == (2, True)
    usual = cli("choose", "--usual", "--format", "json")
    told = json.loads(json.dumps(findwell.statistics.choose().as_dict()))
    assert usual.answer == {**told, "findings": []}
    with pytest.raises(findwell.FindwellError, match="unknown answer to `known` 'idx'"):
        findwell.statistics.choose(known="idx")
