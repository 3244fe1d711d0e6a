"""Calls of production with the lists that they retrieved, as pages show them: only some of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from findwell.loop.monitoring.alarm_report import amount
from findwell.loop.monitoring.overview import VALUE
from findwell.loop.monitoring.signals import SIGNALS
from findwell.show.excerpts import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

NAME = 120  # letters of an id, a service, an attribute
ATTRIBUTES = 12
WHY = {
    "error": "failed",
    "empty": "retrieved nothing",
    "latency": "slow",
    "duplicates": "duplicates in the list",
    "top_score": "low score of the first",
}


@dataclass(frozen=True, slots=True)
class CallSize:
    """How much of a call is shown."""

    documents: int = 50
    letters: int = 4_000  # of a text
    question: int = 1_000


IN_PAGE = CallSize()
IN_FILE = CallSize(documents=10, letters=400, question=400)  # of which there are many


def shown_calls(
    calls: pl.DataFrame, signal: str = "", size: CallSize = IN_PAGE
) -> list[dict[str, Any]]:
    """Return what pages show of calls; `signal` is what their column VALUE is of."""
    return [_shown(row, signal, size) for row in calls.iter_rows(named=True)]


def _shown(row: dict[str, Any], signal: str, size: CallSize) -> dict[str, Any]:
    signal = row.get("why") or signal
    value = row.get(VALUE)
    return {
        "question": shorten(row["question"], size.question) if row["question"] else "",
        "why": WHY.get(row.get("why") or "", ""),
        "error": shorten(row["error"], size.question) if row["error"] else "",
        "facts": list(_facts(row, signal, value)),
        "told": row["docs"] is not None,
        "docs": list(_documents(row, size)) if row["docs"] else [],
        "more": max(len(row["docs"] or ()) - size.documents, 0),
        "id": f"call-{row['trace'][:32]}-{row['span'][:16]}",
    }


def _facts(row: dict[str, Any], signal: str, value: float | None) -> Iterator[tuple[str, str]]:
    yield "time", f"{row['time']:%Y-%m-%d %H:%M:%S} UTC"
    if signal and value is not None and signal != "error":
        yield signal, amount(value, SIGNALS[signal].unit)
    if row["latency_ms"] is not None and SIGNALS.get(signal, SIGNALS["error"]).unit != "ms":
        yield "latency", amount(row["latency_ms"], "ms")
    for name in ("service", "session", "user"):
        if row[name]:
            yield name, shorten(row[name], NAME)
    if row["hop"]:
        yield "hop", str(row["hop"])
    for each in row["attributes"][:ATTRIBUTES]:
        yield shorten(each["key"], NAME), shorten(each["value"] or "", NAME)
    yield "trace", shorten(row["trace"], NAME)


def _documents(row: dict[str, Any], size: CallSize) -> Iterator[dict[str, Any]]:
    rows = zip(row["docs"], row["scores"], row["texts"], strict=False)
    seen: set[str] = set()
    for rank, (doc, score, text) in enumerate(rows, 1):
        if rank > size.documents:
            return
        yield {
            "rank": rank,
            "id": shorten(doc, NAME),
            "score": "" if score is None else f"{score:.4g}",
            "text": shorten(text, size.letters) if text else "",
            "again": doc in seen,
        }
        seen.add(doc)
