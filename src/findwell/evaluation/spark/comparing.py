"""Two evaluations on Spark held against each other, query by query, and against requirements."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError, MeasureError, OptionError, choose, takes_options
from findwell.core.estimate import Estimate
from findwell.core.frames import pl
from findwell.core.verdict import SAME
from findwell.evaluation.comparison.gates import (
    DECIDE,
    UNDECIDED,
    GateReport,
    row_interval,
)
from findwell.evaluation.comparison.requirements import (
    find_figure,
    hold,
    is_fact,
    parse_requirement,
)
from findwell.evaluation.spark.result import SparkResult, add_up
from findwell.evaluation.spark.session import (
    naming_errors,
    open_session,
    read_frame,
    require_pyspark,
)
from findwell.evaluation.spark.summary import SummaryPlan, Tally, value_of
from findwell.evaluation.spark.task import VALUES
from findwell.judges.limits import verdict_limit
from findwell.measures import parse_measure
from findwell.measures.dialects import resolve_measures, select_measures
from findwell.statistics.paired import TIE
from findwell.statistics.values import GEOMETRIC_FLOOR, UNIT, bounds_on_scale, check_share
from findwell.statistics.verdicts import verdict_of, withhold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from findwell.core.requirement import Requirement
    from findwell.core.verdict import Verdict
    from findwell.evaluation.comparison.requirements import RequirementVerdict
    from findwell.measures import Measure

LEVEL = 0.95
SAMPLES = 200  # of the bootstrap, where queries of a cluster are drawn together
COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("measure", "verdict"), pl.String),
    **dict.fromkeys(("before", "after", "difference", "low", "high", "p"), pl.Float64),
    **dict.fromkeys(("n", "wins", "losses", "unpaired"), pl.Int64),
    "reason": pl.String,  # why there is no p, where the judge gives no verdict about systems
}


@dataclass(frozen=True, slots=True)
class _Paired:
    """One measure of two evaluations; `before` and `after` are on the scale of its statistic."""

    statistic: str
    change: Tally  # what each query does to the difference: their mean is that of the statistic
    tested: Tally  # differences on the scale of the statistic
    before: Tally
    after: Tally
    most: float  # that a query can change
    wins: int
    losses: int
    unpaired: int
    clustered: bool = False
    higher_is_better: bool = True
    factor: float = 1.0  # of the baseline; the test is about a difference without one

    @property
    def sides(self) -> tuple[float | None, float | None]:
        """The aggregated values of the queries that both have."""
        return value_of(self.before, self.statistic), value_of(self.after, self.statistic)

    def interval(self, level: float) -> Estimate:
        """Return the difference and its interval: of means, sums or geometric means."""
        statistic = "sum" if self.statistic == "sum" else "mean"  # `change` has no logarithms
        bounds = -self.most, self.most
        span = self.change.moments.interval(level, bounds, statistic=statistic)
        return self.change.bootstrapped(span, statistic, clustered=True) if self.clustered else span

    def verdict(self, level: float) -> Verdict:
        """Return the verdict by the z test, which also decides whether 0 is in the interval."""
        higher, ties = self.higher_is_better, self.change.moments.n - self.wins - self.losses
        return verdict_of(
            self.interval(level),
            self.p,
            level=level,
            higher_is_better=higher,
            won=self.wins if higher else self.losses,
            tied=ties,
            lost=self.losses if higher else self.wins,
            test="z",
        )

    @property
    def p(self) -> float | None:
        """The two-sided p value of the mean difference, by a z test.

        It is never below what sign flips of as many queries that differ could reach.
        """
        moments = self.tested.moments
        if moments.n and not (self.wins or self.losses):
            return 1.0
        if moments.n < 2:
            return None
        one, two = (each.value for each in moments.sums[:2])
        variance = max(two / moments.n - (one / moments.n) ** 2, 0.0) / (moments.n - 1)
        if self.clustered and variance:
            variance = self.tested.sampled_variance()
        if not variance and one and self.clustered:
            return None
        found = 1.0 if not one else 0.0
        if variance:
            found = math.erfc(abs(moments.mean) / math.sqrt(2 * variance))
        return max(found, 2.0 ** (1 - min(max(self.wins + self.losses, 1), 1_000)))


def compare(
    before: SparkResult | DataFrame | str,
    after: SparkResult | DataFrame | str,
    *,
    level: float = LEVEL,
) -> pl.DataFrame:
    """Compare two evaluations query by query, inside Spark: one row for each measure.

    Each is a result, a frame as `per_query` is, or where that was written to: a path or
    `table:NAME`. A frame with several run ids is refused: filter it. Queries that only one of them
    has, or that have no value in one of them, are counted as `unpaired` and left out. Differences
    are those of means, of sums or of geometric means, as the measure is aggregated. `p` is that of
    the two-sided normal (z) test of the mean difference: random sign flips would need all queries
    in one place. It decides the `verdict` (better, worse, same, unclear) and whether 0 is in the
    interval. Where a result has a `cluster`, its queries are drawn together.
    """
    require_pyspark()
    check_share("level", level)
    limits = {
        name: limit
        for each in (before, after)
        if isinstance(each, SparkResult)
        for name, relation in each.matched_by.items()
        if (limit := verdict_limit(each.judge, relation))
    }
    rows = []
    for name, found in sorted(_paired(before, after, 1.0).items()):
        verdict, limit = found.verdict(level), limits.get(name, "")
        if limit:
            verdict = withhold(verdict, limit)
        rows.append(
            {
                "measure": name,
                "verdict": verdict.word,
                "before": found.sides[0],
                "after": found.sides[1],
                "difference": verdict.difference.value,
                "low": verdict.difference.low,
                "high": verdict.difference.high,
                "p": verdict.p,
                "n": verdict.difference.n,
                "wins": found.wins,
                "losses": found.losses,
                "unpaired": found.unpaired,
                "reason": verdict.reason,
            }
        )
    if not rows:
        raise InputError(
            "the two evaluations share no query and measure",
            fix="compare evaluations of the same measures on the same queries",
        )
    return pl.DataFrame(rows, schema=COLUMNS)


@takes_options()
def gate(
    result: SparkResult,
    requirements: Iterable[str] | str,
    *,
    baseline: SparkResult | DataFrame | str | None = None,
    decide: str = "interval",
    undecided: str = "error",
) -> GateReport:
    """Hold a result against requirements, as `findwell.gate` does; all queries count, not a sample.

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
        figure = find_figure(each.subject)
        if figure is not None and figure.field:
            raise OptionError(
                f"{each.text}: the Spark engine knows nothing about {each.subject}",
                fix="hold a result of findwell.evaluate against it",
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
    if not asked.is_of_measure:  # queries without a value, by the worst measure
        most = float(result.summary[asked.subject].max() or 0)  # type: ignore[arg-type]
        value = most / max(result.queries, 1) if asked.share else most
        count = Estimate(value, None, None, level, "", result.queries)
        return hold(asked, result.run, asked.subject, count, by_value=True)
    measure = _measure(result, asked.subject)
    relation = result.matched_by[str(measure)]
    by_value = decide == "value" or is_fact(measure)
    if asked.factor is None:
        found = row_interval(result.interval_row(measure, level), level)
        found = replace(found, low=None, high=None) if is_fact(measure) else found
        held = hold(asked, result.run, str(measure), found, by_value=by_value)
        return held.by_judge([result.judge], relation)
    pairs = paired[asked.factor].get(str(measure))
    if pairs is None:
        raise MeasureError(
            f"the baseline has no {measure}", where="baseline", fix="evaluate it with this measure"
        )
    verdict = pairs.verdict(level)
    held = hold(
        asked,
        result.run,
        str(measure),
        verdict.difference if asked.factor == 1 else pairs.interval(level),
        by_value=by_value or verdict.word == SAME,
        sides=pairs.sides,
        verdict=verdict if asked.factor == 1 else None,
    )
    return held.by_judge([result.judge], relation)


def _measure(result: SparkResult, name: str) -> Measure:
    known = select_measures(name, result.measures, result.dialect)
    if known:
        return known[0]
    (wanted,) = resolve_measures(name, result.dialect)
    raise MeasureError(
        f"{wanted} was not measured",
        fix=f"evaluate with it, too (measured: {', '.join(map(str, result.measures))})",
    )


def _paired(
    before: SparkResult | DataFrame | str, after: SparkResult | DataFrame | str, factor: float
) -> dict[str, _Paired]:
    """Bring the values of both together in Spark, and add up their differences by measure."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    with naming_errors():
        one, other = _values(before, "before"), _values(after, "after")
        joined = one.join(other, on=["query", "measure"], how="full_outer")
        clusters = _clusters(before, after)
        if clusters is not None:
            joined = joined.join(clusters, on="query", how="left")
        both = F.col("before").isNotNull() & F.col("after").isNotNull()
        measures = _measures(before, after, joined)
        geometric = [name for name, each in measures.items() if each.aggregation == "geometric"]
        logarithm = F.col("measure").isin(geometric)
        scaled = {
            name: F.when(
                logarithm, F.log(F.greatest(F.col(name), F.lit(GEOMETRIC_FLOOR)))
            ).otherwise(F.col(name))
            for name in ("before", "after")
        }
        sides = [F.when(both, scaled[name]) for name in ("before", "after")]
        weights = {}
        if geometric:
            means = _added(joined.filter(logarithm), sides)
            weights = {
                name: _to_first_order(old, new, factor) for name, (old, new) in means.items()
            }
        part = scaled["after"] - F.lit(factor) * scaled["before"]
        for name, (high, low, shift) in weights.items():
            first = F.lit(high) * scaled["after"] - F.lit(low) * scaled["before"] + F.lit(shift)
            part = F.when(F.col("measure") == name, first).otherwise(part)
        tested = F.when(both, scaled["after"] - scaled["before"])
        moved = F.when(both, F.col("after") - F.col("before"))
        signs = [F.when(moved > TIE, 1.0), F.when(moved < -TIE, 1.0)]
        samples = 0 if clusters is None else SAMPLES
        tallies = _added(joined, [F.when(both, part), tested, *sides, *signs], samples)
    found = {}
    for name, mine in tallies.items():
        if not mine[0].moments.n:
            continue
        measure = measures.get(name)
        how = "mean" if measure is None else measure.aggregation
        least, largest = bounds_on_scale(UNIT if measure is None else measure.bounds, [how])
        most = float(largest[0] - least[0]) * max(1.0, abs(factor))
        if name in weights:
            most *= math.sqrt(weights[name][0] * weights[name][1] / (factor or 1.0))
        change, differences, old, new, won, lost = mine
        found[name] = _Paired(
            statistic=how,
            change=change,
            tested=differences,
            before=old,
            after=new,
            most=most,
            wins=won.moments.n,
            losses=lost.moments.n,
            unpaired=change.undefined,
            clustered=clusters is not None,
            higher_is_better=measure is None or measure.higher_is_better,
            factor=factor,
        )
    return found


def _to_first_order(before: Tally, after: Tally, factor: float) -> tuple[float, float, float]:
    """Return what logarithms are worth in a difference of geometric means, and what is added.

    So each query has what it does to the difference, and their mean is the difference.
    """
    if not before.moments.n:
        return 1.0, factor, 0.0
    high, low = math.exp(after.moments.mean), factor * math.exp(before.moments.mean)
    shift = high - low - (high * after.moments.mean - low * before.moments.mean)
    return high, low, shift


def _added(joined: DataFrame, values: list[Any], samples: int = 0) -> dict[str, list[Tally]]:
    """Add up values of pairs by measure."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    cluster = F.col("cluster") if "cluster" in joined.columns else F.lit(None)
    rows = joined.select(
        F.lit(VALUES).cast("tinyint").alias("kind"),
        "query",
        cluster.cast("string").alias("cluster"),
        F.array("measure").alias("slices"),
        F.array(*values).alias("values"),
        F.lit(None).cast("array<boolean>").alias("failed"),
        F.lit(None).cast("array<double>").alias("lower"),
        F.lit(None).cast("array<double>").alias("upper"),
        F.lit(None).cast("binary").alias("data"),
    )
    plan = SummaryPlan(("mean",) * len(values), ("measure",), samples, clustered=samples > 0)
    tallies, _ = add_up(rows, plan)
    names = {name for column, name, _ in tallies if column == "measure" and name is not None}
    return {name: [tallies["measure", name, at] for at in range(len(values))] for name in names}


def _clusters(*given: object) -> DataFrame | None:
    """Return query and cluster, where a result has them."""
    for each in reversed(given):
        if isinstance(each, SparkResult) and each.made.plan.cluster is not None:
            return each.rows.filter(each.rows["kind"] == VALUES).select("query", "cluster")
    return None


def _measures(before: object, after: object, joined: DataFrame) -> dict[str, Measure]:
    """Return the measures by their names; an unknown one is aggregated as a mean."""
    for given in (after, before):
        if isinstance(given, SparkResult):  # a measure that it lacks has no pairs
            return {str(each): each for each in given.measures}
    found = {}
    for (name,) in joined.select("measure").distinct().collect():
        with contextlib.suppress(MeasureError):
            found[name] = parse_measure(name)
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
            fix="give a result of findwell.spark.evaluate, or what its write() wrote",
        )
    if "run_id" in frame.columns and not isinstance(given, SparkResult):
        ids = [row[0] for row in frame.select("run_id").distinct().limit(2).collect()]
        if len(ids) > 1:
            raise OptionError(
                f"there are several evaluations: {ids[0]}, {ids[1]}, …",
                where=name,
                fix='choose one: spark.read.parquet(path).filter("run_id = …")',
            )
    if not isinstance(given, SparkResult):  # an id written twice to a table, or several runs
        counted = frame.groupBy("query", "measure").count()
        for row in counted.filter(counted["count"] > 1).limit(1).collect():
            raise InputError(
                f"{row['measure']} of query {row['query']!r} is there {row['count']} times",
                where=name,
                fix="keep one row for each query and measure; writing a run_id to a table again "
                "appends its rows",
            )
    return frame.select("query", "measure", frame["value"].alias(name))
