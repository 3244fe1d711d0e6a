"""Spans that are wrong on purpose: each is counted, none is fatal, and what is kept is bounded."""

from __future__ import annotations

import gzip
import json
import random
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from findwell.core.errors import OptionError
from findwell.io.read.traces import TRACE_SCHEMA, decode, decoding, read_traces
from findwell.io.read.traces.exports import NO_LATENCY
from findwell.io.read.traces.span import (
    ATTRIBUTES,
    CUT_NAME,
    CUT_TEXT,
    DOCUMENTS,
    MANY_DOCUMENTS,
    NESTED,
    NO_ID,
    NO_TIME,
    NOT_A_SPAN,
    TEXT,
    UNNAMED_DOCUMENT,
    VALUE,
    WRONG_DOCUMENT,
)
from tests.read.made_protobuf import message, proto_pairs
from tests.read.made_traces import (
    FILES,
    MadeCall,
    MadeDoc,
    openinference,
    otlp_request,
    otlp_span,
    proto_request,
    proto_span,
)

DOC = MadeDoc("d1", "It lasts.", 0.5)
CALL = MadeCall(1, 2, "How?", (DOC,))
GOOD = otlp_span(CALL, openinference(CALL))
LONG = "x" * 10_000_000
MARKUP = '<script>alert(1)</script><img src=x onerror="alert(2)">\u202e\x00'


def decoded(*spans: Any) -> tuple[pl.DataFrame, dict[str, int]]:
    """Decode spans beside a good one, which must survive."""
    found = decode(json.dumps(otlp_request([*spans, GOOD])).encode(), protobuf=False)
    assert found.frame.schema == TRACE_SCHEMA
    good = found.frame.filter(span=CALL.span_id)
    assert good["docs"].to_list() == [["d1"]]
    assert found.spans == len(spans) + 1
    return found.frame.filter(pl.col("span") != CALL.span_id), found.malformed


def with_attributes(**attributes: Any) -> dict[str, Any]:
    other = MadeCall(3, 4, "How?", ())
    return otlp_span(other, openinference(other) | attributes)


def without(*names: str) -> dict[str, Any]:
    return {name: each for name, each in with_attributes().items() if name not in names}


WRONG: list[tuple[Any, str]] = [
    (without("traceId"), NO_ID),
    (without("spanId"), NO_ID),
    (with_attributes() | {"traceId": "0" * 32}, NO_ID),
    (with_attributes() | {"traceId": ["a"]}, NO_ID),
    (with_attributes() | {"spanId": None}, NO_ID),
    (without("startTimeUnixNano"), NO_TIME),
    (with_attributes() | {"startTimeUnixNano": "-5"}, NO_TIME),
    (with_attributes() | {"startTimeUnixNano": "9" * 30}, NO_TIME),
    (with_attributes() | {"startTimeUnixNano": "soon"}, NOT_A_SPAN),
    (with_attributes() | {"startTimeUnixNano": {"a": 1}}, NOT_A_SPAN),
    (with_attributes() | {"attributes": "none"}, NOT_A_SPAN),
    (with_attributes() | {"attributes": [None]}, NOT_A_SPAN),
    (with_attributes() | {"attributes": [{"key": ["a"]}]}, NOT_A_SPAN),
    (with_attributes() | {"status": "bad"}, NOT_A_SPAN),
    ("a span", NOT_A_SPAN),
    (None, NOT_A_SPAN),
    ([[]], NOT_A_SPAN),
]


@pytest.mark.parametrize(("span", "reason"), WRONG, ids=range(len(WRONG)))
def test_a_broken_span_is_counted(span: Any, reason: str) -> None:
    frame, malformed = decoded(span)
    assert malformed == {reason: 1}
    assert not frame.height


def test_long_values_are_cut() -> None:
    name = "retrieval.documents.0.document"
    spans = with_attributes(
        **{
            "input.value": LONG,
            f"{name}.id": LONG,
            f"{name}.content": LONG,
            f"{name}.metadata": json.dumps({"a": LONG}),
            "tag": LONG,
            LONG: "value",
            "user.id": LONG,
        }
    )
    frame, malformed = decoded(spans)
    row = frame.row(0, named=True)
    assert len(row["question"]) == len(row["texts"][0]) == len(row["doc_metadata"][0]) == TEXT
    assert row["docs"][0].startswith("text-")
    assert all(len(each["key"]) <= VALUE >= len(each["value"]) for each in row["attributes"])
    assert malformed == {CUT_TEXT: 3, CUT_NAME: 2}
    assert frame.estimated_size() < 1_000_000


