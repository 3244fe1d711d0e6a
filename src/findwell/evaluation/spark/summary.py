"""Summaries inside Spark: each partition adds up its values, and what they say is merged by key.

A key is a slice and a measure. Only the merged rows reach the driver: one for each key.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import AlignError
from findwell.core.findings import Finding, merge_findings
from findwell.core.frames import pl
from findwell.evaluation.spark.arrow import to_batches
from findwell.evaluation.spark.task import NOTES, VALUES
from findwell.statistics.intervals import ONE_CLUSTER
from findwell.statistics.moments import (
    ExactSum,
    Moments,
    bootstrap_limits,
    name_hashes,
    poisson_weights,
)
from findwell.statistics.values import from_scale, to_scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from findwell.core.data import Floats
    from findwell.core.estimate import Estimate

ALL = ""  # the column of the row over all queries
NOTED = "findwell notes"  # the column of what is worth knowing
BOOTSTRAP = "poisson-bootstrap"
SLICES = 100_000  # values of a column: more of them are no slices
SUMS = ("sum1", "sum2", "sum3", "lower", "upper")
SCHEMA = (
    "`column` string, slice string, measure int, n long, undefined long, failed long, "
    "least double, most double, sum1 array<double>, sum2 array<double>, sum3 array<double>, "
    "lower array<double>, upper array<double>, lower_n long, upper_n long, "
    "drawn array<double>, weights array<double>, "
    "notes string"
)
LISTED = pl.List(pl.Float64)
FRAME: dict[str, Any] = {
    "column": pl.String,
    "slice": pl.String,
    "measure": pl.Int32,
    **dict.fromkeys(("n", "undefined", "failed"), pl.Int64),
    **dict.fromkeys(("least", "most"), pl.Float64),
    **dict.fromkeys(SUMS, LISTED),
    **dict.fromkeys(("lower_n", "upper_n"), pl.Int64),
    **dict.fromkeys(("drawn", "weights"), LISTED),
    "notes": pl.String,
}


@dataclass(frozen=True, slots=True)
class SummaryPlan:
    """How values are added up; it is sent to the executors."""

    statistics: tuple[str, ...]  # of each measure: mean, sum or geometric
    slices: tuple[str, ...] = ()
    samples: int = 0  # of the bootstrap; 0: none
    clustered: bool = False  # whether queries with the same cluster are drawn together


@dataclass(slots=True)
class BoundSum:
    """The sum of the lowest or the highest values that are possible, on the measure's scale."""

    total: ExactSum = field(default_factory=ExactSum)
    n: int = 0

    def add(self, limits: Floats) -> None:
        """Add the limits that are known."""
        known = limits[~np.isnan(limits)]
        self.total.add(known.tolist())
        self.n += len(known)

    def merge(self, other: BoundSum) -> None:
        """Add those of another."""
        self.total.add(other.total.parts)
        self.n += other.n

    def value(self, statistic: str) -> float | None:
        """Return the aggregated limit; None if none is known."""
        if not self.n:
            return None
        total = self.total.value
        return total if statistic == "sum" else from_scale(total / self.n, statistic, self.n)


