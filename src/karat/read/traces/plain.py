"""Plain records of retrieval calls, which any program can write, one per line of JSON:

{"question": "…", "retrieved": ["d1", "d2"], "latency_ms": 12.5, "time": "2026-08-01T10:00:00Z"}
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from karat.core.timing import DURATIONS
from karat.read.traces.exports import flat
from karat.read.traces.schema import RERANKER
from karat.read.traces.span import Span, hex_id, nanoseconds, parsed

if TYPE_CHECKING:
    from karat.read.traces.parts import TakenParts
    from karat.read.traces.schema import RetrievalCall

CONVENTION = "plain"
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
TAKEN = frozenset(name for names in NAMES.values() for name in names) | {"hops", *DURATIONS}


def is_plain_call(record: object) -> bool:
    """Tell whether a record says what was retrieved."""
    return isinstance(record, Mapping) and any(
        name in record for name in (*NAMES["retrieved"], "hops")
    )


def _get(record: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401
    return next((record[each] for each in NAMES[name] if record.get(each) not in (None, "")), None)


def read_plain(record: Mapping[str, Any], parts: TakenParts) -> list[RetrievalCall]:
    """Return the calls of a record: one, or one per hop, and one more where it was reranked.

    A record without ids is known by a hash of itself, so that it counts once however often it is
    read.
    """
    whole = json.dumps(record, ensure_ascii=False, sort_keys=True, default=str)
    digest = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()
    trace = hex_id(_get(record, "trace")) or digest[:32]
    span = hex_id(_get(record, "span")) or digest[32:48]
    start = nanoseconds(_get(record, "time"))
    hops = parsed(record.get("hops"))
    if not isinstance(hops, list):
        return _calls(record, Span(trace, span, None, "", start, -1, {}), parts)
    calls = []
    for number, hop in enumerate(hops):
        each = hop if isinstance(hop, Mapping) else {"retrieved": hop}
        own = nanoseconds(_get(each, "time")) or (start and start + number * 1000)
        name = hex_id(_get(each, "span")) or f"{span[:8]}{number:08x}"
        whole_hop = {**{k: v for k, v in record.items() if k != "hops"}, **each}
        calls += _calls(whole_hop, Span(trace, name, None, "", own, -1, {}), parts)
    return calls


def _calls(record: Mapping[str, Any], span: Span, parts: TakenParts) -> list[RetrievalCall]:
    span.convention = CONVENTION
    span.parent = hex_id(_get(record, "parent")) or None
    span.attributes = flat({key: each for key, each in record.items() if key not in TAKEN})
    error = _get(record, "error")
    span.error = None if error in (None, False) else str(error)
    call = parts.begin_call(span, taken=lambda _: False)
    call.latency_ms = _latency(record, parts)
    call.question = parts.question(_get(record, "question"))
    call.service, call.session, call.user = (
        parts.name(_get(record, name)) for name in ("service", "session", "user")
    )
    call.docs = parts.documents(_get(record, "retrieved"), span.span)
    if "reranked" not in record:
        return [call]
    span.start += 1000  # after it
    span.span = hashlib.sha256(span.span.encode()).hexdigest()[:16]
    after = parts.begin_call(span, taken=lambda _: False)
    after.kind, after.question = RERANKER, call.question
    after.service, after.session, after.user = call.service, call.session, call.user
    after.docs = parts.documents(record["reranked"], span.span)
    after.inputs = [doc.id for doc in call.docs or ()]
    return [call, after]


def _latency(record: Mapping[str, Any], parts: TakenParts) -> float | None:
    """Return how long it took, in milliseconds, under the first name that tells a unit."""
    for name, unit in DURATIONS.items():
        if isinstance(record.get(name), int | float) and not isinstance(record[name], bool):
            with contextlib.suppress(OverflowError):  # an integer of a thousand digits
                taken = float(record[name]) * unit
                if 0 <= taken < math.inf:
                    return taken
            parts.malformed[NO_LATENCY] += 1
            return None
    return None
