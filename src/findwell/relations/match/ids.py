"""The relation `ids`: a unit covers the items that list its id.

Ids may be normalised first, so that a chunk meets the document it was cut from.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.columns import Normaliser, normaliser
from findwell.core.data import FACTS, Gold, merge_equal
from findwell.core.findings import FindingKind, finding_about
from findwell.core.frames import strings_of
from findwell.core.parts import is_part, working_on_part
from findwell.io.read.packed import pack_gold
from findwell.relations import preflight
from findwell.relations.match.matcher import BoundByRule, EqualKeys, Matcher, register_matcher

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from findwell.core.data import RunStream
    from findwell.core.findings import Finding
    from findwell.relations.match.matcher import MatchContext
    from findwell.relations.pipeline import Drawn


LOOKED = 1000  # documents that were not met, whose other spellings are looked for
LOOKED_ROWS = 50_000  # of a run, which is read again for them


@register_matcher
class Ids(Matcher):
    """Equal ids, after normalising them."""

    name: ClassVar[str] = "ids"
    about: ClassVar[str] = "a chunk or document covers the items that list its id"
    reads_texts: ClassVar[bool] = False

    def bind(self, gold: Gold, context: MatchContext) -> BoundIds:
        """Compare ids with those of the gold."""
        return BoundIds(gold, context)


class BoundIds(BoundByRule):
    """Draws the edges between the batches of a run and one gold, by id."""

    order_matters = False

    def __init__(self, gold: Gold, context: MatchContext) -> None:
        self._known = None if context.corpus is None else context.corpus["doc"].implode()
        dangling = []
        if self._known is not None:
            dangling = self._dangling(gold.member_doc.unique(maintain_order=True), "gold")
        gold = id_gold(gold, context.ids)
        if "places" in gold.carries:
            gold = replace(gold, findings=tuple(map(_several_places, gold.findings)))
        self.gold = replace(gold, findings=(*gold.findings, *dangling)) if dangling else gold
        how = context.run_ids if context.ids == "identity" else context.ids
        self._change = None if how == "identity" else normaliser(how)
        self._chosen = context.chosen
        self._spaced = False  # whether any id began with a space; the kernel declines such rows
        self.plain_ids = self._change is None and self._known is None

    @cached_property
    def equal(self) -> EqualKeys:  # type: ignore[override]
        """What finds equal ids; the native kernel does without it."""
        return EqualKeys(self.gold, self.gold.member_doc)

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Normalise the ids, and keep them as they were to break ties."""
        raw = rows["doc"]
        findings = self._dangling(raw.drop_nulls(), "run")
        self._spaced = self._spaced or bool((raw < "!").any())
        if self._change is None:
            return rows, findings
        return rows.with_columns(doc=self._change(raw), raw=raw), findings

    def nothing_met(self, run: preflight.UnmetRun) -> list[Finding]:
        """Stop where the ids of run and gold are evidently different, unless ids were chosen."""
        gold = self.gold
        return preflight.no_shared_document(run, gold.member_doc, gold.carries, chosen=self._chosen)

    def met_in_part(
        self, run: RunStream, drawn: Drawn, redraw: Callable[[BoundIds], Drawn]
    ) -> list[Finding]:
        """Look for documents of the gold that the run has in another spelling, or one by one.

        A run that is read again for it must be short, and a file of TREC is not for spellings.
        """
        if drawn.documents > LOOKED_ROWS or not (unmet := _unmet_documents(drawn)):
            return []
        spelled = run.whole is not None or run.order != "scored"
        given: dict[str, dict[str, int]] = {}
        for query, docs in unmet.items():
            for doc in docs:
                asked = preflight.joined_ids(doc) if preflight.JOINT.search(doc) else set()
                if spelled:
                    asked |= preflight.other_spellings(doc)
                if spelled and self._spaced:
                    asked.add(f" {doc}")
                if asked:
                    given.setdefault(query, {}).update(dict.fromkeys(asked, 1))
        if not given or is_part():
            return []
        bound = copy(self)  # against spellings that are rarely met
        vars(bound).pop("equal", None)
        bound.gold = pack_gold(given) or Gold.build(preflight.listed(given))
        with working_on_part():  # which is not told that nothing else is met
            met = redraw(bound).relation.unit_judged.any()
        if not met:
            return []
        rows, _ = self.rows(run.collect().rows)
        joined = preflight.several_in_one(unmet, rows)
        found = preflight.joined_found(joined, chosen=self._chosen) if joined else []
        return found + preflight.respelled(unmet, rows, self.gold.member_doc)

    def _dangling(self, docs: pl.Series, role: str) -> list[Finding]:
        """Find the documents that a corpus does not have, where there is one."""
        if self._known is None:
            return []
        unknown = docs.filter(~docs.is_in(self._known))
        what = f"# document|documents of the {role} is|are not in the corpus."
        fix = "check that run, gold and corpus are of the same version"
        return finding_about("dangling-id", unknown, what, fix)


def _several_places(found: Finding) -> Finding:
    """Say what a document that the gold lists again is, where it labels places."""
    if found.kind != FindingKind.GOLD_DUPLICATE:
        return found
    return replace(
        found,
        message="the gold labels several places of a document of a query; by id they count once",
        fix="--by spans compares places",
    )


def id_gold(gold: Gold, how: Normaliser) -> Gold:
    """Return the gold whose items are ids, normalised; documents that are or become one count once.

    Texts and places distinguish what ids do not, so they are left out.
    """
    change = None if how == "identity" else normaliser(how)
    if change is None and gold.member_facts is None:
        return gold
    rows = gold.rows().drop(FACTS, strict=False)
    if change is not None:
        rows, _ = merge_equal(rows.with_columns(doc=change(gold.member_doc)), ["doc"])
    built = Gold.build(rows, queries=gold.queries, findings=gold.findings, flaws=gold.flaws)
    return replace(built, carries=gold.carries)


def _unmet_documents(drawn: Drawn) -> dict[str, list[str]]:
    """Return documents of items that were not met, by query that was answered: at most `LOOKED`.

    If no document of the run is in the gold, the result is empty.
    """
    relation = drawn.relation
    if not relation.unit_judged.any():
        return {}
    unmet = relation.item_grade > 0
    unmet[relation.edge_item] = False
    unmet &= relation.depth[relation.item_query] > 0
    members = np.flatnonzero(unmet[relation.member_item])[:LOOKED].tolist()
    docs, names = strings_of(relation, "member_doc"), strings_of(relation, "queries")
    found: dict[str, list[str]] = {}
    for member in members:
        query = names[int(relation.item_query[relation.member_item[member]])]
        found.setdefault(query, []).append(docs[member])
    return found
