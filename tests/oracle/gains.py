"""Graded gains: how much a list collects, compared with the best list there could be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oracle.lists import Formulas, Query

ANY = 5e-324  # every grade above 0


def worth(grade: float, gain: str) -> float:
    """Return what an item of this grade is worth."""
    if grade <= 0:
        return 0.0
    if gain == "linear":
        return grade
    return 2**grade - 1 if gain == "exp" else float(gain.split(":")[int(grade)])


def collected(query: Query, k: object, gain: str) -> float:
    """Return the discounted gain: each item once, at the rank where it is met."""
    return sum(
        worth(item.grade, gain) / math.log2(rank + 1) for item, rank in query.first_ranks(ANY, k)
    )


def ideal_gains(query: Query, gain: str) -> list[float]:
    """Return what the ideal list gains at each rank: one item per rank, the best first."""
    return sorted((worth(item.grade, gain) for item in query.relevant(ANY)), reverse=True)


def ideal(query: Query, ranks: int | None, gain: str) -> float:
    """Return the discounted gain of the ideal list, cut after so many ranks."""
    best = ideal_gains(query, gain)[:ranks]
    return sum(each / math.log2(place + 2) for place, each in enumerate(best))


def dcg(query: Query, k: object, gain: str = "linear") -> float:
    """The sum of gains, each divided by log2(rank + 1)."""
    return collected(query, k, gain)


def ndcg(query: Query, k: object, gain: str = "linear") -> float:
    """DCG ÷ the DCG of the ideal list; a budget does not cut the ideal."""
    best = ideal(query, k if isinstance(k, int) else None, gain)
    return min(1.0, collected(query, k, gain) / best) if best else 0.0


def ndcg_by_item(query: Query, _k: object, gain: str = "linear") -> float:
    """The mean over the items of nDCG down to where each was found; of the list, if missed."""
    found = query.first_ranks(ANY, None)
    missed = len(query.relevant(ANY)) - len(found)
    values = [ndcg(query, rank, gain) for _, rank in found] + [ndcg(query, None, gain)] * missed
    return sum(values) / len(values)


def ndcg_by_level(query: Query, _k: object, gain: str = "linear", rel: float = 1.0) -> float:
    """The mean of nDCG at the ranks where the ideal list goes from one gain to the next."""
    del rel
    best = ideal_gains(query, gain)
    ranks = [
        place + 1 for place in range(len(best)) if best[place + 1 : place + 2] != [best[place]]
    ]
    if len(query.units) > len(best) + 1:
        ranks.append(len(query.units))
    return sum(ndcg(query, rank, gain) for rank in ranks) / len(ranks)


def normalised_gain(query: Query, _k: object, gain: str = "linear") -> float:
    """The gain of each item found ÷ log2(2 + what the list lost so far), ÷ all gain there is."""
    best = ideal_gains(query, gain)
    found = query.first_ranks(ANY, None)
    total = 0.0
    for item, rank in found:
        could = sum(max(1.0, each) for each in best[:rank]) + max(0, rank - len(best))
        has = sum(worth(other.grade, gain) for other, at in found if at <= rank)
        total += worth(item.grade, gain) / math.log2(2 + max(0.0, could - has))
    return min(1.0, total / sum(best))


def expected_reciprocal_rank(query: Query, k: object, **scale: float) -> float:
    """The expected 1 ÷ rank at which a reader stops, satisfied by the best new item of a unit."""
    highest = scale.get("max", 4.0)
    met: dict[int, float] = {}
    for item, rank in query.first_ranks(ANY, k):
        met[rank] = max(item.grade, met.get(rank, 0.0))
    total, reader = 0.0, 1.0
    for rank in sorted(met):
        grade = min(met[rank], highest)
        stops = (2**grade - 1) / 2**highest
        total += reader * stops / rank
        reader *= 1 - stops
    return total


def novelty(lists: list[list[int]], alpha: float) -> float:
    """Discount the gains of a list, given the items of each document."""
    seen: dict[int, int] = {}
    total = 0.0
    for place, items in enumerate(lists):
        for item in items:
            total += (1 - alpha) ** seen.get(item, 0) / math.log2(place + 2)
            seen[item] = seen.get(item, 0) + 1
    return total


def alpha_ndcg(query: Query, k: object, alpha: float = 0.5, rel: float = 1.0) -> float:
    """Novelty-biased gain ÷ that of a list built greedily; of equal documents, the greatest id."""
    relevant = query.relevant(rel)
    holds = {
        doc: [place for place, item in enumerate(relevant) if item.support.get(doc, 0) > 0]
        for doc in {doc for item in relevant for doc in item.support}
    }
    got = [[] if unit.again else holds.get(unit.doc, []) for unit in query.cut(k)]
    left = sorted(holds, key=str.encode, reverse=True)
    best: list[list[int]] = []
    seen: dict[int, int] = {}
    while left and (not isinstance(k, int) or len(best) < k):
        gain = {doc: sum((1 - alpha) ** seen.get(item, 0) for item in holds[doc]) for doc in left}
        doc = max(left, key=lambda each: gain[each])  # the first of equals
        left.remove(doc)
        best.append(holds[doc])
        for item in holds[doc]:
            seen[item] = seen.get(item, 0) + 1
    most = novelty(best, alpha)  # 0 where no document holds what is asked for
    return min(1.0, novelty(got, alpha) / most) if most else 0.0


FORMULAS: Formulas = {
    "DCG": dcg,
    "nDCG": ndcg,
    "ndcg_rel": ndcg_by_item,
    "Rndcg": ndcg_by_level,
    "G": normalised_gain,
    "ERR": expected_reciprocal_rank,
    "alpha_nDCG": alpha_ndcg,
}
