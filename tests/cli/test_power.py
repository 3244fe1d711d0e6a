"""`findwell power`: what it prints, and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import findwell

if TYPE_CHECKING:
    from tests.conftest import Findwell

DEMO = Path(findwell.__file__).parent / "demo"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Save the demo's result."""
    runs = [DEMO / "bm25.trec", DEMO / "minilm.trec"]
    return findwell.evaluate(runs, DEMO / "questions.jsonl", ["recall@10"]).save(
        tmp_path / "result"
    )


def test_from_a_result(cli: Findwell, folder: Path) -> None:
    done = cli("power", folder, "-m", "recall@10", "--difference", "0.05", "--sizes", "100,400")
    assert done.code == 0
    lines = done.out.splitlines()
    begins = "recall@10: from the differences between bm25 and minilm on 91 queries"
    assert lines[0] == begins
    assert any("to see a difference of 0.05 with a power of 80%" in line for line in lines)
    assert any("the 91 queries at hand show a difference of" in line for line in lines)
    assert any(line.split()[:1] == ["400"] for line in lines)


def test_from_assumed_numbers(cli: Findwell, tmp_path: Path) -> None:
    options = ("--sd", "0.3", "--difference", "0.02", "--power", "0.8", "--alpha", ".05")
    done = cli("power", *options, "--format", "json")
    assert done.code == 0
    (shown,) = done.answer["plans"]
    assert shown["needed"] == {"value": 1768.0, "reason": ""}
    assert len(shown["curve"]) == 12
    assert "1,768 queries" in cli("power", *options).out
    written = cli("power", *options, "--format", "markdown", "-o", tmp_path / "plan.md")
    assert written.out == ""
    assert "| 1,217 |" in (tmp_path / "plan.md").read_text(encoding="utf-8")


def test_nothing_can_be_said_of_one_query(cli: Findwell, tmp_path: Path) -> None:
    folder = findwell.evaluate({"q": ["a"]}, {"q": ["a"]}, "RR").save(tmp_path / "one")
    done = cli("power", folder, folder, "--difference", "0.1")
    assert done.code == 0
    assert "nothing can be said: a comparison needs two queries or more" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "it is not known how much the differences vary between queries"),
        (["--sd", "0.3"], "neither a difference nor a number of queries"),
        (["--sd", "x"], "'x' is not a number"),
        (["--sd", "0.3", "--difference", "0.1", "--sizes", "1,x"], "not a list of whole numbers"),
        (["--sd", "0.3", "--difference", "0.1", "--gold", "g"], "--gold needs a RUN"),
        (["nosuch", "--difference", "0.1"], "nosuch: no such file"),
        (["--sd", "0.3", "--difference", "0.1", "--power", "2"], "power is 2.0"),
    ],
)
def test_mistakes(arguments: list[str], message: str, cli: Findwell) -> None:
    done = cli("power", *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
