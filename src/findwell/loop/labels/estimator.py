"""Which estimator is right for a measure and some labels, and the estimates that it makes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from findwell.core.errors import OptionError
from findwell.core.estimate import Estimate
from findwell.evaluation.results.bounds import bounds
from findwell.evaluation.results.estimates import EstimateRow
from findwell.loop.labels.known_pairs import CHOSEN, SAMPLE, UNJUDGED
from findwell.loop.labels.regraded import grades_of_units, items_of_units, regraded
from findwell.measures.dcg import DCG
from findwell.measures.precision import Precision
from findwell.measures.rbp import RankBiasedPrecision
from findwell.measures.recall import Recall
from findwell.statistics.intervals import interval
from findwell.statistics.paired import paired
from findwell.statistics.prediction_powered import LabelEstimate, SampledLabels, mean_of_sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.relation import Relation
    from findwell.evaluation.results.result import Result
    from findwell.loop.labels.known_pairs import KnownPairs
    from findwell.measures import Measure

ADD_UP = (Precision, RankBiasedPrecision, DCG)  # a label adds to the value, whatever others are
ENOUGH = 10  # queries labelled as a whole, from which the others are estimated
BY_OUTCOME = frozenset({"mm-ns", "mtf"})  # earlier labels decide what is labelled next
WHY = {
    "all": "everything that the measure needs is labelled",
    "pairs": "the measure adds up labels, and pairs were drawn with known probabilities",
    "ratio": "relevant found ÷ relevant over all queries at once, since a sample of pairs cannot "
    "tell the recall of each query",
    "queries": "the measure does not add up labels, so that it is taken of the queries whose pairs "
    "are all labelled",
}
UNUSED = "; {} labels are not used: their pairs were not drawn, or their turn has not come"
AS_RANDOM = "; these are taken for a random sample of the queries"


@dataclass(frozen=True, slots=True, eq=False)
class RunView:
    """A run as one measure sees it: against the labels, the judge, and if all were relevant."""

    drawn: Relation  # items as in the gold
    people: Relation
    judge: Relation
    every: Relation
    verdicts: Floats  # the judge's grade of each item
    values: Floats  # by the judge
    found: Bools  # by item: it stands in the list, as far as the measure looks
    needed: Bools  # by item: the value depends on its label
    complete: Bools  # by query: all that the value depends on is labelled
    outside: int  # units that the value depends on and that could not have been labelled

    def added(self, measure: Measure, relation: Relation) -> Floats:
        """Return what each item adds to a measure that adds up, with the grades of a relation."""
        terms = measure.terms(relation)
        gained = np.ones(len(terms.query)) if terms.value is None else terms.value
        divisor = np.broadcast_to(measure.divisor(relation).value, relation.n)
        item = items_of_units(self.drawn, terms.query, terms.rank)
        total: Floats = np.bincount(  # type: ignore[assignment]
            item, gained / divisor[terms.query], len(self.needed)
        )
        return total


class Estimator:
    """Estimates of the runs of a result."""

    def __init__(
        self, result: Result, known: KnownPairs, item_pairs: Ints, level: float, *, judging: bool
    ) -> None:
        self.result, self.level, self.closed = result, level, known.closed
        self.grade = known.column("grade")[item_pairs]
        self.chance = known.column("probability")[item_pairs]  # NaN: not part of a sample
        labelled = ~np.isnan(self.grade)
        self.sampled = bool((np.isfinite(self.chance) & labelled).any())
        # a label that somebody chose to give is known, but says nothing about other pairs
        self.chosen = labelled & np.isnan(self.chance)
        strata = known.pairs["stratum"].fill_null("").rank("dense").to_numpy()
        self.stratum = strata.astype(np.int64)[item_pairs]
        frame = known.pairs["design"].is_in([SAMPLE, CHOSEN]).to_numpy()[item_pairs]
        self.drawable = frame | np.isfinite(self.chance)
        designs = known.pairs.filter(pl.col("grade").is_not_null())["design"]
        self.by_outcome = BY_OUTCOME & set(designs)
        self.pool_judge = known.column("judge", 0.0)[item_pairs]
        self.judging = judging or known.judged
        self.designs: dict[str, dict[str, str]] = {}
        self._views: dict[tuple[Measure, str], RunView] = {}

    @cached_property
    def clusters(self) -> list[object] | None:
        """What queries share, where some are not independent."""
        column = self.result.options.cluster
        return None if column is None else self.result.queries[column].to_list()

    def rows(self, measure: Measure, run: str, baseline: str | None = None) -> list[EstimateRow]:
        """Return what the judge, labels, and both say of a run, or of its difference."""
        views = [self.view(measure, run)]
        views += [] if baseline is None else [self.view(measure, baseline)]
        how, why = self.find_estimator(measure, views)
        if baseline is None:
            self.designs.setdefault(str(measure), {"estimator": how, "why": why})
        found: dict[str, LabelEstimate] = {}
        if self.judging:
            found["judge"] = self._by_judge(measure, views, how)
        methods = ("labels", "ppi") if self.judging else ("labels",)
        if how == "bounds":
            found |= dict.fromkeys(methods, self._bounds(measure, views, why))
        elif how == "all":
            found |= dict.fromkeys(methods, self._plain(measure, views, people=True))
        else:
            taken = self._whole if how == "queries" else self._pairs
            sample = taken(measure, views)
            samples = {"labels": sample.without_judge(), "ppi": sample}
            found |= {
                name: mean_of_sample(samples[name], level=self.level, clusters=self.clusters)
                for name in methods
            }
        used = self._used(views, how)
        least, most = measure.bounds
        limits = (least if baseline is None else least - most, most)
        return [
            _row(made, limits, 0, run, str(measure), name, "", baseline)
            if name == "judge"
            else _row(made, limits, used, run, str(measure), name, how, baseline)
            for name, made in found.items()
        ]

    def find_estimator(self, measure: Measure, views: Sequence[RunView]) -> tuple[str, str]:
        """Return the estimator that is right for a measure and these labels, and why."""
        complete = np.logical_and.reduce([view.complete for view in views])
        if complete.all():
            return "all", WHY["all"]
        outside = sum(view.outside for view in views)
        if outside and self.closed:
            return "bounds", (
                f"{outside} retrieved documents that count are not in the pool, so that nobody "
                "could label them: pool this run, too"
            )
        drawable = all(self.drawable[view.needed].all() for view in views)
        if self.sampled and drawable and not outside:
            needed = np.logical_or.reduce([view.needed for view in views])
            beyond = int((needed & self.chosen).sum())
            unused = UNUSED.format(beyond) if beyond else ""
            if type(measure) in ADD_UP:
                return "pairs", WHY["pairs"] + unused
            if type(measure) is Recall and not measure.support:
                return "ratio", WHY["ratio"] + unused
        return self._by_queries(views, int(complete.sum()), len(complete))

    def _by_queries(self, views: Sequence[RunView], count: int, of_all: int) -> tuple[str, str]:
        """Return whether queries labelled as a whole tell the others, and why."""
        if count >= ENOUGH and (self.sampled or not self.by_outcome):
            told = f"{WHY['queries']}, {count} of {of_all}"
            return "queries", told if self._all_drawn(views) else told + AS_RANDOM
        if self.by_outcome and not self.sampled:
            return "bounds", (
                f"pairs were labelled in the order {', '.join(sorted(self.by_outcome))}, which "
                "looks for relevant ones, so that averages of such labels are biased: a sample "
                "(findwell pool --for values) tells the value"
            )
        return "bounds", (
            f"the measure does not add up labels, and {count} of {of_all} queries have all that it "
            f"needs: label at least {ENOUGH} queries as a whole"
        )

    def _all_drawn(self, views: Sequence[RunView]) -> bool:
        """Tell whether chance alone decided which queries are labelled as a whole."""
        return self.sampled and not (self._whole_pairs(views) & self.chosen).any()

    @staticmethod
    def _whole_pairs(views: Sequence[RunView]) -> Bools:
        """Return which items are needed by queries that are labelled as a whole."""
        complete = np.logical_and.reduce([view.complete for view in views])
        needed = np.logical_or.reduce([view.needed for view in views])
        return np.asarray(needed & complete[views[0].drawn.item_query])

    def view(self, measure: Measure, run: str) -> RunView:
        """Return how a measure sees a run."""
        if (measure, run) not in self._views:
            self._views[measure, run] = self._look(measure, run)
        return self._views[measure, run]

    def _look(self, measure: Measure, run: str) -> RunView:
        drawn = self.result.relations[run, self.result.provenance.drawn_by]
        if len(drawn.item_grade) != len(self.grade):
            raise OptionError(
                "several candidates of the pool have the same id after --ids",
                fix="leave --ids out: labels name documents as the pool does",
            )
        listed = measure.relation is not None
        depth = measure.depth(listed=listed)
        within = drawn.within(drawn.edge_query, drawn.edge_rank, depth)
        found, retrieved = (np.zeros(len(self.grade), dtype=bool) for _ in range(2))
        found[drawn.edge_item[within]] = True
        retrieved[drawn.edge_item] = True
        pooled = not listed and measure.counts_items and self.closed
        needed = np.ones(len(self.grade), dtype=bool) if pooled else found
        by_query = drawn.item_query
        lacking = np.bincount(by_query[needed & np.isnan(self.grade)], minlength=drawn.n)
        outside = drawn.shown(depth) - drawn.repeats(depth)
        outside = np.maximum(outside - np.bincount(by_query[found], minlength=drawn.n), 0)
        verdicts = self._verdicts(run)
        labels = np.where(np.isnan(self.grade), UNJUDGED, self.grade)
        level = np.full(len(labels), max(1.0, measure.level()))
        people, judge, every = (
            replace(
                regraded(drawn, grade, retrieved if listed else None),
                # a list without anything relevant is bad, whether or not anything is to be found
                needed=listed or not measure.counts_items,
            )
            for grade in (labels, verdicts, level)
        )
        values = self.result.arrays[run, measure] if listed else measure.values(judge)
        return RunView(
            drawn,
            people,
            judge,
            every,
            verdicts,
            values,
            found,
            needed,
            (lacking == 0) & (outside == 0),
            int(outside.sum()),
        )

    def _verdicts(self, run: str) -> Floats:
        """Return what the judge said of each pair, whichever run brought it up; last this run."""
        base = self.result.provenance.drawn_by
        verdicts = self.pool_judge
        relations = self.result.relations.items()
        for (name, by), judged in sorted(relations, key=lambda each: each[0][0] == run):
            if by != base:
                verdicts = grades_of_units(judged, self.result.relations[name, base], verdicts)
        return verdicts

    def _used(self, views: Sequence[RunView], how: str) -> int:
        """Count the labels that an estimate rests on."""
        if how == "queries":
            return int(self._whole_pairs(views).sum())
        needed = np.logical_or.reduce([view.needed for view in views]) & ~np.isnan(self.grade)
        return int((needed & ~self.chosen if how in {"pairs", "ratio"} else needed).sum())

    def _by_judge(self, measure: Measure, views: Sequence[RunView], how: str) -> LabelEstimate:
        """Return what the judge says of the same quantity that labels are used to estimate."""
        if how != "ratio":
            return self._plain(measure, views, people=False)
        sample = self._pairs(measure, views)
        whole = replace(sample, label=sample.judged, probability=np.ones(len(sample.query)))
        made = mean_of_sample(whole.without_judge(), level=self.level, clusters=self.clusters)
        return replace(made, labels=0, effective=None)

    def _plain(self, measure: Measure, views: Sequence[RunView], *, people: bool) -> LabelEstimate:
        """Return the mean of known values, or of the judge's, with the usual interval."""
        columns = [measure.values(view.people) if people else view.values for view in views]
        usual: dict[str, Any] = {
            "level": self.level,
            "bounds": measure.bounds,
            "clusters": self.clusters,
        }
        if len(columns) == 1:
            made = interval(columns[0], **usual)
        else:
            made = paired(columns[1], columns[0], **usual)[0].difference
        used = self._used(views, "all") if people else 0
        effective, trust = (float(used), 0.0) if people else (None, 1.0)
        return LabelEstimate(made, used, effective, trust)

    def _bounds(self, measure: Measure, views: Sequence[RunView], why: str) -> LabelEstimate:
        """Return what the labels that are missing leave possible; there is no value in between."""
        ends = []
        for view in views:
            ((low, high),) = bounds(view.people, [measure])
            known = ~np.isnan(low)
            ends.append(
                (float(low[known].mean()), float(high[known].mean())) if known.any() else None
            )
        lower, upper = ends[0] or (None, None)
        for other in ends[1:]:  # at worst all is against this run, and for the other
            if lower is None or upper is None or other is None:
                lower = upper = None
            else:
                lower, upper = lower - other[1], upper - other[0]
        return LabelEstimate(Estimate(None, lower, upper, self.level, "", 0, reason=why), 0)

    def _pairs(self, measure: Measure, views: Sequence[RunView]) -> SampledLabels:
        """Return the pairs as things that add to the value, or to the two sums of a ratio."""
        drawn = views[0].drawn
        divisor = None
        if isinstance(measure, Recall):
            parts = [
                (
                    view.found.astype(np.float64),
                    (self.grade >= measure.rel).astype(np.float64),
                    (view.verdicts >= measure.rel).astype(np.float64),
                )
                for view in views
            ]
            divisor = np.logical_or.reduce([view.needed for view in views]).astype(np.float64)
        else:
            parts = [self._added(measure, view) for view in views]
        weight, label, judged = parts[0]
        for other in parts[1:]:
            mine = weight != 0
            label, judged = (
                np.where(mine, ours, theirs)
                for ours, theirs in zip((label, judged), other[1:], strict=True)
            )
            weight = weight - other[0]
        return self._sample(drawn, weight, label, judged, divisor)

    def _added(self, measure: Measure, view: RunView) -> tuple[Floats, Floats, Floats]:
        """Return what a label of 1 adds for each item, and label and verdict in these terms."""
        weight = view.added(measure, view.every)
        worth = np.where(weight == 0, 1.0, weight)
        return (
            weight,
            view.added(measure, view.people) / worth,
            view.added(measure, view.judge) / worth,
        )

    def _sample(
        self,
        drawn: Relation,
        weight: Floats,
        label: Floats,
        judged: Floats,
        divisor: Floats | None,
    ) -> SampledLabels:
        counts = weight != 0
        if divisor is not None:
            counts |= divisor != 0
        if not counts.any():  # two lists of the same: the difference is 0, and known
            counts = ~np.isnan(self.grade) & ~self.chosen
        known = np.where(np.isnan(self.grade) | self.chosen, np.nan, label)
        return SampledLabels(
            query=drawn.item_query[counts],
            weight=weight[counts],
            label=known[counts],
            judged=judged[counts] if self.judging else np.zeros(int(counts.sum())),
            probability=self.chance[counts],
            stratum=self.stratum[counts],
            queries=drawn.n,
            divisor=None if divisor is None else divisor[counts],
        )

    def _whole(self, measure: Measure, views: Sequence[RunView]) -> SampledLabels:
        """Return queries as things: the value of those labelled as a whole, the judge's of all.

        Where a measure is undefined for a query, the mean is a ratio: the sum of the values ÷ the
        number of queries that have one, and both are estimated.
        """
        drawn = views[0].drawn
        complete = np.logical_and.reduce([view.complete for view in views])
        chance = np.full(drawn.n, complete.mean())
        if self._all_drawn(views):
            whole = self._whole_pairs(views)
            logs = np.bincount(
                drawn.item_query[whole], np.log(self.chance[whole]), minlength=drawn.n
            )
            chance = np.exp(logs)
        values, judged = (
            _difference([measure.values(view.people) for view in views]),
            _difference([view.values for view in views]),
        )
        columns = []
        for column in (values, judged):
            has = ~np.isnan(column)
            columns.append((np.where(has, column, 0.0), has.astype(np.float64)))
        (value, has), (verdict, judge_has) = columns
        value, has = (np.where(complete, each, np.nan) for each in (value, has))
        number, zero, one = np.arange(drawn.n), np.zeros(drawn.n), np.ones(drawn.n)
        if not self.judging:
            verdict, judge_has = zero, zero
        least, most = measure.bounds
        paired = len(views) > 1
        limits = (least - most, most - least) if paired else measure.bounds
        if (has[complete] == 1).all():
            return SampledLabels(
                number,
                one,
                value,
                verdict,
                chance,
                zero.astype(np.int64),
                drawn.n,
                paired=paired,
                bounds=limits,
            )
        return SampledLabels(
            query=np.concatenate((number, number)),
            weight=np.concatenate((one, zero)),
            label=np.concatenate((value, has)),
            judged=np.concatenate((verdict, judge_has)),
            probability=np.concatenate((chance, chance)),
            stratum=np.zeros(2 * drawn.n, dtype=np.int64),
            queries=drawn.n,
            divisor=np.concatenate((zero, one)),
            kind=np.concatenate((zero, one)).astype(np.int64),
            paired=paired,
            bounds=limits,
        )


def _difference(columns: Sequence[Floats]) -> Floats:
    """Return the first of one or two columns, less the second."""
    return columns[0] if len(columns) == 1 else columns[0] - columns[1]


def _row(  # noqa: PLR0917
    made: LabelEstimate,
    limits: tuple[float, float],
    labels: int,
    run: str,
    measure: str,
    method: str,
    estimator: str,
    baseline: str | None,
) -> EstimateRow:
    """Return an estimate within the limits of its measure."""
    low, high = (
        None if each is None else float(np.clip(each, *limits)) for each in (made.low, made.high)
    )
    within = Estimate(made.value, low, high, made.level, "", labels, reason=made.reason)
    effective = made.effective
    if effective is not None and made.labels:
        effective *= labels / made.labels  # of pairs, where queries were counted
    return EstimateRow(run, measure, method, within, labels, effective, estimator, baseline)
