"""Records, one per query, in findwell's own shape or another tool's:

    {"query": "q1", "question": "…", "retrieved": [{"doc": "d1", "score": 0.9}, "d2"],
     "gold": ["d1", ["d2", "d3"], {"docs": ["d4"], "grade": 2}], "topic": "billing"}

A retrieved list is in rank order. In the gold every entry is needed; the documents of one entry
are interchangeable. Every other field describes the query, to slice results by.

Where several searches were made for one question, `hops` holds them instead of `retrieved`:

    {"query": "q1", "hops": [{"query": "…", "retrieved": ["d1"]}, {"retrieved": ["d2"]}], "gold": …}

Dicts by query, lists, rows of tables and lines of JSON all become such records, and each is read
in four steps: what it retrieved and its gold become ids or findwell's own entries
(`with_own_entries`), the fields get findwell's names (`Shape.native`), `parse` checks every value,
and `read_part` makes rows of all. Records are read in parts, so that a file may be larger than
memory; `Collected` joins the parts.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from findwell.core.data import EMPTY_ITEM, TEXT_ITEM, Gold, Run, RunStream, carried_facts
from findwell.core.errors import InputError, nearest
from findwell.core.findings import EXAMPLES, Finding, finding_about, shorten
from findwell.core.frames import pl
from findwell.core.timing import timed
from findwell.io.read.format import EntryNotes, ReadContext, Samples, text_as_id, two_names
from findwell.io.read.mapping import NO_FIELDS, Fields, require_fields
from findwell.io.read.objects import (
    MAPPINGS,
    is_answer,
    is_number,
    is_plain,
    is_result,
    make_entries,
    refuse_ranks,
    results_of,
    type_name,
)
from findwell.io.read.shapes import CALLS, HOP, ROLES, Shape, known_shapes, shape_of, unknown_shape
from findwell.io.read.values import (
    describing,
    digits,
    flat,
    grade,
    identifier,
    is_joined,
    join_about,
    refuse_repeated,
    repeated,
    whole_letters,
)
from findwell.io.read.vocabulary import ENTRY_FIELDS, GRADE_NAMES, METADATA_NAMES, TEXT_NAMES

if TYPE_CHECKING:
    from findwell.core.data import NamedBy

T = TypeVar("T")
SIDES = ("query", "retrieved", "gold")  # every other field describes the query
FIRST_RECORDS = 10  # records by which it is decided what the others are like
CARRIED = {"text": "texts", "quote": "texts", "start": "places"}
RUN = {"query": pl.String, "doc": pl.String, "score": pl.Float64}
GOLD = {"query": pl.String, "doc": pl.String, "grade": pl.Float64, "group": pl.Int64}
TEXT = {"text": pl.String, "start": pl.Int64, "end": pl.Int64, "source": pl.String}
WEIGHT = {"weight": pl.Float64}  # where documents support an item more or less
SEARCHES = {"hop": pl.Int64, "calls": pl.Int64}  # where a record holds several searches


# ---- retrieved and gold as ids or findwell's own entries; a record that has them is not copied


@functools.lru_cache(maxsize=256)
def is_own_entry(names: tuple[str, ...], id_from: str | None) -> bool:
    """Tell whether an entry with these fields is findwell's own, and its id the one that is wanted.

    >>> is_own_entry(("doc", "rank"), None), is_own_entry(("id", "text"), None)
    (True, True)
    >>> is_own_entry(("id", "content"), None), is_own_entry(("doc", "content"), None)
    (False, False)
    """
    given = set(names)
    if id_from is not None and (
        given.intersection(METADATA_NAMES) or id_from.partition(".")[0] in given - {"docs"}
    ):
        return False
    if not given & {"text", "quote"} and given.intersection(TEXT_NAMES):
        return False
    return bool(given & {"doc", "docs"}) or given <= set(ENTRY_FIELDS)


def with_own_entries(
    record: Mapping[str, Any], shape: Shape, sides: tuple[str, ...], reading: ReadContext
) -> Mapping[str, Any]:
    """Return a record whose entries, retrieved or gold, are ids or findwell's own."""
    if not shape.documents:
        return record
    converters = {"retrieved": _own_units, "gold": _own_items}
    changed = {}
    of_texts = EntryNotes()  # about fields of texts; where one of them lacks ids, none has any
    for side, name in [(each, name) for each in sides for name in getattr(shape, each)]:
        if side == "retrieved" and shape.searches:
            if isinstance(record.get(name), list | tuple):
                changed[name] = [_own_hop(hop, reading) for hop in record[name]]
            continue
        if name not in record or not _is_foreign(record[name], side, reading.id_from):
            continue
        notes = reading.notes if side == "retrieved" else reading.gold_notes
        notes = of_texts if name in shape.texts else notes
        try:
            changed[name] = converters[side](record[name], reading.id_from, notes)
        except InputError as error:
            raise InputError(f"{error.what} ({_named(record, shape)})", fix=error.fix) from None
    for name in [each for each in changed if each in shape.texts]:
        if not _compares_texts(record, shape, of_texts):
            break
        if any(isinstance(entry, dict) and "text" not in entry for entry in changed[name]):
            raise InputError(
                f"an entry of {name!r} has no text, and others are texts ({_named(record, shape)})",
                fix="give every entry a text, or every entry an id",
            )
        entries = changed[name]
        changed[name] = [entry["text"] if isinstance(entry, dict) else entry for entry in entries]
    return {**record, **changed} if changed else record


