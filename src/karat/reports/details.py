"""Single queries of a system: what was retrieved, what of it counts, which part of it, and why.

The page of a report shows them; what they say is what `karat explain` says.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from karat.errors import KaratError
from karat.explanation.calculation import Calculations
from karat.explanation.ranking import reads_texts, views
from karat.explanation.units import NOT_KEPT, KeptRun, chunk_keys
from karat.reports.escape import multiline
from karat.reports.explanation import PLAIN, sentence
from karat.texts.sentences import split

if TYPE_CHECKING:
    from karat.comparison.systems import System
    from karat.explanation.ranking import Item, Mark, RelationView
    from karat.reports.panel import Panel

Keep: TypeAlias = Callable[[str], int | str]  # keeps a text and returns how to find it

RANKS = 20  # of a list that are shown
LETTERS = 1_500  # of a text that are shown
SHORT = 400  # letters of an id, a reason or a gold text
GOLD = 240  # letters of the text of a gold document
ITEMS = 40  # of a query that are listed
LONGEST = 20_000  # letters of a text that are searched
WORDS = 400  # of a passage that is looked for
ALIKE = 0.7  # share of a sentence's words that are in the passage as well
FEWEST = 3  # words of a sentence that can be alike
_WORD = re.compile(r"\w+")


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
        self._questions: dict[str, str] = {}
        if "question" in result.queries.columns:
            self._questions = dict(result.queries.select("query", "question").rows())

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
        by_chunk, by_list = self._verdicts(query, rows)
        chunks = []
        for at, (row, verdicts) in enumerate(zip(rows, by_chunk, strict=True)):
            marked = [(view, marks[at]) for view, marks in viewed if at < len(marks)]
            chunks.append(self._chunk(row, marked, verdicts))
            if row.get("text"):
                chunks[-1] |= self._text(query, row["text"], marked, verdicts, keep)
        return {
            "depth": depth,
            "list": chunks,
            "verdicts": by_list,
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
        self, row: dict[str, Any], marked: list[tuple[RelationView, Mark]], verdicts: list[Any]
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
        if verdicts:
            chunk["verdicts"] = verdicts
        return chunk

    def _text(
        self,
        query: str,
        text: str,
        marked: list[tuple[RelationView, Mark]],
        verdicts: list[dict[str, Any]],
        keep: Keep,
    ) -> dict[str, Any]:
        """Return as much of a text as is shown, and the places in it that made it count."""
        clean = multiline(text)
        spans: list[tuple[int, int]] = []
        wanted = [each["quote"] for each in verdicts if each["value"] and each["quote"]]
        for view, mark in marked:
            if mark.parts:
                parts = self._kept.parts(view.relation, query, text)
                where = sentences(clean, map(multiline, parts))
                spans += (where[part] for part in mark.parts if part < len(where))
            elif mark.relevant and reads_texts(view.relation):
                wanted += map(multiline, _gold_texts(view, query, mark))
        part, inside, start = excerpt(
            clean, merged([*spans, *places(clean, wanted)]), self._letters
        )
        found: dict[str, Any] = {"text": keep(part)}
        if inside:
            found["matched"] = in_utf16(part, inside)
        if len(part) < len(clean):
            found["cut"] = [start, len(clean)]
        return found

    def _verdicts(
        self, query: str, rows: list[dict[str, Any]]
    ) -> tuple[list[list[dict[str, Any]]], list[dict[str, Any]]]:
        """Return the verdicts about each chunk of a list, and those about the list as a whole."""
        question = self._questions.get(query)
        known = {
            key: [_verdict(row, question) for row in found]
            for key, found in self._kept.verdicts(query).items()
        }
        whole = known.pop("", [])
        keys = chunk_keys(row.get("text") for row in rows) if known else [""] * len(rows)
        return [known.get(key, []) for key in keys], whole


def _gold_texts(view: RelationView, query: str, mark: Mark) -> list[str]:
    """Return the texts of the relevant items that a chunk covers."""
    marks = view.marks
    if marks.relation.needed:
        return []
    at = marks.number[query]
    relevant = marks.items(at, min(marks.relevant(at), ITEMS))
    return [doc for item in relevant if item.number in mark.covers for doc in item.docs]


def _verdict(row: dict[str, Any], question: str | None) -> dict[str, Any]:
    found = {
        "aspect": row["aspect"],
        "value": row["value"],
        "reason": shorten(row["reason"] or ""),
        "quote": shorten(row["quote"] or ""),
    }
    if row["item"] and row["item"] != question:  # which stands above
        found["item"] = shorten(row["item"])
    return found | ({"unproven": True} if row["unproven"] else {})


def query_details(
    panel: Panel, systems: list[QueryDetails], at: int, keep: Keep = str
) -> dict[str, Any]:
    """Return one query under every system, and what is known about it."""
    about = panel.queries.row(at, named=True)
    query = about["query"]
    return {
        "about": {
            multiline(name): shorten(str(value), LETTERS)
            for name, value in about.items()
            if name not in ("query", "question") and value is not None
        },
        "systems": [each.of(query, keep) for each in systems],
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


def shorten(text: str, most: int = SHORT) -> str:
    """Return at most this many letters of a text, fit to be shown."""
    clean = multiline(text[: most + 1])
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def places(text: str, wanted: Iterable[str]) -> list[tuple[int, int]]:
    """Return where passages are in a text; otherwise the sentences with most words in common.

    >>> places("Hello. The pump  is blue. Bye.", ["the pump is blue"])
    [(7, 24)]
    >>> places("Hello there. Please replace the old pump soon.", ["Replace the old pump!"])
    [(20, 40)]
    """
    text = text[:LONGEST]
    found: list[tuple[int, int]] = []
    for passage in wanted:
        exact = _exactly(text, passage)
        found += [exact] if exact else _alike(text, passage)
    return merged(found)


def sentences(text: str, parts: Iterable[str]) -> list[tuple[int, int]]:
    """Return where consecutive parts of a text are in it."""
    found, start = [], 0
    for part in parts:
        place = _exactly(text, part, start)
        if place is None:
            found.append((start, start))
            continue
        found.append(place)
        start = place[1]
    return found


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, those that touch as one, empty ones left out.

    >>> merged([(5, 9), (0, 6), (12, 12)])
    [(0, 9)]
    """
    joined: list[tuple[int, int]] = []
    for low, high in sorted(span for span in spans if span[1] > span[0]):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _exactly(text: str, passage: str, start: int = 0) -> tuple[int, int] | None:
    """Find a passage, whatever its case and however it is wrapped."""
    words = passage.split()
    if not words:
        return None
    if len(words) > WORDS:  # a pattern that long is slow: the plain way must do
        at = text.find(passage.strip(), start)
        return (at, at + len(passage.strip())) if at >= 0 else None
    pattern = r"\s+".join(map(re.escape, words))
    found = re.compile(pattern, re.IGNORECASE).search(text, start)
    bare = passage.strip().rstrip(".!?,;:")
    if found is None and len(words) >= FEWEST and bare != passage.strip():
        return _exactly(text, bare, start)  # a text in the middle of a sentence lacks its end
    return found.span() if found else None


