"""Says how much the order of documents with equal scores decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from karat.findings import EXAMPLES, Finding
from karat.measures.aggregate import aggregate
from karat.results.bounds import tie_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.align.align import Ties
    from karat.core.relation import Relation
    from karat.measures import Measure

LEAST = 5e-5  # a change that four digits show
SHOWN = 4  # measures whose range is told


def tied_scores(
    relation: Relation, ties: Ties, measures: Sequence[Measure], run: str
) -> list[Finding]:
    """Return the finding that ties decide the values of measures, with how far they could go.

    Only queries with a tie are measured again, in the best and in the worst order.
    """
    keep = np.isin(np.arange(relation.n), ties.query)
    number = np.cumsum(keep) - 1
    tied = type(ties)(number[ties.query], ties.first, ties.last)
    changed = np.zeros(relation.n, dtype=bool)
    ranges = []
    for measure, (low, high) in zip(
        measures, tie_bounds(relation.select(keep), tied, measures), strict=True
    ):
        differ = high - low > LEAST
        if not differ.any():
            continue
        changed[np.flatnonzero(keep)[differ]] = True
        values = measure.values(relation)
        ends = []
        for bound in (low, high):
            values[keep] = bound
            ends.append(aggregate(measure, values).value)
        ranges.append(f"{measure} from {ends[0]:.4f} to {ends[1]:.4f}")
    if not ranges:
        return []
    queries = relation.queries.filter(changed)
    more = len(ranges) - SHOWN
    told = ", ".join(ranges[:SHOWN]) + (f" and {more} more measures" if more > 0 else "")
    return [
        Finding(
            "tied-scores",
            len(queries),
            tuple(queries.head(EXAMPLES)),
            "query whose values depend on the order of documents with equal scores, which is by id "
            f"(descending); in another order: {told}",
            "let the retriever give scores that differ, or give a list in rank order",
            run=run,
        )
    ]
