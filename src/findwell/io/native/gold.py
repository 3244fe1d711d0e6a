"""Judgements in the format of TREC, read by compiled code."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.data import Gold
from findwell.core.frames import Strings, later, pl
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
        query, count, doc, grade, iteration = found
        queries.append(query)
        counts.append(np.frombuffer(count, np.int32))
        docs.append(doc)
        grades.append(np.frombuffer(grade, np.float64))
        iterations.add(iteration)
    if len(iterations) != 1:  # none at all, or they may name subtopics
        raise DeclinedError
    names, members = Strings("query", queries), Strings("doc", docs)
    # the kernel has seen that no query of a piece comes back in it
    if len(queries) > 1 and names.series().n_unique() < len(names):
        raise DeclinedError
    grade = np.concatenate(grades)
    return Gold(
        queries=later(lambda: pl.DataFrame({"query": names.series()}), names, ("query",)),
        item_offset=np.concatenate(([0], np.cumsum(np.concatenate(counts)))),
        item_grade=grade,
        member_item=narrowed(np.arange(len(grade))),
        member_doc=later(members.series, members),
    )
