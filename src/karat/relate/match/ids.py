"""The relation `ids`: a unit covers the items that list its id.

Ids may be normalised first, so that a chunk meets the document it was cut from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl

from karat.core.data import FACTS, Gold
from karat.core.keys import document_keys
from karat.core.normalisers import Normaliser, normaliser
from karat.findings import EXAMPLES, Finding
from karat.relate.match.matcher import BoundByRule, Edges, Matcher, Units, register_matcher

if TYPE_CHECKING:
    from karat.align.align import Aligned
    from karat.core.data import Bools, Ints
    from karat.relate.match.matcher import MatchContext


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Ids(Matcher):
    """Equal ids, after normalising them."""

    name: ClassVar[str] = "ids"
    about: ClassVar[str] = "a chunk or document covers the items that list its id"
    reads_texts: ClassVar[bool] = False

    def bind(self, gold: Gold, context: MatchContext) -> BoundIds:
        """Compare ids with those of a gold."""
        return BoundIds(gold, context)


class EqualKeys:
    """Finds pairs of a row and a member of the gold with the same query and the same key."""

    def __init__(self, gold: Gold, keys: pl.Series) -> None:
        self._item = gold.member_item
        self._judged = gold.item_grade >= 0
        self._doc = keys
        self._query = gold.member_query
        self._keys = document_keys(self._query, keys)

    def edges(self, units: Units) -> Edges:
        """Return the edges of units, which come sorted by query and rank."""
        unit, member = self._pairs(units.query, units.key)
        return edges_of(units, (unit, self._item[member]), self._judged)

    def _pairs(self, query: Ints, doc: pl.Series) -> tuple[Ints, Ints]:
        # of the gold only the queries of this batch; members are sorted by query
        first = np.searchsorted(self._query, query.min(initial=len(self._query)))
        last = np.searchsorted(self._query, query.max(initial=-1), side="right")
        rows = pl.DataFrame({"key": document_keys(query, doc)})
        members = pl.DataFrame({"key": self._keys[first:last]})
        pairs = rows.with_row_index("row").join(
            members.with_row_index("member"), on="key", maintain_order="left_right"
        )
        row = pairs["row"].to_numpy().astype(np.int64)
        member = pairs["member"].to_numpy().astype(np.int64) + first
        # equal keys are not proof: compare what they stand for
        same: Bools = query[row] == self._query[member]
        same &= (doc.gather(row) == self._doc.gather(member)).to_numpy()
        return row[same], member[same]


def edges_of(units: Units, pairs: tuple[Ints, Ints], judged_item: Bools) -> Edges:
    """Return the edges of pairs of a unit and an item, which come sorted by unit."""
    which, item = pairs
    unit = which[judged_item[item]]
    unit = unit[np.diff(unit, prepend=-1) > 0]  # each once
    judged, repeat = np.ones(len(unit), dtype=bool), np.zeros(len(unit), dtype=np.int64)
    if units.repeat is not None:
        notable = np.union1d(unit, np.flatnonzero(units.repeat))
        unit, judged = notable, np.isin(notable, unit)
        repeat = units.repeat[unit]
    return Edges(
        query=units.query[which],
        rank=units.rank[which],
        item=item,
        unit_query=units.query[unit],
        unit_rank=units.rank[unit],
        unit_judged=judged,
        unit_repeat=repeat,
        sizes=units.sizes,
    )


class BoundIds(BoundByRule):
    """Draws the edges between the batches of a run and one gold, by id."""

    def __init__(self, gold: Gold, context: MatchContext) -> None:
        self._known = None if context.corpus is None else context.corpus["doc"].implode()
        dangling = self._dangling(gold.member_doc.unique(maintain_order=True), "gold")
        gold = id_gold(gold, context.ids)
        self.gold = replace(gold, findings=(*gold.findings, *dangling)) if dangling else gold
        self._change = normaliser(context.run_ids if context.ids == "identity" else context.ids)
        self._equal = EqualKeys(gold, gold.member_doc)

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Normalise the ids, and keep them as they were to break ties."""
        raw = rows["doc"]
        findings = self._dangling(raw.drop_nulls(), "run")
        if self._change is None:
            return rows, findings
        return rows.with_columns(doc=self._change(raw), raw=raw), findings

    def _dangling(self, docs: pl.Series, role: str) -> list[Finding]:
        """Find the documents that a corpus does not have, where there is one."""
        if self._known is None:
            return []
        unknown = docs.filter(~docs.is_in(self._known))
        if not len(unknown):
            return []
        return [
            Finding(
                "dangling-id",
                len(unknown),
                tuple(unknown.unique(maintain_order=True).head(EXAMPLES)),
                f"document of the {role} that the corpus does not have",
                "check that run, gold and corpus are of the same version",
            )
        ]

    def units(self, aligned: Aligned) -> Units:
        """Return the rows of a batch."""
        every = np.arange(len(aligned.query))
        doc = aligned.doc
        return Units(aligned.query, aligned.rank, doc, doc, aligned.repeat, every)

    def draw(self, units: Units) -> Edges:
        """Return the edges of a batch: the pairs of a unit and an item with the same id."""
        return self._equal.edges(units)

    def scores(self, units: Units) -> None:
        """Ids are equal or not."""


def id_gold(gold: Gold, how: Normaliser) -> Gold:
    """Return the gold whose items are ids, normalised; documents that are or become one count once.

    Texts and places tell apart what ids do not, so they are left behind.
    """
    change = normaliser(how)
    if change is None and gold.member_facts is None:
        return gold
    rows = gold.rows().drop(FACTS, strict=False)
    if change is not None:
        rows = (
            rows.with_columns(doc=change(gold.member_doc))
            .sort("grade", descending=True, maintain_order=True)
            .unique(["query", "doc", "group"], keep="first", maintain_order=True)
        )
    return Gold.build(rows, queries=gold.queries, findings=gold.findings, flaws=gold.flaws)
