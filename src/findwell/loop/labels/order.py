"""Which pair of a query and a document to label next.

To order systems, documents are taken from the runs one after the other, by depth, by move-to-front
or by a bandit. All three favour what is likely to be relevant, so that few labels distinguish
systems; for the same reason averages of such labels are biased. Absolute values need a sample in
which every pair has a known chance (`findwell.loop.labels.label_pool`). A judge's opinion never
decides the order: systems that think like the judge would gain by it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from findwell.core.data import Bools, Ints
    from findwell.io.storage.durable import DurableFile

METHODS = ("mm-ns", "mtf", "depth")  # the default first
LAST_RANK = 2**62  # below all others
GRADED = ("label", "adjudicate")  # events that say a grade


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
        best = np.where(ranks > 0, ranks, LAST_RANK).min(axis=0, initial=LAST_RANK)
        order = np.lexsort((-(ranks > 0).sum(axis=0), best))
        shown = (doc for doc in order.tolist() if best[doc] < LAST_RANK and doc not in hidden)
        return next((doc for doc in shown if ask(doc) is None), None)
    lists: list[list[int]] = [
        [doc for doc in np.argsort(row, kind="stable").tolist() if row[doc] and doc not in hidden]
        for row in ranks
    ]
    at = [0] * len(lists)  # the next document of each run
    priority = np.zeros(len(lists), dtype=np.int64)
    current: int | None = None
    seen: set[int] = set()
    while True:
        for run, docs in enumerate(lists):
            while at[run] < len(docs) and docs[at[run]] in seen:
                at[run] += 1
        ahead = {
            run: int(ranks[run, docs[at[run]]])
            for run, docs in enumerate(lists)
            if at[run] < len(docs)
        }
        if not ahead:
            return None
        if method == "mm-ns" or current not in ahead:  # of equal runs that of the lowest next rank
            current = min(ahead, key=lambda run: (-priority[run], ahead[run], run))
        doc = lists[current][at[current]]
        known = ask(doc)
        if known is None:
            return doc
        seen.add(doc)
        if method == "mm-ns":  # what all runs that hold the document knew before is forgotten
            priority[ranks[:, doc] > 0] = 1 if known else -1
        elif not known:
            priority[current] -= 1
            current = None


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


class Said(NamedTuple):
    """The last thing that an annotator said about a pair."""

    annotator: str
    kind: str
    grade: float | None
    note: str


SaidByPair: TypeAlias = dict[int, list[Said]]


def said_by(name: str, said: SaidByPair) -> list[tuple[int, Said]]:
    """Return what an annotator said, with the pairs that it is about; decisions are not labels."""
    return [
        (pair, one)
        for pair, each in said.items()
        for one in each
        if one.annotator == name and one.kind != "adjudicate"
    ]


@dataclass(frozen=True, slots=True, eq=False)
class LabellingPlan:
    """What is to be labelled, in which order, and by how many."""

    design: str  # sample, or the method that orders documents
    sample: list[int]  # pairs, in the order in which they are labelled
    queries: list[tuple[list[int], Ints]]  # pairs and ranks of each query, in the order of work
    quota: list[int]
    shared: frozenset[int]  # pairs that every annotator labels

    @classmethod
    def of(cls, file: DurableFile, settings: dict[str, Any]) -> LabellingPlan:
        """Read it from a pool."""
        seed, overlap = settings.get("seed", 0), settings.get("overlap", 0.0)
        pairs = file.rows(
            "SELECT pair.number, query.query, doc, place FROM pair "
            "JOIN query ON query.number = pair.query"
        )
        shared = frozenset(
            number
            for number, query, doc, _ in pairs
            if uniform(seed, "overlap", query, doc) < overlap
        )
        design = settings.get("design", "depth")
        if design == "sample":
            drawn = sorted((place, number) for number, *_, place in pairs if place is not None)
            return cls(design, [number for _, number in drawn], [], [], shared)
        lists = ranked_lists(file, pairs, seed)
        quota = quotas([len(docs) for docs, _ in lists], settings.get("budget"))
        return cls(design, [], lists, quota, shared)

    def choose(self, name: str, said: SaidByPair, offered: frozenset[int]) -> int | None:
        """Return the pair that this annotator should label next."""
        mine, others = self._done(name, said)
        if self.design == "sample":
            taken = mine | ((others | offered) - self.shared)
            return next((pair for pair in self.sample if pair not in taken), None)
        again = others & self.shared
        for pairs, _ in self.queries:
            for pair in pairs:
                if pair in again:
                    return pair
        for (pairs, ranks), quota in zip(self.queries, self.quota, strict=True):
            known = relevant_of(pairs, said)
            waiting = {
                at
                for at, pair in enumerate(pairs)
                if pair in offered and at not in known and pair not in self.shared
            }
            if len(known) + len(waiting) < quota:
                mine_here = {at for at, pair in enumerate(pairs) if pair in mine}
                found = next_document(
                    ranks, known, self.design, waiting | (mine_here - known.keys())
                )
                if found is not None:
                    return pairs[found]
        return None

    def left(self, name: str, said: SaidByPair) -> int:
        """Return how many pairs this annotator has still to label, if the others do nothing."""
        mine, others = self._done(name, said)
        if self.design == "sample":
            taken = mine | (others - self.shared)
            return sum(pair not in taken for pair in self.sample)
        left = len(others & self.shared & {pair for pairs, _ in self.queries for pair in pairs})
        for (pairs, _), quota in zip(self.queries, self.quota, strict=True):
            known = relevant_of(pairs, said)
            open_ = sum(pair not in mine and at not in known for at, pair in enumerate(pairs))
            left += max(0, min(quota - len(known), open_))
        return left

    @staticmethod
    def _done(name: str, said: SaidByPair) -> tuple[set[int], set[int]]:
        """Return the pairs that an annotator has seen to, and the others that have a grade."""
        mine = {pair for pair, _ in said_by(name, said)}
        graded = {pair for pair, each in said.items() if any(one.kind in GRADED for one in each)}
        return mine, graded - mine


def ranked_lists(
    file: DurableFile, pairs: Iterable[tuple[Any, ...]], seed: int
) -> list[tuple[list[int], Ints]]:
    """Return the pairs of each query and their ranks, in an order that breaks ties by chance."""
    runs = file.rows("SELECT number, name FROM run")
    by_query: dict[str, list[tuple[float, int]]] = {}
    for number, query, doc, _ in pairs:
        by_query.setdefault(query, []).append((uniform(seed, "document", query, doc), number))
    where: dict[int, tuple[str, int]] = {}
    lists: dict[str, tuple[list[int], Ints]] = {}
    rows: dict[str, dict[int, int]] = {}
    for query in sorted(by_query, key=lambda name: uniform(seed, "query", name)):
        docs = [number for _, number in sorted(by_query[query])]
        where |= {number: (query, at) for at, number in enumerate(docs)}
        lists[query] = docs, np.zeros((len(runs), len(docs)), dtype=np.int64)
        order = sorted(runs, key=lambda run: (uniform(seed, "run", query, run[1]), run[0]))
        rows[query] = {number: row for row, (number, _) in enumerate(order)}
    for pair, run, rank in file.rows("SELECT pair, run, rank FROM rank"):
        query, at = where[pair]
        lists[query][1][rows[query][run], at] = rank
    return list(lists.values())


def relevant_of(pairs: list[int], said: SaidByPair) -> dict[int, bool]:
    """Return which of these pairs have a label, and whether most of them say it is relevant."""
    found = {}
    for at, pair in enumerate(pairs):
        grades = [one.grade for one in said.get(pair, ()) if one.kind in GRADED]
        if grades:
            found[at] = 2 * sum(grade is not None and grade >= 1 for grade in grades) >= len(grades)
    return found