def test_many_values_are_left_out() -> None:
    docs = {f"retrieval.documents.{n}.document.id": str(n) for n in range(DOCUMENTS + 500)}
    more = {f"tag.{n}": "x" for n in range(10_000)}
    far = {"retrieval.documents.999999999.document.id": "far"}
    absurd = {f"retrieval.documents.{'9' * 5000}.document.id": "absurd"}
    frame, malformed = decoded(with_attributes(**docs, **more, **far, **absurd))
    row = frame.row(0, named=True)
    assert len(row["docs"]) == DOCUMENTS
    assert row["docs"][:2] == ["0", "1"]
    assert len(row["attributes"]) == ATTRIBUTES
    assert malformed == {MANY_DOCUMENTS: 1}


def test_values_of_wrong_types() -> None:
    name = "retrieval.documents.{}.document"
    frame, malformed = decoded(
        with_attributes(
            **{
                "input.value": {"query": {"query": ["first", {"text": 7}]}},
                f"{name.format(0)}.content": {"a": "dict"},
                f"{name.format(1)}.id": True,
                f"{name.format(2)}.score": "high",
                f"{name.format(2)}.id": 12,
                f"{name.format(3)}.id": "d3",
                f"{name.format(3)}.score": "0.5",
                f"{name.format(3)}.metadata": "{not json",
                f"{name.format(4)}.id": "  ",
                f"{name.format(4)}.content": ["a"],
                "session.id": ["s"],
                "retrieval.documents.x.document.id": "no index",
                "retrieval.documents.-1.document.id": "no index",
            }
        )
    )
    row = frame.row(0, named=True)
    assert row["docs"][1:] == ["12", "d3"]
    assert row["docs"][0].startswith("unnamed-")
    assert row["scores"] == [None, None, 0.5]
    assert row["question"] == "7"
    assert malformed == {WRONG_DOCUMENT: 2, UNNAMED_DOCUMENT: 1}


def test_markup_and_broken_letters_stay_texts() -> None:
    doc = MadeDoc(MARKUP, MARKUP, 0.5, {MARKUP: MARKUP})
    call = MadeCall(5, 6, f"Why {MARKUP}?", (doc,), attributes={"half": "\ud800!"})
    frame, malformed = decoded(otlp_span(call, openinference(call)))
    row = frame.row(0, named=True)
    assert row["docs"] == [MARKUP] == row["texts"]
    assert row["question"] == f"Why {MARKUP}?"
    assert {"key": "half", "value": "\ufffd!"} in row["attributes"]
    assert not malformed
    frame.write_ipc(None)  # which halves of letters would break


@pytest.mark.usefixtures("no_collection")
def test_deep_nesting() -> None:
    value: dict[str, Any] = {"stringValue": "deep"}
    for _ in range(200):
        value = {"arrayValue": {"values": [value]}}
    span = with_attributes()
    span["attributes"].append({"key": "deep", "value": value})
    assert decoded(span)[1] == {NESTED: 1}
    body = b"[" * 200_000 + b"]" * 200_000
    lines = body + b"\n" + json.dumps(otlp_request([GOOD])).encode()
    found = decode(lines, protobuf=False)
    assert found.malformed == {NESTED: 1}
    assert found.frame.height == 1
    deep = proto_pairs({"a": "b"})[0]
    for _ in range(200):
        deep = message((5, message((1, deep))))
    span_bytes = proto_span(CALL, openinference(CALL)) + message(
        (9, message((1, b"deep"), (2, deep)))
    )
    found = decode(
        proto_request([span_bytes, proto_span(CALL, openinference(CALL))]), protobuf=True
    )
    assert found.malformed == {NESTED: 1}
    assert found.frame.height == 1


def test_a_broken_span_of_protobuf_costs_no_other() -> None:
    good = proto_span(CALL, openinference(CALL))
    bad_letters = good + message((9, message((1, b"a"), (2, message((1, b"\xff\xfe"))))))
    short_id = message((1, b"ab"), (2, b"cd")) + good[28:]
    found = decode(proto_request([bad_letters, good, short_id]), protobuf=True)
    assert found.frame.height == 1
    assert (found.spans, found.malformed) == (3, {NOT_A_SPAN: 1, NO_ID: 1})


