"""OpenInference: what Phoenix, Arize and their instrumentations of frameworks write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from karat.read.traces.schema import RERANKER, RETRIEVER, Annotation, RetrievalCall
from karat.read.traces.span import (
    DOCUMENTS,
    MANY_DOCUMENTS,
    NO_TIME,
    WRONG_DOCUMENT,
    YEAR_10000,
    Malformed,
    number_of,
)

if TYPE_CHECKING:
    from karat.read.traces.schema import Retrieved
    from karat.read.traces.span import Span, TakenParts

RETRIEVED = "retrieval.documents"
RERANKED, BEFORE = "reranker.output_documents", "reranker.input_documents"
TAKEN = frozenset(
    {
        "openinference.span.kind",
        "input.value",
        "input.mime_type",
        "output.value",  # the documents once more
        "output.mime_type",
        "reranker.query",
        "session.id",
        "user.id",
        "service.name",
    }
)
LISTS = (
    f"{RETRIEVED}.",
    f"{RERANKED}.",
    f"{BEFORE}.",
    "annotations.",
    "evaluations.",
    RETRIEVED,
    RERANKED,
    BEFORE,
)


def read_openinference(span: Span, parts: TakenParts) -> RetrievalCall:
    """Return the call of a RETRIEVER or RERANKER span."""
    given = span.attributes
    reranks = str(given["openinference.span.kind"]).lower() == RERANKER
    call = begin_call(span, parts, "openinference", is_taken)
    call.kind = RERANKER if reranks else RETRIEVER
    question = given.get("reranker.query") if reranks else None
    call.question = parts.question(question or given.get("input.value"))
    call.docs = _documents(span, RERANKED if reranks else RETRIEVED, parts)
    if reranks:
        call.inputs = [doc.id for doc in _documents(span, BEFORE, parts)]
    call.annotations = _annotations(given, parts)
    return call


def begin_call(span: Span, parts: TakenParts, convention: str, taken: Any) -> RetrievalCall:  # noqa: ANN401
    """Return what every convention has in common."""
    time = span.start // 1000
    if not 0 < time < YEAR_10000:
        raise Malformed(NO_TIME)
    return RetrievalCall(
        span.trace,
        span.span,
        time,
        convention,
        parent=span.parent,
        latency_ms=(span.end - span.start) / 1e6 if span.end >= span.start else None,
        error=parts.short(span.error),
        service=parts.short(span.resource.get("service.name")),
        session=parts.short(span.attributes.get("session.id")),
        user=parts.short(span.attributes.get("user.id")),
        attributes=parts.attributes(span, taken),
    )


def is_taken(key: str) -> bool:
    """Tell whether an attribute has a column of its own."""
    return key in TAKEN or key.startswith(LISTS)


def indexed(given: Mapping[str, Any], prefix: str) -> dict[int, dict[str, Any]]:
    """Return the entries of a list that stands in attributes PREFIX.INDEX.KIND.FIELD, by index."""
    found: dict[int, dict[str, Any]] = {}
    skip = len(prefix) + 1
    for key, value in given.items():
        if not key.startswith(prefix) or len(key) == skip - 1:
            continue
        index, _, rest = key[skip:].partition(".")
        _, _, field = rest.partition(".")
        if field and index.isdecimal() and len(index) < 10:
            entry = found.get(int(index))
            if entry is None:
                found[int(index)] = {field: value}
            else:
                entry[field] = value
    whole = given.get(prefix)
    if isinstance(whole, list):  # as Phoenix gives them
        for index, entry in enumerate(whole):
            if isinstance(entry, Mapping):
                found[index] = _unnested(entry)
    return found


def _unnested(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of {"document": {"id": …}} or {"document.id": …}."""
    found: dict[str, Any] = {}
    for key, value in entry.items():
        kind, _, field = str(key).partition(".")
        if field:
            found[field] = value
        elif isinstance(value, Mapping) and len(entry) == 1:
            found |= value
        else:
            found[kind] = value
    return found


def _documents(span: Span, prefix: str, parts: TakenParts) -> list[Retrieved]:
    listed = sorted(indexed(span.attributes, prefix).items())
    if len(listed) > DOCUMENTS:
        parts.malformed[MANY_DOCUMENTS] += 1
    found = []
    for number, (_, entry) in enumerate(listed[:DOCUMENTS]):
        if any(isinstance(entry.get(name), Mapping | list) for name in ("id", "content", "score")):
            parts.malformed[WRONG_DOCUMENT] += 1
            continue
        found.append(
            parts.document(
                number,
                span.span,
                id=entry.get("id"),
                text=entry.get("content"),
                score=entry.get("score"),
                metadata=entry.get("metadata"),
            )
        )
    return found


def _annotations(given: Mapping[str, Any], parts: TakenParts) -> list[Annotation]:
    """Return labels on the span: `annotations.…`, and `evaluations.…` of older versions."""
    found = []
    for prefix in ("annotations", "evaluations"):
        for _, entry in sorted(indexed(given, prefix).items())[:DOCUMENTS]:
            name = parts.short(entry.get("name"))
            if name is not None:
                annotator = entry.get("annotator_kind") or entry.get("identifier")
                found.append(
                    Annotation(
                        name,
                        number_of(entry.get("score")),
                        parts.short(entry.get("label")),
                        parts.short(annotator),
                    )
                )
    return found
