"""Slices of queries: by a column about them, or by the hour, day, week or month of a time.

`topic` slices by the values of a column, `time:day` by the day (UTC) of the moments in one. The
column `time` may also be called `timestamp`, `start_time` or `started`.
"""

from __future__ import annotations

import numpy as np

from findwell.core.errors import InputError, choose, choose_column
from findwell.core.frames import pl
from findwell.core.timing import MOMENTS, moments

BUCKETS = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
TIME = "time"


def has_slices(queries: pl.DataFrame, name: str) -> bool:
    """Tell whether a table about queries can be sliced by a name."""
    return name in queries.columns or _of_time(queries, name) is not None


def slice_labels(queries: pl.DataFrame, name: str) -> pl.Series:
    """Return the slice of each query, as text; null where it is unknown.

    >>> about = pl.DataFrame({"query": ["a", "b"], "time": ["2026-05-03T23:00:00Z", None]})
    >>> slice_labels(about, "time:day").to_list(), slice_labels(about, "time:week").to_list()
    (['2026-05-03', None], ['2026-W18', None])
    """
    found = None if name in queries.columns else _of_time(queries, name)
    if found is None:
        if ":" in name and name not in queries.columns:
            before, _, unit = name.rpartition(":")
            if before == TIME or before in queries.columns:
                choose("bucket of time", unit, BUCKETS)
        return queries[choose_column(queries, name)].cast(pl.String)
    column, unit = found
    at = moments(queries[column], 0.0)
    if not np.isfinite(at).any() and queries[column].count():
        raise InputError(
            f"the column {column} holds no times: {queries[column].drop_nulls()[0]!r}",
            fix="write times as 2026-05-31T14:00:00Z, or in seconds since 1970",
        )
    times = pl.Series(name, at).fill_nan(None).cast(pl.Int64).cast(pl.Datetime("ms"))
    return times.dt.strftime(BUCKETS[unit])


def time_slices(queries: pl.DataFrame) -> tuple[list[str], list[str]]:
    """Return the columns of a table that say when queries were asked, and the slices by time.

    >>> time_slices(pl.DataFrame({"query": ["a"], "time": ["2026-05-03T23:00:00Z"]}))
    (['time'], ['time:day', 'time:week', 'time:month'])
    >>> time_slices(pl.DataFrame({"query": ["a"], "time": ["morning"]}))
    ([], [])
    """
    named = [name for name in MOMENTS if name in queries.columns]
    timed = [name for name in named if np.isfinite(moments(queries[name], 0.0)).any()]
    first = _of_time(queries, "time:day")
    known = first is not None and first[0] in timed
    return timed, [f"{TIME}:{unit}" for unit in ("day", "week", "month")] if known else []


def _of_time(queries: pl.DataFrame, name: str) -> tuple[str, str] | None:
    """Return the column and the bucket that a name such as time:day means."""
    column, colon, unit = name.rpartition(":")
    if not colon or unit not in BUCKETS:
        return None
    known = (column, *MOMENTS) if column == TIME else (column,)
    there = next((each for each in known if each in queries.columns), None)
    return None if there is None else (there, unit)
