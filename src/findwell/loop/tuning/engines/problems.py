"""What is worth knowing about runs before an engine fuses them, and what cannot be fused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import AlignError
from findwell.core.findings import Finding, finding_about, finding_about_rows
from findwell.loop.tuning.lists import ScoreLists

if TYPE_CHECKING:
    from findwell.core.data import Bools
    from findwell.loop.tuning.engines.engine import Engine, Setting
    from findwell.loop.tuning.pool import Pool

POSITIVE_MAX = ("minmax", "min_max")  # normalisers that look for a best score above 0


def refuse_strangers(pool: Pool) -> None:
    """Refuse runs of which no two share a query: there is nothing to fuse."""
    if len(pool.runs) > 1 and not (_answered(pool).sum(axis=0) > 1).any():
        raise AlignError(
            "the runs share no query",
            where=" and ".join(dict.fromkeys(pool.runs)),
            fix="give runs of the same queries, under the same ids",
        )


def fusion_findings(engine: Engine, pool: Pool, setting: Setting) -> list[Finding]:
    """Return what the engine makes of these runs that a user may not expect."""
    inside = engine.inside(pool, setting)
    return [
        *_unshared(pool),
        *_cut(engine, pool, setting, inside),
        *_dropped(engine, pool, setting, inside),
        *_scores(engine, pool, setting, inside),
    ]


def _answered(pool: Pool) -> Bools:
    """Return runs × queries: whether the run has any document for the query."""
    return np.array(
        [np.bincount(pool.query[rank > 0], minlength=len(pool.queries)) > 0 for rank in pool.rank]
    )


def _unshared(pool: Pool) -> list[Finding]:
    answered = _answered(pool).sum(axis=0)
    some = (answered > 0) & (answered < len(pool.runs))
    return finding_about(
        "unshared-query",
        pool.queries.filter(some).to_list(),
        "query that not every run answers: fused from the runs that do",
        "ask every retriever every question",
    )


def _cut(engine: Engine, pool: Pool, setting: Setting, inside: Bools) -> list[Finding]:
    return finding_about_rows(
        "below-window",
        pool.named(((pool.rank > 0) & ~inside).sum(axis=0) > 0),
        f"document below the window of {setting.window}, which {engine.name} does not read",
        "choose how much of each run it reads: --window (window=)",
    )


def _dropped(engine: Engine, pool: Pool, setting: Setting, inside: Bools) -> list[Finding]:
    if not engine.drops(setting):
        return []
    lists = inside.sum(axis=0)
    dropped = (lists > 0) & (lists < len(inside))
    return finding_about_rows(
        "dropped-document",
        pool.named(dropped),
        f"document that is not in every list: {engine.name} drops it",
        "give the rank that stands for a missing one: --fill (fill=)",
    )


def _scores(engine: Engine, pool: Pool, setting: Setting, inside: Bools) -> list[Finding]:
    if not engine.normalisers:
        return []
    names = setting.normaliser or engine.normalisers[:1] * len(pool.runs)
    queries = pool.queries.gather(np.unique(pool.query))
    found: list[Finding] = []
    for run, name, score in zip(
        pool.runs, names, np.where(inside, pool.score, np.nan), strict=True
    ):
        lists = ScoreLists(score, pool.query)
        if name != "none":
            found += finding_about(
                "equal-scores",
                queries.filter(lists.low == lists.high),
                f"list of equal scores: `findwell fuse --list --engine {engine.name}` says what "
                "becomes of it",
                "fuse by rank, or give scores that differ",
                run,
            )
        if name in POSITIVE_MAX:
            found += finding_about(
                "negative-scores",
                queries.filter((lists.high < 0) & np.isfinite(lists.high)),
                f"list of negative scores: {engine.name} scales it as if its best score were 0",
                "give scores from 0, as the engine itself does",
                run,
            )
    return found
