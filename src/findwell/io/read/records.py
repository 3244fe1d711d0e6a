"""Records, one per query, in findwell's own shape or another tool's:

    {"query": "q1", "question": "…", "retrieved": [{"doc": "d1", "score": 0.9}, "d2"],
     "gold": ["d1", ["d2", "d3"], {"docs": ["d4"], "grade": 2}], "topic": "billing"}

A retrieved list is in rank order. In the gold every entry is needed; the documents of one entry
are interchangeable. Every other field describes the query, to slice results by.

Where several searches were made for one question, `hops` holds them instead of `retrieved`:

    {"query": "q1", "hops": [{"query": "…", "retrieved": ["d1"]}, {"retrieved": ["d2"]}], "gold": …}

Records are read in parts, so that a file may be larger than memory; `Collected` joins the parts.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import polars as pl

from findwell.core.data import EMPTY_ITEM, TEXT_ITEM, Gold, Run, RunStream, carried_facts
from findwell.core.errors import InputError
from findwell.core.findings import EXAMPLES, Finding, finding_about
from findwell.core.timing import timed
from findwell.io.read.format import Samples
from findwell.io.read.object_records import holds_entries, with_own_entries
from findwell.io.read.reading import ReadContext, text_as_id, two_names
from findwell.io.read.record import DocEntry, Entry, Parsed, name_of, parse, twice
from findwell.io.read.shapes import NATIVE, ROLES, Shape, shape_of, unknown_shape

FIRST = 10  # records by which it is decided what the others are like
CARRIED = {"text": "texts", "quote": "texts", "start": "places"}
RUN = {"query": pl.String, "doc": pl.String, "score": pl.Float64}
GOLD = {"query": pl.String, "doc": pl.String, "grade": pl.Float64, "group": pl.Int64}
TEXT = {"text": pl.String, "start": pl.Int64, "end": pl.Int64, "source": pl.String}
WEIGHT = {"weight": pl.Float64}  # where documents support an item more or less
SEARCHES = {"hop": pl.Int64, "calls": pl.Int64}  # where a record holds several searches


@dataclass(frozen=True, slots=True)
class RecordRows:
    """The rows that some of the records make."""

    run: pl.DataFrame
    gold: pl.DataFrame
    about: pl.DataFrame  # one row per query: its id and what describes it
    flaws: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class State:
    """How far the reading of one input has come."""

    shape: Shape
    role: str  # run, gold or samples
    reading: ReadContext
    records: int = 0  # read so far, broken ones included
    items: int = 0
    queries: set[str] = field(default_factory=set)
    pending: list[pl.Series] = field(default_factory=list)  # queries that are not in the set yet
    findings: list[Finding] = field(default_factory=list)
    # what stands next to the ids of each side, as far as they have been read
    carries: dict[str, frozenset[str]] = field(default_factory=dict)

    def carry(self, side: str, facts: pl.DataFrame) -> None:
        """Remember what the entries of a side say next to their ids."""
        self.carries[side] = self.carries.get(side, frozenset()) | carried_facts(facts)

    def known(self) -> set[str]:
        """Return the queries of all records so far."""
        for names in self.pending:
            self.queries.update(names)
        self.pending.clear()
        return self.queries

    def repeated(self) -> str | None:
        """Return a query that occurs in several parts, if there is one."""
        if len(self.pending) < 2:
            return None
        names = pl.concat(self.pending)
        if names.n_unique() == len(names):
            return None
        return str(names.filter(names.is_duplicated())[0])

    def nth(self, question: str) -> str:
        """Return a name for a question that no record had before, by adding a number."""
        name, again = question, 2
        while name in self.known():
            name, again = f"{question} ({again})", again + 1
        return name

    @property
    def last_wins(self) -> bool:
        """Whether the later of two records of one query counts."""
        return self.shape.last_wins and self.role == "gold"


@dataclass(frozen=True, slots=True)
class Collected:
    """All parts of an input, ready to become a run, a gold, or both."""

    parts: list[RecordRows]
    state: State
    first: Iterable[Entry]  # the first records, or all of them
    texts: list[Finding]  # which fields of texts served as ids

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found while reading."""
        return (*self.state.findings, *self.texts)

    def run(self, name: str) -> RunStream:
        """Return the run; where records hold both, the findings go with the gold."""
        alone = self.state.role == "run"
        about = [part.about if alone else timed(part.about) for part in self.parts]
        rows = pl.concat([part.run for part in self.parts])
        run = Run(name, rows, "listed", self.findings if alone else (), join_about(about))
        return replace(run.stream(), **first_look(self.state, self.first, "retrieved"))

    def gold(self) -> Gold:
        """Return the gold, with every further field as a column of the queries."""
        gold = Gold.build(
            pl.concat([part.gold for part in self.parts], how="diagonal"),
            queries=join_about([part.about for part in self.parts]),
            findings=self.findings,
            flaws=dict(chain.from_iterable(part.flaws.items() for part in self.parts)),
        )
        return replace(gold, **first_look(self.state, self.first, "gold"))

    def samples(self, name: str) -> Samples:
        """Return run and gold."""
        return Samples(self.run(name), self.gold())


