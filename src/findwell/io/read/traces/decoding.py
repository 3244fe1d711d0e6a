"""From bytes and records to retrieval calls: requests of OTLP, and exports of other tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from findwell.io.read.traces.exports import spans_of_record
from findwell.io.read.traces.hops import number_hops, with_inner_marked
from findwell.io.read.traces.otlp import (
    NO_JSON,
    NO_REQUEST,
    is_request,
    spans_of_body,
    spans_of_request,
)
from findwell.io.read.traces.parts import TakenParts
from findwell.io.read.traces.plain import is_plain_call, read_plain
from findwell.io.read.traces.recognition import calls_of
from findwell.io.read.traces.schema import Decoded, frame_of_calls
from findwell.io.read.traces.span import (
    BODY_FIELDS,
    BODY_SPANS,
    NESTED,
    MalformedSpanError,
    SpanTally,
    check_parts,
)

if TYPE_CHECKING:
    from findwell.io.read.traces.schema import RetrievalCall


def decode(body: bytes, *, protobuf: bool, id_from: str | None = None) -> Decoded:
    """Return the retrieval calls of a request of OTLP.

    JSON may also be one request per line, or what other tools export. Decoding stops with
    `CrowdedBodyError` where a request has too many spans or fields.
    """
    reader = TraceReader(id_from)
    reader.tally.most, reader.tally.fields = BODY_SPANS, BODY_FIELDS
    if protobuf:
        reader.read_protobuf(body)
    else:
        check_parts(body)
        reader.read_json(body)
    return reader.take()


class TraceReader:
    """Collects the retrieval calls of requests and records, until they are taken.

    `id_from` is the field that holds the ids of documents, such as `metadata.chunk`. With `asks`
    it also remembers what the applications were asked whose traces they are.
    """

    def __init__(self, id_from: str | None = None, *, asks: bool = False) -> None:
        self.tally = SpanTally(asked={} if asks else None)
        self.parts = TakenParts(id_from, self.tally.malformed)
        self.calls: list[RetrievalCall] = []
        self.for_run = asks

    def take(self) -> Decoded:
        """Return what was read since this was asked last."""
        frame = number_hops(with_inner_marked(frame_of_calls(self.calls)))
        found = Decoded(frame, self.tally.spans, dict(self.tally.malformed))
        self.calls, self.tally.spans = [], 0
        self.tally.malformed.clear()
        return found

    def count(self, reason: str) -> None:
        """Count something that cannot be read."""
        self.tally.malformed[reason] += 1

    def read_protobuf(self, body: bytes) -> None:
        """Read a request of OTLP."""
        self.calls += calls_of(spans_of_body(body, self.tally), self.parts)

    def read_json(self, data: bytes) -> None:
        """Read one value of JSON, perhaps over several lines, or one per line."""
        first, _, rest = data.strip().partition(b"\n")
        if rest:
            try:
                parse_json(first)
            except MalformedSpanError:  # it goes on in the next line, or it is broken
                try:
                    value = parse_json(data)
                except MalformedSpanError:
                    pass
                else:
                    self.read_value(value)
                    return
        for line in data.split(b"\n"):
            if line.strip():
                self.read_line(line)

    def read_line(self, line: bytes | str) -> None:
        """Read one line of JSON."""
        try:
            value = parse_json(line)
        except MalformedSpanError as error:
            self.count(str(error))
        else:
            self.read_value(value)

    def read_value(self, value: Any) -> None:  # noqa: ANN401
        """Read a record, or a list of them."""
        if isinstance(value, list):
            for each in value:
                self.read_value(each if isinstance(each, dict) else None)
            return
        if is_request(value):
            self.calls += calls_of(spans_of_request(value, self.tally), self.parts)
            return
        spans = spans_of_record(value, self.tally)
        if spans is not None:
            self.calls += calls_of(spans, self.parts)
        elif is_plain_call(value):
            self.tally.count_span()
            try:
                self.calls += read_plain(value, self.parts)
            except MalformedSpanError as error:
                self.count(str(error))
        else:
            self.count(NO_REQUEST)


def parse_json(data: bytes | str) -> Any:  # noqa: ANN401
    """Parse JSON; what is none is malformed."""
    try:
        return json.loads(data)
    except RecursionError:
        raise MalformedSpanError(NESTED) from None
    except ValueError:
        raise MalformedSpanError(NO_JSON) from None
