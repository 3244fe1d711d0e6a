"""What retrieval cost, where the records say so: latency, errors, memory, size of the context.

A time says its unit in the name of its column, or it is not read: 187 may be seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import InputError, choose
from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from findwell.core.data import Bools, Floats

UNITS = {"ms": 1.0, "s": 1000.0, "us": 1e-3, "ns": 1e-6}  # in milliseconds
SPELLINGS = {
    "ms": "ms msec millis milliseconds",
    "s": "s sec secs seconds",
    "us": "us µs usec micros microseconds",
    "ns": "ns nsec nanos nanoseconds",
}
# what people call the time of a query; without a unit behind it, it is read if one is given
BARE_NAMES = (
    *("latency", "retrieval_latency", "search_latency", "query_latency", "total_latency"),
    *("total_time", "elapsed", "elapsed_time", "retrieval_time", "search_time", "query_time"),
    *("response_time", "execution_time", "took"),
)
_SUFFIXES = {word: unit for unit, words in SPELLINGS.items() for word in words.split()}
DURATIONS = {
    f"{name}_{suffix}": UNITS[unit]
    for name in (*BARE_NAMES, "time", "duration", "retrieval", "search")
    for suffix, unit in _SUFFIXES.items()
} | {"seconds": UNITS["s"], "milliseconds": UNITS["ms"]}
_POINTS = (("start", "end"), ("start_time", "end_time"), ("started", "ended"))
SPANS = dict.fromkeys(_POINTS, 0.0) | {  # 0: no unit, so that these are dates or clock times
    (f"{start}_{suffix}", f"{end}_{suffix}"): UNITS[unit]
    for start, end in _POINTS
    for suffix, unit in _SUFFIXES.items()
}
ERRORS = ("error", "errors", "exception")
# when a query was asked: slices by time
MOMENTS = ("time", "timestamp", "start_time", "started")
# other figures about each query, as `findwell run` writes them
CPU, MEMORY, CONCURRENCY = "cpu_ms", "peak_memory_mb", "concurrency"
CONTEXT = ("context_bytes", "context_tokens")
FIGURES = (CPU, MEMORY, CONCURRENCY, *CONTEXT)
TIME_COLUMNS = (  # all of these
    *DURATIONS,
    *BARE_NAMES,
    *(name for pair in SPANS for name in pair),
    *ERRORS,
    *FIGURES,
    *MOMENTS[:2],  # the others are among the above
)
LONGEST_TIME = 1e30  # of any unit of time


@dataclass(frozen=True, slots=True)
class Times:
    """What columns say about each query: its duration, whether it failed, what it cost."""

    durations: Floats  # in milliseconds, of the queries that have one
    wall: float | None  # seconds from the first start to the last end
    failed: Bools | None  # by query; None: the columns do not say
    source: str  # the columns it was read from
    figures: Mapping[str, Floats] = field(default_factory=dict)  # known values, by column


def timed(queries: pl.DataFrame) -> pl.DataFrame:
    """Return what a table of queries says about time and errors."""
    present = set(queries.columns)
    return queries.select("query", *(name for name in TIME_COLUMNS if name in present))


def read_times(queries: pl.DataFrame) -> Times | None:
    """Read durations, errors and other figures from columns about the queries; None without any.

    Without start and end the queries are taken to have been asked one after the other.

    >>> read_times(pl.DataFrame({"query": ["a", "b"], "latency_ms": [10, 30]})).durations.tolist()
    [10.0, 30.0]
    """
    queries = timed(queries)
    span = _span(queries)
    named = [name for name in DURATIONS if name in queries.columns]
    column = next((name for name in named if queries[name].count()), next(iter(named), None))
    errors = error_column(queries)
    figures = {name: _known(queries[name]) for name in FIGURES if name in queries.columns}
    figures = {name: values for name, values in figures.items() if len(values)}
    if span is None and column is None and errors is None and not figures:
        return None
    wall = None
    values = np.full(queries.height, np.nan)
    if span is not None:
        start, end = (moments(queries[name], SPANS[span]) for name in span)
        values = end - start
        known = ~np.isnan(values)
        wall = float(end[known].max() - start[known].min()) / 1000 if known.any() else None
    if column is not None and (span is None or queries[column].count()):
        values = _numbers(queries[column]) * DURATIONS[column]  # what says how long it took, did
        named = [column]
    else:
        named = list(span or ())
    durations = values[~np.isnan(values) & (values >= 0)]
    named += [errors] if errors else []
    return Times(
        durations=durations,
        wall=float(durations.sum()) / 1000 if wall is None else wall,
        failed=failures(queries[errors]) if errors else None,
        source=", ".join(named or figures),
        figures=figures,
    )


def error_column(queries: pl.DataFrame) -> str | None:
    """Return the column that says which queries failed, if there is one."""
    return next((name for name in ERRORS if name in queries.columns), None)


def failures(column: pl.Series) -> Bools:
    """Return which queries failed: true, a number above 0, or a text."""
    if column.dtype == pl.String:
        told = column.fill_null("").str.strip_chars().str.to_lowercase()
        return ~told.is_in(["", "false", "0", "none", "null"]).to_numpy()
    return _numbers(column) > 0


def in_units(queries: pl.DataFrame, unit: str | None, where: str) -> pl.DataFrame:
    """Return columns about queries whose times say their unit: this one, where they say none.

    187 may be seconds or milliseconds, so a missing unit is an error.

    >>> in_units(pl.DataFrame({"query": ["a"], "latency": [187]}), "ms", "run").columns
    ['query', 'latency_ms']
    """
    about = timed(queries)
    present = about.columns
    numbers = [name for pair in _numeric(about) for name in pair]
    if unit is not None:
        choose("unit of time", unit, UNITS)
        given = [name for name in (*BARE_NAMES, *numbers) if name in present]
        new = {name: f"{name}_{unit}" for name in given if f"{name}_{unit}" not in present}
        return queries.rename(new)
    if _span(about) is not None or any(name in present for name in DURATIONS):
        return queries
    named = [name for name in BARE_NAMES if name in present and name.endswith("latency")]
    unclear = named[:1] or numbers[:2]
    value = next(iter(queries[unclear[0]].drop_nulls()), None) if unclear else None
    if value is None:
        return queries
    raise InputError(
        f"{' and '.join(map(repr, unclear))} {'has' if named else 'have'} no unit: {value} may "
        "be seconds or milliseconds",
        where=where,
        fix=f"call it {unclear[0]}_ms or {unclear[0]}_s, or say which: --read latency_unit=ms "
        "(latency_unit=)",
    )


def _span(queries: pl.DataFrame) -> tuple[str, str] | None:
    """Return the columns of the first and the last moment, if it is clear what they count."""
    unclear = _numeric(queries)
    for pair in SPANS:
        if set(pair) <= set(queries.columns) and pair not in unclear:
            return pair
    return None


def _numeric(queries: pl.DataFrame) -> list[tuple[str, str]]:
    """Return the columns of moments that are numbers without a known unit."""
    return [
        pair
        for pair in _POINTS
        if set(pair) <= set(queries.columns)
        and not any(np.isfinite(moments(queries[name], 0.0)).any() for name in pair)
    ]


def _known(column: pl.Series) -> Floats:
    values = _numbers(column)
    return values[np.isfinite(values)]


def _numbers(column: pl.Series) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return a column as numbers; what is not a number, or endless, is NaN."""
    numbers = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    # no unit of time makes the largest of these endless
    return np.where(np.abs(numbers) < LONGEST_TIME, numbers, np.nan)


def moments(column: pl.Series, unit: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return moments in milliseconds: dates, numbers of a unit, or a computer's clock.

    A clock counts from 1970, in seconds, milliseconds or less, which its size tells.
    """
    if column.dtype == pl.String:
        times = column.str.to_datetime(strict=False, time_zone="UTC")
        column = times if times.count() else column
    if column.dtype.is_temporal():
        micros = column.cast(pl.Datetime("us")).dt.timestamp("us")
        return (micros / 1e3).fill_null(np.nan).to_numpy()
    numbers = _numbers(column)
    if unit:
        return numbers * unit
    for size, factor in ((1e17, 1e-6), (1e14, 1e-3), (1e11, 1.0), (1e8, 1e3)):
        if (numbers >= size).any():
            return np.where(numbers >= size, numbers * factor, np.nan)
    return np.full(len(numbers), np.nan)
