"""Conventions that write what went in and what came out, as JSON, and name no documents.

Langfuse, MLflow, LangSmith and Traceloop: each has attributes of its own for the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from findwell.io.read.traces.parts import RERANKED
from findwell.io.read.traces.schema import RERANKER, RETRIEVER, Retrieved
from findwell.io.read.traces.span import parsed

if TYPE_CHECKING:
    from findwell.io.read.traces.parts import TakenParts
    from findwell.io.read.traces.schema import RetrievalCall
    from findwell.io.read.traces.span import Span


@dataclass(frozen=True, slots=True)
class Observations:
    """The attributes of one convention; the first of several names that is there counts."""

    kind: str
    input: tuple[str, ...]
    output: tuple[str, ...]
    session: str = "session.id"
    user: str = "user.id"
    taken: tuple[str, ...] = ()  # others that say the same once more


OBSERVATIONS = {
    "langfuse": Observations(
        "langfuse.observation.type",
        ("langfuse.observation.input",),
        ("langfuse.observation.output",),
        "langfuse.session.id",
        "langfuse.user.id",
        ("langfuse.trace.input", "langfuse.trace.output", "langfuse.internal.is_app_root"),
    ),
    "mlflow": Observations(
        "mlflow.spanType",
        ("mlflow.spanInputs",),
        ("mlflow.spanOutputs",),
        "mlflow.trace.session",
        "mlflow.trace.user",
        ("mlflow.traceRequestId",),
    ),
    "langsmith": Observations(
        "langsmith.span.kind",
        ("gen_ai.prompt", "input.value", "inputs"),
        ("gen_ai.completion", "output.value", "outputs"),
        "langsmith.metadata.session_id",
        "langsmith.metadata.user_id",
        ("gen_ai.operation.name",),
    ),
    "traceloop": Observations(
        "traceloop.span.kind",
        ("traceloop.entity.input", "gen_ai.task.input"),
        ("traceloop.entity.output", "gen_ai.task.output"),
        "traceloop.association.properties.session_id",
        "traceloop.association.properties.user_id",
    ),
}
RESULTS = ("db.query.result", "db.search.result")  # events of Traceloop's vector databases


def read_observation(span: Span, parts: TakenParts) -> RetrievalCall:
    """Return the call of a span that follows one of these conventions."""
    names = OBSERVATIONS[span.convention]
    given = span.attributes
    hidden = {names.kind, *names.input, *names.output, *names.taken}
    call = parts.begin_call(span, taken=hidden.__contains__, session=names.session, user=names.user)
    call.kind = _kind(span, names)
    before = next((given[name] for name in names.input if name in given), None)
    after = next((given[name] for name in names.output if name in given), None)
    call.question = parts.question(before)
    call.docs = parts.documents(after, span.span)
    if call.docs is None and span.convention == "traceloop":
        call.docs = _from_events(span, parts)
    if call.kind == RERANKER:
        asked = parsed(before)
        held = [asked.get(name) for name in RERANKED] if isinstance(asked, Mapping) else []
        listed = next((each for each in held if isinstance(each, list)), None)
        call.inputs = [doc.id for doc in parts.documents(listed, span.span) or ()]
    return call


def _kind(span: Span, names: Observations) -> str:
    kind = str(span.attributes.get(names.kind)).lower()
    if span.convention == "traceloop":  # it has no such kinds
        kind = str(span.attributes.get("traceloop.entity.name")).lower()
    return RERANKER if "rerank" in kind else RETRIEVER


def _from_events(span: Span, parts: TakenParts) -> list[Retrieved] | None:
    """Return the documents of a call to a vector database, which are events of its span."""
    entries: list[dict[str, Any]] = []
    for name, attributes in span.events:
        if name in RESULTS:
            entry = {key.removeprefix(f"{name}."): value for key, value in attributes.items()}
            entries.append(entry)
    return parts.documents(entries, span.span) if entries else None
