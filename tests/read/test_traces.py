"""Traces of every convention and every tool become the same rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from findwell.core.errors import InputError
from findwell.io.read.traces import TRACE_SCHEMA, decode, number_hops, outermost, read_traces
from findwell.io.read.traces.schema import RERANKER
from findwell.io.read.values import text_id
from tests.read.made_protobuf import fixed64, message
from tests.read.made_traces import (
    CONVENTIONS,
    FILES,
    MadeCall,
    MadeDoc,
    key_values,
    openinference,
    otlp_request,
    otlp_span,
    plain_record,
    proto_request,
    proto_span,
)

DOCS = (
    MadeDoc("d7", "It lasts six hours.", 0.9, {"source": "guide.md", "start_index": 4}),
    MadeDoc("d3", "Charge it first – für «immer».", 0.5, {"source": "guide.md"}),
    MadeDoc("d5", "Press the red button.", 0.25, {"source": "safety.md"}),
)
CALLS = [
    MadeCall(11, 21, "How long does it last?", DOCS, seconds=0.5),
    MadeCall(12, 22, "What is red?", DOCS[2:], seconds=60),
    MadeCall(13, 23, "Who knows?", (), seconds=90_000, error="index is gone"),
]
SAME = ["trace", "parent", "time", "latency_ms", "kind", "hop", "question", "docs", "scores"]


START = "2026-08-01T10:00:00Z"


def rows_of(path: Path, **options: Any) -> pl.DataFrame:
    parts = list(read_traces(path, **options))
    assert not [part.malformed for part in parts if part.malformed]
    return pl.concat([part.frame for part in parts])


def write(folder: Path, name: str, calls: list[MadeCall]) -> Path:
    path = folder / name
    path.write_bytes(FILES[name](calls))
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_form_says_the_same(tmp_path: Path, name: str) -> None:
    frame = rows_of(write(tmp_path, name, CALLS))
    assert frame.schema == TRACE_SCHEMA
    expected = pl.DataFrame(
        {
            "trace": [call.trace_id for call in CALLS],
            "time": [call.times[0] for call in CALLS],
            "latency_ms": [12.5] * 3,
            "kind": ["retriever"] * 3,
            "question": [call.question for call in CALLS],
            "docs": [[doc.id for doc in call.docs] for call in CALLS],
            "scores": [[doc.score for doc in call.docs] for call in CALLS],
            "texts": [[doc.text for doc in call.docs] for call in CALLS],
        },
        schema_overrides={name: TRACE_SCHEMA[name] for name in TRACE_SCHEMA},
    )
    assert_frame_equal(frame.select(expected.columns), expected)
    assert frame["error"].is_null().to_list() == [True, True, False]
    assert [int(span, 16) for span in frame["span"]] == [21, 22, 23]
    assert [int(span, 16) for span in frame["parent"]] == [1, 1, 1]


def test_json_and_protobuf_are_read_alike() -> None:
    """Attributes of every type, events and a resource included."""
    typed = {"a": 1, "b": -5, "c": 0.5, "d": True, "e": ["x", 2], "f": {"g": {"h": "i"}}}
    calls = [MadeCall(1, 2, "Why?", DOCS, attributes=typed | {"session.id": "s1", "user.id": "u"})]
    spans = [otlp_span(call, openinference(call)) for call in calls]
    by_json = decode(json.dumps(otlp_request(spans)).encode(), protobuf=False)
    body = proto_request(proto_span(call, openinference(call)) for call in calls)
    by_protobuf = decode(body, protobuf=True)
    assert_frame_equal(by_json.frame, by_protobuf.frame)
    assert by_json.spans == by_protobuf.spans == 1
    row = by_protobuf.frame.row(0, named=True)
    assert (row["service"], row["session"], row["user"]) == ("shop", "s1", "u")
    assert {each["key"]: json.loads(each["value"]) for each in row["attributes"]} == typed
    assert json.loads(row["doc_metadata"][0]) == DOCS[0].metadata


def test_the_first_convention_that_names_a_kind_decides() -> None:
    call = CALLS[0]
    order = ["openinference", "langfuse", "mlflow", "langsmith", "gen_ai", "traceloop"]
    while order:
        every: dict[str, Any] = {}
        for name in reversed(order):
            every |= CONVENTIONS[name](call)
        if order[0] == "langsmith":
            every["gen_ai.operation.name"] = "embeddings"
        body = json.dumps(otlp_request([otlp_span(call, every)])).encode()
        assert decode(body, protobuf=False).frame["convention"].to_list() == order[:1]
        order.pop(0)
    other = otlp_span(call, langfuse_kind := {"langfuse.observation.type": "generation"})
    assert decode(json.dumps(otlp_request([other])).encode(), protobuf=False).frame.height == 0
    assert langfuse_kind


def test_ids_of_documents_without_ids() -> None:
    """A field of the metadata, one that is named, or a hash of the text."""
    span = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "How?",
        "retrieval.documents.0.document.content": "It lasts.",
        "retrieval.documents.0.document.metadata": '{"source": "a.md", "chunk_id": "c1"}',
        "retrieval.documents.1.document.content": "It ends.",
        "retrieval.documents.1.document.metadata": '{"source": "b.md"}',
        "retrieval.documents.10.document.content": "Tenth after second.",
        "retrieval.documents.2.document.id": 7,
    }
    body = json.dumps(otlp_request([otlp_span(CALLS[0], span)])).encode()
    found = decode(body, protobuf=False)
    hashed = [text_id("It ends."), "7", text_id("Tenth after second.")]
    assert found.frame["docs"][0].to_list() == ["c1", *hashed]
    assert not found.malformed
    named = decode(body, protobuf=False, id_from="metadata.source")
    assert named.frame["docs"][0].to_list() == ["a.md", "b.md", *hashed[1:]]
    assert sum(named.malformed.values()) == 2


def test_ids_that_langchain_writes_only_to_the_output() -> None:
    docs = [{"id": doc.id, "page_content": doc.text} for doc in DOCS]
    span = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "How?",
        "output.value": json.dumps({"documents": docs}),
        **{f"retrieval.documents.{n}.document.content": doc.text for n, doc in enumerate(DOCS)},
    }
    body = json.dumps(otlp_request([otlp_span(CALLS[0], span)])).encode()
    assert decode(body, protobuf=False).frame["docs"][0].to_list() == ["d7", "d3", "d5"]


def test_documents_that_are_not_told_are_no_empty_result() -> None:
    hidden: list[dict[str, Any]] = [
        {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "How?"},
        {"openinference.span.kind": "RETRIEVER", "output.value": "__REDACTED__"},
        {"openinference.span.kind": "RETRIEVER", "input.value": "How?"},
        {"openinference.span.kind": "RETRIEVER", "input.value": "__REDACTED__"},
    ]
    spans = [otlp_span(MadeCall(n, n, "", ()), each) for n, each in enumerate(hidden, 1)]
    frame = decode(json.dumps(otlp_request(spans)).encode(), protobuf=False).frame
    assert frame["docs"].to_list() == frame["scores"].to_list() == [None, None, [], []]
    # what is hidden is no question that was asked again and again
    assert frame["question"].to_list() == ["How?", None, "How?", None]


@pytest.mark.parametrize(
    ("output", "docs"),
    [
        ([{"id": "d7", "page_content": "It lasts."}, {"id": "d3"}], ["d7", "d3"]),
        ({"documents": [{"content": "It lasts."}]}, [text_id("It lasts.")]),
        ({"documents": []}, []),
        ("nothing was found", []),
    ],
)
def test_documents_that_only_the_output_of_openinference_tells(output: Any, docs: Any) -> None:
    written = output if isinstance(output, str) else json.dumps(output)
    span = {"openinference.span.kind": "RETRIEVER", "output.value": written}
    body = json.dumps(otlp_request([otlp_span(CALLS[0], span)])).encode()
    assert decode(body, protobuf=False).frame["docs"].to_list() == [docs]


@pytest.mark.parametrize(
    "output",
    [
        {"ids": [["d1", "d2"]], "documents": [["It lasts.", "It ends."]]},  # as Chroma answers
        [["d1", "d2", "d3"]],
        [{"score": 0.5}],
        [None, True],
    ],
)
@pytest.mark.parametrize("name", ["mlflow.spanOutputs", "output.value"])
def test_a_list_of_which_nothing_can_be_read_is_no_empty_result(name: str, output: Any) -> None:
    kinds = {"mlflow.spanOutputs": "mlflow.spanType", "output.value": "langsmith.span.kind"}
    span = otlp_span(CALLS[0], {kinds[name]: "RETRIEVER", name: json.dumps(output)})
    found = decode(json.dumps(otlp_request([span])).encode(), protobuf=False)
    assert found.frame["docs"].to_list() == [None]
    assert "document of wrong types: left out" in found.malformed
    # of a list of which some can be read, these are kept
    span = otlp_span(CALLS[0], {kinds[name]: "RETRIEVER", name: json.dumps(["d1", None])})
    found = decode(json.dumps(otlp_request([span])).encode(), protobuf=False)
    assert found.frame["docs"].to_list() == [["d1"]]


def test_lists_as_pandas_writes_them_to_csv(tmp_path: Path) -> None:
    """Python's own way to write them, and not JSON; what cannot be read is no empty list."""
    header = "context.trace_id,context.span_id,span_kind,start_time,attributes.retrieval.documents"
    docs = [{"document.id": "d7", "document.content": 'It\'s "red".', "document.score": None}]
    lists = [str(docs), str(docs).replace("None", "nan"), "[]", "[{'document.id': 'd7'\n {}]"]
    path = tmp_path / "spans.csv"
    rows = [[f"a{n}", f"b{n}", "RETRIEVER", START, each] for n, each in enumerate(lists, 1)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])
    assert rows_of(path)["docs"].to_list() == [["d7"], ["d7"], [], None]


