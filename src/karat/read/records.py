"""Records, one a query, in karat's own shape or another tool's:

    {"query": "q1", "question": "…", "retrieved": [{"doc": "d1", "score": 0.9}, "d2"],
     "gold": ["d1", ["d2", "d3"], {"docs": ["d4"], "grade": 2}], "topic": "billing"}

A retrieved list is in rank order. In the gold every entry is needed; the documents of one entry
are interchangeable. Every other field describes the query, to slice results by.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from karat.errors import InputError
from karat.findings import EXAMPLES, Finding
from karat.read.parts import State, gold_of, read_part, run_of, samples_of
from karat.read.reading import STRICT, Reading, text_as_id
from karat.read.record import Entry, entries, name_of
from karat.read.shapes import GIVE_GOLD, NATIVE, Shape, shape_of, unknown_shape

if TYPE_CHECKING:
    from karat.core.data import Gold, Run, RunStream
    from karat.read.format import Samples

FIRST = 10  # records by which it is told what the others are like
CARRIED = {"text": "texts", "quote": "texts", "start": "places", "end": "places"}


def run(
    records: Iterable[object], name: str, where: str = "", reading: Reading = STRICT
) -> RunStream:
    """Return the run of records."""
    return read_run(entries(records, where or name), name, reading)


def gold(records: Iterable[object], where: str = "gold", reading: Reading = STRICT) -> Gold:
    """Return the gold of records, with every further field as a column of the queries."""
    return read_gold(entries(records, where), reading)


def samples(
    records: object, name: str, where: str = "records", reading: Reading = STRICT
) -> Samples:
    """Return run and gold of records that hold both."""
    if not isinstance(records, Iterable) or isinstance(records, Mapping | str | bytes):
        raise InputError(
            f"without a gold, one list of records is needed, not {type(records).__name__}",
            where=where,
            fix=f"give {GIVE_GOLD}, or records with the fields retrieved and gold",
        )
    return read_samples(entries(records, where), name, reading)


def read_run(given: Iterable[Entry], name: str, reading: Reading) -> RunStream:
    """Return the run of entries."""
    state, listed = begin(given, "run", reading)
    part = read_part(listed, state)
    whole = run_of([part], name, [*state.findings, *texts_as_ids(state, listed)])
    return stream_of(whole, state, listed)


def read_gold(given: Iterable[Entry], reading: Reading) -> Gold:
    """Return the gold of entries."""
    state, listed = begin(given, "gold", reading)
    part = read_part(listed, state)
    found = gold_of([part], [*state.findings, *texts_as_ids(state, listed)])
    return replace(found, **first_look(state, listed, "gold"))


def read_samples(given: Iterable[Entry], name: str, reading: Reading) -> Samples:
    """Return run and gold of entries."""
    state, listed = begin(given, "samples", reading)
    part = read_part(listed, state)
    findings = [*state.findings, *texts_as_ids(state, listed)]
    return looked_at(samples_of([part], name, findings), state, listed)


def looked_at(samples: Samples, state: State, listed: list[Entry]) -> Samples:
    """Return run and gold that remember what their first records tell."""
    return replace(
        samples,
        run=replace(samples.run, **first_look(state, listed, "retrieved")),
        gold=replace(samples.gold, **first_look(state, listed, "gold")),
    )


def begin(given: Iterable[Entry], role: str, reading: Reading) -> tuple[State, list[Entry]]:
    """Tell the shape of records by the first that has one."""
    listed = list(given)
    return State(tell_shape(listed, role, skip=reading.skip), role, reading), listed


def tell_shape(listed: Iterable[Entry], role: str, *, skip: bool = False) -> Shape:
    """Return the shape of the first record, or of the first that has one if others are skipped."""
    unknown: InputError | None = None
    for entry in listed:
        if isinstance(entry.value, Mapping):
            shape = shape_of(entry.value, role)
            if shape is not None:
                return shape
            unknown = unknown or unknown_shape(entry.value, role, entry.where())
        if not skip:
            break
    if unknown is not None:
        raise unknown
    return NATIVE  # no records, or something else, which is said where it is read


def stream_of(whole: Run, state: State, listed: list[Entry]) -> RunStream:
    """Return a run as a stream, which remembers what its first records tell."""
    return replace(whole.stream(), **first_look(state, listed, "retrieved"))


def first_look(state: State, listed: Iterable[Entry], side: str) -> dict[str, Any]:
    """Tell by the first records what names their queries, and what one side carries beside ids."""
    values = (entry.value for entry in islice(listed, FIRST))
    records = [value for value in values if isinstance(value, Mapping)]
    if not records:
        return {}
    picked = state.shape.pick(records[0])
    fields = {name: records[0][field] for name, field in picked.items()}
    carries: set[str] = set()
    for record in records:
        with contextlib.suppress(InputError):  # which is said where the record is read
            given = state.shape.native(record, texts=True).get(side)
            entries = given if isinstance(given, list | tuple) else ()
            keys = {key for entry in entries if isinstance(entry, Mapping) for key in entry}
            carries |= {CARRIED[key] for key in keys & CARRIED.keys()}
    return {"named_by": name_of(fields, state.reading.names), "carries": frozenset(carries)}


def texts_as_ids(state: State, listed: Iterable[Entry]) -> list[Finding]:
    """Say which fields of texts served as ids."""
    values = (entry.value for entry in listed)
    used = [
        state.shape.uses_texts([key for key, value in record.items() if value is not None])
        for record in values
        if isinstance(record, Mapping)
    ]
    count = sum(map(bool, used))
    names = tuple(dict.fromkeys(chain.from_iterable(used)))[:EXAMPLES]
    return [text_as_id(count, names)] if count else []
