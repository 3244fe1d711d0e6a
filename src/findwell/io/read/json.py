"""JSON files: one value (JSON), or one record per line (JSON lines).

Lines are parsed in bulk where the records are all alike, and where polars reads them as Python
would; otherwise one by one.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from findwell.core.data import Gold, RunStream
from findwell.core.errors import InputError
from findwell.core.frames import pl
from findwell.io.read import in_memory
from findwell.io.read.by_document import gold_of, records_of_pairs
from findwell.io.read.by_query import columnar_part
from findwell.io.read.delimited import TablePlace, record_lines
from findwell.io.read.format import Format, Look, ReadContext, Samples, not_utf8, register_format
from findwell.io.read.mapping import reach, rename
from findwell.io.read.records import (
    FIRST_RECORDS,
    Collected,
    Entry,
    RecordRows,
    RecordScan,
    find_shape,
    first_look,
    read_part,
    texts_as_ids,
    twice,
)
from findwell.io.read.shapes import known_shapes, shape_of
from findwell.io.read.values import HALF_PAIR, NEWLINE, join_about, loads, parse_json
from findwell.io.read.vocabulary import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.core.findings import Finding
    from findwell.io.read.format import Block, Source


@register_format
class Json(Format):
    """One JSON value: an object by query, or a list of records."""

    name: ClassVar[str] = "json"
    roles: ClassVar = frozenset({"run", "gold", "samples"})
    order: ClassVar[int] = 21

    def sniff(self, look: Look, role: str) -> bool:
        """Tell by the opening bracket."""
        del role
        return look.opens_json

    def run(self, source: Source, name: str) -> RunStream:
        """Read the run whole."""
        return in_memory.run_from_objects(_read_some(source), name, source.where, source.reading)

    def gold(self, source: Source) -> Gold:
        """Read the gold whole."""
        return in_memory.gold_from_objects(_read_some(source), source.where, source.reading)

    def samples(self, source: Source, name: str) -> Samples:
        """Read a list of records that hold both."""
        records = _read_some(source)
        return in_memory.samples_from_objects(records, name, source.where, source.reading)


def _read_some(source: Source) -> Any:  # noqa: ANN401
    """Parse a file of JSON that must hold something."""
    value = records_inside(read(source), source.where)
    if value in ({}, []):
        raise InputError("the file contains no queries", where=source.where, fix="write it again")
    return value


def records_inside(value: Any, where: str) -> Any:  # noqa: ANN401
    """Return the records that a tool puts inside its file; any other value stays as it is."""
    if not isinstance(value, dict):
        return value
    for path, entry in tools()["files"].items():
        found = reach(value, {path: ""}).get(path)
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            _refuse_several(found, entry, where)
            inside = dict.fromkeys(known_shapes()[entry["name"]].known(), "")
            return [reach(each, inside) for each in found]
    return value


def _refuse_several(records: list[dict[str, Any]], entry: dict[str, str], where: str) -> None:
    """Refuse what several systems answered, whose records would be mixed up."""
    systems = {str(each[entry["system"]]) for each in records if entry.get("system") in each}
    if len(systems) > 1:
        raise InputError(
            f"the file of {entry['name']} holds {len(systems)} systems ({entry['system']} "
            f"{', '.join(sorted(systems)[:5])})",
            where=where,
            fix="write one file for each: promptfoo eval --filter-providers NAME (or "
            "--filter-prompts NAME) -o FILE.json",
        )


def read(source: Source) -> Any:  # noqa: ANN401
    """Parse a file of JSON."""
    try:
        return parse_json(source.read(), source.where, "correct it, or write the file again")
    except UnicodeDecodeError as error:
        raise (source.not_utf8() or not_utf8(error, source.where)) from None


@register_format
class JsonLines(Format):
    """One JSON object per line."""

    name: ClassVar[str] = "jsonl"
    roles: ClassVar = frozenset({"run", "gold", "samples"})
    order: ClassVar[int] = 20

    def sniff(self, look: Look, role: str) -> bool:
        """The first line is an object of a known shape, or one of several objects."""
        del role
        if not look.opens_json and look.suffix not in (".jsonl", ".ndjson"):
            return False
        first, _, rest = look.head.lstrip().partition(b"\n")
        several = rest.lstrip().startswith(b"{")
        begins = first.startswith(b"{") or (several and not first.startswith(b"["))
        named = look.suffix in (".jsonl", ".ndjson") and begins
        try:
            record = loads(first)
        except (ValueError, RecursionError):  # too long to be seen whole, or broken
            return named or _begins_as_record(first)
        if not isinstance(record, dict):
            return named
        known = {"query", "question", "reference", *look.mapped}.intersection(record)
        mixed = named and len({type(value) for value in record.values()}) > 1  # not one by query
        fits = any(shape_of(record, each) for each in ("run", "gold"))
        return several or mixed or bool(known) or fits

    def run(self, source: Source, name: str) -> RunStream:
        """Read what was retrieved, block by block."""
        state, first = _begin(source, "run"), _first(source)
        if state.reading.skip or _texts(state, first):  # there is more to report
            return _collect(source, state).run(name)
        return _stream(source, state, name, first)

    def gold(self, source: Source) -> Gold:
        """Read what is gold, one record per query or one per labelled pair."""
        first = [entry.value for entry in _first(source)]
        if records_of_pairs(first[:1], source.reading.fields) is not None:
            return _gold_of_pairs(source)
        return _collect(source, _begin(source, "gold")).gold()

    def samples(self, source: Source, name: str) -> Samples:
        """Read both: at once, but where texts are kept the run may be larger than memory."""
        state = _begin(source, "samples")
        if state.reading.texts and not state.reading.skip:
            return Samples(_stream(source, state, name, _first(source)), self.gold(source))
        return _collect(source, state).samples(name)


def _gold_of_pairs(source: Source) -> Gold:
    """Read records of a question, a chunk and a label."""
    listed = list(all_entries(source))
    mapped = source.reading.fields
    table = records_of_pairs([entry.value for entry in listed], mapped)
    if table is None:
        other = next(entry for entry in listed if not isinstance(entry.value, dict))
        what = f"a {type(other.value).__name__} is not an object"
        raise InputError(what, where=other.where(), fix="write one JSON object per line")
    place = TablePlace(source.where, record_lines(source))
    return gold_of(rename(table, mapped, source.where), place, source.reading)


def _collect(source: Source, state: RecordScan) -> Collected:
    """Read the file whole."""
    parts = list(_parts(source, state)) or [read_part((), state)]
    first = _first(source)
    return Collected(parts, state, first, _texts(state, first))


def _stream(source: Source, state: RecordScan, name: str, first: list[Entry]) -> RunStream:
    """Return the run of the records, which is read when it is asked for."""
    about: list[pl.DataFrame] = []

    def batches() -> Iterator[pl.DataFrame]:
        about.clear()
        state.reading.begin()
        for part in _parts(source, RecordScan(state.shape, "run", state.reading)):
            about.append(part.about)
            yield part.run
        if not about:  # it was cut since its first records were looked at
            raise InputError("the file has no records", where=source.where, fix="write it again")

    return RunStream(
        name,
        batches,
        order="listed",
        about=lambda: join_about(about),
        **first_look(state, first, "retrieved"),
    )


def _begins_as_record(line: bytes) -> bool:
    """Tell whether a line that is not seen whole begins with a field of a known shape."""
    key = line.removeprefix(b"{").lstrip().partition(b'":')[0].decode("utf-8", "replace")
    known = {name for shape in known_shapes().values() for name in shape.known()}
    return line.startswith(b"{") and key.startswith('"') and key[1:] in known


def _begin(source: Source, role: str) -> RecordScan:
    """Find the shape of the first records."""
    probe = replace(source, reading=source.reading.afresh())
    skip, mapped = probe.reading.skip, probe.reading.fields
    shape = find_shape(all_entries(probe), role, skip=skip, mapped=mapped)
    return RecordScan(shape, role, source.reading)


def _first(source: Source) -> list[Entry]:
    """Return the first records, by which others are judged."""
    reading = ReadContext(skip=True, fields=source.reading.fields)
    return list(islice(all_entries(replace(source, reading=reading)), FIRST_RECORDS))


def _texts(state: RecordScan, first: list[Entry]) -> list[Finding]:
    """Report which fields of texts served as ids, judging by the first record."""
    return [replace(finding, count=state.records) for finding in texts_as_ids(state, first[:1])]


def _parts(source: Source, state: RecordScan) -> Iterator[RecordRows]:
    """Read block by block: in bulk if the records are alike, otherwise one by one."""
    if state.last_wins:  # which is known at the end only
        yield read_part(all_entries(source), state)
        return
    like: pl.Schema | None = None
    for block in source.blocks():
        frame = frame_of(block.data, like)
        part = None
        if frame is not None and frame.schema.keys() >= state.reading.fields.keys():
            like = frame.schema
            part = columnar_part(frame, state)
        yield read_part(_entries(block, state.records), state) if part is None else part
    repeated = state.repeated_query()
    if repeated is not None:
        raise twice(repeated, source.where)


def all_entries(source: Source) -> Iterator[Entry]:
    """Parse the lines of a file one by one."""
    before = 0
    for block in source.blocks():
        for entry in _entries(block, before):
            before = entry.number
            yield entry


def _entries(block: Block, before: int) -> Iterator[Entry]:
    """Parse the lines of a block; `before` records came earlier."""
    number = before
    for line, raw in enumerate(block.data.split(NEWLINE)):
        if not raw.strip():
            continue
        number += 1
        where = functools.partial(block.where, line)
        try:
            value = parse_json(raw, fix="write one JSON object per line")
            yield Entry(reach(value, block.source.reading.fields), number, where)
        except UnicodeDecodeError as error:
            block.source.reading.meet(not_utf8(error, where()))
        except InputError as error:
            block.source.reading.meet(InputError(error.what, where=where(), fix=error.fix))


def frame_of(data: bytes, like: pl.Schema | None) -> pl.DataFrame | None:
    """Parse lines of JSON; None where polars cannot, or where a line is not one record.

    `like` is the schema of earlier lines. Finding out the schema of all lines takes as long as
    parsing them, so it is first assumed that the first lines are like the others, and checked.
    """
    if b"\\" in data and HALF_PAIR.search(data):
        return None
    frame = _parsed(data, schema=like)
    if frame is not None and _has_keys(data, frame):
        return frame
    frame = _parsed(data, infer_schema_length=None)
    return frame if frame is not None and _names_once(data, frame) else None


def _parsed(data: bytes, **how: Any) -> pl.DataFrame | None:  # noqa: ANN401
    try:
        frame = pl.read_ndjson(data, **how)
    except (pl.exceptions.PolarsError, ValueError):
        return None
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    return frame if frame.height == lines else None


def _has_keys(data: bytes, frame: pl.DataFrame) -> bool:
    """Tell whether the lines hold the keys of the frame and no others; if in doubt, say no."""
    keys = 0
    for column in frame.iter_columns():
        given = frame.height
        if column.null_count():
            given = data.count(b'"%s":' % column.name.encode())
            if given > column.count() + _nulls(data, column.name):  # a record names it twice
                return False
        keys += given
        inner = getattr(column.dtype, "inner", column.dtype)
        if isinstance(inner, pl.Struct):
            if inner == column.dtype:
                return False
            elements = column.list.explode(empty_as_null=False, keep_nulls=False)
            fields = elements.struct.unnest()
            if any(field.null_count() for field in fields.iter_columns()):
                return False
            keys += fields.height * fields.width
    codes = np.frombuffer(data, np.uint8)
    colons = np.flatnonzero(codes == ord(":"))
    ends = (codes[colons - 1] == ord('"')) & (codes[colons - 2] != ord("\\"))
    return int(np.count_nonzero(ends)) == keys


def _names_once(data: bytes, frame: pl.DataFrame) -> bool:
    """Tell whether certainly no record or entry of a list names a field twice.

    Polars and Python take different ones then.
    """
    places: Counter[str] = Counter()
    for column in frame.iter_columns():
        places[column.name] += column.count()
        inner = getattr(column.dtype, "inner", column.dtype)
        if isinstance(inner, pl.Struct):
            entries = column if inner == column.dtype else column.explode()
            places.update({each.name: each.count() for each in entries.struct.unnest()})
    return all(
        data.count(b'"%s"' % name.encode()) <= most + _nulls(data, name)
        for name, most in places.items()
    )


def _nulls(data: bytes, name: str) -> int:
    return sum(data.count(b'"%s":%snull' % (name.encode(), blank)) for blank in (b"", b" "))
