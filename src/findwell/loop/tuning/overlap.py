"""Whether runs name the same documents: those that do not cannot be fused."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.errors import AlignError
from findwell.core.findings import Finding, FindingKind, finding_about, shorten
from findwell.relations.preflight import DOCUMENTS, hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Run
    from findwell.loop.tuning.pool import Pool

# Places that two lists of a query have in common are as many as the shorter list is long. Keyword
# and vector search share about a third of them.
ENOUGH = 100  # common places from which on an implausible share is refused
IMPLAUSIBLE = 0.01  # share of common places
LOW = 0.1  # share of common places below which there is a finding
WORTH_SAYING = 10  # common places from which on there is a finding
MAKE_EQUAL = (
    "give a document the same id in every run: let every retriever return it, and name the field "
    "that holds it with --id-from (id_from=)"
)


@dataclass(frozen=True, slots=True)
class SharedDocuments:
    """What two runs have in common."""

    runs: tuple[int, int]
    asked: int  # queries that both answer
    apart: pl.Series  # those for which they share no document
    places: int  # documents that they could share
    shared: int

    @property
    def implausible(self) -> bool:
        """Whether the two can hardly name documents in the same way."""
        return self.places >= ENOUGH and self.shared < IMPLAUSIBLE * self.places

    @property
    def low(self) -> bool:
        """Whether they share so little that it is worth knowing."""
        return self.places >= WORTH_SAYING and self.shared < LOW * self.places

    def __str__(self) -> str:
        return (
            f"{self.shared:,} of {self.places:,} possible documents, over {self.asked:,} queries "
            "that both answer"
        )


def check_overlap(pool: Pool, runs: Sequence[Run]) -> list[Finding]:
    """Refuse runs that name documents differently, and report those that share few.

    Two runs belong together if they share documents, or both share some with a third. Those of
    two groups that share nothing would be fused without a document ever gaining from both.
    """
    pairs = [_compare(pool, pair) for pair in combinations(range(len(runs)), 2)]
    together = {0}
    for _ in runs:
        for pair in pairs:
            if not pair.implausible and not together.isdisjoint(pair.runs):
                together.update(pair.runs)
    for pair in pairs:
        if len(together.intersection(pair.runs)) == 1:
            raise _refusal(pool, pair, runs)
    return [finding for pair in pairs if pair.low for finding in _finding(pair, runs)]


def _compare(pool: Pool, pair: tuple[int, int]) -> SharedDocuments:
    count = len(pool.queries)
    listed = pool.rank[list(pair)] > 0
    lengths = np.array([np.bincount(pool.query[each], minlength=count) for each in listed])
    shared = np.bincount(pool.query[listed.all(axis=0)], minlength=count)
    places = lengths.min(axis=0)
    return SharedDocuments(
        pair,
        int((places > 0).sum()),
        pool.queries.filter(pl.Series((places > 0) & (shared == 0))),
        int(places.sum()),
        int(shared.sum()),
    )


def _refusal(pool: Pool, pair: SharedDocuments, runs: Sequence[Run]) -> AlignError:
    one, other = (runs[number] for number in pair.runs)
    query = pl.Series(pool.queries == pair.apart[0]).arg_max()
    docs = [
        str(pool.doc.filter(pl.Series((pool.query == query) & (pool.rank[number] == 1)))[0])
        for number in pair.runs
    ]
    shown = " and ".join(
        f"{run.name} has {shorten(doc, 40)!r}" for run, doc in zip((one, other), docs, strict=True)
    )
    made = [
        run.name
        for run in (one, other)
        if any(found.kind == FindingKind.TEXT_AS_ID for found in run.findings)
    ]
    why = f"; the ids of {' and '.join(made)} were made from texts" if made else ""
    guess = hint(one.rows["doc"], other.rows["doc"], DOCUMENTS)
    fix = MAKE_EQUAL
    if guess is not None:
        fix = f"{guess[0].why} (then {guess[1]} would match): write them alike in both runs"
    share = "no document" if pair.shared == 0 else "almost no document"
    return AlignError(
        f"the runs share {share} ({pair}), so they probably name the same documents differently, "
        f"such as a hash of the text and a UUID: for query {pair.apart[0]!r} {shown}{why}",
        where=f"run {one.name} and run {other.name}",
        fix=f"{fix}; if the runs search different collections, --disjoint (disjoint=True) fuses "
        "them as they are",
    )


def _finding(pair: SharedDocuments, runs: Sequence[Run]) -> list[Finding]:
    one, other = (runs[number].name for number in pair.runs)
    return finding_about(
        "few-shared-documents",
        pair.apart,
        f"query for which {one} and {other} share no document; in all they share {pair}, which is "
        "less than retrievers of one collection usually do",
        f"check that both runs name documents in the same way; if they do not, {MAKE_EQUAL}",
    )
