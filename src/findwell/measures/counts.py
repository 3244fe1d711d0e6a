"""Counts: how much there was, added up over the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Aggregation, Measure, Terms, known_as, register_measure
from findwell.measures.nonrelevant import rejected

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation


class Count(Measure):
    """Base of the counts."""

    aggregation: ClassVar[Aggregation] = "sum"
    needs_relevant: ClassVar[bool] = False
    unit_interval: ClassVar[bool] = False


@register_measure
class Queries(Count):
    """How many queries were measured.

    When to use: to check on how many queries a result rests. It is a count, not a quality.

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a"]}, {"q": ["a"], "r": ["b"]}, measures=["num_q"])["queries"]
    2.0
    """

    name: ClassVar[str] = "queries"
    formula: ClassVar[str] = r"n"
    aliases: ClassVar = known_as("num_q")
    at: ClassVar[str | None] = None

    def compute(self, relation: Relation) -> Floats:
        """Return 1 for every query."""
        return np.ones(relation.n)


@register_measure
class Retrieved(Count):
    """How many units were retrieved, among the first k.

    When to use: to check that all systems retrieved the same number of units. It is a count, not a
    quality.

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a", "b", "c"]}, {"q": ["a"]}, measures=["num_ret"])["retrieved"]
    3.0
    """

    name: ClassVar[str] = "retrieved"
    formula: ClassVar[str] = r"\min(k,\left|L\right|)"
    aliases: ClassVar = known_as("num_ret")
    counts_items: ClassVar[bool] = False

    def compute(self, relation: Relation) -> Floats:
        """Return the depth of each list, cut at k."""
        return relation.shown(self.k).astype(float)


@register_measure
class Relevant(Count):
    """How many relevant items there are.

    When to use: to check how many relevant items the labels have in total. It describes the gold
    labels, not a system.

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a"]}, {"q": {"a": 1, "b": 2, "c": 0}}, measures=["num_rel"])["relevant"]
    2.0
    """

    rel: float = 1.0

    name: ClassVar[str] = "relevant"
    formula: ClassVar[str] = r"R"
    aliases: ClassVar = known_as("num_rel")
    at: ClassVar[str | None] = None

    def compute(self, relation: Relation) -> Floats:
        """Return the relevant items of each query."""
        return relation.relevant(self.rel).astype(float)


@register_measure
class RelevantRetrieved(Count):
    """How many relevant items were found, among the first k.

    When to use: to count hits instead of shares, for example in a table of trec_eval. Queries with
    many relevant items dominate its sum; use recall to compare systems.

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x"]}, {"q": ["a", "b"]}
    >>> evaluate(run, gold, measures=["num_rel_ret"])["relevant_retrieved"]
    1.0
    """

    rel: float = 1.0

    name: ClassVar[str] = "relevant_retrieved"
    formula: ClassVar[str] = r"\left|\{j:r_j\le k\}\right|"
    aliases: ClassVar = known_as("num_rel_ret hits")
    adds: ClassVar[str] = "Count the items that the first k units cover"
    counts_items: ClassVar[bool] = False

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel, self.k)
        return Terms(hits.query, hits.rank)


@register_measure
class RejectedRetrieved(Count):
    """How many units were retrieved that were judged not relevant, among the first k.

    When to use: to count the documents that were judged not relevant and still retrieved. Unjudged
    documents do not count, so read it next to judged@k.

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "y"]}, {"q": {"a": 1, "x": 0}}
    >>> evaluate(run, gold, measures=["num_nonrel_judged_ret"])["rejected_retrieved"]
    1.0
    """

    rel: float = 1.0

    name: ClassVar[str] = "rejected_retrieved"
    formula: ClassVar[str] = r"\left|\{i\le k:d_i\text{ judged, not relevant}\}\right|"
    aliases: ClassVar = known_as("num_nonrel_judged_ret")
    higher_is_better: ClassVar[bool] = False
    adds: ClassVar[str] = "Count the units that were judged and are not relevant"

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        query, rank = relation.unit_of(rejected(relation, self.rel))
        within = relation.within(query, rank, self.k)
        return Terms(query[within], rank[within])
