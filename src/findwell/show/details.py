"""Single queries of a system: what was retrieved, what of it counts, which part of it, and why.

The page of a report shows them; what they say is what `findwell explain` says.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from findwell.core.frames import pl
from findwell.evaluation.explanation.calculation import Calculations
from findwell.evaluation.explanation.ranking import reads_texts, views
from findwell.evaluation.explanation.units import NOT_KEPT, KeptRun
from findwell.show.chunk_verdicts import VerdictReader, deepest
from findwell.show.escape import multiline
from findwell.show.excerpts import excerpt, in_utf16, merged, places, sentences, shorten, within
from findwell.show.explanation import PLAIN, sentence
from findwell.show.gold_matrix import gold_matrix

if TYPE_CHECKING:
    from findwell.evaluation.comparison.systems import System
    from findwell.evaluation.explanation.ranking import Item, Mark, RelationView
    from findwell.show.chunk_verdicts import ChunkVerdict
    from findwell.show.panel import Panel

Keep: TypeAlias = Callable[[str], int | str]  # keeps a text and returns how to find it

RANKS = 20  # of a list that are shown
LETTERS = 1_500  # of a text that are shown
GOLD = 240  # letters of the text of a gold document
ITEMS = 40  # of a query that are listed


class QueryDetails:
    """The details of any query of a system."""

    def __init__(
        self,
        system: System,
        known: Mapping[str, str] | None = None,
        *,
        ranks: int = RANKS,
        letters: int = LETTERS,
    ) -> None:
        result = system.result
        self._known = known or {}  # the texts of gold documents, as far as any system found them
        self._ranks, self._letters = ranks, letters
        self._result = result
        self._calculations = Calculations(result, system.run)
        self._views = views(result, system.run, result.measures)
        self._kept = KeptRun(result, system.run)
        self._cutoff = deepest(result.measures)
        questions: dict[str, str] = {}
        if "question" in result.queries.columns:
            questions = dict(result.queries.select("query", "question").rows())
        self._verdicts = VerdictReader(self._kept, self._views, questions)

    def of(self, query: str, keep: Keep = str) -> dict[str, Any]:
        """Return all about one query, ready for JSON; `keep` takes the texts of the chunks."""
        listed = self._kept.chunks(query)
        rows = listed[: self._ranks]
        golds: list[dict[str, Any]] = []
        viewed: list[tuple[RelationView, list[Mark]]] = []
        depth = len(listed)  # which may be deeper than was judged
        for view in self._views:
            at = view.marks.number.get(query)
            if at is None:
                continue
            ends = view.marks.ends(at)
            depth = max(depth, int(view.marks.relation.depth[at]) if ends is None else len(ends))
            count = len(rows) or min(depth, self._ranks)
            judged = min(count, view.marks.relation.judged_to or count)
            viewed.append((view, view.marks.chunks(at, judged)))
            if not view.marks.relation.needed:  # there the items are the chunks themselves
                golds.append(self._gold(view, at))
        if not rows:  # the result does not keep the list: there are marks alone
            most = max((len(marks) for _, marks in viewed), default=0)
            rows = [{"rank": rank, "doc": NOT_KEPT} for rank in range(1, most + 1)]
        chunks = []
        texts = [row.get("text") or "" for row in rows]
        for at, (row, said) in enumerate(
            zip(rows, self._verdicts.of_chunks(query, texts), strict=True)
        ):
            marked = [(view, marks[at]) for view, marks in viewed if at < len(marks)]
            chunks.append(self._chunk(row, marked))
            if texts[at]:
                chunks[-1] |= self._text(query, texts[at], marked, said, keep)
            elif said:
                chunks[-1]["verdicts"] = [verdict.as_dict() for verdict in said]
        return {
            "depth": depth,
            "cutoff": self._cutoff,
            "list": chunks,
            "verdicts": [verdict.as_dict() for verdict in self._verdicts.of_list(query)],
            "gold": golds,
            "steps": [multiline(sentence(each)) for each in self._calculations.of(query)],
        }

    def _gold(self, view: RelationView, at: int) -> dict[str, Any]:
        """Return the relevant items of a query, and how many there are, met and not relevant."""
        marks = view.marks
        relevant, met = marks.relevant(at), marks.met(at)
        every = int(marks.relation.item_offset[at + 1] - marks.relation.item_offset[at])
        ends = marks.ends(at)
        several = sum(each.relation == view.relation for each in self._views) > 1
        return {
            "relation": multiline(self._result.relation_name(view.measures[0])),
            "counts": view.relevant if several or view.relevant not in PLAIN else "",
            "cutoff": deepest(view.measures),
            "items": [
                self._item(item, view.relation, ends)
                for item in marks.items(at, min(relevant, ITEMS))
            ],
            "relevant": relevant,
            "met": sum(item < relevant for item in met),
            "other": every - relevant,
        }

    def _item(self, item: Item, relation: str, ends: list[int] | None) -> dict[str, Any]:
        """Shorten what an item says, and add its text where its documents are ids."""
        rank = item.rank
        if rank is not None and ends is not None:
            rank = bisect_left(ends, rank) + 1  # of the chunk that holds the unit
        found: dict[str, Any] = {
            "number": item.number,
            "docs": [shorten(doc) for doc in item.docs],
            "grade": item.grade,
            "rank": rank,
        }
        if not reads_texts(relation):
            texts = [shorten(self._known[doc], GOLD) for doc in item.docs if doc in self._known]
            found |= {"texts": texts} if texts else {}
        return found

    def _chunk(
        self, row: dict[str, Any], marked: list[tuple[RelationView, Mark]]
    ) -> dict[str, Any]:
        first = marked[0][1] if marked else None
        # a text that is its own id is not shown twice
        named = "" if row.get("text") == row["doc"] else shorten(str(row["doc"]))
        chunk: dict[str, Any] = {
            "rank": row["rank"],
            "doc": named,
            "mark": first.kind if first else "none",
            "covers": {
                multiline(self._result.relation_name(view.measures[0])): list(mark.covers)
                for view, mark in marked
                if mark.covers and not view.marks.relation.needed
            },
        }
        if first and first.grade is not None:
            chunk["grade"] = first.grade
        if row.get("score") is not None:
            score = row["score"]  # JSON has no word for the strange ones
            chunk["score"] = score if math.isfinite(score) else str(score)
        return chunk

    def _text(
        self,
        query: str,
        text: str,
        marked: list[tuple[RelationView, Mark]],
        verdicts: list[ChunkVerdict],
        keep: Keep,
    ) -> dict[str, Any]:
        """Return as much of a text as is shown, and the places in it that made it count."""
        clean = multiline(text)
        spans: list[tuple[int, int]] = []
        wanted: list[str] = []
        for view, mark in marked:
            if mark.parts:
                parts = self._kept.parts(view.relation, query, text)
                where = sentences(clean, map(multiline, parts))
                spans += (where[part] for part in mark.parts if part < len(where))
            elif mark.relevant and reads_texts(view.relation):
                wanted += map(multiline, _gold_texts(view, query, mark))
        said = [place for verdict in verdicts if verdict.value for place in verdict.places]
        spans = merged([*spans, *said, *places(clean, wanted)])
        part, inside, start = excerpt(clean, spans, self._letters)
        found: dict[str, Any] = {"text": keep(part)}
        if inside:
            found["matched"] = in_utf16(part, inside)
        if len(part) < len(clean):
            found["cut"] = [start, len(clean)]
        if verdicts:
            found["verdicts"] = [
                verdict.as_dict(in_utf16(part, within(verdict.places, start, len(part))))
                for verdict in verdicts
            ]
        return found


def _gold_texts(view: RelationView, query: str, mark: Mark) -> list[str]:
    """Return the texts of the relevant items that a chunk covers."""
    marks = view.marks
    if marks.relation.needed:
        return []
    at = marks.number[query]
    relevant = marks.items(at, min(marks.relevant(at), ITEMS))
    return [doc for item in relevant if item.number in mark.covers for doc in item.docs]


def query_details(
    panel: Panel, systems: list[QueryDetails], at: int, keep: Keep = str
) -> dict[str, Any]:
    """Return one query under every system, and what is known about it."""
    about = panel.queries.row(at, named=True)
    told = [each.of(about["query"], keep) for each in systems]
    return {
        "about": {
            multiline(name): shorten(str(value), LETTERS)
            for name, value in about.items()
            if name not in ("query", "question") and value is not None
        },
        "gold": gold_matrix([each.pop("gold") for each in told]),
        "systems": told,
    }


def gold_texts(panel: Panel) -> dict[str, str]:
    """Return the texts of gold documents, as far as any system retrieved them for any query."""
    tables = [
        table.select("doc", "text")
        for system in panel.systems
        for table in system.result.kept.listed.values()
        if "text" in table.columns
    ]
    wanted = [
        relation.member_doc
        for system in panel.systems
        for (_, name), relation in system.result.relations.items()
        if not reads_texts(name)
    ]
    if not tables or not wanted:
        return {}
    every = pl.concat(tables).drop_nulls().unique("doc", keep="first")
    gold = pl.DataFrame({"doc": pl.concat(wanted).unique()})
    return dict(gold.join(every, on="doc").rows())
