"""Calls as traces give them, with all that signals read: made here, the same every time."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from findwell.io.read.traces.schema import TRACE_SCHEMA
from findwell.loop.monitoring.call_values import CallQuery, Calls, CallValues
from findwell.loop.monitoring.signals import References

START = datetime(2026, 5, 4, 22, 30, tzinfo=UTC)  # a Monday
SUBJECTS = ("battery", "screen", "parcel", "invoice", "Schlüssel")
PLACES = 12


def text_of(doc: int) -> str:
    copied = doc - doc % 5  # the second of each five repeats the first
    number = copied if doc % 5 == 1 else doc
    return f"The {SUBJECTS[number % 4]} number {number} is kept in the drawer under the window."


def made_calls(count: int = 240, seed: int = 0, hours: float = 60.0) -> pl.DataFrame:
    """Return calls of two services: repeated questions, failures, empty lists, rerankers."""
    random = np.random.default_rng(seed)
    times = np.sort(random.random(count)) * hours
    rows = []
    for number, hour in enumerate(times.tolist()):
        failed = number % 41 == 40
        shown = 0 if failed or number % 23 == 22 else int(random.integers(1, 7))
        docs = random.integers(0, 40, shown).tolist()
        subject = SUBJECTS[int(random.integers(0, 5))]
        asked = f"Where is the {subject}?" if subject != "Schlüssel" else "Wo ist der Schlüssel?"
        reranks = number % 7 == 3 and not failed
        scores = sorted((round(float(each), 4) for each in random.random(shown)), reverse=True)
        known = [None if number % 13 == 12 and at == 2 else each for at, each in enumerate(scores)]
        dates = [{"updated_at": f"2026-0{1 + doc % 5}-11"} if doc % 3 else {} for doc in docs]
        row = {
            "trace": f"{number:032x}",
            "span": f"{number:016x}",
            "time": START + timedelta(hours=hour),
            "latency_ms": None if number % 31 == 30 else float(random.lognormal(4, 0.6)),
            "kind": "retriever",
            "hop": 0,
            "question": None if number % 29 == 28 else asked,
            "error": "timeout" if failed else None,
            "docs": [f"d{doc}" for doc in docs],
            "scores": known,
            "texts": [text_of(doc) for doc in docs],
            "doc_metadata": [json.dumps(each) for each in dates],
            "inputs": [],
            "service": ("web", "api")[number % 2],
            "attributes": [{"key": "tenant.id", "value": f"t{number % 3}"}] if number % 5 else [],
            "annotations": [],
            "convention": "openinference",
        }
        rows.append(row)
        if reranks:
            turned = [*docs[::-1]][:3]
            rows.append(
                row
                | {
                    "span": f"{number + (1 << 40):016x}",
                    "time": START + timedelta(hours=hour, milliseconds=80),
                    "kind": "reranker",
                    "inputs": row["docs"],
                    "docs": [f"d{doc}" for doc in turned],
                    "scores": [float(3 - at) for at in range(len(turned))],
                    "texts": [text_of(doc) for doc in turned],
                    "doc_metadata": [json.dumps({}) for _ in turned],
                }
            )
    return pl.DataFrame(rows, schema=TRACE_SCHEMA)


def letters(texts: list[str]) -> list[list[float]]:
    """Embed texts by how often they have some letters."""
    return [[1.0, *(float(text.lower().count(each)) for each in "aeiourst")] for text in texts]


def known_beside() -> References:
    """Return a corpus in which some documents that are retrieved are missing, and questions."""
    corpus = [{"doc": f"d{doc}", "text": text_of(doc), "date": "2026-01-01"} for doc in range(50)]
    asked = ["Where is the battery?", "How do I return a parcel?"]
    return References.of(
        corpus=[row for row in corpus if row["doc"] not in ("d3", "d7")],
        questions=asked,
        embedder=letters,
    )


def signal_values(
    calls: Calls, names: Iterable[str] | str | None = None, **asked: Any
) -> CallValues:
    """Return the values of calls that are not in a store."""
    return CallQuery(names, **asked).of_calls(calls)
