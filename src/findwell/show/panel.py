"""What reports show: systems side by side on the same queries, and how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from findwell.core.errors import AlignError, FindwellError, InputError, choose
from findwell.core.frames import changed, pl
from findwell.core.slices import slice_labels, time_slices
from findwell.core.verdict import UNKNOWN, WORSE
from findwell.evaluation.comparison.compare import Comparison, compare, contrasts, slice_rows
from findwell.evaluation.comparison.pairing import Pairing, pair, stack
from findwell.evaluation.comparison.systems import System, gather
from findwell.show.charts import caption
from findwell.show.charts.svg import SYSTEMS
from findwell.show.comparison import best_systems
from findwell.show.tables import best_first
from findwell.statistics.verdicts import DifferenceTest, correct, correct_all_pairs

if TYPE_CHECKING:
    from findwell.core.findings import Finding
    from findwell.measures import Measure

FACETS = 40  # values of a column that are still slices
SLICED = 3  # systems whose difference to the baseline is shown by slice
NOT_SLICES = ("query", "question", "reference", "answer")


@dataclass(frozen=True, eq=False)
class Panel:
    """Systems side by side; the first is the baseline."""

    systems: tuple[System, ...]
    pairing: Pairing
    comparison: Comparison | None  # None for one system
    only: tuple[str, str] | None = None  # the slice that the queries were picked by

    @property
    def names(self) -> list[str]:
        """The names of the systems."""
        return [system.name for system in self.systems]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What was measured."""
        return self.pairing.measures

    @property
    def queries(self) -> pl.DataFrame:
        """The queries, in the order of the baseline, with the columns about them."""
        return self.pairing.queries

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Problems in the inputs."""
        return self.pairing.findings

    @property
    def level(self) -> float | None:
        """The level of the intervals of values; None if there are none."""
        return self.systems[0].result.level

    @cached_property
    def data_sets(self) -> tuple[str, ...]:
        """What the systems were measured on: one, unless they differ."""
        made = dict.fromkeys(system.result.provenance for system in self.systems)
        return tuple(dict.fromkeys(str(each.data_set) for each in made))

    lead: ClassVar[int] = 0  # the main measure, by which failures are found: the first one

    @cached_property
    def summary(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The aggregated values by system and measure."""
        return {
            (system.name, row["measure"]): row
            for system in self.systems
            for row in system.result.summary.iter_rows(named=True)
            if row["run"] == system.run
        }

    @cached_property
    def facets(self) -> dict[str, list[str]]:
        """The columns that slice the queries, and their values."""
        found = {}
        moments, buckets = time_slices(self.queries)
        for name in (*self.queries.columns, *buckets):
            if name in (*NOT_SLICES, *moments):
                continue
            if name in buckets:
                if any(each in found for each in buckets):
                    continue  # the finest that suits is enough
            elif (kind := self.queries[name].dtype).is_nested() or kind.is_float():
                continue
            values = self.labels(name).unique().sort().to_list()
            if 2 <= len(values) <= min(FACETS, self.queries.height // 2):
                found[name] = values
        return found

    @cached_property
    def sliced(self) -> Comparison:
        """The comparison with its slices by the main measure, for the best of the systems."""
        found = self.comparison
        assert found is not None  # noqa: S101 - it is asked for where systems are compared
        if not self.facets:
            return found
        lead = self._by_one_measure(
            self.lead, self.queries.with_columns(self.labels(name) for name in self.facets)
        )
        limits = {  # measures about which a judge gives no verdict
            measure: each.reason
            for (_, _, measure), each in found.verdicts.items()
            if each.word == UNKNOWN
        }
        pairs = [(0, self.names.index(name)) for name in best_systems(found)[:SLICED]]
        rows = slice_rows(lead, pairs, self.facets, self._test, limits)
        return replace(found, slice_rows=rows)

    def near_best(self, measure: int) -> set[str]:
        """Return the systems that cannot be distinguished from the best by a measure.

        All pairs are tested together, as the best is known only after the fact. Empty where a
        judge gives no verdict about systems, or nothing was measured.
        """
        found = self.comparison
        assert found is not None  # noqa: S101 - it is asked for where systems are compared
        named = str(self.measures[measure])
        values = {name: self.summary[name, named]["value"] for name in self.names}
        known = {name: each for name, each in values.items() if each is not None}
        words = [each.word for key, each in found.verdicts.items() if key[2] == named]
        if not known or UNKNOWN in words:
            return set()
        highest = self.measures[measure].higher_is_better
        best = (max if highest else min)(known, key=lambda name: known[name])
        pairing, test = self._by_one_measure(measure, self.queries), self._test
        at = self.names.index(best)
        others = [self.names.index(name) for name in known if name != best]
        tests = contrasts(pairing, [(at, other) for other in others], test)
        if test.unpaired or test.clusters:
            tests = correct(tests, "holm")
        elif tests:
            tests = correct_all_pairs(tests, pairing.by_query(), pairing.measures)
        far = {self.names[each.pair[1]] for each in tests if each.verdict.word == WORSE}
        return {name for name in known if name not in far}

    @property
    def _test(self) -> DifferenceTest:
        """How differences are tested, as the comparison does."""
        found = self.comparison
        assert found is not None  # noqa: S101 - it is asked for where systems are compared
        clusters = None if found.cluster is None else tuple(self.pairing.column(found.cluster))
        return DifferenceTest(
            found.level, found.permutations, found.seed, "auto", clusters, found.unpaired
        )

    def _by_one_measure(self, measure: int, queries: pl.DataFrame) -> Pairing:
        only = slice(measure, measure + 1)
        table = self.pairing.table[:, only]
        return changed(self.pairing, measures=self.measures[only], table=table, queries=queries)

    @cached_property
    def misses(self) -> dict[str, dict[str, dict[str, int]]]:
        """How many relevant items of each query a system missed by the main measure, by cause.

        Empty for measures over what was retrieved: there nothing else is known to be relevant.
        """
        found: dict[str, dict[str, dict[str, int]]] = {}
        for system in self.systems:
            result, lead = system.result, self.measures[self.lead]
            try:
                if result.relation(system.run, lead).needed:
                    continue
                rows = result.misses(str(lead)).group_by("cause", "query").len()
            except FindwellError:  # a result that holds no relations, as those of Spark
                continue
            mine = found.setdefault(system.name, {})
            for cause, query, count in rows.iter_rows():
                mine.setdefault(cause, {})[query] = count
        return found

    def labels(self, column: str) -> pl.Series:
        """Return the slice of each query by a column."""
        return slice_labels(self.queries, column).fill_null("(none)")

    def caption(self, measure: Measure | None = None, level: float | None = None) -> str:
        """Say what a chart is about: all queries, or those with a value in a measure."""
        every = self.queries.height
        counts = [every]
        if measure is not None:
            counts = [self.summary[name, str(measure)]["n"] for name in self.names]
        return caption(counts, every, level, self.data_sets)

    def zero(self, system: int) -> int:
        """Count the queries for which a system found nothing."""
        return int((self.pairing.table[system, self.lead] == 0).sum())


def lay_side_by_side(
    results: Sequence[object],
    *,
    baseline: str | None = None,
    only: tuple[str, str] | None = None,
    unpaired: bool = False,
    **evaluation: Any,  # noqa: ANN401
) -> Panel:
    """Lay systems side by side; `only` picks a slice of the queries.

    A system is a result, the folder of one, or what is evaluated first, as `gather` does. With
    `unpaired` they were asked different queries, such as those of two periods.
    """
    if unpaired and evaluation.get("gold") is not None:
        evaluation["options"] = {"missing": "skip", **(evaluation.get("options") or {})}
    systems = [
        replace(system, result=system.result.only(system.run))
        for system in gather(results, **evaluation)
    ]
    if not systems:
        raise InputError("there is no result to report", fix="name the folder of a result")
    if baseline is not None:
        choose("baseline", baseline, [system.name for system in systems])
        systems.sort(key=lambda system: system.name != baseline)
    if only is not None:
        systems = [replace(system, result=system.result.where(*only)) for system in systems]
    if len(systems) > SYSTEMS:
        systems = _best_first(systems)
    comparison = None
    if len(systems) > 1:
        level = systems[0].result.level or 0.95
        named = {system.name: system.result for system in systems}
        comparison = compare(named, level=level, unpaired=unpaired)
    pairing = stack(systems) if unpaired else pair(systems)
    if not pairing.queries["query"].is_unique().all():
        again = pairing.queries["query"].filter(pairing.queries["query"].is_duplicated())[0]
        raise AlignError(
            f"{again!r} is a query of several systems, which a page cannot show as different ones",
            fix="leave out --unpaired (unpaired=True), or give the queries different ids",
        )
    return Panel(tuple(systems), pairing, comparison, only)


def _best_first(systems: list[System]) -> list[System]:
    """Return the baseline, then the others by their first measure, the best first."""
    first = systems[0].result.measures[0]
    order = best_first(higher=first.higher_is_better)
    others = sorted(systems[1:], key=lambda each: order(each.result[each.run, str(first)]))
    return [systems[0], *others]
