"""How AutoRAG chooses the best of several modules: mean, rank or normalize_mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from karat.errors import OptionError, choose

Values: TypeAlias = Sequence[float | None]

STRATEGIES = ("mean", "rank", "normalize_mean")


def select_best(
    results: Mapping[str, Mapping[str, Values]],
    strategy: str = "mean",
    *,
    columns: Sequence[str] | None = None,
    seconds: Mapping[str, float] | None = None,
    speed_threshold: float | None = None,
) -> str:
    """Return the name of the best module; ties go to the first.

    `results` has for each module the values of each metric, None for queries that have none: they
    are left out of the mean, so that a module which failed on the hard queries can win. `mean`
    adds up the means of the columns, `rank` adds up 1 ÷ the rank of each mean, `normalize_mean`
    scales each column to 0…1 first. A module slower than the threshold is out, unless all are.

    >>> results = {"a": {"f1": [0.9], "recall": [0.1]}, "b": {"f1": [0.5], "recall": [0.6]}}
    >>> select_best(results, "mean")
    'b'
    """
    choose("strategy", strategy, STRATEGIES)
    if not results:
        raise OptionError("there is no module to choose from")
    fast = _fast_enough(list(results), seconds or {}, speed_threshold)
    names = columns or list(next(iter(results.values())))
    means = {module: [_mean(results[module][column]) for column in names] for module in fast}
    if strategy == "rank":
        scores = {module: sum(_rank_scores(means, module)) for module in fast}
    elif strategy == "normalize_mean":
        scores = {module: sum(_normalised(means, module)) for module in fast}
    else:
        scores = {module: sum(means[module]) / len(names) for module in fast}
    return max(fast, key=lambda module: scores[module])


def _fast_enough(
    modules: list[str], seconds: Mapping[str, float], threshold: float | None
) -> list[str]:
    if threshold is None:
        return modules
    fast = [module for module in modules if seconds.get(module, 0.0) <= threshold]
    return fast or modules


def _mean(values: Values) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0


def _rank_scores(means: dict[str, list[float]], module: str) -> list[float]:
    """Return 1 ÷ rank in each column; equal means share the average of their ranks."""
    columns = zip(*means.values(), strict=True)
    return [
        1 / (sum(other > mine for other in column) + (column.count(mine) + 1) / 2)
        for column, mine in zip(columns, means[module], strict=True)
    ]


def _normalised(means: dict[str, list[float]], module: str) -> list[float]:
    """Return the means scaled to 0…1 in each column; a column of equal means says nothing."""
    scaled = []
    for column, mine in zip(zip(*means.values(), strict=True), means[module], strict=True):
        low, high = min(column), max(column)
        scaled.append((mine - low) / (high - low) if high > low else 0.0)
    return scaled