def _own_hop(hop: object, reading: ReadContext) -> object:
    """Return one of several searches, its results as ids or findwell's own entries."""
    if isinstance(hop, Mapping):
        shape = shape_of(hop, "run")
        return hop if shape is None else with_own_entries(hop, shape, ("retrieved",), reading)
    if isinstance(hop, list | tuple) and _is_foreign(hop, "retrieved", reading.id_from):
        return _own_units(hop, reading.id_from, reading.notes)
    return hop


def _named(record: Mapping[str, Any], shape: Shape) -> str:
    """Return what names the query of a record, for messages."""
    names = (*shape.query, *shape.question)
    query = next((record[name] for name in names if record.get(name) is not None), None)
    return "in a record without an id" if query is None else f"query {shorten(str(query))!r}"


def _compares_texts(record: Mapping[str, Any], shape: Shape, notes: EntryNotes) -> bool:
    """Tell whether texts serve as ids: objects have none, or are compared with bare texts."""
    others = (record.get(name) for name in shape.texts)
    listed = (entry for other in others if isinstance(other, list | tuple) for entry in other)
    return bool(notes.hashed) or any(isinstance(entry, str) for entry in listed)


def _is_foreign(value: object, side: str, id_from: str | None) -> bool:
    """Tell whether a field holds anything but ids and findwell's own entries."""
    if value is None or isinstance(value, str):
        return False
    if isinstance(value, list | tuple):
        return any(_is_foreign_entry(entry, side, id_from) for entry in value)
    return isinstance(value, Iterator) or _is_whole_answer(value) or is_result(value)


def _is_whole_answer(value: object) -> bool:
    """Tell whether this is an answer; that of a pipeline holds the answer of its component."""
    inner = isinstance(value, Mapping) and len(value) == 1 and all(map(is_answer, value.values()))
    return inner or is_answer(value)


def _is_foreign_entry(entry: object, side: str, id_from: str | None) -> bool:
    if isinstance(entry, str | int | None):
        return False
    if isinstance(entry, Mapping):
        unnamed = side == "gold" and "id" in entry and not {"doc", "docs"} & entry.keys()
        return unnamed or not is_own_entry(tuple(entry), id_from)
    if isinstance(entry, list | tuple):  # in gold labels it may be a group
        return side == "retrieved" or any(_is_foreign_entry(each, side, id_from) for each in entry)
    return not is_plain(entry)


