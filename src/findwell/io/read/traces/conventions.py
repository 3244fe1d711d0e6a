"""Conventions of spans: which one a span follows, and how a retrieval call is read from it.

Some programs write the attributes of several conventions to one span, so the order matters: the
first one that names a kind decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from findwell.io.read.traces.schema import INNER, RERANKER, RETRIEVER, RetrievalCall
from findwell.io.read.traces.span import (
    DOCUMENTS,
    MANY_DOCUMENTS,
    NO_ID,
    NOT_A_SPAN,
    REDACTED_TEXT,
    RERANKED_FIELDS,
    WRONG_DOCUMENT,
    MalformedSpanError,
    parsed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.io.read.traces.schema import RetrievedDocument
    from findwell.io.read.traces.span import Said, Span, SpanTally, TakenParts


@dataclass(frozen=True, slots=True)
class Convention:
    """The attributes of a convention that writes what went in and what came out.

    The first of several names that is there counts.
    """

    kind: str
    input: tuple[str, ...]
    output: tuple[str, ...]
    session: str = "session.id"
    user: str = "user.id"
    taken: tuple[str, ...] = ()  # others that say the same once more


OPENINFERENCE, GEN_AI, TRACELOOP = "openinference", "gen_ai", "traceloop"
CONVENTIONS = {
    "langfuse": Convention(
        "langfuse.observation.type",
        ("langfuse.observation.input",),
        ("langfuse.observation.output",),
        "langfuse.session.id",
        "langfuse.user.id",
        ("langfuse.trace.input", "langfuse.trace.output", "langfuse.internal.is_app_root"),
    ),
    "mlflow": Convention(
        "mlflow.spanType",
        ("mlflow.spanInputs",),
        ("mlflow.spanOutputs",),
        "mlflow.trace.session",
        "mlflow.trace.user",
        ("mlflow.traceRequestId",),
    ),
    "langsmith": Convention(
        "langsmith.span.kind",
        ("gen_ai.prompt", "input.value", "inputs"),
        ("gen_ai.completion", "output.value", "outputs"),
        "langsmith.metadata.session_id",
        "langsmith.metadata.user_id",
        ("gen_ai.operation.name",),
    ),
    # the documents are an array of objects, or JSON of one; both they and the question are opt-in
    GEN_AI: Convention(
        "gen_ai.operation.name",
        ("gen_ai.retrieval.query.text", "gen_ai.memory.query.text", "gen_ai.retrieval.query"),
        ("gen_ai.retrieval.documents", "gen_ai.memory.records"),
        "gen_ai.conversation.id",
    ),
    # Traceloop has no kind for retrieval: the operation or the name of the entity shows it
    TRACELOOP: Convention(
        "traceloop.span.kind",
        ("traceloop.entity.input", "gen_ai.task.input"),
        ("traceloop.entity.output", "gen_ai.task.output"),
        "traceloop.association.properties.session_id",
        "traceloop.association.properties.user_id",
    ),
}
# the attribute with the kind of a span, and the convention that it belongs to
MARKERS = {"openinference.span.kind": OPENINFERENCE} | {
    CONVENTIONS[name].kind: name for name in ("langfuse", "mlflow", "langsmith")
}
KINDS = frozenset({RETRIEVER, RERANKER})
OPERATION, OPERATIONS = "gen_ai.operation.name", frozenset({"retrieval", "search_memory"})
ENTITY, RETRIEVES = "traceloop.entity.name", "vector_db_retrieve"
# spans of Traceloop's instrumentations of vector databases that record the results, as events
DATABASES = frozenset(
    {"chroma.query", "marqo.search", "milvus.search", "pinecone.query", "pinecone.query_namespaces"}
)
DATABASE_RESULTS = ("db.query.result", "db.search.result")
BROKEN_ERRORS = (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError)
COUNTED_NAMES = 1000  # names of spans that are counted, for a message
EVALUATION = "gen_ai.evaluation.result"


def convention_of(
    attributes: Mapping[str, Any],
    value_of: Callable[[Any], Any],
    name: object,
    search: str | None = None,
) -> str:
    """Return the convention of a span that is a retrieval call; "" for other spans.

    Spans whose name is `search` are retrieval calls whatever type they were logged as.

    It is asked before the span is read whole, so the attributes may be of any kind that `value_of`
    reads.
    """
    for marker, convention in MARKERS.items():
        if marker in attributes:
            kind = str(value_of(attributes[marker])).strip('"').lower()
            return convention if kind in KINDS or (search and name == search) else ""
    operation = str(value_of(attributes[OPERATION])) if OPERATION in attributes else ""
    if operation in OPERATIONS:
        return GEN_AI
    if CONVENTIONS[TRACELOOP].kind in attributes:
        entity = str(value_of(attributes[ENTITY])).lower() if ENTITY in attributes else ""
        called = "retriever" in entity or "rerank" in entity
        return TRACELOOP if called or operation == RETRIEVES else ""
    return TRACELOOP if name in DATABASES else ""


class SpanForm:
    """How spans are written; here, spans that are read already."""

    def open(self, given: Any) -> Any:  # noqa: ANN401
        """Return a span as the other methods take it."""
        return given

    def look(self, span: Any) -> tuple[object, Mapping[str, Any]]:  # noqa: ANN401
        """Return the name of a span and its attributes, whose values are not read yet."""
        return span.name, span.attributes

    def value(self, raw: Any) -> Any:  # noqa: ANN401
        """Return the value of an attribute."""
        return raw

    def root(self, span: Any) -> object:  # noqa: ANN401
        """Return the trace of a span that no other is around."""
        return span.trace if span.parent is None else None

    def read(self, span: Any) -> Span:  # noqa: ANN401
        """Return the span; its attributes are added later."""
        found: Span = span
        return found


def retrieval_spans(spans: Iterable[Any], form: SpanForm, tally: SpanTally) -> Iterator[Span]:
    """Return the spans of retrieval calls among some; those that are broken are counted."""
    for given in spans:
        tally.count_span()
        try:
            each = form.open(given)
            name, raw = form.look(each)
            convention = convention_of(raw, form.value, name, tally.search)
            tally.searches += bool(convention) and name == tally.search
            if not convention:
                if len(tally.names) < COUNTED_NAMES:
                    tally.names[str(name)] += 1
                if tally.asked is not None and (trace := form.root(each)):
                    tally.note_root(trace, raw, form.value)
                continue
            span = form.read(each)
            span.attributes = {str(key): form.value(value) for key, value in raw.items()}
            span.convention = convention
        except MalformedSpanError as error:
            tally.malformed[str(error)] += 1
        except BROKEN_ERRORS:
            tally.malformed[NOT_A_SPAN] += 1
        else:
            if span.trace and span.span:
                yield span
            else:
                tally.malformed[NO_ID] += 1


def calls_of(spans: Iterable[Span], parts: TakenParts) -> list[RetrievalCall]:
    """Return the calls of spans of retrieval; what cannot be read is counted."""
    calls = []
    for span in spans:
        read = _read_openinference if span.convention == OPENINFERENCE else _read_observation
        try:
            calls.append(read(span, parts))
        except MalformedSpanError as error:
            parts.malformed[str(error)] += 1
    return calls


def _read_observation(span: Span, parts: TakenParts) -> RetrievalCall:
    """Return the call of a span that follows one of `CONVENTIONS`."""
    names, given = CONVENTIONS[span.convention], span.attributes
    hidden = {names.kind, *names.input, *names.output, *names.taken}
    call = parts.begin_call(span, taken=hidden.__contains__, session=names.session, user=names.user)
    before = next((given[name] for name in names.input if name in given), None)
    after = next((given[name] for name in names.output if name in given), None)
    kind = str(given.get(ENTITY if span.convention == TRACELOOP else names.kind)).lower()
    call.kind = RERANKER if "rerank" in kind else RETRIEVER
    call.question = parts.question(before)
    call.docs = parts.documents(after, span.span)
    if call.docs is None and span.convention == TRACELOOP:
        results = [
            {key.removeprefix(f"{name}."): value for key, value in attributes.items()}
            for name, attributes in span.events
            if name in DATABASE_RESULTS
        ]
        call.docs = parts.documents(results, span.span) if results else None
    if call.kind == RERANKER:
        asked = parsed(before)
        held = [asked.get(name) for name in RERANKED_FIELDS] if isinstance(asked, Mapping) else []
        listed = next((each for each in held if isinstance(each, list)), None)
        call.inputs = [doc.id for doc in parts.documents(listed, span.span) or ()]
    if span.convention == GEN_AI:
        fields = ("name", "score.value", "score.label")
        said: list[Said] = [
            (*(event.get(f"gen_ai.evaluation.{field}") for field in fields), None)  # type: ignore[misc]
            for name, event in span.events
            if name == EVALUATION
        ]
        call.annotations = [*call.annotations, *parts.annotations(said)]
    return call


# OpenInference: what Phoenix, Arize and their instrumentations of frameworks write

RETRIEVED_ATTRIBUTE = "retrieval.documents"
OUTPUTS, INPUTS = "reranker.output_documents", "reranker.input_documents"
LABELS = ("annotations", "evaluations")  # of the span; the second of older versions
PREFIXES = (RETRIEVED_ATTRIBUTE, OUTPUTS, INPUTS, *LABELS)
LISTS = tuple(f"{prefix}." for prefix in PREFIXES)
KNOWN_ATTRIBUTES = frozenset(
    {
        *("openinference.span.kind", "input.value", "input.mime_type"),
        *("output.value", "output.mime_type", "reranker.query", *PREFIXES),
    }
)
# LlamaIndex's retrievers call themselves; only the outer call has the documents
PRIVATE_METHODS = ("._retrieve", "._aretrieve")


def _read_openinference(span: Span, parts: TakenParts) -> RetrievalCall:
    """Return the call of a RETRIEVER or RERANKER span."""
    given = span.attributes
    reranks = str(given["openinference.span.kind"]).lower() == RERANKER
    call = parts.begin_call(
        span, taken=lambda key: key in KNOWN_ATTRIBUTES or key.startswith(LISTS)
    )
    if not reranks and span.name.endswith(PRIVATE_METHODS):
        return RetrievalCall(
            call.trace, call.span, call.time, call.convention, INNER, call.parent, docs=None
        )
    call.kind = RERANKER if reranks else RETRIEVER
    question = given.get("reranker.query") if reranks else None
    call.question = parts.question(question or given.get("input.value"))
    lists = _lists(given)
    name = OUTPUTS if reranks else RETRIEVED_ATTRIBUTE
    call.docs = _documents(span, lists[name], parts)
    if not call.docs:
        call.docs = _from_output(span, name, parts, listed=bool(lists[name]))
    if reranks:
        call.inputs = [doc.id for doc in _documents(span, lists[INPUTS], parts)]
    said: list[Said] = [
        (*(each.get(field) for field in ("name", "score", "label")),  # type: ignore[misc]
         each.get("annotator_kind") or each.get("identifier"))
        for prefix in LABELS
        for _, each in sorted(lists[prefix].items())[:DOCUMENTS]
    ]  # fmt: skip
    call.annotations = [*call.annotations, *parts.annotations(said)]
    return call


def _lists(given: Mapping[str, Any]) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the lists in attributes PREFIX.INDEX.KIND.FIELD: their entries by index."""
    found: dict[str, dict[int, dict[str, Any]]] = {prefix: {} for prefix in PREFIXES}
    for key, value in given.items():
        if not key.startswith(LISTS):
            continue
        prefix = next(each for each in PREFIXES if key.startswith(each))
        index, _, rest = key[len(prefix) + 1 :].partition(".")
        field = rest.partition(".")[2]
        if field and len(index) < 10 and index.isdecimal():
            found[prefix].setdefault(int(index), {})[field] = value
    for prefix in PREFIXES:
        whole = parsed(given[prefix]) if prefix in given else None
        if isinstance(whole, list):  # as Phoenix gives them
            for number, each in enumerate(whole):
                found[prefix][number] = _unnested(each) if isinstance(each, Mapping) else {}
    return found


