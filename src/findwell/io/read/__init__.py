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

if TYPE_CHECKING:
    from findwell.core.data import NamedBy
    from findwell.io.read.format import Samples
    from findwell.io.read.in_memory import GoldLike as GoldLike
    from findwell.io.read.in_memory import PathLike, Records, TableLike
    from findwell.io.read.in_memory import RunLike as RunLike
    from findwell.io.read.traces.run import TraceSource

# what reads objects, folders and traces is imported where there are any: TREC files need none of it

# the methods by which frameworks ask their retrievers, tried in this order
RETRIEVER_METHODS = ("invoke", "retrieve", "run", "ainvoke", "aretrieve", "run_async", "arun")
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


def kind_of(data: object) -> Kind:
    """Say what was given: everything that takes inputs asks this function.

    A class of a later room says by itself what its objects are, in `input_kind`.

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
        return Kind.NAMED if _is_named(data) else Kind.BY_QUERY
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


def _is_named(data: Mapping[Any, Any]) -> bool:
    """Tell whether this is a dict of inputs by name rather than one by query."""
    values = list(islice(data.values(), NAMED_AT_MOST))
    kinds = [Kind.OTHER if isinstance(x, Mapping | list | tuple) else kind_of(x) for x in values]
    if not values or kinds[0] in {Kind.PATH, Kind.SOURCE, Kind.RUN}:
        return bool(values)
    if not {Kind.RESULT, Kind.RETRIEVER}.isdisjoint(kinds):
        return True
    from findwell.io.read.objects import is_answer  # noqa: PLC0415
    from findwell.io.read.shapes import shape_of  # noqa: PLC0415

    first: Any = values[0]
    if is_answer(first):  # to one query
        return False
    if isinstance(first, Mapping):
        return isinstance(next(iter(first.values()), None), Mapping | list | tuple)
    if isinstance(first, list):  # of records, not of ids
        return bool(first and isinstance(first[0], Mapping) and shape_of(first[0], "run"))
    return kinds[0] is Kind.TABLE


def each_input(data: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    """Return each of several inputs with its name, "" where it has none, or the one that it is."""
    kind = kind_of(data)
    if kind is Kind.NAMED:
        return [(str(name), each) for name, each in data.items()]
    return [("", each) for each in data] if kind is Kind.LISTED else [("", data)]


class Given(NamedTuple):
    """One of the inputs: its name, "" where it has none, what it is, and what is read of it."""

    name: str
    kind: Kind
    data: Any  # as it was given
    readable: Any  # which can be read again, as an iterator and a pipe cannot


def open_inputs(data: object, named: str | None = None, id_from: str | None = None) -> list[Given]:
    """Return each of several inputs, or the one that it is, all of them to be read.

    A path of traces is replaced by the runs that they hold, two where lists were reranked, unless
    it has a name, which is for one. `named` is the format of the runs.
    """
    found: list[Given] = []
    for name, each in each_input(data):
        is_path = not name and kind_of(each) is Kind.PATH
        traces = trace_sources(each, named, id_from) if is_path else []
        found += [open_input(run, name) for run in traces or [each]]
    return found


def open_input(data: Any, name: str = "") -> Given:  # noqa: ANN401
    """Return an input to be read."""
    kind, readable = kind_of(data), data
    if kind is Kind.ITERATOR:
        readable = list(data)
    elif kind is Kind.PATH and not os.path.isdir(data):  # noqa: PTH112 - errors mean no
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
) -> RunStream:
    """Return a run: a path, a table, {query: {doc: score}}, {query: [doc]}, or records.

    With `skip_bad` a record that cannot be read is left out and becomes a finding; the run is then
    read whole. Without it the first such record is an error. With `texts` the texts and offsets
    next to the ids are kept, with `about` everything that describes the queries. `names` is what
    names the queries: the `id` of a record, by default, or its `question` or its `position`, which
    are also used where a record has no id. Retrieved things may be objects of other frameworks
    (docs/inputs.md); `id_from` is the field that holds their ids, such as `metadata.chunk`. Of
    traces (docs/traces.md) `query_from` is the attribute that holds the ids of queries.
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
    )
    if kind in {Kind.PATH, Kind.SOURCE}:
        source = replace(Source.of(given) if kind is Kind.PATH else given, reading=reading)
        chosen = _format(source, "run", "traces" if hasattr(source, "calls") else format)
        if query_from is not None and chosen.name != "traces":
            raise _no_attributes(source.where)
        stream = chosen.run(source, name or source.name)
    else:
        from findwell.io.read import in_memory  # noqa: PLC0415
        from findwell.io.read.traces.run import TraceCalls, run_of_calls, trace_rows  # noqa: PLC0415

        FORMATS.known()  # plugins may bring shapes
        spans = trace_rows(data)
        if spans is not None:
            calls = TraceCalls.of_rows(spans, "run", id_from)
            stream = run_of_calls(calls, name or "run", reading, calls.lists[-1])
        elif query_from is not None:
            raise _no_attributes("run")
        else:
            stream = in_memory.run_from_objects(data, name or "run", reading=reading)
    stream = replace(stream, found=reading.findings)
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
) -> Gold:
    """Return the gold: a path, a table, {query: {doc: grade}}, {query: [doc | [doc, …]]}, records.

    A path may also be the folder of a BEIR dataset, or of a pool with labels, or its labels.db.
    Records may be one per pair, with a question, a chunk and a label, as `findwell.judges.card`
    takes them.
    """
    given: Any = data
    kind = kind_of(data)
    if kind is Kind.GOLD:
        return given  # type: ignore[no-any-return]
    reading = ReadContext(skip=skip_bad, texts=texts, id_from=id_from)
    if kind in {Kind.PATH, Kind.SOURCE}:
        if kind is Kind.PATH and os.path.isdir(given):  # noqa: PTH112 - errors mean no
            from findwell.io.read.beir import BeirFolder  # noqa: PLC0415

            if (beir := BeirFolder.at(given)) is not None:
                again = load_gold(beir.qrels, format=format, skip_bad=skip_bad, texts=texts)
                return beir.gold(again)
        source = _opened(given, reading)
        try:
            gold = _format(source, "gold", format).gold(source)
        except FindwellError as error:
            raise error.in_files({"gold": source.where})  # noqa: B904 - it is the same error
    else:
        from findwell.io.read import in_memory  # noqa: PLC0415

        FORMATS.known()  # plugins may bring shapes
        gold = in_memory.gold_from_objects(data, reading=reading)
    reading.check_rest(gold.n)
    found = reading.findings()
    return changed(gold, findings=(*gold.findings, *found)) if found else gold


