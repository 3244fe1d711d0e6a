"""From bytes, files and folders to retrieval calls: requests of OTLP, and exports of other tools.

A file is recognised by its content: JSON, JSON lines, CSV, Parquet and protobuf, also gzipped. It
is read part by part, so that it may be larger than memory; only JSON that is one value is read
whole.
"""

from __future__ import annotations

import csv
import json
from itertools import count, groupby, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError
from findwell.core.frames import pl
from findwell.io.read.format import Source, not_readable
from findwell.io.read.traces.conventions import calls_of
from findwell.io.read.traces.exports import NAMES, is_plain_call, read_plain, spans_of_record
from findwell.io.read.traces.otlp import (
    NO_JSON,
    NO_REQUEST,
    is_request,
    spans_of_body,
    spans_of_request,
)
from findwell.io.read.traces.schema import Decoded, frame_of_calls, number_hops, with_inner_marked
from findwell.io.read.traces.span import (
    BODY_FIELDS,
    BODY_SPANS,
    NESTED,
    MalformedSpanError,
    SpanTally,
    TakenParts,
    check_parts,
    number_of,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

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
    """Parse JSON; anything else is malformed."""
    try:
        return json.loads(data)
    except RecursionError:
        raise MalformedSpanError(NESTED) from None
    except ValueError:
        raise MalformedSpanError(NO_JSON) from None


PART = 4 << 20  # bytes of lines, or of messages, that become one part
ROWS = 2000  # of a table
LINE = 64 << 20  # bytes of the longest line that is read
REQUEST = 256 << 20  # bytes of the largest message of protobuf
LONG_LINE = f"line of more than {LINE >> 20} MiB: left out"
CUT_SHORT = "the file ends in the middle of a message"
BROKEN_FILE = "file that cannot be read"
LISTED = (*NAMES["retrieved"], "hops")  # columns of plain records
# one row per document of each span, as Phoenix's `get_retrieved_documents` gives them
EXPLODED = frozenset({"context.span_id", "document_position", "input"})
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
    return (head[:1] == FIELD and b"\0" in head[:256]) or (
        head[:1] == FIELD and b"\x12" in head[:64]
    )


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
            if read >= PART:
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
        while data := file.read(PART):
            if not data.endswith(b"\n"):
                data += file.readline(LINE)
            if len(data) >= LINE and not data.endswith(b"\n"):
                head, _, cut = data.rpartition(b"\n")
                while cut and not cut.endswith(b"\n"):
                    cut = file.readline(PART)
                reader.count(LONG_LINE)
                data = head
            yield [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]


def read_rows(rows: Iterable[dict[str, Any]], reader: TraceReader) -> Iterator[Decoded]:
    """Read the rows of a table: one per span, or one per document of a span."""
    for number, row in enumerate(_whole_spans(rows, reader), start=1):
        kept = {key: value for key, value in row.items() if value not in (None, "")}
        # an empty cell is no list, but its column still says that the row is a call
        reader.read_value({name: None for name in LISTED if name in row} | kept)
        if number % ROWS == 0:
            yield reader.take()
    yield reader.take()


def _whole_spans(rows: Iterable[dict[str, Any]], reader: TraceReader) -> Iterator[dict[str, Any]]:
    """Join the rows about the documents of one span.

    Such a table tells no times. A run needs none: its calls are in the order of the rows, at the
    first seconds of 1970. A store of calls does, and counts them as malformed.
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
                    for value in [next((row[name] for name in names if _is_told(row, name)), None)]
                    if value is not None
                }
                for row in documents
            ],
        }


def _is_told(row: dict[str, Any], name: str) -> bool:
    return row.get(name) is not None and row[name] != ""


def _is_part(row: object) -> bool:
    return isinstance(row, dict) and row.keys() >= EXPLODED


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
            raise InputError(
                f"not valid CSV: {error}", where=source.where, fix="export it again"
            ) from None


def _parquet(source: Source) -> Iterator[dict[str, Any]]:
    try:
        with source.plain_file() as path:
            for part in pl.scan_parquet(path).collect().iter_slices(ROWS):
                yield from part.iter_rows(named=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(
            f"the Parquet file cannot be read: {str(error)[:200]}",
            where=source.where,
            fix="export it again",
        ) from None
