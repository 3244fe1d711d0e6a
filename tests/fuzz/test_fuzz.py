"""Spoilt files: exit 0 or 2, no traceback, and messages that name the file, the line and a fix."""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path

import pytest

from tests.conftest import Outcome
from tests.fuzz.cases import Case, cases
from tests.fuzz.checking import flaws
from tests.fuzz.originals import plans
from tests.fuzz.running import run

FEW, MANY = 30, 200


def complaints(seed: int, count: int) -> list[str]:
    """Run cases; return what is wrong, with the name under which a case is made again."""
    found = []
    for case in islice(cases(seed), count):
        done = _run(case)
        wrong = flaws(case, done)
        if wrong:
            found.append(f"{case.name}: {'; '.join(wrong)}\n{done.err[-800:]}")
    return found


def _run(case: Case) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return run(case, Path(folder))


def test_a_few() -> None:
    assert complaints(0, FEW) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_many(seed: int) -> None:
    assert complaints(seed, MANY) == []


@pytest.mark.slow
def test_whole_files_are_read() -> None:
    for plan in plans():
        whole = Case(plan.name, plan.files, plan.command, plan.target, plan.kind, plan.codes)
        done = _run(whole)
        assert done.code == 0, (plan.name, plan.command, done.err)


def test_the_same_seed_gives_the_same_cases() -> None:
    first, again, other = (list(islice(cases(seed), FEW)) for seed in (5, 5, 6))
    assert first == again
    assert first != other


CASE = Case("x", {}, ("score", "run.csv"), "run.csv", "table", frozenset({0, 2}))
GOOD = "findwell: run.csv, line 3: wrong\n  fix: correct it\n"
OUTCOMES = {
    "good": (Outcome(2, "", GOOD), []),
    "no error": (Outcome(0, "x", "note: all is well\n"), []),
    "crash": (Outcome(70, "", "Traceback …\nKeyError: 'x'"), ["exit 70: KeyError: 'x'"]),
    "gate": (Outcome(1, "", ""), ["exit 1: "]),
    "no fix": (Outcome(2, "", GOOD.partition("\n")[0]), ["no fix"]),
    "another file": (Outcome(2, "", GOOD.replace("run", "gold")), ["no file"]),
    "no line": (Outcome(2, "", GOOD.replace(", line 3", "")), ["no line"]),
    "line 0": (Outcome(2, "", GOOD.replace("3", "0")), ["no line", "line 0, or None"]),
    "None": (Outcome(2, "", GOOD.replace("wrong", "no room: None")), ["line 0, or None"]),
    "control": (Outcome(2, "", GOOD.replace("wrong", "\x1b[31m")), ["unprintable"]),
    "usage": (Outcome(2, "", "Usage: …"), ["no message of findwell: Usage: …"]),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_is_wrong_is_found(name: str) -> None:
    outcome, wrong = OUTCOMES[name]
    assert flaws(CASE, outcome) == wrong


def test_a_warning_is_found() -> None:
    (flaw,) = flaws(CASE, Outcome(0, "", "warning: overflow\n"))
    assert flaw.startswith("warning")
