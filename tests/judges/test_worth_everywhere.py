"""No surface shows a judged verdict or value without saying what its judge is worth."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.loop.monitoring.alarm_report import prometheus_text
from findwell.loop.monitoring.webhook import message
from findwell.monitor import Monitor
from findwell.pytest_plugin import assert_retrieval
from findwell.show.document import document_of, write
from findwell.show.gate import as_junit
from tests.monitoring.made_calls import made_calls

if TYPE_CHECKING:
    from tests.conftest import Findwell

WORTH = "for smoke tests only"  # of local:text
JUDGED = ("-m", "context_precision", "--judge", "local:text")
TEXTS = (
    ("q1", "What is the capital of Brazil?", "Brasília is the capital of Brazil.", "Tea is brown."),
    ("q2", "Who planned Brasília?", "Lúcio Costa planned Brasília.", "Coffee grows in Brazil."),
)
ROWS = ("jsonl", "csv", "tsv")
PAPERS = ("table", "markdown", "latex", "json")
A, B = "a.jsonl", "b.jsonl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for path, places in ((A, (0, 1)), (B, (1, 0))):
        rows = []
        for query, question, *texts in TEXTS:
            found = [{"doc": f"{query}-{at}", "text": texts[at]} for at in places]
            row = {"query": query, "question": question, "retrieved": found}
            rows.append(row | ({"gold": [f"{query}-0"]} if path == B else {}))
        (tmp_path / path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "labels.csv").write_text("query,doc,label\nq1,q1-0,1\nq1,q1-1,0\nq2,q2-0,1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("formats", "arguments"),
    [
        ((*PAPERS, *ROWS), ("score", A, *JUDGED)),
        ((*PAPERS, *ROWS), ("score", A, *JUDGED, "--per-query")),
        ((*PAPERS, *ROWS), ("score", A, *JUDGED, "--explain-verdicts")),
        ((*PAPERS, *ROWS), ("score", A, *JUDGED, "--require", "context_precision>=0.1")),
        (
            (*PAPERS, *ROWS),
            ("score", A, *JUDGED[2:], "-m", "P@2/relevance", "--labels", "labels.csv"),
        ),
        ((*PAPERS, *ROWS), ("compare", A, B, *JUDGED)),
        ((*PAPERS, *ROWS), ("compare", A, B, *JUDGED, "--no-regression", "context_precision")),
        (
            (*PAPERS, *ROWS),
            ("compare", A, B, *JUDGED[2:], "-m", "P@2/relevance", "--labels", "labels.csv"),
        ),
        (("table", "markdown", "json", "csv"), ("curve", A, *JUDGED)),
        (("table", "markdown", "json"), ("power", A, B, *JUDGED)),
        (("table", "markdown", "json"), ("explain", A, "-q", "q1", *JUDGED)),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
@pytest.mark.usefixtures("folder")
def test_every_command_says_it_in_every_format(
    cli: Findwell, formats: Sequence[str], arguments: Sequence[str]
) -> None:
    for how in formats:
        shown = cli(*arguments, "--format", how)
        assert shown.code != 2, shown
        assert WORTH in " ".join(shown.out.split()), (how, shown.out)


@pytest.mark.usefixtures("folder")
def test_rows_that_no_judge_decided_have_no_judge(cli: Findwell) -> None:
    mixed = cli("score", B, *JUDGED, "-m", "recall@2", "--format", "csv").out
    judges = {row["measure"]: row["judge"] for row in csv.DictReader(io.StringIO(mixed))}
    assert WORTH in judges["context_precision"]
    assert not judges["recall@2"]
    assert "judge" not in cli("score", B, "-m", "recall@2", "--format", "csv").out
    by_labels = ("-m", "P@2/relevance", "--labels", "labels.csv", "--format", "csv")
    estimates = cli("score", A, "--judge", "local:text", *by_labels).out
    judges = {row["method"]: row["judge"] for row in csv.DictReader(io.StringIO(estimates))}
    assert {method: bool(judge) for method, judge in judges.items()} == {
        "judge": True,
        "labels": False,
        "ppi": True,
    }


def test_files_that_commands_write(folder: Path, cli: Findwell) -> None:
    gate = ("--require", "context_precision>=0.1", "--junit", "gate.xml")
    assert cli("score", A, *JUDGED, *gate, "--save", "saved").code == 3
    change = ("--no-regression", "context_precision", "--junit", "change.xml")
    assert cli("compare", A, B, *JUDGED, *change).code == 3
    assert cli("report", "saved", "-o", "page.html").code == 0
    for name in (
        "gate.xml",
        "change.xml",
        "page.html",
        "saved/manifest.json",
        "saved/summary.json",
    ):
        assert WORTH in (folder / name).read_text(encoding="utf-8"), name
    again = cli("score", "saved", "-m", "P@1/relevance", "--format", "csv").out
    assert WORTH in again


@pytest.mark.usefixtures("folder")
def test_what_python_and_notebooks_show() -> None:
    chosen: Any = {"measures": ["context_precision"], "judge": "local:text"}
    result = findwell.evaluate(A, **chosen)
    gate = findwell.gate(result, ["context_precision>=0.1"])
    shown = (
        result,
        findwell.compare(A, B, **chosen),
        *findwell.explain(A, query="q1", **chosen),
        findwell.statistics.power(A, B, **chosen),
        findwell.labels.ppi(A, "labels.csv", ["P@2/relevance"], judge="local:text"),
        gate,
    )
    for each in shown:
        assert WORTH in " ".join(repr(each).split()), each
        assert WORTH in write(document_of(each), "html"), each
    with pytest.raises(AssertionError, match=WORTH):
        assert_retrieval(result, "context_precision>=0.1")


@pytest.mark.usefixtures("folder")
def test_estimates_by_the_verdicts_that_a_pool_holds(cli: Findwell) -> None:
    graded = ("--judge", "local:text", "--for", "values", "--budget", "3", "-o", "pool")
    assert cli("labels", "pool", A, *graded).code == 0
    assert cli("labels", "import", "pool", "labels.csv").code == 0
    for how in (*PAPERS, *ROWS):
        asked = ("score", A, "-m", "P@2", "--labels", "pool", "--format", how)
        assert WORTH in " ".join(cli(*asked).out.split()), how


@pytest.mark.parametrize(("alert", "opened"), [("<99%", True), ("<0.1%", False)])
def test_what_is_watched(tmp_path: Path, alert: str, *, opened: bool) -> None:
    """The page of a store, the numbers for Prometheus, JUnit, and what is sent to a webhook."""
    with Monitor.open(tmp_path / "store", create=True) as monitor:
        monitor.store.add(made_calls(120))
        report = monitor.check([f"context_precision{alert}"], judge="local:text")
        numbers = prometheus_text(monitor.store)
    page = findwell.report(tmp_path / "store")
    assert bool(report.raised) == opened
    assert WORTH in page.partition('<details id="watched">')[2].partition("</details>")[0]
    [info] = [line for line in numbers.splitlines() if line.startswith("findwell_judge_info{")]
    assert 'signal="context_precision"' in info
    assert WORTH in info
    assert WORTH in as_junit(report.as_gate())
    assert (WORTH in message(report)["text"]) == opened  # for chats: only what is new
