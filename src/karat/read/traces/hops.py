"""Calls of one trace: which of them belong together, and in which order they were made."""

from __future__ import annotations

import polars as pl

from karat.read.traces.schema import RETRIEVER


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
    retrievers = frame.filter(pl.col("kind") == RETRIEVER)
    if retrievers.height < 2 or retrievers["parent"].null_count() == retrievers.height:
        return frame
    return without_inner(frame.lazy()).collect()


def without_inner(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Leave out what `outermost` leaves out, of a table that is not read yet."""
    retrievers = calls.filter(pl.col("kind") == RETRIEVER).select("trace", "span", "parent")
    inside = retrievers.filter(pl.col("parent") != pl.col("span"))
    inner = inside.join(
        retrievers.select("trace", parent="span"), on=["trace", "parent"], how="semi"
    )
    return calls.join(inner, on=["trace", "span"], how="anti", maintain_order="left")
