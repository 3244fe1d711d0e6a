"""From bytes, files and folders to retrieval calls: requests of OTLP, and exports of other tools.

A broken span costs only itself. So a request of protobuf is first cut into its spans, as bytes,
and `opentelemetry-proto` reads each of them; the values of attributes are read only where a span
is a retrieval call, which most are not.

A file is recognised by its content: JSON, JSON lines, CSV, Parquet and protobuf, also gzipped. It
is read part by part, so that it may be larger than memory; only JSON that is one value is read
whole.
"""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Mapping
from itertools import count, groupby, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from findwell.core.errors import InputError, needs_package
from findwell.core.frames import pl
from findwell.io.read.format import Source, not_readable
from findwell.io.read.traces.conventions import BROKEN_ERRORS, SpanForm, calls_of, retrieval_spans
from findwell.io.read.traces.exports import NAMES, is_plain_call, read_plain, spans_of_record
from findwell.io.read.traces.schema import Decoded, frame_of_calls, number_hops, with_inner_marked
from findwell.io.read.traces.span import (
    BODY_FIELDS,
    BODY_SPANS,
    CROWDED_SPAN,
    DEPTH,
    NESTED,
    NOT_A_SPAN,
    SPAN_ATTRIBUTES,
    MalformedSpanError,
    Span,
    SpanTally,
    TakenParts,
    check_parts,
    hex_id,
    number_of,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from findwell.io.read.traces.schema import RetrievalCall

NO_JSON = "not valid JSON"
NO_PROTOBUF = "not valid protobuf"
WRONG_REQUEST = "request of wrong types"
BROKEN_GROUP = "request that is not valid protobuf"
NO_REQUEST = "record that is not a span, trace or retrieval call"
# protobuf's own JSON mapping writes lowerCamelCase; some exporters write the names of the fields
RESOURCE_SPANS = ("resourceSpans", "resource_spans")
SCOPE_SPANS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
ERROR_CODES = (2, "2", "STATUS_CODE_ERROR", "ERROR")


def _with_resource(
    spans: Iterable[Span], attributes: Callable[[], dict[str, Any]]
) -> Iterator[Span]:
    """Add the attributes of the resource, which are read when a span needs them."""
    resource: dict[str, Any] | None = None
    for span in spans:
        resource = attributes() if resource is None else resource
        span.resource = resource
        yield span


def is_request(record: object) -> bool:
    """Tell whether an object of JSON is a request of OTLP."""
    return isinstance(record, Mapping) and any(name in record for name in RESOURCE_SPANS)


def spans_of_request(request: Mapping[str, Any], tally: SpanTally) -> Iterator[Span]:
    """Return the spans of retrieval calls of a request, an object of JSON."""
    form = JsonSpans()
    for group in _listed(request, RESOURCE_SPANS, tally):
        spans = (
            span
            for scope in _listed(group, SCOPE_SPANS, tally)
            for span in retrieval_spans(_listed(scope, ("spans",), tally), form, tally)
        )
        yield from _with_resource(spans, lambda held=group: form.attributes(held.get("resource")))  # type: ignore[misc]


def _listed(given: object, names: tuple[str, ...], tally: SpanTally) -> list[Any]:
    """Return the list under the first of these names that is there; another type is counted."""
    found: object = None
    if isinstance(given, dict):
        found = next((given[name] for name in names if given.get(name) is not None), [])
    if isinstance(found, list):
        return found
    tally.malformed[WRONG_REQUEST] += 1
    return []


def _either(given: Mapping[str, Any], name: str, other: str) -> Any:  # noqa: ANN401
    return given.get(name) or given.get(other)


class JsonSpans(SpanForm):
    """Spans as objects of JSON."""

    def look(self, span: Mapping[str, Any]) -> tuple[object, dict[str, Any]]:
        """Return its name, and its attributes as they came."""
        raw = {entry["key"]: entry.get("value") for entry in span.get("attributes") or ()}
        return span.get("name"), raw

    def root(self, span: Mapping[str, Any]) -> object:
        """Return the trace, unless the span has a parent."""
        inside = _either(span, "parentSpanId", "parent_span_id")
        return None if inside else _either(span, "traceId", "trace_id")

    def read(self, span: Mapping[str, Any]) -> Span:
        """Return the span without its attributes."""
        status = span.get("status") or {}
        failed = status.get("code") in ERROR_CODES
        return Span(
            hex_id(_either(span, "traceId", "trace_id")),
            hex_id(_either(span, "spanId", "span_id")),
            hex_id(_either(span, "parentSpanId", "parent_span_id")) or None,
            str(span.get("name") or ""),
            int(_either(span, "startTimeUnixNano", "start_time_unix_nano") or 0),
            int(_either(span, "endTimeUnixNano", "end_time_unix_nano") or 0),
            error=str(status.get("message") or "error") if failed else None,
            events=[
                (str(event.get("name") or ""), self.attributes(event))
                for event in span.get("events") or ()
                if isinstance(event, dict)
            ],
        )

    def attributes(self, holder: object) -> dict[str, Any]:
        """Return the attributes of a resource or an event; those that are broken are left out."""
        found = {}
        listed = holder.get("attributes") if isinstance(holder, dict) else None
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("key"), str):
                try:
                    found[entry["key"]] = self.value(entry.get("value"))
                except BROKEN_ERRORS:
                    continue
        return found

    def value(self, raw: Any, depth: int = 0) -> Any:  # noqa: ANN401
        """Return a text, a number, a truth, a list, a dict or nothing.

        >>> JsonSpans().value({"arrayValue": {"values": [{"boolValue": True}, {"intValue": "7"}]}})
        [True, 7]
        """
        if raw is None:
            return None
        for kind, value in raw.items():
            if kind == "stringValue":
                return value if isinstance(value, str) else str(value)
            if kind in PLAIN_VALUES:
                return PLAIN_VALUES[kind](value)
            if kind in LISTED_VALUES:
                if depth >= DEPTH:
                    raise MalformedSpanError(NESTED)
                values = value.get("values") or ()
                if kind[0] == "a":
                    return [self.value(each, depth + 1) for each in values]
                pairs = ((str(each["key"]), each.get("value")) for each in values)
                return {key: self.value(each, depth + 1) for key, each in pairs}
        return None  # unknown fields must be ignored


