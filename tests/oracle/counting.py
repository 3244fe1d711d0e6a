"""Counts and shares of what was retrieved and of what should have been."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oracle.lists import Formulas, Query, Unit


def hits(query: Query, k: object, rel: float) -> list[Unit]:
    """Return the units among the first k that hold a relevant item."""
    return [unit for unit in query.cut(k) if query.covers(unit, rel)]


def precision(query: Query, k: object, rel: float = 1.0) -> float:
    """Hits ÷ k; without k, or with a budget, ÷ what was retrieved."""
    size = k if isinstance(k, int) else len(query.cut(k))
    return len(hits(query, k, rel)) / size if size else 0.0


def relative_precision(query: Query, k: object, rel: float = 1.0) -> float:
    """Hits ÷ the most there could be: k or the relevant items, whichever is less."""
    size = k if isinstance(k, int) else len(query.cut(k))
    most = min(size, len(query.relevant(rel)))
    return min(1.0, len(hits(query, k, rel)) / most) if most else 0.0


def found(query: Query, k: object, rel: float, support: float) -> float:
    """Add up, over the relevant items, how far the best unit among the first k supports each."""
    total = 0.0
    for item in query.relevant(rel):
        supports = [item.support.get(u.doc, 0.0) for u in query.cut(k) if not u.again]
        total += max((each for each in supports if each >= support), default=0.0)
    return total


def recall(query: Query, k: object, rel: float = 1.0, support: float = 0.0) -> float:
    """Relevant items found ÷ relevant items."""
    return found(query, k, rel, support) / len(query.relevant(rel))


def all_found(query: Query, k: object, rel: float = 1.0, support: float = 0.0) -> float:
    """1 where every relevant item was found."""
    return float(found(query, k, rel, support) == len(query.relevant(rel)))


def intersection_over_union(
    query: Query, k: object, rel: float = 1.0, support: float = 0.0
) -> float:
    """Relevant items found ÷ (relevant items + units that hold none)."""
    noise = len(query.cut(k)) - len(hits(query, k, rel))
    return found(query, k, rel, support) / (len(query.relevant(rel)) + noise)


def f_score(query: Query, k: object, rel: float = 1.0, beta: float = 1.0) -> float:
    """The weighted harmonic mean of precision and recall."""
    p, r = precision(query, k, rel), recall(query, k, rel)
    return (1 + beta**2) * p * r / (beta**2 * p + r) if p or r else 0.0


def set_map(query: Query, k: object, rel: float = 1.0) -> float:
    """Precision × recall of the whole list."""
    return precision(query, k, rel) * recall(query, k, rel)


def success(query: Query, k: object, rel: float = 1.0) -> float:
    """1 where there is a hit."""
    return float(bool(hits(query, k, rel)))


def judged(query: Query, k: object) -> float:
    """Judged units among the first k ÷ units among the first k."""
    units = query.cut(k)
    return sum(map(query.is_judged, units)) / len(units) if units else 0.0


def unjudged(query: Query, k: object) -> float:
    """Unjudged units among the first k ÷ k."""
    units = query.cut(k)
    size = k if isinstance(k, int) else len(units)
    return sum(not query.is_judged(unit) for unit in units) / size if size else 0.0


def utility(  # noqa: PLR0917
    query: Query,
    k: object,
    rel: float = 1.0,
    hit: float = 1.0,
    noise: float = -1.0,
    miss: float = 0.0,
    rest: float = 0.0,
    docs: float = 0.0,
) -> float:
    """What hits, noise, misses and the rest of the collection are worth together."""
    good = len(hits(query, k, rel))
    bad = len(query.cut(k)) - good
    missed = len(query.relevant(rel)) - len(query.first_ranks(rel, k))
    return hit * good + noise * bad + miss * missed + rest * (docs - good - bad - missed)


def retrieved(query: Query, k: object) -> float:
    """How many units there are among the first k."""
    return float(len(query.cut(k)))


def relevant(query: Query, _k: object, rel: float = 1.0) -> float:
    """How many items should be found."""
    return float(len(query.relevant(rel)))


def relevant_retrieved(query: Query, k: object, rel: float = 1.0) -> float:
    """How many of them were found."""
    return float(len(query.first_ranks(rel, k)))


def rejected_retrieved(query: Query, k: object, rel: float = 1.0) -> float:
    """How many units were retrieved that are judged not relevant."""
    return float(sum(query.is_rejected(unit, rel) for unit in query.cut(k)))


def forbidden(query: Query, k: object) -> float:
    """How many units were retrieved that must not be seen."""
    return float(sum(unit.forbidden for unit in query.cut(k)))


FORMULAS: Formulas = {
    "P": precision,
    "relative_P": relative_precision,
    "recall": recall,
    "all_found": all_found,
    "IoU": intersection_over_union,
    "F": f_score,
    "set_map": set_map,
    "success": success,
    "judged": judged,
    "unjudged": unjudged,
    "utility": utility,
    "queries": lambda _query, _k: 1.0,
    "retrieved": retrieved,
    "relevant": relevant,
    "relevant_retrieved": relevant_retrieved,
    "rejected_retrieved": rejected_retrieved,
    "forbidden": forbidden,
}
