"""How long retrieval took, where the records say so: latency, throughput, errors."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

# columns that hold a duration, and how many milliseconds their unit has
DURATIONS = {
    "latency_ms": 1.0,
    "total_time_ms": 1.0,
    "elapsed_ms": 1.0,
    "time_ms": 1.0,
    "latency_s": 1000.0,
    "latency_seconds": 1000.0,
    "elapsed_s": 1000.0,
    "latency": 1000.0,
}
SPANS = (("start", "end"), ("start_time", "end_time"), ("started", "ended"))  # in seconds, or times
ERRORS = ("error", "errors", "exception")
TIMED = (*DURATIONS, *(name for pair in SPANS for name in pair), *ERRORS)  # all of these


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
    span = next((pair for pair in SPANS if set(pair) <= set(queries.columns)), None)
    column = next((name for name in DURATIONS if name in queries.columns), None)
    errors = next((name for name in ERRORS if name in queries.columns), None)
    if span is None and column is None and errors is None:
        return None
    wall = None
    if span is not None:
        start, end = (_seconds(queries[name]) for name in span)
        values = (end - start) * 1000
        known = ~np.isnan(values)
        wall = float(end[known].max() - start[known].min()) if known.any() else None
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


def _numbers(column: pl.Series) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def _seconds(column: pl.Series) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Read points in time: numbers are seconds, texts are dates."""
    if column.dtype == pl.String:
        times = column.str.to_datetime(strict=False, time_zone="UTC")
        if times.null_count() < len(times):
            return (times.dt.timestamp("us") / 1e6).fill_null(np.nan).to_numpy()
    if column.dtype.is_temporal():
        return (
            (column.cast(pl.Datetime("us")).dt.timestamp("us") / 1e6).fill_null(np.nan).to_numpy()
        )
    return _numbers(column)


def _share_failed(column: pl.Series) -> float:
    """Return the share of queries with an error: true, a number above 0, or a text."""
    if not len(column):
        return 0.0
    if column.dtype == pl.String:
        failed = column.fill_null("").str.strip_chars().str.to_lowercase()
        wrong = ~failed.is_in(["", "false", "0", "none", "null"])
        return float(wrong.sum()) / len(wrong)
    return float((_numbers(column) > 0).mean())