def test_hops_and_rerankers() -> None:
    """Two branches at once: a reranker belongs to the retriever that stands beside it."""
    calls = [
        MadeCall(1, 10, "a", DOCS, seconds=1, parent=5),
        MadeCall(1, 11, "b", DOCS, seconds=2, parent=6),
        MadeCall(1, 12, "a", DOCS[:1], "RERANKER", seconds=3, parent=5, inputs=DOCS),
        MadeCall(1, 13, "b", DOCS[:2], "RERANKER", seconds=4, parent=6, inputs=DOCS),
        MadeCall(1, 14, "c", DOCS, seconds=5, parent=7),
        MadeCall(2, 15, "d", DOCS, seconds=0, parent=7),
    ]
    spans = [otlp_span(call, openinference(call)) for call in reversed(calls)]
    frame = decode(json.dumps(otlp_request(spans)).encode(), protobuf=False).frame
    hops = {int(span, 16): hop for span, hop in frame.select("span", "hop").iter_rows()}
    assert hops == {10: 0, 11: 1, 12: 0, 13: 1, 14: 2, 15: 0}
    assert (
        number_hops(frame.sample(fraction=1, shuffle=True, seed=3))
        .sort("time")
        .equals(frame.sort("time"))
    )
    after = frame.filter(pl.col("kind") == RERANKER)
    assert after["inputs"].to_list() == [["d7", "d3", "d5"]] * 2


