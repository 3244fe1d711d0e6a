"""What was retrieved at each rank: from the inputs, or as a result keeps it with verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from findwell.core.errors import FindwellError
from findwell.core.frames import pl
from findwell.core.texts.sentences import split
from findwell.core.texts.words import tidy
from findwell.evaluation.explanation.ranking import Unit, reads_texts
from findwell.relations.pipeline import TEXT_LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polars._typing import PolarsDataType

    from findwell.core.relation import Units
    from findwell.evaluation.explanation.ranking import RelationView
    from findwell.evaluation.results.result import Result
    from findwell.relations.align import Aligned
    from findwell.relations.match.matcher import BoundByRule

BEST_SCORES = 3  # of a unit that are shown
NOT_KEPT = "(not kept)"
_VERDICT_FIELDS = ("aspect", "item", "value", "reason", "quote", "unproven")

VERDICT_ROW: dict[str, PolarsDataType] = {
    **dict.fromkeys(("run", "query", "aspect", "item"), pl.String),
    "rank": pl.Int64,
    "doc": pl.String,
    "value": pl.Int64,
    "probability": pl.Float64,
    "reason": pl.String,
    "quote": pl.String,
    "unproven": pl.Boolean,
}


@dataclass(frozen=True, slots=True)
class ExplainedVerdict:
    """One verdict of a judge."""

    aspect: str
    item: str  # the question, a claim, an entity, a statement or the list
    rank: int | None  # of the chunk
    value: int | None
    reason: str
    quote: str
    unproven: bool
    probability: float | None = None  # of a yes, or of a grade above 0, where the judge tells it
    doc: str | None = None  # of the chunk
    query: str = ""
    run: str = ""


class KeptRun:
    """What a result keeps of one of its runs: the lists, and what a judge said about them."""

    def __init__(self, result: Result, run: str, queries: Iterable[str] | None = None) -> None:
        wanted = None if queries is None else list(queries)
        verdicts = result.kept.verdicts
        self._settings, self._run = result.provenance.settings, run
        self._lists = _RowsByQuery(result.kept.listed.get(run), wanted)
        self._verdicts = _RowsByQuery(
            None if verdicts is None else verdicts.filter(pl.col("run") == run).drop("run"), wanted
        )
        self._last: tuple[str, dict[str, list[dict[str, Any]]]] | None = None

    def chunks(self, query: str) -> list[dict[str, Any]]:
        """Return the list of a query as far as it is kept: rank, doc, perhaps score and text."""
        listed = self._lists.get(query)
        return [] if listed is None else listed.to_dicts()

    def verdicts(self, query: str) -> dict[str, list[dict[str, Any]]]:
        """Return the verdicts about a query by chunk, see `chunk_keys`."""
        if self._last is not None and self._last[0] == query:  # asked for once per chunk
            return self._last[1]
        table = self._verdicts.get(query)
        rows = [] if table is None else table.to_dicts()
        found: dict[str, list[dict[str, Any]]] = {}
        for key, row in zip(chunk_keys(row["chunk"] for row in rows), rows, strict=True):
            found.setdefault(key, []).append(row)
        self._last = query, found
        return found

    def explained_verdicts(self, query: str) -> tuple[ExplainedVerdict, ...]:
        """Return the verdicts about a query, in the order of aspects and items."""
        table, chunks = self._verdicts.get(query), self.chunks(query)
        if table is None:
            return ()
        keys = chunk_keys(row.get("text") for row in chunks)
        places: dict[str, dict[str, Any]] = {}
        for key, row in zip(keys, chunks, strict=True):
            places.setdefault(key, {"rank": row["rank"], "doc": row["doc"]})
        nowhere: dict[str, Any] = {"rank": None, "doc": None}
        return tuple(
            ExplainedVerdict(  # a verdict about the whole list is about no chunk of it
                query=query,
                run=self._run,
                **(places.get(key, nowhere) if row["chunk"] else nowhere),
                probability=row.get("probability"),  # old results have none
                **{name: row[name] for name in _VERDICT_FIELDS},
            )
            for key, row in zip(chunk_keys(table["chunk"]), table.to_dicts(), strict=True)
        )

    def units(self, view: RelationView, query: str) -> list[Unit]:
        """Return the units of a query as a relation has them: chunks, or parts of chunks."""
        at = view.marks.number.get(query)
        if at is None:
            return []
        chunks, ends = self.chunks(query), view.marks.ends(at)
        if ends is None:
            depth = int(view.marks.relation.depth[at])
            texts = reads_texts(view.relation)
            units = [Unit(row["doc"], row.get("text") if texts else None) for row in chunks[:depth]]
            return units + [Unit(NOT_KEPT)] * (depth - len(units))
        units = []
        for rank, (low, high) in enumerate(pairwise([0, *ends]), start=1):
            row = chunks[rank - 1] if rank <= len(chunks) else {"doc": NOT_KEPT}
            parts = self.parts(view.relation, query, row.get("text"))[: high - low]
            missing = [None] * (high - low - len(parts))
            units += (Unit(row["doc"], part, rank) for part in (*parts, *missing))
        return units

    def parts(self, relation: str, query: str, text: str | None) -> list[str]:
        """Return the units of a chunk, if known: what a judge listed of it, or its sentences."""
        if not text:
            return []
        (key,) = chunk_keys([text])
        aspect = relation.partition("(")[0]
        listed = [
            row["item"] for row in self.verdicts(query).get(key, []) if row["aspect"] == aspect
        ]
        splitter = self._settings.get(relation, {}).get("splitter")
        if listed or splitter is None:
            return listed
        try:
            return split([text], splitter)[0]
        except FindwellError:  # the splitter is not installed here
            return []


def verdicts_of(result: Result) -> tuple[ExplainedVerdict, ...]:
    """Return every verdict that a result keeps, run by run, in the order of its queries."""
    if result.kept.verdicts is None:
        return ()
    queries = result.queries["query"].to_list()
    kept = (KeptRun(result, run) for run in result.runs)
    return tuple(
        each for run in kept for query in queries for each in run.explained_verdicts(query)
    )


def verdict_table(result: Result) -> pl.DataFrame:
    """Return every verdict that a result keeps as a row, as the JSON output prints them."""
    rows = [[getattr(each, name) for name in VERDICT_ROW] for each in verdicts_of(result)]
    return pl.DataFrame(rows, schema=VERDICT_ROW, orient="row")


def chunk_keys(texts: Iterable[str | None]) -> list[str]:
    """Return what makes chunks the same to a judge, as far as lists remember their texts."""
    known = pl.Series([(text or "")[:TEXT_LETTERS] for text in texts], dtype=pl.String)
    return tidy(known, "plain").to_list()


class _RowsByQuery:
    """The rows of each query, cut out when they are asked for: a result may have very many."""

    def __init__(self, table: pl.DataFrame | None, queries: list[str] | None) -> None:
        table = pl.DataFrame({"query": []}) if table is None else table
        if queries is not None:
            table = table.filter(pl.col("query").is_in(queries))
        lengths = table["query"].rle().struct.unnest()
        if lengths["value"].n_unique() < lengths.height:  # rows of a query are not together
            table = table.sort("query", maintain_order=True)
            lengths = table["query"].rle().struct.unnest()
        self._table = table
        ends = lengths["len"].cum_sum().to_list()
        self._places = dict(zip(lengths["value"].to_list(), pairwise([0, *ends]), strict=True))

    def get(self, query: str) -> pl.DataFrame | None:
        """Return the rows of a query in their order, None if there are none."""
        if query not in self._places:
            return None
        start, end = self._places[query]
        return self._table[start:end]


def bound_units(aligned: Aligned, bound: BoundByRule) -> dict[str, list[Unit]]:
    """Return the units that a rule compares with the gold, by query, with their best scores."""
    units = bound.units(aligned)
    scores = _scores(bound, units)
    names = aligned.rows["raw" if "raw" in aligned.rows.columns else "doc"].gather(units.row)
    chunk = aligned.rank[units.row].tolist() if units.sizes is not None else [None] * len(names)
    first = bound.gold.item_offset.tolist()
    queries = bound.gold.queries["query"]
    found: dict[str, list[Unit]] = {}
    rows = zip(units.query.tolist(), names, units.text, chunk, strict=True)
    for at, (query, doc, text, part) in enumerate(rows):
        best = tuple((item - first[query] + 1, score) for item, score in scores.get(at, ()))
        unit = Unit(doc, text if bound.blank_is_unit else None, part, best)
        found.setdefault(queries[query], []).append(unit)
    return found


def _scores(bound: BoundByRule, units: Units) -> dict[int, tuple[tuple[int, float], ...]]:
    """Return the items that each unit meets best, with the scores."""
    found = bound.scores(units)
    if found is None:
        return {}
    pairs = pl.DataFrame({"unit": found.unit, "item": found.item, "score": found.score})
    best = (
        pairs.group_by("unit", "item", maintain_order=True)
        .max()
        .sort("score", descending=True, maintain_order=True)
        .group_by("unit", maintain_order=True)
        .head(BEST_SCORES)
        .rows_by_key("unit")
    )
    return {unit: tuple(rows) for unit, rows in best.items()}
