"""Traces as a run: each trace is a query, with what its retriever found, hop by hop.

Where a reranker followed, the lists before and after it are two runs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from findwell.core.data import Run, carried_facts
from findwell.core.errors import InputError
from findwell.core.findings import EXAMPLES, Finding, shorten
from findwell.core.frames import pl
from findwell.core.timing import timed
from findwell.io.read.format import Format, Look, ReadContext, Source, register_format
from findwell.io.read.objects import make_entries
from findwell.io.read.records import one_line
from findwell.io.read.tables import frame, pandas_columns, pandas_rows
from findwell.io.read.traces.decoding import (
    EXPLODED_COLUMNS,
    TraceReader,
    is_protobuf,
    is_request,
    read_all,
    read_rows,
)
from findwell.io.read.traces.exports import is_export
from findwell.io.read.traces.schema import RERANKER, RETRIEVER, number_hops, outermost
from findwell.io.read.traces.span import NO_FIELD, UNNAMED_DOCUMENT, parsed
from findwell.io.read.values import plain_columns

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator

    from findwell.core.data import RunStream
    from findwell.io.read.traces.schema import Decoded

RETRIEVED, RERANKED = "", "reranked"  # which lists of the traces: before or after a reranker
ID_COLUMNS = ("trace", "session", "user", "service")  # which --read query_from may name, too
CAPTURE = (
    "let the instrumentation record contents (docs/traces.md), or name the attribute that holds "
    "the id of the query with --read query_from (query_from=)"
)
SEARCHES = re.compile("retriev|search|vector|lookup|fetch", re.IGNORECASE)
UNTIMED_YEAR = 1970  # the year of calls whose times are not known
LOOKED_AT = 1000  # documents by which it is decided what stands next to their ids
SHOWN_ATTRIBUTES = 20  # attributes that become columns about the queries
# how JSON of traces begins, where its first record is too long to be seen whole
TRACE_BEGINNING = re.compile(
    rb'"(resourceSpans|resource_spans|run_type|span_kind|traceId|mlflow\.\w+)"'
)
BEGINNING = 4096
TABLES = (  # columns of CSV, Parquet and data frames
    frozenset({"traceId", "type", "startTime"}),
    frozenset({"trace_id", "type", "start_time"}),
    frozenset({"context.span_id", "span_kind"}),
    frozenset({"trace_id", "trace", "request_time"}),
    EXPLODED_COLUMNS,
)


@dataclass(frozen=True, slots=True)
class TraceCalls:
    """The retrieval calls of an input, what whole traces were asked, and what was wrong."""

    frame: pl.DataFrame
    asked: dict[str, Any]
    spans: int
    malformed: dict[str, int]
    where: str

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str] | Source,
        id_from: str | None,
        search_span: str | None = None,
    ) -> TraceCalls:
        """Read a file or a folder whole."""
        reader = TraceReader(id_from, asks=True, search_span=search_span)
        where = path.where if isinstance(path, Source) else str(path)
        return cls._of(read_all(path, reader), reader, where)

    @classmethod
    def of_rows(
        cls,
        rows: Iterable[dict[str, Any]],
        where: str,
        id_from: str | None,
        search_span: str | None = None,
    ) -> TraceCalls:
        """Read the rows of a table."""
        reader = TraceReader(id_from, asks=True, search_span=search_span)
        return cls._of(read_rows(rows, reader), reader, where)

    @classmethod
    def _of(cls, read: Iterable[Decoded], reader: TraceReader, where: str) -> TraceCalls:
        parts = list(read)
        malformed: dict[str, int] = {}
        for part in parts:
            for reason, count in part.malformed.items():
                malformed[reason] = malformed.get(reason, 0) + count
        frame = pl.concat([part.frame for part in parts])
        frame = frame.unique(["trace", "span"], keep="first", maintain_order=True)
        frame = number_hops(outermost(frame)).sort("time", "trace", "span")
        spans = sum(part.spans for part in parts)
        found = cls(frame, reader.tally.asked or {}, spans, malformed, where)
        if not frame.height:
            raise found.no_calls(reader.tally.names)
        search = reader.tally.search
        if search is not None and not reader.tally.searches:
            what = f"no span is named {search!r} (--read search_span)"
            fix = _search_named(reader.tally.names) + "leave search_span out"
            raise InputError(what, where=where, fix=fix)
        return found

    @property
    def lists(self) -> tuple[str, ...]:
        """Which lists there are: before a reranker, after it, or both."""
        found = self.frame.select(
            before=((pl.col("kind") == RETRIEVER) | (pl.col("inputs").list.len() > 0)).any(),
            after=(pl.col("kind") == RERANKER).any(),
        ).row(0)
        both = zip((RETRIEVED, RERANKED), found, strict=True)
        return tuple(each for each, there in both if there)

    def no_calls(self, names: Counter[str]) -> InputError:
        """Return the error for traces without a retrieval call; `names` are those of the spans."""
        reasons = "; ".join(f"{count} × {why}" for why, count in list(self.malformed.items())[:3])
        return InputError(
            f"no retrieval call among {self.spans} spans" + (f" ({reasons})" if reasons else ""),
            where=self.where,
            fix=_search_named(names)
            + "trace the retriever: docs/traces.md lists the spans that count as its calls",
        )


def _search_named(names: Counter[str]) -> str:
    """Return what to type where the search is a span of another type, with the likely name."""
    known = [name for name, _ in names.most_common() if name]
    if not known:
        return ""
    likely = next((name for name in known if SEARCHES.search(name)), known[0])
    listed = ", ".join(map(shorten, known[:EXAMPLES]))
    return (
        f"if the search is logged as a span of another type, name it: --read search_span="
        f"{shlex.quote(likely)} (search_span=; spans: {listed}); or "
    )


@dataclass(frozen=True, slots=True)
class TraceSource(Source):
    """One of the runs that a file or a folder of traces holds."""

    calls: TraceCalls | None = field(default=None, compare=False)
    lists: str = RETRIEVED

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The name of the file, and which of the lists."""
        name = Path(self.where).name if self.path.is_dir() else Source.name.__get__(self)
        return f"{name}-{self.lists}" if self.lists else name