def _own_units(value: object, id_from: str | None, notes: EntryNotes) -> list[Any]:
    if is_result(value) and not _is_whole_answer(value):
        what = f"what was retrieved is one {type_name(value)}, not a list"
        raise InputError(what, fix="give a list in rank order, even of one object")
    results, texts = results_of(value)
    return make_entries(results, id_from=id_from, notes=notes, texts=texts)


def _own_items(value: object, id_from: str | None, notes: EntryNotes) -> list[Any]:
    """Return gold items; a list among them is a group, but for a document with its score."""
    alone = is_result(value) and not _is_whole_answer(value)
    results, texts = ([value], False) if alone else results_of(value)
    return [_own_item(result, id_from, notes, texts=texts) for result in results]


def _own_item(result: object, id_from: str | None, notes: EntryNotes, *, texts: bool) -> object:
    if isinstance(result, list | tuple):
        if len(result) == 2 and is_number(result[1]) and is_result(result[0]):
            result = result[0]
        else:
            return [_own_item(each, id_from, notes, texts=texts) for each in result]
    if not texts and not _is_foreign_entry(result, "gold", id_from):
        return result
    (entry,) = make_entries([result], id_from=id_from, notes=notes, texts=texts)
    grade = _grade_of(result, None) if isinstance(result, Mapping) else None
    entry.pop("score", None)
    return entry if grade is None else {**entry, "grade": grade}


def _grade_of(entry: Mapping[str, Any], default: float | None) -> object:
    """Return the grade of an entry, under any name that a column of a table may have."""
    return next((entry[name] for name in GRADE_NAMES if name in entry), default)


# ---- one record, read with care


class Entry(NamedTuple):
    """What should be a record, its position from 1, and where it is."""

    value: object
    number: int
    where: Callable[[], str]  # finding the line costs a pass, so only messages ask
    cells: bool = False  # every value is a text, as in a CSV file


class DocEntry(NamedTuple):
    """What a retrieved or a gold entry says: an id and, where given, a text and its offsets."""

    doc: str
    number: float | None = None  # the score of what was retrieved, the grade of what is gold
    text: str | None = None
    start: int | None = None
    end: int | None = None
    source: str | None = None  # the document in which start and end count, if it is not doc
    hop: int | None = None  # which search found it, from 1, and how many searches there were
    calls: int | None = None
    weight: float | None = None  # how far a document of the gold supports its item, if told


class Parsed(NamedTuple):
    """A record, understood."""

    query: str
    units: list[DocEntry]
    items: list[list[DocEntry]]  # the places of an item are interchangeable
    about: dict[str, Any]
    named_by: NamedBy = "id"
    twice: tuple[str, ...] = ()  # fields that describe the query and occur twice
    rivals: tuple[tuple[str, str], ...] = ()  # fields that count, and others of the same meaning


def entries(values: Iterable[object], where: str, unit: str = "record") -> Iterator[Entry]:
    """Number records; without a unit, messages only say where they come from."""
    place = "{0}, {1} {2}" if unit else "{0}"
    for number, value in enumerate(values, start=1):
        yield Entry(value, number, functools.partial(place.format, where, unit, number))