def load_samples(
    data: PathLike | TableLike | Records,
    *,
    name: str = "",
    format: str | None = None,  # noqa: A002
    skip_bad: bool = False,
    texts: bool = False,
    id_from: str | None = None,
) -> Samples:
    """Return run and gold of records that hold both: a path, a table or a list of dicts."""
    refuse_after_fork()
    reading = ReadContext(skip=skip_bad, texts=texts, id_from=id_from)
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
    gold = replace(samples.gold, findings=(*samples.gold.findings, *reading.findings()))
    return replace(samples, gold=gold)


def _opened(data: Any, reading: ReadContext) -> Source:  # noqa: ANN401
    """Return a file to be read so, also one that was opened already."""
    if kind_of(data) is Kind.SOURCE:
        return replace(data, reading=reading)  # type: ignore[no-any-return]
    if os.path.isdir(data):  # noqa: PTH112 - errors mean no
        from findwell.io.read.labels_database import database_at  # noqa: PLC0415

        data = database_at(data) or data
    return Source.of(data, reading)


def _no_attributes(where: str) -> InputError:
    return InputError(
        "query_from (--read query_from) names an attribute of traces, and this run has no traces",
        where=where,
        fix="leave it out: records name their queries themselves",
    )


def _whole(stream: RunStream, reading: ReadContext) -> RunStream:
    """Read a run whole, so that it is known what was left out."""
    run = stream.collect()
    reading.check_rest(run.rows.height)
    batches = run.stream().batches
    return replace(stream, batches=batches, findings=run.findings, whole=run.rows, found=tuple)


def trace_sources(data: PathLike, named: str | None, id_from: str | None) -> list[TraceSource]:
    """Return the runs of a path of traces: one, or two where lists were reranked; else none."""
    if named is None and os.path.isfile(data) and Look.at(Source.of(data)).only_columns:  # noqa: PTH113
        return []
    from findwell.io.read.traces import run  # noqa: PLC0415

    return run.trace_sources(data, named, id_from)


def known_formats() -> dict[str, Format]:
    """Return the known formats by name, in the order in which they are tried."""
    import findwell.io.read.traces.run  # noqa: F401, PLC0415 - it registers traces

    return _in_order(FORMATS)


def _in_order(formats: Mapping[str, Format]) -> dict[str, Format]:
    return dict(sorted(formats.items(), key=lambda entry: (entry[1].order, entry[0])))


def _format(source: Source, role: str, named: str | None) -> Format:
    if named is None and (quick := _of_columns(Look.at(source), role)) is not None:
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
        raise InputError(
            "the file contains only blank lines and comments",
            where=source.where,
            fix="check what wrote the file",
        )
    other = next((name for name, entry in formats.items() if entry.sniff(look, role)), "")
    if other and role == "samples":
        raise _no_gold(other, source)
    raise _unrecognised(look, role, source, able, other)


def _unrecognised(
    look: Look, role: str, source: Source, able: Iterable[str], other: str
) -> InputError:
    """Return the error for a file of a format that no reader for this role knows."""
    foreign = look.foreign
    named_by = f"name it with --{'gold' if role == 'gold' else 'run'}-format: {', '.join(able)}"
    return InputError(
        f"the format of this {role} file was not recognised; it begins with {look.excerpt!r}"
        + (f" (it looks like {other}, which cannot hold a {role})" if other else "")
        + (f" (it is {foreign})" if foreign else ""),
        where=source.where,
        fix="save its content as text or Parquet, perhaps gzipped" if foreign else named_by,
    )


def _of_columns(look: Look, role: str) -> Format | None:
    """Find the format of a file that begins as those of TREC; no other of ours does (tested)."""
    if not look.only_columns:
        return None
    if not FORMATS.plugged:
        FORMATS.built_in("trec")  # its module registers those of judgements, too
        FORMATS.load_plugins()
    able = (entry for entry in _in_order(FORMATS.registered).values() if role in entry.roles)
    return next((entry for entry in able if entry.sniff(look, role)), None)


def _no_gold(name: str, source: Source) -> InputError:
    """Return the error for a file alone that cannot hold both run and gold."""
    from findwell.io.read.shapes import GIVE_GOLD  # noqa: PLC0415

    return InputError(
        f"a file of the format {name} does not hold both what was retrieved and what should be "
        "found",
        where=source.where,
        fix=f"give what should be found, too: {GIVE_GOLD}",
    )


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
]
