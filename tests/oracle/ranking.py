"""Where the hits stand: measures of the order, for items that are relevant or not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tests.oracle.counting import hits

if TYPE_CHECKING:
    from tests.oracle.lists import Formulas, Query


def precision_at(query: Query, rank: int, rel: float) -> float:
    """Hits among the first ranks ÷ their number."""
    return len(hits(query, rank, rel)) / rank


def reciprocal_rank(query: Query, k: object, rel: float = 1.0) -> float:
    """1 ÷ the rank of the first hit."""
    ranks = [unit.rank for unit in hits(query, k, rel)]
    return 1 / ranks[0] if ranks else 0.0


def average_precision(query: Query, k: object, rel: float = 1.0, over: str = "relevant") -> float:
    """Add up the precision at the rank of each relevant item found, ÷ a number of items."""
    found = query.first_ranks(rel, k)
    total = sum(precision_at(query, rank, rel) for _, rank in found)
    relevant = len(query.relevant(rel))
    size = k if isinstance(k, int) else len(query.cut(k)) if k else relevant
    divisor = {"relevant": relevant, "retrieved": len(found), "min": min(size, relevant)}[over]
    return min(1.0, total / divisor) if divisor else 0.0


def r_precision(query: Query, _k: object, rel: float = 1.0) -> float:
    """Precision at the rank that is the number of relevant items."""
    return precision_at(query, len(query.relevant(rel)), rel)


def r_precision_multiple(
    query: Query, _k: object, rel: float = 1.0, multiple: float = 1.0
) -> float:
    """Precision at a multiple of that rank."""
    rank = math.floor(multiple * len(query.relevant(rel)) + 0.9)
    return precision_at(query, rank, rel) if rank else 0.0


def bpref(query: Query, _k: object, rel: float = 1.0) -> float:
    """How seldom rejected units stand above relevant items."""
    relevant = len(query.relevant(rel))
    rejected = sum(0 <= item.grade < rel for item in query.items)
    total = 0.0
    for _, rank in query.first_ranks(rel, None):
        above = sum(query.is_rejected(unit, rel) for unit in query.cut(rank - 1))
        above = min(above, rejected)  # several documents may be one rejected item
        total += 1 - min(above, relevant) / min(rejected, relevant) if above else 1
    return total / relevant


def inferred_ap(query: Query, _k: object, rel: float = 1.0) -> float:
    """Average precision, expected from the judged part of the pool."""
    tiny = 0.00001
    total = 0.0
    for _, rank in query.first_ranks(rel, None):
        above = query.cut(rank - 1)
        if not above:
            total += 1
            continue
        good = len(hits(query, rank - 1, rel))
        bad = sum(query.is_rejected(unit, rel) for unit in above)
        pooled = sum(
            any(unit.doc in item.support for item in query.items)
            for unit in above
            if not unit.again and not query.is_judged(unit)
        )
        known = (good + tiny) / (good + bad + 2 * tiny)
        total += 1 / rank + (good + bad + pooled) / rank * known
    return total / len(query.relevant(rel))


def interpolated(query: Query, _k: object, recall: float = 0.1, rel: float = 1.0) -> float:
    """The highest precision at any rank that has found so much."""
    needed = math.floor(recall * len(query.relevant(rel)) + 0.9)
    reached = [
        precision_at(query, unit.rank, rel)
        for unit in query.units
        if len(query.first_ranks(rel, unit.rank)) >= needed
    ]
    return max(reached, default=0.0)


def eleven_point(query: Query, k: object, rel: float = 1.0) -> float:
    """The mean of the interpolated precision at recall 0, .1, … 1."""
    return sum(interpolated(query, k, tenth / 10, rel) for tenth in range(11)) / 11


def rank_biased_precision(query: Query, k: object, rel: float = 1.0, p: float = 0.8) -> float:
    """What a reader gains who goes on to the next rank with probability p."""
    return min(1.0, (1 - p) * sum(p ** (unit.rank - 1) for unit in hits(query, k, rel)))


def rank_biased_residual(query: Query, k: object, p: float = 0.8) -> float:
    """The weight of all ranks about which nothing is known."""
    known = [unit.rank for unit in query.cut(k) if query.is_judged(unit)]
    return 1 - (1 - p) * sum(p ** (rank - 1) for rank in known)


def binary_gain(query: Query, _k: object, rel: float = 1.0) -> float:
    """The mean over the relevant items of 1 ÷ log2(2 + units above that are not relevant)."""
    total = 0.0
    for _, rank in query.first_ranks(rel, None):
        noise = rank - len(hits(query, rank, rel))
        total += 1 / math.log2(2 + noise)
    return total / len(query.relevant(rel))


FORMULAS: Formulas = {
    "RR": reciprocal_rank,
    "AP": average_precision,
    "GMAP": average_precision,
    "Rprec": r_precision,
    "Rprec_mult": r_precision_multiple,
    "bpref": bpref,
    "gm_bpref": bpref,
    "infAP": inferred_ap,
    "IPrec": interpolated,
    "11pt": eleven_point,
    "RBP": rank_biased_precision,
    "RBP_residual": rank_biased_residual,
    "binG": binary_gain,
}
