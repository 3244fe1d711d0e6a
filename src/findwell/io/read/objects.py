"""Results as retrieval frameworks, engines and databases give them: objects, dicts and tuples.

`entries_of` turns an answer to one query into findwell's own entries, in the order of the list,
which is the rank. Scores never change the order; where a low one is the better, its sign is turned,
so that a higher score is always the better one.

An `ObjectSource` says by which fields a result is recognised, and where id, text, score and
metadata stand. Fields are attributes of objects or keys of dicts alike, so that objects, their
dicts and their JSON read the same, and no framework is imported. Those of known frameworks are in
`tools.toml`; a plugin adds one with `register_source`, in a module that an entry point of the group
`findwell.sources` names.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from findwell.core.errors import InputError
from findwell.core.findings import shorten
from findwell.core.frames import pl
from findwell.core.plugins import Registry
from findwell.io.read.format import LOOKED, EntryNotes
from findwell.io.read.values import identifier
from findwell.io.read.vocabulary import (
    END_NAMES,
    ID_NAMES,
    METADATA_NAMES,
    SCORE_NAMES,
    SOURCE_NAMES,
    START_NAMES,
    TEXT_NAMES,
    tools,
)

if TYPE_CHECKING:
    from findwell.io.read.vocabulary import Direction, Scores

MADE_FIELDS = frozenset({"doc", "text", "score", "start", "end", "source", "metadata"})
# columns that only the table of one answer has, as of LanceDB
HIT_COLUMNS = frozenset({"_distance", "_score", "_relevance_score", "_rowid"})
USUAL_NAMES: tuple[tuple[str, ...], ...] = (TEXT_NAMES, SOURCE_NAMES, START_NAMES, END_NAMES)
ABSENT = object()
MAPPINGS = (dict, Mapping)  # an abstract class alone takes its time to answer
PLACES = "source and start"  # which name a chunk that has no id


# ---- where things stand in a result


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """How one of the results of a source is read; paths are dotted, the first with a value counts.

    Without `text` the text is looked for in the metadata, and without `doc` the id, under the names
    that people use.
    """

    name: str
    needs: tuple[str, ...]  # fields by which it is recognised, all of them
    doc: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    score: Scores = ()
    metadata: str = ""  # where the user's own fields stand; empty: next to the others
    source: tuple[str, ...] = ()  # the document that a chunk was cut from
    start: tuple[str, ...] = ()  # where a chunk begins in that document, if not in the metadata
    end: tuple[str, ...] = ()
    own_name: bool = False  # the id stands under a name that the user chose, next to the others


OBJECT_SOURCES: Registry[ObjectSource] = Registry("source", group="findwell.sources")
# rows of LanceDB, Azure AI Search, pgvector and other databases, results of txtai, and whatever
# else has an id or a text under a usual name
ANY_RECORD = ObjectSource(
    "record", (), score=SCORE_NAMES, source=SOURCE_NAMES, start=START_NAMES, end=END_NAMES
)


def register_source(source: ObjectSource) -> ObjectSource:
    """Make a source known, before the one that takes any record."""
    _declare_built_in()
    return OBJECT_SOURCES.register(source.name, source, replaces=True)


@functools.cache
def _declare_built_in() -> None:
    for name, fields in tools()["sources"].items():
        given = {key: _tuples(each) for key, each in fields.items()}
        OBJECT_SOURCES.register(name, ObjectSource(name, **given))


def known_sources() -> dict[str, ObjectSource]:
    """Return the sources by name, in the order in which they are tried."""
    _declare_built_in()
    return OBJECT_SOURCES.known()


def _tuples(value: Any) -> Any:  # noqa: ANN401
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


_LAST: dict[type, ObjectSource] = {}  # the source of the last object of a type, tried first


def find_source(result: object) -> ObjectSource | None:
    """Return the source that a result comes from; None if it has no known fields at all."""
    known = known_source(result)
    if known is None and first_named(result, (*ID_NAMES, *TEXT_NAMES)) is not None:
        return ANY_RECORD
    return known


def known_source(result: object) -> ObjectSource | None:
    """Return the source whose fields a result has, but for the one that takes any record."""
    last = _LAST.get(type(result))
    if last is not None and _has_fields(result, last.needs):
        return last
    for source in known_sources().values():
        if source.needs and _has_fields(result, source.needs):
            if not isinstance(result, Mapping):
                _LAST[type(result)] = source
            return source
    return None


def is_result(value: object) -> bool:
    """Tell whether this is one result of a known source: an object or the dict of one."""
    if is_plain(value) or isinstance(value, list | tuple):
        return False
    return find_source(value) is not None


def not_a_result(value: object) -> InputError:
    """Return the error for something that is neither an answer nor a result."""
    fields = ", ".join(_field_names(value))
    return InputError(
        f"{type_name(value)} is not an id, and no retrieved object that findwell knows: "
        + (f"it has only {fields}" if fields else shorten(repr(value), 80)),
        fix='give ids, dicts such as {"doc": "d1", "text": "…"}, or results of a source that is '
        "listed in docs/inputs-tools.md",
    )


def type_name(value: object) -> str:
    """Return the type of a value with its module, for messages.

    >>> type_name(UUID(int=1)), type_name([])
    ('uuid.UUID', 'list')
    """
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__


def is_plain(value: object) -> bool:
    """Tell whether a value is an id, a text or a number, and has no fields."""
    kind: Any = type(value)
    return _is_plain(kind)


@functools.lru_cache(maxsize=4096)
def _is_plain(kind: type) -> bool:
    return issubclass(kind, str | bytes | int | float | UUID) or hasattr(kind, "item")


def is_number(value: object) -> bool:
    """Tell whether a value is a number of any kind; true and false are not."""
    return not isinstance(value, bool) and isinstance(value, Number)


def is_list(value: object) -> bool:
    """Tell a list from objects that can be iterated over, such as the models of pydantic."""
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return True
    is_object = isinstance(value, Mapping | str | bytes) or hasattr(type(value), "model_fields")
    return isinstance(value, Iterable) and not is_object


def _is_row(value: object) -> bool:
    """Tell whether a tuple has names for its values: a named tuple, or a row of SQLAlchemy."""
    return hasattr(value, "_asdict") or hasattr(value, "_mapping")


@functools.lru_cache(maxsize=4096)
def place_of(kind: Any, name: str) -> Literal["key", "row", "own", "attribute"]:  # noqa: ANN401
    """Return where values of a type have a field of this name, if they have it."""
    if issubclass(kind, Mapping):
        return "key"
    if issubclass(kind, str | bytes | int | float | list | tuple | UUID | None):
        return "row"
    asked = getattr(getattr(kind, "__getattr__", None), "__module__", None)
    closed = asked == "pydantic.main" and kind.model_config.get("extra") != "allow"
    # a model of pydantic takes long to say that it lacks a field
    return "own" if closed and not hasattr(kind, name) else "attribute"


def _get_field(value: Any, name: str) -> Any:  # noqa: ANN401
    """Return what a dict or an object holds under a name, if it holds it."""
    kind: Any = type(value)
    place = place_of(kind, name)
    if place == "key":
        return value.get(name, ABSENT)
    if place == "row":
        return getattr(value, name, ABSENT) if _is_row(value) else ABSENT
    try:
        found = vars(value).get(name, ABSENT) if place == "own" else getattr(value, name, ABSENT)
    except Exception:  # noqa: BLE001 - a property of a framework that cannot be asked
        return ABSENT
    return ABSENT if callable(found) else found  # a method is not a field


def _has_fields(value: object, paths: tuple[str, ...]) -> bool:
    """Tell whether all dotted paths lead to something, which may be None."""
    for path in paths:
        head, _, rest = path.partition(".") if "." in path else (path, "", "")
        found = _get_field(value, head)
        if found is ABSENT or (rest and not _has_fields(found, (rest,))):
            return False
    return True


def look_up(value: object, path: str) -> Any:  # noqa: ANN401
    """Return what stands under a dotted path, or under a name that itself has dots; else None."""
    whole = _get_field(value, path)
    if whole is not ABSENT or "." not in path:
        return None if whole is ABSENT else whole
    head, _, rest = path.partition(".")
    found = _get_field(value, head) if rest else ABSENT
    return None if found is ABSENT else look_up(found, rest)


def first_named(value: object, paths: Iterable[str]) -> Any:  # noqa: ANN401
    """Return what stands under the first of these names or dotted paths that has a value."""
    for path in paths:
        found = look_up(value, path) if "." in path else _get_field(value, path)
        if found is not None and found is not ABSENT:
            return found
    return None


@functools.lru_cache(maxsize=1024)
def _names_among(keys: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return which of the names that people use for text, source, start and end are keys."""
    return tuple(tuple(name for name in names if name in keys) for names in USUAL_NAMES)


