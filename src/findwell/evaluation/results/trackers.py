"""Results in experiment trackers: numbers under names that MLflow, W&B and TensorBoard accept.

The three agree on letters, digits, `_`, `-`, `.` and `/`; `@` and brackets are refused by MLflow.
Its file store makes a file of each name and a folder of what stands before a `/`, so that `recall`
and `recall/low` cannot both be: `/` parts only the name of the run from the rest.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError, choose, needs_package

if TYPE_CHECKING:
    from collections.abc import Mapping

    from findwell.evaluation.results.result import Result

TRACKERS = ("mlflow", "wandb")
WORDS = {"@": "_at_", "(": "_", ")": "", "=": "-", ",": "_", "/": ".", " ": "_"}
FIGURES = {
    "p50": "latency_p50_ms",
    "p90": "latency_p90_ms",
    "p99": "latency_p99_ms",
    "throughput": "throughput_per_s",
    "error_rate": "error_rate",
    "cpu_ms": "cpu_ms",
    "peak_memory_mb": "peak_memory_mb",
    "context_bytes": "context_bytes",
    "context_tokens": "context_tokens",
}


def metric_name(text: str) -> str:
    """Return a name as trackers accept it.

    >>> metric_name("recall@5"), metric_name("nDCG(gain=exp)@10/rouge")
    ('recall_at_5', 'nDCG_gain-exp_at_10.rouge')
    """
    for sign, word in WORDS.items():
        text = text.replace(sign, word)
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)


def flat_metrics(result: Result) -> dict[str, float]:
    """Return every aggregated number of a result by a name that trackers accept."""
    found: dict[str, float] = {}
    several = len(result.runs) > 1

    def put(run: str, name: str, value: float | None) -> None:
        if value is None:
            return
        whole, again = (f"{metric_name(run)}/{name}" if several else name), 2
        while whole in found:  # two spellings that differ in signs only
            whole, again = f"{whole}-{again}", again + 1
        found[whole] = float(value)

    for row in result.summary.iter_rows(named=True):
        name = metric_name(row["measure"])
        put(row["run"], name, row["value"])
        put(row["run"], f"{name}.low", row["low"])
        put(row["run"], f"{name}.high", row["high"])
    for run in result.runs:
        put(run, "queries", result.queries.height)
        timing = result.timing.get(run)
        for field, name in FIGURES.items() if timing is not None else ():
            put(run, name, getattr(timing, field))
    return found


def log_metrics(
    metrics: Mapping[str, float],
    tracker: object,
    step: int | None,
) -> None:
    """Hand the numbers to a tracker, by name or as the object that logs."""
    target: Any = tracker  # MLflow and Lightning have `log_metrics`, TensorBoard `add_scalar`
    if isinstance(tracker, str):
        choose("tracker", tracker, TRACKERS)
        with needs_package(f"logging to {tracker}", install=f"pip install {tracker}"):
            target = importlib.import_module(tracker)
    if callable(getattr(target, "log_metrics", None)):
        target.log_metrics(dict(metrics), step=step)
    elif callable(getattr(target, "add_scalar", None)):
        for name, value in metrics.items():
            target.add_scalar(name, value, step)
    elif callable(getattr(target, "log", None)):
        target.log(dict(metrics), step=step)
    else:
        raise InputError(
            f"a {type(tracker).__name__} logs nothing",
            fix='give "mlflow", "wandb", a run of W&B, or a SummaryWriter of TensorBoard',
        )
