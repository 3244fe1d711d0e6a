"""Records of spans and calls: exports of Phoenix, Langfuse, LangSmith and MLflow, and plain ones.

A record of a tool becomes a span with the attributes that the tool's own exporter would give it;
`EXPORTS` has the names of their fields. Plain records of calls any program can write, one per line
of JSON:

{"question": "…", "retrieved": ["d1", "d2"], "latency_ms": 12.5, "time": "2026-08-01T10:00:00Z"}
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from findwell.core.timing import DURATIONS
from findwell.io.read.traces.conventions import BROKEN_ERRORS, SpanForm, retrieval_spans
from findwell.io.read.traces.schema import RERANKER
from findwell.io.read.traces.span import (
    DEPTH,
    NESTED,
    NOT_A_SPAN,
    MalformedSpanError,
    Span,
    hex_id,
    nanoseconds,
    parsed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from findwell.io.read.traces.schema import RetrievalCall
    from findwell.io.read.traces.span import Said, SpanTally, TakenParts

Record: TypeAlias = Mapping[str, Any]

# objects that hold a list of records, as the interfaces of these tools answer
HOLDERS = ("spans", "observations", "traces", "runs", "data", "items", "child_runs")
FAILED_STATES = ("ERROR", "STATUS_CODE_ERROR", "error")


@dataclass(frozen=True, slots=True)
class Export:
    """The fields of a tool's records; the first of several names that has a value counts."""

    trace: tuple[str, ...]
    span: tuple[str, ...]
    parent: tuple[str, ...]
    start: tuple[str, ...] = ("start_time",)
    end: tuple[str, ...] = ("end_time",)
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def read(self, record: Record, attributes: Record, error: object = None) -> Span:
        """Return the span of a record, with further attributes."""
        given = {name: _first(record, *names) for name, names in self.attributes.items()}
        return Span(
            hex_id(_first(record, *self.trace)),
            hex_id(_first(record, *self.span)),
            hex_id(_first(record, *self.parent)) or None,
            str(record.get("name") or ""),
            nanoseconds(_first(record, *self.start)),
            nanoseconds(_first(record, *self.end)),
            {**given, **attributes},
            None if error is None else str(error) or "error",
        )


PHOENIX = Export(("context.trace_id",), ("context.span_id",), ("parent_id",))
LANGFUSE = Export(  # names of the API (as in traceId), and of a bucket (as in trace_id)
    ("traceId", "trace_id"),
    ("id", "observationId"),
    ("parentObservationId", "parent_observation_id"),
    ("startTime", "start_time"),
    ("endTime", "end_time"),
    {
        "langfuse.observation.type": ("type",),
        "langfuse.observation.input": ("input",),
        "langfuse.observation.output": ("output",),
        "langfuse.session.id": ("sessionId", "session_id"),
        "langfuse.user.id": ("userId", "user_id"),
        "langfuse.environment": ("environment",),
        "langfuse.release": ("release",),
        "langfuse.version": ("version",),
    },
)
LANGSMITH = Export(
    ("trace_id", "id"),
    ("id",),
    ("parent_run_id",),
    attributes={
        "langsmith.span.kind": ("run_type",),
        "gen_ai.prompt": ("inputs",),
        "gen_ai.completion": ("outputs",),
        "langsmith.trace.session_name": ("session_name", "session_id"),
        "langsmith.span.tags": ("tags",),
    },
)
MLFLOW = Export(  # version 2 wrote a context
    ("context.trace_id", "context.request_id", "trace_id", "request_id"),
    ("context.span_id", "span_id"),
    ("parent_span_id", "parent_id"),
    ("start_time_unix_nano", "start_time"),
    ("end_time_unix_nano", "end_time"),
)
MLFLOW_KEPT = ("mlflow.trace.session", "mlflow.trace.user", "mlflow.source.git.commit")


def spans_of_record(record: object, tally: SpanTally, depth: int = 0) -> list[Span] | None:
    """Return the spans of retrieval calls of a record; None where it is of none of these tools."""
    if not isinstance(record, Mapping):
        return None
    for fits, read in EXPORTS:
        if fits(record):
            spans = list(retrieval_spans(_until_broken(read(record), tally), SpanForm(), tally))
            inside = parsed(record.get("child_runs"))
            return spans + ((_held(inside, tally, depth) or []) if isinstance(inside, list) else [])
    for name in HOLDERS:
        held = parsed(record.get(name))
        if isinstance(held, list) and held and isinstance(held[0], Mapping):
            return _held(held, tally, depth)
    return None


