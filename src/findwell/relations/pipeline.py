"""How every relation is drawn: batch by batch, whatever draws the edges.

An engine decides how a run is cut into batches of whole queries and where they are worked on. What
happens to a batch (`draw_batch`) and to all of them in the end (`join`) is decided here, once: the
policies about the gold, blank entries, missing queries and queries without a value included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.columns import compact, sort_rows
from findwell.core.data import TEXT_ITEM, Gold, Run, RunStream
from findwell.core.errors import AlignError, InputError
from findwell.core.findings import Finding, FindingKind, finding_about, merge_findings
from findwell.core.frames import as_given, changed, later, pl
from findwell.core.parts import is_part
from findwell.core.relation import NO_EDGES, EdgeColumns, Relation, Ties
from findwell.relations.align import align, in_order
from findwell.relations.preflight import UnmetRun, missing_error, no_shared_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.measure import Measure
    from findwell.core.policy import Policy
    from findwell.core.relation import Edges
    from findwell.relations.align import Aligned
    from findwell.relations.facts import ChunkFacts, FactReader
    from findwell.relations.match.matcher import BoundMatcher

SAMPLE = 1000  # rows that are looked at to explain a run that does not fit its gold
KEPT_ROWS = 1_000_000  # rows of lists that are kept at most
SCORES_0, EXCLUDED = "scores|score 0", "is|are excluded from the means"
TEXT_LETTERS = 20_000  # characters of a text that are kept


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
        if not len(self.asked):
            return np.sort(self.query)  # each stands once
        return np.union1d(self.query, self.asked)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The relation of a run, what is worth knowing, and the lists as far as they are kept."""

    relation: Relation
    findings: tuple[Finding, ...]
    listed: pl.DataFrame | None = None  # query, rank, doc, and score and text where known
    ties: Ties | None = None  # those among which something was hit
    unmet: UnmetRun | None = None  # where no item was met at all
    documents: int = 0  # rows of the run, those of queries that the gold does not have included


def check_gold(gold: Gold, policy: Policy, measures: Sequence[Measure]) -> list[Finding]:
    """Look at the gold alone, at the relevance levels that measures ask for."""
    grade = gold.item_grade
    if policy.grades == "integer" and (grade != np.round(grade)).any():
        raise AlignError(
            f"the grade {grade[grade != np.round(grade)][0]:g} is not an integer",
            where="gold",
            fix="trec_eval knows integer grades only; findwell's own dialect takes any number",
        )
    if policy.blank == "error" and gold.flaws:
        query, flaw = next(iter(gold.flaws.items()))
        raise InputError(
            f"in the gold of query {query!r} {flaw}",
            where="gold",
            fix="compare texts instead of ids: --by containment, rouge or exact, "
            "or --by spans with a corpus"
            if flaw == TEXT_ITEM
            else "remove the empty entry, or list the documents that satisfy it",
        )
    twice = next((f for f in gold.findings if f.kind == FindingKind.GOLD_DUPLICATE), None)
    if policy.duplicates == "error" and twice is not None:
        raise AlignError(
            f"a document is judged twice for one query: {twice.examples[0]}",
            where="gold",
            fix="remove the repetition, or use findwell's own dialect, which counts it once",
        )
    levels = {measure: measure.level() for measure in measures if measure.needs_relevant}
    require_relevant(float(grade.max()) if len(grade) else None, policy, levels)
    empty = np.zeros(gold.n, dtype=bool)
    first, some = gold.item_offset[:-1], np.diff(gold.item_offset) > 0
    for level in set(levels.values()):
        best = np.full(len(empty), -np.inf)
        best[some] = grade[first[some]]  # the highest grade comes first
        empty |= best < level
    if not empty.any():
        return []
    meaning = SCORES_0 if policy.no_relevant == "zero" else EXCLUDED
    looked = np.zeros(len(empty), dtype=bool)  # people judged documents of the query
    looked[some] = grade[first[some]] >= 0
    if policy.no_relevant != "zero" and (empty & looked).any():
        meaning += ". Where documents were judged, measures that need no more than the list "
        meaning += "(P, success, RR) score 0"
    return finding_about(
        "no-relevant-item",
        gold.names_at(empty),
        f"# query|queries has|have no relevant item and {meaning}.",
        "label documents for them, or report unanswerable queries as a slice",
    )


