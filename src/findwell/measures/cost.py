"""What a context costs: its size, what it takes to reach a recall, and items for the money."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import UNITS, Measure, known_as, register_measure
from findwell.measures.running import running_sums

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.relation import Relation

RANKS = "ranks"  # chunks, which cost nothing but a place
THOUSAND = 1000.0
ROUNDING_ERROR = 1e-9  # .7 of 10 items are 7 items, whatever floats say


class Priced(Measure):
    """Base of the measures with a unit of cost; a dataclass by those that are registered."""

    unit: str = "tokens"

    needs_relevant: ClassVar[bool] = False
    unit_interval: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the unit."""
        super().__post_init__()
        self.require(self.unit in (*UNITS, RANKS), "unit", f"is one of {', '.join(UNITS)}, {RANKS}")

    def facts(self) -> frozenset[str]:
        """Return what chunks cost; of searches also how many there were."""
        own = {"hops": {"hops", "calls"}, RANKS: set[str]()}.get(self.unit, {self.unit})
        return super().facts() | own

    def cost(self, relation: Relation) -> Floats:
        """Return what the list of each query costs, down to the cutoff."""
        if self.unit == RANKS:
            return relation.chunks_within(self.k).astype(np.float64)
        if self.unit == "hops" and self.k is None:  # also those that found nothing
            return relation.paid_last("calls")
        return relation.paid(self.unit, self.k)


@register_measure
class ContextCost(Priced):
    """How much the retrieved context costs: its tokens, characters or searches.

    context_cost(unit=tokens)@k = the tokens of the first k chunks, repetitions included. With
    `unit=chars` it is characters, with `unit=hops` the searches that were made, with `unit=ranks`
    the chunks. Next to recall it says what a longer list costs.

    When to use: to see what a context costs next to what it finds. Lower is cheaper, not better:
    compare it at equal recall.

    Citation: none; what every provider of a language model charges for.

    >>> from findwell import evaluate
    >>> texts = {"a": "Press the button twice.", "x": "It is warm."}
    >>> found = evaluate({"q": ["a", "x"]}, {"q": ["a"]}, ["tokens@1", "tokens"], corpus=texts)
    >>> found.values
    {'context_cost@1': 5.0, 'context_cost': 9.0}
    """

    unit: str = "tokens"

    name: ClassVar[str] = "context_cost"
    formula: ClassVar[str] = r"\sum_{i\le k}\text{cost}_i"
    aliases: ClassVar = (
        known_as("tokens", unit="tokens")
        | known_as("chars characters", unit="chars")
        | known_as("calls hops searches", unit="hops")
    )
    counts_items: ClassVar[bool] = False

    def compute(self, relation: Relation) -> Floats:
        """Return what the list of each query costs."""
        return self.cost(relation)


@register_measure
class ItemsPer(Priced):
    """Relevant items found for what the context costs: per 1,000 tokens, or per search.

    items_per(unit=tokens)@k = relevant items covered by the first k ÷ their tokens, × 1,000; the
    same with `unit=chars`. With `unit=hops` it is the new items per search: an item that a later
    search finds again counts once. An item that is supported in part counts in part, as in recall.
    Where nothing was retrieved it is 0.

    When to use: to compare contexts of different size: how many needed items the same cost buys. It
    favours very short lists, so read it next to recall.

    Citation: Smith, Troynikov: Evaluating chunking strategies for retrieval (Chroma, 2024), for
    the efficiency of tokens; Chen et al.: BrowseComp-Plus (2025), for the number of searches.

    >>> from findwell import evaluate
    >>> hops = [{"retrieved": ["a", "x"]}, {"retrieved": ["a", "b"]}, {"retrieved": []}]
    >>> sample = {"query": "q", "hops": hops, "gold": ["a", "b", "c"]}
    >>> evaluate([sample], measures=["items_per_call", "items_per_call@1hop"]).values
    {'items_per(unit=hops)': 0.6666666666666666, 'items_per(unit=hops)@1hops': 1.0}
    """

    unit: str = "tokens"
    rel: float = 1.0

    name: ClassVar[str] = "items_per"
    formula: ClassVar[str] = (
        r"1000\cdot\frac{\left|\{j\text{ found}\}\right|}{\sum_{i\le k}\text{cost}_i}"
    )
    aliases: ClassVar = (
        known_as("items_per_call new_items_per_call items_per_hop", unit="hops")
        | known_as("items_per_1000_tokens token_efficiency", unit="tokens")
        | known_as("items_per_1000_chars", unit="chars")
    )
    needs_relevant: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = True

    def compute(self, relation: Relation) -> Floats:
        """Return items ÷ cost."""
        query, _, gain = relation.supports(self.rel, self.k)
        found = relation.count(query) if gain is None else relation.total(query, gain)
        cost = self.cost(relation)
        scale = 1.0 if self.unit in ("hops", RANKS) else THOUSAND
        return np.where(cost > 0, found * scale / np.maximum(cost, ROUNDING_ERROR), 0.0)


