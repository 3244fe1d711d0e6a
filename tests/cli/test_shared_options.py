"""What commands have in common: the options that say what is read, and what they are for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from karat.cli import cli as group
from tests.sample import jsonl

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from tests.conftest import Karat, Save

READ = {
    "--gold", "--run-format", "--gold-format", "--skip-bad", "--ids", "--by", "--corpus",
    "--embedder", "--dialect",
}  # fmt: skip
MEASURE = {"--rel", "--missing", "--measure", "--judge", "--dry-run", "--max-cost"}


def command(name: str) -> click.Command:
    found = group.get_command(None, name)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["score", "compare", "explain", "curve", "power"])
def test_commands_that_measure_what_they_read_take_the_same_options(name: str) -> None:
    options = {option for each in command(name).params for option in each.opts}
    assert options >= READ | MEASURE


def test_a_check_reads_alike() -> None:
    assert {option for each in command("check").params for option in each.opts} >= READ


RECORDS = [
    {"query": "q", "retrieved": ["A b c d. E f."], "gold": [{"text": "a b", "grade": 2}]},
    {"query": "r", "retrieved": ["g h"], "gold": [{"text": "g h i", "grade": 1}]},
    {"query": "s", "retrieved": ["j k"], "gold": [{"text": "j k", "grade": 2}]},
]


@pytest.fixture
def path(save: Save) -> Path:
    return save("samples.jsonl", jsonl(RECORDS) + "{broken\n")


@pytest.mark.parametrize("name", ["score", "compare", "explain", "curve", "power"])
def test_every_command_obeys_them(name: str, path: Path, cli: Karat) -> None:
    files = [path, path] if name in ("compare", "power") else [path]
    asked = (name, *files, "--by", "containment(across=no)", "-m", "recall", "--format", "json")
    assert cli(*asked).code == 2  # what cannot be read
    done = cli(*asked, "--skip-bad", "--rel", "2")
    assert done.code == 0, done
    shown = json.loads(done.out)
    assert "containment(across=no)" in done.out
    assert "recall(rel=2)" in done.out
    assert "could not be read" in done.out or "cannot be read" in done.out, shown


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--by", "rouge"), "by has no effect: there is no system to measure"),
        (("-m", "recall"), "measures has no effect"),
    ],
)
def test_power_without_systems_refuses_what_it_would_ignore(
    option: tuple[str, str], message: str, cli: Karat
) -> None:
    done = cli("power", "--sd", "0.3", "--difference", "0.1", *option)
    assert done.code == 2
    assert message in done.err


def test_a_target_is_meant_at_the_level_of_the_curve(cli: Karat, save: Save) -> None:
    run = save("run.json", '{"q": ["a", "b"]}')
    gold = save("gold.json", '{"q": {"a": 2, "b": 1}}')
    asked = ("curve", run, "--gold", gold, "-m", "recall", "--at", "1,2", "--format", "json")
    shown = json.loads(cli(*asked, "--rel", "2", "--reach", "recall>=1").out)
    assert [(row["k"], row["value"]) for row in shown["curve"]] == [(1, 1.0), (2, 1.0)]
    assert shown["reach"][0]["k"] == 1


def test_a_gate_is_meant_at_the_level_of_the_comparison(cli: Karat, save: Save) -> None:
    runs = [save("a.json", '{"q": ["a"], "r": ["b"]}'), save("b.json", '{"q": ["a"], "r": ["b"]}')]
    gold = save("gold.json", '{"q": {"a": 2}, "r": {"b": 2, "c": 1}}')
    asked = ("compare", *runs, "--gold", gold, "--rel", "2", "--no-regression", "recall@1")
    done = cli(*asked, "--format", "json")
    assert done.code == 0, done
    assert json.loads(done.out)["requirements"][0]["measure"] == "recall(rel=2)@1"
