"""OpenTelemetry's own conventions for generative AI: spans of retrieval and of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from findwell.io.read.traces.parts import TakenParts
    from findwell.io.read.traces.schema import RetrievalCall
    from findwell.io.read.traces.span import Span

# The documents are an array of objects, or JSON of one; both they and the question are opt-in.
QUESTION = ("gen_ai.retrieval.query.text", "gen_ai.memory.query.text", "gen_ai.retrieval.query")
DOCUMENTS = ("gen_ai.retrieval.documents", "gen_ai.memory.records")
TAKEN = frozenset({*QUESTION, *DOCUMENTS, "gen_ai.operation.name"})
EVALUATION = "gen_ai.evaluation.result"


def read_gen_ai(span: Span, parts: TakenParts) -> RetrievalCall:
    """Return the call of a span whose operation is `retrieval` or `search_memory`."""
    given = span.attributes
    call = parts.begin_call(span, taken=TAKEN.__contains__, session="gen_ai.conversation.id")
    call.question = parts.question(next((given[key] for key in QUESTION if key in given), None))
    listed = next((given[key] for key in DOCUMENTS if key in given), None)
    call.docs = parts.documents(listed, span.span)
    said = [
        (
            event.get("gen_ai.evaluation.name"),
            event.get("gen_ai.evaluation.score.value"),
            event.get("gen_ai.evaluation.score.label"),
            None,
        )
        for name, event in span.events
        if name == EVALUATION
    ]
    call.annotations = [*call.annotations, *parts.annotations(said)]
    return call