def require_relevant(
    highest: float | None, policy: Policy, levels: Mapping[Measure, float]
) -> None:
    """Refuse gold labels whose highest grade is too low for a measure; None: there is no item."""
    strict = policy.no_relevant == "undefined" and policy.nothing == "zero"
    for name, level in levels.items():
        if strict and (highest is None or highest < level) and not is_part():
            why = "it has no item" if highest is None else f"the highest grade is {highest:g}"
            raise AlignError(
                f"the gold has no relevant item for {name}: {why}",
                where="gold",
                fix="relevant means a grade of at least 1, or of --rel; check the grade column",
            )


def draw_batch(
    batch: Run, bound: BoundMatcher, policy: Policy, keep: int = 0, facts: FactReader | None = None
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
    seen = aligned if bound.depth is None else aligned.first(bound.depth)
    first = np.flatnonzero(np.diff(seen.query, prepend=-1))  # rows of a query stand together
    return DrawnBatch(
        query=seen.query[first],
        retrieved=np.diff(first, append=len(seen.query)),
        edges=edges,
        chunks=None if edges.sizes is None else (seen.query, seen.rank),
        asked=aligned.asked,
        blank=aligned.blank,
        ties=None if aligned.ties is None else aligned.ties.that_matter(edges),
        findings=(*found, *aligned.findings),
        documents=documents,
        cut=len(seen.query) < len(aligned.query),
        listed=top_of(aligned, keep) if keep else None,
        facts=None if facts is None else facts.read(seen, lacking, documents),
    )


def join(run: RunStream, drawn: Iterable[DrawnBatch], bound: BoundMatcher, policy: Policy) -> Drawn:
    """Make the relation of all batches of a run, which is read again only where nothing fits.

    The batches may come one by one, as they are drawn: of the edges there is never a second copy.
    """
    gold = bound.gold
    asked, blank, seen = np.zeros((3, gold.n), dtype=bool)
    parts: list[DrawnBatch] = []
    columns: EdgeColumns | None = None
    for each in drawn:
        asked[each.asked] = True
        blank[each.blank] = True
        seen[each.query] = seen[each.asked] = True
        if bound.finds_items:
            parts.append(each)
        else:  # the columns take over its edges
            columns = columns or EdgeColumns()
            columns.append(each.edges)
            parts.append(replace(each, edges=replace(NO_EDGES, sizes=each.edges.sizes)))
    found = (each for part in parts for each in part.findings)
    findings = [*run.findings, *in_order(found)]  # however the run was cut
    documents = sum(part.documents for part in parts)
    findings = bound.check_rows(findings, documents, run.name)
    if parts and not seen.any() and not is_part():
        raise no_shared_query(_first_rows(run)["query"], gold.queries["query"], run.name)
    if not seen.all():
        findings += missing_queries(seen, gold, run.name, policy)
    if asked.any():
        findings += nothing_retrieved(asked, gold, policy)
    if bound.finds_items and policy.missing != "skip" and not seen.all():
        # queries that the run lacks have items, though nothing covers them
        lacking = gold.queries.select("query", doc=pl.lit(None, pl.String)).filter(~seen)
        parts.append(draw_batch(Run(run.name, lacking, "listed"), bound, policy))
    listed = [part.listed for part in parts if part.listed is not None]
    ties = [part.ties for part in parts if part.ties is not None]
    known = [part.facts for part in parts if part.facts is not None]
    facts = None
    if known:
        from findwell.relations.facts import join_facts  # noqa: PLC0415 - few measures ask for it

        facts = join_facts(known, run.name)
    relation = _relation(parts, columns or EdgeColumns(), blank, bound, policy, facts=facts)
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
    return Drawn(
        relation=relation.select(seen) if skipping else relation,
        findings=merge_findings(findings) if findings else (),
        listed=pl.concat(listed, how="diagonal").head(KEPT_ROWS) if listed else None,
        ties=Ties.joined(ties, seen if skipping else None),
        unmet=unmet,
        documents=documents,
    )


def missing_queries(seen: Bools, gold: Gold, run: str, policy: Policy) -> list[Finding]:
    """Look at the queries of the gold for which the run has no row."""
    missing = gold.names_at(~seen)
    if len(missing) and policy.missing == "error":
        raise missing_error(len(missing), missing[0], run)
    meaning = "is|are left out" if policy.missing == "skip" else SCORES_0
    return finding_about(
        "missing-query",
        missing,
        f"# query|queries of the gold has|have nothing in the run and {meaning}.",
        "run the retriever on every query of the gold",
    )


def nothing_retrieved(asked: Bools, gold: Gold, policy: Policy) -> list[Finding]:
    """Look at the queries that the run answers with an empty list."""
    meaning = SCORES_0 if policy.nothing == "zero" else EXCLUDED
    return finding_about(
        "retrieved-nothing",
        gold.names_at(asked),
        f"# query|queries has|have no retrieved document and {meaning}.",
        "find out why the retriever came back with nothing",
    )


def _first_rows(run: RunStream) -> pl.DataFrame:
    """Return the first rows of a run, which do not depend on how it is cut into batches."""
    first = pl.DataFrame()
    # all of it is read: what reading has noted is then whole, too
    for rows in run.batches() if run.whole is None else [run.whole]:
        if first.height < SAMPLE:
            first = pl.concat([first, compact(rows.head(SAMPLE - first.height))], how="diagonal")
    return first


def _relation(
    parts: list[DrawnBatch],
    columns: EdgeColumns,
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
        cut = any(part.cut for part in parts)
        member_item, docs = gold.member_item, as_given(gold, "member_doc")
        if gold.member_weight is not None:
            supporting = np.flatnonzero(gold.member_weight)
            member_item, docs = member_item[supporting], later(lambda: gold.member_doc[supporting])
        return Relation(
            queries=gold.queries["query"]
            if gold.names is None
            else later(lambda: gold.queries["query"], gold.names),
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
            judged_to=bound.depth if cut else None,
            failed_verdicts=failed if failures else None,
            chunk_facts=facts,
        )

    strict = version([part.edges for part in parts])
    if not failures:
        return strict
    return changed(strict, lenient=version([part.edges.lenient or part.edges for part in parts]))


def top_of(aligned: Aligned, keep: int) -> pl.DataFrame:
    """Return the first documents of each list: query, rank, doc, score and text where known."""
    first = aligned.rank <= keep
    doc = pl.col("raw" if "raw" in aligned.rows.columns else "doc")
    rows = aligned.rows.with_columns(rank=pl.Series(aligned.rank), doc=doc).filter(first)
    wanted = [name for name in ("query", "rank", "doc", "score", "text") if name in rows.columns]
    return compact(
        rows.select(wanted).with_columns(
            pl.col(name).str.head(TEXT_LETTERS) for name in wanted if name == "text"
        )
    )


def _undefined_reasons(gold: Gold, depth: Ints, blank: Bools, policy: Policy) -> dict[int, str]:
    """Say which queries have no value, whatever the measure, and why."""
    why: dict[int, str] = {}
    if policy.nothing == "undefined":
        why |= dict.fromkeys(np.flatnonzero(depth == 0).tolist(), "nothing was retrieved")
        why |= dict.fromkeys(np.flatnonzero(np.diff(gold.item_offset) == 0).tolist(), "no gold")
    why |= dict.fromkeys(np.flatnonzero(blank).tolist(), "a retrieved id is blank")
    flaws = {gold.query_numbers[name]: f"in the gold {flaw}" for name, flaw in gold.flaws.items()}
    return why | flaws


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