def _field_names(value: object) -> list[str]:
    """Return the names of the first fields, for messages."""
    names = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    return [str(name) for name in names if not str(name).startswith("_")][:12]


# ---- answers to one query that hold results: responses, tables, lists per field, batches of one


def results_of(answer: object) -> tuple[Iterable[object], bool]:
    """Return the results of an answer in their order, and whether strings are texts among them."""
    if answer is None:
        return (), False
    if not isinstance(answer, list | tuple):
        rows = _table_rows(answer)
        rows = _columns(answer) if rows is None else rows
        if rows is not None:
            return rows, False
        found = _response(answer)
        if found is None and isinstance(answer, Mapping) and len(answer) == 1:
            (part,) = answer.values()  # what the only component of a pipeline of Haystack gave
            found = _response(part) if isinstance(part, Mapping) else None
        if found is not None:
            return found
        if not is_list(answer):
            raise not_a_result(answer)
    results: list[object] = list(answer)  # type: ignore[call-overload]
    if results and all(map(_is_several, results)):  # as Milvus gives the answers of a batch
        return results_of(_only(results))
    return results, False


def is_answer(value: object) -> bool:
    """Tell whether this is an answer of a known form that is not a list, such as a response."""
    names = _column_names(value)
    if names is not None:  # a table, which may as well be a run or records
        return not HIT_COLUMNS.isdisjoint(names)
    return _columns(value) is not None or _holds_results(value)