def test_retrievers_inside_retrievers_count_once() -> None:
    """LlamaIndex's retrievers call themselves, and retrievers that fuse call others."""
    outer = MadeCall(1, 10, "a", DOCS, parent=1)
    inner = [MadeCall(1, n, "a", DOCS[:1], parent=10) for n in (11, 12)]
    other = MadeCall(2, 13, "a", DOCS[:1], parent=10)  # of another trace
    private = otlp_span(MadeCall(3, 14, "a", ()), openinference(outer))
    private["name"] = "VectorIndexRetriever._retrieve"
    spans = [otlp_span(call, openinference(call)) for call in (*inner, outer, other)]
    found = decode(json.dumps(otlp_request([*spans, private])).encode(), protobuf=False)
    assert sorted(int(span, 16) for span in outermost(found.frame)["span"]) == [10, 13]
    assert found.spans == 5
    each = [decode(json.dumps(otlp_request([span])).encode(), protobuf=False) for span in spans]
    assert outermost(pl.concat([part.frame for part in each])).height == 2


@pytest.mark.parametrize("private", ["Fusion._retrieve", "Filter.retrieve"])
def test_it_does_not_matter_which_of_nested_retrievers_arrive_together(private: str) -> None:
    """Spans end, and are sent, from the inside out, and a batch may end between any two."""
    nested = [MadeCall(1, n, "a", DOCS, parent=n - 1, seconds=n) for n in (10, 11, 12, 13)]
    spans = [otlp_span(call, openinference(call)) for call in reversed(nested)]
    spans[2]["name"] = private  # inside of the outermost one, around the other two
    for cut in range(4):
        batches = [part for part in (spans[:cut], spans[cut:]) if part]
        bodies = [json.dumps(otlp_request(part)).encode() for part in batches]
        found = pl.concat([decode(body, protobuf=False).frame for body in bodies])
        assert outermost(found)["span"].to_list() == [f"{10:016x}"], cut