@dataclass(slots=True)
class Tally:
    """What the queries of a key say about one measure."""

    moments: Moments = field(default_factory=Moments)
    undefined: int = 0
    failed: int = 0
    lower: BoundSum = field(default_factory=BoundSum)
    upper: BoundSum = field(default_factory=BoundSum)
    drawn: Floats | None = None  # weighted sums of the values, one for each sample
    weights: Floats | None = None

    def merge(self, other: Tally) -> None:
        """Add what another says."""
        self.moments.merge(other.moments)
        self.undefined += other.undefined
        self.failed += other.failed
        self.lower.merge(other.lower)
        self.upper.merge(other.upper)
        if other.drawn is not None and other.weights is not None:
            self.draw(other.drawn, other.weights)

    def draw(self, drawn: Floats, weights: Floats) -> None:
        """Add the weighted sums of samples."""
        if self.drawn is None or self.weights is None:
            self.drawn, self.weights = drawn.copy(), weights.copy()
        else:
            self.drawn += drawn
            self.weights += weights

    def means(self) -> Floats | None:
        """Return the means of the samples of the bootstrap; None if there was none."""
        if self.drawn is None or self.weights is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            means: Floats = self.drawn / self.weights
        return means[np.isfinite(means)]

    def limits(self, level: float) -> tuple[float, float] | None:
        """Return the limits of the bootstrap."""
        means = self.means()
        return None if means is None else bootstrap_limits(means, level)

    def sampled_variance(self) -> float:
        """Return the variance of the mean, as the samples of the bootstrap have it."""
        means = self.means()
        if means is None or len(means) < 2 or self._is_one_cluster():
            return 0.0
        return float(np.var(means, ddof=1))

    def bootstrapped(self, span: Estimate, statistic: str = "mean", *, clustered: bool) -> Estimate:
        """Return an interval of moments with the limits of the bootstrap, if it has any."""
        limits = self.limits(span.level)
        varied = self.moments.least < self.moments.most  # otherwise all samples are equal
        if limits is None or not varied or span.reason:
            return span
        if clustered and self._is_one_cluster():
            return replace(span, low=None, high=None, method="", reason=ONE_CLUSTER)
        low, high = (from_scale(each, statistic, span.n) for each in limits)
        return replace(span, low=low, high=high, method=BOOTSTRAP)

    def _is_one_cluster(self) -> bool:
        """Tell whether all queries were drawn together: each sample has all of them, k times."""
        return self.weights is not None and not (self.weights % self.moments.n).any()

    def row(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        return {
            "n": self.moments.n,
            "undefined": self.undefined,
            "failed": self.failed,
            "least": self.moments.least,
            "most": self.moments.most,
            **{
                name: total.compact()
                for name, total in zip(
                    SUMS, (*self.moments.sums, self.lower.total, self.upper.total), strict=True
                )
            },
            "lower_n": self.lower.n,
            "upper_n": self.upper.n,
            "drawn": None if self.drawn is None else self.drawn.tolist(),
            "weights": None if self.weights is None else self.weights.tolist(),
        }

    @classmethod
    def of(cls, row: dict[str, Any]) -> Tally:
        """Return what `row` was made of."""
        one, two, three, lower, upper = (ExactSum(list(row[name])) for name in SUMS)
        drawn, weights = (
            None if row[name] is None else np.array(row[name]) for name in ("drawn", "weights")
        )
        moments = Moments(row["n"], (one, two, three), row["least"], row["most"])
        bounds = BoundSum(lower, row["lower_n"]), BoundSum(upper, row["upper_n"])
        return cls(moments, row["undefined"], row["failed"], *bounds, drawn, weights)


Keys = dict[tuple[str, str | None, int], Tally]


def summarise_batches(
    plan: SummaryPlan, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Add up the rows of a partition, as `findwell.evaluation.spark.task` returns them."""
    keys: Keys = {}
    notes = Notes()
    for batch in batches:
        frame = pl.DataFrame(batch)
        for data in frame.filter(frame["kind"] == NOTES)["data"]:
            notes.add(json.loads(data))
        rows = frame.filter(frame["kind"] == VALUES)
        if rows.height:
            _add(plan, rows, keys)
    yield from _batches(keys, notes)


def merge_batches(plan: SummaryPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge what partitions added up, which comes sorted by key."""
    del plan
    keys: Keys = {}
    notes = Notes()
    for batch in batches:
        for row in pl.DataFrame(batch).iter_rows(named=True):
            if row["column"] == NOTED:
                notes.add(json.loads(row["notes"]))
            else:
                key = row["column"], row["slice"], row["measure"]
                keys.setdefault(key, Tally()).merge(Tally.of(row))
    yield from _batches(keys, notes)


def _add(plan: SummaryPlan, rows: pl.DataFrame, keys: Keys) -> None:
    values = _table(rows["values"], len(plan.statistics))
    scaled = to_scale(values, plan.statistics)
    failed = _flags(rows["failed"], values.shape)
    bounds = [
        scaled
        if rows[name].null_count() == rows.height
        # of a batch in which no verdict failed, the values are all that there is
        else to_scale(
            _table(rows.select(pl.coalesce(name, "values")).to_series(), values.shape[1]),
            plan.statistics,
        )
        for name in ("lower", "upper")
    ]
    weights = None
    if plan.samples:
        weights = poisson_weights(_units(plan, rows), plan.samples)
    groups: list[tuple[str, str | None, Any]] = [(ALL, None, slice(None))]
    for at, column in enumerate(plan.slices):
        labels = rows["slices"].list.get(at, null_on_oob=True)
        places = pl.DataFrame({"label": labels}).with_row_index("row")
        for (label,), part in places.group_by("label", maintain_order=True):
            groups.append((column, label, part["row"].to_numpy()))
    for column, label, inside in groups:
        drawing = None if weights is None else weights[inside]
        for measure in range(values.shape[1]):
            tally = keys.setdefault((column, label, measure), Tally())
            mine = scaled[inside, measure]
            known = ~np.isnan(mine)
            tally.moments.add(mine[known])
            lost = int(failed[inside, measure].sum())
            tally.failed += lost
            tally.undefined += int((~known).sum()) - lost
            for total, limits in zip((tally.lower, tally.upper), bounds, strict=True):
                total.add(limits[inside, measure])
            if drawing is not None:
                held = drawing[known]
                drawn = np.einsum("i,ij->j", mine[known], held)  # in a fixed order
                tally.draw(drawn, held.sum(axis=0))
    if len(keys) > SLICES * len(plan.statistics):
        raise AlignError(
            f"a column has more than {SLICES:,} values, which are no slices",
            where="slices",
            fix="slice by a column with few values",
        )


def _units(plan: SummaryPlan, rows: pl.DataFrame) -> Any:  # noqa: ANN401
    """Return what is drawn: queries, or clusters of them; a query without one stands alone."""
    if not plan.clustered:
        return name_hashes(rows["query"])
    return name_hashes(
        pl.select(
            pl.when(rows["cluster"].is_null())
            .then(pl.lit("query ") + rows["query"])
            .otherwise(pl.lit("cluster ") + rows["cluster"])
        ).to_series()
    )


def _table(lists: pl.Series, columns: int) -> Floats:
    flat = lists.explode(empty_as_null=False).cast(pl.Float64).fill_null(math.nan)
    return flat.to_numpy().reshape(-1, columns)


def _flags(lists: pl.Series, shape: tuple[int, ...]) -> np.ndarray:
    if lists.null_count() == len(lists):
        return np.zeros(shape, dtype=bool)
    none = pl.Series([[False] * shape[1]], dtype=pl.List(pl.Boolean))
    filled = lists.to_frame("x").select(pl.col("x").fill_null(none.first())).to_series()
    return filled.explode(empty_as_null=False).to_numpy().reshape(shape)


class Notes:
    """What is worth knowing about the queries of several batches."""

    def __init__(self) -> None:
        self.findings: tuple[Finding, ...] = ()
        self.facts: dict[str, int] = {}
        self.judge: dict[str, Any] = {}

    def add(self, said: dict[str, Any]) -> None:
        """Add what one batch, or several, have to say."""
        found = map(_finding, said["findings"])
        self.findings = merge_findings((*self.findings, *found))
        facts = dict(said["facts"])
        self.judge = self.judge or facts.pop("judge", {})
        facts.pop("judge", None)
        for name, count in facts.items():
            self.facts[name] = self.facts.get(name, 0) + count

    def row(self) -> dict[str, Any] | None:
        """Return it as a row of a table; None if there is nothing."""
        if not self.facts and not self.findings:
            return None
        facts = {**self.facts, **({"judge": self.judge} if self.judge else {})}
        said = {"findings": [each.as_dict() for each in self.findings], "facts": facts}
        return {"column": NOTED, "measure": -1, "notes": json.dumps(said)}


def _finding(said: dict[str, Any]) -> Finding:
    """Return a finding; what it says about the values of a batch is left out."""
    message = said["message"]
    if said["kind"] == "tied-scores":
        message = message.partition("; in another order")[0]
    return Finding(**{**said, "message": message, "examples": tuple(said["examples"])})


def _batches(keys: Keys, notes: Notes) -> Iterator[pa.RecordBatch]:
    rows = [
        {"column": column, "slice": label, "measure": measure, **tally.row()}
        for (column, label, measure), tally in keys.items()
    ]
    noted = notes.row()
    rows += [] if noted is None else [noted]
    frame = pl.DataFrame(rows, schema=FRAME)
    yield from to_batches(frame)


def value_of(tally: Tally, statistic: str) -> float | None:
    """Return the aggregated value."""
    n = tally.moments.n
    if not n:
        return None
    if statistic == "sum":
        return tally.moments.sums[0].value
    return from_scale(tally.moments.mean, statistic, n)