def is_export(record: object) -> bool:
    """Tell whether a record is one of these tools, or holds such records."""
    for _ in range(DEPTH):
        if not isinstance(record, Mapping):
            return False
        if any(fits(record) for fits, _ in EXPORTS):
            return True
        held = (parsed(record.get(name)) for name in HOLDERS)
        record = next((each[0] for each in held if isinstance(each, list) and each), None)
    return False


def _held(records: Iterable[object], tally: SpanTally, depth: int) -> list[Span] | None:
    if depth >= DEPTH:
        tally.malformed[NESTED] += 1
        return []
    each = [spans_of_record(record, tally, depth + 1) for record in records]
    if all(spans is None for spans in each):
        return None
    return [span for spans in each for span in spans or ()]


def _until_broken(spans: Iterable[Span], tally: SpanTally) -> Iterator[Span]:
    """Return spans up to one that cannot be read, which is counted."""
    try:
        yield from spans
    except MalformedSpanError as error:
        tally.spans += 1
        tally.malformed[str(error)] += 1
    except BROKEN_ERRORS:
        tally.spans += 1
        tally.malformed[NOT_A_SPAN] += 1


def _first(record: Record, *names: str) -> Any:  # noqa: ANN401
    """Return what stands under the first of these names that has a value."""
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


def _with_context(record: Record) -> Record:
    """Return a record whose context stands under names such as context.span_id."""
    context = record.get("context")
    return {**record, **flat(context, "context")} if isinstance(context, Mapping) else record


