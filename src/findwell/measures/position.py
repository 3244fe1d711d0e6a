"""Position: where in the context what is needed stands; models read the middle worst."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Divisor, Measure, Terms, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation

ENDS = ("first", "last")
THIRDS = {"first": 0, "middle": 1, "last": 2}


@register_measure
class Position(Measure):
    """Where the first, or the last, needed item stands in the list: 0 at the top, 1 at the end.

    position(of=first)@k = (rank at which the first relevant item is met - 1) ÷ (units among the
    first k - 1); with `of=last` the rank at which the last of those found is met for the first
    time. Where nothing is found it is 1. A reader that stops early needs `last` to be small.

    When to use: to see how far down the needed items stand, independent of the length of the list.
    With `of=last` it only knows the items that were found, so read it next to recall.

    Citation: Liu et al.: Lost in the middle: how language models use long contexts (TACL 12,
    2024).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["x", "a", "y", "b", "z"]}, {"q": ["a", "b"]}
    >>> evaluate(run, gold, ["position", "position(of=last)"]).values
    {'position': 0.25, 'position(of=last)': 0.75}
    """

    of: str = "first"
    rel: float = 1.0

    name: ClassVar[str] = "position"
    formula: ClassVar[str] = r"\frac{r-1}{n_k-1},\quad r=\min_{j\text{ found}}r_j"
    aliases: ClassVar = known_as("first_position", of="first") | known_as(
        "last_position", of="last"
    )
    higher_is_better: ClassVar[bool] = False
    counts_items: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check which item is asked for."""
        super().__post_init__()
        self.require(self.of in ENDS, "of", f"is one of {', '.join(ENDS)}")

    def compute(self, relation: Relation) -> Floats:
        """Return the rank, scaled."""
        hits = relation.credits(self.rel, self.k)
        rank = np.zeros(relation.n)
        ordered = slice(None, None, -1 if self.of == "first" else 1)
        rank[hits.query[ordered]] = hits.rank[ordered]  # the last assignment wins
        scaled = (rank - 1) / np.maximum(relation.shown(self.k) - 1, 1)
        return np.where(rank > 0, scaled, 1.0)


@register_measure
class InThird(Measure):
    """The share of the found items that stand in the middle third of the list, or in another.

    in_third(third=middle)@k = relevant items whose first unit stands in the middle third of the
    units among the first k ÷ relevant items found there at all. The list is divided into three
    equal parts, and a unit belongs to the part that contains its centre. If nothing is found,
    the value is 0.

    When to use: to see whether needed items stand in the middle of a prompt, where language models
    overlook them. It looks only at items that were found, so a bad retriever can have a good value.

    Citation: Liu et al.: Lost in the middle: how language models use long contexts (TACL 12,
    2024).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b", "y", "z", "c"]}, {"q": ["a", "b", "c"]}
    >>> evaluate(run, gold, ["in_middle", "in_third(third=last)"]).values
    {'in_third': 0.3333333333333333, 'in_third(third=last)': 0.3333333333333333}
    """

    third: str = "middle"
    rel: float = 1.0

    name: ClassVar[str] = "in_third"
    formula: ClassVar[str] = (
        r"\frac{\left|\{j\text{ found}:r_j\in\text{third}\}\right|}{\left|\{j\text{ found}\}"
        r"\right|}"
    )
    aliases: ClassVar = known_as("in_middle lost_in_the_middle", third="middle")
    adds: ClassVar[str] = "Count the items in the third"
    higher_is_better: ClassVar[bool] = False
    counts_items: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the third."""
        super().__post_init__()
        self.require(self.third in THIRDS, "third", f"is one of {', '.join(THIRDS)}")

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.credits(self.rel, self.k)
        shown = relation.shown(self.k)[hits.query]
        inside = (6 * hits.rank - 3) // (2 * shown) == THIRDS[self.third]
        return Terms(hits.query[inside], hits.rank[inside])

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the items found."""
        found = relation.count(relation.credits(self.rel, self.k).query)
        return Divisor("relevant items found", np.maximum(found, 1))
