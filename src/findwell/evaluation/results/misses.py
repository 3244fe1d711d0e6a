"""Why relevant items were missed: one row for each, with its cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from findwell.core.frames import pl
from findwell.core.measure import Budget

if TYPE_CHECKING:
    from findwell.core.data import Bools, Ints
    from findwell.core.measure import Cutoff, Measure
    from findwell.core.relation import Relation

# what each cause means, in the order in which reports list them
CAUSES = {
    "not retrieved": "the run does not list it at all",
    "unjudged": "the run does not list it, and no document above the cutoff has a label: "
    "the labels may be incomplete",
    "below the cutoff": "it stands lower in the list",
    "behind duplicates": "it would be above the cutoff without documents that repeat others",
    "over the budget": "it stands where the budget is already spent",
}
SCHEMA = {
    "run": "String",
    "measure": "String",
    "query": "String",
    "item": "String",
    "cause": "String",
    "rank": "Int64",
}


def misses(run: str, relation: Relation, measure: Measure) -> pl.DataFrame:
    """Return the relevant items that a run missed above the cutoff of a measure.

    An item is named by its documents; `rank` is where it stands, null if nowhere. Queries that
    have no value, and those about which a judge failed, are left out.
    """
    level, first = measure.level(), np.zeros(len(relation.item_grade), dtype=np.int64)
    found = relation.credits(level)
    first[found.item] = found.rank
    query = relation.item_query
    undefined = np.isin(np.arange(relation.n), list(relation.reasons)) | relation.failed
    wanted = (relation.item_grade >= level) & ~undefined[query]
    inside = (first > 0) & relation.within(query, first, measure.k)
    item = np.flatnonzero(wanted & ~inside)
    query, rank = query[item], first[item]
    members = (np.searchsorted(relation.member_item, item, side=side) for side in ("left", "right"))
    ends = zip(*(each.tolist() for each in members), strict=True)
    chunk = relation.chunk_of(query, np.maximum(rank, 1)) - relation.chunks[query] + 1
    return pl.DataFrame(
        {
            "run": [run] * len(item),
            "measure": [str(measure)] * len(item),
            "query": relation.queries[query],
            "item": [" | ".join(relation.member_doc[low:high].to_list()) for low, high in ends],
            "cause": _causes(relation, query, rank, measure),
            "rank": [int(at) if rank else None for at, rank in zip(chunk, rank, strict=True)],
        },
        schema={name: getattr(pl, kind) for name, kind in SCHEMA.items()},
    )


def _causes(relation: Relation, query: Ints, rank: Ints, measure: Measure) -> list[str]:
    k = measure.k
    if isinstance(k, Budget):
        below = np.full(len(rank), "over the budget", dtype=object)
    else:
        within_reach = rank - _redundant_above(relation, query, rank, measure.level()) <= (k or 0)
        below = np.where(within_reach, "behind duplicates", "below the cutoff")
    nowhere = np.where(_unlabelled(relation, k)[query], "unjudged", "not retrieved")
    return list(np.where(rank > 0, below, nowhere))


def _redundant_above(relation: Relation, query: Ints, rank: Ints, level: float) -> Ints:
    """Count the units above a rank that repeat a unit, or hold nothing but items found before."""
    hits = relation.covers(level, repeats=True)
    new = relation.credits(level)
    repeated = relation.unit_repeat > 0
    redundant = np.union1d(
        np.setdiff1d(
            relation.unit_key(hits.query, hits.rank), relation.unit_key(new.query, new.rank)
        ),
        relation.unit_key(relation.unit_query[repeated], relation.unit_rank[repeated]),
    )
    begin = np.searchsorted(redundant, relation.unit_key(query, 0))
    return np.searchsorted(redundant, relation.unit_key(query, rank)) - begin


def _unlabelled(relation: Relation, k: Cutoff | None) -> Bools:
    """Tell where something is shown and nothing of it has a label, in gold that rejects documents.

    Gold that lists nothing but relevant documents does not tell rejected from unjudged ones.
    """
    if not (relation.item_grade == 0).any():
        return np.zeros(relation.n, dtype=bool)
    return np.greater(relation.shown(k), 0) & np.equal(relation.count(relation.judged(k)[0]), 0)