def trace_sources(
    path: str | os.PathLike[str],
    named: str | None,
    id_from: str | None,
    search_span: str | None = None,
) -> list[TraceSource]:
    """Return the runs of an input that is traces: one, or two where lists were reranked.

    An input of another kind has none, and neither has a pipe, which is read as one run.
    """
    source: Source
    if os.path.isdir(path):  # noqa: PTH112 - no error where there is no such path
        source = Source(Path(path), str(path))
        if not _holds_traces(source.path, named):
            return []
        calls = TraceCalls.read(path, id_from, search_span)
    elif os.path.isfile(path):  # noqa: PTH113 - a pipe can be read only once
        source = Source.of(path)
        if named != Traces.name and (named is not None or not is_traces(Look.at(source))):
            return []
        calls = TraceCalls.read(source, id_from, search_span)
    else:
        return []
    return [
        TraceSource(source.path, source.given, source.reading, calls, each) for each in calls.lists
    ]


def _holds_traces(folder: Path, named: str | None) -> bool:
    """Tell by the first file of a folder whether it holds traces."""
    if named is not None:
        return named == Traces.name
    first = next((each for each in sorted(folder.rglob("*")) if each.is_file()), None)
    return first is not None and first.stat().st_size > 0 and is_traces(Look.at(Source.of(first)))


def is_traces(look: Look) -> bool:
    """Tell whether a file is one of traces, by its first record."""
    if look.columns:
        return is_trace_table(look.columns)
    head = look.head.lstrip()
    if head[:1] in (b"{", b"["):
        first = _first_record(head)
        if first is None:
            return bool(TRACE_BEGINNING.search(head[:BEGINNING]))
        return is_request(first) or is_export(first)
    if is_protobuf(look.head):
        return True
    if look.binary:
        return False
    names = look.head.partition(b"\n")[0].decode("utf-8", "replace").strip().replace('"', "")
    return is_trace_table(re.split("[,\t]", names))


def is_trace_table(columns: Iterable[str]) -> bool:
    """Tell by its columns whether a table is one of spans, as a tool exports them."""
    names = set(columns)
    return any(each <= names for each in TABLES)


