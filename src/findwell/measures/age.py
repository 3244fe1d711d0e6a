"""Age: how old what was retrieved is."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Measure, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats
    from findwell.core.relation import Relation

EPOCH = date(1970, 1, 1)
AVERAGES = ("mean", "median")


@register_measure
class Age(Measure):
    """How many days old the retrieved chunks are, on average.

    age(on=2026-05-31)@k = the mean, or with `of=median` the median, of the days from the date of
    each of the first k chunks to a reference date; without `on` that is the newest date of the
    corpus. A chunk whose date is unknown is left out, and one that is newer than the reference
    date is of age 0. It is undefined where no date is known.

    When to use: where answers expire: it shows whether an index returns outdated chunks. It says
    nothing about relevance, so read it next to recall.

    Citation: none; on answers from old documents see Vu et al.: FreshLLMs (ACL Findings 2024).

    >>> from findwell import evaluate
    >>> corpus = [
    ...     {"doc": "a", "text": "The fee is 5.", "date": "2026-05-01"},
    ...     {"doc": "b", "text": "The fee is 4.", "date": "2024-05-01"},
    ... ]
    >>> run, gold = {"q": ["a", "b"]}, {"q": ["a"]}
    >>> evaluate(run, gold, ["age@1", "age(on=2026-05-11)@2"], corpus=corpus).values
    {'age@1': 0.0, 'age(on=2026-05-11)@2': 375.0}
    """

    on: str = ""
    of: str = "mean"

    name: ClassVar[str] = "age"
    formula: ClassVar[str] = (
        r"\frac{1}{\left|D\right|}\sum_{i\in D}(\text{reference}-\text{date}_i),\quad D=\{i"
        r"\le k:\text{date}_i\text{ known}\}"
    )
    aliases: ClassVar = known_as("mean_age", of="mean") | known_as("median_age", of="median")
    needs_relevant: ClassVar[bool] = False
    unit_interval: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False
    counts_items: ClassVar[bool] = False
    why_undefined: ClassVar[str] = "no date is known"

    def __post_init__(self) -> None:
        """Check the date and the average."""
        super().__post_init__()
        self.require(self.of in AVERAGES, "of", f"is one of {', '.join(AVERAGES)}")
        self.require(not self.on or self._reference() is not None, "on", "is a date: 2026-05-31")

    def facts(self) -> frozenset[str]:
        """Return the dates of chunks, and the newest of the corpus."""
        return super().facts() | {"date", "newest"}

    def _reference(self) -> float | None:
        try:
            return float((date.fromisoformat(self.on) - EPOCH).days)
        except ValueError:
            return None

    def _ages(self, relation: Relation) -> tuple[Floats, Bools]:
        """Return the age of each chunk, and which of them count."""
        given = self._reference() if self.on else None
        reference = relation.fact("newest") if given is None else given
        age = np.maximum(reference - relation.fact("date"), 0.0)
        first, count = relation.chunks[:-1], np.diff(relation.chunks)
        nth = np.arange(relation.chunks[-1]) - np.repeat(first, count)
        return age, ~np.isnan(age) & (nth < np.repeat(relation.chunks_within(self.k), count))

    def undefined(self, relation: Relation) -> Bools:
        """Tell which queries have no chunk with a date."""
        _, counts = self._ages(relation)
        return np.equal(relation.count(self._query(relation)[counts]), 0)

    def _query(self, relation: Relation) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.repeat(np.arange(relation.n), np.diff(relation.chunks))

    def compute(self, relation: Relation) -> Floats:
        """Return the average age of the chunks of each query."""
        age, counts = self._ages(relation)
        query, age = self._query(relation)[counts], age[counts]
        known = relation.count(query)
        if self.of == "mean":
            return relation.total(query, age) / known
        age = age[np.lexsort((age, query))]
        if not len(age):
            return np.full(relation.n, np.nan)
        first = np.cumsum(known) - known
        low, high = first + np.maximum(known - 1, 0) // 2, first + known // 2
        last = len(age) - 1
        middle: Floats = age[np.minimum(low, last)] + age[np.minimum(high, last)]
        return middle / 2