def test_annotations() -> None:
    labelled = {
        "annotations.0.annotation.name": "relevance",
        "annotations.0.annotation.score": 0.5,
        "annotations.0.annotation.label": "partly",
        "annotations.0.annotation.annotator_kind": "HUMAN",
        "evaluations.0.evaluation.name": "old",
        "evaluations.0.evaluation.score": 1,
    }
    spans = [otlp_span(CALLS[0], openinference(CALLS[0]) | labelled)]
    scored = CONVENTIONS["gen_ai"](CALLS[1])
    event = {
        "gen_ai.evaluation.name": "grounded",
        "gen_ai.evaluation.score.value": 0.75,
        "gen_ai.evaluation.score.label": "good",
    }
    events = [{"name": "gen_ai.evaluation.result", "attributes": key_values(event)}]
    spans.append(otlp_span(CALLS[1], scored) | {"events": events})
    frame = decode(json.dumps(otlp_request(spans)).encode(), protobuf=False).frame
    said = [[tuple(each.values()) for each in row] for row in frame["annotations"].to_list()]
    assert said == [
        [("relevance", 0.5, "partly", "HUMAN"), ("old", 1.0, None, None)],
        [("grounded", 0.75, "good", None)],
    ]


def test_vector_databases_of_traceloop_tell_results_as_events() -> None:
    result = {
        "db.query.result.id": "d7",
        "db.query.result.distance": 0.25,
        "db.query.result.document": "It lasts.",
    }
    events = [{"name": "db.query.result", "attributes": key_values(result)}]
    span = otlp_span(CALLS[0], {"db.system": "chroma"}) | {"name": "chroma.query", "events": events}
    by_json = decode(json.dumps(otlp_request([span])).encode(), protobuf=False).frame
    assert by_json.select("docs", "texts", "scores").row(0) == (["d7"], ["It lasts."], [-0.25])
    pairs = [
        message((1, k.encode()), (2, message((1, str(v).encode())))) for k, v in result.items()
    ]
    call = CALLS[0]
    body = (
        message((1, bytes.fromhex(call.trace_id)), (2, bytes.fromhex(call.span_id)))
        + message((5, b"chroma.query"))
        + fixed64(7, call.nanoseconds[0])
        + message((11, message((2, b"db.query.result"), *((3, pair) for pair in pairs))))
    )
    by_protobuf = decode(proto_request([body]), protobuf=True).frame
    assert by_protobuf.select("docs", "texts", "scores").equals(
        by_json.select("docs", "texts", "scores")
    )