def trace_rows(data: object) -> Iterator[dict[str, Any]] | None:
    """Return the rows of a data frame of spans, or of a list of them; None if it is neither."""
    if isinstance(data, list):
        return iter(data) if data and is_export(data[0]) else None
    if hasattr(data, "reset_index") and hasattr(
        data, "columns"
    ):  # pandas, whose cells may be anything
        return pandas_rows(data) if is_trace_table(pandas_columns(data)) else None
    table = frame(data) if hasattr(data, "__arrow_c_stream__") else None
    if table is None or not is_trace_table(table.columns):
        return None
    return table.iter_rows(named=True)


def _first_record(head: bytes) -> Any:  # noqa: ANN401
    """Return the first value of JSON, or the first of its list; None if it is not seen whole."""
    text = head.decode("utf-8", "replace").removeprefix("[").lstrip()
    try:
        found: Any = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None
    return found


@register_format
class Traces(Format):
    """Spans of OpenTelemetry and exports of tools that keep them."""

    name: ClassVar[str] = "traces"
    roles: ClassVar = frozenset({"run"})
    order: ClassVar[int] = 9  # before Parquet, which may hold spans

    def sniff(self, look: Look, role: str) -> bool:
        """Tell by the first record."""
        del role
        return is_traces(look)

    def run(self, source: Source, name: str) -> RunStream:
        """Read what was retrieved; where both lists are there, what came last, after a reranker."""
        if isinstance(source, TraceSource) and source.calls is not None:
            calls, lists = source.calls, source.lists
        else:
            reading = source.reading
            calls = TraceCalls.read(source, reading.id_from, reading.search_span)
            lists = calls.lists[-1]
        return run_of_calls(calls, name, source.reading, lists)


def run_of_calls(
    calls: TraceCalls, name: str, reading: ReadContext, lists: str = RETRIEVED
) -> RunStream:
    """Return the run of retrieval calls: one query per trace, in the order of their times."""
    _refuse_positions(reading, calls.where)
    findings = [_malformed(why, count) for why, count in calls.malformed.items()]
    known = _with_names(calls, reading, findings)
    if lists == RETRIEVED:
        known = _with_inputs(known)
    listed = known.filter(pl.col("docs").is_not_null())
    omitted = known.height - listed.height
    findings += _omission_finding(omitted, "# retrieval call|calls has|have no documents.")
    if not listed.height:
        raise InputError(
            "the spans do not say which documents were retrieved", where=calls.where, fix=CAPTURE
        )
    chosen = _chosen(listed, lists)
    rows = _rows(chosen, reading)
    run = Run(name, rows, "listed", tuple(findings), _about(chosen, listed, reading, lists))
    return replace(
        run.stream(),
        named_by="question" if reading.query_from is None else "id",
        carries=_carries(chosen) if not reading.texts else carried_facts(rows),
    )


def _carries(chosen: pl.DataFrame) -> frozenset[str]:
    """Return what some calls say next to the ids of documents."""
    lists = ["docs", "texts", "doc_metadata"]
    flat = chosen.select(lists).explode(lists, empty_as_null=False).head(LOOKED_AT)
    return carried_facts(_places(flat).hstack(flat.select(doc="docs")))


def _refuse_positions(reading: ReadContext, where: str) -> None:
    """Refuse to join calls and gold by their positions: no one asks in the order of gold labels."""
    if reading.names == "position":
        raise InputError(
            "these traces cannot be matched with the gold: they hold questions, it only has ids",
            where=where,
            fix="give gold labels whose queries have a question, or name the attribute of the "
            "spans that holds the id of the query with --read query_from (query_from=)",
        )


def _omission_finding(count: int, message: str) -> list[Finding]:
    return [Finding("incomplete-trace", count, (), message, CAPTURE)] if count else []


def _malformed(why: str, count: int) -> Finding:
    fixes = {
        NO_FIELD: "name another field with --read id_from (id_from=)",
        UNNAMED_DOCUMENT: CAPTURE,
    }
    message = f"# part|parts of the traces is|are left out or cut: {why.partition(': ')[0]}."
    fix = fixes.get(why, "check what wrote the traces")
    return Finding("malformed-trace", count, (), message, fix)


