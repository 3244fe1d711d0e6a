"""OpenInference: what Phoenix, Arize and their instrumentations of frameworks write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from findwell.io.read.traces.parts import MANY_DOCUMENTS, WRONG_DOCUMENT
from findwell.io.read.traces.schema import INNER, RERANKER, RETRIEVER, RetrievalCall
from findwell.io.read.traces.span import DOCUMENTS, REDACTED, parsed

if TYPE_CHECKING:
    from findwell.io.read.traces.parts import TakenParts
    from findwell.io.read.traces.schema import Retrieved
    from findwell.io.read.traces.span import Said, Span

RETRIEVED = "retrieval.documents"
OUTPUTS, INPUTS = "reranker.output_documents", "reranker.input_documents"
PREFIXES = (RETRIEVED, OUTPUTS, INPUTS, "annotations", "evaluations")
LISTS = tuple(f"{prefix}." for prefix in PREFIXES)
TAKEN = frozenset(
    {
        *("openinference.span.kind", "input.value", "input.mime_type"),
        *("output.value", "output.mime_type", "reranker.query", *PREFIXES),
    }
)
# LlamaIndex's retrievers call themselves; only the outer call has the documents
PRIVATE = ("._retrieve", "._aretrieve")


def read_openinference(span: Span, parts: TakenParts) -> RetrievalCall:
    """Return the call of a RETRIEVER or RERANKER span."""
    given = span.attributes
    reranks = str(given["openinference.span.kind"]).lower() == RERANKER
    call = parts.begin_call(span, taken=_is_taken)
    if not reranks and span.name.endswith(PRIVATE):
        return RetrievalCall(
            call.trace, call.span, call.time, call.convention, INNER, call.parent, docs=None
        )
    call.kind = RERANKER if reranks else RETRIEVER
    question = given.get("reranker.query") if reranks else None
    call.question = parts.question(question or given.get("input.value"))
    lists = _lists(given)
    name = OUTPUTS if reranks else RETRIEVED
    call.docs = _documents(span, lists[name], parts)
    if not call.docs:
        call.docs = _from_output(span, name, parts, listed=bool(lists[name]))
    if reranks:
        call.inputs = [doc.id for doc in _documents(span, lists[INPUTS], parts)]
    call.annotations = [*call.annotations, *parts.annotations(_said(lists))]
    return call


def _is_taken(key: str) -> bool:
    return key in TAKEN or key.startswith(LISTS)


def _lists(given: Mapping[str, Any]) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the lists that stand in attributes PREFIX.INDEX.KIND.FIELD: their entries by index."""
    found: dict[str, dict[int, dict[str, Any]]] = {prefix: {} for prefix in PREFIXES}
    for key, value in given.items():
        if not key.startswith(LISTS):
            continue
        prefix = next(each for each in PREFIXES if key.startswith(each))
        index, _, rest = key[len(prefix) + 1 :].partition(".")
        field = rest.partition(".")[2]
        if field and len(index) < 10 and index.isdecimal():
            entries = found[prefix]
            number = int(index)
            if number in entries:
                entries[number][field] = value
            else:
                entries[number] = {field: value}
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
        if field:
            found[field] = value
        elif isinstance(value, Mapping) and len(entry) == 1:
            found.update(value)
        else:
            found[str(key)] = value
    return found


def _documents(
    span: Span, by_index: dict[int, dict[str, Any]], parts: TakenParts
) -> list[Retrieved]:
    listed = sorted(by_index.items())
    if len(listed) > DOCUMENTS:
        parts.malformed[MANY_DOCUMENTS] += 1
        listed = listed[:DOCUMENTS]
    entries = [entry for _, entry in listed]
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


def _from_output(
    span: Span, name: str, parts: TakenParts, *, listed: bool
) -> list[Retrieved] | None:
    """Return the documents of a span that lists none: programs may write only what came out.

    None means that they are not told: the output is hidden, or the list, of that name, is none; or
    what is `listed` cannot be read.
    """
    output = span.attributes.get("output.value")
    held = parsed(output)
    found = parts.documents(held, span.span) if isinstance(held, list | Mapping) else None
    told = output != REDACTED and not isinstance(parsed(span.attributes.get(name)), str)
    return found or ([] if told and not listed else None)


def _add_ids(entries: list[dict[str, Any]], output: object) -> None:
    """Take ids from the output: LangChain's instrumentation writes them only there."""
    held = parsed(output)
    listed = held.get("documents") if isinstance(held, Mapping) else held
    if not isinstance(listed, list) or len(listed) != len(entries):
        return
    for entry, other in zip(entries, listed, strict=True):
        if isinstance(other, Mapping) and other.get("page_content") == entry.get("content"):
            entry["id"] = other.get("id")


def _said(lists: dict[str, dict[int, dict[str, Any]]]) -> list[Said]:
    """Return labels on the span: `annotations.…`, and `evaluations.…` of older versions."""
    found: list[Said] = []
    for prefix in ("annotations", "evaluations"):
        for _, each in sorted(lists[prefix].items())[:DOCUMENTS]:
            annotator = each.get("annotator_kind") or each.get("identifier")
            found.append((each.get("name"), each.get("score"), each.get("label"), annotator))
    return found
