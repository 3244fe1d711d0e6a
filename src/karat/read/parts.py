"""Records in bulk: the rows of run and gold that some of them make, and how parts are joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.core.data import EMPTY_ITEM, TEXT_ITEM, Gold, Run
from karat.core.timing import TIMED
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding
from karat.read.format import Samples
from karat.read.reading import two_names
from karat.read.record import Entry, Parsed, Place, parse, twice

if TYPE_CHECKING:
    from karat.read.reading import Reading
    from karat.read.shapes import Shape

RUN = {"query": pl.String, "doc": pl.String, "score": pl.Float64}
GOLD = {"query": pl.String, "doc": pl.String, "grade": pl.Float64, "group": pl.Int64}
TEXT = {"text": pl.String, "start": pl.Int64, "end": pl.Int64}


@dataclass(frozen=True, slots=True)
class Part:
    """What some records make."""

    run: pl.DataFrame
    gold: pl.DataFrame
    about: pl.DataFrame  # a row a query: its id and what describes it
    flaws: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class State:
    """How far the reading of one input has come."""

    shape: Shape
    role: str  # run, gold or samples
    reading: Reading
    records: int = 0  # read so far, the broken ones too
    items: int = 0
    queries: set[str] = field(default_factory=set)
    pending: list[pl.Series] = field(default_factory=list)  # queries that are not in the set yet
    findings: list[Finding] = field(default_factory=list)

    def known(self) -> set[str]:
        """Return the queries of all records so far."""
        for names in self.pending:
            self.queries.update(names)
        self.pending.clear()
        return self.queries

    def repeated(self) -> str | None:
        """Return a query of several bulks, if there is one."""
        if len(self.pending) < 2:
            return None
        names = pl.concat(self.pending)
        if names.n_unique() == len(names):
            return None
        return str(names.filter(names.is_duplicated())[0])

    def nth(self, question: str) -> str:
        """Return a name for a question that no record had before: a number behind the others."""
        name, again = question, 2
        while name in self.known():
            name, again = f"{question} ({again})", again + 1
        return name

    @property
    def last_wins(self) -> bool:
        """Whether of two records of one query the later counts."""
        return self.shape.last_wins and self.role == "gold"


def read_part(entries: Iterable[Entry], state: State) -> Part:
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
        note_twice(state, parsed.twice)
        for chosen, other in parsed.rivals:
            note_rivals(state, chosen, other)
    if replaced:
        state.findings.append(_replaced(replaced))
    return _part(list(understood.values()), state)


def _part(records: list[Parsed], state: State) -> Part:
    run: list[tuple[Any, ...]] = []
    gold: list[tuple[Any, ...]] = []
    flaws: dict[str, str] = {}
    nothing = (None,) * len(Place._fields)
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
            key = state.items if len(places) > 1 else None
            gold.extend((record.query, doc, grade, key, *facts) for doc, grade, *facts in places)
    return Part(
        _frame(run, RUN, state),
        _frame(gold, GOLD, state),
        kept_about(_table([{"query": each.query} | each.about for each in records]), state),
        flaws,
    )


def kept_about(about: pl.DataFrame, state: State) -> pl.DataFrame:
    """Return what of a table about the queries is kept: of a run alone, little."""
    return timed(about) if state.role == "run" and not state.reading.about else about


def _frame(rows: list[tuple[Any, ...]], schema: dict[str, Any], state: State) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=schema | TEXT, orient="row")
    return frame if state.reading.texts else frame.drop(TEXT)


def _table(about: list[dict[str, Any]]) -> pl.DataFrame:
    names = list(dict.fromkeys(chain.from_iterable(about))) or ["query"]
    return pl.DataFrame(
        {
            name: pl.Series(name, [entry.get(name) for entry in about], strict=False)
            for name in names
        },
        schema_overrides={"query": pl.String},
    )


def run_of(parts: list[Part], name: str, findings: Iterable[Finding] = ()) -> Run:
    """Return the run that the parts hold."""
    rows = pl.concat([part.run for part in parts]) if parts else pl.DataFrame(schema=RUN)
    return Run(name, rows, "listed", tuple(findings), join_about([part.about for part in parts]))


def timed(about: pl.DataFrame) -> pl.DataFrame:
    """Return what a table of queries says about time and errors."""
    present = set(about.columns)
    return about.select("query", *(name for name in TIMED if name in present))


def gold_of(parts: list[Part], findings: Iterable[Finding] = ()) -> Gold:
    """Return the gold that the parts hold."""
    rows = pl.concat([part.gold for part in parts]) if parts else pl.DataFrame(schema=GOLD)
    flaws = dict(chain.from_iterable(part.flaws.items() for part in parts))
    return Gold.build(
        rows, queries=join_about([part.about for part in parts]), findings=findings, flaws=flaws
    )


def samples_of(parts: list[Part], name: str, findings: Iterable[Finding] = ()) -> Samples:
    """Return run and gold that the parts hold; the gold has what is about the queries."""
    run = run_of([replace(part, about=timed(part.about)) for part in parts], name)
    return Samples(run.stream(), gold_of(parts, findings))


def join_about(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Put the parts of the table of queries together; a column of several types becomes text."""
    if not tables:
        return pl.DataFrame(schema={"query": pl.String})
    try:
        return pl.concat(tables, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        return pl.concat([table.cast(pl.String) for table in tables], how="diagonal")


def note_twice(state: State, names: tuple[str, ...]) -> None:
    """Say which fields that describe the queries stand twice in a record."""
    if names:
        state.reading.note(
            Finding(
                "repeated-field",
                1,
                names[:EXAMPLES],
                "record in which a field stands more than once: the last one counts",
                "keep one of them",
            )
        )


def note_rivals(state: State, chosen: str, other: str, count: int = 1) -> None:
    """Say that a field counts, and not another one that means the same."""
    if count:
        what = "record with another field of the same meaning"
        state.reading.note(two_names(count, chosen, (other,), what))


def _replaced(queries: list[str]) -> Finding:
    return Finding(
        "replaced-gold",
        len(queries),
        tuple(dict.fromkeys(queries))[:EXAMPLES],
        "query with more than one gold: the last one counts",
        "keep one reference a query",
    )
