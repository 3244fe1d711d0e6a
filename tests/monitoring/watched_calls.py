"""Calls of a made-up application, whose retrieval breaks at a chosen call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from findwell.io.read.traces.schema import TRACE_SCHEMA
from findwell.loop.monitoring.store import TraceStore

START = datetime(2026, 11, 2, tzinfo=UTC)  # a Monday
STEP = timedelta(minutes=5)  # 2,016 calls a week
WEEK = 2016


def at(number: int) -> datetime:
    """Return when a call began."""
    return START + number * STEP


def made_calls(
    count: int,
    broken: range = range(0),
    *,
    first: int = 0,
    tenant: str | None = None,
    empty: float = 0.01,
    seed: int = 0,
) -> pl.DataFrame:
    """Return calls; while broken, one in five finds nothing, slowly, and scores are lower.

    With `tenant`, only its calls are broken.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(first, first + count):
        who = ("acme", "globex", "initech")[number % 3]
        bad = number in broken and tenant in (None, who)
        found = 0 if rng.random() < (0.2 if bad else empty) else 5
        scores = np.sort(rng.beta(3 if bad else 6, 3, found))[::-1].tolist()
        rows.append(
            {
                "trace": f"{number % 2**64:032x}",
                "span": f"{number % 2**64:016x}",
                "time": at(number),
                "latency_ms": float(rng.lognormal(5.5, 0.4) * (3 if bad else 1)),
                "kind": "retriever",
                "hop": 0,
                "question": f"secret question {number}",
                "docs": [f"d{rank}" for rank in range(found)],
                "scores": scores,
                "texts": [None] * found,
                "doc_metadata": [None] * found,
                "inputs": [],
                "service": "search",
                "attributes": [{"key": "tenant", "value": who}],
                "annotations": [],
                "convention": "plain",
            }
        )
    return pl.DataFrame(rows, schema=TRACE_SCHEMA)


def store_of(path: Path, *calls: pl.DataFrame) -> TraceStore:
    """Return a new store with calls."""
    store = TraceStore.open(path, create=True)
    for each in calls:
        store.add(each)
    return store
