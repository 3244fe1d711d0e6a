"""How every relation is drawn: batch by batch, whatever draws the edges.

An engine decides how a run is cut into batches of whole queries and where they are worked on. What
happens to a batch (`draw_batch`) and to all of them in the end (`join`) is decided here, once: the
policies about blank entries, missing queries and queries without a value included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.batches import GrowingColumn, compact
from findwell.core.data import Gold, Run, RunStream
from findwell.core.findings import Finding, merge_findings
from findwell.core.frames import changed, later, pl
from findwell.core.keys import sort_rows
from findwell.core.parts import is_part
from findwell.core.relation import Relation
from findwell.relations.align import Ties, align, in_order
from findwell.relations.facts import join_facts
from findwell.relations.match.matcher import NO_EDGES
from findwell.relations.preflight import (
    UnmetRun,
    missing_queries,
    no_shared_query,
    nothing_retrieved,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.policy import Policy
    from findwell.relations.align import Aligned
    from findwell.relations.facts import ChunkFacts, FactReader
    from findwell.relations.match.matcher import BoundMatcher, Edges

SAMPLE = 1000  # rows that are looked at to explain a run that does not fit its gold
KEPT = 1_000_000  # rows of lists that are kept at most
TEXT = 20_000  # characters of a text that are kept
EDGE_COLUMNS = ("query", "rank", "item")
UNIT_COLUMNS = ("unit_query", "unit_rank", "unit_judged", "unit_repeat")


@dataclass(frozen=True, slots=True, eq=False)
class DrawnBatch:
    """What one batch of a run adds to its relation; queries are counted as in the gold."""

    query: Ints  # the queries of the batch, and how many chunks of each were looked at
    retrieved: Ints
    edges: Edges
    chunks: tuple[Ints, Ints] | None  # query and rank of these chunks, where units are parts
    asked: Ints  # queries whose list is empty
    blank: Ints  # queries whose list holds a blank id
    ties: Ties | None
    findings: tuple[Finding, ...]
    documents: int
    cut: bool = False  # whether any list is longer than what was looked at
    listed: pl.DataFrame | None = None  # the beginnings of the lists, where they are kept
    facts: ChunkFacts | None = None  # about the chunks that were looked at, where asked for

    @property
    def queries(self) -> Ints:
        """The queries that the batch is about."""
        return np.union1d(self.query, self.asked)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The relation of a run, what is worth knowing, and the lists as far as they are kept."""

    relation: Relation
    findings: tuple[Finding, ...]
    listed: pl.DataFrame | None = None  # query, rank, doc, and score and text where known
    ties: Ties | None = None  # those among which something was hit
    unmet: UnmetRun | None = None  # where no item was met at all


def draw_batch(
    batch: Run,
    bound: BoundMatcher,
    policy: Policy,
    keep: int = 0,
    facts: FactReader | None = None,
) -> DrawnBatch:
    """Draw the edges of a batch of whole queries.

    `keep` is how many ranks of a list are kept, `facts` finds out what else is asked about chunks.
    """
    if bound.blank_is_unit and policy.blank == "error":
        policy = replace(policy, blank="kept")
    given, lacking = (
        (batch.rows, []) if facts is None else facts.add(batch.rows, batch.name, bound.gold.queries)
    )
    rows, found = bound.rows(given)
    aligned = align(replace(batch, rows=rows), bound.gold, policy, by_id=not bound.blank_is_unit)
    documents = batch.rows["doc"].count()
    if bound.finds_items:
        bound.check_rows(found, documents, batch.name)  # before a judge is paid to look at them
    edges = bound.edges(aligned)
    seen = aligned.first(bound.depth)
    first = np.flatnonzero(np.diff(seen.query, prepend=-1))  # rows of a query stand together
    return DrawnBatch(
        query=seen.query[first],
        retrieved=np.diff(first, append=len(seen.query)),
        edges=edges,
        chunks=None if edges.sizes is None else (seen.query, seen.rank),
        asked=aligned.asked,
        blank=aligned.blank,
        ties=ties_that_matter(aligned.ties, edges),
        findings=(*found, *aligned.findings),
        documents=documents,
        cut=len(seen.query) < len(aligned.query),
        listed=top_of(aligned, keep) if keep else None,
        facts=None if facts is None else facts.read(seen, lacking, documents),
    )


