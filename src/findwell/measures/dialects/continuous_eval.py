"""continuous-eval's retrieval metrics (0.3.x), over whatever relation is asked for.

Quirks that the dialect keeps:

- precision counts every retrieved component that matches, repetitions too, ÷ all retrieved;
- a query with nothing retrieved or without gold scores 0 and counts in the mean;
- average precision adds up over every retrieved chunk that matches, also one whose gold was met
  before, and divides by their number;
- nDCG credits a chunk with one gold item, the first of the list that it matches and that no chunk
  above it was credited with, and its ideal list holds all gold, however few were retrieved, with an
  item that is listed twice at two ranks, although it is credited once;
- exact matching compares raw strings, so that a trailing space makes a difference;
- ROUGE-L recall is that of the package rouge 1.0.1: sentences end at every full stop, words are
  unique and keep case and punctuation, and what each gold sentence shares with the retrieved ones
  is united; at least .7 makes chunks a match, at least .8 sentences;
- sentences are split by NLTK's punkt, whose data has to be installed (see
  `findwell.core.texts.sentences`), and the first of a chunk keeps the spaces before it; naming
  another splitter leaves the dialect at that point.

Where the original stops (its ranked metrics without gold), there is no value. One thing is not
kept: where the package rouge gives up, as sentences of about a thousand words exceed Python's
recursion limit, the original takes them for no match; findwell compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Divisor, Ideal, Measure, Terms, gains
from findwell.core.policy import Policy
from findwell.measures.average_precision import AveragePrecision
from findwell.measures.dcg import NDCG
from findwell.measures.dialects.autorag import ListPrecision
from findwell.measures.dialects.dialect import Dialect, register_dialect
from findwell.measures.fscore import FScore
from findwell.measures.reciprocal_rank import ReciprocalRank
from findwell.relations.align import positions

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats
    from findwell.core.relation import Hits, Relation
    from findwell.measures.precision import Precision


class ComponentPrecision(ListPrecision):
    """Matching components, repetitions too, ÷ retrieved components."""

    adds: ClassVar[str] = "Count the components that match, repetitions too"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel, self.k, repeats=True)
        return Terms(hits.query, hits.rank)


class ComponentF(FScore):
    """The harmonic mean with precision over components."""

    precision: ClassVar[type[Precision]] = ComponentPrecision


class Ranked(Measure):
    """What the ranked metrics have in common: without gold they stop, where the others say 0."""

    needs_relevant: ClassVar[bool] = False  # which would make it 0

    def depth(self, *, listed: bool) -> int | None:
        """Return the depth; it matters whether there is gold at all."""
        return None if listed else self.last_rank

    def compute(self, relation: Relation) -> Floats:
        """Return the value, none for a query without gold."""
        without = np.equal(relation.relevant(self.level()), 0)
        return np.where(without, np.nan, super().compute(relation))


@dataclass(frozen=True, kw_only=True)
class ChunkAveragePrecision(Ranked, AveragePrecision):
    """Average precision over the matching chunks."""

    over: str = "retrieved"

    adds: ClassVar[str] = "Add up the precision at the rank of each matching chunk, repetitions too"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel, self.k, repeats=True)
        return Terms(hits.query, hits.rank, hits.nth / hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the matching chunks, unless `over` says otherwise."""
        if self.over != "retrieved":
            return super().divisor(relation)
        found = relation.count(relation.units(self.rel, self.k, repeats=True).query)
        return Divisor("matching chunks", np.maximum(found, 1))


class ChunkReciprocalRank(Ranked, ReciprocalRank):
    """Reciprocal rank, as findwell's."""


class UncutNDCG(Ranked, NDCG):
    """nDCG in which a chunk is credited with one gold, and whose ideal list is not cut at k."""

    adds: ClassVar[str] = "Add up the discounted gains of the gold, of each chunk only one"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.covers(self.level(), self.k, repeats=True)
        hits = hits.take(np.flatnonzero(_one_each(hits)))
        gained = gains(self.gain, relation.item_grade.take(hits.item))
        return Terms(hits.query, hits.rank, gained / relation.discount.take(hits.rank))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the DCG of a list of all gold, repetitions too."""
        query, _, item = relation.ideal()
        if relation.item_times is not None:
            times = relation.item_times.take(item)
            query, item = np.repeat(query, times), np.repeat(item, times)
        best = Ideal(query, positions(query), gains(self.gain, relation.item_grade.take(item)))
        total = relation.total(query, best.gain / np.log2(best.rank + 1))
        return Divisor("ideal DCG of all gold, not cut", total, best)


def _one_each(hits: Hits) -> Bools:
    """Choose for each unit, from the top, its first item that no unit has yet."""
    rows = zip(hits.query.tolist(), hits.rank.tolist(), hits.item.tolist(), strict=True)
    chosen = np.zeros(len(hits.item), dtype=bool)
    items: set[int] = set()
    served: tuple[int, int] | None = None
    for row, (query, rank, item) in enumerate(rows):
        if (query, rank) != served and item not in items:
            chosen[row] = True
            items.add(item)
            served = query, rank
    return chosen


CONTINUOUS_EVAL = register_dialect(
    Dialect(
        "continuous-eval",
        "continuous-eval 0.3",
        Policy(no_relevant="zero", missing="skip"),
        {
            "P": ComponentPrecision,
            "F": ComponentF,
            "AP": ChunkAveragePrecision,
            "RR": ChunkReciprocalRank,
            "nDCG": UncutNDCG,
        },
        relations={
            "exact": {"text": "raw"},
            "exact-sentence": {"text": "raw", "splitter": "punkt"},
            "rouge": {"text": "raw", "form": "union"},
            "rouge-sentence": {"text": "raw", "form": "union", "splitter": "punkt"},
        },
    )
)