def read_records(given: Iterable[Entry], role: str, reading: ReadContext) -> Collected:
    """Read records one by one; their shape is that of the first one that has any."""
    listed = list(given)
    state = State(find_shape(listed, role, skip=reading.skip), role, reading)
    part = read_part(listed, state)
    return Collected([part], state, listed, texts_as_ids(state, listed))


def find_shape(listed: Iterable[Entry], role: str, *, skip: bool = False) -> Shape:
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
    return NATIVE  # no records, or something else, which is reported where it is read


def read_part(entries: Iterable[Entry], state: State) -> RecordRows:
    """Read records one by one."""
    understood: dict[str, Parsed] = {}
    replaced: list[str] = []
    known = state.known()
    for entry in entries:
        state.records = entry.number
        try:
            parsed = parse(entry, state.shape, state.role, state.reading)
            if parsed.named_by == "question":
                parsed = parsed._replace(query=state.nth(parsed.query))
            if parsed.query in known:
                if not state.last_wins:
                    raise twice(parsed.query, entry.where())
                replaced.append(parsed.query)
        except InputError as error:
            state.reading.meet(error)
            continue
        known.add(parsed.query)
        understood[parsed.query] = parsed
        if parsed.twice:
            state.reading.note(_repeated(parsed.twice))
        for chosen, other in parsed.rivals:
            note_rivals(state, chosen, other)
    state.findings += finding_about(
        "replaced-gold",
        replaced,
        "query with more than one gold: the last one counts",
        "keep one reference per query",
    )
    return _part(list(understood.values()), state)


def _part(records: list[Parsed], state: State) -> RecordRows:
    run: list[tuple[Any, ...]] = []
    gold: list[tuple[Any, ...]] = []
    flaws: dict[str, str] = {}
    nothing = (None,) * len(DocEntry._fields)
    for record in records:
        run.extend((record.query, *unit) for unit in record.units)
        if not record.units:  # an empty list is a row without a document
            run.append((record.query, *nothing))
        for places in record.items:
            blank = [place for place in places if not place.doc.strip()]
            if blank:
                no_id = f"{blank[0].doc!r} is not an id"
                flaws[record.query] = no_id if blank[0].text is None else TEXT_ITEM
            elif not places:
                flaws[record.query] = EMPTY_ITEM
            state.items += 1
            # items that share a document and tell how far it supports them stay items of their own
            alone = len(places) < 2 and not (places and places[0].weight is not None)
            key = None if alone else state.items
            gold.extend(
                (record.query, place.doc, place.number, key, *place[2:]) for place in places
            )
    about = _table([{"query": each.query} | each.about for each in records])
    if state.role == "run" and not state.reading.about:
        about = timed(about)
    return RecordRows(_frame(run, RUN, state), _frame(gold, GOLD, state), about, flaws)


def _frame(rows: list[tuple[Any, ...]], schema: dict[str, Any], state: State) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=schema | TEXT | SEARCHES | WEIGHT, orient="row")
    frame = frame if schema is RUN and state.shape.searches else frame.drop(SEARCHES)
    frame = frame if frame["weight"].count() else frame.drop(WEIGHT)
    state.carry("retrieved" if schema is RUN else "gold", frame)
    return frame if state.reading.texts else frame.drop(TEXT)


