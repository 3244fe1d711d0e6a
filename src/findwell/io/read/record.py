"""One record, read with care: its query, what was retrieved, what is gold, what describes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from findwell.core.errors import InputError, nearest
from findwell.core.findings import shorten
from findwell.io.read.object_fields import type_name
from findwell.io.read.object_records import ENTRY, with_own_entries
from findwell.io.read.shapes import CALLS, HOP, ROLES
from findwell.io.read.values import (
    digits,
    grade,
    identifier,
    refuse_repeated,
    repeated,
    whole_letters,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.core.data import NamedBy
    from findwell.io.read.reading import ReadContext
    from findwell.io.read.shapes import Shape

T = TypeVar("T")
SIDES = ("query", "retrieved", "gold")  # every other field describes the query


@dataclass(frozen=True, slots=True)
class Entry:
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
        yield Entry(value, number, partial(place.format, where, unit, number))


def parse(entry: Entry, shape: Shape, role: str, reading: ReadContext) -> Parsed:
    """Read a record of a shape, with its texts if wanted; errors say where the record is."""
    try:
        return _parse(entry, shape, ROLES[role], reading)
    except InputError as error:
        raise InputError(error.what, where=entry.where(), fix=error.fix) from None


def _parse(entry: Entry, shape: Shape, sides: tuple[str, ...], reading: ReadContext) -> Parsed:
    record, texts = entry.value, reading.texts
    if not isinstance(record, Mapping):
        raise InputError(
            f"record {entry.number} is a {type(record).__name__}, not an object",
            fix='write records such as {"query": "q1", "retrieved": ["d1"], "gold": ["d1"]}',
        )
    try:
        record = with_own_entries(record, shape, sides, reading)
        fields = shape.native(record, cells=entry.cells, texts=texts)
    except InputError as error:
        raise InputError(f"record {entry.number}: {error.what}", fix=error.fix) from None
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
        entries = _in_order(fields["retrieved"], query)
        units = [_unit(unit, query, texts=texts) for unit in entries]
        rivals += _rivals(fields["retrieved"], ("doc", "id"))
    if "gold" in sides:
        items = list(_items(fields["gold"], query, texts=texts))
        rivals += _rivals(fields["gold"], ("docs", "doc"))
    about = {
        whole_letters(str(key)): flat(value) for key, value in fields.items() if key not in SIDES
    }
    return Parsed(query, units, items, about, named_by, repeated(record), tuple(rivals))


def _rivals(entries: object, names: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the two names of ids if entries have both, with different values."""
    if not isinstance(entries, list | tuple):
        return []
    objects = (entry for entry in entries if isinstance(entry, Mapping))
    first, second = names
    differ = any(first in one and second in one and one[first] != one[second] for one in objects)
    return [names] if differ else []


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
    """Refuse what has no order, or is no list at all."""
    if retrieved is None:
        return ()
    if isinstance(retrieved, Iterable) and not isinstance(
        retrieved, Mapping | set | frozenset | str | bytes
    ):
        return retrieved
    raise InputError(
        f"what was retrieved for query {query!r} is a {type_name(retrieved)}, not a list",
        fix='write a list in rank order, such as ["d1", "d2"] or [{"doc": "d1", "score": 0.9}]',
    )


def _unit(entry: object, query: str, *, texts: bool) -> DocEntry:
    if not isinstance(entry, Mapping):
        return DocEntry(_doc(entry, query))
    refuse_repeated(entry, f"in what was retrieved for query {query!r} the field", ENTRY)
    score = entry.get("score")
    number = None if score is None else _score(score, query)
    text = _text(entry, query)
    doc = entry.get("doc", entry.get("id", text if texts else None))
    if doc is None:
        raise InputError(
            f"a retrieved entry of query {query!r} has no doc, only {_keys(entry)}",
            fix="give each retrieved entry the id of its document, or match texts (--by, by=)",
        )
    searches = entry.get(HOP), entry.get(CALLS)
    return DocEntry(_doc(doc, query), number, text, *_offsets(entry, query), *searches)