def test_bytes_that_are_cut_or_changed() -> None:
    """Whatever arrives, the answer is a table and counts."""
    spans = [proto_span(CALL, openinference(CALL))] * 2
    chance = random.Random(5)
    whole = {True: proto_request(spans), False: json.dumps(otlp_request([GOOD] * 2)).encode()}
    for protobuf, body in whole.items():
        for _ in range(100):
            at = chance.randrange(len(body))
            changed = bytes([chance.randrange(256)])
            for spoiled in (body[:at], body[:at] + changed + body[at + 1 :]):
                found = decode(spoiled, protobuf=protobuf)
                assert found.frame.schema == TRACE_SCHEMA
        assert decode(body[:-9], protobuf=protobuf).malformed
        assert decode(bytes(chance.randrange(256) for _ in range(500)), protobuf=protobuf).malformed
    assert decode(b"", protobuf=True).spans == decode(b"", protobuf=False).spans == 0


def test_files_that_are_spoiled(tmp_path: Path) -> None:
    """A line that is cut or no JSON is counted, and so is what ends in the middle."""
    path = tmp_path / "t.jsonl"
    good = FILES["otlp-openinference.jsonl"]([CALL])
    path.write_bytes(good + good[:50] + b"\n\n[1, 2]\nnull\n" + good[:-30])
    (found,) = read_traces(path)
    assert found.frame.height == 1
    assert sum(found.malformed.values()) == 5
    lengths = FILES["otlp-lengths.pb"]([CALL, CALL])
    path.write_bytes(lengths[:-5])
    (found,) = read_traces(path)
    assert found.frame.height == 1
    assert list(found.malformed.values()) == [1]
    path.write_bytes(gzip.compress(good))
    assert next(iter(read_traces(path))).frame.height == 1


@pytest.mark.parametrize("name", FILES)
def test_every_field_of_an_export_may_be_wrong(tmp_path: Path, name: str) -> None:
    """Any field of any record becomes something else: a number, a list, nothing, deep, long."""
    if not name.endswith(".jsonl"):
        return
    records = [json.loads(line) for line in FILES[name]([CALL]).splitlines()]
    others: list[Any] = [7, None, [[]], {"a": {"b": []}}, "", "[", True, -(10**400), ["x"] * 3]
    path = tmp_path / name
    lines = []
    for record in records:
        for place in list(_places(record))[:60]:
            lines += [json.dumps(_changed(record, place, other)) for other in others]
    path.write_text("\n".join(lines))
    for part in read_traces(path):
        assert part.frame.schema == TRACE_SCHEMA


def _places(value: Any, before: tuple[Any, ...] = ()) -> Any:
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*before, key)
        if isinstance(each, dict | list):
            yield from _places(each, (*before, key))


def _changed(value: Any, place: tuple[Any, ...], other: Any) -> Any:
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = other
    return copy


def test_memory_is_bounded_by_parts_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file of many parts only one is held at a time."""
    monkeypatch.setattr(decoding, "PART_BYTES", 1 << 15)
    part = FILES["otlp-openinference.jsonl"]([MadeCall(n, n, "?", (DOC,) * 9) for n in range(1, 9)])
    path = tmp_path / "t.jsonl"
    peaks = []
    for times in (8, 64):
        path.write_bytes(part * times)
        tracemalloc.start()
        assert sum(each.frame.height for each in read_traces(path)) == 8 * times
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


@pytest.mark.parametrize("latency", ["-5.0", "NaN", "Infinity", "1" + "0" * 400])
def test_a_latency_that_is_none(latency: str) -> None:
    """A clock that was set back, or a program that divides by 0, makes no call fast."""
    record = '{"question": "How?", "retrieved": ["d1"], "time": "2026-08-01", "latency_ms": %s}'
    found = decode((record % latency).encode(), protobuf=False)
    assert found.frame["latency_ms"].to_list() == [None]
    assert found.malformed == {NO_LATENCY: 1}


def test_protobuf_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the error names the extra; JSON is read as before."""
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.trace.v1", None)
    decoding._messages.cache_clear()
    try:
        with pytest.raises(OptionError, match=r"monitor"):
            decode(proto_request([proto_span(CALL, openinference(CALL))]), protobuf=True)
        assert decoded()[0].height == 0
    finally:
        decoding._messages.cache_clear()