def flat(nested: object, prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Return nested attributes under dotted names; lists stay.

    >>> flat({"input": {"value": "How?"}, "session.id": "s1"})
    {'input.value': 'How?', 'session.id': 's1'}
    """
    if depth >= DEPTH:
        raise MalformedSpanError(NESTED)
    found: dict[str, Any] = {}
    for key, value in nested.items() if isinstance(nested, Mapping) else ():
        name = f"{prefix}.{key}" if prefix else str(key)
        found |= flat(value, name, depth + 1) if isinstance(value, Mapping) else {name: value}
    return found


def _is_phoenix(record: Record) -> bool:
    context = record.get("context")
    named = isinstance(context, Mapping) and "span_id" in context
    return "span_kind" in record and (named or "context.span_id" in record)


def _phoenix(record: Record) -> Iterator[Span]:
    """Read a span of Phoenix: of its API, its client, or a row of its data frame."""
    attributes = flat(parsed(record.get("attributes")) or {})
    for column, value in record.items():
        name = column.removeprefix("attributes.")
        if name != column and value is not None:
            held = _unwritten(value)
            attributes |= flat(held, name) if isinstance(held, Mapping) else {name: held}
    attributes["openinference.span.kind"] = record["span_kind"]
    failed = record.get("status_code") in FAILED_STATES
    error = (record.get("status_message") or "error") if failed else None
    span = PHOENIX.read(_with_context(record), attributes, error)
    span.resource = {"service.name": record.get("project_name")}
    for each in parsed(record.get("annotations")) or ():
        if isinstance(each, Mapping):
            result = each.get("result")
            held = result if isinstance(result, Mapping) else each
            kind = each.get("annotator_kind")
            span.said.append((each.get("name"), held.get("score"), held.get("label"), kind))
    yield span


def _unwritten(value: object) -> Any:  # noqa: ANN401
    """Return a value of a cell: JSON, or what pandas writes of lists and dicts to CSV.

    >>> _unwritten("[{'document.id': 'd7', 'document.score': nan}]")
    [{'document.id': 'd7', 'document.score': None}]
    """
    held = parsed(value)
    if not isinstance(held, str) or held[:2] not in ("[{", "{'", '{"', "[]"):
        return held
    try:
        return ast.literal_eval(_Constants().visit(ast.parse(held, mode="eval")))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return held


class _Constants(ast.NodeTransformer):
    """Takes names, of which `nan` is what pandas writes for nothing, as None."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Constant(None), node)


def _is_langfuse(record: Record) -> bool:
    return (
        "type" in record
        and _first(record, *LANGFUSE.trace) is not None
        and ("startTime" in record or "start_time" in record)
        and "run_type" not in record
    )


def _langfuse(record: Record) -> Iterator[Span]:
    """Read an observation, whose scores are a list, or lists of values by name."""
    metadata = flat(parsed(record.get("metadata")), "langfuse.observation.metadata")
    failed = record.get("level") in FAILED_STATES
    error = (_first(record, "statusMessage", "status_message") or "error") if failed else None
    span = LANGFUSE.read(record, metadata, error)
    span.said += _langfuse_said(parsed(record.get("scores")))
    yield span


def _langfuse_said(held: object) -> list[Said]:
    if isinstance(held, Mapping):
        values = ((name, each) for name, each in held.items())
        lists = ((name, each if isinstance(each, list) else [each]) for name, each in values)
        return [(name, value, value, None) for name, each in lists for value in each]
    return [
        (each.get("name"), each.get("value"), each.get("stringValue"), each.get("source"))
        for each in (held if isinstance(held, list) else ())
        if isinstance(each, Mapping)
    ]


def _is_langfuse_trace(record: Record) -> bool:
    held = parsed(record.get("observations"))
    return isinstance(held, list) and bool(held) and isinstance(held[0], Mapping)


def _langfuse_trace(record: Record) -> Iterator[Span]:
    """Read a trace with its observations and scores, as it is downloaded from a trace's page."""
    of_trace = record.get("trace")
    about = {**(of_trace if isinstance(of_trace, Mapping) else {}), **record}
    scores = [each for each in parsed(record.get("scores")) or () if isinstance(each, Mapping)]
    for each in parsed(record["observations"]):
        whole = {
            **{name: about.get(name) for name in ("sessionId", "userId", "release", "version")},
            "traceId": about.get("id"),
            **each,
            "scores": [score for score in scores if score.get("observationId") == each.get("id")],
        }
        yield from _langfuse(whole)


def _langsmith(record: Record) -> Iterator[Span]:
    """Read a run of LangSmith."""
    extra = parsed(record.get("extra"))
    metadata = extra.get("metadata") if isinstance(extra, Mapping) else None
    span = LANGSMITH.read(record, flat(metadata, "langsmith.metadata"), record.get("error") or None)
    stats = parsed(record.get("feedback_stats"))
    for name, each in stats.items() if isinstance(stats, Mapping) else ():
        if isinstance(each, Mapping):
            span.said.append((name, each.get("avg"), None, None))
    yield span


def _mlflow_trace(record: Record) -> Any:  # noqa: ANN401
    """Return a trace of MLflow: its JSON, or that in a row of `search_traces`."""
    return parsed(record["trace"]) if isinstance(record.get("trace"), str) else record


def _is_mlflow(record: Record) -> bool:
    held = _mlflow_trace(record)
    data = held.get("data") if isinstance(held, Mapping) else None
    return isinstance(data, Mapping) and isinstance(data.get("spans"), list)


def _mlflow(record: Record) -> Iterator[Span]:
    """Read a trace of MLflow."""
    held = _mlflow_trace(record)
    info = held.get("info") or {}
    about = info.get("trace_metadata") or info.get("request_metadata") or {}
    tags = info.get("tags") or {}
    for each in held["data"]["spans"]:
        attributes = {name: parsed(value) for name, value in (each.get("attributes") or {}).items()}
        for name, value in (*about.items(), *tags.items()):
            if name in MLFLOW_KEPT or not name.startswith("mlflow."):
                attributes.setdefault(name, value)
        status = each.get("status") or each.get("status_code")
        code = status.get("code") if isinstance(status, Mapping) else status
        message = status.get("message") if isinstance(status, Mapping) else None
        whole = _with_context(each)
        error = (message or "error") if code in FAILED_STATES else None
        span = MLFLOW.read(whole, attributes, error)
        span.said += _mlflow_said(info.get("assessments"), str(_first(whole, *MLFLOW.span)))
        yield span


def _mlflow_said(assessments: object, span: str) -> list[Said]:
    said: list[Said] = []
    for each in assessments if isinstance(assessments, list) else ():
        feedback = each.get("feedback") if isinstance(each, Mapping) else None
        if not isinstance(feedback, Mapping) or each.get("span_id") not in (None, "", span):
            continue
        value, source = feedback.get("value"), each.get("source")
        kind = source.get("source_type") if isinstance(source, Mapping) else None
        label = value if isinstance(value, str) else None
        said.append((_first(each, "assessment_name", "name"), value, label, kind))
    return said


EXPORTS: tuple[tuple[Callable[[Record], bool], Callable[[Record], Iterable[Span]]], ...] = (
    (lambda record: "run_type" in record and "id" in record, _langsmith),
    (_is_phoenix, _phoenix),
    (_is_mlflow, _mlflow),
    (_is_langfuse, _langfuse),
    (_is_langfuse_trace, _langfuse_trace),
)

# plain records

CONVENTION = "plain"
STEP = 1000  # nanoseconds between two calls of a record that has no times of their own
NO_LATENCY = "latency below 0 or without end: left out"
NAMES = {
    "question": ("question", "query_text", "user_input", "query", "input"),
    "retrieved": ("retrieved", "documents", "docs", "results", "retrieved_contexts", "contexts"),
    "reranked": ("reranked",),
    "time": ("time", "timestamp", "start_time", "created_at", "ts", "date"),
    "trace": ("trace", "trace_id"),
    "span": ("span", "span_id"),
    "parent": ("parent", "parent_id", "parent_span_id"),
    "error": ("error", "exception"),
    "service": ("service", "service.name"),
    "session": ("session", "session_id", "session.id"),
    "user": ("user", "user_id", "user.id"),
}
KNOWN_FIELDS = frozenset(name for names in NAMES.values() for name in names) | {"hops", *DURATIONS}


def is_plain_call(record: object) -> bool:
    """Tell whether a record says what was retrieved."""
    names = (*NAMES["retrieved"], "hops")
    return isinstance(record, Mapping) and any(name in record for name in names)


def _get(record: Record, name: str) -> Any:  # noqa: ANN401
    return _first(record, *NAMES[name])


def read_plain(record: Mapping[str, Any], parts: TakenParts) -> list[RetrievalCall]:
    """Return the calls of a record: one, or one per hop, and one more where it was reranked.

    A record without ids is known by a hash of itself, so that it counts once however often it is
    read.
    """
    whole = json.dumps(record, ensure_ascii=False, sort_keys=True, default=str)
    digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()
    trace = hex_id(_get(record, "trace")) or digest[:32]
    given = hex_id(_get(record, "span"))
    span = given or digest[32:48]
    start = nanoseconds(_get(record, "time"))
    hops = parsed(record.get("hops"))
    if not isinstance(hops, list):
        return _calls(record, Span(trace, span, None, "", start, -1, {}), parts)
    begin = _id_from_name(given)[:8] if given else span[:8]  # ids that are given may begin alike
    # what the record says of all hops together is not true of each
    apart = ("hops", "reranked", *(DURATIONS if len(hops) > 1 else ()))
    common = {key: each for key, each in record.items() if key not in apart}
    calls: list[RetrievalCall] = []
    for number, hop in enumerate(hops):
        each = hop if isinstance(hop, Mapping) else {"retrieved": hop}
        own = nanoseconds(_get(each, "time")) or start
        if own and calls:  # after what came before it, its reranker included
            own = max(own, calls[-1].time * 1000 + STEP)
        name = hex_id(_get(each, "span")) or f"{begin}{number:08x}"
        calls += _calls({**common, **each}, Span(trace, name, None, "", own, -1, {}), parts)
    if calls and "reranked" in record:
        found = {doc.id: None for call in calls for doc in call.docs or () if call.kind != RERANKER}
        after = Span(trace, _id_from_name(span)[:16], None, "", calls[-1].time * 1000, -1, {})
        calls.append(_reranked(record, _begun(record, after), list(found), parts))
    return calls


def _id_from_name(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _calls(record: Mapping[str, Any], span: Span, parts: TakenParts) -> list[RetrievalCall]:
    call = _call(record, _begun(record, span), parts)
    call.latency_ms = _latency(record, parts)
    call.docs = parts.documents(_get(record, "retrieved"), span.span)
    if "reranked" not in record:
        return [call]
    span.span = _id_from_name(span.span)[:16]
    return [call, _reranked(record, span, [doc.id for doc in call.docs or ()], parts)]


def _begun(record: Mapping[str, Any], span: Span) -> Span:
    """Put into a span what its record says about it."""
    span.convention = CONVENTION
    span.parent = hex_id(_get(record, "parent")) or None
    span.attributes = flat({key: each for key, each in record.items() if key not in KNOWN_FIELDS})
    error = _get(record, "error")
    span.error = None if error in (None, False) else str(error)
    return span


def _call(record: Mapping[str, Any], span: Span, parts: TakenParts) -> RetrievalCall:
    call = parts.begin_call(span, taken=lambda _: False)
    call.question = parts.question(_get(record, "question"))
    call.service, call.session, call.user = (
        parts.name(_get(record, name)) for name in ("service", "session", "user")
    )
    return call


def _reranked(
    record: Mapping[str, Any], span: Span, before: list[str], parts: TakenParts
) -> RetrievalCall:
    """Return the call of the reranker, just after that of this span."""
    span.start += STEP
    call = _call(record, span, parts)
    call.kind, call.inputs = RERANKER, before
    call.docs = parts.documents(record["reranked"], span.span)
    return call


def _latency(record: Mapping[str, Any], parts: TakenParts) -> float | None:
    """Return how long it took, in milliseconds, under the first name that has a unit."""
    for name, unit in DURATIONS.items():
        if isinstance(record.get(name), int | float) and not isinstance(record[name], bool):
            with contextlib.suppress(OverflowError):  # an integer of a thousand digits
                taken = float(record[name]) * unit
                if 0 <= taken < math.inf:
                    return taken
            parts.malformed[NO_LATENCY] += 1
            return None
    return None
