"""Which convention a span follows, and whether it is a retrieval call.

Some programs write the attributes of several conventions to one span, so the order matters: the
first one that names a kind decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from findwell.io.read.traces.gen_ai import read_gen_ai
from findwell.io.read.traces.observations import read_observation
from findwell.io.read.traces.openinference import read_openinference
from findwell.io.read.traces.span import MalformedSpanError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.io.read.traces.parts import TakenParts
    from findwell.io.read.traces.schema import RetrievalCall
    from findwell.io.read.traces.span import Span

# the attribute that tells the kind of a span, and the convention that it belongs to
MARKERS = {
    "openinference.span.kind": "openinference",
    "langfuse.observation.type": "langfuse",
    "mlflow.spanType": "mlflow",
    "langsmith.span.kind": "langsmith",
}
KINDS = frozenset({"retriever", "reranker"})
OPERATION, OPERATIONS = "gen_ai.operation.name", frozenset({"retrieval", "search_memory"})
# Traceloop has no kind of its own for retrieval: the operation or the name of the entity tells
TRACELOOP, ENTITY, RETRIEVES = "traceloop.span.kind", "traceloop.entity.name", "vector_db_retrieve"
# spans of its instrumentations of vector databases that tell the results
DATABASES = frozenset(
    {"chroma.query", "marqo.search", "milvus.search", "pinecone.query", "pinecone.query_namespaces"}
)
READERS: dict[str, Callable[[Span, TakenParts], RetrievalCall]] = {
    "openinference": read_openinference,
    "langfuse": read_observation,
    "mlflow": read_observation,
    "langsmith": read_observation,
    "gen_ai": read_gen_ai,
    "traceloop": read_observation,
}


def convention_of(
    attributes: Mapping[str, Any], value_of: Callable[[Any], Any], name: object
) -> str:
    """Return the convention of a span that is a retrieval call; "" where it is none.

    It is asked before the span is read whole, so the attributes may be of any kind that `value_of`
    reads.
    """
    for marker, convention in MARKERS.items():
        if marker in attributes:
            kind = str(value_of(attributes[marker])).strip('"').lower()
            return convention if kind in KINDS else ""
    operation = str(value_of(attributes[OPERATION])) if OPERATION in attributes else ""
    if operation in OPERATIONS:
        return "gen_ai"
    if TRACELOOP in attributes:
        entity = str(value_of(attributes[ENTITY])).lower() if ENTITY in attributes else ""
        called = "retriever" in entity or "rerank" in entity
        return "traceloop" if called or operation == RETRIEVES else ""
    return "traceloop" if name in DATABASES else ""


def calls_of(spans: Iterable[Span], parts: TakenParts) -> list[RetrievalCall]:
    """Return the calls of spans of retrieval; what cannot be read is counted."""
    calls = []
    for span in spans:
        try:
            calls.append(READERS[span.convention](span, parts))
        except MalformedSpanError as error:
            parts.malformed[str(error)] += 1
    return calls
