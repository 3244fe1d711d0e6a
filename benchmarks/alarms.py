"""How often alarms are false, and how late they come: the tables of docs/alarms-promise.md.

    python -m benchmarks.alarms

Values are hits (0 or 1) or scores (a beta distribution) with the mean 0.70, which is the baseline:
the hardest case, since any mean above it gives fewer false alarms. Every method looks after every
query, and all of them see the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import numpy as np

from findwell.statistics.sequential import (
    bernstein_sequence,
    betting_capital,
    change_evidence,
    cusum,
    shiryaev_roberts,
)

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

BASELINE = 0.70
ALPHA, RUN_LENGTH = 0.05, 1000
LOOKS, RUNS = 10_000, 600  # while nothing changes
CHANGE, AFTER, DELAYS = 1000, 3000, 300  # the change comes after this many queries
BLOCK = 50  # runs that are made at once
FIRST_LOOK = 50  # of the interval for a fixed number of queries

VALUES: dict[str, Callable[[np.random.Generator, float, tuple[int, int]], Floats]] = {
    "hits": lambda rng, mean, shape: (rng.random(shape) < mean).astype(np.float64),
    "scores": lambda rng, mean, shape: rng.beta(6 * mean, 6 * (1 - mean), shape),
}


def fixed_interval(values: Floats) -> Floats:
    """Return where the interval for a fixed number of queries does not hold the baseline."""
    n = np.arange(1, len(values) + 1)[:, np.newaxis]
    mean = np.cumsum(values, axis=0) / n
    spread = np.sqrt(np.maximum(np.cumsum(values**2, axis=0) / n - mean**2, 1e-12) / n)
    off = np.where(n >= FIRST_LOOK, np.abs(BASELINE - mean) / spread - 1.96, -np.inf)
    return np.asarray(off)


def sequence(values: Floats) -> Floats:
    """Return how far the upper limit of the confidence sequence lies below the baseline."""
    return np.asarray(BASELINE - bernstein_sequence(values, alpha=ALPHA)[1])


@dataclass(frozen=True, slots=True)
class Method:
    """A way to raise alarms: evidence after each query, and the line at which one is raised."""

    name: str
    evidence: Callable[[Floats], Floats]
    line: float
    promise: str


METHODS = (
    Method("95 % interval for a fixed number of queries", fixed_interval, 0.0, "none"),
    Method("confidence sequence (Bernstein)", sequence, 0.0, "ever ≤ 5 %"),
    Method(
        "capital against the baseline",
        lambda x: betting_capital(x, BASELINE),
        log(1 / ALPHA),
        "ever ≤ 5 %",
    ),
    Method(
        "evidence of a change (`findwell monitor check`)",
        lambda x: change_evidence(x, BASELINE),
        log(1 / ALPHA),
        "ever ≤ 5 %",
    ),
    Method(
        "e-detector (`--run-length 1000`)",
        lambda x: shiryaev_roberts(x, BASELINE),
        log(RUN_LENGTH),
        "after ≥ 1,000 on average",
    ),
    Method(
        "e-CUSUM at 1000", lambda x: cusum(x, BASELINE), log(RUN_LENGTH), "after ≥ 1,000 on average"
    ),
)


def first_alarms(method: Method, values: Floats) -> Ints:
    """Return after how many queries each run has an alarm; one more than there are if it has none.

    Runs are columns.
    """
    raised = method.evidence(values) > method.line
    return np.where(raised.any(axis=0), raised.argmax(axis=0) + 1, len(values) + 1)


def quiet_runs(kind: str, methods: tuple[Method, ...] = METHODS, runs: int = RUNS) -> list[Ints]:
    """Return the first alarms of each method while nothing changes."""
    found: list[list[Ints]] = [[] for _ in methods]
    for block in range(0, runs, BLOCK):
        rng = np.random.default_rng([1, list(VALUES).index(kind), block])
        values = VALUES[kind](rng, BASELINE, (LOOKS, min(BLOCK, runs - block)))
        for mine, method in zip(found, methods, strict=True):
            mine.append(first_alarms(method, values))
    return [np.concatenate(each) for each in found]


def delays(kind: str, mean: float, methods: tuple[Method, ...] = METHODS) -> list[Ints]:
    """Return how many queries after a change the alarm came, of runs with none before it."""
    found: list[list[Ints]] = [[] for _ in methods]
    for block in range(0, DELAYS, BLOCK):
        rng = np.random.default_rng([2, list(VALUES).index(kind), round(100 * mean), block])
        make = VALUES[kind]
        values = np.vstack([make(rng, BASELINE, (CHANGE, BLOCK)), make(rng, mean, (AFTER, BLOCK))])
        for mine, method in zip(found, methods, strict=True):
            first = first_alarms(method, values)
            mine.append(first[first > CHANGE] - CHANGE)
    return [np.concatenate(each) for each in found]


def tables() -> str:
    """Return the tables in Markdown."""
    lines = [
        f"| {LOOKS:,} queries, nothing changes | promise | false alarms: hits | scores |",
        "|---|---|---:|---:|",
    ]
    quiet = [quiet_runs(kind) for kind in VALUES]
    for at, method in enumerate(METHODS):
        shown = []
        for each in quiet:
            first = each[at]
            share = f"{(first <= LOOKS).mean():.1%}".replace("%", " %")
            run = f"first after {first.mean():,.0f}, on average"
            shown.append(run if "average" in method.promise else share)
        lines.append(f"| {method.name} | {method.promise} | {' | '.join(shown)} |")
    head = (
        f"| {CHANGE:,} queries, then a change | hits: 0.70 → 0.60 | → 0.50 "
        "| scores: → 0.60 | → 0.50 |"
    )
    lines += ["", head, "|---|---:|---:|---:|---:|"]
    late = [delays(kind, mean) for kind in VALUES for mean in (0.60, 0.50)]
    for at, method in enumerate(METHODS):
        if method.promise != "none":
            shown = [_late(each[at]) for each in late]
            lines.append(f"| {method.name} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _late(found: Ints) -> str:
    median, most = np.quantile(found, [0.5, 0.9], method="higher")
    return f"{median:,} ({most:,})" if most <= AFTER else f"{median:,} (> {AFTER:,})"


if __name__ == "__main__":
    print(tables(), end="")