def _items(gold: object, query: str, *, texts: bool) -> Iterator[list[DocEntry]]:
    """Go through the items of a gold field: ids, groups, or objects with a grade or a text."""
    if isinstance(gold, Mapping):
        refuse_repeated(gold, f"in the gold of query {query!r} the document")
        yield from (
            [DocEntry(_doc(doc, query), _converted(grade, value, query))]
            for doc, value in gold.items()
        )
        return
    for entry in [] if gold is None else _several(gold):
        alternatives = [entry] if isinstance(entry, Mapping) else _several(entry)
        yield [place for each in alternatives for place in _gold_places(each, query, texts=texts)]


def _gold_places(entry: object, query: str, *, texts: bool) -> Iterator[DocEntry]:
    if not isinstance(entry, Mapping):
        if entry is not None:
            yield DocEntry(_doc(entry, query), 1.0)
        return
    refuse_repeated(entry, f"in the gold of query {query!r} the field", ENTRY)
    number = _converted(grade, entry.get("grade", 1), query)
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
    raise InputError(
        f"the support {str(value)[:40]!r} of query {query!r} is not a number from 0 to 1",
        fix="give 1 for full, 0.5 for partial and 0 for no support",
    )


def _text(entry: Mapping[Any, Any], query: str) -> str | None:
    text = entry.get("text", entry.get("quote"))
    if text is None or isinstance(text, str):
        return text and whole_letters(text)
    raise InputError(
        f"a text of query {query!r} is a {type(text).__name__}", fix="give texts as strings"
    )


def _offsets(entry: Mapping[Any, Any], query: str) -> tuple[int | None, int | None, str | None]:
    """Return where in its document an entry begins and ends, in characters, and that document."""
    start, end = entry.get("start"), entry.get("end")
    if start is None and end is None:
        return None, None, None
    if type(start) is not int or type(end) is not int or not 0 <= start <= end:
        raise InputError(
            f"{start!r} to {end!r} of query {query!r} is not a span of characters",
            fix="give start and end as whole numbers, 0 ≤ start ≤ end",
        )
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
    return value if value.isascii() else _converted(_letters, value, query)


def _letters(value: object) -> str:
    return whole_letters(str(value))


def _score(value: object, query: str) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        shown = digits(value) if isinstance(value, int) else str(value)
        raise InputError(
            f"the score {shown[:40]!r} of query {query!r} is not a number",
            fix="give scores as numbers, or leave them out: the list is in rank order",
        ) from None


def _converted(convert: Callable[[object], T], value: object, query: str) -> T:
    """Convert a value; the error names the query."""
    try:
        return convert(value)
    except InputError as error:
        raise InputError(f"{error.what} (query {query!r})", fix=error.fix) from None


def _no_field(record: Mapping[Any, Any], names: tuple[str, ...], query: str) -> InputError:
    guesses = (nearest(str(key), [names[0]]) for key in record)
    return InputError(
        f"the record of query {query!r} has no field {' or '.join(map(repr, names))}, "
        f"only {_keys(record)}",
        fix=next(filter(None, guesses), "")
        or f"add {names[0]!r}; an empty list means that there is none",
    )


def twice(query: str, where: str) -> InputError:
    """Return the error for a query with two records."""
    return InputError(
        f"query {query!r} has more than one record", where=where, fix="keep one record per query"
    )


def _keys(record: Mapping[Any, Any]) -> str:
    return shorten(", ".join(map(str, record)), 200) or "nothing"


def flat(value: Any) -> Any:  # noqa: ANN401
    """Return a list or an object as JSON; anything else stays."""
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    if isinstance(value, Mapping | list | tuple):
        value = json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, str):
        return whole_letters(value)
    too_long = isinstance(value, int) and not -(2**63) <= value < 2**63
    return digits(value) if too_long else value
