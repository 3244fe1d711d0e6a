"""`findwell check`: problems in the inputs, without measuring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import findwell
from tests import sample

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

ODD_RUN = "q1 Q0 a 1 nan t\nq1 Q0 b 2 1 t\nq1 Q0 b 3 1 t\nx Q0 a 1 1 t\n"
ODD_GOLD = "q1 0 a 1\nq1 0 a 2\nq2 0 a 1\nq3 0 a 0\n"
KINDS = [
    "gold-duplicate",
    "gold-conflict",
    "no-relevant-item",
    "extra-query",
    "nan-score",
    "unsorted",
    "duplicate-document",
    "missing-query",
]


@pytest.fixture
def odd(save: Save) -> tuple[Path, Path]:
    return save("odd.trec", ODD_RUN), save("odd.qrels", ODD_GOLD)


@pytest.fixture
def even(save: Save) -> tuple[Path, Path]:
    return save("run.trec", "q Q0 a 1 2 t\nq Q0 b 2 1 t\n"), save("qrels.txt", "q 0 b 1\n")


def test_nothing_odd(cli: Findwell, even: tuple[Path, Path]) -> None:
    run, gold = even
    done = cli("check", run, "--gold", gold)
    assert (done.code, done.out, done.err) == (0, "no problems were found\n", "")
    assert cli("check", run, "--gold", gold, "--format=json").answer == {"count": 0, "findings": []}


def test_every_finding_has_a_count_examples_and_a_fix(
    cli: Findwell, odd: tuple[Path, Path]
) -> None:
    run, gold = odd
    shown = cli("check", run, "--gold", gold, "--format=json").answer["findings"]
    assert sorted(row["kind"] for row in shown) == sorted(KINDS)
    for row in shown:
        assert row["count"] >= 1
        assert row["examples"]
        assert row["message"]
        assert row["fix"]
    text = cli("check", run, "--gold", gold).out
    assert text.count("  fix: ") == len(KINDS)
    assert text.endswith(f"{len(KINDS)} findings\n")


def test_one_finding_is_one(cli: Findwell, save: Save) -> None:
    run, gold = save("r", "q Q0 a 1 1 t\n"), save("g", "q 0 a 1\np 0 a 1\n")
    assert cli("check", run, "--gold", gold).out.endswith("\n1 finding\n")


@pytest.mark.parametrize("strict", [True, False])
def test_strict_fails_on_findings(
    strict: bool, cli: Findwell, odd: tuple[Path, Path], even: tuple[Path, Path]
) -> None:
    flag = ["--strict"] if strict else []
    assert cli("check", odd[0], "--gold", odd[1], *flag).code == int(strict)
    assert cli("check", even[0], "--gold", even[1], *flag).code == 0


def test_the_command_is_the_function(cli: Findwell, odd: tuple[Path, Path]) -> None:
    run, gold = odd
    shown = cli("check", run, "--gold", gold, "--format=json", "-o", "-").answer["findings"]
    told = [{**each.as_dict(), "command": None} for each in findwell.io.check(run, gold)]
    assert shown == told


def test_samples(cli: Findwell, save: Save) -> None:
    path = save("s.jsonl", '{"query": "q", "retrieved": ["a", "a"], "gold": ["a"]}\n')
    assert "duplicate-document" in cli("check", path).out


def test_several_runs(cli: Findwell, odd: tuple[Path, Path], files: tuple[Path, Path]) -> None:
    shown = cli("check", odd[0], files[0], "-g", odd[1], "--format=json").answer
    assert {row["run"] for row in shown["findings"]} == {"", "odd", "run"}


@pytest.mark.parametrize(
    "options", [["--read", "ids=uuid"], ["--dialect", "trec_eval"], ["--read", "run_format=trec"]]
)
def test_options_of_score(options: list[str], cli: Findwell, files: tuple[Path, Path]) -> None:
    run, gold = files
    assert cli("check", run, "--gold", gold, *options).code == 0


def test_bad_input_is_not_a_finding(cli: Findwell, save: Save) -> None:
    gold = save("qrels.txt", sample.qrels())
    done = cli("check", save("run.trec", "q1 Q0 a\n"), "--gold", gold, "--read=run_format=trec")
    assert (done.code, done.out) == (2, "")
    assert "line 1: found 3 columns" in done.err