LISTED_VALUES = frozenset({"arrayValue", "array_value", "kvlistValue", "kvlist_value"})
PLAIN_TYPES = {"string": str, "int": int, "double": float, "bool": bool, "bytes": str}
PLAIN_VALUES: dict[str, Callable[[Any], Any]] = {
    name + ending: kind for name, kind in PLAIN_TYPES.items() for ending in ("Value", "_value")
}


def spans_of_body(body: bytes, tally: SpanTally) -> Iterator[Span]:
    """Return the spans of retrieval calls of a request, a message of protobuf."""
    form = ProtobufSpans(tally)
    tally.check_tags(body)
    for group in form.cut(body, 1):
        spans = (
            span
            for scope in form.cut(group, 2)
            for span in retrieval_spans(form.cut(scope, 2), form, tally)
        )
        yield from _with_resource(spans, functools.partial(form.resource, group))


class _Messages(NamedTuple):
    """Classes of protobuf."""

    parts: Any  # any message whose fields 1 and 2 are messages, which stay bytes
    span: Any
    attribute: Any
    unknown_fields: Any
    error: type[Exception]


@functools.cache
def _messages() -> _Messages:
    with needs_package("reading OTLP as protobuf", "monitor"):
        from google.protobuf import (  # noqa: PLC0415
            descriptor_pb2,
            descriptor_pool,
            message,
            message_factory,
            unknown_fields,
        )
        from opentelemetry.proto.common.v1 import common_pb2  # noqa: PLC0415
        from opentelemetry.proto.trace.v1 import trace_pb2  # noqa: PLC0415
    file = descriptor_pb2.FileDescriptorProto(name="findwell.proto", syntax="proto3")
    parts = file.message_type.add(name="Parts")
    for number in (1, 2):
        parts.field.add(
            name=f"field{number}",
            number=number,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return _Messages(
        message_factory.GetMessageClass(pool.FindMessageTypeByName("Parts")),
        trace_pb2.Span,
        common_pb2.KeyValue,
        unknown_fields.UnknownFieldSet,
        message.DecodeError,
    )


class ProtobufSpans(SpanForm):
    """Spans as bytes of protobuf, which are counted, field by field."""

    def __init__(self, tally: SpanTally) -> None:
        self._tally = tally
        self._known = _messages()

    def cut(self, message: bytes, number: int) -> list[bytes]:
        """Return the messages that are one field of another; what is broken is counted."""
        try:
            parts = self._known.parts.FromString(message)
        except self._known.error:
            self._tally.malformed[BROKEN_GROUP] += 1
            return []
        found: list[bytes] = getattr(parts, f"field{number}")
        self._tally.count_fields(len(found))
        if any(each.field_number == number for each in self._known.unknown_fields(parts)):
            self._tally.malformed[BROKEN_GROUP] += 1  # it has another type
        return found

    def resource(self, group: bytes) -> dict[str, Any]:
        """Return the attributes of a resource: one that is broken in part still has a name."""
        found = {}
        for each in (each for part in self.cut(group, 1) for each in self.cut(part, 1)):
            try:
                attribute = self._known.attribute.FromString(each)
                found[attribute.key] = self.value(attribute.value)
            except (self._known.error, MalformedSpanError):
                continue
        return found

    def open(self, given: bytes) -> Any:  # noqa: ANN401
        """Return the message of a span."""
        try:
            span = self._known.span.FromString(given)
        except self._known.error as error:
            why = str(error)
            reason = NESTED if "Depth" in why else NOT_A_SPAN if "UTF-8" in why else NO_PROTOBUF
            raise MalformedSpanError(reason) from None
        count = len(span.attributes)
        self._tally.count_fields(count)
        if count > SPAN_ATTRIBUTES:
            raise MalformedSpanError(CROWDED_SPAN)
        return span

    def look(self, span: Any) -> tuple[object, dict[str, Any]]:  # noqa: ANN401
        """Return its name, and its attributes as messages."""
        return span.name, {each.key: each.value for each in span.attributes}

    def root(self, span: Any) -> object:  # noqa: ANN401
        """Return the trace, unless the span has a parent."""
        return None if span.parent_span_id else span.trace_id.hex()

    def read(self, span: Any) -> Span:  # noqa: ANN401
        """Return the span without its attributes."""
        trace, own, parent = (
            each.hex() if len(each) == size and any(each) else ""
            for each, size in ((span.trace_id, 16), (span.span_id, 8), (span.parent_span_id, 8))
        )
        failed = span.status.code == ERROR_CODES[0]
        self._tally.count_fields(len(span.events))
        return Span(
            trace,
            own,
            parent or None,
            span.name,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            error=(span.status.message or "error") if failed else None,
            events=[
                (event.name, {each.key: self.value(each.value) for each in event.attributes})
                for event in span.events
            ],
        )

    def value(self, raw: Any, depth: int = 0) -> Any:  # noqa: ANN401
        """Return a text, a number, a truth, a list, a dict, bytes in hexadecimal, or nothing."""
        kind = raw.WhichOneof("value")
        if kind is None:
            return None
        value = getattr(raw, kind)
        if kind == "bytes_value":
            return value.hex()
        if kind not in LISTED_VALUES:
            return value
        if depth >= DEPTH:
            raise MalformedSpanError(NESTED)
        self._tally.count_fields(len(value.values))
        if kind == "array_value":
            return [self.value(each, depth + 1) for each in value.values]
        return {each.key: self.value(each.value, depth + 1) for each in value.values}


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
    it also remembers what the applications were asked whose traces they are. Spans whose name is
    `search_span` are calls of a retriever, whatever type they were logged as.
    """

    def __init__(
        self, id_from: str | None = None, *, asks: bool = False, search_span: str | None = None
    ) -> None:
        self.tally = SpanTally(asked={} if asks else None, search=search_span)
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
    """Parse JSON; anything else is malformed."""
    try:
        return json.loads(data)
    except RecursionError:
        raise MalformedSpanError(NESTED) from None
    except ValueError:
        raise MalformedSpanError(NO_JSON) from None


PART_BYTES = 4 << 20  # bytes of lines, or of messages, that become one part
TABLE_ROWS = 2000  # of a table
LINE = 64 << 20  # bytes of the longest line that is read
REQUEST = 256 << 20  # bytes of the largest message of protobuf
LONG_LINE = f"line of more than {LINE >> 20} MiB: left out"
CUT_SHORT = "the file ends in the middle of a message"
BROKEN_FILE = "file that cannot be read"
LIST_COLUMNS = (*NAMES["retrieved"], "hops")  # columns of plain records
# one row per document of each span, as Phoenix's `get_retrieved_documents` gives them
EXPLODED_COLUMNS = frozenset({"context.span_id", "document_position", "input"})
DOCUMENT = {  # the fields of a document, and what they are called there
    "document.id": ("document.id", "document_id"),
    "document.content": ("reference", "document.content", "document_content"),
    "document.score": ("document_score", "document.score"),
    "document.metadata": ("document_metadata", "document.metadata"),
}
PARQUET, FIELD = b"PAR1", b"\n"  # how files of Parquet and requests of protobuf begin


def read_traces(path: str | os.PathLike[str], *, id_from: str | None = None) -> Iterator[Decoded]:
    """Return the retrieval calls of a file, or of all files of a folder, part by part.

    What a folder holds in addition to traces is counted as a file that cannot be read.
    """
    yield from read_all(path, TraceReader(id_from))


def read_all(path: str | os.PathLike[str] | Source, reader: TraceReader) -> Iterator[Decoded]:
    """Read a file, or all files of a folder, with this reader."""
    if isinstance(path, Source):
        yield from read_file(path, reader)
        return
    folder = Path(path)
    if not folder.is_dir():
        yield from read_file(Source.of(folder), reader)
        return
    try:
        files = sorted(each for each in folder.rglob("*") if each.is_file())
    except OSError as error:
        raise not_readable(error, str(folder)) from None
    if not files:
        raise InputError("the folder holds no files", where=str(folder), fix="name another one")
    for file in files:
        try:
            yield from read_file(Source.of(file), reader)
        except InputError:
            reader.count(BROKEN_FILE)
            yield reader.take()


def read_file(source: Source, reader: TraceReader) -> Iterator[Decoded]:
    """Read one file by its content."""
    head = source.head().removeprefix(b"\xef\xbb\xbf")
    if head.startswith(PARQUET):
        yield from read_rows(_parquet(source), reader)
    elif is_protobuf(head):
        yield from _protobuf(source, reader)
    elif head.lstrip()[:1] in (b"{", b"["):
        yield from _json(source, reader, head.lstrip())
    else:
        yield from read_rows(_csv(source), reader)


def is_protobuf(head: bytes) -> bool:
    """Tell whether a file is a request of OTLP, or several, each with its length before it."""
    if head[:1] == b"\0":  # the collector writes lengths of four bytes
        return head[4:5] == FIELD
    return head[:1] == FIELD and (b"\0" in head[:256] or b"\x12" in head[:64])


def _protobuf(source: Source, reader: TraceReader) -> Iterator[Decoded]:
    """Read requests: one that is the whole file, or several with their lengths."""
    with source.open() as file:
        if file.peek(1)[:1] == FIELD:
            reader.read_protobuf(file.read(REQUEST))
            yield reader.take()
            return
        read = 0
        while size := file.read(4):
            length = int.from_bytes(size, "big")
            body = file.read(length) if length <= REQUEST else b""
            if len(size) < 4 or len(body) < length:
                reader.count(CUT_SHORT)
                break
            reader.read_protobuf(body)
            read += length
            if read >= PART_BYTES:
                yield reader.take()
                read = 0
    yield reader.take()


def _json(source: Source, reader: TraceReader, head: bytes) -> Iterator[Decoded]:
    """Read one value per line, or one in all."""
    if head[:1] == b"[" or _goes_on(head):
        reader.read_json(source.read())
        yield reader.take()
        return
    for lines in _lines(source, reader):
        for line in lines:
            reader.read_line(line)
        yield reader.take()


def _goes_on(head: bytes) -> bool:
    """Tell whether a value of JSON goes on after its first line, which may also be a broken one."""
    lines = head.split(b"\n", 2)[:-1]  # those that are seen whole
    for line in lines:
        try:
            parse_json(line)
        except MalformedSpanError:
            continue
        return False
    return len(lines) == 2 or [line.strip() for line in lines] == [b"{"]


def _lines(source: Source, reader: TraceReader) -> Iterator[list[bytes]]:
    """Return lines, some at a time; those that are too long are counted."""
    with source.open() as file:
        while data := file.read(PART_BYTES):
            if not data.endswith(b"\n"):
                data += file.readline(LINE)
            if len(data) >= LINE and not data.endswith(b"\n"):
                head, _, cut = data.rpartition(b"\n")
                while cut and not cut.endswith(b"\n"):
                    cut = file.readline(PART_BYTES)
                reader.count(LONG_LINE)
                data = head
            yield [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]


def read_rows(rows: Iterable[dict[str, Any]], reader: TraceReader) -> Iterator[Decoded]:
    """Read the rows of a table: one per span, or one per document of a span."""
    for number, row in enumerate(_whole_spans(rows, reader), start=1):
        kept = {key: value for key, value in row.items() if value not in (None, "")}
        # an empty cell is not a list, but its column still says that the row is a call
        reader.read_value({name: None for name in LIST_COLUMNS if name in row} | kept)
        if number % TABLE_ROWS == 0:
            yield reader.take()
    yield reader.take()


def _whole_spans(rows: Iterable[dict[str, Any]], reader: TraceReader) -> Iterator[dict[str, Any]]:
    """Join the rows about the documents of one span.

    Such a table has no times. A run does not need them: its calls are in the order of the rows, at
    the first seconds of 1970. A store of calls does, and counts them as malformed.
    """
    clock = count(1) if reader.for_run else repeat(None)
    for key, group in groupby(rows, lambda row: row["context.span_id"] if _is_part(row) else None):
        if key is None:
            yield from group
            continue
        documents = sorted(group, key=lambda row: number_of(row["document_position"]) or 0.0)
        first = documents[0]
        yield {
            "span_kind": "RETRIEVER",
            "context.span_id": key,
            "context.trace_id": first.get("context.trace_id") or first.get("trace_id") or key,
            "start_time": first.get("start_time") or next(clock),
            "attributes.input.value": first["input"],
            "attributes.retrieval.documents": [
                {
                    field: value
                    for field, names in DOCUMENT.items()
                    for value in [next((row[name] for name in names if _has(row, name)), None)]
                    if value is not None
                }
                for row in documents
            ],
        }


def _has(row: dict[str, Any], name: str) -> bool:
    return row.get(name) is not None and row[name] != ""


def _is_part(row: object) -> bool:
    return isinstance(row, dict) and row.keys() >= EXPLODED_COLUMNS


def _csv(source: Source) -> Iterator[dict[str, Any]]:
    """Return the rows of a file with a header, separated by commas or tabs."""
    csv.field_size_limit(LINE)
    with source.open() as file:
        lines = (line.decode("utf-8", "replace") for line in iter(lambda: file.readline(LINE), b""))
        header = next(lines).removeprefix("\ufeff")
        comma = "\t" if header.count("\t") > header.count(",") else ","
        names = next(csv.reader([header], delimiter=comma), [])
        try:
            for row in csv.reader(lines, delimiter=comma):
                yield dict(zip(names, row, strict=False))
        except csv.Error as error:
            what = f"not valid CSV: {str(error).partition(' - ')[0]}"  # behind it advice to coders
            raise InputError(what, where=source.where, fix="export it again") from None


def _parquet(source: Source) -> Iterator[dict[str, Any]]:
    try:
        with source.plain_file() as path:
            for part in pl.scan_parquet(path).collect().iter_slices(TABLE_ROWS):
                yield from part.iter_rows(named=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        what = f"the Parquet file cannot be read: {str(error)[:200]}"
        raise InputError(what, where=source.where, fix="export it again") from None
