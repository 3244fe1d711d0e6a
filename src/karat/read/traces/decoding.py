"""From bytes and records to retrieval calls: requests of OTLP, and exports of other tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from karat.read.traces.exports import spans_of_record
from karat.read.traces.hops import number_hops, outermost
from karat.read.traces.otlp_json import is_request, spans_of_request
from karat.read.traces.otlp_protobuf import spans_of_body
from karat.read.traces.parts import TakenParts
from karat.read.traces.plain import is_plain_call, read_plain
from karat.read.traces.recognition import calls_of
from karat.read.traces.schema import Decoded, frame_of_calls
from karat.read.traces.span import NESTED, MalformedSpanError

if TYPE_CHECKING:
    from karat.read.traces.schema import RetrievalCall

NO_JSON = "not valid JSON"
NO_TRACE = "record that is no span, trace or retrieval call"


def decode(body: bytes, *, protobuf: bool, id_from: str | None = None) -> Decoded:
    """Return the retrieval calls of a request of OTLP.

    JSON may also be one request per line, or what other tools export.
    """
    reader = TraceReader(id_from)
    if protobuf:
        reader.read_protobuf(body)
    else:
        reader.read_json(body)
    return reader.take()


class TraceReader:
    """Collects the retrieval calls of requests and records, until they are taken.

    `id_from` is the field that holds the ids of documents, such as `metadata.source`.
    """

    def __init__(self, id_from: str | None = None) -> None:
        self.parts = TakenParts(id_from)
        self.spans = [0]
        self.calls: list[RetrievalCall] = []

    def take(self) -> Decoded:
        """Return what was read since this was asked last."""
        malformed = {reason: n for reason, n in self.parts.malformed.items() if n}
        found = Decoded(
            number_hops(outermost(frame_of_calls(self.calls))), self.spans[0], malformed
        )
        self.calls, self.spans[0] = [], 0
        self.parts.malformed.clear()
        return found

    def read_protobuf(self, body: bytes) -> None:
        """Read a request of OTLP."""
        spans = spans_of_body(body, self.parts.malformed, self.spans)
        self.calls += calls_of(spans, self.parts)

    def read_json(self, data: bytes) -> None:
        """Read one value of JSON, perhaps over several lines, or one per line."""
        first, _, rest = data.strip().partition(b"\n")
        if rest:
            try:
                parse_json(first)
            except MalformedSpanError:  # it goes on in the next line, or it is broken
                try:
                    self.read_value(parse_json(data))
                except MalformedSpanError:
                    pass
                else:
                    return
        for line in data.split(b"\n"):
            if line.strip():
                self.read_line(line)

    def read_line(self, line: bytes | str) -> None:
        """Read one line of JSON."""
        try:
            self.read_value(parse_json(line))
        except MalformedSpanError as error:
            self.parts.malformed[str(error)] += 1

    def read_value(self, value: Any) -> None:  # noqa: ANN401
        """Read a record, or a list of them."""
        if isinstance(value, list):
            for each in value:
                self.read_value(each if isinstance(each, dict) else None)
            return
        malformed = self.parts.malformed
        if is_request(value):
            self.calls += calls_of(spans_of_request(value, malformed, self.spans), self.parts)
            return
        spans = spans_of_record(value, malformed, self.spans)
        if spans is not None:
            self.calls += calls_of(spans, self.parts)
        elif is_plain_call(value):
            self.spans[0] += 1
            try:
                self.calls += read_plain(value, self.parts)
            except MalformedSpanError as error:
                malformed[str(error)] += 1
        else:
            malformed[NO_TRACE] += 1


def parse_json(data: bytes | str) -> Any:  # noqa: ANN401
    """Parse JSON; what is none is malformed."""
    try:
        return json.loads(data)
    except RecursionError:
        raise MalformedSpanError(NESTED) from None
    except ValueError:
        raise MalformedSpanError(NO_JSON) from None
