"""Two ways to the same number agree: every surface gives the values that the result holds."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.pytest_plugin import assert_retrieval
from findwell.show.page import page
from findwell.show.panel import lay_side_by_side
from findwell.show.prepare import prepare
from findwell.show.tables import number
from tests.sample import jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

MEASURES = ["recall@2", "P@2", "AP", "nDCG@3", "RR", "F@2", "ERR", "success@1", "judged@2"]
RECORDS = [
    {
        "query": "pump",
        "retrieved": [
            {"doc": "a", "text": "The pump is blue. It is small."},
            {"doc": "b", "text": "The tank is full."},
            {"doc": "c", "text": "Pumps hum at night. Nobody knows why."},
        ],
        "gold": [
            {"doc": "c", "text": "Pumps hum at night.", "grade": 3},
            {"doc": "a", "text": "The pump is blue.", "grade": 1},
            {"doc": "z", "text": "The pump was bought in spring.", "grade": 2},
        ],
    },
    {
        "query": "tank",
        "retrieved": [
            {"doc": "b", "text": "The tank is full."},
            {"doc": "d", "text": "It holds nine litres."},
        ],
        "gold": [
            {"doc": "b", "text": "The tank is full.", "grade": 2},
            {"doc": "y", "text": "The tank is not full.", "grade": 0},
        ],
    },
    {
        "query": "hose",
        "retrieved": [{"doc": "e", "text": "A hose leaks."}],
        "gold": [{"doc": "x", "text": "The hose is new.", "grade": 2}],
    },
]
CASES = [
    ("ids", "findwell", None),
    ("ids", "findwell", 2.0),
    ("ids", "autorag", None),
    ("ids", "trec_eval", 2.0),
    ("rouge-sentence", "findwell", None),
    ("containment(across=no)", "ragas", 2.0),
    ("exact", "continuous-eval", None),
    ("words", "course", None),
]


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest, save: Save) -> Case:
    by, dialect, rel = request.param
    path = save("samples.jsonl", jsonl(RECORDS))
    result = findwell.evaluate(
        path, None, MEASURES, by=by, dialect=dialect, rel=rel, reading=findwell.Reading(keep=5)
    )
    level = () if rel is None else ("--rel", rel)
    return Case(path, result, ("--by", by, "--dialect", dialect, *level), by, dialect, rel)


@dataclass(frozen=True)
class Case:
    """A result, and how to ask for it again."""

    path: Path
    result: findwell.Result
    options: tuple[object, ...]
    by: str
    dialect: str
    rel: float | None

    @property
    def means(self) -> dict[str, float | None]:
        return {row["measure"]: row["value"] for row in self.result.summary.to_dicts()}

    @property
    def single(self) -> dict[tuple[str, str], float | None]:
        return by_query(self.result.per_query.to_dicts())

    def score(self, cli: Findwell, *options: str) -> str:
        """Return what `findwell score` prints."""
        named = (part for name in MEASURES for part in ("-m", name))
        return cli("score", self.path, *self.options, *named, *options).out


def by_query(rows: Any) -> dict[tuple[str, str], float | None]:
    return {(row["query"], row["measure"]): row["value"] for row in rows}


def test_python(case: Case, tmp_path: Path) -> None:
    assert case.result.values == case.means
    assert all(case.result[name] == value for name, value in case.means.items())
    assert findwell.load(case.result.save(tmp_path / "saved")).values == case.means


def test_programs(case: Case, cli: Findwell) -> None:
    shown = json.loads(case.score(cli, "--per-query", "--format", "json"))["result"]
    assert {row["measure"]: row["value"] for row in shown["summary"]} == case.means
    assert by_query(shown["per_query"]) == case.single
    for how, separator in (("csv", ","), ("tsv", "\t")):
        rows = csv.DictReader(io.StringIO(case.score(cli, "--format", how)), delimiter=separator)
        told = {row["measure"]: float(row["value"]) if row["value"] else None for row in rows}
        assert told == case.means
    lines = case.score(cli, "--per-query", "--format", "jsonl").splitlines()
    assert by_query(map(json.loads, lines)) == case.single


@pytest.mark.parametrize(
    ("how", "pattern"),
    [
        ("table", r"^ (\S+) +(\S+) "),
        ("markdown", r"^\| (\S+) \| (\S+) \|"),
        ("latex", r"^(\S+) & (\S+) &"),
    ],
)
def test_readers(case: Case, how: str, pattern: str, cli: Findwell) -> None:
    out = case.score(cli, "--format", how).replace("\\", "").replace("--", "–")
    told = dict(re.findall(pattern, out, re.MULTILINE))
    for name, value in case.means.items():
        assert told[name] in {number(value), number(value, 3)}, name


def test_explanations(case: Case) -> None:
    how: dict[str, Any] = {"by": case.by, "dialects": case.dialect, "rel": case.rel}
    explained = findwell.explain(case.path, None, MEASURES, worst=len(RECORDS), **how)
    told = {
        (each.query, calculation.measure): calculation.value
        for each in explained
        for calculation in each.calculations
        if calculation.measure in case.means
    }
    assert told == case.single


def test_curves(case: Case, cli: Findwell) -> None:
    rows = cli("curve", case.path, *case.options, "--at", "2", "--format", "json").answer["curve"]
    told = {f"{row['measure']}@{row['k']}": row["value"] for row in rows}
    assert told == {name: case.means[name] for name in told}
    assert len(told) == 2


def test_reports(case: Case) -> None:
    prepared = prepare(lay_side_by_side([case.result]))
    (columns,) = prepared.data["values"]
    embedded = {
        (query, measure["name"]): value
        for measure, column in zip(prepared.data["measures"], columns, strict=True)
        for query, value in zip(prepared.data["query"], column, strict=True)
    }
    assert embedded == {
        key: None if value is None else round(value, 4) for key, value in case.single.items()
    }
    shown = {row[0]: row[1] for row in prepared.charts["values"].table.rows}
    assert shown.keys() == case.means.keys()
    html = page(prepared)
    for name, value in case.means.items():
        written = None if shown[name] == "–" else float(shown[name])
        assert written == (None if value is None else pytest.approx(value, abs=6e-4))
        assert f'<td role="cell" data-label="value">{shown[name]}</td>' in html


def test_tests(case: Case) -> None:
    for name, value in case.means.items():
        if value is not None:
            assert_retrieval(case.result, f"{name}>={value!r}", decide="value")
            with pytest.raises(AssertionError, match=f"is {re.escape(number(value, 3)[:-1])}"):
                assert_retrieval(case.result, f"{name}>{value!r}", decide="value")
