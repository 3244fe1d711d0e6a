"""From bytes and Python objects to Run and Gold: one file per format, which registers itself.

The format is detected from the content; naming one overrides that. A plugin adds a format with an
entry point of the group `findwell.formats` that names a module which registers it; a module of the
group `findwell.shapes` or `findwell.sources` registers shapes of records or results of frameworks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum, auto
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from findwell.core.data import Gold, Run, RunStream
from findwell.core.errors import FindwellError, InputError, choose, naming_files, takes_options
from findwell.core.forks import not_after_fork, refuse_after_fork
from findwell.core.frames import changed
from findwell.io.read.format import FORMATS, Format, Look, ReadContext, Source
from findwell.io.read.packed import (
    IdLists,
    begins_with_ids,
    is_plain,
    pack_gold,
    pack_run,
    rising_scores,
)

if TYPE_CHECKING:
    from findwell.core.data import NamedBy
    from findwell.io.read.format import Samples
    from findwell.io.read.in_memory import GoldLike as GoldLike
    from findwell.io.read.in_memory import PathLike, Records, TableLike
    from findwell.io.read.in_memory import RunLike as RunLike
    from findwell.io.read.mapping import Fields
    from findwell.io.read.traces.run import TraceSource

# what reads objects, folders and traces is imported where there are any: TREC files need none of it

# the methods by which frameworks ask their retrievers, tried in this order
RETRIEVER_METHODS = ("invoke", "retrieve", "run", "ainvoke", "aretrieve", "run_async", "arun")
NO_FIELDS: Fields = {}  # nothing is mapped
# other kinds of files that people give by accident, and how they begin
FOREIGN = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ\x00": "an xz file",
    b"SQLite format 3": "an SQLite database",
}
NAMED_AT_MOST = 1000  # entries of a dict that are looked at: one by query may have millions


class Kind(Enum):
    """What may be given as an input, or as several."""

    PATH = auto()
    SOURCE = auto()  # a file that was opened already
    RUN = auto()
    GOLD = auto()
    RESULT = auto()  # of an earlier evaluation
    RETRIEVER = auto()  # which is asked for a run
    NAMED = auto()  # a dict of inputs by name
    LISTED = auto()  # a list of paths or runs
    BY_QUERY = auto()  # a dict {query: …}
    TABLE = auto()  # a frame of any library, or whatever exports Arrow
    ITERATOR = auto()  # records that can be read only once
    RECORDS = auto()
    OTHER = auto()  # nothing that is read


KINDS: dict[Kind, Any] = {  # by type; the first that fits
    Kind.SOURCE: Source,
    Kind.PATH: str | os.PathLike,
    Kind.RUN: Run | RunStream,
    Kind.GOLD: Gold,
    Kind.ITERATOR: Iterator,
}


def kind_of(data: object, mapped: Fields = NO_FIELDS) -> Kind:
    """Say what was given: everything that takes inputs asks this function.

    A class of a later room says by itself what its objects are, in `input_kind`. `mapped` are
    fields of records of which a user says what they mean.

    >>> kind_of({"q1": {"d1": 0.5}}), kind_of({"bm25": {"q1": {"d1": 0.5}}})
    (<Kind.BY_QUERY: 9>, <Kind.NAMED: 7>)
    >>> kind_of("bm25.trec"), kind_of(["bm25.trec"]), kind_of([{"query": "q1"}])
    (<Kind.PATH: 1>, <Kind.LISTED: 8>, <Kind.RECORDS: 12>)
    """
    own: Kind | None = getattr(type(data), "input_kind", None)
    known = own or next((kind for kind, types in KINDS.items() if isinstance(data, types)), None)
    if known is not None:
        return known
    if isinstance(data, Mapping):
        return Kind.NAMED if _is_named(data, mapped) else Kind.BY_QUERY
    if isinstance(data, list | tuple):
        listed = data and kind_of(data[0]) in {Kind.PATH, Kind.SOURCE, Kind.RUN}
        return Kind.LISTED if listed else Kind.RECORDS
    # asked of the type, since a lazy frame works out its columns when it is asked for them
    if hasattr(type(data), "columns") or hasattr(type(data), "__arrow_c_stream__"):
        return Kind.TABLE
    if callable(data) or any(callable(getattr(data, name, None)) for name in RETRIEVER_METHODS):
        return Kind.RETRIEVER
    readable = isinstance(data, Iterable) and not isinstance(data, bytes)
    return Kind.RECORDS if readable else Kind.OTHER


def _is_named(data: Mapping[Any, Any], mapped: Fields) -> bool:
    """Tell whether this is a dict of inputs by name rather than one by query."""
    values = list(islice(data.values(), NAMED_AT_MOST))
    kinds = [Kind.OTHER if isinstance(x, Mapping | list | tuple) else kind_of(x) for x in values]
    if not values or kinds[0] in {Kind.PATH, Kind.SOURCE, Kind.RUN}:
        return bool(values)
    if not {Kind.RESULT, Kind.RETRIEVER}.isdisjoint(kinds):
        return True
    first: Any = values[0]
    inner = first.values() if isinstance(first, dict) else first if isinstance(first, list) else ()
    plain = isinstance(next(iter(inner), None), int | float | str)  # scores, grades, ids
    return False if plain else _first_is_input(first, kinds[0], mapped)


def _first_is_input(first: Any, kind: Kind, mapped: Fields) -> bool:  # noqa: ANN401
    """Tell by the first of several things whether they are inputs, or lists of one query each."""
    from findwell.io.read.mapping import reach  # noqa: PLC0415
    from findwell.io.read.objects import is_answer  # noqa: PLC0415
    from findwell.io.read.shapes import shape_of  # noqa: PLC0415

    if is_answer(first):  # to one query
        return False
    if isinstance(first, Mapping):
        return isinstance(next(iter(first.values()), None), Mapping | list | tuple)
    if isinstance(first, list):  # of records, not of ids
        is_record = bool(first) and isinstance(first[0], Mapping)
        return is_record and shape_of(reach(first[0], mapped), "run", mapped) is not None
    return kind is Kind.TABLE


def path_of(data: object, otherwise: str = "") -> str:
    """Return the path of an input that is one, to say where something is; else `otherwise`.

    >>> path_of("bm25.trec"), path_of({"q1": ["d1"]}, "the run")
    ('bm25.trec', 'the run')
    """
    return os.fspath(data) if kind_of(data) is Kind.PATH else otherwise  # type: ignore[call-overload]


def each_input(data: Any, mapped: Fields = NO_FIELDS) -> list[tuple[str, Any]]:  # noqa: ANN401
    """Return each of several inputs with its name, "" where it has none, or the one that it is."""
    kind = kind_of(data, mapped)
    if kind is Kind.NAMED:
        return [(str(name), each) for name, each in data.items()]
    return [("", each) for each in data] if kind is Kind.LISTED else [("", data)]


def several_inputs(data: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    """Return the runs of a dict by name, or of a list, which holds several; none if it is neither.

    >>> several_inputs([{"q1": ["d1"]}, {"q1": ["d2"]}]), several_inputs("bm25.trec")
    ([('', {'q1': ['d1']}), ('', {'q1': ['d2']})], [])
    """
    kind = kind_of(data)
    if kind is Kind.NAMED:
        return [(str(name), each) for name, each in data.items()]
    listed = kind in {Kind.LISTED, Kind.RECORDS, Kind.ITERATOR}
    return [("", each) for each in data] if listed else []


def readable_again(data: Any) -> Any:  # noqa: ANN401
    """Return an input that can be read again, as an iterator cannot."""
    return list(data) if kind_of(data) is Kind.ITERATOR else data


class Given(NamedTuple):
    """One of the inputs: its name, "" where it has none, what it is, and what is read of it."""

    name: str
    kind: Kind
    data: Any  # as it was given
    readable: Any  # which can be read again, as an iterator and a pipe cannot


def open_inputs(
    data: object,
    named: str | None = None,
    id_from: str | None = None,
    search_span: str | None = None,
    fields: object = None,
) -> list[Given]:
    """Return each of several inputs, or the one that it is, all of them to be read.

    A path of traces is replaced by the runs that they hold, two where lists were reranked, unless
    it has a name, which is for one. `named` is the format of the runs.
    """
    found: list[Given] = []
    for name, each in each_input(data, _mapped(fields, "run")):
        is_path = not name and kind_of(each) is Kind.PATH
        traces = trace_sources(each, named, id_from, search_span) if is_path else []
        found += [open_input(run, name) for run in traces or [each]]
    return found


def open_input(data: Any, name: str = "") -> Given:  # noqa: ANN401
    """Return an input to be read."""
    kind, readable = kind_of(data), readable_again(data)
    if kind is Kind.PATH and not os.path.isdir(data):  # noqa: PTH112 - errors mean no
        readable = Source.of(data)
    return Given(name, kind, data, readable)


@not_after_fork
@takes_options()
def load_run(
    data: RunLike | Source,
    *,
    name: str = "",
    format: str | None = None,  # noqa: A002
    skip_bad: bool = False,
    texts: bool = False,
    about: bool = False,
    names: NamedBy = "id",
    id_from: str | None = None,
    query_from: str | None = None,
    search_span: str | None = None,
    fields: object = None,
) -> RunStream:
    """Return a run: a path, a table, {query: {doc: score}}, {query: [doc]}, or records.

    With `skip_bad` a record that cannot be read is left out and becomes a finding; the run is then
    read whole. Without it the first such record is an error. With `texts` the texts and offsets
    next to the ids are kept, with `about` everything that describes the queries. `names` is what
    names the queries: the `id` of a record, by default, or its `question` or its `position`, which
    are also used where a record has no id. Retrieved things may be objects of other frameworks;
    `id_from` is the field that holds their ids, such as `metadata.chunk`. Of traces, `query_from`
    is the attribute that holds the ids of queries, and `search_span` the name of spans that are
    searches, if their type does not say so. `fields` says what fields of other names mean:
    `{"run.hits": "retrieved"}`.
    """
    given: Any = data
    kind = kind_of(data)
    if kind is Kind.RUN:
        return given.stream() if isinstance(data, Run) else given  # type: ignore[no-any-return]
    reading = ReadContext(
        skip=skip_bad,
        texts=texts,
        about=about,
        names=names,
        id_from=id_from,
        query_from=query_from,
        search_span=search_span,
        fields=_mapped(fields, "run"),
    )
    if kind in {Kind.PATH, Kind.SOURCE}:
        source = replace(Source.of(given) if kind is Kind.PATH else given, reading=reading)
        chosen = _format(source, "run", "traces" if hasattr(source, "calls") else format)
        if (query_from or search_span) is not None and chosen.name != "traces":
            raise _no_attributes(source.where, "query_from" if query_from else "search_span")
        stream = chosen.run(source, name or source.name)
    elif kind is Kind.BY_QUERY and is_plain(reading) and (packed := pack_run(given, name or "run")):
        stream = replace(packed, findings=(*packed.findings, *rising_scores(given)))
    else:
        from findwell.io.read import in_memory  # noqa: PLC0415
        from findwell.io.read.traces.run import TraceCalls, run_of_calls, trace_rows  # noqa: PLC0415

        FORMATS.known()  # plugins may bring shapes
        spans = trace_rows(data)
        if spans is not None:
            calls = TraceCalls.of_rows(spans, "run", id_from, search_span)
            stream = run_of_calls(calls, name or "run", reading, calls.lists[-1])
        elif (query_from or search_span) is not None:
            raise _no_attributes("run", "query_from" if query_from else "search_span")
        else:
            stream = in_memory.run_from_objects(data, name or "run", reading=reading)
    first = stream.others  # what its first records hold
    stream = replace(stream, found=reading.findings, others=lambda: reading.notes.others or first())
    return _whole(stream, reading) if skip_bad else stream


@not_after_fork
@takes_options()
def load_gold(
    data: GoldLike,
    *,
    format: str | None = None,  # noqa: A002
    skip_bad: bool = False,
    texts: bool = False,
    id_from: str | None = None,
    fields: object = None,
) -> Gold:
    """Return the gold: a path, a table, {query: {doc: grade}}, {query: [doc | [doc, …]]}, records.

    A path may also be the folder of a BEIR dataset, or of a pool with labels, or its labels.db.
    Records may be one per pair, with a question, a chunk and a label, as `findwell.judges.card`
    takes them. `fields` says what fields of other names mean: `{"gold.correct_chunks": "gold"}`.
    """
    given: Any = data
    kind = kind_of(data)
    if kind is Kind.GOLD:
        return given  # type: ignore[no-any-return]
    mapped = _mapped(fields, "gold")
    reading = ReadContext(skip=skip_bad, texts=texts, id_from=id_from, fields=mapped)
    if kind in {Kind.PATH, Kind.SOURCE}:
        if kind is Kind.PATH and os.path.isdir(given):  # noqa: PTH112 - errors mean no
            from findwell.io.read.beir import judgements_of  # noqa: PLC0415

            if (found := judgements_of(given)) is not None:
                gold = load_gold(found[0], format=format, skip_bad=skip_bad, texts=texts)
                return changed(gold, findings=(*gold.findings, *found[1]))
        source = _opened(given, reading)
        try:
            gold = _format(source, "gold", format).gold(source)
        except FindwellError as error:
            raise error.in_files({"gold": source.where})  # noqa: B904 - it is the same error
    elif kind is Kind.BY_QUERY and is_plain(reading) and (packed := pack_gold(given)) is not None:
        gold = packed
    else:
        from findwell.io.read import in_memory  # noqa: PLC0415

        FORMATS.known()  # plugins may bring shapes
        gold = in_memory.gold_from_objects(data, reading=reading)
    reading.check_rest(gold.n)
    noted = reading.findings()
    return changed(gold, findings=(*gold.findings, *noted)) if noted else gold


def load_samples(
    data: PathLike | TableLike | Records,
    *,
    name: str = "",
    format: str | None = None,  # noqa: A002
    skip_bad: bool = False,
    texts: bool = False,
    id_from: str | None = None,
    fields: object = None,
) -> Samples:
    """Return run and gold of records that hold both: a path, a table or a list of dicts."""
    refuse_after_fork()
    mapped = _mapped(fields, "run", "gold")
    reading = ReadContext(skip=skip_bad, texts=texts, id_from=id_from, fields=mapped)
    given: Any = data
    if kind_of(data) in {Kind.PATH, Kind.SOURCE}:
        source = _opened(given, reading)
        with naming_files({"gold": source.where}):
            samples = _format(source, "samples", format).samples(source, name or source.name)
    else:
        from findwell.io.read import in_memory  # noqa: PLC0415

        FORMATS.known()  # plugins may bring shapes
        samples = in_memory.samples_from_objects(data, name or "run", reading=reading)
    reading.check_rest(samples.gold.n)
    noted = reading.findings(retrieved=False)
    gold = replace(samples.gold, findings=(*samples.gold.findings, *noted))
    run = replace(samples.run, found=lambda: tuple(reading.notes.findings()))
    return replace(samples, run=run, gold=gold)


def _mapped(fields: object, *roles: str) -> Fields:
    """Return what the fields of these roles mean; most inputs have none that is mapped."""
    if not fields:
        return NO_FIELDS
    from findwell.io.read.mapping import fields_for  # noqa: PLC0415

    return fields_for(fields, *roles)


def _opened(data: Any, reading: ReadContext) -> Source:  # noqa: ANN401
    """Return a file to be read so, also one that was opened already."""
    if kind_of(data) is Kind.SOURCE:
        return replace(data, reading=reading)  # type: ignore[no-any-return]
    if os.path.isdir(data):  # noqa: PTH112 - errors mean no
        from findwell.io.read.labels_database import database_at  # noqa: PLC0415

        data = database_at(data) or data
    return Source.of(data, reading)


def _no_attributes(where: str, option: str) -> InputError:
    what = "an attribute of traces" if option == "query_from" else "spans of traces"
    what = f"{option} (--read {option}) names {what}, but this run is not made of traces"
    fix = "leave it out: records name their queries themselves"
    return InputError(what, where=where, fix=fix)


def _whole(stream: RunStream, reading: ReadContext) -> RunStream:
    """Read a run whole, so that it is known what was left out."""
    run = stream.collect()
    reading.check_rest(run.rows.height)
    batches = run.stream().batches
    return replace(stream, batches=batches, findings=run.findings, whole=run.rows, found=tuple)


def trace_sources(
    data: PathLike, named: str | None, id_from: str | None, search_span: str | None
) -> list[TraceSource]:
    """Return the runs of a path of traces: one, or two where lists were reranked; else none."""
    if named is None and os.path.isfile(data):  # noqa: PTH113
        source = Source.of(data)
        if Look.at(source).only_columns or begins_with_ids(source, "run"):
            return []
    from findwell.io.read.traces import run  # noqa: PLC0415

    return run.trace_sources(data, named, id_from, search_span)


def known_formats() -> dict[str, Format]:
    """Return the known formats by name, in the order in which they are tried."""
    import findwell.io.read.traces.run  # noqa: F401, PLC0415 - it registers traces

    return _in_order(FORMATS)


def _in_order(formats: Mapping[str, Format]) -> dict[str, Format]:
    return dict(sorted(formats.items(), key=lambda entry: (entry[1].order, entry[0])))


def _format(source: Source, role: str, named: str | None) -> Format:
    if named is None and (quick := _quick_format(source, role)) is not None:
        return quick
    formats = known_formats()
    able = {name: entry for name, entry in formats.items() if role in entry.roles}
    if named in able:
        return able[named]
    if named in formats and role == "samples":
        raise _no_gold(named, source)
    if named is not None:
        choose(f"{role} format", named, able)
    look = Look.at(source)
    if role == "samples" and formats["traces"].sniff(look, role):  # which are JSON, too
        raise _no_gold("traces", source)
    for entry in able.values():
        if entry.sniff(look, role):
            return entry
    if not look.binary and not look.lines:
        what = "the file contains only blank lines and comments"
        raise InputError(what, where=source.where, fix="check what wrote the file")
    other = next((name for name, entry in formats.items() if entry.sniff(look, role)), "")
    if other and role == "samples":
        raise _no_gold(other, source)
    raise _unrecognised(look, role, source, able, other)


def _unrecognised(
    look: Look, role: str, source: Source, able: Iterable[str], other: str
) -> InputError:
    """Return the error for a file of a format that no reader for this role knows."""
    foreign = next((kind for mark, kind in FOREIGN.items() if look.head.startswith(mark)), "")
    begins = look.head[:40].decode("utf-8", "replace")
    seen = "is not text" if look.binary else f"begins with {begins!r}"
    setting = f"{'gold' if role == 'gold' else 'run'}_format"
    named_by = f"name it with --read {setting}=NAME ({setting}=), one of: {', '.join(able)}"
    return InputError(
        f"the format of this {role} file was not recognised; it {seen}"
        + (f" (it looks like {other}, which cannot hold a {role})" if other else "")
        + (f" (it is {foreign})" if foreign else ""),
        where=source.where,
        fix="save its content as text or Parquet, perhaps gzipped" if foreign else named_by,
    )


def _quick_format(source: Source, role: str) -> Format | None:
    """Find the format of a file that begins as those of TREC, or as lists of ids.

    No other of ours does (tested), so that their modules are not needed.
    """
    look = Look.at(source)
    if not look.only_columns:
        return IdLists() if begins_with_ids(source, role) and not _has_own_formats() else None
    if not FORMATS.plugged:
        FORMATS.built_in("trec")  # its module registers those of judgements, too
        FORMATS.load_plugins()
    able = (entry for entry in _in_order(FORMATS.registered).values() if role in entry.roles)
    return next((entry for entry in able if entry.sniff(look, role)), None)


def _has_own_formats() -> bool:
    """Tell whether plugins bring formats, which are asked first."""
    FORMATS.load_plugins()
    modules = (type(each).__module__ for each in FORMATS.registered.values())
    return not all(module.startswith(f"{__name__}.") for module in modules)


def _no_gold(name: str, source: Source) -> InputError:
    """Return the error for a file alone that cannot hold both run and gold."""
    from findwell.io.read.shapes import GIVE_GOLD  # noqa: PLC0415

    what = f"a file of the format {name} does not hold both a run and gold labels"
    return InputError(what, where=source.where, fix=f"give the gold labels, too: {GIVE_GOLD}")


__all__ = [
    "Given",
    "Kind",
    "each_input",
    "kind_of",
    "known_formats",
    "load_gold",
    "load_run",
    "load_samples",
    "open_input",
    "open_inputs",
    "readable_again",
    "several_inputs",
]
