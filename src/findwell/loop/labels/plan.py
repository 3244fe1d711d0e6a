"""What is to be labelled, by whom, in which order: the plan of a pool and what was said so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.loop.labels.order import next_document, quotas, uniform

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.core.data import Ints
    from findwell.loop.labels.database import LabelsFile
    from findwell.loop.labels.pairs import Said

GRADED = ("label", "adjudicate")  # events that say a grade


@dataclass(frozen=True, slots=True, eq=False)
class LabellingPlan:
    """What is to be labelled, in which order, and by how many."""

    design: str  # sample, or the method that orders documents
    sample: list[int]  # pairs, in the order in which they are labelled
    queries: list[tuple[list[int], Ints]]  # pairs and ranks of each query, in the order of work
    quota: list[int]
    shared: frozenset[int]  # pairs that every annotator labels

    @classmethod
    def of(cls, file: LabelsFile, settings: dict[str, Any]) -> LabellingPlan:
        """Read it from a pool."""
        seed, overlap = settings.get("seed", 0), settings.get("overlap", 0.0)
        pairs = file.rows(
            "SELECT pair.number, query.query, doc, place FROM pair "
            "JOIN query ON query.number = pair.query"
        )
        shared = frozenset(
            number for number, query, doc, _ in pairs
            if uniform(seed, "overlap", query, doc) < overlap
        )  # fmt: skip
        sample = [number for number, *_, place in sorted(pairs, key=lambda row: row[3] or 0)
                  if place is not None]  # fmt: skip
        design = settings.get("design", "depth")
        if design == "sample":
            return cls(design, sample, [], [], shared)
        lists = ranked_lists(file, pairs, seed)
        return cls(
            design,
            [],
            lists,
            quotas([len(docs) for docs, _ in lists], settings.get("budget")),
            shared,
        )

    def choose(self, name: str, said: dict[int, list[Said]], offered: frozenset[int]) -> int | None:
        """Return the pair that this annotator should label next."""
        mine = mine_of(said, name)
        others = {
            pair for pair, each in said.items() if any(one.kind in GRADED for one in each)
        } - mine
        if self.design == "sample":
            for pair in self.sample:
                free = pair not in others and pair not in offered
                if pair not in mine and (pair in self.shared or free):
                    return pair
            return None
        for pairs, _ in self.queries:
            for pair in pairs:
                if pair in others and pair in self.shared:
                    return pair
        for (pairs, ranks), quota in zip(self.queries, self.quota, strict=True):
            known = relevant_of(pairs, said)
            waiting = {
                at for at, pair in enumerate(pairs)
                if pair in offered and at not in known and pair not in self.shared
            }  # fmt: skip
            if len(known) + len(waiting) >= quota:
                continue
            taken = waiting | {
                at for at, pair in enumerate(pairs) if pair in mine and at not in known
            }
            found = next_document(ranks, known, self.design, taken)
            if found is not None:
                return pairs[found]
        return None

    def left(self, name: str, said: dict[int, list[Said]]) -> int:
        """Return how many pairs this annotator has still to label, if the others do nothing."""
        mine = mine_of(said, name)
        others = {
            pair for pair, each in said.items() if any(one.kind in GRADED for one in each)
        } - mine
        if self.design == "sample":
            return sum(pair not in mine and (pair in self.shared or pair not in others)
                       for pair in self.sample)  # fmt: skip
        left = len(others & self.shared & {pair for pairs, _ in self.queries for pair in pairs})
        for (pairs, _), quota in zip(self.queries, self.quota, strict=True):
            known = relevant_of(pairs, said)
            open_ = sum(pair not in mine and at not in known for at, pair in enumerate(pairs))
            left += max(0, min(quota - len(known), open_))
        return left


def ranked_lists(
    file: LabelsFile, pairs: Iterable[tuple[Any, ...]], seed: int
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


def mine_of(said: dict[int, list[Said]], name: str) -> set[int]:
    """Return the pairs about which an annotator said something."""
    return {
        pair for pair, each in said.items()
        if any(one.annotator == name and one.kind != "adjudicate" for one in each)
    }  # fmt: skip


def count_kinds(said: dict[int, list[Said]], name: str) -> Counter[str]:
    """Return how many pairs an annotator labelled, skipped, or was not sure about."""
    kinds = (
        one.kind for each in said.values() for one in each
        if one.annotator == name and one.kind != "adjudicate"
    )  # fmt: skip
    return Counter(kinds)


def relevant_of(pairs: list[int], said: dict[int, list[Said]]) -> dict[int, bool]:
    """Return which of these pairs have a label, and whether most of them say it is relevant."""
    found = {}
    for at, pair in enumerate(pairs):
        grades = [one.grade for one in said.get(pair, ()) if one.kind in GRADED]
        if grades:
            found[at] = 2 * sum(grade is not None and grade >= 1 for grade in grades) >= len(grades)
    return found
