"""From a run, batch by batch, to its relation: memory holds one batch and what was hit.

A run whose rows are grouped by query streams through once. If a query turns up again in a later
batch, the run is first spread over temporary files by query, and each file is then one batch.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.align import align, missing_queries, no_shared_query
from karat.data import Finding, Gold, Run, RunStream, merge_findings
from karat.errors import InputError, SaveError
from karat.match.ids import Edges, IdMatcher, normalise_run
from karat.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.align import Policy
    from karat.match.ids import Normaliser

SPILL_FILES = 32  # how finely a scattered run is spread


class _ScatteredError(Exception):
    """The rows of a query do not stand together."""


def relate(
    stream: RunStream, gold: Gold, policy: Policy, ids: Normaliser = "identity"
) -> tuple[Relation, tuple[Finding, ...]]:
    """Draw the relation of a run and a gold (whose ids are normalised already), with findings."""
    try:
        return _relate(stream, _whole_queries(stream.batches()), gold, policy, ids)
    except _ScatteredError:
        with tempfile.TemporaryDirectory(prefix="karat-") as folder:
            batches = _spread(stream.batches(), Path(folder))
            return _relate(stream, batches, gold, policy, ids)


def _relate(
    stream: RunStream,
    batches: Iterator[pl.DataFrame],
    gold: Gold,
    policy: Policy,
    ids: Normaliser,
) -> tuple[Relation, tuple[Finding, ...]]:
    matcher = IdMatcher(gold)
    depth = np.zeros(gold.queries.height, dtype=np.int64)
    parts: list[Edges] = []
    findings = list(stream.findings)
    some_queries = pl.Series(dtype=pl.String)
    for rows in batches:
        if not len(some_queries):
            some_queries = rows["query"].head(1000).unique(maintain_order=True)
        batch = normalise_run(Run(stream.name, rows, stream.ordered), ids)
        aligned = align(batch, gold, policy)
        depth += np.bincount(aligned.query, minlength=len(depth))
        parts.append(matcher.match(aligned))
        findings += aligned.findings
    if not len(some_queries):
        raise InputError("nothing was retrieved for any query", where=f"run {stream.name}")
    if not depth.any():
        raise no_shared_query(some_queries, gold, stream.name)
    findings += missing_queries(depth > 0, gold, stream.name, policy)
    relation = _join(gold, depth, parts)
    if policy.missing == "skip":
        relation = relation.select(depth > 0)
    return relation, merge_findings(findings)


def _join(
    gold: Gold, depth: np.ndarray[tuple[int], np.dtype[np.int64]], parts: list[Edges]
) -> Relation:
    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.concatenate([getattr(part, name) for part in parts])

    return Relation.build(
        gold,
        depth=depth,
        edges=(column("query"), column("rank"), column("item")),
        judged=(column("judged_query"), column("judged_rank")),
    )


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
