"""From a run, batch by batch, to its relation: memory holds one batch and what was hit.

A run whose rows are grouped by query streams through once. If a query turns up again in a later
batch, the run is first spread over temporary files by query, and each file is then one batch.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.align.align import Ties, align
from karat.align.preflight import (
    missing_queries,
    no_shared_document,
    no_shared_query,
    nothing_retrieved,
)
from karat.core.data import Gold, Run, RunStream
from karat.core.keys import sort_rows
from karat.engines.prefetch import Prefetch
from karat.errors import SaveError
from karat.findings import Finding, merge_findings
from karat.progress import Progress, Report
from karat.relate.match.spans import require_places
from karat.relate.match.texts import require_texts
from karat.relate.pipeline import join_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.align.align import Aligned
    from karat.core.data import Bools, Ints
    from karat.core.policy import Policy
    from karat.core.relation import Relation
    from karat.relate.match.matcher import BoundMatcher, Edges


SPILL_FILES = 32  # how finely a scattered run is spread
SAMPLE = 1000  # rows kept to explain a run that does not fit its gold
KEPT = 1_000_000  # rows of lists that are remembered at most
TEXT = 20_000  # characters of a text that are remembered


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """A run against a gold: the relation, what is odd, and the lists as far as they are kept."""

    relation: Relation
    findings: tuple[Finding, ...]
    listed: pl.DataFrame | None = None  # query, rank, doc, and score and text where known
    ties: Ties | None = None  # those among which something was hit


class _ScatteredError(Exception):
    """The rows of a query do not stand together."""


def relate(
    stream: RunStream,
    bound: BoundMatcher,
    policy: Policy,
    *,
    reading: Prefetch | None = None,
    progress: Report | None = None,
    keep: int = 0,
) -> Related:
    """Draw the relation of a run and the gold of a bound, with findings.

    `reading` is the run where somebody has begun to read it already; `keep` says how many
    documents of each list are remembered, for reports.
    """
    if bound.blank_is_unit and policy.blank == "error":
        policy = replace(policy, blank="kept")
    batches = iter(reading or Prefetch(stream.batches()))
    try:
        return _relate(stream, _whole_queries(batches), bound, policy, progress, keep)
    except _ScatteredError:
        if stream.whole is not None:
            return _relate(stream, iter((stream.whole,)), bound, policy, progress, keep)
        with tempfile.TemporaryDirectory(prefix="karat-") as folder:
            batches = _spread(stream.batches(), Path(folder))
            return _relate(stream, batches, bound, policy, progress, keep)


def _relate(  # noqa: PLR0917
    stream: RunStream,
    batches: Iterator[pl.DataFrame],
    bound: BoundMatcher,
    policy: Policy,
    progress: Report | None,
    keep: int,
) -> Related:
    gold = bound.gold
    retrieved = np.zeros(gold.queries.height, dtype=np.int64)
    asked, blank = np.zeros((2, len(retrieved)), dtype=bool)
    parts: list[Edges] = []
    chunks: list[tuple[Ints, Ints]] = []  # where units are parts: query and rank of their chunks
    findings = list(stream.findings)
    sample: pl.DataFrame | None = None
    listed: list[pl.DataFrame] = []
    ties: list[Ties] = []
    documents = 0
    for given in batches:
        documents += given["doc"].count()
        rows, found = bound.rows(given)
        sample = rows.head(SAMPLE) if sample is None else sample
        aligned = align(
            Run(stream.name, rows, stream.order), gold, policy, by_id=not bound.blank_is_unit
        )
        retrieved += np.bincount(aligned.query, minlength=len(retrieved))
        asked[aligned.asked] = True
        blank[aligned.blank] = True
        parts.append(bound.draw(bound.units(aligned)))
        if parts[-1].sizes is not None:
            chunks.append((aligned.query, aligned.rank))
        elif aligned.ties is not None:
            ties.append(_hit(aligned.ties, parts[-1]))
        findings += (*found, *aligned.findings)
        if keep:
            listed.append(top_of(aligned, keep))
        if progress is not None:
            done = int(np.count_nonzero(asked | (retrieved > 0)))
            progress(Progress(done, len(retrieved)))
    findings = require_texts(findings, documents, stream.name)
    require_places(findings, documents, stream.name)
    seen = asked | (retrieved > 0)
    if sample is not None and not seen.any():
        raise no_shared_query(sample["query"], gold, stream.name)
    findings += missing_queries(seen, gold, stream.name, policy)
    findings += nothing_retrieved(asked, gold, policy)
    undefined_reason = _undefined_reasons(gold, retrieved, blank, policy)
    relation = join_parts(gold, retrieved, parts, chunks, undefined_reason)
    nothing_met = retrieved.any() and not relation.unit_judged.any()
    if nothing_met and sample is not None and not bound.blank_is_unit:
        findings += no_shared_document(sample["doc"].drop_nulls(), gold)
    tied = _all_ties(ties, seen if policy.missing == "skip" else None)
    if policy.missing == "skip":
        relation = relation.select(seen)
    kept = pl.concat(listed, how="diagonal").head(KEPT) if listed else None
    return Related(relation, merge_findings(findings), kept, tied)


def _hit(ties: Ties, edges: Edges) -> Ties:
    """Return the ties among which there is an edge: only there does the order matter."""
    at = ties.around(edges.query, edges.rank)
    return ties.filter(np.isin(np.arange(len(ties.query)), at))


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
    return rows.select(wanted).with_columns(
        pl.col(name).str.head(TEXT) for name in wanted if name == "text"
    )


def _undefined_reasons(gold: Gold, depth: Ints, blank: Bools, policy: Policy) -> pl.Series:
    """Say which queries have no value, whatever the measure, and why."""
    why: dict[int, str] = {}
    if policy.nothing == "undefined":
        why |= dict.fromkeys(np.flatnonzero(depth == 0).tolist(), "nothing was retrieved")
        without = np.flatnonzero(np.diff(gold.item_offset) == 0)
        why |= dict.fromkeys(without.tolist(), "no gold")
    why |= dict.fromkeys(np.flatnonzero(blank).tolist(), "a retrieved id is blank")
    why |= {gold.query_numbers[query]: f"in the gold {flaw}" for query, flaw in gold.flaws.items()}
    none = pl.repeat(None, len(depth), dtype=pl.String, eager=True)
    return none.scatter(list(why), list(why.values())) if why else none


def _whole_queries(batches: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Cut the batches anew so that no query is split; complain if one comes back later."""
    done: set[str] = set()
    rows = next(batches, None)
    while rows is not None:
        following = next(batches, None)
        if following is not None:
            if not rows.height:
                rows = following
                continue
            last = rows["query"] == rows["query"][-1]
            following = pl.concat([rows.filter(last), following])
            rows = rows.filter(~last)
        if done or following is not None:
            names = set(rows["query"].rle().struct.field("value"))
            if names & done:
                raise _ScatteredError
            done |= names
        if rows.height:
            yield rows
        rows = following


def _spread(batches: Iterator[pl.DataFrame], folder: Path) -> Iterator[pl.DataFrame]:
    """Write the rows into files by query, then read file by file."""
    try:
        for number, rows in enumerate(batches):
            part = (rows["query"].hash() % SPILL_FILES).alias("part")
            for (key,), piece in rows.with_columns(part).partition_by("part", as_dict=True).items():
                piece.drop("part").write_ipc(folder / f"{key:03}-{number:06}.arrow")
    except OSError as error:
        raise SaveError(
            f"no room to sort the run by query: {error.strerror}",
            where=str(folder),
            fix="sort the run by query, or set TMPDIR to a larger disk",
        ) from None
    for key in range(SPILL_FILES):
        pieces = sorted(folder.glob(f"{key:03}-*.arrow"))
        if pieces:
            yield pl.concat([pl.read_ipc(piece) for piece in pieces])
