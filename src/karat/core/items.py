"""From judgements to items: repetitions dropped, groups numbered, the best grade first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.core.keys import all_different
from karat.errors import InputError
from karat.findings import EXAMPLES, Finding, name_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.core.data import Floats, Ints


def best_first(query: Ints, grade: Floats) -> Ints:
    """Return the order by query, then by grade, the highest first."""
    whole = grade.astype(np.int64)
    if not len(grade) or np.abs(grade).max() > 1000 or (whole != grade).any():
        return np.lexsort((-grade, query))
    return np.argsort(query * 2001 - whole, kind="stable")  # one key sorts faster than two


def check_grades(rows: pl.DataFrame) -> None:
    """Refuse a grade that is no finite number."""
    bad = rows.filter(~pl.col("grade").is_finite() | pl.col("grade").is_null())
    if bad.height:
        query, doc = bad.select("query", "doc").row(0)
        raise InputError(
            f"the grade of document {doc!r} for query {query!r} is not a finite number",
            where="gold",
            fix="give every judged document a number: 0 for not relevant, 1 or more for relevant",
        )


def drop_repeats(rows: pl.DataFrame, index: Ints) -> tuple[pl.DataFrame, Ints, list[Finding]]:
    """Keep one row of a document that is listed again in the same query and group.

    The column times, where there is one, says how often a document without a group was listed.
    """
    if all_different(index, rows["doc"]):
        return rows, index, []
    told_by = ("query", "doc", "group", "text", "start", "end")
    subset = [name for name in told_by if name in rows.columns]
    numbered = rows.with_columns(__row=pl.int_range(pl.len()))
    best = numbered.sort("grade", descending=True, maintain_order=True)
    best = best.with_columns(times=times_listed(best, subset))
    kept = best.unique(subset=subset, keep="first").sort("__row")
    dropped = numbered.join(kept, on="__row", how="anti")
    clash = dropped.join(kept, on=subset, nulls_equal=True).filter(
        pl.col("grade") != pl.col("grade_right")
    )
    found = []
    if dropped.height:
        found.append(
            Finding(
                "gold-duplicate",
                dropped.height,
                name_rows(dropped),
                "the gold lists a document of a query more than once; it counts once",
                "remove the repeated judgements",
            )
        )
    if clash.height:
        found.append(
            Finding(
                "gold-conflict",
                clash.height,
                name_rows(clash),
                "the gold grades a document of a query in two ways; the higher grade counts",
                "keep one judgement a document",
            )
        )
    return kept.drop("__row"), index[kept["__row"].to_numpy()], found


def times_listed(rows: pl.DataFrame, subset: Sequence[str]) -> pl.Expr:
    """Return how often the rows that agree in these columns were listed, all together."""
    once = pl.lit(1, pl.Int64)
    times = pl.col("times").sum() if "times" in rows.columns else pl.len().cast(pl.Int64)
    alone = pl.col("group").is_null() if "group" in rows.columns else pl.lit(value=True)
    return pl.when(alone).then(times.over(subset)).otherwise(once)


def number_items(rows: pl.DataFrame, index: Ints) -> tuple[Ints | None, list[Finding]]:
    """Number the items: a row without a group is an item of its own; None if all of them are."""
    if "group" not in rows.columns or rows["group"].null_count() == rows.height:
        return None, []
    keyed = pl.DataFrame(
        {
            "query": index,
            "group": rows["group"],
            "alone": pl.Series(np.arange(rows.height)).set(rows["group"].is_not_null(), None),
            "grade": rows["grade"],
        }
    )
    keys = ["query", "group", "alone"]
    items = (
        keyed.group_by(keys, maintain_order=True)
        .agg(mixed=pl.col("grade").min() != pl.col("grade").max())
        .with_row_index("item")
    )
    item = keyed.join(items, on=keys, nulls_equal=True, maintain_order="left")["item"]
    mixed = int(items["mixed"].sum())
    found = []
    if mixed:
        rows_of = items.filter("mixed").head(EXAMPLES)
        found.append(
            Finding(
                "mixed-grades",
                mixed,
                tuple(str(group) for group in rows_of["group"]),
                "documents of one group carry different grades; the highest is the group's",
                "give the documents of a group the same grade",
            )
        )
    return item.to_numpy().astype(np.int64), found