def ties_that_matter(ties: Ties | None, edges: Edges) -> Ties | None:
    """Keep the ties with an edge among them: only there does the order matter."""
    if ties is None or edges.sizes is not None:
        return None
    tie = ties.around(edges.query, edges.rank)
    return ties.filter(np.isin(np.arange(len(ties.query)), tie))


def join(run: RunStream, drawn: Iterable[DrawnBatch], bound: BoundMatcher, policy: Policy) -> Drawn:
    """Make the relation of all batches of a run, which is read again only where nothing fits.

    The batches may come one by one, as they are drawn: of the edges there is never a second copy.
    """
    gold = bound.gold
    count = gold.n
    asked, blank, seen = np.zeros((3, count), dtype=bool)
    parts: list[DrawnBatch] = []
    columns = _EdgeColumns()
    for each in drawn:
        asked[each.asked] = True
        blank[each.blank] = True
        seen[each.queries] = True
        parts.append(each if bound.finds_items else columns.move(each))
    found = (each for part in parts for each in part.findings)
    findings = [*run.findings, *in_order(found)]  # however the run was cut
    documents = sum(part.documents for part in parts)
    findings = bound.check_rows(findings, documents, run.name)
    if parts and not seen.any() and not is_part():
        raise no_shared_query(_first_rows(run)["query"], gold.queries["query"], run.name)
    findings += missing_queries(seen, gold, run.name, policy)
    findings += nothing_retrieved(asked, gold, policy)
    if bound.finds_items and policy.missing != "skip" and not seen.all():
        parts = [*parts, _nothing(run, ~seen, bound, policy)]
    facts = join_facts([part.facts for part in parts], run.name)
    relation = _relation(parts, columns, blank, bound, policy, facts=facts)
    nothing_met = relation.depth.any() and not relation.unit_judged.any()
    unmet = None
    if nothing_met and not bound.finds_items and not is_part():
        rows, _ = bound.rows(_first_rows(run))
        unmet = UnmetRun(
            run.name,
            rows["doc"].drop_nulls(),
            int(((relation.depth > 0) & (np.diff(relation.item_offset) > 0)).sum()),
        )
    skipping = policy.missing == "skip"
    listed = [part.listed for part in parts if part.listed is not None]
    return Drawn(
        relation=relation.select(seen) if skipping else relation,
        findings=merge_findings(findings),
        listed=pl.concat(listed, how="diagonal").head(KEPT) if listed else None,
        ties=_all_ties([part.ties for part in parts if part.ties], seen if skipping else None),
        unmet=unmet,
    )


def _first_rows(run: RunStream) -> pl.DataFrame:
    """Return the first rows of a run, which do not depend on how it is cut into batches."""
    first = pl.DataFrame()
    # all of it is read: what reading has noted is then whole, too
    for rows in run.batches() if run.whole is None else [run.whole]:
        if first.height < SAMPLE:
            first = pl.concat([first, compact(rows.head(SAMPLE - first.height))], how="diagonal")
    return first


def _nothing(run: RunStream, missing: Bools, bound: BoundMatcher, policy: Policy) -> DrawnBatch:
    """Draw the queries that a run lacks: they have items, though nothing covers them."""
    queries = bound.gold.queries["query"].filter(missing)
    rows = pl.DataFrame(
        {"query": queries, "doc": pl.Series([None] * len(queries), dtype=pl.String)}
    )
    return draw_batch(Run(run.name, rows, "listed"), bound, policy)


