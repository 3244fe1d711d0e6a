"""Which pair of a query and a document to label next.

To order systems, documents are taken from the runs one after the other, by depth, by move-to-front
or by a bandit. All three favour what is likely to be relevant, so that few labels tell systems
apart; for the same reason averages of such labels are biased. Absolute values need a sample in
which every pair has a known chance (`findwell.loop.labels.sampling`). A judge's opinion never
decides the order: systems that think like the judge would gain by it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from findwell.core.data import Bools, Ints

METHODS = ("mm-ns", "mtf", "depth")  # the default first
LAST = 2**62  # a rank below all others
FORGET = {"mm-ns": 0.0}  # share of what a bandit knows that it keeps when it learns more


def next_document(
    ranks: Ints, relevant: Mapping[int, bool], method: str, taken: Collection[int] = ()
) -> int | None:
    """Return which document of a query to label next, by its column; None if all are labelled.

    `ranks` has a row per run and a column per document, from 1, 0 where the run lacks it; the order
    of rows and columns breaks ties. `relevant` is what is known of those labelled; the `taken` are
    passed over. The method is replayed from its start over what is known, so that the answer
    depends on the labels alone and not on who gave them when.

    - `depth`: the lowest rank in any run.
    - `mtf`, move-to-front (Cormack, Palmer, Clarke 1998): stay with a run as long as its next
      document is relevant, else it goes behind the others.
    - `mm-ns` (Losada, Parapar, Barreiro 2016): the run whose last labelled document was relevant is
      the most promising; every run that holds a document learns from its label.

    >>> ranks = np.array([[1, 2, 0], [0, 1, 2]])
    >>> next_document(ranks, {0: False}, "mm-ns"), next_document(ranks, {0: True, 1: True}, "mtf")
    (1, 2)
    """
    return _walk(ranks, method, frozenset(taken), relevant.get)


def simulated_order(ranks: Ints, relevant: Bools, method: str, budget: int) -> list[int]:
    """Return the documents that a method would have labelled, given what they would turn out to be.

    >>> simulated_order(np.array([[1, 2, 0], [0, 1, 2]]), np.array([False, True, True]), "mm-ns", 2)
    [0, 1]
    """
    asked: list[int] = []

    def ask(doc: int) -> bool | None:
        if len(asked) == budget:
            return None
        asked.append(doc)
        return bool(relevant[doc])

    _walk(ranks, method, frozenset(), ask)
    return asked


def _walk(
    ranks: Ints, method: str, hidden: frozenset[int], ask: Callable[[int], bool | None]
) -> int | None:
    """Ask about documents in the order of a method; return the first that nothing is known of."""
    if method == "depth":
        best = np.where(ranks > 0, ranks, LAST).min(axis=0, initial=LAST)
        order = np.lexsort((-(ranks > 0).sum(axis=0), best))
        shown = (doc for doc in order.tolist() if best[doc] < LAST and doc not in hidden)
        return next((doc for doc in shown if ask(doc) is None), None)
    lists: list[list[int]] = [
        [doc for doc in np.argsort(row, kind="stable").tolist() if row[doc] and doc not in hidden]
        for row in ranks
    ]
    at = [0] * len(lists)  # the next document of each run
    step = _Bandit(ranks) if method in FORGET else _MoveToFront(len(lists))
    seen: set[int] = set()
    while True:
        for run, docs in enumerate(lists):
            while at[run] < len(docs) and docs[at[run]] in seen:
                at[run] += 1
        ahead = [
            int(ranks[run, docs[at[run]]]) if at[run] < len(docs) else None
            for run, docs in enumerate(lists)
        ]
        if all(rank is None for rank in ahead):
            return None
        run = step.choose(ahead)
        doc = lists[run][at[run]]
        known = ask(doc)
        if known is None:
            return doc
        seen.add(doc)
        step.learn(run, doc, relevant=known)


class _Bandit:
    """The run of the largest mean of a beta distribution that forgets all but the last label."""

    def __init__(self, ranks: Ints) -> None:
        self.holds = ranks > 0
        self.good = np.zeros(len(ranks))
        self.seen = np.zeros(len(ranks))

    def choose(self, ahead: Sequence[int | None]) -> int:
        """Return the most promising run; of equal ones that whose next rank is lowest."""
        mean = (self.good + 1) / (self.seen + 2)
        open_ = [(-mean[run], rank, run) for run, rank in enumerate(ahead) if rank is not None]
        return min(open_)[2]

    def learn(self, run: int, doc: int, *, relevant: bool) -> None:
        """Take in a label: all runs that hold the document learn."""
        del run
        keep = FORGET["mm-ns"]
        holds = self.holds[:, doc]
        self.good[holds] = keep * self.good[holds] + relevant
        self.seen[holds] = keep * self.seen[holds] + 1


class _MoveToFront:
    """The run of the highest priority, which falls when a document of it is not relevant."""

    def __init__(self, runs: int) -> None:
        self.priority = np.zeros(runs)
        self.current: int | None = None

    def choose(self, ahead: Sequence[int | None]) -> int:
        """Stay with the run as long as it is good; of equal ones take the lowest next rank."""
        if self.current is not None and ahead[self.current] is not None:
            return self.current
        open_ = [
            (-self.priority[run], rank, run) for run, rank in enumerate(ahead) if rank is not None
        ]
        self.current = min(open_)[2]
        return self.current

    def learn(self, run: int, doc: int, *, relevant: bool) -> None:
        """Take in a label: a run whose document is not relevant goes behind the others."""
        del doc
        if not relevant:
            self.priority[run] -= 1
            self.current = None


def quotas(sizes: Sequence[int], budget: int | None) -> list[int]:
    """Share a budget of labels among queries as evenly as their sizes allow, the first ones first.

    >>> quotas([10, 2, 10], 11)
    [5, 2, 4]
    >>> quotas([3, 3], None)
    [3, 3]
    """
    if budget is None:
        return list(sizes)
    found = [0] * len(sizes)
    left = min(budget, sum(sizes))
    while left:
        room = [at for at, size in enumerate(sizes) if found[at] < size]
        each = max(1, left // len(room))
        for at in room:
            more = min(each, sizes[at] - found[at], left)
            found[at] += more
            left -= more
    return found


def uniform(seed: int, *names: str) -> float:
    """Return a number from 0 to below 1 that depends on nothing but the seed and the names.

    So a document keeps its number whatever else is in the pool, and on every machine.

    >>> 0 <= uniform(0, "q1", "d1") < 1, uniform(0, "q1", "d1") == uniform(0, "q1", "d1")
    (True, True)
    """
    told = "".join(f"{len(name)}:{name}" for name in names)
    digest = hashlib.blake2b(f"{seed}:{told}".encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big") / 2**64
