"""Judgements in the format of TREC, read by compiled code."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.data import Gold
from findwell.core.keys import narrowed
from findwell.io.native import DeclinedError, each_piece, kernel

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from findwell.io.native import Readable


def read_gold(open_file: AbstractContextManager[Readable]) -> Gold | None:
    """Read judgements by compiled code; None where that is not built, or they are not plain."""
    with suppress(DeclinedError):
        return _read(open_file)
    return None


def _read(open_file: AbstractContextManager[Readable]) -> Gold:
    native = kernel()
    if native is None:
        raise DeclinedError
    queries, counts, docs, grades, iterations = [], [], [], [], set()
    for _, found in each_piece(open_file, native.read_qrels):
        if found is None:
            raise DeclinedError
        names, count, members, grade, iteration = found
        queries.append(pl.Series("query", names))
        counts.append(np.frombuffer(count, np.int32))
        docs.append(pl.Series("doc", members))
        grades.append(np.frombuffer(grade, np.float64))
        iterations.add(iteration)
    if len(iterations) != 1:  # none at all, or they may name subtopics
        raise DeclinedError
    query = pl.concat(queries, rechunk=True)
    if query.n_unique() < len(query):
        raise DeclinedError
    grade = np.concatenate(grades)
    return Gold(
        queries=pl.DataFrame({"query": query}),
        item_offset=np.concatenate(([0], np.cumsum(np.concatenate(counts)))),
        item_grade=grade,
        member_item=narrowed(np.arange(len(grade))),
        member_doc=pl.concat(docs),
    )
