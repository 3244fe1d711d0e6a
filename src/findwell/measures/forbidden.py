"""Forbidden units: what must not be in a context at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from findwell.core.measure import known_as, register_measure
from findwell.measures.counts import Count

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation


@register_measure
class Forbidden(Count):
    """How many chunks were retrieved that must not be seen, among the first k.

    forbidden@k counts, over all queries, the chunks among the first k that are marked:
    documents that the asker has no right to, that are withdrawn or poisoned. It is a gate, not
    a score: `--require "forbidden@10<=0"`. Mark documents with a list of ids `forbidden` in the
    record of a query, or with a column `forbidden` of the corpus. Every repetition counts.

    When to use: to make sure that documents of other tenants, or secret or withdrawn ones, are
    never retrieved. Any value above 0 is a leak: look at each query concerned.

    Citation: none; a count.

    >>> from findwell import evaluate
    >>> gold = [{"query": "q", "gold": ["a"], "forbidden": ["x"]}]
    >>> run = {"q": ["a", "b", "x"]}
    >>> evaluate(run, gold, measures=["forbidden@2", "forbidden@3"]).values
    {'forbidden@2': 0.0, 'forbidden@3': 1.0}
    """

    name: ClassVar[str] = "forbidden"
    formula: ClassVar[str] = r"\left|\{i\le k:d_i\text{ forbidden}\}\right|"
    aliases: ClassVar = known_as("leaks")
    higher_is_better: ClassVar[bool] = False
    counts_items: ClassVar[bool] = False

    def facts(self) -> frozenset[str]:
        """Return which chunks are forbidden."""
        return super().facts() | {"forbidden"}

    def compute(self, relation: Relation) -> Floats:
        """Return the forbidden chunks of each query."""
        return relation.paid("forbidden", self.k)
