"""Tables with a row a query, which have lists in them, as AutoRAG and LiveRAG write them."""

from __future__ import annotations

import functools
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from karat.core.data import Run, RunStream
from karat.read import records, table
from karat.read.columnar import columnar_part
from karat.read.columns import carried, known_columns, named_by, note_columns
from karat.read.parts import Part, State, gold_of, read_part, run_of, samples_of
from karat.read.record import Entry
from karat.read.shapes import shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from karat.core.data import Gold
    from karat.findings import Finding
    from karat.read.format import Samples
    from karat.read.reading import Reading


def is_by_query(columns: list[str], role: str) -> bool:
    """Tell a table with a row a query from one with a row a document."""
    by_document = {"query", "doc"} <= known_columns(columns).keys()
    return not by_document and shape_of(columns, role) is not None


def frame_run(frame: pl.DataFrame, name: str, where: str, reading: Reading) -> RunStream:
    """Return the run of a frame of either kind."""
    if not is_by_query(frame.columns, "run"):
        rows, order = table.run_rows(frame, where, reading)
        note_columns(frame.columns, "run", reading)
        return replace(
            Run(name, rows, order).stream(),
            carries=carried(frame.columns),
            named_by=named_by(frame.columns, reading),
        )
    return run(frame, name, where, reading)


def frame_gold(frame: pl.DataFrame, where: str, reading: Reading, *, cells: bool = False) -> Gold:
    """Return the gold of a frame of either kind."""
    if not is_by_query(frame.columns, "gold"):
        return table.gold_of(frame, where, reading, cells=cells)
    part, state, findings = _read(frame, "gold", where, reading, cells=cells)
    first = list(islice(_rows(frame, where, cells=cells), records.FIRST))
    return replace(gold_of([part], findings), **records.first_look(state, first, "gold"))


def run(
    frame: pl.DataFrame, name: str, where: str, reading: Reading, *, cells: bool = False
) -> RunStream:
    """Return the run of a frame with a row a query."""
    part, state, findings = _read(frame, "run", where, reading, cells=cells)
    first = list(islice(_rows(frame, where, cells=cells), records.FIRST))
    return records.stream_of(run_of([part], name, findings), state, first)


def samples(
    frame: pl.DataFrame, name: str, where: str, reading: Reading, *, cells: bool = False
) -> Samples:
    """Return run and gold of a frame with a row a query."""
    part, state, findings = _read(frame, "samples", where, reading, cells=cells)
    first = list(islice(_rows(frame, where, cells=cells), records.FIRST))
    return records.looked_at(samples_of([part], name, findings), state, first)


def _read(
    frame: pl.DataFrame, role: str, where: str, reading: Reading, *, cells: bool
) -> tuple[Part, State, list[Finding]]:
    """Read the rows in bulk where they are alike, otherwise one by one."""
    shape = records.tell_shape(islice(_rows(frame, where), 1), role)
    state = State(shape, role, reading)
    part = None if cells else columnar_part(frame, state)
    if part is None:
        part = read_part(_rows(frame, where, cells=cells), state)
    texts = records.texts_as_ids(state, _rows(frame, where) if shape.texts else ())
    return part, state, [*state.findings, *texts]


def _rows(frame: pl.DataFrame, where: str, *, cells: bool = False) -> Iterator[Entry]:
    """Go through the rows as records; a row of nothing is none."""
    for number, row in enumerate(frame.iter_rows(named=True), start=1):
        if any(value is not None for value in row.values()):
            yield Entry(row, number, functools.partial(_place, where, number), cells)


def _place(where: str, number: int) -> str:
    return f"{where}, row {number}"
