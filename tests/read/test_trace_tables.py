"""Spans as tables: Phoenix's data frames and what pandas writes of them to Parquet, as a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import findwell
from findwell.core.errors import InputError
from findwell.io.read import load_gold
from findwell.io.read.corpus import load_corpus
from findwell.io.read.vocabulary import CORPUS_COLUMNS, ID_NAMES, TABLE_COLUMNS, TEXT_NAMES
from tests.lazy import lazy
from tests.read.made_traces import MadeCall, MadeDoc, phoenix_row, phoenix_span

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pd = lazy("pandas")

CALLS = [
    MadeCall(
        number,
        number,
        f"What is {number}?",
        (
            MadeDoc(f"d{number}", f"It is {number}.", 0.9),
            MadeDoc("x", "Something else.", 0.0),
        ),
    )
    for number in range(1, 4)
]
GOLD = [
    {"query": "q1", "question": "What is 1?", "gold": ["d1"]},
    {"query": "q2", "question": "What is 2?", "gold": ["x"]},
    {"query": "q3", "question": "What is 3?", "gold": ["d3"]},
]
EXPECTED = (1 + 0.5 + 1) / 3


def spans() -> Any:
    """Return what `get_spans_dataframe` gives: documents in one column, an index."""
    rows = [phoenix_row(call) for call in CALLS]
    for row in rows:
        row["attributes.retrieval.documents"] = json.loads(row["attributes.retrieval.documents"])
        row["start_time"], row["end_time"] = map(pd.Timestamp, (row["start_time"], row["end_time"]))
    other = dict.fromkeys(rows[0], None) | {"span_kind": "LLM", "name": "answer"}
    other |= {"context.trace_id": CALLS[0].trace_id, "context.span_id": "f" * 16}
    return pd.DataFrame([*rows, other]).set_index("context.span_id")


def documents() -> Any:
    """Return what `get_retrieved_documents` gives: one row per document of each span."""
    rows = [
        {
            "context.span_id": call.span_id,
            "document_position": position,
            "context.trace_id": call.trace_id,
            "input": call.question,
            "reference": doc.text,
            "document_score": doc.score,
        }
        for call in CALLS
        for position, doc in enumerate(call.docs)
    ]
    return pd.DataFrame(rows).set_index(["context.span_id", "document_position"])


def parquet(table: Any, folder: Path) -> Any:
    path = folder / "spans.parquet"
    table.to_parquet(path)
    return path


FORMS: dict[str, Callable[[Any, Path], Any]] = {
    "pandas": lambda table, _: table,
    "pandas, read again": lambda table, folder: pd.read_parquet(parquet(table, folder)),
    "polars": lambda table, folder: pl.read_parquet(parquet(table, folder)),
    "parquet": parquet,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_spans_is_a_run(form: str, tmp_path: Path) -> None:
    given = FORMS[form](spans(), tmp_path)
    assert findwell.evaluate(given, GOLD, "RR")["RR"] == pytest.approx(EXPECTED)


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_the_documents_of_spans_is_a_run(form: str, tmp_path: Path) -> None:
    given = FORMS[form](documents().sample(frac=1, random_state=0).sort_index(level=0), tmp_path)
    gold = [
        {"question": each["question"], "gold": [{"text": text}]}
        for each, text in zip(GOLD, ["It is 1.", "Something else.", "It is 3."], strict=True)
    ]
    found = findwell.evaluate(given, gold, "RR", by="exact")
    assert found["RR"] == pytest.approx(EXPECTED)


def test_the_spans_of_a_client_are_a_run() -> None:
    given = [phoenix_span(call) for call in CALLS]
    assert findwell.evaluate(given, GOLD, "RR")["RR"] == pytest.approx(EXPECTED)


def test_the_id_of_a_query_may_be_an_attribute_of_a_table() -> None:
    table = spans()
    table["attributes.query.id"] = ["q1", "q2", "q3", None]
    gold = {each["query"]: each["gold"] for each in GOLD}
    found = findwell.evaluate(table, gold, "RR", reading=findwell.Reading(query_from="query.id"))
    assert found["RR"] == pytest.approx(EXPECTED)


def test_a_table_of_spans_alone_has_no_gold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="format traces does not hold both"):
        findwell.evaluate(parquet(spans(), tmp_path))


def test_the_index_of_pandas_is_part_of_a_table() -> None:
    table = pd.DataFrame({"query": ["q1"], "doc": ["d1"], "score": [1.0]}).set_index("query")
    assert findwell.evaluate(table, {"q1": ["d1"]}, "RR")["RR"] == 1.0
    unnamed = pd.DataFrame({"query": ["q1"], "doc": ["d1"], "score": [1.0]}, index=[7])
    assert findwell.evaluate(unnamed, {"q1": ["d1"]}, "RR")["RR"] == 1.0


QUESTIONS = """question,references,corpus_id
What is tea?,"[{""content"": ""Tea"", ""start_index"": 0, ""end_index"": 3}]",notes
What is ink?,"[{""content"": ""Ink"", ""start_index"": 9, ""end_index"": 12},
 {""content"": ""dark"", ""start_index"": 16, ""end_index"": 20}]",notes
