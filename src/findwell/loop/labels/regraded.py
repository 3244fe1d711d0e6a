"""The same run against other grades of the same documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.relation import Relation

RANKS = 1 << 32  # more than any list has


def regraded(relation: Relation, grade: Floats, keep: Bools | None = None) -> Relation:
    """Return a relation whose items have these grades; those not kept are left out.

    Only documents with a grade of 0 or more count as judged.
    """
    keep = np.ones(len(grade), dtype=bool) if keep is None else keep
    query = relation.item_query
    order = np.lexsort((-grade, query))  # stable: items of one grade stay as they are
    order = order[keep[order]]
    place = np.full(len(grade), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    edges = keep[relation.edge_item]
    judged = np.isin(
        _keys(relation.unit_query, relation.unit_rank),
        _keys(relation.edge_query, relation.edge_rank)[edges & (grade[relation.edge_item] >= 0)],
    )
    members = np.flatnonzero(keep[relation.member_item])
    members = members[np.argsort(place[relation.member_item[members]], kind="stable")]
    return replace(
        relation,
        item_offset=np.concatenate(([0], np.cumsum(relation.count(query[keep])))),
        item_grade=grade[order],
        edge_query=relation.edge_query[edges],
        edge_rank=relation.edge_rank[edges],
        edge_item=place[relation.edge_item[edges]],
        edge_weight=None if relation.edge_weight is None else relation.edge_weight[edges],
        unit_judged=judged,
        member_item=place[relation.member_item[members]],
        member_doc=relation.member_doc.gather(members),
        item_times=None,
    )


def items_of_units(relation: Relation, query: Ints, rank: Ints) -> Ints:
    """Return the item that each of these units covers; all of them cover one."""
    keys = _keys(relation.edge_query, relation.edge_rank)  # sorted, as the edges are
    return relation.edge_item[np.searchsorted(keys, _keys(query, rank))].astype(np.int64)


def grades_of_units(judged: Relation, relation: Relation, otherwise: Floats) -> Floats:
    """Return for each item of a relation the grade that another one gives to its unit.

    Both are of the same run. An item of no unit, or of one that was not judged, keeps its own.
    """
    found = otherwise.copy()
    theirs = _keys(judged.edge_query, judged.edge_rank)
    ours = _keys(relation.edge_query, relation.edge_rank)
    place = np.searchsorted(theirs, ours)
    same = place < len(theirs)
    same[same] = theirs[place[same]] == ours[same]
    at = np.flatnonzero(same)[::-1]  # the last assignment wins: that of the best rank
    found[relation.edge_item[at]] = judged.item_grade[judged.edge_item[place[at]]]
    return found


def _keys(query: Ints, rank: Ints) -> Ints:
    return query.astype(np.int64) * RANKS + rank
