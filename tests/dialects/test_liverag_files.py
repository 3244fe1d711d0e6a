"""LiveRAG's command: a results file and a reference file in, the evaluator's files out."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Findwell

REFERENCES = [
    {"qid": 1, "question": "What?", "document_ids": ["<urn:uuid:aa>", "<urn:uuid:bb>"]},
    {"qid": 2, "question": "Who?", "document_ids": ["<urn:uuid:cc>"]},
]
RESULTS = [
    {"qid": 1, "doc_ids": ["doc-<urn:uuid:aa>::chunk-0", "doc-<urn:uuid:zz>::chunk-1"]},
    {"qid": 2, "doc_ids": []},
]


def write(path: Path, rows: list[dict[str, object]], *, literal: bool) -> None:
    """Write a table whose lists are Python literals or JSON, or JSON lines."""
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
        return
    spell = repr if literal else json.dumps
    lines = ["\t".join(rows[0])]
    lines += [
        "\t".join(spell(v) if isinstance(v, list) else str(v) for v in row.values()) for row in rows
    ]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("ending", ["tsv", "jsonl"])
def test_files_in_files_out(
    ending: str, tmp_path: Path, cli: Findwell, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / f"reference.{ending}", REFERENCES, literal=True)
    write(tmp_path / f"results.{ending}", RESULTS, literal=False)
    monkeypatch.chdir(tmp_path)
    files = (f"results.{ending}", "--gold", f"reference.{ending}", "--dialect", "liverag")
    done = cli("score", *files, "--format", ending, "-o", "results")
    assert done.code == 0, done.err
    assert done.out == ""
    names = {
        name: tmp_path / f"results.ContextRecall.eval.{name}.{ending}"
        for name in ("aggregated", "rows")
    }
    read = pl.read_ndjson if ending == "jsonl" else _read_tsv
    aggregated = read(names["aggregated"]).to_dicts()[0]
    assert aggregated["avg_context_recall"] == 0.25
    assert aggregated["pct_records_with_at_least_one_ref"] == 50.0
    assert aggregated["ndcg_10"] == 1.0
    rows = read(names["rows"]).to_dicts()
    assert [row["context_precision"] for row in rows] == [0.5, 0.0]
    assert [row["ndcg_10"] for row in rows] == [1.0, None]
    assert [row["retrieved_docs_count"] for row in rows] == [2, 0]


def _read_tsv(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, separator="\t")
