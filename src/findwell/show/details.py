"""Single queries of a system: what was retrieved, which of it counts, which part, and why.

The page of a report shows them; what they say is what `findwell explain` says. What a judge repeats
is not said again: the sentence of a chunk is a place in it, and a claim of the reference is an item
of the gold, which has a number.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from findwell.core.frames import pl
from findwell.evaluation.explanation.calculation import Calculations
from findwell.evaluation.explanation.ranking import reads_texts, views
from findwell.evaluation.explanation.units import NOT_KEPT, KeptRun, chunk_keys
from findwell.relations.match import known_matchers
from findwell.show.escape import multiline
from findwell.show.excerpts import excerpt, in_utf16, merged, places, sentences, shorten, within
from findwell.show.explanation import PLAIN_RULES, sentence

if TYPE_CHECKING:
    from findwell.evaluation.comparison.systems import System
    from findwell.evaluation.explanation.ranking import Item, RelationView, UnitMark
    from findwell.measures import Measure
    from findwell.show.panel import Panel

Keep: TypeAlias = Callable[[str], int | str]  # keeps a text and returns how to find it

RANKS = 20  # of a list that are shown
LETTERS = 1_500  # of a text that are shown
GOLD = 240  # letters of the text of a gold document
ITEMS = 40  # of a query that are listed


@dataclass(frozen=True, slots=True)
class ChunkVerdict:
    """One verdict about a chunk, or about the whole list."""

    aspect: str
    value: int | None
    reason: str = ""
    item: int | str = ""  # the number of an item of the gold, or a text that stands nowhere else
    unproven: bool = False
    probability: float | None = None  # of a yes
    part: bool = False  # it is about the sentence at its place, not about the chunk
    places: tuple[tuple[int, int], ...] = ()  # in the text of the chunk

    def as_dict(self, where: Sequence[Sequence[int]] = ()) -> dict[str, Any]:
        """Return it ready for JSON, with its places in as much of the text as is shown."""
        found: dict[str, Any] = {"aspect": self.aspect, "value": self.value}
        more = {
            "reason": self.reason,
            "item": self.item,
            "unproven": self.unproven,
            "part": self.part,
            "places": list(where),
        }
        if self.probability is not None:
            found["probability"] = round(self.probability, 4)
        return found | {name: value for name, value in more.items() if value}


class VerdictReader:
    """Reads the verdicts about the queries of a run, down to the deepest cutoff that needs them."""

    def __init__(
        self, kept: KeptRun, views: Sequence[RelationView], questions: Mapping[str, str]
    ) -> None:
        self._kept, self._views, self._questions = kept, views, questions
        readers: dict[str, list[Measure]] = {}
        for view in views:
            readers.setdefault(_aspect(view), []).extend(view.measures)
        self._to = {aspect: deepest(measures) for aspect, measures in readers.items()}
        self._to_else = deepest(measure for view in views for measure in view.measures)

    def of_chunks(self, query: str, texts: Sequence[str]) -> list[list[ChunkVerdict]]:
        """Return the verdicts about each chunk of a list."""
        known = self._kept.verdicts(query)
        if not known:
            return [[] for _ in texts]
        numbers = self._numbers(query)
        found = []
        for rank, (key, text) in enumerate(zip(chunk_keys(texts), texts, strict=True), start=1):
            rows = [
                row
                for row in (known.get(key, []) if key else [])  # without: about the whole list
                if rank <= (self._to.get(row["aspect"], self._to_else) or rank)
            ]
            found.append(list(self._read(query, rows, multiline(text), numbers)))
        return found

    def of_list(self, query: str) -> list[ChunkVerdict]:
        """Return the verdicts about the list as a whole."""
        return list(self._read(query, self._kept.verdicts(query).get("", []), "", {}))

    def _read(
        self,
        query: str,
        rows: list[dict[str, Any]],
        text: str,
        numbers: Mapping[tuple[str, str], int],
    ) -> Iterable[ChunkVerdict]:
        parts = self._parts(query, rows, text, numbers)
        for at, row in enumerate(rows):
            where, item = parts.get(at), row["item"] or ""
            if where is None and row["value"] and row["quote"]:
                where = places(text, [multiline(row["quote"])])
            if at in parts or item == self._questions.get(query):
                item = ""
            yield ChunkVerdict(
                aspect=row["aspect"],
                value=row["value"],
                reason=shorten(row["reason"] or ""),
                item=numbers.get((row["aspect"], item)) or shorten(item),
                unproven=bool(row["unproven"]),
                probability=row.get("probability"),
                part=at in parts,
                places=tuple(where or ()),
            )

    def _parts(
        self,
        query: str,
        rows: list[dict[str, Any]],
        text: str,
        numbers: Mapping[tuple[str, str], int],
    ) -> dict[int, list[tuple[int, int]]]:
        """Return by verdict where the parts of a chunk stand: what is judged is in its text."""
        by_aspect: dict[str, list[int]] = {}
        for at, row in enumerate(rows):
            item = row["item"]
            if item and item != self._questions.get(query):
                by_aspect.setdefault(row["aspect"], []).append(at)
        found: dict[int, list[tuple[int, int]]] = {}
        for aspect, mine in by_aspect.items():
            if any((aspect, rows[at]["item"]) in numbers for at in mine):
                continue  # these are items of the gold
            where = sentences(text, (multiline(rows[at]["item"]) for at in mine))
            found |= {at: [place] for at, place in zip(mine, where, strict=True) if merged([place])}
        return found

    def _numbers(self, query: str) -> dict[tuple[str, str], int]:
        """Return the numbers of the items of the gold by aspect and text."""
        found: dict[tuple[str, str], int] = {}
        for view in self._views:
            at = view.marks.number.get(query)
            if at is None or view.marks.relation.needed:
                continue
            for item in view.marks.items(at):
                found |= {(_aspect(view), doc): item.number for doc in item.docs}
        return found


def deepest(measures: Iterable[Measure]) -> int | None:
    """Return the deepest cutoff of measures; None if one of them reads the whole list.

    >>> from findwell.measures import parse_measure
    >>> deepest(map(parse_measure, ["P@5", "recall@20"])), deepest([parse_measure("RR")])
    (20, None)
    """
    cutoffs = [measure.k for measure in measures]
    known = [k for k in cutoffs if type(k) is int]
    return max(known) if known and len(known) == len(cutoffs) else None


def _aspect(view: RelationView) -> str:
    return view.relation.partition("(")[0]


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
        self._matchers = known_matchers()
        questions: dict[str, str] = {}
        if "question" in result.queries.columns:
            questions = dict(result.queries.select("query", "question").rows())
        self._verdicts = VerdictReader(self._kept, self._views, questions)

    def of(self, query: str, keep: Keep = str) -> dict[str, Any]:
        """Return all about one query, ready for JSON; `keep` takes the texts of the chunks."""
        listed = self._kept.chunks(query)
        rows = listed[: self._ranks]
        golds: list[dict[str, Any]] = []
        viewed: list[tuple[RelationView, list[UnitMark]]] = []
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
            "counts": view.relevant if several or view.relevant not in PLAIN_RULES else "",
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
        self, row: dict[str, Any], marked: list[tuple[RelationView, UnitMark]]
    ) -> dict[str, Any]:
        first = marked[0][1] if marked else None
        said = dict.fromkeys(
            (self._source(view), mark.kind)
            for view, mark in marked
            if row["rank"] <= (deepest(view.measures) or row["rank"]) or not self._is_judged(view)
        )
        # a text that is its own id is shown once
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
        if list(said) != [("gold", chunk["mark"])]:  # which goes without saying
            chunk["said"] = [list(each) for each in said]
        if first and first.grade is not None:
            chunk["grade"] = first.grade
        if row.get("score") is not None:
            score = row["score"]  # JSON has no word for the strange ones
            chunk["score"] = score if math.isfinite(score) else str(score)
        return chunk

    def _source(self, view: RelationView) -> str:
        """Say who tells what a chunk is: the gold, a judge of relevance, or one of an aspect."""
        judge = "judge" if _aspect(view) == "relevance" else _aspect(view)
        return judge if self._is_judged(view) else "gold"

    def _is_judged(self, view: RelationView) -> bool:
        matcher = self._matchers.get(_aspect(view))
        return matcher is not None and matcher.judged

    def _text(
        self,
        query: str,
        text: str,
        marked: list[tuple[RelationView, UnitMark]],
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


def _gold_texts(view: RelationView, query: str, mark: UnitMark) -> list[str]:
    """Return the texts of the relevant items that a chunk covers."""
    marks = view.marks
    if marks.relation.needed:
        return []
    at = marks.number[query]
    relevant = marks.items(at, min(marks.relevant(at), ITEMS))
    return [doc for item in relevant if item.number in mark.covers for doc in item.docs]


def disagrees(case: Mapping[str, Any]) -> bool:
    """Tell whether a judge and the gold contradict each other about a chunk of a query."""
    counts = {"hit": True, "again": True, "rejected": False, "miss": False}
    for system in case["systems"]:
        for chunk in system["list"]:
            said = [(who, counts[kind]) for who, kind in chunk.get("said", ()) if kind in counts]
            gold = {yes for who, yes in said if who == "gold"}
            judge = {yes for who, yes in said if who != "gold"}
            if (gold and judge) and not gold & judge:
                return True
    return False


def query_details(
    panel: Panel, systems: list[QueryDetails], at: int, keep: Keep = str
) -> dict[str, Any]:
    """Return one query under every system, and what is known about it."""
    about = panel.queries.row(at, named=True)
    found = [each.of(about["query"], keep) for each in systems]
    return {
        "about": {
            multiline(name): shorten(str(value), LETTERS)
            for name, value in about.items()
            if name not in ("query", "question") and value is not None
        },
        "gold": gold_matrix([each.pop("gold") for each in found]),
        "systems": found,
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


def gold_matrix(by_system: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return one table per relation: an item per row, and the rank at which each system met it.

    What is given is the gold as `QueryDetails` returns it, by system. Systems whose gold is not the
    same, such as claims that two judges listed differently, have tables of their own.

    >>> item = {"number": 1, "docs": ["a"], "grade": 1.0}
    >>> about = {"relation": "ids", "counts": "", "cutoff": 5, "relevant": 1, "other": 0}
    >>> first = about | {"met": 1, "items": [item | {"rank": 3}]}
    >>> second = about | {"met": 0, "items": [item | {"rank": None}]}
    >>> [found] = gold_matrix([[first], [second]])
    >>> found["items"][0]["ranks"], found["counted"]
    ([3, None], [{'counts': '', 'relevant': 1, 'met': [1, 0]}])
    """
    found: dict[object, dict[str, Any]] = {}
    for system, golds in enumerate(by_system):
        relations = dict.fromkeys(gold["relation"] for gold in golds)
        for relation in relations:
            mine = [gold for gold in golds if gold["relation"] == relation]
            whole = max(mine, key=lambda gold: gold["relevant"])  # the others are its beginning
            key = (
                relation,
                tuple((tuple(item["docs"]), item["grade"]) for item in whole["items"]),
                tuple((gold["counts"], gold["relevant"]) for gold in mine),
            )
            _add_system(found.setdefault(key, _gold_table(whole, mine)), system, whole, mine)
    return list(found.values())


def _gold_table(whole: dict[str, Any], mine: Sequence[dict[str, Any]]) -> dict[str, Any]:
    cutoffs = [gold["cutoff"] for gold in mine]
    return {
        "relation": whole["relation"],
        "cutoff": None if None in cutoffs else max(cutoffs),
        "systems": [],
        "counted": [
            {"counts": gold["counts"], "relevant": gold["relevant"], "met": []} for gold in mine
        ],
        "items": [
            {name: value for name, value in item.items() if name != "rank"} | {"ranks": []}
            for item in whole["items"]
        ],
        "more": whole["relevant"] - len(whole["items"]),
    }


def _add_system(
    table: dict[str, Any], system: int, whole: dict[str, Any], mine: Sequence[dict[str, Any]]
) -> None:
    table["systems"].append(system)
    for counted, gold in zip(table["counted"], mine, strict=True):
        counted["met"].append(gold["met"])
    for row, item in zip(table["items"], whole["items"], strict=True):
        row["ranks"].append(item["rank"])