def _only(answers: list[Any]) -> Any:  # noqa: ANN401
    """Return the answer to the only query of a batch."""
    if len(answers) > 1:
        what = f"answers to {len(answers)} queries were given, where those to one are expected"
        raise InputError(what, fix="split them: give every query its own answers")
    return answers[0]


def _column_names(value: object) -> list[str] | None:
    """Return the columns of a table of polars, pandas or Arrow; None if it is not a table."""
    if isinstance(value, Mapping | list | tuple):
        return None
    if isinstance(value, pl.LazyFrame):
        return value.collect_schema().names()
    if not hasattr(value, "columns"):
        return None
    return [str(name) for name in getattr(value, "column_names", value.columns)]


def _table_rows(answer: object) -> list[dict[str, Any]] | None:
    """Return the rows of a data frame or an Arrow table."""
    if _column_names(answer) is None:
        return None
    from findwell.io.read.tables import frame  # noqa: PLC0415 - which reads records, as this does for it

    table = frame(answer)
    return None if table is None else table.to_dicts()


def _columns(answer: object) -> list[dict[str, Any]] | None:
    """Return the results of an answer that holds one list per field, as Chroma's does."""
    for form in tools()["columns"].values():
        docs, texts = _get_field(answer, form["doc"]), _get_field(answer, form["text"])
        if not isinstance(docs, list) or not (isinstance(texts, list) or texts is None):
            continue
        places = {"id": form["doc"], "text": form["text"], "metadata": form.get("metadata", "")}
        for name, direction in form.get("score", ()):
            if isinstance(_get_field(answer, name), list):
                places["_distance" if direction == "lower" else "_score"] = name
                break
        lists = {key: _get_field(answer, name) for key, name in places.items() if name}
        given = {
            key: list(_only(values)) if values and isinstance(values[0], list) else values
            for key, values in lists.items()
            if isinstance(values, list)
        }
        return [
            {key: value for key, value in zip(given, row, strict=True) if value is not None}
            for row in zip(*given.values(), strict=True)
        ]
    return None


def _response(answer: object) -> tuple[list[object], bool] | None:
    """Return the results of a response, and whether strings are texts among them."""
    body = _get_field(answer, "body")
    if isinstance(body, Mapping):  # as the clients of Elasticsearch wrap it
        answer = body
    for path, form in tools()["responses"].items():
        found = look_up(answer, path)
        if isinstance(found, list | tuple):
            listed: list[object] = list(found)
            if "within" in form:
                listed = [hit for group in listed for hit in look_up(group, form["within"]) or ()]
            return listed, form.get("texts", False)
    return None


def _holds_results(answer: object) -> bool:
    """Tell whether this is a response; a dict must hold objects, since ids have other readings."""
    if is_plain(answer) or isinstance(answer, list | tuple):
        return False
    found = _response(answer)
    return found is not None and (found[1] or not any(map(is_plain, found[0])))


def _is_several(value: object) -> bool:
    """Tell an answer, which holds results, from one result and from a pair (document, score)."""
    if not isinstance(value, list | tuple):
        known = is_plain(value) or known_source(value) is not None
        return not known and _holds_results(value)
    if _is_row(value):
        return False
    return not value or not (is_plain(value[0]) or is_number(value[-1]))


