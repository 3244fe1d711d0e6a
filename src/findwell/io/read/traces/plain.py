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

from findwell.core.timing import DURATIONS
from findwell.io.read.traces.exports import flat
from findwell.io.read.traces.schema import RERANKER
from findwell.io.read.traces.span import Span, hex_id, nanoseconds, parsed

if TYPE_CHECKING:
    from findwell.io.read.traces.parts import TakenParts
    from findwell.io.read.traces.schema import RetrievalCall

CONVENTION = "plain"
STEP = 1000  # nanoseconds between two calls of a record that tells no times of their own
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
    given = hex_id(_get(record, "span"))
    span = given or digest[32:48]
    start = nanoseconds(_get(record, "time"))
    hops = parsed(record.get("hops"))
    if not isinstance(hops, list):
        return _calls(record, Span(trace, span, None, "", start, -1, {}), parts)
    begin = _hashed(given)[:8] if given else span[:8]  # ids that are given may begin alike
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
        last = calls[-1].time * 1000
        after = Span(trace, _hashed(span)[:16], None, "", last, -1, {})
        calls.append(_reranked(record, _begun(record, after), list(found), parts))
    return calls


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _calls(record: Mapping[str, Any], span: Span, parts: TakenParts) -> list[RetrievalCall]:
    call = _call(record, _begun(record, span), parts)
    call.latency_ms = _latency(record, parts)
    call.docs = parts.documents(_get(record, "retrieved"), span.span)
    if "reranked" not in record:
        return [call]
    span.span = _hashed(span.span)[:16]
    return [call, _reranked(record, span, [doc.id for doc in call.docs or ()], parts)]


def _begun(record: Mapping[str, Any], span: Span) -> Span:
    """Put into a span what its record says about it."""
    span.convention = CONVENTION
    span.parent = hex_id(_get(record, "parent")) or None
    span.attributes = flat({key: each for key, each in record.items() if key not in TAKEN})
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
