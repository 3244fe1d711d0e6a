"""Lists of results of one class, as frameworks give them, read field by field.

That is as fast as asking each result for its fields can be. Only what is plain is read so, by the
rules of `objects.make_entries`; whatever is not is doubted, and read one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, filterfalse, islice, pairwise, repeat, takewhile
from operator import itemgetter
from types import NoneType, SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from findwell.core.frames import pl
from findwell.core.timing import timed
from findwell.io.read.format import LOOKED
from findwell.io.read.objects import (
    ABSENT,
    ANY_RECORD,
    PLACES,
    chunk_names,
    find_source,
    is_list,
    is_plain,
    known_sources,
    only_rise,
    place_id,
    place_of,
    span_of,
)
from findwell.io.read.records import GOLD, RUN, TEXT, RecordRows, is_own_entry
from findwell.io.read.shapes import CALLS, HOP
from findwell.io.read.vocabulary import (
    END_NAMES,
    ID_NAMES,
    METADATA_NAMES,
    SOURCE_NAMES,
    START_NAMES,
    TEXT_NAMES,
    tools,
)

if TYPE_CHECKING:
    from findwell.io.read.format import EntryNotes
    from findwell.io.read.objects import ObjectSource
    from findwell.io.read.records import Entry, RecordScan
    from findwell.io.read.vocabulary import Direction

# how classes look up a name that ask nothing else
PLAIN_ACCESS: tuple[Any, ...] = (object.__getattribute__, SimpleNamespace.__getattribute__)
# fields of findwell's own entries that are read one by one
ODD_FIELDS = frozenset({"rank", "quote", "start", "end", HOP, CALLS})


class DoubtError(Exception):
    """Something needs care."""


def doubt_if(condition: object) -> None:
    """Leave what is read in bulk to the code that reads one by one, with care."""
    if condition:
        raise DoubtError


def doubt_types(values: Iterable[object] | None, *known: type) -> None:
    """Doubt values, if there are any, of other types than these."""
    doubt_if(not {*known}.issuperset(map(type, values or ())))


def doubt_halves(*columns: Iterable[str | None] | None) -> None:
    """Doubt texts that hold half of a character, which `whole_letters` refuses."""
    for column in columns:
        try:
            "".join(filterfalse(str.isascii, filter(None, column or ()))).encode()
        except UnicodeEncodeError:
            raise DoubtError from None


def _lacks(column: Iterable[object] | None) -> bool:
    """Tell whether a column has no value in some rows."""
    return NoneType in map(type, column or ())


class Alike:
    """Values of one class: what `look_up` and `first_named` return for all of them."""

    def __init__(self, values: Sequence[Any]) -> None:
        """Note the names under which any of them may hold something."""
        self.kind: Any = type(values[0])
        doubt_types(values, self.kind)
        self.values = self._vars = values
        self._columns: dict[str, tuple[list[Any], set[type]]] = {}
        self._inner: dict[str, Alike] = {}
        if self.kind is not dict:
            kind: Any = self.kind
            place = place_of(kind, "")
            doubt_if(place not in {"own", "attribute"} or is_plain(values[0]))
            # such a class may hold something under any name
            doubt_if(place == "attribute" and hasattr(self.kind, "__getattr__"))
            doubt_if(self.kind.__getattribute__ not in PLAIN_ACCESS)
            has_vars = hasattr(values[0], "__dict__")
            self._vars = list(map(vars, values)) if has_vars else [{}] * len(values)
        private = getattr(self.kind, "__private_attributes__", ())  # of a model of pydantic
        own = () if self.kind is dict else (*dir(self.kind), *private)
        self.names = set(own).union(*self._vars)

    def _column(self, name: str) -> tuple[list[Any], set[type]]:
        """Return what each holds under a name, or ABSENT, and the types of that."""
        if name not in self._columns:
            try:
                if self.kind is not dict and hasattr(self.kind, name):
                    found = [getattr(each, name, ABSENT) for each in self.values]
                else:
                    found = list(map(itemgetter(name), self._vars))
            except KeyError:
                found = [each.get(name, ABSENT) for each in self._vars]
            except Exception:  # noqa: BLE001 - a property of a framework that cannot be asked
                raise DoubtError from None
            types = set(map(type, found))
            doubt_if(any("__call__" in dir(each) for each in types))  # a method is not a field
            self._columns[name] = found, types
        return self._columns[name]

    def get(self, path: str) -> list[Any] | None:
        """Return what stands under a dotted path in each; None if nothing does in any."""
        if path not in self.names:
            head, _, rest = path.partition(".")
            inner = self.get(head) if rest else None
            if inner is None:
                return None
            if head not in self._inner:
                self._inner[head] = Alike(inner)
            return self._inner[head].get(rest)
        found, types = self._column(path)
        if object in types:  # of which ABSENT is
            doubt_if("." in path)
            found = [None if each is ABSENT else each for each in found]
            types = set(map(type, found))
        return None if types == {NoneType} else found

    def first(self, paths: Iterable[str], found: list[Any] | None = None) -> list[Any] | None:
        """Return what was found, and where that is None what stands under the first of paths."""
        for path in paths:
            if "." not in path and path not in self.names:
                continue
            if found is None:
                found = self.get(path)
            elif _lacks(found) and (more := self.get(path)) is not None:
                both = zip(found, more, strict=True)
                found = [other if one is None else one for one, other in both]
        return found


class AlikeLists(Alike):
    """Results of one class, of several lists: the columns of what `make_entries` makes of them."""

    def __init__(self, results: Sequence[Any], id_from: str | None) -> None:
        """Read what the fields of the others depend on."""
        self.id_from, self.numbers = id_from, None
        if {tuple}.issuperset(map(type, results)):  # of a document and its score
            doubt_if(set(map(len, results)) != {2} or is_list(results[0][0]))
            results, self.numbers = ([each[at] for each in results] for at in (0, 1))
            doubt_types(self.numbers, int, float)
        super().__init__(results)
        doubt_if(id_from == "" or (self.kind is dict and self.names & {"rank", "doc"}))
        self.source = source = self._source()
        self.own = self.first((source.metadata,) if source.metadata else METADATA_NAMES)
        doubt_types(self.own, dict, NoneType)
        self.inside = inside = Alike([each or {} for each in self.own] if self.own else [{}])
        self.text = self.first(source.text) if source.text else inside.first(TEXT_NAMES)
        self.text = self.text if source.metadata else self.first(TEXT_NAMES, self.text)
        self.origin = inside.first(SOURCE_NAMES, self.first(source.source))
        doubt_types(self.text, str, NoneType)
        doubt_types(self.origin, str, NoneType)
        self.start, self.end = self._spans()

    def _source(self) -> ObjectSource:
        """Return the source that `find_source` finds for each of them."""
        source = find_source(self.values[0])
        if source is None or any(object in self._column(name)[1] for name in source.needs):
            raise DoubtError
        if self.kind is dict or source is ANY_RECORD:  # of objects the last source is tried first
            for other in takewhile(lambda each: each is not source, known_sources().values()):
                heads = {path.partition(".")[0] for path in other.needs}
                doubt_if(heads and heads <= self.names)
        if source is ANY_RECORD:
            named = self.first((*ID_NAMES, *TEXT_NAMES))
            doubt_if(named is None or _lacks(named))
            answers = {path.partition(".")[0] for path in ("body", *tools()["responses"])}
            doubt_if(answers & self.names)  # each may hold results of its own
        return source

    def _spans(self) -> tuple[list[Any] | None, list[Any] | None]:
        """Return where each begins and ends; None where no place is known at all."""
        start, end = self.first(self.source.start), self.first(self.source.end)
        doubt_if(_lacks(start))
        if start is None:
            start, end = self.inside.first(START_NAMES), self.inside.first(END_NAMES)
        spans = list(map(span_of, start or (), end or repeat(None), self.text or repeat(None)))
        start, end = ([span[at] for span in spans] for at in (0, 1))
        return (None, None) if {NoneType}.issuperset(map(type, start)) else (start, end)

    def _scores(self) -> tuple[list[float] | None, Direction]:
        """Return the scores, or the numbers next to the results, and which are better."""
        found: list[Any] | None = None
        better: Direction = "higher"
        for path, direction in self.source.score:
            if found is None and (found := self.get(path)) is not None:
                better = direction
        doubt_types(found, int, float)
        if self.numbers is not None:
            found, better = self.numbers, "metric"
        sign = -1.0 if better == "lower" else 1.0
        return found and [sign * each for each in found], better

    def _ids(self) -> tuple[list[str], str]:
        """Return the ids, and where they are from; "" if they are the own ids of the results."""
        id_from, inside = self.id_from, self.inside
        found = self.get(id_from) if id_from else self.first(self.source.doc or ID_NAMES)
        namer, name = id_from or "", ""
        if found is None and id_from:
            head, _, rest = id_from.partition(".")
            found = inside.get(rest) if head == "metadata" and rest else None
        elif found is None:
            doubt_if(self.source.own_name or _lacks(self.start))
            names = chunk_names(placed=self.start is not None)
            name = next((name for name in names if inside.get(name) is not None), "")
            if name:
                found, namer = inside.get(name), f"metadata.{name}"
            elif self.start and self.origin and all(self.origin):
                found, namer = list(map(place_id, self.origin, self.start)), PLACES
        doubt_if(found is None)
        doubt_types(found, str, int, UUID)
        docs = list(map(str, found or ()))
        if name and self.origin:  # which may count the chunks of each document
            one = dict(zip(docs, self.origin, strict=True))
            doubt_if(list(map(one.__getitem__, docs)) != self.origin)
        return docs, namer

    def columns(self, sizes: Iterable[int], notes: EntryNotes) -> dict[str, list[Any] | None]:
        """Return the columns of lists of these sizes; only now something is noted."""
        score, better = self._scores()
        doc, namer = self._ids()
        doubt_halves(doc, self.text, self.origin)
        origin = self.origin and [each or None for each in self.origin]
        if not namer:
            known = zip(origin or repeat(None), self.own or repeat(None), strict=False)
            looked = self.values[: max(LOOKED - notes.looked, 0)]
            for each, (where, more) in zip(looked, known, strict=False):
                fields = each if self.kind is dict else {"source": where}
                notes.keep_others({**fields, "metadata": more or {}})
        elif namer == PLACES:
            notes.placed += len(doc)
        elif not self.id_from:
            notes.fields.setdefault(namer.removeprefix("metadata."), []).extend(doc)
        chunks = zip(doc, self.text or repeat(None), self.start or repeat(None), strict=False)
        for first, last in pairwise(accumulate(sizes, initial=0)):
            if namer:
                notes.note_shared(islice(chunks, last - first), namer)
            if score and better == "metric" and only_rise(score[first:last]):
                score[first:last] = [-each for each in score[first:last]]
        found = {"doc": doc, "score": score, "text": self.text, "start": self.start}
        if self.start and origin:  # unless it is a document, or known by it
            both = zip(origin, self.start, doc, strict=True)
            where = [None if at is None or one == other else one for one, at, other in both]
            found["source"] = where if any(where) else None
        return found | {"end": self.end}


def alike_part(listed: list[Entry], state: RecordScan) -> RecordRows | None:
    """Return what lists of results of one class make, or None if they need care."""
    records: Any = [each.value for each in listed]
    reading, kept = state.reading, RUN | (TEXT if state.reading.texts else {})
    if state.role != "run" or state.shape.name != "findwell" or reading.names == "position":
        return None
    try:
        doubt_if(reading.fields)
        doubt_types(records, dict)
        doubt_if(any(each.keys() != {"query", "retrieved"} for each in records))
        names = [each["query"] for each in records]
        doubt_types(names, str, int)
        query = pl.Series("query", list(map(str, names)), dtype=pl.String)
        doubt_if(query.n_unique() < len(query) or not all(map(str.strip, query)))
        lists = [each["retrieved"] for each in records]
        doubt_types(lists, list, tuple)
        results, sizes = list(chain.from_iterable(lists)), np.fromiter(map(len, lists), np.int64)
        doubt_if(not results)
        columns = _own_columns(results, reading.id_from)
        if not columns:
            columns = AlikeLists(results, reading.id_from).columns(sizes.tolist(), reading.notes)
    except (DoubtError, OverflowError, ValueError):
        return None
    carried = {"texts": "text", "places": "start", "chunks": "source"}
    carries = (kind for kind, name in carried.items() if columns.get(name) is not None)
    state.carries["retrieved"] = frozenset(carries)
    rows = pl.DataFrame({name: columns.get(name) for name in kept}, kept)
    if not sizes.all():  # an empty list is a row without a document
        full = pl.Series(np.repeat(sizes > 0, np.maximum(sizes, 1)))
        rows = rows.select(pl.all().gather((full.cum_sum() - 1).set(~full, None)))
    where = np.repeat(np.arange(len(query)), np.maximum(sizes, 1))
    rows = rows.with_columns(query=query.gather(where))
    state.pending.append(query)
    about = query.to_frame()
    gold = pl.DataFrame(schema=GOLD | kept)
    return RecordRows(rows, gold, about if reading.about else timed(about))


def _own_columns(entries: list[Any], id_from: str | None) -> dict[str, Any]:
    """Return the columns of findwell's own entries; nothing if none is one."""
    if not {dict}.issuperset(map(type, entries)):
        return {}
    own = [is_own_entry(names, id_from) for names in set(map(tuple, entries))]
    if not any(own):
        return {}
    given = Alike(entries)
    ids = given.names & {"doc", "id"}
    doubt_if(not all(own) or len(ids) != 1 or given.names & ODD_FIELDS)
    doc, score, text = (given.get(name) for name in (*ids, "score", "text"))
    doubt_if(doc is None)
    doubt_types(doc, str, int)
    doubt_types(text, str, NoneType)
    doubt_types(score, int, float, NoneType)
    doubt_halves(doc, text)
    score = score and [None if each is None else float(each) for each in score]
    return {"doc": list(map(str, doc or ())), "score": score, "text": text}
