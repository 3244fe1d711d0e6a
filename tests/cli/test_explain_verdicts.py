"""`findwell score --explain-verdicts`: what the judge said, in every format."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from rich.cells import cell_len

import findwell
from findwell.evaluation.explanation.units import verdict_table
from findwell.evaluation.results.store import seal
from findwell.io.storage.folders import MANIFEST
from findwell.show import render
from tests.client.server import serve
from tests.judges.single_model import SURE, by_token
from tests.reports.test_details import told as case_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

FIELDS = (
    "run query aspect item rank doc value probability reason quote unproven".split()  # noqa: SIM905
)
RECORDS = [
    {
        "query": "q1",
        "question": "Where is the tower?",
        "retrieved": [
            {"id": "d1", "text": "The tower is in Paris."},
            {"id": "d2", "text": "Tea is brown."},
        ],
        "reference": "The tower is in Paris.",
    }
]


@pytest.fixture
def samples(save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))
    return save("s.jsonl", "".join(json.dumps(row) + "\n" for row in RECORDS))


def test_every_format_has_the_same_verdicts(cli: Findwell, samples: Path) -> None:
    asked = ("score", samples, "-m", "context_recall", "--judge", "local:text")
    result = findwell.evaluate(
        samples, measures="context_recall", judge="local:text", reading=findwell.Reading(keep=50)
    )
    rows = verdict_table(result).to_dicts()
    assert [*rows[0]] == FIELDS
    told = [(row["query"], row["aspect"], row["rank"], row["doc"], row["value"]) for row in rows]
    assert told == [("q1", "claims", 1, "d1", 1), ("q1", "claims", 2, "d2", 0)]
    assert all(row["probability"] is not None for row in rows)
    assert rows[0]["probability"] > 0.9
    assert rows[1]["probability"] < 0.1
    shown = cli(*asked, "--explain-verdicts", "--format", "json").answer
    assert shown["verdicts"] == rows
    assert shown["summary"][0]["value"] == 1.0
    assert "verdicts" not in cli(*asked, "--format", "json").answer
    lines = cli(*asked, "--explain-verdicts", "--format", "jsonl").out.splitlines()
    worth = "judge local:text: κ with people 0.26"
    assert [{**json.loads(line), "judge": ""} for line in lines] == [
        {**row, "judge": ""} for row in rows
    ]
    assert all(json.loads(line)["judge"].startswith(worth) for line in lines)
    table = cli(*asked, "--explain-verdicts", "--format", "csv").out
    assert [row["quote"] for row in csv.DictReader(io.StringIO(table))] == [
        row["quote"] for row in rows
    ]
    for how in ("table", "markdown"):
        text = cli(*asked, "--explain-verdicts", "--format", how).out
        for row in rows:
            assert f"{row['probability']:.2f}" in text
            assert row["reason"] in text
            assert row["quote"] in text
        assert "1.0000" in text  # the table of values is still there


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_gets_a_list(samples: Path, width: int) -> None:
    measures = ["context_recall", "context_precision"]
    result = findwell.evaluate(
        samples, measures=measures, judge="local:text", reading=findwell.Reading(keep=50)
    )
    text = render(result, "table", verdicts=True, width=width)
    assert max(map(cell_len, text.splitlines())) <= width
    flat = " ".join(text.split())
    for row in verdict_table(result).iter_rows(named=True):
        assert f"chunk {row['rank']} · verdict {row['value']}" in flat
        assert f"probability {row['probability']:.2f} why: {row['reason']}" in flat
        assert f"quote: {row['quote']}" in flat


def test_probabilities_of_a_model_reach_table_saved_result_and_report(
    cli: Findwell, samples: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "result"
    with serve(by_token) as server:
        model = ("--judge", "openai:m", "-J", f"base_url={server.url}", "-J", "ask=single")
        measured = ("score", samples, "-m", "context_recall", *model, "--save", folder)
        first = cli(*measured, "--explain-verdicts", "--format", "json")
    told = first.answer["verdicts"]
    sure = SURE / 0.95
    assert [row["probability"] for row in told] == pytest.approx([sure, 1 - sure])
    again = cli("score", folder, "--explain-verdicts", "--format", "json")
    assert again.answer["verdicts"] == told
    explained = cli("explain", folder, "-q", "q1")
    assert f"{sure:.2f}" in explained.out
    shown = case_of(findwell.load(folder), "q1")["list"]
    chances = [chunk["verdicts"][0]["probability"] for chunk in shown]
    assert chances == pytest.approx([sure, 1 - sure], abs=1e-4)


def test_results_of_older_versions_have_no_probabilities(
    cli: Findwell, samples: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "old"
    cli("score", samples, "-m", "context_recall", "--judge", "local:text", "--save", folder)
    table = pl.read_parquet(folder / "verdicts.parquet")
    table.drop("probability").write_parquet(folder / "verdicts.parquet")
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).unlink()
    seal(folder, {name: it for name, it in manifest.items() if name not in ("files", "sha256")})
    done = cli("score", folder, "--explain-verdicts", "--format", "json")
    assert done.code == 0
    assert [row["probability"] for row in done.answer["verdicts"]] == [None, None]
    explained = cli("explain", folder, "-q", "q1")
    assert explained.code == 0
    assert "what the judge" in explained.out
    assert "probability" not in explained.out
    assert cli("report", folder, "-o", tmp_path / "r.html").code == 0


def test_without_a_judge_there_is_nothing_to_explain(cli: Findwell, save: Save) -> None:
    run = save("run.jsonl", '{"id": "q", "retrieved": ["a"], "gold": ["a"]}\n')
    done = cli("score", run, "-m", "RR", "--explain-verdicts")
    assert done.code == 0
    assert "without effect: --explain-verdicts; no measure asks a judge" in done.err
    assert "what the judge" not in done.out
