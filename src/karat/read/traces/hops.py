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
    first = pl.col("kind") == RETRIEVER
    ranked = (
        frame.select("trace", "span", "parent", "time", first=first, row=pl.int_range(pl.len()))
        .sort("time", pl.col("first").not_(), "span")
        .with_columns(hop=(pl.col("first").cast(pl.Int64).cum_sum().over("trace") - 1))
    )
    beside = pl.when("first").then("hop").forward_fill().over("trace", "parent")
    hop = pl.coalesce(beside, "hop").clip(lower_bound=0).cast(pl.UInt32)
    return frame.with_columns(ranked.select("row", hop=hop).sort("row")["hop"])


def outermost(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out retriever calls inside another one, whose documents are those that counted.

    Retrievers of LlamaIndex call themselves, and those that fuse or filter call others. A span
    may arrive before the one that it is inside of, so stores ask this when they are read.
    """
    retrievers = frame.filter(pl.col("kind") == RETRIEVER).select("trace", parent="span")
    if retrievers.height < 2:
        return frame
    inner = frame.filter(pl.col("kind") == RETRIEVER, pl.col("parent") != pl.col("span"))
    inner = inner.select("trace", "span", "parent").join(retrievers, on=["trace", "parent"])
    if not inner.height:
        return frame
    return frame.join(inner, on=["trace", "span"], how="anti", maintain_order="left")
