"""AutoRAG's retrieval metrics (Python 0.3.x).

The ground truth is a list of groups: all groups are needed, any document of a group will do.
Quirks that the dialect keeps:

- a query scores None if its ground truth or what was retrieved is empty, or holds an empty group
  or a blank id;
- precision divides by the length of the list, repetitions included, and counts distinct documents;
- MRR is the mean over the groups of 1 ÷ the rank of the group's first hit;
- MAP is the mean over the groups of an average precision in which only the group's own hits count,
  divided by how many of them were retrieved;
- nDCG credits every document of any group, again when it is repeated, so that it can pass 1; its
  ideal list is as long as all groups together, though one document of each would do.

Where the original compares ids of different types (the text "1" and the number 1) they differ;
karat reads all ids as text. A cutoff takes the first k of the list; AutoRAG has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.align.align import positions
from karat.core.policy import Policy
from karat.core.relation import ANY_GAIN
from karat.dialects.dialect import Dialect, register_dialect
from karat.measures.average_precision import AveragePrecision
from karat.measures.fscore import FScore
from karat.measures.measure import Divisor, Ideal, Limit, Terms
from karat.measures.ndcg import NDCG
from karat.measures.precision import Precision
from karat.measures.reciprocal_rank import ReciprocalRank

if TYPE_CHECKING:
    from karat.core.data import Ints
    from karat.core.relation import Relation


@dataclass(frozen=True, kw_only=True)
class ListPrecision(Precision):
    """Distinct relevant units ÷ the length of the list."""

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the length of the list, cut at k."""
        return Divisor("units retrieved", np.maximum(relation.shown(self.k), 1))


@dataclass(frozen=True, kw_only=True)
class ListF(FScore):
    """The harmonic mean with precision over the length of the list."""

    precision: ClassVar[type[Precision]] = ListPrecision


@dataclass(frozen=True, kw_only=True)
class GroupReciprocalRank(ReciprocalRank):
    """The mean over the groups of 1 ÷ the rank of the group's first hit."""

    adds: ClassVar[str] = "Add up 1 ÷ rank of the first hit of each group"

    def counts_items(self) -> bool:
        """Tell that all groups count."""
        return True

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel, self.k)
        return Terms(hits.query, hits.rank, 1 / hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the groups."""
        return Divisor("groups", relation.relevant(self.rel))


@dataclass(frozen=True, kw_only=True)
class GroupAveragePrecision(AveragePrecision):
    """The mean over the groups of their own average precision over what was retrieved of them."""

    adds: ClassVar[str] = (
        "Add up, hit by hit, the precision of its group ÷ the group's hits retrieved"
    )

    def counts_items(self) -> bool:
        """Tell that all groups count."""
        return True

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.covers(self.rel, self.k, repeats=True)
        nth, size = _within_group(hits.item)
        return Terms(hits.query, hits.rank, nth / hits.rank / size)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the groups."""
        return Divisor("groups", relation.relevant(self.rel))


@dataclass(frozen=True, kw_only=True)
class FlatNDCG(NDCG):
    """nDCG over the documents of all groups together, repetitions credited again."""

    limit: ClassVar[Limit | None] = None  # repetitions may lift it over 1
    adds: ClassVar[str] = "Gain 1 for every unit of any group, discounted"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(ANY_GAIN, self.k, repeats=True)
        return Terms(hits.query, hits.rank, 1 / relation.discount.take(hits.rank))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the gain of a list of all documents of all groups, as long as the list."""
        relevant = relation.item_grade[relation.member_item] > 0
        docs = relation.count(relation.item_query[relation.member_item[relevant]])
        ideal = ones_first(np.minimum(docs, relation.shown(self.k)))
        return Divisor.discounted("ideal DCG of all documents of all groups", relation, ideal)


def ones_first(count: Ints) -> Ideal:
    """Return the lists that gain 1 at each of the first so many ranks of each query."""
    query = np.repeat(np.arange(len(count)), count)
    return Ideal(query, positions(query), np.ones(len(query)))


def _within_group(item: Ints) -> tuple[Ints, Ints]:
    """Number the hits of each group in rank order, and count them."""
    order = np.argsort(item, kind="stable")
    _, start, size = np.unique(item[order], return_index=True, return_counts=True)
    nth = np.empty(len(item), dtype=np.int64)
    nth[order] = np.arange(len(item)) - np.repeat(start, size) + 1
    sizes = np.empty(len(item), dtype=np.int64)
    sizes[order] = np.repeat(size, size)
    return nth, sizes


AUTORAG = register_dialect(
    Dialect(
        "autorag",
        "AutoRAG 0.3",
        Policy(nothing="undefined", blank="undefined", missing="skip"),
        {
            "P": ListPrecision,
            "F": ListF,
            "RR": GroupReciprocalRank,
            "AP": GroupAveragePrecision,
            "nDCG": FlatNDCG,
        },
    )
)
