"""What labels of some pairs say about the values of all, in addition to what a judge says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from findwell.core import display
from findwell.core.errors import choose
from findwell.core.estimate import Estimate, Estimated
from findwell.core.findings import Finding
from findwell.core.frames import pl

IN_JSON = (
    *("run", "measure", "method", "value", "low", "high", "labels", "effective", "estimator"),
    *("reason", "baseline"),
)
METHODS = ("judge", "labels", "ppi")
SCHEMA: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("run", "baseline", "measure", "method"), pl.String),
    **dict.fromkeys(("value", "low", "high"), pl.Float64),
    "labels": pl.Int64,
    "effective": pl.Float64,
    **dict.fromkeys(("estimator", "reason"), pl.String),
}


@dataclass(frozen=True, slots=True)
class EstimateRow(Estimated):
    """A value of a run, or its difference from a baseline, by one method.

    The method says whose word counts: the judge's alone, that of labels alone, or both (ppi). The
    `estimator` says how labels were used: `all` (everything needed was labelled), `pairs` (a sample
    of pairs), `ratio` (of two sums of such a sample), `queries` (some queries as a whole), or
    `bounds`, where low and high are what the missing labels leave possible and there is no value.
    """

    run: str
    measure: str
    method: str
    estimate: Estimate
    labels: int
    effective: float | None  # labels that would give the same precision without the judge
    estimator: str = ""
    baseline: str | None = None  # the value is what the run has more than this one

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate as the JSON output prints it."""
        return {name: getattr(self, name) for name in IN_JSON}

    @classmethod
    def of(cls, row: Mapping[str, Any], level: float) -> EstimateRow:
        """Return what `as_dict` was made of."""
        given = dict(row)
        value, low, high = (given.pop(name) for name in ("value", "low", "high"))
        reason = given.pop("reason", "")
        estimate = Estimate(value, low, high, level, "", given["labels"], reason=reason)
        return cls(estimate=estimate, **given)


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(display.Shown):
    """Estimates, and the design that they rest on; what `findwell.labels.ppi` returns.

    `design` says how many labels there are and how they were drawn, and for each measure which
    estimator was used and why.
    """

    rows: tuple[EstimateRow, ...]
    design: Mapping[str, Any] = field(default_factory=dict)
    level: float = 0.95

    def __iter__(self) -> Iterator[EstimateRow]:
        """Go through the estimates, in the order of `rows`."""
        return iter(self.rows)

    def __getitem__(self, key: tuple[str, ...]) -> EstimateRow:
        """Return an estimate: `found["P@5", "ppi"]`, or `found["bm25", "P@5", "ppi"]`."""
        *run, measure, method = key
        named = {
            (each.run, each.measure, each.method): each
            for each in self.rows
            if each.baseline is None
        }
        runs = list(dict.fromkeys(name for name, _, _ in named))
        chosen = choose("run", run[0] if run else runs[0], runs)
        measures = list(dict.fromkeys(name for _, name, _ in named))
        measure = choose("measure", measure, measures)
        methods = [how for name, what, how in named if (name, what) == (chosen, measure)]
        return named[chosen, measure, choose("method", method, methods)]

    def best(self, run: str, measure: str) -> EstimateRow | None:
        """Return the estimate of a run to report: labels and judge together, or labels alone."""
        methods = {
            each.method: each
            for each in self.rows
            if each.baseline is None and (each.run, each.measure) == (run, measure)
        }
        return methods.get("ppi") or methods.get("labels")

    @property
    def frame(self) -> pl.DataFrame:
        """One row for each run, measure and method."""
        return pl.DataFrame([each.as_dict() for each in self.rows], schema=SCHEMA)

    @property
    def differences(self) -> tuple[EstimateRow, ...]:
        """What runs have more than the first one."""
        return tuple(each for each in self.rows if each.baseline is not None)

    def unlabelled(self) -> list[Finding]:
        """Return the finding for measures that are taken of the labels without an estimate."""
        labels, pairs = self.design["labels"], self.design.get("pairs", 0)
        count, known = pairs - labels, f"{labels} of {pairs} pairs have one"
        message = "pair of the pool without a label: it counts as not relevant"
        fix = "estimate these measures from the labels: findwell score RUN --labels POOL"
        return [Finding("partly-labelled", count, (known,), message, fix)] if count > 0 else []

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as the JSON output prints it."""
        return {
            "estimates": [each.as_dict() for each in self.rows],
            "labels": {"level": self.level, **self.design},
        }

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], labels: Mapping[str, Any]) -> Estimates:
        """Return what `as_dict` was made of."""
        design = {name: value for name, value in labels.items() if name != "level"}
        level = float(labels["level"])
        return cls(tuple(EstimateRow.of(row, level) for row in rows), design, level)