def _alike(text: str, passage: str) -> list[tuple[int, int]]:
    known = {word.casefold() for word in _WORD.findall(passage)}
    try:
        parts = split([text])[0]
    except KaratError:  # no splitter is installed: lines have to do
        parts = [line for line in text.splitlines() if line.strip()]
    found = []
    for part, place in zip(parts, sentences(text, parts), strict=True):
        words = [word.casefold() for word in _WORD.findall(part)]
        shared = sum(word in known for word in words)
        if len(words) >= FEWEST and shared >= ALIKE * len(words):
            found.append(place)
    return found


def excerpt(
    text: str, spans: list[tuple[int, int]], most: int
) -> tuple[str, list[tuple[int, int]], int]:
    """Return at most this many letters, about the first span, with the spans in it and its start.

    >>> excerpt("abcdefghij", [(7, 9)], 4)
    ('ghij', [(1, 3)], 6)
    >>> excerpt("abc", [], 4)
    ('abc', [], 0)
    """
    if len(text) <= most:
        return text, spans, 0
    start = 0
    if spans and spans[0][1] > most:
        start = max(0, min(spans[0][0] - most // 4, len(text) - most))
    inside = [
        (max(low - start, 0), min(high - start, most))
        for low, high in spans
        if high > start and low < start + most
    ]
    return text[start : start + most], inside, start


def in_utf16(text: str, spans: list[tuple[int, int]]) -> list[list[int]]:
    """Count places as browsers do: a letter beyond the first 65,536 is two.

    >>> in_utf16("😀ab", [(1, 2)])
    [[2, 3]]
    """
    if text.isascii():
        return [list(span) for span in spans]
    return [[len(text[:place].encode("utf-16-le")) // 2 for place in span] for span in spans]
