"""The ranks of some rows by their scores, without sorting all: counted, or of the first few only.

Equal scores keep the order of the rows; a row whose score is NaN is in no list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.relations.align import positions

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints

# rows, the rows of their queries, how many those are, and whether these stand before
Comparisons: TypeAlias = "tuple[Ints, Ints, Ints, Bools]"
COMPARED = 12  # comparisons per row of all lists, up to which counting is faster than sorting


@dataclass(frozen=True, slots=True, eq=False)
class TopRows:
    """Finds the first ranks of every list without sorting the rest."""

    query: Ints  # of each row
    place: Ints  # of each row in a table with one line for each query
    shape: tuple[int, int]  # of that table
    last: int  # the last rank that is looked for

    @classmethod
    def of(cls, query: Ints, last: int) -> TopRows | None:
        """Return what finds the first ranks; None where lists are hardly longer."""
        begins = np.flatnonzero(np.diff(query, prepend=-1))
        line = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(query)))
        column = np.arange(len(query)) - begins[line]
        width = int(column.max(initial=0)) + 1
        if width < 2 * last:
            return None
        return cls(line, line * width + column, (len(begins), width), last)

    def ranks(self, scores: Floats, limit: int | None) -> Ints:
        """Return the rank of each row, from 1; 0 where it is further down, or dropped."""
        last = self.last if limit is None else min(self.last, limit)
        table = np.full(self.shape, -np.inf)
        table.ravel()[self.place] = np.where(np.isnan(scores), -np.inf, scores)
        least = np.partition(table, self.shape[1] - last, axis=1)[:, self.shape[1] - last]
        row = np.flatnonzero(scores >= least[self.query])  # a score that is NaN is not
        row = row[np.lexsort((-scores[row], self.query[row]))]
        rank = positions(self.query[row])
        found = np.zeros(len(scores), dtype=np.int64)
        found[row[rank <= last]] = rank[rank <= last]
        return found


def comparisons(query: Ints, rows: Ints) -> Comparisons | None:
    """Return each of the rows beside all rows of its query; None where sorting is faster."""
    first = np.searchsorted(query, query[rows])
    count = np.searchsorted(query, query[rows], side="right") - first
    if count.sum() > COMPARED * len(query):
        return None
    start = np.cumsum(count) - count
    other = np.arange(count.sum()) + np.repeat(first - start, count)
    return rows, other, count, other < np.repeat(rows, count)


def count_ranks(scores: Floats, compared: Comparisons | None, limit: int | None) -> Ints:
    """Return the ranks of some rows: 1 + how many stand above them; 0 for a row that is dropped."""
    if compared is None or not len(compared[0]):
        return np.zeros(0, dtype=np.int64)
    rows, other, count, earlier = compared
    mine, theirs = np.repeat(scores[rows], count), scores[other]
    above = (theirs > mine) | ((theirs == mine) & earlier)
    rank = 1 + np.add.reduceat(above.astype(np.int64), np.cumsum(count) - count)
    dropped = np.isnan(scores[rows])
    if limit is not None:
        dropped |= rank > limit
    return np.where(dropped, 0, rank)
