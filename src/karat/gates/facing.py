"""One run held against requirements, beside the run of a baseline that it is compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.comparison.pairing import BETWEEN, Pairing, pair
from karat.comparison.systems import System, same_dialect
from karat.errors import OptionError
from karat.gates.verdicts import PASS, Line, Verdict, of_difference, of_value
from karat.measures.aggregate import aggregate
from karat.statistics.intervals import Interval
from karat.statistics.paired import paired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.findings import Finding
    from karat.gates.requirements import Requirement
    from karat.measures import Measure
    from karat.results.result import Result

COVERAGE = ("judged", "unjudged")
NO_BASELINE = "there is no baseline yet"


class RunAgainstBaseline:
    """A run of a result that has a level, and perhaps a baseline to be compared with."""

    def __init__(
        self, result: Result, run: str, baseline: Result | None, measures: Sequence[Measure]
    ) -> None:
        self.result, self.run = result, run
        self.level = result.level or 0.0
        rows = result.summary.to_dicts()
        self.rows = {row["measure"]: row for row in rows if row["run"] == run}
        self.pairing: Pairing | None = None
        self.findings: tuple[Finding, ...] = ()
        if baseline is not None:
            before = replace(baseline, measures=tuple(measures))
            other = System("baseline", before, _its_run(baseline, run))
            same_dialect([other], result.dialect)
            mine = replace(result, measures=tuple(measures))
            self.pairing = pair([other, System(run, mine, run)])
            every = self.pairing.findings
            self.findings = tuple(each for each in every if each.kind in BETWEEN)

    def verdict(self, asked: Requirement, measure: Measure | str, decide: str) -> Verdict:
        """Hold the run against one requirement."""
        found = self._verdict(asked, measure, decide)
        if isinstance(measure, str):
            return found
        return replace(found, relation=self.result.relation_name(measure))

    def _verdict(self, asked: Requirement, measure: Measure | str, decide: str) -> Verdict:
        line = Line(asked.sign, asked.number)
        if isinstance(measure, str):
            return of_value(asked.text, self.run, measure, line, self._count(asked), True)
        by_value = decide == "value" or is_fact(measure)
        if asked.factor is None:
            found = self._estimate(measure)
            if is_fact(measure):
                found = replace(found, low=None, high=None)
            return of_value(asked.text, self.run, str(measure), line, found, by_value)
        if self.pairing is None:
            found = self._estimate(measure)
            passed = of_value(asked.text, self.run, str(measure), line, found, True)
            return replace(passed, outcome=PASS, reason=NO_BASELINE)
        return self._against(self.pairing, asked, measure, by_value=by_value)

    def _estimate(self, measure: Measure) -> Interval:
        row: dict[str, Any] = self.rows[str(measure)]
        return Interval(
            value=row["value"],
            low=row["low"],
            high=row["high"],
            level=self.level,
            method="",
            n=row["n"],
            undefined=row["undefined"],
            reason=self.result.interval["reasons"].get(self.run, {}).get(str(measure), ""),
        )

    def _count(self, asked: Requirement) -> Interval:
        """Return how many queries lack a value, or their share, of the measure with most."""
        top = max(self.rows.values(), key=lambda row: row[asked.subject])
        queries = top["n"] + top["undefined"] + top["failed"]
        count = float(top[asked.subject])
        value = count / max(queries, 1) if asked.share else count
        return Interval(value, None, None, self.level, "", queries, 0)

    def _against(
        self, pairing: Pairing, asked: Requirement, measure: Measure, *, by_value: bool
    ) -> Verdict:
        """Hold the difference from the baseline, times its factor, against the margin."""
        at = pairing.measures.index(measure)
        before, after = pairing.values[:, 0, at], pairing.values[:, 1, at]
        both = ~(np.isnan(before) | np.isnan(after))
        column = self.result.options.cluster
        (found,) = paired(
            before,
            after,
            statistic=measure.aggregation,
            level=self.level,
            bounds=measure.bounds,
            factor=1.0 if asked.factor is None else asked.factor,
            clusters=None if column is None else pairing.column(column).to_list(),
            permutations=1,  # only the interval is asked for
        )
        return of_difference(
            asked.text,
            self.run,
            str(measure),
            Line(asked.sign, asked.number),
            found.difference,
            (aggregate(measure, before[both]).value, aggregate(measure, after[both]).value),
            by_value or not (found.wins or found.losses),
        )


def is_fact(measure: Measure) -> bool:
    """Tell what is counted on this evaluation from what is estimated by it."""
    return measure.aggregation == "sum" or measure.name in COVERAGE


def _its_run(baseline: Result, run: str) -> str:
    if run in baseline.runs:
        return run
    if len(baseline.runs) == 1:
        return baseline.runs[0]
    raise OptionError(
        f"the baseline has several runs, and none is called {run}: {', '.join(baseline.runs)}",
        fix="give the run the name of one of them, or save a baseline with one run",
    )