class _EdgeColumns:
    """The edges and notable units of batches, in columns that grow."""

    def __init__(self) -> None:
        self._columns = {name: GrowingColumn(np.int32) for name in (*EDGE_COLUMNS, *UNIT_COLUMNS)}
        self._columns["unit_judged"] = GrowingColumn(np.bool_)
        self._columns["unit_repeat"] = GrowingColumn(np.int8)
        self._weight: GrowingColumn | None = None  # of the edges, where any has one
        self._alike = True  # units are those of the edges, so far

    def move(self, part: DrawnBatch) -> DrawnBatch:
        """Take over the edges of a batch; return it without them."""
        edges = part.edges
        self.append(edges)
        return replace(part, edges=replace(NO_EDGES, sizes=edges.sizes))

    def append(self, edges: Edges) -> None:
        """Add the edges of a batch."""
        alike = edges.unit_query is edges.query and edges.unit_rank is edges.rank
        if self._alike and not alike:  # from now on the units have columns of their own
            self._alike = False
            for name in ("query", "rank"):
                self._columns[f"unit_{name}"].append(self._columns[name].values)
        if self._weight is None and edges.weight is not None:
            self._weight = GrowingColumn(np.float64)
            self._weight.append(np.ones(len(self._columns["query"].values)))
        if self._weight is not None:
            ones = np.ones(len(edges.query))
            self._weight.append(ones if edges.weight is None else edges.weight)
        for name, column in self._columns.items():
            if not self._alike or name not in ("unit_query", "unit_rank"):
                column.append(getattr(edges, name))

    def take(self) -> dict[str, Any]:
        """Return the columns of a relation: edges by query, rank and item, units by query, rank."""
        found = {name: column.take() for name, column in self._columns.items()}
        edges: tuple[str, ...] = EDGE_COLUMNS
        if self._weight is not None:
            found["weight"] = self._weight.take()
            edges = (*edges, "weight")
        if self._alike:  # every edge has a unit of its own
            _sort_in(found, (*edges, "unit_judged", "unit_repeat"), 3)
            found |= {"unit_query": found["query"], "unit_rank": found["rank"]}
        else:
            _sort_in(found, edges, 3)
            _sort_in(found, UNIT_COLUMNS, 2)
        return {f"edge_{name}" if name in edges else name: found[name] for name in found}


def _sort_in(columns: dict[str, Any], names: Sequence[str], keys: int) -> None:
    """Sort some of these columns by the first few of them."""
    rows = sort_rows(tuple(columns[name] for name in names), keys)
    columns.update(zip(names, rows, strict=True))


def _relation(
    parts: list[DrawnBatch],
    columns: _EdgeColumns,
    blank: Bools,
    bound: BoundMatcher,
    policy: Policy,
    *,
    facts: dict[str, Floats] | None,
) -> Relation:
    """Make the relation of what was drawn; where anything failed, also the lenient one."""
    failures: dict[int, str] = {}
    retrieved = np.zeros(len(blank), dtype=np.int64)
    for part in parts:
        failures |= part.edges.failures
        retrieved[part.query] = part.retrieved
    failed = np.isin(np.arange(len(blank)), list(failures))

    def version(edges: list[Edges]) -> Relation:
        gold, edges = with_items(bound.gold, edges) if bound.finds_items else (bound.gold, edges)
        fine = _fine_units(retrieved, parts, edges)
        reasons = _undefined_reasons(gold, retrieved, blank, policy) | failures
        for part in edges if bound.finds_items else ():
            columns.append(part)
        member_item, docs = gold.member_item, later(lambda: gold.member_doc)
        if gold.member_weight is not None:
            supporting = np.flatnonzero(gold.member_weight)
            member_item, docs = member_item[supporting], later(lambda: gold.member_doc[supporting])
        return Relation(
            queries=later(lambda: gold.queries["query"], gold.names),
            depth=retrieved if fine is None else fine[0],
            item_offset=gold.item_offset,
            item_grade=gold.item_grade,
            **columns.take(),
            member_item=member_item,
            member_doc=docs,
            reasons=reasons,
            chunk_offset=None if fine is None else fine[1],
            chunk_end=None if fine is None else fine[2],
            item_times=gold.item_times,
            needed=bound.needed,
            judged_to=bound.depth if any(part.cut for part in parts) else None,
            failed_verdicts=failed if failures else None,
            chunk_facts=facts,
        )

    strict = version([part.edges for part in parts])
    if not failures:
        return strict
    return changed(strict, lenient=version([part.edges.lenient or part.edges for part in parts]))


