"""The rows of a summary: aggregated values with intervals, counts and bounds.

Bounds say what could change values: unjudged units, the order of ties, lists that end too early.
"""

from __future__ import annotations

import math
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.estimate import Estimate
from findwell.core.findings import finding_about
from findwell.core.forks import refuse_after_fork
from findwell.core.frames import pl
from findwell.core.measure import COUNTED_UNITS, Budget
from findwell.core.relation import reordered, with_unjudged
from findwell.core.values import BOUNDS
from findwell.statistics.intervals import aggregate, intervals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polars._typing import PolarsDataType

    from findwell.core.data import Bools, Floats
    from findwell.core.findings import Finding
    from findwell.core.relation import Relation, Ties
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
    chosen: Bools | slice = slice(None) if inside is None else inside
    if inside is None and values.asked is not None:
        chosen = values.asked[at]
    found = []
    limits = _limits(result, values.table[at][:, chosen], chosen)
    for number, measure in enumerate(values.measures):
        interval = limits.get(number, NO_INTERVAL)
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
        if result.estimates is not None and inside is None:
            row |= _estimated(result, run, measure)
        found.append(row)
    return found


def _estimated(result: Result, run: str, measure: Measure) -> dict[str, Any]:
    """Return what labels of some pairs say of all queries, instead of what the known ones do."""
    found = result.estimates and result.estimates.best(run, str(measure))
    if not found:
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


def _limits(result: Result, columns: Floats, chosen: Bools | slice) -> dict[int, Estimate]:
    """Return the interval of each measure, by its place; a sum has none, as a count is a count."""
    estimated = [at for at, each in enumerate(result.measures) if each.aggregation != "sum"]
    found: dict[int, Estimate] = {}
    if result.options.level is not None and estimated:
        measures = [result.measures[at] for at in estimated]
        clusters = None
        if result.options.cluster is not None:  # what queries share, one label per query
            refuse_after_fork()
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
    return found


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


UNITS = 4_000_000  # retrieved units handled at once, so that memory stays bounded


def bounds(relation: Relation, measures: Sequence[Measure]) -> list[tuple[Floats, Floats]]:
    """Return the lower and upper bound of every value, a pair of arrays for each measure.

    The measure is taken three times: as it is, with every unjudged unit judged not relevant, and
    with every unjudged unit as relevant as the best item of the gold. The bounds are the least
    and the greatest of the three.
    """
    top = max(relation.item_grade.max(initial=1.0), 1.0)
    block_of = np.cumsum(relation.depth) // UNITS
    found = []
    for number in np.unique(block_of):
        block = relation.select(block_of == number)
        scenarios = (block, with_unjudged(block, 0.0), with_unjudged(block, top))
        found.append([[measure.values(each) for each in scenarios] for measure in measures])
    return [
        (
            np.concatenate([_where_defined(block[at], np.fmin) for block in found]),
            np.concatenate([_where_defined(block[at], np.fmax) for block in found]),
        )
        for at in range(len(measures))
    ]


def _where_defined(scenarios: list[Floats], choose: np.ufunc) -> Floats:
    """Choose among the scenarios; what has no value has no bounds."""
    return np.where(np.isnan(scenarios[0]), np.nan, choose.reduce(scenarios))


def tie_bounds(
    relation: Relation, ties: Ties, measures: Sequence[Measure]
) -> list[tuple[Floats, Floats]]:
    """Return the least and the greatest value of every query, for each measure, over its ties.

    Units with equal scores could be in any order. Two orders are looked at: within every tie
    the best grades first, and the best grades last. Repetitions are taken for noise. Only queries
    with a tie are measured again.
    """
    keep = np.isin(np.arange(relation.n), ties.query)
    tied = relation.select(keep)
    ties = replace(ties, query=(np.cumsum(keep) - 1)[ties.query])
    orders = (reordered(tied, ties, first=True), reordered(tied, ties))
    found = []
    for measure in measures:
        low = measure.values(relation)
        high, scenarios = low.copy(), [low[keep], *map(measure.values, orders)]
        defined = ~np.isnan(low)
        for side, extreme in ((low, np.fmin), (high, np.fmax)):
            side[keep] = extreme.reduce(scenarios)
            side[~defined] = np.nan
        found.append((low, high))
    return found


LEAST_CHANGE = 5e-5  # a change that four digits show


def tied_scores(
    relation: Relation, ties: Ties, measures: Sequence[Measure], run: str
) -> list[Finding]:
    """Return the finding that ties decide the values of measures, with how far they could go."""
    changed = np.zeros(relation.n, dtype=bool)
    moves: list[tuple[float, Measure]] = []
    for measure, (low, high) in zip(measures, tie_bounds(relation, ties, measures), strict=True):
        differ = high - low > LEAST_CHANGE
        if differ.any():
            changed |= differ
            least = aggregate(measure, low).value or 0.0
            moves.append(((aggregate(measure, high).value or 0.0) - least, measure))
    move, most = max(moves, key=itemgetter(0), default=(0.0, ""))
    move = math.ceil(round(1000 * move, 6)) / 1000  # rounded up, as it says "at most"
    return finding_about(
        "tied-scores",
        relation.names_at(changed),
        "# query|queries has|have tied scores. Another tie order would move "
        f"{most} by at most {move:g}.",
        "break ties in the retriever, or pass ranked lists without scores",
        run,
    )


def short_lists(relation: Relation, measures: Sequence[Measure], run: str) -> list[Finding]:
    """Return the findings that lists end before a budget of tokens or characters is spent.

    What a longer list would hold in the rest of the budget is not known. A query on which the
    measures cannot rise any more is not counted.
    """
    groups: dict[tuple[Budget, bool], list[Measure]] = {}
    for measure in measures:
        if isinstance(measure.k, Budget) and measure.k.unit in COUNTED_UNITS:
            groups.setdefault((measure.k, measure.only_grows), []).append(measure)
    found: list[Finding] = []
    for (budget, only_grows), alike in groups.items():
        spent = relation.paid(budget.unit)
        short = (np.diff(relation.chunks) > 0) & (spent < budget.amount)
        if only_grows:
            short &= np.any([each.values(relation) < each.bounds[1] for each in alike], axis=0)
        names, are = ", ".join(map(str, alike)), "is" if len(alike) == 1 else "are"
        meaning = (
            f"{names} {are} a lower bound of what longer lists would give"
            if only_grows
            else f"with longer lists {names} would differ"
        )
        found += finding_about(
            "short-list",
            [
                f"{name}: {spent[at]:,.0f} {budget.unit}"
                for at, name in zip(np.flatnonzero(short), relation.names_at(short), strict=True)
            ],
            f"# query|queries has|have a list that ends before the budget of {budget.amount:,} "
            f"{budget.unit} is spent: {meaning}.",
            "retrieve more documents for each query, so that the budget cuts every list",
            run,
        )
    return found