def _with_names(calls: TraceCalls, reading: ReadContext, findings: list[Finding]) -> pl.DataFrame:
    """Return the calls of each trace that has a name, with the name of its query.

    A trace of several hops is named by what the application was asked, where that is known, since
    each hop has a question of its own.
    """
    frame = calls.frame
    names = _ids(frame, str(reading.query_from)) if reading.query_from else _questions(calls)
    named = frame.with_columns(query=pl.Series(names, dtype=pl.String))
    named = named.with_columns(query=pl.col("query").drop_nulls().first().over("trace"))
    known = named.filter(pl.col("query").is_not_null())
    lacking = named["trace"].n_unique() - known["trace"].n_unique()
    what = "a question" if reading.query_from is None else f"the attribute {reading.query_from!r}"
    if not known.height:
        raise InputError(f"none of the spans has {what}", where=calls.where, fix=CAPTURE)
    findings += _omission_finding(lacking, f"# trace|traces lacks|lack {what}.")
    traces = known.unique("trace", keep="first", maintain_order=True).select("trace", "query")
    nth = pl.int_range(1, pl.len() + 1).over("query")
    again = traces.filter(nth > 1)["query"]
    if len(again):
        findings.append(
            Finding(
                "asked-again",
                len(again),
                tuple(shorten(text) for text in again.unique(maintain_order=True)[:EXAMPLES]),
                "# trace|traces repeats|repeat an earlier query; the first one counts.",
                "give the traces of one period, or of one version of the application",
            )
        )
    numbered = pl.when(nth == 1).then("query").otherwise(pl.format("{} ({})", "query", nth))
    traces = traces.select("trace", query=numbered)
    return known.drop("query").join(traces, on="trace", maintain_order="left")


def _questions(calls: TraceCalls) -> list[str | None]:
    """Return the question of each call: its own, or of several hops that of the application."""
    frame, asked = calls.frame, calls.asked
    hops = frame.select(pl.col("hop").max().over("trace"))["hop"]
    question = TraceReader().parts.question
    found = []
    for trace, own, several in zip(frame["trace"], frame["question"], hops > 0, strict=True):
        text = question(asked.get(trace)) if several else None
        text = text or own
        found.append(one_line(text) if text and text.strip() else None)
    return found


def _ids(frame: pl.DataFrame, path: str) -> list[str | None]:
    """Return what an attribute of each call holds, or a field of JSON in one."""
    if path in ID_COLUMNS:
        return frame[path].to_list()
    found: list[str | None] = []
    head, _, rest = path.partition(".")
    for listed in frame["attributes"]:
        given = {each["key"]: each["value"] for each in listed}
        value = given.get(path)
        if value is None and rest:
            held = parsed(given.get(head))
            value = held.get(rest) if isinstance(held, dict) else None
        found.append(None if value is None else str(value).strip() or None)
    return found


def _with_inputs(known: pl.DataFrame) -> pl.DataFrame:
    """Take what went into a reranker for what was retrieved, if no retriever has that."""
    listed = known.filter((pl.col("kind") == RETRIEVER) & pl.col("docs").is_not_null())
    before = known.filter((pl.col("kind") == RERANKER) & (pl.col("inputs").list.len() > 0))
    before = before.join(listed, on=["trace", "hop"], how="anti", maintain_order="left")
    before = before.unique(["trace", "hop"], keep="first", maintain_order=True)
    nothing = {"scores": pl.Float64, "texts": pl.String, "doc_metadata": pl.String}
    before = before.with_columns(
        pl.lit(RETRIEVER).alias("kind"),
        pl.lit(None, pl.Float64).alias("latency_ms"),
        pl.col("inputs").alias("docs"),
        *(
            pl.col("inputs").list.eval(pl.lit(None, dtype)).alias(name)
            for name, dtype in nothing.items()
        ),
    )
    return pl.concat([known, before]).sort("time", "trace", "span") if before.height else known


def _chosen(listed: pl.DataFrame, lists: str) -> pl.DataFrame:
    """Return one call per hop: that of the retriever, or of the reranker after it."""
    if lists == RETRIEVED:
        return listed.filter(pl.col("kind") == RETRIEVER)
    return (
        listed.sort(pl.col("kind") == RERANKER, maintain_order=True)
        .unique(["trace", "hop"], keep="last", maintain_order=True)
        .sort("time", "trace", "hop")
    )


