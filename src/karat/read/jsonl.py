"""JSON lines: one record a line, parsed in bulk where the records are all alike."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from karat.core.data import Gold, RunStream
from karat.errors import InputError
from karat.read import columnar, records
from karat.read.format import Format, Look, Samples, register_format
from karat.read.ndjson import frame_of
from karat.read.objects import loads
from karat.read.parts import Part, State, gold_of, join_about, read_part, run_of, samples_of
from karat.read.reading import Reading
from karat.read.record import Entry, twice
from karat.read.shapes import SHAPES, shape_of
from karat.read.source import not_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from karat.findings import Finding
    from karat.read.source import Block, Source


@register_format
class JsonLines(Format):
    """One JSON object a line."""

    name: ClassVar[str] = "jsonl"
    roles: ClassVar = frozenset({"run", "gold", "samples"})
    order: ClassVar[int] = 20

    def sniff(self, look: Look, role: str) -> bool:
        """The first line is an object of a known shape, or one of several objects."""
        del role
        first, _, rest = look.head.lstrip().partition(b"\n")
        several = rest.lstrip().startswith(b"{")
        begins = first.startswith(b"{") or (several and not first.startswith(b"["))
        named = look.suffix in (".jsonl", ".ndjson") and begins
        try:
            record = json.loads(first)
        except (ValueError, RecursionError):  # too long to be seen whole, or broken
            return named or _begins_as_record(first)
        if not isinstance(record, dict):
            return named
        return several or _has_shape(record)

    def run(self, source: Source, name: str) -> RunStream:
        """Read what was retrieved, block by block."""
        state = _begin(source, "run")
        first = _first(source)
        if state.reading.skip or _texts(state, first):  # there is more to tell
            parts = list(_parts(source, state))
            findings = [*state.findings, *_texts(state, first)]
            return records.stream_of(run_of(parts, name, findings), state, first)

        return _stream(source, state, name, first)

    def gold(self, source: Source) -> Gold:
        """Read what is gold."""
        state = _begin(source, "gold")
        parts, first = list(_parts(source, state)), _first(source)
        gold = gold_of(parts, [*state.findings, *_texts(state, first)])
        return replace(gold, **records.first_look(state, first, "gold"))

    def samples(self, source: Source, name: str) -> Samples:
        """Read both: at once, but where texts are kept the run may be larger than memory."""
        state = _begin(source, "samples")
        if state.reading.texts and not state.reading.skip:
            return Samples(_stream(source, state, name, _first(source)), self.gold(source))
        parts, first = list(_parts(source, state)), _first(source)
        findings = [*state.findings, *_texts(state, first)]
        return records.looked_at(samples_of(parts, name, findings), state, first)


def _stream(source: Source, state: State, name: str, first: list[Entry]) -> RunStream:
    """Return the run of the records, which is read when it is asked for."""
    about: list[pl.DataFrame] = []

    def batches() -> Iterator[pl.DataFrame]:
        about.clear()
        state.reading.begin()
        for part in _parts(source, State(state.shape, "run", state.reading)):
            about.append(part.about)
            yield part.run

    return RunStream(
        name,
        batches,
        order="listed",
        about=lambda: join_about(about),
        **records.first_look(state, first, "retrieved"),
    )


def _has_shape(record: dict[str, object]) -> bool:
    known = {"query", "question", "reference"}.intersection(record)
    return bool(known) or any(shape_of(record, role) for role in ("run", "gold"))


def _begins_as_record(line: bytes) -> bool:
    """Tell whether a line that is not seen whole begins with a field of a known shape."""
    key = line.removeprefix(b"{").lstrip().partition(b'":')[0].decode("utf-8", "replace")
    known = {name for shape in SHAPES.values() for name in shape.known()}
    return line.startswith(b"{") and key.startswith('"') and key[1:] in known


def _begin(source: Source, role: str) -> State:
    """Tell the shape by the first records."""
    probe = replace(source, reading=source.reading.afresh())
    shape = records.tell_shape(all_entries(probe), role, skip=probe.reading.skip)
    return State(shape, role, source.reading)


def _first(source: Source) -> list[Entry]:
    """Return the first records, by which others are judged."""
    return list(islice(all_entries(replace(source, reading=Reading(skip=True))), records.FIRST))


def _texts(state: State, first: list[Entry]) -> list[Finding]:
    """Say which fields of texts served as ids, judging by the first record."""
    found = records.texts_as_ids(state, first[:1])
    return [replace(finding, count=state.records) for finding in found]


def _parts(source: Source, state: State) -> Iterator[Part]:
    """Read block by block: in bulk if the records are alike, otherwise one by one."""
    if state.last_wins:  # which is known at the end only
        yield read_part(all_entries(source), state)
        return
    like: pl.Schema | None = None
    for block in source.blocks():
        frame = frame_of(block.data, like)
        part = None
        if frame is not None:
            like = frame.schema
            part = columnar.columnar_part(frame, state)
        yield read_part(_entries(block, state.records), state) if part is None else part
    repeated = state.repeated()
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
    for line, raw in enumerate(block.data.split(b"\n")):
        if not raw.strip():
            continue
        number += 1
        where = functools.partial(block.where, line)
        try:
            yield Entry(_record(raw), number, where)
        except InputError as error:
            block.source.reading.meet(InputError(error.what, where=where(), fix=error.fix))


def _record(raw: bytes) -> object:
    try:
        record = loads(raw)
        if b"\\u" in raw:
            json.dumps(record, ensure_ascii=False).encode()  # refuses half a surrogate pair
    except UnicodeDecodeError as error:
        raise not_utf8(error, "") from None
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"not valid JSON: {what}", fix="write one JSON object a line") from None
    return record
