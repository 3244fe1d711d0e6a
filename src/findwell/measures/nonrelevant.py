"""Units that were judged not relevant, or only pooled, and how many are above each hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from findwell.core.data import Bools, Ints
    from findwell.core.relation import Hits, Relation


def rejected(relation: Relation, rel: float) -> Ints:
    """Return the keys of the units that were judged and are not relevant, sorted."""
    grade = relation.item_grade[relation.edge_item]
    judged = _units(relation, (grade >= 0) & (grade < rel))
    return np.setdiff1d(judged, _units(relation, grade >= rel), assume_unique=True)


def rejected_above(relation: Relation, rel: float, hits: Hits) -> Ints:
    """Count, for each hit, the units above it that were judged and are not relevant."""
    return _above(relation, rejected(relation, rel), hits)


def pooled_above(relation: Relation, hits: Hits) -> Ints:
    """Count, for each hit, the units above it that are in the pool but unjudged."""
    grade = relation.item_grade[relation.edge_item]
    pooled = np.setdiff1d(_units(relation, grade < 0), _units(relation, grade >= 0))
    return _above(relation, pooled, hits)


def _units(relation: Relation, mask: Bools) -> Ints:
    """Return the units of these edges, each once, as sorted numbers."""
    mask = mask & relation.edge_counts
    return np.unique(relation.unit_key(relation.edge_query[mask], relation.edge_rank[mask]))


def _above(relation: Relation, units: Ints, hits: Hits) -> Ints:
    first = np.searchsorted(units, relation.unit_key(hits.query, 0))
    return np.searchsorted(units, relation.unit_key(hits.query, hits.rank)) - first
