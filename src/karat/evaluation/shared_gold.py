"""One gold for several runs whose records carry it: the same for the same queries."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from karat.core.data import FACTS, Gold
from karat.core.timing import TIMED
from karat.errors import AlignError
from karat.findings import merge_findings
from karat.read.records import join_about

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# what must be the same, and how the error calls it
SAME = {"gold": "gold", "question": "question", "reference": "reference answer"}


def share_gold(golds: Mapping[str, Gold]) -> Gold:
    """Return the gold of all runs, by name; a query of which they say different things is an error.

    A query that only some of them have is held against all. How long a query took is left to the
    runs, since each has its own time.
    """
    first, *others = golds
    shared = golds[first]
    for name in others:
        _check_names(shared, golds[name], first, name)
        _check_same(shared, golds[name], first, name)
        shared = replace(_joined(shared, golds[name]), named_by=shared.named_by)
    findings = dict.fromkeys(chain.from_iterable(gold.findings for gold in golds.values()))
    queries = shared.queries.drop(TIMED, strict=False)
    built = Gold.build(
        shared.rows(), queries=queries, findings=merge_findings(findings), flaws=shared.flaws
    )
    carries = frozenset(chain.from_iterable(gold.carries for gold in golds.values()))
    return replace(built, named_by=golds[first].named_by, carries=carries)


def _check_names(shared: Gold, gold: Gold, first: str, name: str) -> None:
    if gold.named_by != shared.named_by:
        raise AlignError(
            f"its records are known by their {gold.named_by}, those of {first} by their "
            f"{shared.named_by}",
            where=f"run {name}",
            fix="give every record the id of its query, or one gold for all (--gold, gold=)",
        )


def _check_same(shared: Gold, gold: Gold, first: str, name: str) -> None:
    both = _contents(shared).join(_contents(gold), on="query", suffix="_other")
    for column, what in SAME.items():
        other = both.filter(pl.col(column) != pl.col(f"{column}_other"))["query"]
        if not len(other):
            continue
        count = "1 query has" if len(other) == 1 else f"{len(other)} queries have"
        raise AlignError(
            f"{count} another {what} than in {first}, for example {other[0]!r}",
            where=f"run {name}",
            fix="make the records agree, or give one gold for all (--gold, gold=)",
        )


def _contents(gold: Gold) -> pl.DataFrame:
    """Return a row a query with all that is to be the same, as texts; what is not said is null."""
    rows = gold.rows()
    said = ("doc", *(name for name in FACTS if name in rows.columns))
    member = pl.concat_str(pl.col(said).cast(pl.String).fill_null(""), separator="\x1f")
    items = (
        rows.select("query", "grade", item=pl.Series(gold.member_item), member=member)
        .group_by("query", "item")
        .agg(pl.col("grade").first(), pl.col("member").sort().str.join("\x1e"))
        .with_columns(item=pl.concat_str("member", "grade", separator="\x1e"))
        .group_by("query")
        .agg(gold=pl.col("item").sort().str.join("\x1d"))
    )
    about = [
        pl.col(name).cast(pl.String) if name in gold.queries.columns else pl.lit(None, pl.String)
        for name in ("question", "reference")
    ]
    named = zip(("question", "reference"), about, strict=True)
    queries = gold.queries.select("query", **dict(named))
    return queries.join(items, on="query", how="left").with_columns(pl.col("gold").fill_null(""))


def _joined(one: Gold, other: Gold) -> Gold:
    """Add the queries that only the other has, and what only it says about the common ones."""
    new = ~other.queries["query"].is_in(one.queries["query"].implode())
    more = ["query", *(name for name in other.queries.columns if name not in one.queries.columns)]
    known = one.queries.join(other.queries.select(more), "query", "left", maintain_order="left")
    rows = other.rows()
    return Gold.build(
        pl.concat([one.rows(), *_of(rows, other.queries["query"].filter(new))], how="diagonal"),
        queries=join_about([known, other.queries.filter(new)]),
        flaws={**other.flaws, **one.flaws},
    )


def _of(rows: pl.DataFrame, queries: pl.Series) -> Iterator[pl.DataFrame]:
    if len(queries):
        yield rows.filter(pl.col("query").is_in(queries.implode()))
