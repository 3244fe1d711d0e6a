"""Redundancy: what a context says again."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Measure, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation


@register_measure
class Redundancy(Measure):
    """The share of retrieved units that only repeat units above them.

    redundancy@k = units among the first k that are relevant but cover no item that is new, and
    repetitions of units, ÷ units among the first k. What is not relevant at all is noise and not
    redundant: see P. With several searches, a document that is found again is a repetition.

    When to use: to see how many results repeat an item that was already found, as with gold groups
    or overlapping chunks. A list without any hit is not redundant, so read it next to recall.

    Citation: Zhai, Cohen, Lafferty: Beyond independent relevance (SIGIR 2003), for the cost of
    redundant documents.

    >>> from findwell import evaluate
    >>> gold = {"q": [["a", "b"], ["c"]]}  # (a or b) and c
    >>> evaluate({"q": ["a", "b", "x", "c"]}, gold, measures=["redundancy@4"])["redundancy@4"]
    0.25
    """

    rel: float = 1.0

    name: ClassVar[str] = "redundancy"
    formula: ClassVar[str] = r"\frac{\left|\{i\le k:d_i\text{ relevant, nothing new}\}\right|}{n_k}"
    aliases: ClassVar = known_as("redundant")
    needs_relevant: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False
    counts_items: ClassVar[bool] = False

    def compute(self, relation: Relation) -> Floats:
        """Return the units that bring nothing new ÷ the units retrieved."""
        relevant = relation.count(relation.units(self.rel, self.k).query)
        news = relation.credits(self.rel, self.k)
        query, _ = relation.unit_of(np.unique(relation.unit_key(news.query, news.rank)))
        again = relevant - relation.count(query) + relation.repeats(self.k)
        return again / np.maximum(relation.shown(self.k), 1)


@register_measure
class NearDuplicates(Measure):
    """The share of retrieved chunks whose text nearly repeats that of a chunk above.

    near_duplicates@k = chunks among the first k that share at least 80 % of their sequences of
    three words with a chunk above them (Jaccard index; case and punctuation do not count) ÷
    chunks among the first k. It needs no gold labels. It detects overlapping chunks, copies
    under other ids and boilerplate, but not paraphrases.

    When to use: to find out how much of a context repeats itself, for example with overlapping
    chunks. It needs texts, and does not know whether the repeated text is relevant.

    Citation: Broder: On the resemblance and containment of documents (SEQUENCES 1997).

    >>> from findwell import evaluate
    >>> texts = {"a": "Press the red button twice.", "b": "Press the red button twice!", "c": "Hi."}
    >>> run, gold = {"q": ["a", "b", "c"]}, {"q": ["a"]}
    >>> evaluate(run, gold, ["near_duplicates@2"], corpus=texts)["near_duplicates@2"]
    0.5
    """

    name: ClassVar[str] = "near_duplicates"
    formula: ClassVar[str] = r"\frac{\left|\{i\le k:\text{some }j<i,\ d_j\approx d_i\}\right|}{n_k}"
    aliases: ClassVar = known_as("near_duplicate duplicate_texts")
    needs_relevant: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False
    counts_items: ClassVar[bool] = False

    def facts(self) -> frozenset[str]:
        """Return which chunks nearly repeat another."""
        return super().facts() | {"copies"}

    def compute(self, relation: Relation) -> Floats:
        """Return the near-duplicates ÷ the chunks retrieved."""
        chunks = relation.chunks_within(self.k)
        return relation.paid("copies", self.k) / np.maximum(chunks, 1)