def test_plain_records(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    more = {"question": "How?", "time": 1785578400, "tenant": "acme", "latency_s": 0.5}
    records = [
        plain_record(CALLS[0]),
        more | {"retrieved": ["d1", "d2"], "reranked": ["d2"]},
        more | {"hops": [{"retrieved": ["d1"]}, {"question": "And?", "retrieved": [["d2", 0.5]]}]},
        more | {"retrieved": ["It lasts.", "It ends."]},
        {"question": "When?", "retrieved": []},
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    (found,) = read_traces(path)
    frame = found.frame
    assert found.malformed == {"span without a valid start time": 1}
    assert frame["kind"].to_list() == ["retriever"] * 2 + ["reranker"] + ["retriever"] * 3
    assert frame["hop"].to_list() == [0, 0, 0, 0, 1, 0]
    assert frame["docs"].to_list()[1:5] == [["d1", "d2"], ["d2"], ["d1"], ["d2"]]
    assert frame["docs"][5].to_list() == [text_id("It lasts."), text_id("It ends.")]
    assert frame["question"].to_list()[3:5] == ["How?", "And?"]
    assert frame["latency_ms"].to_list()[:2] == [12.5, 500.0]
    assert frame["attributes"].to_list()[1] == [{"key": "tenant", "value": "acme"}]
    assert len(frame.unique(["trace", "span"])) == frame.height
    (again,) = read_traces(path)
    assert_frame_equal(again.frame, frame)  # ids too: what is read twice counts once


def test_plain_hops(tmp_path: Path) -> None:
    """What a record says of all hops is said once, and rerankers follow the hop that is theirs."""
    path = tmp_path / "calls.jsonl"
    ids = {"trace_id": "ab", "time": START}
    each = {"retrieved": ["d1", "d2"], "reranked": ["d2", "d1"]}
    records = [
        ids | {"span_id": "00000000000001", "hops": [each, {"retrieved": ["d3"], "latency_ms": 5}]},
        # another one of the same trace, with an id that begins alike
        ids
        | {"span_id": "00000000000002", "hops": [["d1"], ["d3", "d1"]]}
        | {"latency_ms": 100, "reranked": ["d3"]},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    frame = rows_of(path)
    assert len(frame.unique(["trace", "span"])) == 6
    first, second = (number_hops(frame[:3]), number_hops(frame[3:]))
    shown = "kind", "hop", "docs", "latency_ms"
    assert first.select(shown).rows() == [
        ("retriever", 0, ["d1", "d2"], None),
        ("reranker", 0, ["d2", "d1"], None),
        ("retriever", 1, ["d3"], 5.0),
    ]
    assert second.select(shown).rows() == [
        ("retriever", 0, ["d1"], None),
        ("retriever", 1, ["d3", "d1"], None),
        ("reranker", 1, ["d3"], None),
    ]
    assert second["inputs"].to_list()[-1] == ["d1", "d3"]
    one = ids | {"hops": [{"retrieved": ["d1"]}], "latency_ms": 100}
    path.write_text(json.dumps(one))
    assert rows_of(path)["latency_ms"].to_list() == [100.0]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_plain_tables_keep_calls_whose_cell_is_empty(tmp_path: Path, ending: str) -> None:
    """A call that failed has no list: it is a call that failed."""
    path = tmp_path / f"calls.{ending}"
    table = pl.DataFrame(
        {
            "question": ["How?", "Why?", "Who?"],
            "retrieved": ['["d1", "d2"]', None, "[]"],
            "error": [None, "timeout", None],
            "time": [START] * 3,
        }
    )
    table.write_csv(path) if ending == "csv" else table.write_parquet(path)
    frame = rows_of(path)
    assert frame["docs"].to_list() == [["d1", "d2"], None, []]
    assert frame["error"].to_list() == [None, "timeout", None]


@pytest.mark.parametrize("indent", [None, 1])
def test_json_over_several_lines_and_lines_that_are_broken(
    tmp_path: Path, indent: int | None
) -> None:
    path = tmp_path / "spans.json"
    request = otlp_request([otlp_span(call, openinference(call)) for call in CALLS])
    written = json.dumps(request["resourceSpans"], indent=indent)
    path.write_text(f'{{"resourceSpans": {written}}}\n')  # as tools write that print the outside
    assert rows_of(path).height == 3
    path.write_text(f'{{"resourceSp\n{json.dumps(request)}\n')  # a file that was rotated
    (found,) = read_traces(path)
    assert (found.frame.height, found.malformed) == (3, {"not valid JSON": 1})


def test_folders_and_parquet(tmp_path: Path) -> None:
    whole = rows_of(write(tmp_path, "otlp.pb", CALLS))
    folder = tmp_path / "days" / "first"
    folder.mkdir(parents=True)
    for number, call in enumerate(CALLS):
        (folder / f"{number}.jsonl").write_bytes(FILES["otlp-openinference.jsonl"]([call]))
    assert_frame_equal(rows_of(tmp_path / "days"), whole)
    records = [json.loads(line) for line in FILES["langfuse.jsonl"](CALLS).splitlines()]
    pl.DataFrame(records).write_parquet(tmp_path / "langfuse.parquet")
    table = rows_of(tmp_path / "langfuse.parquet")
    assert table["docs"].to_list() == whole["docs"].to_list()
    (tmp_path / "days" / "notes.txt").write_text("nothing of the kind")
    parts = list(read_traces(tmp_path / "days"))
    assert sum(sum(part.malformed.values()) for part in parts) == 0
    assert pl.concat([part.frame for part in parts]).height == 3
    with pytest.raises(InputError, match="no such file"):
        list(read_traces(tmp_path / "other.jsonl"))


def test_how_a_file_is_cut_does_not_matter(tmp_path: Path) -> None:
    """One request, one per span, or one span per file, in any order of arrival."""
    calls = [MadeCall(n // 2, 100 + n, f"q{n}", DOCS, seconds=n) for n in range(2, 40)]
    whole = rows_of(write(tmp_path, "otlp.json", calls)).sort("span")
    lines = [FILES["otlp-openinference.jsonl"]([call]) for call in reversed(calls)]
    (tmp_path / "apart.jsonl").write_bytes(b"".join(lines))
    assert_frame_equal(rows_of(tmp_path / "apart.jsonl").sort("span"), whole)
