"""Calls of one trace: which of them belong together, and in which order they were made."""

from __future__ import annotations

import polars as pl

from findwell.io.read.traces.schema import INNER, RETRIEVER, TRACE_SCHEMA


def number_hops(frame: pl.DataFrame) -> pl.DataFrame:
    """Count the retriever calls of each trace by time: 0, 1, …; the rows keep their order.

    A reranker has the hop of the last retriever before it that stands beside it, which is inside
    of the same span; where there is none, that of the last one before it.
    """
    if not frame.height:
        return frame
    if frame["trace"].n_unique() == frame.height:  # one call each, as of most applications
        return frame.with_columns(hop=pl.lit(0, pl.UInt32))
    return with_hops(frame.lazy()).collect()


def with_hops(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Number the hops as `number_hops` does, in a table that is not read yet."""
    first = pl.col("kind") == RETRIEVER
    order = ["time", first.not_(), "span"]
    hop = first.cast(pl.Int64).cum_sum().over("trace", order_by=order) - 1
    beside = pl.when(first).then("hop").forward_fill().over("trace", "parent", order_by=order)
    # in two steps: inside of the second window the first would see only the calls beside each other
    return calls.with_columns(hop=hop).with_columns(
        hop=pl.coalesce(beside, "hop").clip(lower_bound=0).cast(pl.UInt32)
    )


def outermost(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out retriever calls inside another one, whose documents are those that counted.

    Retrievers of LlamaIndex call themselves, and those that fuse or filter call others. A span
    may arrive before the one that it is inside of, so stores ask this when they are read.
    """
    return without_inner(frame.lazy()).collect() if _may_be_inside(frame) else frame


def with_inner_marked(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep of each retriever inside another one only its place, for those that are inside of it.

    These may arrive in another batch: of A around B around C, C alone does not tell that B is
    inside of A.
    """
    if not _may_be_inside(frame):
        return frame
    inner = _inner(frame.lazy()).collect().with_columns(pl.lit(True).alias("\0inner"))
    marked = frame.join(inner, on=["trace", "span"], how="left", maintain_order="left")
    is_inner = pl.col("\0inner").is_not_null()
    place = ("trace", "span", "parent", "time", "convention")
    rest = (name for name in TRACE_SCHEMA if name not in (*place, "kind", "hop"))
    return marked.with_columns(
        pl.when(is_inner).then(pl.lit(INNER)).otherwise("kind").alias("kind"),
        *(pl.when(~is_inner).then(name).alias(name) for name in rest),
    ).drop("\0inner")


def calls_among() -> pl.Expr:
    """Count the rows that are calls."""
    return (pl.col("kind") != INNER).sum()


def _may_be_inside(frame: pl.DataFrame) -> bool:
    retrievers = frame.filter(pl.col("kind").is_in([RETRIEVER, INNER]))
    if (retrievers["kind"] == INNER).any():
        return True
    return retrievers.height > 1 and retrievers["parent"].null_count() < retrievers.height


def _inner(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Return trace and span of the retrievers that are inside of another one."""
    retrievers = calls.filter(pl.col("kind").is_in([RETRIEVER, INNER]))
    around = retrievers.select("trace", "span", pl.lit(True).alias("around"))
    placed = retrievers.select("trace", "span", "parent", "kind").join(
        around, left_on=["trace", "parent"], right_on=["trace", "span"], how="left"
    )
    inside = pl.col("around").is_not_null() & (pl.col("parent") != pl.col("span"))
    return placed.filter(inside | (pl.col("kind") == INNER)).select("trace", "span").unique()


def without_inner(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Leave out what `outermost` leaves out, of a table that is not read yet."""
    return calls.join(_inner(calls), on=["trace", "span"], how="anti", maintain_order="left")
