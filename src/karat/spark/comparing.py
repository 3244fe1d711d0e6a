"""Two evaluations on Spark held against each other, query by query, and against requirements."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import polars as pl

from karat.comparison.gates import (
    DECIDE,
    NOT_MEASURES,
    UNDECIDED,
    GateReport,
    Requirement,
    is_fact,
    parse_requirement,
    row_interval,
)
from karat.dialects import resolve_measures, select_measures
from karat.errors import InputError, MeasureError, OptionError, choose
from karat.spark.result import SparkResult, add_up
from karat.spark.session import naming_errors, open_session, read_frame, require_pyspark
from karat.spark.summary import SummaryPlan, Tally
from karat.spark.task import VALUES
from karat.statistics.intervals import Interval
from karat.statistics.values import check_share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from karat.comparison.gates import RequirementVerdict
    from karat.measures import Measure

BOTH = (-1.0, 1.0)  # between what differences lie
LEVEL = 0.95
COLUMNS: dict[str, Any] = {
    "measure": pl.String,
    **dict.fromkeys(("before", "after", "difference", "low", "high", "p"), pl.Float64),
    **dict.fromkeys(("n", "wins", "losses", "unpaired"), pl.Int64),
}


@dataclass(frozen=True, slots=True)
class _Paired:
    """One measure of two evaluations."""

    difference: Tally
    before: Tally
    after: Tally
    wins: int
    losses: int
    unpaired: int = field(default=0)


def compare(
    before: SparkResult | DataFrame | str,
    after: SparkResult | DataFrame | str,
    *,
    level: float = LEVEL,
) -> pl.DataFrame:
    """Compare two evaluations query by query, inside Spark: one row for each measure.

    Each is a result, a frame as `per_query` is, or where that was written to: a path or
    `table:NAME`. A frame with several run ids is refused: filter it. Queries that only one of them
    has, or that have no value in one of them, are counted as `unpaired` and left out. `p` is that
    of the two-sided test of the mean difference.
    """
    require_pyspark()
    check_share("level", level)
    rows = []
    for name, found in sorted(_paired(before, after, 1.0).items()):
        span = found.difference.moments.interval(level, BOTH)
        rows.append(
            {
                "measure": name,
                "before": _mean(found.before),
                "after": _mean(found.after),
                "difference": span.value,
                "low": span.low,
                "high": span.high,
                "p": _p_value(found.difference),
                "n": span.n,
                "wins": found.wins,
                "losses": found.losses,
                "unpaired": found.unpaired,
            }
        )
    if not rows:
        raise InputError(
            "the two evaluations share no query and measure",
            fix="compare evaluations of the same measures on the same queries",
        )
    return pl.DataFrame(rows, schema=COLUMNS)


def gate(
    result: SparkResult,
    requirements: Iterable[str] | str,
    *,
    baseline: SparkResult | DataFrame | str | None = None,
    decide: str = "interval",
    undecided: str = "error",
) -> GateReport:
    """Hold a result against requirements, as `karat.gate` does; all queries count, not a sample.

    `baseline` is another result, a frame as its `per_query`, or where that was written to.
    """
    choose("way to decide", decide, DECIDE)
    choose("choice for undecided gates", undecided, UNDECIDED)
    texts = [requirements] if isinstance(requirements, str) else list(requirements)
    asked = [parse_requirement(text) for text in texts]
    for each in asked:
        if each.factor is not None and baseline is None:
            raise OptionError(
                f"{each.text} needs a baseline, and there is none",
                fix="name a result, or the place of its values: baseline= (--baseline)",
            )
        if each.subject in NOT_MEASURES and each.subject not in ("failed", "undefined", "queries"):
            raise OptionError(
                f"{each.text}: the Spark engine knows nothing about {each.subject}",
                fix="hold a result of karat.evaluate against it",
            )
    paired = {
        factor: _paired(baseline, result, factor)
        for factor in {each.factor for each in asked}
        if factor is not None and baseline is not None
    }
    verdicts = [_verdict(result, each, paired, decide) for each in asked]
    return GateReport(tuple(verdicts), undecided=undecided)


def _verdict(
    result: SparkResult,
    asked: Requirement,
    paired: dict[float, dict[str, _Paired]],
    decide: str,
) -> RequirementVerdict:
    level = result.level or LEVEL
    if asked.subject in NOT_MEASURES:
        return asked.verdict(result.run, asked.subject, _count(result, asked), by_value=True)
    measure = _measure(result, asked.subject)
    by_value = decide == "value" or is_fact(measure)
    if asked.factor is None:
        value = row_interval(result.interval_row(measure), level)
        return asked.verdict(result.run, str(measure), value, by_value=by_value)
    found = paired[asked.factor].get(str(measure))
    if found is None:
        raise MeasureError(
            f"the baseline has no {measure}", where="baseline", fix="evaluate it with this measure"
        )
    span = found.difference.moments.interval(level, BOTH)
    same = not (found.wins or found.losses)
    sides = _mean(found.before), _mean(found.after)
    return asked.verdict(result.run, str(measure), span, by_value=by_value or same, sides=sides)


def _measure(result: SparkResult, name: str) -> Measure:
    known = select_measures(name, result.measures, result.dialect)
    if known:
        return known[0]
    (wanted,) = resolve_measures(name, result.dialect)
    raise MeasureError(
        f"{wanted} was not measured",
        fix=f"evaluate with it, too (measured: {', '.join(map(str, result.measures))})",
    )


def _count(result: SparkResult, asked: Requirement) -> Interval:
    """Return how many queries there are, or lack a value, of the measure with most."""
    queries = result.queries
    if asked.subject == "queries":
        return Interval(float(queries), None, None, result.level or LEVEL, "", queries, 0)
    most = float(result.summary[asked.subject].max() or 0)  # type: ignore[arg-type]
    value = most / max(queries, 1) if asked.share else most
    return Interval(value, None, None, result.level or LEVEL, "", queries, 0)


def _paired(
    before: SparkResult | DataFrame | str, after: SparkResult | DataFrame | str, factor: float
) -> dict[str, _Paired]:
    """Bring the values of both together in Spark, and add up their differences by measure."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    with naming_errors():
        one, other = _values(before, "before"), _values(after, "after")
        joined = one.join(other, on=["query", "measure"], how="full_outer")
        both = F.col("before").isNotNull() & F.col("after").isNotNull()
        change = F.when(both, F.col("after") - F.lit(factor) * F.col("before"))
        sign = F.when(both, F.signum(F.col("after") - F.col("before")))
        values = [
            change,
            F.when(both, F.col("before")),
            F.when(both, F.col("after")),
            F.when(sign > 0, 1.0),
            F.when(sign < 0, 1.0),
        ]
        rows = joined.select(
            F.lit(VALUES).cast("tinyint").alias("kind"),
            "query",
            F.lit(None).cast("string").alias("cluster"),
            F.array("measure").alias("slices"),
            F.array(*values).alias("values"),
            F.lit(None).cast("array<boolean>").alias("failed"),
            F.lit(None).cast("array<double>").alias("lower"),
            F.lit(None).cast("array<double>").alias("upper"),
            F.lit(None).cast("binary").alias("data"),
        )
        tallies, _ = add_up(rows, SummaryPlan(("mean",) * len(values), slices=("measure",)))
    names = {name for column, name, _ in tallies if column == "measure" and name is not None}
    found = {}
    for name in names:
        mine = [tallies["measure", name, at] for at in range(len(values))]
        if mine[0].moments.n:
            wins, losses = mine[3].moments.n, mine[4].moments.n
            found[name] = _Paired(mine[0], mine[1], mine[2], wins, losses, mine[0].undefined)
    return found


