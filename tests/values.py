"""Runs whose recall is what a test wants it to be; values are lists or arrays."""

from __future__ import annotations

from typing import Any

import findwell

TENTHS = 10  # the gold of each query has ten documents


def gold(queries: int, parts: int = TENTHS) -> dict[str, list[str]]:
    """Return a gold of ten documents for each query, or of so many."""
    return {f"q{number}": [f"d{doc}" for doc in range(parts)] for number in range(queries)}


def run(values: Any, parts: int = TENTHS) -> dict[str, list[str]]:
    """Return a run with these values of recall, in tenths or in such parts."""
    return {
        f"q{number}": [f"d{doc}" for doc in range(round(parts * value))] or ["x"]
        for number, value in enumerate(values)
    }


def result(values: Any, *measures: str) -> findwell.Result:
    """Return the result of such a run."""
    return findwell.evaluate(run(values), gold(len(values)), measures or ["recall"])