# ---- from results to entries


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
    results, texts = results_of(answer)
    return make_entries(results, id_from=id_from, notes=notes or EntryNotes(), texts=texts)


def make_entries(
    results: Iterable[object], *, id_from: str | None, notes: EntryNotes, texts: bool = False
) -> list[dict[str, Any]]:
    """Return results one by one as entries; with `texts` a string is a text and not an id."""
    results = list(results)
    if not texts and all(type(result) is str for result in results):
        return [{"doc": doc} for doc in results]
    refuse_ranks(results)
    fields, placed = {name: len(ids) for name, ids in notes.fields.items()}, notes.placed
    made = [_entry(result, id_from, notes, texts=texts) for result in results]
    entries = [entry for entry, _ in made]
    # where the metric decides, scores that only rise are distances
    scored = [entry for entry, direction in made if "score" in entry and direction == "metric"]
    if only_rise([entry["score"] for entry in scored]):
        for entry in scored:
            entry["score"] = -entry["score"]
    used = [name for name, ids in notes.fields.items() if len(ids) > fields.get(name, 0)]
    chunks = ((entry["doc"], entry.get("text"), entry.get("start")) for entry in entries)
    if id_from is not None or used:
        notes.note_shared(chunks, id_from or f"metadata.{used[0]}")
    elif notes.placed > placed:  # chunks of several sizes may begin at one place
        notes.note_shared(chunks, PLACES)
    return entries


def only_rise(scores: list[float]) -> bool:
    """Tell whether scores rise and never fall, as distances do."""
    rises = bool(scores) and scores[0] < scores[-1]
    return rises and all(one <= other for one, other in pairwise(scores))


def refuse_ranks(results: Any) -> None:  # noqa: ANN401
    """Refuse a list whose results say a rank, but stand in another order: either may be meant."""
    given = [each["rank"] for each in results if isinstance(each, MAPPINGS) and "rank" in each]
    ranks = [rank for rank in given if is_number(rank)]
    if any(one > other for one, other in pairwise(ranks)):
        what = f"the list is not in the order of its ranks, which begin {shorten(str(ranks[:5]))}"
        fix = "sort the list by rank, or leave the ranks out: a list is read in its own order"
        raise InputError(what, fix=fix)


def _entry(
    result: object, id_from: str | None, notes: EntryNotes, *, texts: bool
) -> tuple[dict[str, Any], Direction]:
    result, score = _take_apart(result)
    direction: Direction = "metric"
    if id_from is None and _is_made(result):
        entry, direction = dict(result), "higher"  # type: ignore[call-overload]
        notes.keep_others(entry)
    elif texts and isinstance(result, str):
        entry = {"doc": notes.id_from_text(result), "text": result}
    elif is_plain(result):
        entry = {"doc": id_text(result)}
    else:
        source = find_source(result)
        if source is None and hasattr(result, "keys") and not isinstance(result, Mapping):
            # a row whose columns are not attributes, as of asyncpg and sqlite3
            result = {str(name): result[name] for name in result.keys()}  # type: ignore[index] # noqa: SIM118
            source = find_source(result)
        if source is None and id_from is not None and look_up(result, id_from) is not None:
            source = ANY_RECORD
        if source is None:
            raise not_a_result(result)
        entry, direction = _read(result, source, id_from, notes)
    if score is not None:
        entry, direction = {**entry, "score": float(score)}, "metric"
    return entry, direction


def _is_made(result: object) -> bool:
    """Tell whether this is what `entries_of` returns."""
    return (
        type(result) is dict
        and type(result.get("doc")) is str
        and result.keys() <= MADE_FIELDS
        and None not in result.values()
    )


def _take_apart(result: object) -> tuple[object, Any]:
    """Return a result and the number next to it: (document, score) or (id, text, score)."""
    if not isinstance(result, list | tuple) or _is_row(result):
        return result, None
    *front, last = result or (None,)
    if is_number(last):
        two_ids = type(last) is int and [type(each) for each in front] == [int]
        if len(front) == 1 and not is_list(front[0]) and not two_ids:
            return front[0], last
        if len(front) == 2 and is_plain(front[0]) and isinstance(front[1], str):
            return {"id": front[0], "text": front[1]}, last
    what = f"{shorten(repr(result), 80)} is not an id, and no document with its score"
    fix = "give (document, score) or (id, text, score), or rows as dicts with named columns"
    raise InputError(what, fix=fix)


