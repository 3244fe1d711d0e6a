"""What retrieval cost: latency, throughput, errors, processor, memory, and size of the context."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.timing import CONCURRENCY, CONTEXT, CPU, MEMORY, read_times
from findwell.statistics.intervals import quantile_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from findwell.core.data import Floats
    from findwell.core.estimate import Estimate

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Timing:
    """Latency in milliseconds, queries a second, the share that failed, and what else it cost.

    `limits` are the intervals of the percentiles; a limit is None where there are too few queries.
    """

    n: int  # queries with a duration
    p50: float | None
    p90: float | None
    p99: float | None
    throughput: float | None  # queries ÷ seconds from the first start to the last end
    error_rate: float | None
    source: str  # the columns it was read from
    errors: int | None = None  # queries that failed
    queries: int = 0
    level: float = LEVEL
    limits: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    concurrency: int | None = None  # how many were asked at a time
    cpu_ms: float | None = None  # of the process, per query
    peak_memory_mb: float | None = None  # of the process
    context_bytes: float | None = None  # of what was retrieved, per query
    context_tokens: float | None = None
    durations: Floats = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)

    def percentile(self, share: float, level: float) -> Estimate:
        """Return a percentile of the latency in milliseconds, with its interval."""
        return quantile_interval(self.durations, share, level)

    def as_dict(self) -> dict[str, Any]:
        """Return the timing as the JSON output prints it; what is not known is left out."""
        known = asdict(self)
        del known["durations"]
        known["limits"] = {name: list(pair) for name, pair in self.limits.items()}
        optional = ("errors", "concurrency", CPU, MEMORY, *CONTEXT)
        return {
            name: each for name, each in known.items() if name not in optional or each is not None
        }


def timing(queries: pl.DataFrame, level: float | None = LEVEL) -> Timing | None:
    """Summarise what columns about the queries say; None if they say nothing about it.

    >>> import polars as pl
    >>> timing(pl.DataFrame({"query": ["a", "b"], "latency_ms": [10, 30]})).p50
    20.0
    """
    times, level = read_times(queries), level or LEVEL
    if times is None:
        return None
    found = {
        name: quantile_interval(times.durations, share, level)
        for name, share in PERCENTILES.items()
    }
    n = len(times.durations)
    failed = None if times.failed is None else int(times.failed.sum())
    means = {
        name: float(times.figures[name].mean()) for name in (CPU, *CONTEXT) if name in times.figures
    }
    most = {
        name: times.figures[name].max() for name in (MEMORY, CONCURRENCY) if name in times.figures
    }
    return Timing(
        n=n,
        p50=found["p50"].value,
        p90=found["p90"].value,
        p99=found["p99"].value,
        throughput=n / times.wall if n and times.wall else None,
        error_rate=None if failed is None else failed / max(queries.height, 1),
        source=times.source,
        errors=failed,
        queries=queries.height,
        level=level,
        limits={name: (each.low, each.high) for name, each in found.items()} if n else {},
        concurrency=int(most[CONCURRENCY]) if CONCURRENCY in most else None,
        cpu_ms=means.get(CPU),
        peak_memory_mb=float(most[MEMORY]) if MEMORY in most else None,
        context_bytes=means.get("context_bytes"),
        context_tokens=means.get("context_tokens"),
        durations=times.durations,
    )
