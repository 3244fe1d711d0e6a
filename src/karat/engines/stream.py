"""From a run, batch by batch, to its relation: memory holds one batch and what was hit.

A run whose rows are grouped by query streams through once. If a query turns up again in a later
batch, the run is first spread over temporary files by query, and each file is then one batch.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from karat.align import align
from karat.data import Gold, Run, RunStream
from karat.engines.ahead import ReadAhead
from karat.errors import SaveError
from karat.findings import Finding, merge_findings
from karat.match.ids import Edges, IdMatcher, normalise_run
from karat.preflight import (
    missing_queries,
    no_shared_document,
    no_shared_query,
    nothing_retrieved,
)
from karat.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.align import Policy
    from karat.data import Bools, Ints
    from karat.match.ids import Normaliser

SPILL_FILES = 32  # how finely a scattered run is spread
SAMPLE = 1000  # rows kept to explain a run that does not fit its gold


class _ScatteredError(Exception):
    """The rows of a query do not stand together."""


def relate(
    stream: RunStream,
    gold: Gold,
    policy: Policy,
    ids: Normaliser = "identity",
    *,
    reading: ReadAhead | None = None,
) -> tuple[Relation, tuple[Finding, ...]]:
    """Draw the relation of a run and a gold (whose ids are normalised already), with findings.

    `reading` is the run where somebody has begun to read it already.
    """
    batches = iter(reading or ReadAhead(stream.batches()))
    try:
        return _relate(stream, _whole_queries(batches), gold, policy, ids)
    except _ScatteredError:
        if stream.whole is not None:
            return _relate(stream, iter((stream.whole,)), gold, policy, ids)
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
    asked, blank = np.zeros((2, len(depth)), dtype=bool)
    parts: list[Edges] = []
    findings = list(stream.findings)
    sample: pl.DataFrame | None = None
    for rows in batches:
        batch = normalise_run(Run(stream.name, rows, stream.order), ids)
        sample = batch.rows.head(SAMPLE) if sample is None else sample
        aligned = align(batch, gold, policy)
        depth += np.bincount(aligned.query, minlength=len(depth))
        asked[aligned.asked] = True
        blank[aligned.blank] = True
        parts.append(matcher.match(aligned))
        findings += aligned.findings
    seen = asked | (depth > 0)
    if sample is not None and not seen.any():
        raise no_shared_query(sample["query"], gold, stream.name)
    findings += missing_queries(seen, gold, stream.name, policy)
    findings += nothing_retrieved(asked, gold, policy)
    relation = _join(gold, depth, parts, _void(gold, depth, blank, policy))
    if depth.any() and not relation.unit_judged.any() and sample is not None:
        findings += no_shared_document(sample["doc"].drop_nulls(), gold)
    if policy.missing == "skip":
        relation = relation.select(seen)
    return relation, merge_findings(findings)


def _void(gold: Gold, depth: Ints, blank: Bools, policy: Policy) -> pl.Series:
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


def _join(gold: Gold, depth: Ints, parts: list[Edges], void: pl.Series) -> Relation:
    def column(name: str, kind: type = np.int64) -> Any:  # noqa: ANN401
        columns = [getattr(part, name) for part in parts]
        return np.concatenate(columns) if columns else np.zeros(0, dtype=kind)

    return Relation.build(
        gold,
        depth=depth,
        edges=(column("query"), column("rank"), column("item")),
        units=(
            column("unit_query"),
            column("unit_rank"),
            column("unit_judged", bool),
            column("unit_repeat"),
        ),
        void=void,
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
