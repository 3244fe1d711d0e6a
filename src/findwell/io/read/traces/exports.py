"""Records that tools export: of Phoenix, Langfuse, LangSmith and MLflow.

Each becomes a span with the attributes that the tool's own exporter would give it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from findwell.io.read.traces.recognition import convention_of
from findwell.io.read.traces.span import (
    DEPTH,
    NESTED,
    NO_ID,
    NOT_A_SPAN,
    MalformedSpanError,
    Span,
    hex_id,
    nanoseconds,
    parsed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from findwell.io.read.traces.span import Said, SpanTally

    Record = Mapping[str, Any]

# objects that hold a list of records, as the interfaces of these tools answer
HOLDERS = ("spans", "observations", "traces", "runs", "data", "items", "child_runs")
FAILED = ("ERROR", "STATUS_CODE_ERROR", "error")


def spans_of_record(record: object, tally: SpanTally, depth: int = 0) -> list[Span] | None:
    """Return the spans of retrieval calls of a record; None where it is of none of these tools."""
    if not isinstance(record, Mapping):
        return None
    for fits, read in EXPORTS:
        if fits(record):
            return list(_read(record, read, tally, depth))
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


def _read(
    record: Record,
    read: Callable[[Record], Iterable[Span]],
    tally: SpanTally,
    depth: int,
) -> Iterator[Span]:
    """Return spans of retrieval calls, those of runs inside this one included."""
    try:
        for span in read(record):
            tally.count_span()
            span.convention = convention_of(span.attributes, lambda value: value, span.name)
            if not span.convention:
                if span.parent is None:
                    tally.note_root(span.trace, span.attributes, lambda value: value)
            elif span.trace and span.span:
                yield span
            else:
                tally.malformed[NO_ID] += 1
    except MalformedSpanError as error:
        tally.spans += 1
        tally.malformed[str(error)] += 1
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        tally.spans += 1
        tally.malformed[NOT_A_SPAN] += 1
    inside = parsed(record.get("child_runs"))
    if isinstance(inside, list):
        yield from _held(inside, tally, depth) or ()


def _first(record: Record, *names: str) -> Any:  # noqa: ANN401
    """Return what stands under the first of these names that has a value."""
    for name in names:
        value = record.get(name)
        if value is not None and value != "":
            return value
    return None


def _span(  # noqa: PLR0917
    ids: tuple[object, object, object],
    name: object,
    start: object,
    end: object,
    attributes: dict[str, Any],
    error: object = None,
) -> Span:
    """Return a span; `ids` are those of trace, span and parent."""
    trace, span, parent = map(hex_id, ids)
    times = nanoseconds(start), nanoseconds(end)
    reason = None if error is None else str(error) or "error"
    return Span(trace, span, parent or None, str(name or ""), *times, attributes, reason)


def _is_phoenix(record: Record) -> bool:
    context = record.get("context")
    return "span_kind" in record and (
        (isinstance(context, Mapping) and "span_id" in context) or "context.span_id" in record
    )


def _phoenix(record: Record) -> Iterator[Span]:
    """Read a span of Phoenix: of its API, its client, or a row of its data frame."""
    context = record.get("context") or {}
    attributes = flat(parsed(record.get("attributes")) or {})
    for column, value in record.items():
        name = column.removeprefix("attributes.")
        if name != column and value is not None:
            held = _unwritten(value)
            attributes |= flat(held, name) if isinstance(held, Mapping) else {name: held}
    attributes["openinference.span.kind"] = record["span_kind"]
    failed = record.get("status_code") in FAILED
    span = _span(
        (
            _first(context, "trace_id") or record.get("context.trace_id"),
            _first(context, "span_id") or record.get("context.span_id"),
            record.get("parent_id"),
        ),
        record.get("name"),
        record.get("start_time"),
        record.get("end_time"),
        attributes,
        (record.get("status_message") or "error") if failed else None,
    )
    span.said += _phoenix_said(record)
    span.resource = {"service.name": record.get("project_name")}
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


def _phoenix_said(record: Record) -> list[Said]:
    said: list[Said] = []
    for each in parsed(record.get("annotations")) or ():
        if isinstance(each, Mapping):
            result = each.get("result")
            held = result if isinstance(result, Mapping) else each
            kind = each.get("annotator_kind")
            said.append((each.get("name"), held.get("score"), held.get("label"), kind))
    return said


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
        if isinstance(value, Mapping):
            found |= flat(value, name, depth + 1)
        else:
            found[name] = value
    return found


def _is_langfuse(record: Record) -> bool:
    return (
        "type" in record
        and _first(record, "traceId", "trace_id") is not None
        and ("startTime" in record or "start_time" in record)
        and "run_type" not in record
    )


def _langfuse(record: Record) -> Iterator[Span]:
    """Read an observation: of the API (names as in traceId) or of a bucket (as in trace_id)."""
    attributes = {
        "langfuse.observation.type": record.get("type"),
        "langfuse.observation.input": record.get("input"),
        "langfuse.observation.output": record.get("output"),
        "langfuse.session.id": _first(record, "sessionId", "session_id"),
        "langfuse.user.id": _first(record, "userId", "user_id"),
        "langfuse.environment": record.get("environment"),
        "langfuse.release": record.get("release"),
        "langfuse.version": record.get("version"),
        **flat(parsed(record.get("metadata")), "langfuse.observation.metadata"),
    }
    failed = record.get("level") in FAILED
    span = _span(
        (
            _first(record, "traceId", "trace_id"),
            _first(record, "id", "observationId"),
            _first(record, "parentObservationId", "parent_observation_id"),
        ),
        record.get("name"),
        _first(record, "startTime", "start_time"),
        _first(record, "endTime", "end_time"),
        attributes,
        (_first(record, "statusMessage", "status_message") or "error") if failed else None,
    )
    span.said += _langfuse_said(record.get("scores"))
    yield span


def _langfuse_said(scores: object) -> list[Said]:
    """Return the scores of an observation: a list of them, or lists of values by name."""
    held = parsed(scores)
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
    attributes = {
        "langsmith.span.kind": record.get("run_type"),
        "gen_ai.prompt": record.get("inputs"),
        "gen_ai.completion": record.get("outputs"),
        "langsmith.trace.session_name": _first(record, "session_name", "session_id"),
        "langsmith.span.tags": record.get("tags"),
        **flat(metadata, "langsmith.metadata"),
    }
    error = record.get("error")
    span = _span(
        (
            _first(record, "trace_id", "id"),
            record.get("id"),
            record.get("parent_run_id"),
        ),
        record.get("name"),
        record.get("start_time"),
        record.get("end_time"),
        attributes,
        error or None,
    )
    stats = parsed(record.get("feedback_stats"))
    for name, each in stats.items() if isinstance(stats, Mapping) else ():
        if isinstance(each, Mapping):
            span.said.append((name, each.get("avg"), None, None))
    yield span


def _is_mlflow(record: Record) -> bool:
    held = parsed(record.get("trace")) if isinstance(record.get("trace"), str) else record
    data = held.get("data") if isinstance(held, Mapping) else None
    return isinstance(data, Mapping) and isinstance(data.get("spans"), list)


def _mlflow(record: Record) -> Iterator[Span]:
    """Read a trace of MLflow: its JSON, or a row of `search_traces`, which holds it."""
    held = parsed(record["trace"]) if isinstance(record.get("trace"), str) else record
    info = held.get("info") or {}
    about = info.get("trace_metadata") or info.get("request_metadata") or {}
    tags = info.get("tags") or {}
    for each in held["data"]["spans"]:
        attributes = {name: parsed(value) for name, value in (each.get("attributes") or {}).items()}
        for name, value in (*about.items(), *tags.items()):
            if name in KEPT or not name.startswith("mlflow."):
                attributes.setdefault(name, value)
        status = each.get("status") or each.get("status_code")
        code = status.get("code") if isinstance(status, Mapping) else status
        message = status.get("message") if isinstance(status, Mapping) else None
        context = each.get("context") or each  # as version 2 wrote them
        span = _span(
            (
                _first(context, "trace_id", "request_id"),
                context.get("span_id"),
                _first(each, "parent_span_id", "parent_id"),
            ),
            each.get("name"),
            _first(each, "start_time_unix_nano", "start_time"),
            _first(each, "end_time_unix_nano", "end_time"),
            attributes,
            (message or "error") if code in FAILED else None,
        )
        span.said += _mlflow_said(info.get("assessments"), str(context.get("span_id")))
        yield span


KEPT = ("mlflow.trace.session", "mlflow.trace.user", "mlflow.source.git.commit")


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
