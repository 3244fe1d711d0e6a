"""The rows of a summary: aggregated values with intervals, counts and bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.estimate import Estimate
from findwell.core.frames import pl
from findwell.core.values import BOUNDS
from findwell.evaluation.results.bounds import bounds
from findwell.statistics.intervals import intervals
from findwell.statistics.values import aggregate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from polars._typing import PolarsDataType

    from findwell.core.data import Bools, Floats
    from findwell.evaluation.results.result import Result
    from findwell.measures import Measure

# how the interval was made, or why it is missing; shown next to the summary, not in it
METHOD = ("method", "reason")
NO_INTERVAL = Estimate(None, None, None, 0.0, "", 0, 0)


def schema(*, bounds: bool) -> dict[str, PolarsDataType]:
    """Return the columns of a summary."""
    return {
        **dict.fromkeys(("run", "measure"), pl.String()),
        **dict.fromkeys(("value", "low", "high"), pl.Float64()),
        **dict.fromkeys(("n", "undefined", "failed"), pl.Int64()),
        **dict.fromkeys(BOUNDS if bounds else (), pl.Float64()),
    }


def without_method(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as the summary shows it."""
    return {name: value for name, value in row.items() if name not in METHOD}


def of_queries(tables: Mapping[str, pl.DataFrame], queries: pl.Series) -> dict[str, pl.DataFrame]:
    """Return the rows of some queries of each run."""
    return {run: table.filter(pl.col("query").is_in(queries)) for run, table in tables.items()}


def rows(result: Result, run: str, inside: Bools | None = None) -> list[dict[str, Any]]:
    """Return the row of each measure over all queries of a run, or over those of a mask."""
    values, at = result.measured, result.measured.runs.index(run)
    chosen = values.was_asked(run) if inside is None else inside
    found = []
    limits = _limits(result, values.table[at][:, chosen], chosen)
    for number, (measure, interval) in enumerate(zip(values.measures, limits, strict=True)):
        total = aggregate(measure, values.table[at, number][chosen])
        failed = 0 if values.failed is None else int(values.failed[at, number][chosen].sum())
        row: dict[str, Any] = {
            "run": run,
            "measure": str(measure),
            "value": total.value,
            "low": interval.low,
            "high": interval.high,
            "n": total.n,
            "undefined": total.undefined - failed,
            "failed": failed,
            "method": interval.method or None,
            "reason": interval.reason or None,
        }
        for name, bound in zip(BOUNDS, values.bounds or (), strict=False):
            row[name] = aggregate(measure, bound[at, number][chosen]).value
        found.append(row | _estimated(result, run, measure, inside))
    return found


def _estimated(result: Result, run: str, measure: Measure, inside: Bools | None) -> dict[str, Any]:
    """Return what labels of some pairs say of all queries, instead of what the known ones do."""
    found = result.estimates and result.estimates.best(run, str(measure))
    if not found or inside is not None:
        return {}
    bounded = found.estimator == "bounds"
    return {
        "value": found.value,
        "low": None if bounded else found.low,
        "high": None if bounded else found.high,
        "n": result.relation(run, measure).n,
        "undefined": 0,
        "method": None if bounded else f"{found.method}-{found.estimator}",
        "reason": found.reason or None,
    }


def unmeasured(result: Result) -> list[str]:
    """Say which measures have no value for any query of a run, and why."""
    lines = []
    for row in result.rows:
        run, measure = row["run"], row["measure"]
        if row["n"]:
            continue
        reasons = result.per_query.filter(run=run, measure=measure)["reason"].drop_nulls()
        if not len(reasons):
            lines.append(f"{measure} ({run}): there is no query to measure")
            continue
        common = reasons.value_counts(sort=True)["reason"][0]
        often = "" if reasons.n_unique() == 1 else "most often: "
        lines.append(f"{measure} ({run}): no query has a value ({often}{common})")
    return lines


def _limits(result: Result, columns: Floats, chosen: Bools | slice) -> Iterable[Estimate]:
    """Return the interval of each measure; none of a sum, as a count is a count."""
    estimated = [at for at, each in enumerate(result.measures) if each.aggregation != "sum"]
    found: dict[int, Estimate] = {}
    if result.options.level is not None and estimated:
        measures = [result.measures[at] for at in estimated]
        clusters = None
        if result.options.cluster is not None:  # what queries share, one label per query
            labels = result.queries[result.options.cluster]
            clusters = (
                labels[chosen] if isinstance(chosen, slice) else labels.filter(chosen)
            ).to_list()
        spans = intervals(
            np.column_stack([columns[at] for at in estimated]),
            level=result.options.level,
            statistic=[each.aggregation for each in measures],
            bounds=[each.bounds for each in measures],
            clusters=clusters,
        )
        found = dict(zip(estimated, spans, strict=True))
    return (found.get(at, NO_INTERVAL) for at in range(len(result.measures)))


def failed_bounds(result: Result) -> dict[tuple[str, Measure], tuple[Floats, Floats]]:
    """Return the values if all verdicts that failed were no, and if all were yes.

    The lower one of each query comes first: more relevant chunks of a list mean less recall@k.
    """
    return {
        (run, measure): _in_order(
            result.defined(strict, measure, measure.values(strict), failed=False),
            result.defined(lenient, measure, measure.values(lenient), failed=False),
        )
        for run in result.runs
        for measure in result.measures
        for strict in [result.relation(run, measure)]
        for lenient in [strict.lenient]
        if lenient is not None
    }


def _in_order(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Put the lower value of each query first; one that is not a number stays where it is."""
    turned = other < one
    return np.where(turned, other, one), np.where(turned, one, other)


def unjudged_bounds(result: Result) -> dict[tuple[str, Measure], tuple[Floats, Floats]]:
    """Return the values if all units without a judgement were not relevant, and if all were."""
    if not result.options.bounds:
        return {}
    return {
        (run, measure): (
            result.defined(relation, measure, low),
            result.defined(relation, measure, high),
        )
        for run in result.runs
        for name in dict.fromkeys(measure.relation for measure in result.measures)
        for mine in [[each for each in result.measures if each.relation == name]]
        for relation in [result.relation(run, mine[0])]
        for measure, (low, high) in zip(mine, bounds(relation, mine), strict=True)
    }
