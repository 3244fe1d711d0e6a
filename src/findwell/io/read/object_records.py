"""Objects of retrieval frameworks inside records: each becomes one of findwell's own entries.

Ids and findwell's own entries stay as they are, and a record that holds nothing else is not copied.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError
from findwell.core.findings import shorten
from findwell.io.read.object_answers import is_answer, results_of
from findwell.io.read.object_fields import is_number, is_plain, is_result, type_name
from findwell.io.read.object_sources import TEXT_NAMES
from findwell.io.read.objects import METADATA_NAMES, EntryNotes, make_entries
from findwell.io.read.shapes import HopShape, NuggetShape, ReferenceShape, shape_of

if TYPE_CHECKING:
    from findwell.io.read.reading import ReadContext
    from findwell.io.read.shapes import Shape

# the fields of findwell's own entries
ENTRY = ("doc", "docs", "id", "score", "grade", "text", "quote", "start", "end", "source")
OWN_FIELDS = frozenset(ENTRY)
OWN_TEXTS = {"text", "quote"}


@functools.lru_cache(maxsize=256)
def is_own_entry(names: tuple[str, ...], id_from: str | None) -> bool:
    """Tell whether an entry with these fields is findwell's own.

    >>> is_own_entry(("doc", "rank"), None), is_own_entry(("id", "text"), None)
    (True, True)
    >>> is_own_entry(("id", "content"), None), is_own_entry(("doc", "content"), None)
    (False, False)
    """
    given = set(names)
    if id_from is not None and given.intersection(METADATA_NAMES):
        return False
    if not given & OWN_TEXTS and given.intersection(TEXT_NAMES):
        return False
    return bool(given & {"doc", "docs"}) or given <= OWN_FIELDS


def with_own_entries(
    record: Mapping[str, Any], shape: Shape, sides: tuple[str, ...], reading: ReadContext
) -> Mapping[str, Any]:
    """Return a record whose entries, retrieved or gold, are ids or findwell's own."""
    if isinstance(shape, NuggetShape | ReferenceShape):  # labels and places, not documents
        return record
    converters = {"retrieved": _units, "gold": _items}
    changed = {}
    for side, name in [(each, name) for each in sides for name in getattr(shape, each)]:
        if side == "retrieved" and isinstance(shape, HopShape):
            if isinstance(record.get(name), list | tuple):
                changed[name] = [_own_hop(hop, reading) for hop in record[name]]
            continue
        if name not in record or not _is_foreign(record[name], side, reading.id_from):
            continue
        notes = EntryNotes() if name in shape.texts else reading.notes
        try:
            found = converters[side](record[name], reading.id_from, notes)
        except InputError as error:
            raise InputError(f"{error.what} ({_named(record, shape)})", fix=error.fix) from None
        if name in shape.texts and _compares_texts(record, shape, notes):
            if any(isinstance(entry, dict) and "text" not in entry for entry in found):
                raise InputError(
                    f"an entry of {name!r} has no text, and others are texts "
                    f"({_named(record, shape)})",
                    fix="give every entry a text, or every entry an id",
                )
            found = [entry["text"] if isinstance(entry, dict) else entry for entry in found]
        changed[name] = found
    return {**record, **changed} if changed else record


def _own_hop(hop: object, reading: ReadContext) -> object:
    """Return one of several searches, its results as ids or findwell's own entries."""
    if isinstance(hop, Mapping):
        shape = shape_of(hop, "run")
        return hop if shape is None else with_own_entries(hop, shape, ("retrieved",), reading)
    if isinstance(hop, list | tuple) and _is_foreign(hop, "retrieved", reading.id_from):
        return _units(hop, reading.id_from, reading.notes)
    return hop


def holds_entries(value: object) -> bool:
    """Tell whether a field that may hold texts holds entries with ids."""
    return isinstance(value, list) and any(
        isinstance(entry, Mapping) and "doc" in entry for entry in value
    )


def _named(record: Mapping[str, Any], shape: Shape) -> str:
    """Return what names the query of a record, for messages."""
    names = (*shape.query, *shape.question)
    query = next((record[name] for name in names if record.get(name) is not None), None)
    return "in a record without an id" if query is None else f"query {shorten(str(query))!r}"


def _compares_texts(record: Mapping[str, Any], shape: Shape, notes: EntryNotes) -> bool:
    """Tell whether texts serve as ids: objects have none, or are held against bare texts."""
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
    if isinstance(entry, list | tuple):  # in a gold it may be a group
        return side == "retrieved" or any(_is_foreign_entry(each, side, id_from) for each in entry)
    return not is_plain(entry)


def _units(value: object, id_from: str | None, notes: EntryNotes) -> list[Any]:
    if is_result(value) and not _is_whole_answer(value):
        raise InputError(
            f"what was retrieved is one {type_name(value)}, not a list",
            fix="give a list in rank order, even of one object",
        )
    results, texts = results_of(value)
    return make_entries(results, id_from=id_from, notes=notes, texts=texts)


def _items(value: object, id_from: str | None, notes: EntryNotes) -> list[Any]:
    """Return gold items; a list among them is a group, but for a document with its score."""
    alone = is_result(value) and not _is_whole_answer(value)
    results, texts = ([value], False) if alone else results_of(value)
    return [_item(result, id_from, notes, texts=texts) for result in results]


def _item(result: object, id_from: str | None, notes: EntryNotes, *, texts: bool) -> object:
    if isinstance(result, list | tuple):
        if len(result) == 2 and is_number(result[1]) and is_result(result[0]):
            result = result[0]
        else:
            return [_item(each, id_from, notes, texts=texts) for each in result]
    if not texts and not _is_foreign_entry(result, "gold", id_from):
        return result
    (entry,) = make_entries([result], id_from=id_from, notes=notes, texts=texts)
    grade = result.get("grade") if isinstance(result, Mapping) else None
    entry.pop("score", None)
    return entry if grade is None else {**entry, "grade": grade}
