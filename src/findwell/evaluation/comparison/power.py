"""How many queries a comparison needs, from results or from assumed numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from findwell.core import display
from findwell.core.errors import OptionError, check_share, choose
from findwell.core.forks import refuse_after_fork
from findwell.core.spelling import counted
from findwell.evaluation.comparison.pairing import pair
from findwell.evaluation.comparison.systems import gather
from findwell.evaluation.plan import RunOptions, flat_options, takes_plan
from findwell.judges.limits import judge_lines
from findwell.statistics.intervals import Quantity, is_binary
from findwell.statistics.sample_size import PlannedComparison, PowerPoint, sd_of_difference, spread

if TYPE_CHECKING:
    from findwell.core.findings import Finding
    from findwell.evaluation.comparison.pairing import Pairing
    from findwell.evaluation.comparison.systems import SystemLike
    from findwell.io.read import GoldLike
    from findwell.measures import Measure

CORRELATION = 0.5  # between two systems, if only one is known: cautious, mostly it is higher


@dataclass(frozen=True, slots=True)
class PowerPlan:
    """What a number of queries can show by one measure; None where it was not asked for."""

    measure: str
    basis: str  # where the standard deviation is from
    sd: float | None  # of the differences between two systems
    changed: float | None  # of hit or miss: the share of queries that change
    queries: int | None  # at hand
    difference: float | None  # to be seen
    power: float
    alpha: float
    needed: Quantity | None = None  # queries that show the difference
    seen: Quantity | None = None  # the power of the queries at hand to show it
    detectable: Quantity | None = None  # the difference that the queries at hand show
    width: Quantity | None = None  # of the interval that they will give
    curve: tuple[PowerPoint, ...] = ()
    reason: str = ""
    relation: str = ""  # that the measure reads, with its parameters


@dataclass(frozen=True, slots=True, repr=False)
class PowerAnalysis(display.Shown):
    """One plan per measure and pair of systems, and problems in what the systems were read from."""

    plans: tuple[PowerPlan, ...]
    findings: tuple[Finding, ...] = ()
    judges: tuple[str, ...] = ()  # of the systems, each with what its numbers are worth

    def __iter__(self) -> Iterator[PowerPlan]:
        """Go through the plans, one for each measure."""
        return iter(self.plans)

    def __getitem__(self, measure: str) -> PowerPlan:
        """Return the plan by a measure; that from assumed numbers has no name: `found[""]`."""
        by_name = {plan.measure: plan for plan in reversed(self.plans)}
        return by_name[choose("measure", measure, by_name)]

    def as_dict(self) -> dict[str, Any]:
        """Return the analysis as the JSON output prints it."""
        return {
            "plans": [asdict(plan) for plan in self.plans],
            "findings": [finding.as_dict() for finding in self.findings],
            **({"judges": list(self.judges)} if self.judges else {}),
        }


@takes_plan(RunOptions)
def power(
    *systems: SystemLike,
    measures: Iterable[str | Measure] | str | None = None,
    gold: GoldLike | None = None,
    rel: float | None = None,
    difference: float | None = None,
    sd: float | None = None,
    changed: float | None = None,
    queries: int | None = None,
    correlation: float = CORRELATION,
    power: float = 0.8,
    alpha: float = 0.05,
    sizes: Sequence[int] | None = None,
    **options: Unpack[RunOptions],
) -> PowerAnalysis:
    """Say how many queries show a difference, and which difference the queries at hand show.

    All depends on how differences between two systems vary. Two systems (results, folders, runs
    with gold labels) show that; of one only its own values are known, and `correlation` with the
    other is assumed. Without systems `sd` is the standard deviation of the differences; for a
    hit-or-miss measure `changed`, the share of queries on which two systems differ, is enough.
    `queries` is how many are at hand, by default those of the systems. `power` is the chance to see
    the difference, `alpha` the chance to see one where there is none, and `sizes` are numbers of
    queries for the curve. Further options (`by`, `dialect`, `reading`, …) are those of
    `findwell.evaluate`.

    >>> (plan,) = power(sd=0.3, difference=0.05).plans
    >>> plan.needed.value
    285.0
    """
    refuse_after_fork()
    check_share("power", power)
    check_share("error rate", alpha)
    chosen = flat_options(options)
    asked = PowerPlan("", "assumed", None, None, queries, difference, power, alpha)
    if not systems:
        _refuse_idle(gold=gold, measures=measures, rel=rel, **chosen)
        return PowerAnalysis((_assumed(asked, sd, changed, sizes),))
    if sd is not None or changed is not None:
        raise OptionError(
            "the standard deviation is known from the systems", fix="leave out sd and changed"
        )
    gathered = gather(systems, gold, measures, rel=rel, options=chosen)
    matched_by, table = gathered[0].result.matched_by, pair(gathered)
    plans = (
        replace(found, relation=matched_by[found.measure])
        for found in _observed(asked, table, correlation, sizes)
    )
    judges = judge_lines(each.result.judge for each in gathered)
    return PowerAnalysis(tuple(plans), table.findings, tuple(judges))


def _refuse_idle(**options: object) -> None:
    idle = [name for name, value in options.items() if value is not None]
    if idle:
        raise OptionError(
            f"{idle[0]} has no effect: there is no system to measure",
            fix="name a saved result, or run files with their gold",
        )


def _assumed(
    asked: PowerPlan, sd: float | None, changed: float | None, sizes: Sequence[int] | None
) -> PowerPlan:
    if sd is None and changed is None:
        raise OptionError(
            "it is not known how much the differences vary between queries",
            fix="name a saved result, or assume a standard deviation: --sd 0.3 (sd=0.3)",
        )
    if asked.difference is None and asked.queries is None:
        raise OptionError(
            "neither a difference nor a number of queries was given",
            fix="ask for one: --difference 0.02, or --query-count 200 (queries=200)",
        )
    if sd is None:
        if changed is None or not 0 < changed <= 1:
            raise OptionError(f"the share of changes is {changed}", fix="give a number from 0 to 1")
        sd = sqrt(max(changed - (asked.difference or 0.0) ** 2, 0.0))
    return _planned(asked, sd, changed, sizes)


def _observed(
    asked: PowerPlan, table: Pairing, correlation: float, sizes: Sequence[int] | None
) -> Iterator[PowerPlan]:
    """Yield the plan by each measure and each system after the first, or by the only system."""
    first, *others = table.runs
    for number, measure in enumerate(table.measures):
        if measure.aggregation != "mean":
            raise OptionError(
                f"{measure} is not a mean over queries", fix="plan by a measure that is one"
            )
        for at in range(1, len(table.runs)) if others else [0]:
            values = table.table[at, number]
            values = values - table.table[0, number] if others else values
            values = values[~np.isnan(values)]
            found, n = spread(values), len(values)
            sd, changed = found.sd, found.changed
            if others:
                basis = f"the differences between {first} and {table.runs[at]} on {counted(n)}"
            else:
                basis = f"the values of {first} on {counted(n)}, "
                basis += f"and a correlation of {correlation:g} with another system"
            about = replace(asked, measure=str(measure), basis=basis, queries=n)
            if sd is None:
                yield replace(about, reason=found.reason)
                continue
            if not others:
                sd, changed = sd_of_difference(sd, correlation), None
                if is_binary(values) and sd > 0:  # of −1, 0 and 1 the mean square is the share
                    changed = min(1.0, sd**2 + (asked.difference or 0.0) ** 2)
            at_hand = n if asked.queries is None else asked.queries
            yield _planned(replace(about, queries=at_hand), sd, changed, sizes)


def _planned(
    about: PowerPlan, sd: float, changed: float | None, sizes: Sequence[int] | None
) -> PowerPlan:
    """Work out what can be seen."""
    wanted, at_hand = about.difference, about.queries
    if changed is not None:  # a larger difference than was ever seen needs as many changes
        changed = min(1.0, max(changed, abs(wanted or 0.0)))
    planned = PlannedComparison(sd, changed, about.power, about.alpha)
    if sizes is None and wanted is None and at_hand is not None:
        sizes = tuple(max(2, at_hand * step // 4) for step in (1, 2, 4, 8, 16))
    found = replace(about, sd=sd, changed=changed)
    if sd and (sizes or wanted is not None):
        found = replace(found, curve=planned.curve(wanted or 0.0, sizes))
    if wanted is not None:
        seen = None if at_hand is None else planned.power_at(at_hand, wanted)
        found = replace(found, needed=planned.queries_needed(wanted), seen=seen)
    if at_hand is None:
        return found
    return replace(
        found,
        detectable=planned.detectable_difference(at_hand),
        width=planned.expected_width(at_hand),
    )