@register_measure
class CostTo(Priced):
    """What it takes until recall reaches a level: ranks, tokens, characters or searches.

    cost_to(recall=r) = what the list costs down to the first unit at which recall ≥ r, that unit
    included; an item that is supported in part counts in part, as in recall. It is undefined for a
    query whose list does not reach r; such queries are counted and left out of the mean, so read it
    together with the share of queries that reach it (`all_found` for r = 1).

    When to use: to ask how much context a level of recall takes. Queries that never reach the level
    have no value, so read it next to their count.

    Citation: Chen et al.: BrowseComp-Plus (2025), for the number of searches; in ranks it is the
    search length of Cooper (American Documentation 19(1), 1968) at a level of recall.

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["x", "a", "b"]}, {"q": ["a", "b"]}
    >>> evaluate(run, gold, ["cost_to(recall=0.5)", "cost_to"]).values
    {'cost_to(recall=0.5)': 2.0, 'cost_to': 3.0}
    """

    recall: float = 1.0
    unit: str = RANKS
    rel: float = 1.0

    name: ClassVar[str] = "cost_to"
    formula: ClassVar[str] = r"\sum_{i\le r}\text{cost}_i,\quad r=\min\{i:\text{recall}@i\ge\rho\}"
    aliases: ClassVar = (
        known_as("calls_to hops_to", unit="hops")
        | known_as("tokens_to", unit="tokens")
        | known_as("chars_to", unit="chars")
        | known_as("ranks_to", unit=RANKS)
    )
    needs_relevant: ClassVar[bool] = True
    why_undefined: ClassVar[str] = "no relevant item, or recall does not get there"

    def __post_init__(self) -> None:
        """Check the recall."""
        super().__post_init__()
        self.require(0 <= self.recall <= 1, "recall", "is a number from 0 to 1")

    def undefined(self, relation: Relation) -> Bools:
        """Tell which queries have no relevant item, or do not reach the recall."""
        return super().undefined(relation) | ~self._reached(relation)[0]

    def compute(self, relation: Relation) -> Floats:
        """Return what the list costs down to the unit that reaches the recall."""
        reached, query, rank = self._reached(relation)
        value = np.zeros(relation.n)
        chunk = relation.chunk_of(query, rank)
        if self.unit == RANKS:
            value[query] = chunk - relation.chunks[query] + 1
        else:
            value[query] = relation.spent(self.unit)[chunk]
        return np.where(reached, value, np.nan)

    def _reached(self, relation: Relation) -> tuple[Bools, Ints, Ints]:
        """Return which queries reach the recall, and by which unit those that need one."""
        needed = relation.relevant(self.rel) * self.recall - ROUNDING_ERROR
        query, rank, gain = relation.supports(self.rel, self.k, steps=True)
        gain = np.ones(len(query)) if gain is None else gain
        found = running_sums(gain, relation.count(query))
        enough = np.flatnonzero(found >= needed[query])
        enough = enough[np.diff(query[enough], prepend=-1) > 0]  # the first of each query
        enough = enough[needed[query[enough]] > 0]
        reached = needed <= 0
        reached[query[enough]] = True
        return reached, query[enough], rank[enough]
