"""What unjudged units could change: the values if none of them were relevant, and if all were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.keys import sort_rows
from karat.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.data import Floats
    from karat.measures import Measure

UNITS = 4_000_000  # retrieved units handled at once, so that memory stays bounded


def bounds(relation: Relation, measures: Sequence[Measure]) -> list[tuple[Floats, Floats]]:
    """Return the lower and upper bound of every value, a pair of arrays for each measure.

    The measure is taken three times: as it is, with every unjudged unit judged not relevant, and
    with every unjudged unit as relevant as the best item of the gold. The bounds are the least
    and the greatest of the three.
    """
    top = max(relation.item_grade.max(initial=1.0), 1.0)
    block_of = np.cumsum(relation.depth) // UNITS
    found = []
    for number in np.unique(block_of):
        block = relation.select(block_of == number)
        scenarios = (block, with_unjudged(block, 0.0), with_unjudged(block, top))
        found.append([[measure.values(each) for each in scenarios] for measure in measures])
    return [
        (
            np.concatenate([_where_defined(block[at], np.fmin) for block in found]),
            np.concatenate([_where_defined(block[at], np.fmax) for block in found]),
        )
        for at in range(len(measures))
    ]


def _where_defined(scenarios: list[Floats], choose: np.ufunc) -> Floats:
    """Choose among the scenarios; what has no value has no bounds."""
    return np.where(np.isnan(scenarios[0]), np.nan, choose.reduce(scenarios))


def with_unjudged(relation: Relation, grade: float) -> Relation:
    """Return the relation in which every unjudged unit satisfies an item of this grade.

    With grade 0 they are all judged not relevant, with a high grade all relevant. Repetitions
    stay noise.
    """
    every = np.repeat(np.arange(relation.n), relation.depth)
    start = np.cumsum(relation.depth) - relation.depth
    every_rank = np.arange(len(every)) - start[every] + 1
    repeat = np.zeros(len(every), dtype=np.int64)
    listed = start[relation.unit_query] + relation.unit_rank - 1
    repeat[listed] = relation.unit_repeat
    unjudged = repeat == 0
    unjudged[listed[relation.unit_judged]] = False
    query, rank = every[unjudged], every_rank[unjudged]

    old, new = len(relation.item_grade), len(query)
    item_query = np.concatenate((relation.item_query, query))
    item_grade = np.concatenate((relation.item_grade, np.full(new, grade)))
    order = np.lexsort((-item_grade, item_query))
    place = np.empty(old + new, dtype=np.int64)
    place[order] = np.arange(old + new)
    edges = (
        np.concatenate((relation.edge_query, query)),
        np.concatenate((relation.edge_rank, rank)),
        place[np.concatenate((relation.edge_item, np.arange(old, old + new)))],
    )
    edge_query, edge_rank, edge_item = sort_rows(edges, 3)
    member_item = np.concatenate((place[relation.member_item], place[old:]))
    member_order = np.argsort(member_item, kind="stable")
    names = pl.Series(np.char.add("\0unjudged ", rank.astype(str)), dtype=pl.String)
    return Relation(
        queries=relation.queries,
        depth=relation.depth,
        item_offset=np.concatenate(([0], np.cumsum(relation.count(item_query)))),
        item_grade=item_grade[order],
        edge_query=edge_query,
        edge_rank=edge_rank,
        edge_item=edge_item,
        unit_query=every,
        unit_rank=every_rank,
        unit_judged=np.ones(len(every), dtype=bool),
        unit_repeat=repeat,
        member_item=member_item[member_order],
        member_doc=pl.concat([relation.member_doc, names]).gather(member_order),
        void=relation.void,
        chunk_offset=relation.chunk_offset,
        chunk_end=relation.chunk_end,
        needed=relation.needed,
        judged_to=relation.judged_to,
    )