"""
TEXT = "Tea helps.Ink is dark."


def test_the_references_of_chunking_evaluation_are_places(tmp_path: Path) -> None:
    path = tmp_path / "questions_df.csv"
    path.write_text(QUESTIONS.replace(",\n {", ", {").replace("9, ", "10, ").replace("12}", "13}"))
    gold = load_gold(path, texts=True)
    assert gold.carries >= {"places"}
    assert gold.queries["corpus_id"].to_list() == ["notes", "notes"]
    run = [
        {"question": "What is tea?", "retrieved": [chunk(0, 10)]},
        {"question": "What is ink?", "retrieved": [chunk(0, 10), chunk(10, 17)]},
    ]
    found = findwell.evaluate(run, path, "recall", by="spans")
    assert found["recall"] == pytest.approx(0.75)
    records = [
        {"question": "What is tea?", "references": [{"start_index": 0, "end_index": 3}]}
        | {"corpus_id": "notes"}
    ]
    assert findwell.evaluate(run[:1], records, "recall", by="spans")["recall"] == 1.0


def chunk(start: int, end: int) -> dict[str, Any]:
    place = {"source": "notes", "start": start, "end": end}
    return {"doc": f"notes:{start}", "text": TEXT[start:end], **place}


def test_a_reference_without_a_place_is_refused() -> None:
    record = {"question": "Why?", "references": [{"content": "So."}], "corpus_id": "notes"}
    with pytest.raises(InputError, match="is not a place in a document"):
        load_gold([record])


def test_a_name_means_an_id_or_a_text_in_every_reader() -> None:
    """One vocabulary: `document` is a text, in tables, records, corpora and labels alike."""
    from findwell.judges.cards.labels import COLUMNS as LABEL_COLUMNS

    ids = {*TABLE_COLUMNS["doc"], *CORPUS_COLUMNS["doc"], *ID_NAMES}
    texts = {*TABLE_COLUMNS["text"], *CORPUS_COLUMNS["text"], *TEXT_NAMES}
    texts |= set(LABEL_COLUMNS["chunk"].split())
    assert not ids & texts
    chunks = LABEL_COLUMNS["chunk"].split()
    for words in (TABLE_COLUMNS["text"], CORPUS_COLUMNS["text"], chunks):
        assert "document" in words


def test_a_column_called_document_is_a_text(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {"query": ["q1"], "doc_id": ["d1"], "document": ["Tea helps."], "score": [1.0]}
    )
    gold = [{"query": "q1", "gold": [{"text": "Tea helps."}]}]
    assert findwell.evaluate(rows, gold, "RR", by="exact")["RR"] == 1.0
    assert findwell.evaluate(rows, {"q1": ["d1"]}, "RR")["RR"] == 1.0
    # without another column it still names the document
    assert findwell.evaluate(rows.drop("doc_id"), {"q1": ["Tea helps."]}, "RR")["RR"] == 1.0
    (tmp_path / "corpus.csv").write_text("id,document\nd1,Tea helps.\n")
    assert load_corpus(tmp_path / "corpus.csv").row(0)[:2] == ("d1", "Tea helps.")
