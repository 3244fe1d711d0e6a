"""Traces of production: spans of many conventions and files → one row per retrieval call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.read.source import Source
from karat.read.traces.openinference import read_openinference
from karat.read.traces.otlp_json import NO_REQUEST, RESOURCE_SPANS, parse_json, spans_of_request
from karat.read.traces.otlp_protobuf import spans_of_body
from karat.read.traces.schema import TRACE_SCHEMA, Decoded, RetrievalCall, number_hops
from karat.read.traces.span import Malformed, TakenParts

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from karat.read.traces.span import Span


def decode(body: bytes, *, protobuf: bool, id_from: str | None = None) -> Decoded:
    """Return the retrieval calls of a request of OTLP, or of several, one per line of JSON.

    Nothing in it is an error: what cannot be read is left out and counted.
    """
    parts = TakenParts(id_from)
    seen = [0]
    calls: list[RetrievalCall] = []
    if protobuf:
        _take(spans_of_body(body, parts.malformed, seen), parts, calls)
    else:
        for line in [body] if _is_one(body) else body.split(b"\n"):
            if not line.strip():
                continue
            try:
                request = parse_json(line)
            except Malformed as error:
                parts.malformed[str(error)] += 1
                continue
            if not isinstance(request, dict) or not any(name in request for name in RESOURCE_SPANS):
                parts.malformed[NO_REQUEST] += 1
                continue
            _take(spans_of_request(request, parts.malformed, seen), parts, calls)
    return Decoded.of(calls, seen[0], parts.malformed)


def _is_one(body: bytes) -> bool:
    """Tell whether JSON is one value, perhaps over several lines, rather than one per line."""
    return (
        b"\n" not in body.strip() or body.lstrip()[1:].lstrip()[:1] != b'"' or b"{\n" in body[:64]
    )


def _take(spans: Iterable[Span], parts: TakenParts, calls: list[RetrievalCall]) -> None:
    for span in spans:
        try:
            calls.append(read_openinference(span, parts))
        except Malformed as error:
            parts.malformed[str(error)] += 1


def read_traces(path: str | os.PathLike[str], *, id_from: str | None = None) -> Iterator[Decoded]:
    """Return the retrieval calls of a file or of all files of a folder, part by part."""
    for block in Source.of(path).blocks():
        yield decode(block.data, protobuf=False, id_from=id_from)


__all__ = ["TRACE_SCHEMA", "Decoded", "decode", "number_hops", "read_traces"]