def _table(about: list[dict[str, Any]]) -> pl.DataFrame:
    names = list(dict.fromkeys(chain.from_iterable(about))) or ["query"]
    return pl.DataFrame(
        {
            name: pl.Series(name, [entry.get(name) for entry in about], pl.String)
            if name == "query"
            else describing(name, [entry.get(name) for entry in about])
            for name in names
        }
    )


def describing(name: str, values: list[Any]) -> pl.Series:
    """Return a column about queries; values that do not go together become texts."""
    try:
        return _plain(pl.Series(name, values, strict=False))
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
        texts = [None if value is None else str(value) for value in values]
        return pl.Series(name, texts, dtype=pl.String)


def plain_columns(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table about queries whose values can all be shown, and sliced by."""
    return table.with_columns(_plain(column) for column in table.iter_columns())


def _plain(column: pl.Series) -> pl.Series:
    """Return a column of lists, objects, bytes or durations as texts; others stay."""
    kind = column.dtype
    if not (kind.is_nested() or kind in (pl.Binary, pl.Object) or kind == pl.Duration):
        return column
    texts = [None if value is None else _written(value) for value in column.to_list()]
    return pl.Series(column.name, texts, dtype=pl.String)


def _written(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def join_about(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Join the parts of the table of queries; a column of several types becomes text."""
    if not tables:
        return pl.DataFrame(schema={"query": pl.String})
    try:
        return pl.concat(tables, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        return pl.concat([table.cast(pl.String) for table in tables], how="diagonal")


def first_look(state: State, first: Iterable[Entry], side: str) -> dict[str, Any]:
    """Tell by the first records what names their queries, and what one side carries beside ids."""
    values = (entry.value for entry in islice(first, FIRST))
    records = [value for value in values if isinstance(value, Mapping)]
    if not records:
        return {}
    picked = state.shape.pick(records[0])
    fields = {name: records[0][field] for name, field in picked.items()}
    carries = set(state.carries.get(side, ()))
    for record in records:
        with contextlib.suppress(InputError):  # which is reported where the record is read
            own = with_own_entries(record, state.shape, (side,), state.reading.afresh())
            given = state.shape.native(own, texts=True).get(side)
            listed = given if isinstance(given, list | tuple) else ()
            for each in (each for each in listed if isinstance(each, Mapping)):
                carries |= {kind for key, kind in CARRIED.items() if each.get(key) is not None}
                if each.get("source") not in (None, each.get("doc")):
                    carries.add("chunks")
    return {"named_by": name_of(fields, state.reading.names), "carries": frozenset(carries)}


def texts_as_ids(state: State, listed: Iterable[Entry]) -> list[Finding]:
    """Report which fields of texts served as ids."""
    values = (entry.value for entry in listed)
    used = [_texts_used(record, state) for record in values if isinstance(record, Mapping)]
    count = sum(map(bool, used))
    names = tuple(dict.fromkeys(chain.from_iterable(used)))[:EXAMPLES]
    return [text_as_id(count, names)] if count else []


def _texts_used(record: Mapping[str, Any], state: State) -> list[str]:
    used = state.shape.uses_texts([key for key, value in record.items() if value is not None])
    if used:
        with contextlib.suppress(InputError):  # which is reported where the record is read
            sides = ROLES[state.role]
            record = with_own_entries(record, state.shape, sides, state.reading.afresh())
    return [name for name in used if not holds_entries(record[name])]


def note_rivals(state: State, chosen: str, other: str, count: int = 1) -> None:
    """Report that one field counts, and another one of the same meaning does not."""
    if count:
        what = "record with another field of the same meaning"
        state.reading.note(two_names(count, chosen, (other,), what))


def _repeated(names: tuple[str, ...]) -> Finding:
    return Finding(
        "repeated-field",
        1,
        names[:EXAMPLES],
        "record in which a field occurs more than once: the last one counts",
        "keep one of them",
    )