def _unnested(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of {"document": {"id": …}} or {"document.id": …}."""
    found: dict[str, Any] = {}
    for key, value in entry.items():
        field = str(key).partition(".")[2]
        if not field and isinstance(value, Mapping) and len(entry) == 1:
            found.update(value)
        else:
            found[field or str(key)] = value
    return found


def _documents(
    span: Span, by_index: dict[int, dict[str, Any]], parts: TakenParts
) -> list[RetrievedDocument]:
    if len(by_index) > DOCUMENTS:
        parts.malformed[MANY_DOCUMENTS] += 1
    entries = [entry for _, entry in sorted(by_index.items())[:DOCUMENTS]]
    if entries and not any(entry.get("id") for entry in entries):
        _add_ids(entries, span.attributes.get("output.value"))
    found = []
    for number, entry in enumerate(entries):
        own, text, score = entry.get("id"), entry.get("content"), entry.get("score")
        if not entry or isinstance(text, Mapping | list) or isinstance(own, Mapping | list):
            parts.malformed[WRONG_DOCUMENT] += 1
            continue
        metadata = entry.get("metadata")
        found.append(
            parts.document(number, span.span, id=own, text=text, score=score, metadata=metadata)
        )
    return found


def _add_ids(entries: list[dict[str, Any]], output: object) -> None:
    """Take ids from the output: LangChain's instrumentation writes them only there."""
    held = parsed(output)
    listed = held.get("documents") if isinstance(held, Mapping) else held
    if not isinstance(listed, list) or len(listed) != len(entries):
        return
    for entry, other in zip(entries, listed, strict=True):
        if isinstance(other, Mapping) and other.get("page_content") == entry.get("content"):
            entry["id"] = other.get("id")


def _from_output(
    span: Span, name: str, parts: TakenParts, *, listed: bool
) -> list[RetrievedDocument] | None:
    """Return the documents of a span that lists none: programs may write only what came out.

    None means that they are unknown: the output is hidden, what is under `name` is not a list, or
    what is `listed` cannot be read.
    """
    output = span.attributes.get("output.value")
    held = parsed(output)
    found = parts.documents(held, span.span) if isinstance(held, list | Mapping) else None
    known = output != REDACTED_TEXT and not isinstance(parsed(span.attributes.get(name)), str)
    return found or ([] if known and not listed else None)