def _values(given: Any, name: str) -> DataFrame:  # noqa: ANN401
    """Return query, measure and value of an evaluation."""
    if isinstance(given, str):
        given = read_frame(open_session(), given)
    frame: DataFrame = given.per_query if isinstance(given, SparkResult) else given
    lacking = {"query", "measure", "value"} - set(frame.columns)
    if lacking:
        raise InputError(
            f"the frame has no column {' or '.join(sorted(lacking))}",
            where=name,
            fix="give a result of karat.spark.evaluate, or what its write() wrote",
        )
    if "run_id" in frame.columns and not isinstance(given, SparkResult):
        ids = [row[0] for row in frame.select("run_id").distinct().limit(2).collect()]
        if len(ids) > 1:
            raise OptionError(
                f"there are several evaluations: {ids[0]}, {ids[1]}, …",
                where=name,
                fix='choose one: spark.read.parquet(path).filter("run_id = …")',
            )
    return frame.select("query", "measure", frame["value"].alias(name))


def _mean(tally: Tally) -> float | None:
    return tally.moments.mean if tally.moments.n else None


def _p_value(tally: Tally) -> float | None:
    """Return the two-sided p value of a mean difference."""
    moments = tally.moments
    if moments.n < 2:
        return None
    one, two = (each.value for each in moments.sums[:2])
    variance = max(two / moments.n - (one / moments.n) ** 2, 0.0) * moments.n / (moments.n - 1)
    if not variance:
        return 1.0 if not one else 0.0
    z = abs(moments.mean) / math.sqrt(variance / moments.n)
    return 2 * (1 - NormalDist().cdf(z))
