"""Rank-biased overlap of many pairs of rankings at once; `agreement.rbo` is that of one pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

CELLS = 1 << 21  # of the table of overlaps by depth that is worked on at once


def rbo_of_lists(first: pl.Series, second: pl.Series, p: float = 0.9) -> Floats:
    """Return the rank-biased overlap of each list of one column with that of the other.

    It is that of `findwell.statistics.agreement.rbo`: extrapolated, a repeated item counts at its
    first rank. NaN where both are empty, or one is null.

    >>> rbo_of_lists(pl.Series([["a", "b"], []]), pl.Series([["a", "b"], ["c"]])).tolist()
    [1.0, 0.0]
    """
    one, other = _ranks(first), _ranks(second)
    lengths = [_lengths(each, len(first)) for each in (one, other)]
    shared = one.join(other, on=["pair", "item"]).select(
        "pair", depth=pl.max_horizontal("rank", "rank_right")
    )
    short, long = np.minimum(*lengths), np.maximum(*lengths)
    found = np.full(len(first), np.nan)
    deepest = max(int(long.max(initial=1)), 1)
    step = max(1, CELLS // deepest)
    pairs, depths = (shared[name].to_numpy() for name in ("pair", "depth"))
    order = np.argsort(pairs, kind="stable")
    pairs, depths = pairs[order], depths[order]
    for start in range(0, len(first), step):
        rows = slice(start, start + step)
        inside = slice(*np.searchsorted(pairs, (start, start + step)))
        table = np.zeros((len(short[rows]), deepest))
        np.add.at(table, (pairs[inside] - start, depths[inside]), 1.0)
        found[rows] = _extrapolated(np.cumsum(table, axis=1), short[rows], long[rows], p)
    unknown = (long == 0) | first.is_null().to_numpy() | second.is_null().to_numpy()
    found[unknown] = np.nan
    return found


def _ranks(lists: pl.Series) -> pl.DataFrame:
    """Return pair, item and rank (from 0) of each list, repeated items once."""
    table = pl.DataFrame({"pair": np.arange(len(lists)), "item": lists})
    listed = table.explode("item", empty_as_null=False).drop_nulls("item")
    once = listed.unique(["pair", "item"], keep="first", maintain_order=True)
    return once.with_columns(rank=pl.int_range(pl.len()).over("pair"))


def _lengths(ranks: pl.DataFrame, pairs: int) -> Ints:
    return np.bincount(ranks["pair"].to_numpy(), minlength=pairs).astype(np.int64)


def _extrapolated(overlap: Floats, short: Ints, long: Ints, p: float) -> Floats:
    """Return the overlaps by pair (rows) and depth (columns) as one number each."""
    depth = np.arange(1, overlap.shape[1] + 1)
    at = np.arange(len(overlap))
    seen = np.maximum(short, 1)
    last, whole = overlap[at, seen - 1], overlap[at, np.maximum(long, 1) - 1]
    agreement = overlap / depth
    # below its end, the short ranking is taken to agree as it did so far
    beyond = np.maximum(depth - short[:, None], 0) / (seen[:, None] * depth)
    agreement += last[:, None] * beyond
    weight = np.where(depth <= long[:, None], p**depth, 0.0)
    tail = (whole - last) / np.maximum(long, 1) + last / seen
    total = (1 - p) / p * (agreement * weight).sum(axis=1) + tail * p**long
    return np.where(short == 0, 0.0, total)
