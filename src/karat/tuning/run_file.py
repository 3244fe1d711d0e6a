"""A run as a file that other tools read, in the order of its lists."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from math import inf, nextafter
from typing import TYPE_CHECKING

from karat.errors import SaveError

if TYPE_CHECKING:
    from karat.core.data import Run


def trec_lines(run: Run) -> Iterator[str]:
    """Yield the lines of a run whose rows are in rank order: `query Q0 doc rank score tag`.

    Readers go by the scores, so that one which equals the one above it is written a step lower.

    >>> import polars as pl
    >>> from karat.core.data import Run
    >>> rows = pl.DataFrame({"query": ["q", "q"], "doc": ["a", "b"], "score": [0.5, 0.5]})
    >>> print("".join(trec_lines(Run("fused", rows, "listed"))), end="")
    q Q0 a 1 0.5 fused
    q Q0 b 2 0.49999999999999994 fused
    """
    last, rank, above = None, 0, inf
    for query, doc, score in run.rows.select("query", "doc", "score").iter_rows():
        if doc is None:
            continue
        for name in (query, doc):
            if not name or any(letter.isspace() for letter in name):
                raise SaveError(
                    f"the id {name!r} holds a blank, which a TREC file cannot hold",
                    fix="write a file that ends with .jsonl",
                )
        if query != last:
            last, rank, above = query, 0, inf
        rank, above = rank + 1, min(score, nextafter(above, -inf))
        yield f"{query} Q0 {doc} {rank} {above!r} {run.name.replace(' ', '-') or 'fused'}\n"


def run_text(run: Run, path: str | os.PathLike[str]) -> str:
    """Return a run as the text of a file: JSON lines where its name ends so, else TREC."""
    if not os.fspath(path).lower().endswith((".jsonl", ".ndjson")):
        return "".join(trec_lines(run))
    lists: dict[str, list[dict[str, object]]] = {}
    for query, doc, score in run.rows.select("query", "doc", "score").iter_rows():
        found = lists.setdefault(query, [])
        if doc is not None:
            found.append({"doc": doc, "score": score})
    records = ({"query": query, "retrieved": found} for query, found in lists.items())
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records)
