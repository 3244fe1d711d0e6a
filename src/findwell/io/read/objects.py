"""Results as retrieval frameworks, engines and databases give them: objects, dicts and tuples.

`entries_of` turns an answer to one query into findwell's own entries, in the order of the list,
which is the rank. Scores never change the order; where a low one is the better, its sign is turned,
so that a higher score is always the better one. Which fields hold what is declared in
`findwell.io.read.object_sources`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

from findwell.core.errors import InputError
from findwell.core.findings import EXAMPLES, Finding, FindingKind, shorten
from findwell.io.read.object_answers import results_of
from findwell.io.read.object_fields import (
    ABSENT,
    by_key,
    field_names,
    find_source,
    first_named,
    first_of,
    get_field,
    is_list,
    is_number,
    is_plain,
    is_row,
    look_up,
    not_readable,
)
from findwell.io.read.object_sources import (
    END_NAMES,
    ID_NAMES,
    OBJECT_SOURCES,
    SOURCE_NAMES,
    START_NAMES,
    TEXT_NAMES,
)
from findwell.io.read.values import text_id

if TYPE_CHECKING:
    from findwell.io.read.object_sources import Direction, ObjectSource

ENTRY_FIELDS = frozenset({"doc", "text", "score", "start", "end", "source", "metadata"})
METADATA_NAMES = ("metadata", "meta", "payload", "fields")


@dataclass(slots=True)
class EntryNotes:
    """Where ids came from that the results themselves lacked; for the findings."""

    hashed: list[str] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    shared: dict[str, list[str]] = field(default_factory=dict)  # by field: ids of several chunks
    placed: int = 0  # ids that are places

    def findings(self) -> list[Finding]:
        """Return what should be known about the ids."""
        found = [
            Finding(
                "id-from-metadata",
                len(ids),
                tuple(ids[:EXAMPLES]),
                f"object without an id of its own: metadata.{name} serves as its id",
                f"if that is right, say so: --id-from metadata.{name} (id_from=)",
            )
            for name, ids in self.fields.items()
        ]
        found += [
            Finding(
                FindingKind.SHARED_ID,
                len(ids),
                tuple(dict.fromkeys(ids))[:EXAMPLES],
                f"chunk with the same id as a different chunk of its list, from {name}: chunks of "
                "one document count as one",
                "if the gold labels whole documents, this is right; otherwise name a field that "
                "differs for each chunk (--id-from, id_from=)",
            )
            for name, ids in self.shared.items()
        ]
        if self.hashed:
            found.append(
                Finding(
                    FindingKind.TEXT_AS_ID,
                    len(self.hashed),
                    tuple(self.hashed[:EXAMPLES]),
                    "object without an id: a hash of its text serves as one, so only "
                    "objects with equal texts match",
                    "give each chunk an id of its own, or name the field that holds one "
                    "(--id-from, id_from=); or match texts (--by rouge)",
                )
            )
        return found

    def note_shared(self, entries: Sequence[Mapping[str, Any]], name: str) -> None:
        """Remember the ids that a field gives to several different chunks of one list."""
        first: dict[str, tuple[Any, Any]] = {}
        for entry in entries:
            chunk = entry.get("text"), entry.get("start")
            if first.setdefault(entry["doc"], chunk) != chunk:
                self.shared.setdefault(name, []).append(entry["doc"])


def entries_of(
    answer: object, *, id_from: str | None = None, notes: EntryNotes | None = None
) -> list[dict[str, Any]]:
    """Return what a retriever answered to one query as entries in rank order.

    An entry has a `doc`, and where known `text`, `score`, `start`, `end`, `source` (the document
    that the chunk was cut from) and `metadata`. `id_from` names the field that holds the id, such
    as `metadata.chunk`; without it the id is the result's own, one in its metadata, its place as
    `source:start`, or else a hash of its text, and `notes` remembers which.

    >>> document = {"page_content": "It lasts.", "metadata": {"source": "a.md", "start_index": 7}}
    >>> entries_of([document])  # doctest: +NORMALIZE_WHITESPACE
    [{'doc': 'a.md:7', 'text': 'It lasts.', 'source': 'a.md', 'start': 7, 'end': 16,
      'metadata': {'source': 'a.md', 'start_index': 7}}]
    >>> entries_of([("d1", 0.25), ("d2", 0.5)])
    [{'doc': 'd1', 'score': -0.25}, {'doc': 'd2', 'score': -0.5}]
    """
    notes = EntryNotes() if notes is None else notes
    results, texts = results_of(answer)
    return make_entries(results, id_from=id_from, notes=notes, texts=texts)


def make_entries(
    results: Iterable[object], *, id_from: str | None, notes: EntryNotes, texts: bool = False
) -> list[dict[str, Any]]:
    """Return results one by one as entries; with `texts` a string is a text and not an id."""
    results = list(results)
    if not texts and all(type(result) is str for result in results):
        return [{"doc": doc} for doc in results]
    fields, placed = {name: len(ids) for name, ids in notes.fields.items()}, notes.placed
    made = [_entry(result, id_from, notes, texts=texts) for result in results]
    _turn_distances(made)
    entries = [entry for entry, _ in made]
    used = [name for name, ids in notes.fields.items() if len(ids) > fields.get(name, 0)]
    if id_from is not None or used:
        notes.note_shared(entries, id_from or f"metadata.{used[0]}")
    elif notes.placed > placed:  # chunks of several sizes may begin at one place
        notes.note_shared(entries, "source and start")
    return entries


def _entry(
    result: object, id_from: str | None, notes: EntryNotes, *, texts: bool
) -> tuple[dict[str, Any], Direction]:
    result, beside = _take_apart(result)
    direction: Direction = "metric"
    if id_from is None and _is_entry(result):
        entry, direction = dict(result), "higher"  # type: ignore[call-overload]
    elif is_plain(result):
        entry = _plain_entry(result, notes, texts=texts)
    else:
        source = find_source(result)
        if source is None:  # or is it a row whose columns are no attributes?
            result = by_key(result)
            source = find_source(result)
        if source is None and id_from is not None and look_up(result, id_from) is not None:
            source = OBJECT_SOURCES["record"]
        if source is None:
            raise not_readable(result)
        entry, direction = _read(result, source, id_from, notes)
    if beside is not None:
        entry, direction = {**entry, "score": float(beside)}, "metric"
    return entry, direction


def _is_entry(result: object) -> bool:
    """Tell whether this is what `entries_of` returns."""
    return (
        type(result) is dict
        and type(result.get("doc")) is str
        and result.keys() <= ENTRY_FIELDS
        and None not in result.values()
    )


def _plain_entry(result: object, notes: EntryNotes, *, texts: bool) -> dict[str, Any]:
    if texts and isinstance(result, str):
        return {"doc": _hashed(result, notes), "text": result}
    return {"doc": id_text(result)}


def _take_apart(result: object) -> tuple[object, Any]:
    """Return a result and the number beside it: (document, score) or (id, text, score)."""
    if not isinstance(result, list | tuple) or is_row(result):
        return result, None
    *front, last = result or (None,)
    if is_number(last):
        ids = type(last) is int and type(front[0]) is int  # or two of them
        if len(front) == 1 and not is_list(front[0]) and not ids:
            return front[0], last
        if len(front) == 2 and is_plain(front[0]) and isinstance(front[1], str):
            return {"id": front[0], "text": front[1]}, last
    raise InputError(
        f"{shorten(repr(result), 80)} is not an id, and no document with its score",
        fix="give (document, score) or (id, text, score), or rows as dicts with named columns",
    )


def _read(
    result: object, source: ObjectSource, id_from: str | None, notes: EntryNotes
) -> tuple[dict[str, Any], Direction]:
    own = first_of(result, (source.metadata,) if source.metadata else METADATA_NAMES)
    metadata = own if isinstance(own, Mapping) else {}
    text = first_of(result, source.text) if source.text else first_named(metadata, TEXT_NAMES)
    if text is None and not source.metadata:
        text = first_named(result, TEXT_NAMES)
    text = text if isinstance(text, str) else None
    score, direction = _score(result, source)
    entry: dict[str, Any] = {"doc": "", "text": text, "score": score}
    entry["source"] = _source_of(result, source, metadata)
    entry["start"], entry["end"] = _span(result, source, metadata, text)
    entry["metadata"] = metadata or None
    entry["doc"] = _id(result, source, entry, id_from, notes)
    if entry["source"] == entry["doc"]:  # it is a document, or known by it
        entry["source"] = None
    return {name: value for name, value in entry.items() if value is not None}, direction


def _id(
    result: object,
    source: ObjectSource,
    entry: Mapping[str, Any],
    id_from: str | None,
    notes: EntryNotes,
) -> str:
    metadata = entry["metadata"] or {}
    if id_from is not None:
        head, _, rest = id_from.partition(".")
        places = [(result, id_from), (entry, id_from), (metadata, id_from)]
        if head in METADATA_NAMES:  # where a dump has them beside the other fields
            places.append((result, rest))
        for where, path in places:
            value = look_up(where, path)
            if value is not None:
                return id_text(value)
        known = ", ".join(map(str, metadata)) or "nothing"
        raise InputError(
            f"a retrieved object has no {id_from!r}, where its id should be; its metadata holds "
            f"{known}",
            fix="name another field with --id-from (id_from=)",
        )
    own = first_of(result, source.doc) if source.doc else _primary_key(result, source)
    if own is not None:
        return id_text(own)
    for name in chunk_names(placed=entry["start"] is not None):
        value = get_field(metadata, name)
        if value is not ABSENT and value is not None:
            notes.fields.setdefault(name, []).append(id_text(value))
            return id_text(value)
    if entry["source"] is not None and entry["start"] is not None:
        notes.placed += 1
        return place_id(entry["source"], entry["start"])
    if entry["text"] is None:
        keys = ", ".join(field_names(result)) or "nothing"
        raise InputError(
            f"a retrieved object has no id and no text, only {keys}",
            fix="give each retrieved entry the id of its document, or name the field that holds it "
            "with --id-from (id_from=)",
        )
    return _hashed(entry["text"], notes)


def chunk_names(*, placed: bool) -> tuple[str, ...]:
    """Return the fields of metadata that may hold the id of a chunk.

    Where a chunk is `placed` in a document, the id of the document is not its own.
    """
    return tuple(name for name in ID_NAMES if not (placed and name in SOURCE_NAMES))


def place_id(source: object, start: int) -> str:
    """Return the id of a chunk that has none: the document and where the chunk begins in it.

    >>> place_id("docs/manual.md", 1200)
    'docs/manual.md:1200'
    """
    return f"{source}:{start}"


def _primary_key(result: object, source: ObjectSource) -> object:
    """Return the id of a record: under a usual name, or that of Milvus, which has any name."""
    own = first_named(result, ID_NAMES)
    if own is None and source.own_name and isinstance(result, Mapping):
        others = [name for name in result if name not in source.needs]
        own = result[others[0]] if len(others) == 1 else None
    return own


def _hashed(text: str, notes: EntryNotes) -> str:
    notes.hashed.append(shorten(text))
    return text_id(text)


def id_text(value: object) -> str:
    """Return an id as text: texts, whole numbers and UUIDs are ids."""
    if isinstance(value, str | UUID):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if hasattr(value, "item"):  # a NumPy scalar
        return id_text(value.item())
    raise InputError(
        f"{shorten(repr(value), 40)} is not an id", fix="ids are texts or whole numbers"
    )


def _score(result: object, source: ObjectSource) -> tuple[float | None, Direction]:
    for path, direction in source.score:
        value = look_up(result, path)
        if is_number(value):
            number = float(value)
            return (-number if direction == "lower" else number), direction
    return None, "higher"


def _turn_distances(made: list[tuple[dict[str, Any], Direction]]) -> None:
    """Turn the scores of a list around if the metric decides and they only rise: distances."""
    scored = [entry for entry, direction in made if "score" in entry and direction == "metric"]
    values = [entry["score"] for entry in scored]
    rises = all(one <= other for one, other in pairwise(values))
    if rises and values and values[0] < values[-1]:
        for entry in scored:
            entry["score"] = -entry["score"]


def _source_of(result: object, source: ObjectSource, metadata: Mapping[str, Any]) -> str | None:
    value = first_of(result, source.source)
    if value is None and metadata:
        value = first_named(metadata, SOURCE_NAMES)
    known = isinstance(value, str | int | UUID) and not isinstance(value, bool)
    return str(value) or None if known else None


def _span(
    result: object, source: ObjectSource, metadata: Mapping[str, Any], text: str | None
) -> tuple[int | None, int | None]:
    """Return the first character and the one after the last in the document, if they are known."""
    start, end = first_of(result, source.start), first_of(result, source.end)
    if start is None and metadata:
        start, end = (first_named(metadata, names) for names in (START_NAMES, END_NAMES))
    if type(start) is not int or start < 0:
        return None, None
    if end is None and text is not None:
        end = start + len(text)
    return (start, end) if type(end) is int and end >= start else (None, None)