def parse(entry: Entry, shape: Shape, sides: tuple[str, ...], reading: ReadContext) -> Parsed:
    """Read a record of a shape, with its texts if wanted."""
    record, texts = entry.value, reading.texts
    if not isinstance(record, Mapping):
        what = f"record {entry.number} is of type {type(record).__name__}, not an object"
        fix = 'write records such as {"query": "q1", "retrieved": ["d1"], "gold": ["d1"]}'
        raise InputError(what, fix=fix)
    try:
        record = with_own_entries(record, shape, sides, reading)
        fields = shape.native(record, cells=entry.cells, texts=texts)
    except InputError as error:
        raise InputError(f"record {entry.number}: {error.what}", fix=error.fix) from None
    if shape.separator:
        joined = [name for name in shape.texts if is_joined(record.get(name), shape.separator)]
        if any(shape.separator in record[name] for name in joined):
            reading.note(_cut(shape, tuple(joined)))
    named_by = name_of(fields, reading.names)
    query = {
        "id": lambda: identifier(fields["query"], ""),
        "question": lambda: one_line(whole_letters(fields["question"])),
        "position": lambda: str(entry.number),
    }[named_by]()
    refuse_repeated(record, f"in the record of query {query!r} the field", shape.main())
    rivals = shape.rivals([name for name, value in record.items() if value is not None])
    units: list[DocEntry] = []
    items: list[list[DocEntry]] = []
    for side in sides:
        if side not in fields:
            raise _no_field(record, getattr(shape, side), query)
    if "retrieved" in sides:
        entries = list(_in_order(fields["retrieved"], query))
        _converted(refuse_ranks, entries, query)
        units = [_unit(unit, query, texts=texts) for unit in entries]
        rivals += _rivals(fields["retrieved"], ("doc", "id"))
    if "gold" in sides:
        items = list(_items(fields["gold"], query, texts=texts))
        rivals += _rivals(fields["gold"], ("docs", "doc"))
    about = {
        whole_letters(str(key)): flat(value) for key, value in fields.items() if key not in SIDES
    }
    return Parsed(query, units, items, about, named_by, repeated(record), tuple(rivals))


def _cut(shape: Shape, names: tuple[str, ...]) -> Finding:
    return Finding(
        "cut-texts",
        1,
        tuple(sorted(names)),
        f"# record|records of {shape.name} has|have texts joined by {shape.separator!r}. They "
        "are cut there, and so is a text that contains it.",
        f"save them as JSON instead: then {shape.name} writes lists",
    )


