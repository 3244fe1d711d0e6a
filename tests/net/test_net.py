"""Today's answers are the recorded ones: `python -m tests.net` shows what differs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click
import pytest

from findwell.cli import cli
from tests.members import quick
from tests.net import commands, values
from tests.net.__main__ import RECORDED
from tests.test_invariances import DIALECTS

if TYPE_CHECKING:
    from pathlib import Path

CLOSE = 1e-13  # processors differ in the last digits of a logarithm
# commands that print no JSON, ask a model, serve a page or tell what is installed; the tests of
# their rooms cover them
WITHOUT_RECORD = {
    *("run", "view", "demo", "init", "report", "monitor", "questions"),
    *("judge", "explain-config", "trust", "completion", "schema", "skill", "doctor"),
}


def same(found: Any, recorded: Any) -> bool:
    """Compare two answers, numbers up to the last digits."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        return list(found) == list(recorded) and all(same(found[k], recorded[k]) for k in found)
    if isinstance(found, list) and isinstance(recorded, list):
        return len(found) == len(recorded) and all(map(same, found, recorded))
    if isinstance(found, float) and isinstance(recorded, float):
        return math.isclose(found, recorded, rel_tol=CLOSE, abs_tol=CLOSE)
    return bool(found == recorded)


def number(spelled: str) -> float | str:
    return spelled if spelled == "None" else float(spelled)


@pytest.mark.parametrize(
    "dialect",
    quick(DIALECTS, "findwell", "trec_eval"),
)
def test_values(dialect: str) -> None:
    found = values.rows(dialect)
    lines = {
        row[0]: row[1:]
        for name in dict.fromkeys((values.DEFAULT, dialect))
        for row in (
            line.split("\t") for line in (RECORDED / f"values/{name}.tsv").read_text().splitlines()
        )
    }
    assert found.keys() <= lines.keys()
    wrong = {
        measure: (row, lines[measure])
        for measure, row in found.items()
        if not same([*map(number, row)], [*map(number, lines[measure])])
    }
    assert not wrong


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_commands(name: str, tmp_path: Path) -> None:
    with commands.folder(tmp_path):
        found = commands.answer(commands.COMMANDS[name])
    text = json.dumps(found).replace(str(tmp_path), "FOLDER")
    recorded = json.loads((RECORDED / f"commands/{name}.json").read_text())
    assert same(json.loads(text), recorded), f"see `python -m tests.net` for what differs: {text}"


def test_every_command_is_recorded() -> None:
    names = {arguments.split()[0] for arguments in commands.COMMANDS.values()}
    with click.Context(cli) as context:
        assert names | WITHOUT_RECORD == {*cli.list_commands(context)}
