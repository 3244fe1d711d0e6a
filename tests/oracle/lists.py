"""One query: what was retrieved, what should have been, and which covers which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Formulas: TypeAlias = Mapping[str, Callable[..., float | None]]

# With nothing relevant to find, a measure that only looks at the list is still defined if somebody
# judged a document: it found nothing.
LOOKS_AT_THE_LIST = {
    "P",
    "success",
    "RR",
    "RBP",
    "RBP_residual",
    "DCG",
    "ERR",
    "position",
    "in_third",
}
ALWAYS_DEFINED = {
    *("queries", "retrieved", "relevant", "relevant_retrieved", "rejected_retrieved", "forbidden"),
    *("judged", "unjudged", "redundancy", "near_duplicates", "utility", "context_cost", "age"),
}
ANY_GRADE = {"DCG", "nDCG", "ndcg_rel", "G", "ERR"}  # every grade above 0 counts, there is no rel


@dataclass(frozen=True)
class Item:
    """One thing that should be found: the documents that hold it, and how far each does."""

    support: Mapping[str, float]
    grade: float


@dataclass(frozen=True)
class Unit:
    """One retrieved chunk."""

    rank: int
    doc: str
    again: bool  # the same document stands above
    text: str = ""
    hop: int = 1
    date: str | None = None
    forbidden: bool = False


@dataclass(frozen=True)
class Query:
    """A ranked list and the items that should be in it."""

    units: Sequence[Unit]
    items: Sequence[Item]
    tokens: Callable[[str], int] = len
    newest: str | None = None  # the newest date of the corpus
    searches: int = 0  # how many were made, also those that found nothing

    @classmethod
    def of(
        cls,
        retrieved: Sequence[str] | Mapping[str, float],
        gold: Iterable[tuple[Iterable[str] | Mapping[str, float], float]],
        *,
        corpus: Mapping[str, Mapping[str, Any]] | None = None,
        hops: Sequence[int] | None = None,
        tokens: Callable[[str], int] = len,
    ) -> Query:
        """Build a query from a list or scored documents, and from (documents, grade) pairs."""
        about = corpus or {}
        ranked = list(retrieved)
        if not isinstance(retrieved, list | tuple):  # by score, then by id, both falling
            scores = dict(retrieved)  # type: ignore[arg-type]
            ranked = sorted(scores, key=lambda doc: (scores[doc], doc.encode()), reverse=True)
        units = [
            Unit(
                rank=place + 1,
                doc=doc,
                again=doc in ranked[:place],
                text=about.get(doc, {}).get("text", ""),
                hop=hops[place] if hops else 1,
                date=about.get(doc, {}).get("date"),
                forbidden=bool(about.get(doc, {}).get("forbidden")),
            )
            for place, doc in enumerate(ranked)
        ]
        newest = max((row["date"] for row in about.values() if row.get("date")), default=None)
        return cls(units, one_item_per_set(gold), tokens, newest)

    def relevant(self, rel: float) -> list[Item]:
        """Return the items that should be found."""
        return [item for item in self.items if item.grade >= rel]

    def covers(self, unit: Unit, rel: float) -> list[Item]:
        """Return the relevant items that a unit holds; a repetition holds nothing new."""
        if unit.again:
            return []
        return [item for item in self.relevant(rel) if item.support.get(unit.doc, 0) > 0]

    def is_judged(self, unit: Unit) -> bool:
        """Tell whether somebody looked at this document; a negative grade means nobody did."""
        return any(unit.doc in item.support and item.grade >= 0 for item in self.items)

    def is_rejected(self, unit: Unit, rel: float) -> bool:
        """Tell whether somebody looked at this document and found it not relevant."""
        return self.is_judged(unit) and not unit.again and not self.covers(unit, rel)

    def first_ranks(self, rel: float, k: object) -> list[tuple[Item, int]]:
        """Return each relevant item that the first k units hold, with the rank it is met at."""
        found = []
        for item in self.relevant(rel):
            ranks = [u.rank for u in self.cut(k) if not u.again and item.support.get(u.doc, 0) > 0]
            if ranks:
                found.append((item, min(ranks)))
        return found

    def cost(self, unit: Unit, of: str) -> int:
        """Return what one unit costs."""
        return {"tokens": self.tokens(unit.text), "chars": len(unit.text), "ranks": 1}[of]

    def cut(self, k: Any) -> list[Unit]:
        """Return the units above a cutoff: k ranks, or a budget such as (2000, "tokens")."""
        if k is None:
            return list(self.units)
        if isinstance(k, int):
            return list(self.units[:k])
        amount, unit = k
        if unit == "hops":
            return [each for each in self.units if each.hop <= amount]
        kept, spent = [], 0
        for each in self.units:
            spent += self.cost(each, unit)
            if spent > amount:
                break
            kept.append(each)
        return kept


def one_item_per_set(
    gold: Iterable[tuple[Iterable[str] | Mapping[str, float], float]],
) -> list[Item]:
    """Return items: a document that is listed again is one, with the highest grade.

    Two groups of several documents are two items, even of the same documents: two things to find.
    """
    items: dict[tuple[object, ...], Item] = {}
    for docs, grade in gold:
        support = dict(docs) if isinstance(docs, dict) else dict.fromkeys(docs, 1.0)
        alone = len(support) == 1
        key = (*support.items(),) if alone else (*support.items(), len(items))
        if key not in items or items[key].grade < grade:
            items[key] = Item(support, grade)
    return list(items.values())


def value(
    formulas: Formulas,
    query: Query,
    name: str,
    k: object = None,
    **parameters: Any,
) -> float | None:
    """Return the value of a measure, None where it is undefined."""
    if name not in ALWAYS_DEFINED:
        rel = 5e-324 if name in ANY_GRADE else parameters.get("rel", 1.0)
        judged = any(item.grade >= 0 for item in query.items)
        if not query.relevant(rel) and not (name in LOOKS_AT_THE_LIST and judged):
            return None
    return formulas[name](query, k, **parameters)