def _rows(chosen: pl.DataFrame, reading: ReadContext) -> pl.DataFrame:
    """Return one row per document, query by query, hop by hop."""
    starts = chosen.group_by("trace", maintain_order=True).agg(pl.len().alias("calls"))
    ordered = (
        starts.with_row_index("nth")
        .join(chosen, on="trace", maintain_order="left")
        .sort("nth", "hop", maintain_order=True)
    )
    several = bool((ordered["calls"] > 1).any())
    hop = pl.int_range(1, pl.len() + 1).over("nth")
    ordered = ordered.with_columns(hop=hop, calls=pl.col("calls").cast(pl.Int64))
    lists = ["docs", "scores", "texts", "doc_metadata"]
    # an empty list is a row without a document, unless another hop found some
    flat = ordered.select("query", *lists, "hop", "calls")
    flat = flat.explode(lists, empty_as_null=True, keep_nulls=True)
    filled = pl.col("docs").is_not_null()
    flat = flat.filter(filled | ~filled.any().over("query") & (pl.col("hop") == 1))
    rows = flat.select("query", doc="docs", score="scores")
    if reading.texts:
        rows = rows.hstack(_places(flat))
    if several:
        rows = rows.hstack(flat.select("hop", "calls"))
    # documents that are known by their texts only
    hashed = flat.filter(pl.col("docs").str.contains(r"^text-[0-9a-f]{16}$"))["texts"].drop_nulls()
    reading.notes.hashed += [shorten(text) for text in hashed]
    return rows


def _places(flat: pl.DataFrame) -> pl.DataFrame:
    """Return texts, and their positions in their documents, as the metadata says."""
    found: list[tuple[Any, ...]] = []
    for doc, text, metadata in flat.select("docs", "texts", "doc_metadata").iter_rows():
        held = parsed(metadata)
        entry: dict[str, Any] = {}
        if doc is not None and isinstance(held, dict):
            entry = make_entries(
                [{"id": doc, "page_content": text or "", "metadata": held}],
                id_from=None,
                notes=ReadContext().notes,
            )[0]
        found.append((text, entry.get("start"), entry.get("end"), entry.get("source")))
    schema = {"text": pl.String, "start": pl.Int64, "end": pl.Int64, "source": pl.String}
    return pl.DataFrame(found, schema=schema, orient="row")


def _about(
    chosen: pl.DataFrame, listed: pl.DataFrame, reading: ReadContext, lists: str
) -> pl.DataFrame:
    """Return one row per query: how long it took in all, errors, and what describes it."""
    counted = listed if lists == RERANKED else chosen
    first = ("question", "time", "service", "session", "user", "convention")
    about = counted.group_by("query", maintain_order=True).agg(
        pl.col("latency_ms").sum() / (pl.col("latency_ms").count() == pl.len()),
        pl.col("error").drop_nulls().first(),
        *(pl.col(name).first() for name in first),
        attributes=pl.col("attributes").first(),
    )
    finite, known = pl.col("latency_ms").is_finite(), pl.col("time").dt.year() > UNTIMED_YEAR
    about = about.with_columns(pl.when(finite).then("latency_ms"), pl.when(known).then("time"))
    attributes = about["attributes"]
    about = about.drop("attributes")
    if not about["error"].count():
        about = about.drop("error")
    if not reading.about:
        return timed(about)
    return plain_columns(about.hstack(_columns(attributes, about.columns)))


def _columns(attributes: pl.Series, taken: list[str]) -> pl.DataFrame:
    """Return the attributes that most calls have as columns, to slice by."""
    flat = attributes.to_frame("each").with_row_index("row").explode("each").drop_nulls()
    flat = flat.unnest("each").filter(~pl.col("key").is_in(taken))
    names = flat["key"].value_counts(sort=True)["key"].head(SHOWN_ATTRIBUTES).to_list()
    rows = pl.DataFrame({"row": pl.Series(range(len(attributes)), dtype=pl.UInt32)})
    for name in sorted(names):
        held = (
            flat.filter(pl.col("key") == name)
            .unique("row")
            .select("row", pl.col("value").alias(name))
        )
        rows = rows.join(held, on="row", how="left", maintain_order="left")
    return rows.drop("row")
