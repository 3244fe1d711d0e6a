"""Single queries of a system: what was retrieved, what of it counts, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from karat.engines.stream import TEXT
from karat.errors import KaratError
from karat.match import known_matchers
from karat.match.sentences import split
from karat.report.cases.indexed import Indexed, Mark
from karat.report.cases.matched import merged, places, sentences
from karat.report.cases.shown import excerpt, in_utf16, shown
from karat.report.cases.steps import Steps

if TYPE_CHECKING:
    from karat.comparison.systems import System
    from karat.report.panel import Panel

Keep: TypeAlias = Callable[[str], int | str]  # keeps a text and returns how to find it

RANKS = 20  # of a list that are shown
LETTERS = 1_500  # of a text that are shown
SHORT = 400  # letters of an id, a reason or a gold text
GOLD = 240  # letters of the text of a gold document


class Cases:
    """Tells any query of a system."""

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
        self._steps = Steps(result, system.run)
        self._relations: dict[str, Indexed] = {}
        for measure in result.measures:
            name = measure.relation or result.drawn_by
            if name not in self._relations:
                relation = result.relation(system.run, measure)
                self._relations[name] = Indexed(relation, measure.level())
        self._listed = _by_query(result.listed.get(system.run))
        verdicts = result.verdicts
        if verdicts is not None:
            verdicts = verdicts.filter(pl.col("run") == system.run).drop("run")
        self._verdicts = _by_query(verdicts)

    def tell(self, query: str, keep: Keep = str) -> dict[str, Any]:
        """Return all about one query, ready for JSON; `keep` takes the texts of the chunks."""
        listed = self._listed.get(query)
        rows = [] if listed is None else listed.head(self._ranks).to_dicts()
        relations, marks = [], []
        depth = 0 if listed is None else listed.height  # which may be deeper than was judged
        for name, indexed in self._relations.items():
            at = indexed.number.get(query)
            if at is None:
                continue
            sizes = indexed.sizes(at)
            depth = max(depth, int(indexed.relation.depth[at]) if sizes is None else len(sizes))
            count = len(rows) or min(depth, self._ranks)
            marks.append((name, indexed.marks(at, min(count, indexed.judged_to or count))[0]))
            if not indexed.relation.needed:  # there the items are the chunks themselves
                items, counts = indexed.items(at)
                told = [self._item(item, name) for item in items]
                relations.append({"relation": shown(name), "items": told, **counts})
        if not rows:
            rows = _rows_without_texts(marks)
        said = self._said(query)
        return {
            "depth": depth,
            "list": [self._chunk(row, at, marks, said, keep) for at, row in enumerate(rows)],
            "gold": relations,
            "steps": [shown(step) for step in self._steps.tell(query)],
        }

    def _item(self, item: dict[str, Any], relation: str) -> dict[str, Any]:
        """Shorten what an item says, and tell its text where its documents are ids."""
        told = item | {"docs": [_short(doc) for doc in item["docs"]]}
        if not _reads_texts(relation):
            texts = [_short(self._known[doc], GOLD) for doc in item["docs"] if doc in self._known]
            told |= {"texts": texts} if texts else {}
        return told

    def _chunk(
        self,
        row: dict[str, Any],
        at: int,
        marks: list[tuple[str, list[Mark]]],
        said: dict[str, list[dict[str, Any]]],
        keep: Keep,
    ) -> dict[str, Any]:
        text = row.get("text")
        told = {name: each[at] for name, each in marks if at < len(each)}
        first = next(iter(told.values()), None)
        verdicts = said.get((text or "")[:TEXT], [])
        chunk: dict[str, Any] = {
            "rank": row["rank"],
            "doc": _short(str(row["doc"])),
            "mark": self._mark(next(iter(told)), first) if first else "none",
            "covers": {
                shown(name): list(mark.covers)
                for name, mark in told.items()
                if mark.covers and not self._relations[name].relation.needed
            },
        }
        if first and first.grade is not None:
            chunk["grade"] = first.grade
        if row.get("score") is not None:
            chunk["score"] = row["score"]
        if verdicts:
            chunk["verdicts"] = verdicts
        if text:
            quotes = [verdict["quote"] for verdict in verdicts if verdict["value"]]
            chunk |= self._text(text, told, quotes, row["query"], keep)
        if text == row["doc"]:  # a text that is its own id need not be said twice
            chunk["doc"] = ""
        return chunk

    def _mark(self, relation: str, mark: Mark) -> str:
        """Name the mark; where texts are compared, what covers nothing simply does not match."""
        if mark.kind == "none":
            return "miss" if _reads_texts(relation) else "unjudged"
        return mark.kind

    def _text(
        self, text: str, told: dict[str, Mark], quotes: list[str], query: str, keep: Keep
    ) -> dict[str, Any]:
        clean = shown(text)
        spans = self._matched(clean, told, quotes, query)
        part, inside, start = excerpt(clean, spans, self._letters)
        found: dict[str, Any] = {"text": keep(part)}
        if inside:
            found["matched"] = in_utf16(part, inside)
        if len(part) < len(clean):
            found["cut"] = [start, len(clean)]
        return found

    def _matched(
        self, text: str, told: dict[str, Mark], quotes: list[str], query: str
    ) -> list[tuple[int, int]]:
        """Return the places in a text that made it count."""
        spans: list[tuple[int, int]] = []
        wanted = [quote for quote in quotes if quote]
        for name, mark in told.items():
            if mark.parts:
                spans += self._parts(name, text, mark)
            elif mark.covers and _reads_texts(name):
                wanted += self._gold_texts(name, query, mark)
        return merged([*spans, *places(text, wanted)])

    def _parts(self, name: str, text: str, mark: Mark) -> list[tuple[int, int]]:
        splitter = self._result.settings.get(name, {}).get("splitter", "sentencex")
        try:
            pieces = split([text], splitter)[0]
        except KaratError:  # the splitter is not installed here
            return []
        where = sentences(text, pieces)
        return [where[part] for part in mark.parts if part < len(where)]

    def _gold_texts(self, name: str, query: str, mark: Mark) -> list[str]:
        indexed = self._relations[name]
        if indexed.relation.needed:
            return []
        items, _ = indexed.items(indexed.number[query])
        wanted = set(mark.covers)
        return [shown(doc) for item in items if item["number"] in wanted for doc in item["docs"]]

    def _said(self, query: str) -> dict[str, list[dict[str, Any]]]:
        """Return the verdicts about each chunk of a query, by its text."""
        rows = self._verdicts.get(query)
        found: dict[str, list[dict[str, Any]]] = {}
        for row in [] if rows is None else rows.to_dicts():
            told = {
                "aspect": row["aspect"],
                "value": row["value"],
                "reason": _short(row["reason"] or ""),
                "quote": _short(row["quote"] or ""),
            }
            if row["aspect"] != "relevance":
                told["item"] = _short(row["item"])
            if row["unproven"]:
                told["unproven"] = True
            found.setdefault(row["chunk"][:TEXT], []).append(told)
        return found


def tell_all(panel: Panel, cases: list[Cases], at: int, keep: Keep = str) -> dict[str, Any]:
    """Return one query under every system, and what is known about it."""
    about = panel.queries.row(at, named=True)
    query = about["query"]
    return {
        "about": {
            shown(name): _short(str(value), LETTERS)
            for name, value in about.items()
            if name not in ("query", "question") and value is not None
        },
        "systems": [each.tell(query, keep) for each in cases],
    }


def gold_texts(panel: Panel) -> dict[str, str]:
    """Return the texts of gold documents, as far as any system retrieved them for any query."""
    tables = [
        table.select("doc", "text")
        for system in panel.systems
        for table in system.result.listed.values()
        if "text" in table.columns
    ]
    wanted = [
        relation.member_doc
        for system in panel.systems
        for (_, name), relation in system.result.relations.items()
        if not _reads_texts(name)
    ]
    if not tables or not wanted:
        return {}
    every = pl.concat(tables).drop_nulls().unique("doc", keep="first")
    gold = pl.DataFrame({"doc": pl.concat(wanted).unique()})
    return dict(gold.join(every, on="doc").rows())


def _reads_texts(relation: str) -> bool:
    """Tell whether a relation compares texts; one that nobody knows here may well do."""
    matcher = known_matchers().get(relation.partition("(")[0])
    return matcher is None or matcher.reads_texts


def _by_query(table: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
    if table is None:
        return {}
    parts = table.partition_by("query", as_dict=True, maintain_order=True)
    return {str(query): part for (query,), part in parts.items()}


def _rows_without_texts(marks: list[tuple[str, list[Mark]]]) -> list[dict[str, Any]]:
    """Return rows for the marks alone, where the result does not remember the list."""
    count = max((len(each) for _, each in marks), default=0)
    return [{"rank": rank, "doc": "(not kept)"} for rank in range(1, count + 1)]


def _short(text: str, most: int = SHORT) -> str:
    clean = shown(text[: most + 1])
    return clean if len(clean) <= most else clean[: most - 1] + "…"