def _rivals(entries: object, names: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the two names of ids if entries have both, with different values."""
    if not isinstance(entries, list | tuple):
        return []
    first, second = names
    objects = [one for one in entries if isinstance(one, MAPPINGS) and second in one]
    return [names] if any(first in one and one[first] != one[second] for one in objects) else []


def name_of(fields: Mapping[str, Any], first: NamedBy) -> NamedBy:
    """Return what names the query of a record: what is wanted, or else the next best."""
    question = fields.get("question")
    asks = isinstance(question, str) and bool(question.strip())
    if first == "position":
        return "position"
    if "query" in fields and not (asks and first == "question"):
        return "id"
    return "question" if asks else "position"


def one_line(question: str) -> str:
    """Return a question as the name of its query: without line breaks and double spaces."""
    return " ".join(question.split())


def _in_order(retrieved: object, query: str) -> Iterable[object]:
    """Refuse what has no order, or is not a list at all."""
    if retrieved is None:
        return ()
    labelled = hasattr(retrieved, "to_dict")  # as a series of pandas, whose index may be the ids
    if isinstance(retrieved, Iterable) and not (
        labelled or isinstance(retrieved, Mapping | set | frozenset | str | bytes)
    ):
        return retrieved
    what = f"what was retrieved for query {query!r} is of type {type_name(retrieved)}, not a list"
    fix = 'write a list in rank order, such as ["d1", "d2"] or [{"doc": "d1", "score": 0.9}]'
    raise InputError(what, fix=fix)


def _unit(entry: object, query: str, *, texts: bool) -> DocEntry:
    if not isinstance(entry, MAPPINGS):
        return DocEntry(_doc(entry, query))
    if repeated(entry):
        refuse_repeated(entry, f"in what was retrieved for query {query!r} the field", ENTRY_FIELDS)
    score = entry.get("score")
    number = None if score is None else _score(score, query)
    text = _text(entry, query)
    doc = entry.get("doc", entry.get("id", text if texts else None))
    if doc is None:
        what = f"a retrieved entry of query {query!r} has no doc, only {_keys(entry)}"
        fix = "give each retrieved entry the id of its document, or match texts (--by, by=)"
        raise InputError(what, fix=fix)
    searches = entry.get(HOP), entry.get(CALLS)
    return DocEntry(_doc(doc, query), number, text, *_offsets(entry, query), *searches)


def _items(gold: object, query: str, *, texts: bool) -> Iterator[list[DocEntry]]:
    """Go through the items of the gold field: ids, groups, or objects with a grade or a text."""
    if isinstance(gold, Mapping):
        refuse_repeated(gold, f"in the gold of query {query!r} the document")
        yield from (
            [DocEntry(_doc(doc, query), _converted(grade, value, query))]
            for doc, value in gold.items()
        )
        return
    for entry in [] if gold is None else _several(gold):
        if isinstance(entry, list | tuple) and list(map(type, entry)) == [str, int]:
            raise InputError(
                f"{entry!r} in the gold of query {query!r} may be two ids, or an id and its grade",
                fix=f'write {{"doc": {entry[0]!r}, "grade": {entry[1]}}}, or both ids as texts',
            )
        alternatives = [entry] if isinstance(entry, Mapping) else _several(entry)
        yield [place for each in alternatives for place in _gold_places(each, query, texts=texts)]


def _gold_places(entry: object, query: str, *, texts: bool) -> Iterator[DocEntry]:
    if not isinstance(entry, Mapping):
        if entry is not None:
            yield DocEntry(_doc(entry, query), 1.0)
        return
    refuse_repeated(entry, f"in the gold of query {query!r} the field", ENTRY_FIELDS)
    if entry.get("score") is not None and _grade_of(entry, None) is None:
        what = f"an entry in the gold of query {query!r} has a score, and no grade"
        fix = "call it grade if it says how relevant the document is; otherwise leave it out"
        raise InputError(what, fix=fix)
    number = _converted(grade, _grade_of(entry, 1), query)
    text = _text(entry, query)
    docs = entry.get("docs", entry.get("doc", text if texts or text is None else ""))
    if isinstance(docs, Mapping):
        for doc, support in docs.items():
            yield DocEntry(_doc(doc, query), number, weight=_support(support, query))
        return
    for doc in [] if docs is None else _several(docs):
        yield DocEntry(_doc(doc, query), number, text, *_offsets(entry, query))


def _support(value: object, query: str) -> float:
    """Return how far a document supports an item, from 0 to 1."""
    found = {False: 0.0, True: 1.0}.get(value) if isinstance(value, bool) else value
    if isinstance(found, int | float) and 0 <= found <= 1:
        return float(found)
    what = f"the support {str(value)[:40]!r} of query {query!r} is not a number from 0 to 1"
    raise InputError(what, fix="give 1 for full, 0.5 for partial and 0 for no support")


def _text(entry: Mapping[Any, Any], query: str) -> str | None:
    text = entry.get("text", entry.get("quote"))
    if text is None or isinstance(text, str):
        return text and whole_letters(text)
    raise InputError(
        f"a text of query {query!r} is of type {type(text).__name__}", fix="give texts as strings"
    )


def _offsets(entry: Mapping[Any, Any], query: str) -> tuple[int | None, int | None, str | None]:
    """Return where in its document an entry begins and ends, in characters, and that document."""
    start, end = entry.get("start"), entry.get("end")
    if start is None and end is None:
        return None, None, None
    if type(start) is not int or type(end) is not int or not 0 <= start <= end:
        what = f"{start!r} to {end!r} of query {query!r} is not a span of characters"
        raise InputError(what, fix="give start and end as whole numbers, 0 ≤ start ≤ end")
    source = entry.get("source")
    return start, end, None if source is None else _doc(source, query)


def _several(value: object) -> list[object]:
    """Return the elements of a list, tuple, set or array; anything else stands for itself."""
    if isinstance(value, Iterable) and not isinstance(value, Mapping | str | bytes):
        return list(value)
    return [value]


def _doc(value: object, query: str) -> str:
    """Return the id of a document; what a blank one means is decided later."""
    if not isinstance(value, str):
        return _converted(identifier, value, query)
    return value if value.isascii() else _converted(lambda _: whole_letters(value), value, query)


def _score(value: object, query: str) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        shown = digits(value) if isinstance(value, int) else str(value)
        what = f"the score {shown[:40]!r} of query {query!r} is not a number"
        fix = "give scores as numbers, or leave them out: the list is in rank order"
        raise InputError(what, fix=fix) from None


def _converted(convert: Callable[[object], T], value: object, query: str) -> T:
    """Convert a value; the error names the query."""
    try:
        return convert(value)
    except InputError as error:
        raise InputError(f"{error.what} (query {query!r})", fix=error.fix) from None


def _no_field(record: Mapping[Any, Any], names: tuple[str, ...], query: str) -> InputError:
    guesses = (nearest(str(key), [names[0]]) for key in record if "." not in str(key))
    return InputError(
        f"the record of query {query!r} has no field {' or '.join(map(repr, names))}, "
        f"only {_keys(record)}",
        fix=next(filter(None, guesses), "")
        or f"add {names[0]!r}; an empty list means that there is none",
    )


def twice(query: str, where: str = "") -> InputError:
    """Return the error for a query with two records."""
    what = f"query {query!r} has more than one record"
    return InputError(what, where=where, fix="keep one record per query")


def _keys(record: Mapping[Any, Any]) -> str:
    return shorten(", ".join(map(str, record)), 200) or "nothing"


# ---- many records


@dataclass(frozen=True, slots=True)
class RecordRows:
    """The rows that some of the records make."""

    run: pl.DataFrame
    gold: pl.DataFrame
    about: pl.DataFrame  # one row per query: its id and what describes it
    flaws: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class RecordScan:
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

    def repeated_query(self) -> str | None:
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
    """All parts of an input, ready to become a run, gold labels, or both."""

    parts: list[RecordRows]
    state: RecordScan
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


def find_shape(
    listed: Iterable[Entry], role: str, *, skip: bool = False, mapped: Fields = NO_FIELDS
) -> Shape:
    """Return the shape of the first record, or of the first that has one if others are skipped."""
    unknown: InputError | None = None
    if mapped:
        listed = list(islice(listed, FIRST_RECORDS))
        records = [entry.value for entry in listed if isinstance(entry.value, Mapping)]
        if records:
            require_fields(mapped, chain.from_iterable(records), listed[0].where())
    for entry in listed:
        if isinstance(entry.value, Mapping):
            shape = shape_of(entry.value, role, mapped)
            if shape is not None:
                return shape
            unknown = unknown or unknown_shape(entry.value, role, entry.where(), mapped)
        if not skip:
            break
    if unknown is not None:
        raise unknown
    # no records, or something else, which is reported where it is read
    return known_shapes()["findwell"]


def read_part(entries: Iterable[Entry], state: RecordScan) -> RecordRows:
    """Read records one by one."""
    understood: dict[str, Parsed] = {}
    replaced: list[str] = []
    known = state.known()
    for entry in entries:
        state.records = entry.number
        try:
            parsed = parse(entry, state.shape, ROLES[state.role], state.reading)
            if parsed.named_by == "question":
                parsed = parsed._replace(query=state.nth(parsed.query))
            if parsed.query in known:
                if not state.last_wins:
                    raise twice(parsed.query)
                replaced.append(parsed.query)
        except InputError as error:
            state.reading.meet(InputError(error.what, where=entry.where(), fix=error.fix))
            continue
        known.add(parsed.query)
        understood[parsed.query] = parsed
        if parsed.twice:
            message = "# record|records repeats|repeat a field; the last one counts."
            names = parsed.twice[:EXAMPLES]
            state.reading.note(Finding("repeated-field", 1, names, message, "keep one of them"))
        for chosen, other in parsed.rivals:
            note_rivals(state, chosen, other)
    state.findings += finding_about(
        "replaced-gold",
        replaced,
        "# query|queries has|have more than one gold; the last one counts.",
        "keep one reference per query",
    )
    return _part(list(understood.values()), state)


def _part(records: list[Parsed], state: RecordScan) -> RecordRows:
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


def _frame(rows: list[tuple[Any, ...]], schema: dict[str, Any], state: RecordScan) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=schema | TEXT | SEARCHES | WEIGHT, orient="row")
    frame = frame if schema is RUN and state.shape.searches else frame.drop(SEARCHES)
    frame = frame if frame["weight"].count() else frame.drop(WEIGHT)
    state.carry("retrieved" if schema is RUN else "gold", frame)
    return frame if state.reading.texts else frame.drop(TEXT)


def _table(about: list[dict[str, Any]]) -> pl.DataFrame:
    table = pl.DataFrame({"query": [entry["query"] for entry in about]}, {"query": pl.String})
    names = [name for name in dict.fromkeys(chain.from_iterable(about)) if name != "query"]
    columns = [describing(name, [entry.get(name) for entry in about]) for name in names]
    return table.with_columns(columns)


def first_look(state: RecordScan, first: Iterable[Entry], side: str) -> dict[str, Any]:
    """Tell by the first records what names their queries, and what one side carries next to ids."""
    values = (entry.value for entry in islice(first, FIRST_RECORDS))
    records = [value for value in values if isinstance(value, Mapping)]
    if not records:
        return {}
    fields = {name: records[0][field] for name, field in state.shape.pick(records[0]).items()}
    carries, reading = set(state.carries.get(side, ())), state.reading.afresh()
    for record in records:
        with contextlib.suppress(InputError):  # which is reported where the record is read
            own = with_own_entries(record, state.shape, (side,), reading)
            given = state.shape.native(own, texts=True).get(side)
            listed = given if isinstance(given, list | tuple) else ()
            for each in (each for each in listed if isinstance(each, Mapping)):
                carries |= {kind for key, kind in CARRIED.items() if each.get(key) is not None}
                if each.get("source") not in (None, each.get("doc")):
                    carries.add("chunks")
                reading.notes.keep_others(each)
    found = {"named_by": name_of(fields, state.reading.names), "carries": frozenset(carries)}
    return found | ({"others": lambda: reading.notes.others} if side == "retrieved" else {})


def texts_as_ids(state: RecordScan, listed: Iterable[Entry]) -> list[Finding]:
    """Report which fields of texts served as ids."""
    values = (entry.value for entry in listed)
    used = [_texts_used(record, state) for record in values if isinstance(record, Mapping)]
    count = sum(map(bool, used))
    names = tuple(dict.fromkeys(chain.from_iterable(used)))[:EXAMPLES]
    return [text_as_id(count, names)] if count else []


def _texts_used(record: Mapping[str, Any], state: RecordScan) -> list[str]:
    picked = state.shape.pick([key for key, value in record.items() if value is not None])
    sides = (picked.get(side, "") for side in ("retrieved", "gold"))
    used = [name for name in sides if name in state.shape.texts]
    if used:
        with contextlib.suppress(InputError):  # which is reported where the record is read
            role, reading = ROLES[state.role], state.reading.afresh()
            record = with_own_entries(record, state.shape, role, reading)
    return [name for name in used if not _holds_ids(record[name])]


def _holds_ids(value: object) -> bool:
    """Tell whether a field that may hold texts holds entries with ids."""
    listed = value if isinstance(value, list) else ()
    return any(isinstance(entry, Mapping) and "doc" in entry for entry in listed)


def note_rivals(state: RecordScan, chosen: str, other: str, count: int = 1) -> None:
    """Report that one field counts, and another one of the same meaning does not."""
    if count:
        what = "# record|records has|have another field of the same meaning"
        state.reading.note(two_names(count, chosen, (other,), what))
