"""Tables about what retrieval cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.spelling import counted
from findwell.show.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from findwell.evaluation.results.timing import Timing

PERCENTILES = ("p50", "p90", "p99")


def timing_grid(timings: Mapping[str, Timing], *, first: str = "run", about: str = "") -> Grid:
    """Lay out one run with a row per figure, or several with a row each and one of intervals."""
    if len(timings) == 1 and not about:
        ((run, found),) = timings.items()
        return _figures(run, found)
    every = {run: dict(rows(found)) for run, found in timings.items()}
    names = list(dict.fromkeys(name for known in every.values() for name in known))
    cells = []
    for run, found in timings.items():
        cells.append([run, *(every[run].get(name, "–") for name in names)])
        if any(limit is not None for pair in found.limits.values() for limit in pair):
            limits = [_limits(found, name.removeprefix("latency ")) for name in names]
            cells.append([f"({found.level:.0%})", *limits])
    return Grid(f"timing{about}", [first, *names], cells)


def rows(found: Timing) -> list[tuple[str, str]]:
    """Return the figures of a run that are known, with their units."""
    every = [
        *((f"latency {name}", _ms(getattr(found, name))) for name in PERCENTILES),
        ("throughput", _each(found, "throughput")),
        ("errors", _each(found, "errors")),
    ]
    more = (
        ("CPU a query", found.cpu_ms, "{:,.1f} ms"),
        ("peak memory", found.peak_memory_mb, "{:,.0f} MB"),
        ("context bytes", found.context_bytes, "{:,.0f}"),
        ("context tokens", found.context_tokens, "{:,.0f}"),
    )
    return every + [(name, form.format(value)) for name, value, form in more if value is not None]


def _figures(run: str, found: Timing) -> Grid:
    """One row per figure about how long retrieval took."""
    limits = {f"latency {name}": _limits(found, name) for name in PERCENTILES}
    cells = [[name, value, limits.get(name, "")] for name, value in rows(found)]
    at_once = "" if found.concurrency is None else f", {found.concurrency} at a time"
    title = f"timing of {run} ({counted(found.n)}, from {found.source}{at_once})"
    return Grid(title, ["figure", "value", f"{found.level:.0%} interval"], cells)


def _each(found: Timing, name: str) -> str:
    if name == "throughput":
        return "–" if found.throughput is None else f"{found.throughput:.2f} queries/s"
    return "–" if found.error_rate is None else f"{found.error_rate:.1%}"


def _limits(found: Timing, name: str) -> str:
    low, high = found.limits.get(name, (None, None))
    if low is None and high is None:
        return ""
    return f"{'?' if low is None else f'{low:.1f}'} … {'?' if high is None else f'{high:.1f}'}"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} ms"
