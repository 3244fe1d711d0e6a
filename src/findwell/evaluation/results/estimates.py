"""What labels of some pairs say about the values of all, in addition to what a judge says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from findwell.core import display
from findwell.core.errors import choose
from findwell.core.estimate import Estimate, Estimated
from findwell.core.findings import Finding
from findwell.core.frames import pl

IN_JSON = (
    *("run", "measure", "method", "value", "low", "high", "labels", "effective", "estimator"),
    *("reason", "baseline"),
)
RANKED_BY_LABELS = 5  # systems: more of them are ranked by the judge alone, unless all is labelled
MANY_SYSTEMS = "few labels give values and differences, but add more noise to an order than a judge"
WRONG_JUDGE = "the labels show that the judge is wrong about"
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


class RunRanking(NamedTuple):
    """Runs from the best to the worst, by a method: whose word decides."""

    measure: str
    method: str
    runs: list[str]
    why: str = ""


def _contradict(judge: EstimateRow, labels: EstimateRow) -> bool:
    """Tell whether two estimates of a difference are both sure, and opposite."""
    ends = (judge.low, judge.high, labels.low, labels.high)
    if any(each is None for each in ends):
        return False
    low, high, least, most = (float(each or 0.0) for each in ends)
    return (high < 0 < least) or (most < 0 < low)


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

    def ranking(self, measure: str) -> RunRanking:
        """Return the runs from the best to the worst by a measure, and whose word decides.

        Labels and judge together give values and differences. To order many systems by few labels,
        the judge alone is better: the noise of the labels moves every system by itself, the error
        of a judge moves all of them. Where the labels show that the judge has a pair of systems the
        wrong way round, it does not decide.
        """
        rows = [each for each in self.rows if each.measure == measure]
        values = {(each.method, each.run): each.value for each in rows if each.baseline is None}
        runs = list(dict.fromkeys(run for _, run in values))
        by, why = ("ppi" if ("ppi", runs[0]) in values else "labels"), ""
        whole = all(each.estimator == "all" for each in rows if each.method == "labels")
        if by == "ppi" and len(runs) > RANKED_BY_LABELS and not whole:
            apart = {(each.method, each.run): each for each in rows if each.baseline is not None}
            wrong = [run for run in runs[1:] if _contradict(apart["judge", run], apart["ppi", run])]
            by, why = ("judge", MANY_SYSTEMS) if not wrong else ("ppi", f"{WRONG_JUDGE} {wrong[0]}")
        known = {run: value for run in runs if (value := values.get((by, run))) is not None}
        return RunRanking(measure, by, sorted(known, key=lambda run: -known[run]), why)

    def rankings(self) -> list[RunRanking]:
        """Return the order of the runs by each measure; none of a single run."""
        named = dict.fromkeys(each.measure for each in self.rows if each.baseline is not None)
        return [self.ranking(measure) for measure in named]

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
        message = "# pair|pairs of the pool has|have no label and counts|count as not relevant."
        fix = "estimate these measures from the labels: findwell score RUN --labels POOL"
        return [Finding("partly-labelled", count, (known,), message, fix)] if count > 0 else []

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as the JSON output prints it."""
        ranked = [each._asdict() for each in self.rankings()]
        return {
            "estimates": [each.as_dict() for each in self.rows],
            "labels": {"level": self.level, **self.design},
            **({"rankings": ranked} if ranked else {}),
        }

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], labels: Mapping[str, Any]) -> Estimates:
        """Return what `as_dict` was made of."""
        design = {name: value for name, value in labels.items() if name != "level"}
        level = float(labels["level"])
        return cls(tuple(EstimateRow.of(row, level) for row in rows), design, level)