def _all_ties(parts: list[Ties], seen: Bools | None) -> Ties | None:
    """Put the ties of batches together, for the queries that are kept."""
    if not any(len(part.query) for part in parts):
        return None
    columns = zip(*((part.query, part.first, part.last) for part in parts), strict=True)
    query, first, last = sort_rows(tuple(np.concatenate(column) for column in columns), 2)
    # a query that was seen keeps its ties; what was not has none
    return Ties(query if seen is None else (np.cumsum(seen) - 1)[query], first, last)


def top_of(aligned: Aligned, keep: int) -> pl.DataFrame:
    """Return the first documents of each list: query, rank, doc, score and text where known."""
    first = aligned.rank <= keep
    rows = aligned.rows.with_columns(
        rank=pl.Series(aligned.rank), doc=pl.col("raw" if "raw" in aligned.rows.columns else "doc")
    ).filter(first)
    wanted = [name for name in ("query", "rank", "doc", "score", "text") if name in rows.columns]
    return compact(
        rows.select(wanted).with_columns(
            pl.col(name).str.head(TEXT) for name in wanted if name == "text"
        )
    )


def _undefined_reasons(gold: Gold, depth: Ints, blank: Bools, policy: Policy) -> dict[int, str]:
    """Say which queries have no value, whatever the measure, and why."""
    why: dict[int, str] = {}
    if policy.nothing == "undefined":
        why |= dict.fromkeys(np.flatnonzero(depth == 0).tolist(), "nothing was retrieved")
        without = np.flatnonzero(np.diff(gold.item_offset) == 0)
        why |= dict.fromkeys(without.tolist(), "no gold")
    why |= dict.fromkeys(np.flatnonzero(blank).tolist(), "a retrieved id is blank")
    return why | {
        gold.query_numbers[query]: f"in the gold {flaw}" for query, flaw in gold.flaws.items()
    }


def with_items(gold: Gold, parts: Sequence[Edges]) -> tuple[Gold, list[Edges]]:
    """Return the gold of the items that batches brought to light, and edges that count them."""
    found = [part.items for part in parts if part.items is not None]
    query = _column([each.query for each in found])
    grade = _column([each.grade for each in found], float)
    text = pl.concat([each.text for each in found]) if found else pl.Series([], dtype=pl.String)
    # equal texts are items of their own, so a number stands behind them where they repeat
    again = pl.int_range(1, pl.len() + 1).over("query", "doc")
    rows = pl.DataFrame(
        {"query": gold.queries["query"].gather(query), "doc": text, "grade": grade}
    ).with_columns(
        doc=pl.when(again == 1).then("doc").otherwise(pl.format("{} ({})", "doc", again)),
        group=pl.int_range(pl.len()).cast(pl.String),  # a name: equal texts stay apart
    )
    built = Gold.build(rows, queries=gold.queries, findings=gold.findings)
    # a row is an item with one member; items are ordered by query, then grade, then as given
    order = np.lexsort((np.arange(len(query)), -grade, query))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    first = 0
    numbered = []
    for part in parts:
        numbered.append(replace(part, item=place[part.item + first]))
        first += 0 if part.items is None else len(part.items.query)
    return built, numbered


def _column(columns: Iterable[Any], kind: type = np.int64) -> Any:  # noqa: ANN401
    columns = list(columns)
    return np.concatenate(columns) if columns else np.zeros(0, dtype=kind)


def _fine_units(
    retrieved: Ints, parts: Sequence[DrawnBatch], edges: Sequence[Edges]
) -> tuple[Ints, Ints, Ints] | None:
    """Count the units of each query, and down to the end of each chunk; None: chunks are units."""
    chunks = [part.chunks for part in parts if part.chunks is not None]
    if not chunks:
        return None
    query, rank = (np.concatenate(columns) for columns in zip(*chunks, strict=True))
    sizes = np.concatenate([part.sizes for part in edges if part.sizes is not None])
    query, _, sizes = sort_rows((query, rank, sizes), 2)
    offset = np.concatenate(([0], np.cumsum(retrieved)))
    upto = np.concatenate(([0], np.cumsum(sizes)))
    before = upto[offset[:-1]]
    return upto[offset[1:]] - before, offset, upto[1:] - before[query]