def _read(
    result: object, source: ObjectSource, id_from: str | None, notes: EntryNotes
) -> tuple[dict[str, Any], Direction]:
    """Return the entry of a result of a source, and which scores are better."""
    own = first_named(result, (source.metadata,) if source.metadata else METADATA_NAMES)
    metadata = own if isinstance(own, MAPPINGS) else {}
    usual = _names_among(tuple(metadata)) if type(metadata) is dict else USUAL_NAMES
    texts, sources, starts, ends = usual
    text = first_named(result, source.text) if source.text else first_named(metadata, texts)
    if text is None and not source.metadata:
        text = first_named(result, TEXT_NAMES)
    entry: dict[str, Any] = {"doc": "", "text": text if isinstance(text, str) else None}
    direction: Direction = "higher"
    for path, better in source.score:
        value = look_up(result, path)
        if value is not None and is_number(value):
            entry["score"] = -float(value) if better == "lower" else float(value)
            direction = better
            break
    origin = first_named(result, source.source)
    origin = first_named(metadata, sources) if origin is None else origin
    known = type(origin) is str or isinstance(origin, str | int | UUID)
    entry["source"] = str(origin) or None if known and type(origin) is not bool else None
    start, end = first_named(result, source.start), first_named(result, source.end)
    if start is None and starts:
        start, end = first_named(metadata, starts), first_named(metadata, ends)
    entry["start"], entry["end"] = span_of(start, end, entry["text"])
    entry["metadata"] = metadata or None
    entry["doc"] = _id(result, source, entry, id_from, notes)
    if entry["source"] == entry["doc"]:  # it is a document, or known by it
        entry["source"] = None
    return {name: value for name, value in entry.items() if value is not None}, direction


def span_of(start: object, end: object, text: str | None) -> tuple[int | None, int | None]:
    """Return the first character and the one after the last in the document, if they are known."""
    if type(start) is not int or start < 0:
        return None, None
    if end is None and text is not None:
        end = start + len(text)
    return (start, end) if type(end) is int and end >= start else (None, None)


def _id(
    result: object,
    source: ObjectSource,
    entry: Mapping[str, Any],
    id_from: str | None,
    notes: EntryNotes,
) -> str:
    metadata = entry["metadata"] or {}
    if id_from is not None:
        return _named_id(result, entry, metadata, id_from)
    own = first_named(result, source.doc or ID_NAMES)
    if own is None and source.own_name and isinstance(result, Mapping):  # as of Milvus
        others = [name for name in result if name not in source.needs]
        own = result[others[0]] if len(others) == 1 else None
    if own is not None:
        if notes.looked < LOOKED:
            fields: Any = result if isinstance(result, MAPPINGS) else {"source": entry["source"]}
            notes.keep_others({**fields, "metadata": metadata})
        return id_text(own)
    for name in chunk_names(placed=entry["start"] is not None):
        value = metadata.get(name)
        if value is not None:
            return notes.id_from_field(name, id_text(value), entry)
    if entry["source"] is not None and entry["start"] is not None:
        notes.placed += 1
        return place_id(entry["source"], entry["start"])
    if entry["text"] is None:
        raise InputError(
            "a retrieved object has no id and no text, only "
            f"{', '.join(_field_names(result)) or 'nothing'}",
            fix="give each retrieved entry the id of its document, or name the field that holds it "
            "with --read id_from (id_from=)",
        )
    return notes.id_from_text(entry["text"])


def _named_id(
    result: object, entry: Mapping[str, Any], metadata: Mapping[str, Any], id_from: str
) -> str:
    head, _, rest = id_from.partition(".")
    places = [(result, id_from), (entry, id_from), (metadata, id_from)]
    if head in METADATA_NAMES:  # where a dump has them next to the other fields
        places.append((result, rest))
    own = next((id_ for place in places if (id_ := look_up(*place)) is not None), None)
    if own is not None:
        return id_text(own)
    raise InputError(
        f"a retrieved object has no {id_from!r}, where its id should be; its metadata holds "
        f"{', '.join(map(str, metadata)) or 'nothing'}",
        fix="name another field with --read id_from (id_from=)",
    )


@functools.cache
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


def id_text(value: object) -> str:
    """Return an id as text: texts, whole numbers and UUIDs are ids."""
    return str(value) if type(value) is str or isinstance(value, str | UUID) else identifier(value)
