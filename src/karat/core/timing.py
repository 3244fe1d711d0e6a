"""How long retrieval took, where the records say so: latency, throughput, errors."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from karat.errors import InputError, choose

UNITS = {"ms": 1.0, "s": 1000.0, "us": 1e-3, "ns": 1e-6}  # in milliseconds
SPELLINGS = {
    "ms": "ms msec millis milliseconds",
    "s": "s sec secs seconds",
    "us": "us µs usec micros microseconds",
    "ns": "ns nsec nanos nanoseconds",
}
# what people call the time of a query; without a unit behind it, it is read if one is given
BARE = (
    *("latency", "retrieval_latency", "search_latency", "query_latency", "total_latency"),
    *("total_time", "elapsed", "elapsed_time", "retrieval_time", "search_time", "query_time"),
    *("response_time", "execution_time", "took"),
)
_SUFFIXES = {word: unit for unit, words in SPELLINGS.items() for word in words.split()}
DURATIONS = {
    f"{name}_{suffix}": UNITS[unit]
    for name in (*BARE, "time", "duration", "retrieval", "search")
    for suffix, unit in _SUFFIXES.items()
} | {"seconds": UNITS["s"], "milliseconds": UNITS["ms"]}
_POINTS = (("start", "end"), ("start_time", "end_time"), ("started", "ended"))
SPANS = dict.fromkeys(_POINTS, 0.0) | {  # 0: no unit, so that these are dates or clock times
    (f"{start}_{suffix}", f"{end}_{suffix}"): UNITS[unit]
    for start, end in _POINTS
    for suffix, unit in _SUFFIXES.items()
}
ERRORS = ("error", "errors", "exception")
TIMED = (*DURATIONS, *BARE, *(name for pair in SPANS for name in pair), *ERRORS)  # all of these
LONGEST = 1e30  # of any unit of time


@dataclass(frozen=True, slots=True)
class Timing:
    """Latency in milliseconds, queries a second, and the share of queries that failed."""

    n: int  # queries with a duration
    p50: float | None
    p90: float | None
    p99: float | None
    throughput: float | None  # queries ÷ seconds from the first start to the last end
    error_rate: float | None
    source: str  # the columns it was read from

    def as_dict(self) -> dict[str, object]:
        """Return the timing as the JSON output prints it."""
        return asdict(self)


def timing(queries: pl.DataFrame) -> Timing | None:
    """Read durations and errors from columns about the queries; None if there are none.

    Without start and end the throughput is that of one query after the other.

    >>> timing(pl.DataFrame({"query": ["a", "b"], "latency_ms": [10, 30]})).p50
    20.0
    """
    span = _span(queries)
    named = [name for name in DURATIONS if name in queries.columns]
    column = next((name for name in named if queries[name].count()), next(iter(named), None))
    errors = next((name for name in ERRORS if name in queries.columns), None)
    if span is None and column is None and errors is None:
        return None
    wall = None
    if span is not None:
        start, end = (_points(queries[name], SPANS[span]) for name in span)
        values = end - start
        known = ~np.isnan(values)
        wall = float(end[known].max() - start[known].min()) / 1000 if known.any() else None
    elif column is not None:
        values = _numbers(queries[column]) * DURATIONS[column]
    else:
        values = np.full(queries.height, np.nan)
    durations = values[~np.isnan(values) & (values >= 0)]
    wall = durations.sum() / 1000 if wall is None else wall
    p50, p90, p99 = (
        np.percentile(durations, (50, 90, 99)).tolist() if len(durations) else [None] * 3
    )
    named = [*(span or ([column] if column else [])), *([errors] if errors else [])]
    return Timing(
        n=len(durations),
        p50=p50,
        p90=p90,
        p99=p99,
        throughput=float(len(durations) / wall) if len(durations) and wall else None,
        error_rate=_share_failed(queries[errors]) if errors else None,
        source=", ".join(named),
    )


def in_units(queries: pl.DataFrame, unit: str | None, where: str) -> pl.DataFrame:
    """Return columns about queries whose times say their unit: this one, where they say none.

    187 may be seconds or milliseconds, so a missing unit is an error.

    >>> in_units(pl.DataFrame({"query": ["a"], "latency": [187]}), "ms", "run").columns
    ['query', 'latency_ms']
    """
    numbers = [name for pair in _numeric(queries) for name in pair]
    if unit is not None:
        choose("unit of time", unit, UNITS)
        given = [name for name in (*BARE, *numbers) if name in queries.columns]
        new = {name: f"{name}_{unit}" for name in given if f"{name}_{unit}" not in queries.columns}
        return queries.rename(new)
    if _span(queries) is not None or any(name in queries.columns for name in DURATIONS):
        return queries
    named = [name for name in BARE if name in queries.columns and name.endswith("latency")]
    unclear = named[:1] or numbers[:2]
    value = next(iter(queries[unclear[0]].drop_nulls()), None) if unclear else None
    if value is None:
        return queries
    raise InputError(
        f"{' and '.join(map(repr, unclear))} {'has' if named else 'have'} no unit: {value} may "
        "be seconds or milliseconds",
        where=where,
        fix=f"call it {unclear[0]}_ms or {unclear[0]}_s, or say which it is: --latency-unit ms "
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
        and not any(np.isfinite(_points(queries[name], 0.0)).any() for name in pair)
    ]


def _numbers(column: pl.Series) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return a column as numbers; what is none, or endless, is NaN."""
    numbers = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    # no unit of time makes the largest of these endless
    return np.where(np.abs(numbers) < LONGEST, numbers, np.nan)


def _points(column: pl.Series, unit: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
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


def _share_failed(column: pl.Series) -> float:
    """Return the share of queries with an error: true, a number above 0, or a text."""
    if not len(column):
        return 0.0
    if column.dtype == pl.String:
        failed = column.fill_null("").str.strip_chars().str.to_lowercase()
        wrong = ~failed.is_in(["", "false", "0", "none", "null"])
        return float(wrong.sum()) / len(wrong)
    return float((_numbers(column) > 0).mean())
