"""Which estimator is right for a measure and some labels, and the estimates that it makes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.errors import OptionError
from findwell.evaluation.results.bounds import bounds
from findwell.evaluation.results.estimates import Estimate
from findwell.loop.labels.known_pairs import CHOSEN, UNJUDGED
from findwell.loop.labels.label_pool import SAMPLE
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

ADDING_MEASURES = (Precision, RankBiasedPrecision, DCG)  # a label adds to the value by itself
ENOUGH_QUERIES = 10  # labelled as a whole, from which the others are estimated
BY_OUTCOME = frozenset({"mm-ns", "mtf"})  # earlier labels decide what is labelled next
RANKS = 1 << 32  # more than any list has
WHY = {
    "all": "everything that the measure needs is labelled",
    "pairs": "the measure adds up labels, and pairs were drawn with known probabilities",
    "ratio": "relevant found ÷ relevant over all queries at once, since a sample of pairs cannot "
    "tell the recall of each query",
    "queries": "the measure does not add up labels, so that it is taken of the queries whose pairs "
    "are all labelled",
}
UNUSED_LABELS = "; {} labels are not used: their pairs were not drawn, or their turn has not come"
AS_RANDOM = "; these are taken for a random sample of the queries"


@dataclass(frozen=True, slots=True, eq=False)
class RunView:
    """A run as one measure sees it: by the labels, by the judge, and if all were relevant."""

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


class Sought:
    """What is estimated: a measure of a run, or how much more a run has than another one."""

    def __init__(self, measure: Measure, views: Sequence[RunView]) -> None:
        self.measure, self.views = measure, views
        self.drawn = views[0].drawn
        self.complete: Bools = np.logical_and.reduce([view.complete for view in views])
        self.needed: Bools = np.logical_or.reduce([view.needed for view in views])
        # items that queries need which are labelled as a whole
        self.needed_by_whole: Bools = self.needed & self.complete[self.drawn.item_query]
        self.outside = sum(view.outside for view in views)

    def values(self, *, people: bool) -> list[Floats]:
        """Return the values of the runs, by the labels or by the judge."""
        return [self.measure.values(each.people) if people else each.values for each in self.views]

    @property
    def limits(self) -> tuple[float, float]:
        """Between which a value must lie."""
        least, most = self.measure.bounds
        return (least if len(self.views) == 1 else least - most, most)


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
        column = result.options.cluster  # what queries share, where some are not independent
        self.clusters = None if column is None else result.queries[column].to_list()

    def rows(self, measure: Measure, run: str, baseline: str | None = None) -> list[Estimate]:
        """Return what the judge, labels, and both say of a run, or of its difference."""
        names = [run] if baseline is None else [run, baseline]
        sought = Sought(measure, [self.view(measure, name) for name in names])
        how, why = self.find_estimator(sought)
        if baseline is None:
            self.designs.setdefault(str(measure), {"estimator": how, "why": why})
        methods = ("labels", "ppi") if self.judging else ("labels",)
        found: dict[str, LabelEstimate] = {}
        if self.judging:
            found["judge"] = self._by_judge(sought, how)
        if how in {"bounds", "all"}:
            made = self._bounds(sought, why) if how == "bounds" else self._plain(sought)
            found |= dict.fromkeys(methods, made)
        else:
            sample = self._whole(sought) if how == "queries" else self._pairs(sought)
            samples = {"labels": sample.without_judge(), "ppi": sample}
            found |= {name: self._mean(samples[name]) for name in methods}
        used = self._used(sought, how)
        rows = []
        for method, made in found.items():
            labels, estimator = (0, "") if method == "judge" else (used, how)
            low, high = (
                None if each is None else float(np.clip(each, *sought.limits))
                for each in (made.low, made.high)
            )
            effective = made.effective
            if effective is not None and made.labels:
                effective *= labels / made.labels  # of pairs, where queries were counted
            rows.append(
                Estimate(
                    run, str(measure), method, made.value, low, high, labels, effective, estimator,
                    made.reason, baseline,
                )
            )  # fmt: skip
        return rows

    def find_estimator(self, sought: Sought) -> tuple[str, str]:
        """Return the estimator that is right for a measure and these labels, and why."""
        if sought.complete.all():
            return "all", WHY["all"]
        if sought.outside and self.closed:
            return "bounds", (
                f"{sought.outside} retrieved documents that count are not in the pool, so that "
                "nobody could label them: pool this run, too"
            )
        measure = sought.measure
        if self.sampled and self.drawable[sought.needed].all() and not sought.outside:
            beyond = int((sought.needed & self.chosen).sum())
            unused = UNUSED_LABELS.format(beyond) if beyond else ""
            adds = type(measure) in ADDING_MEASURES
            if adds or (type(measure) is Recall and not measure.support):
                how = "pairs" if adds else "ratio"
                return how, WHY[how] + unused
        count, of_all = int(sought.complete.sum()), len(sought.complete)
        if count >= ENOUGH_QUERIES and (self.sampled or not self.by_outcome):
            told = f"{WHY['queries']}, {count} of {of_all}"
            return "queries", told if self._all_drawn(sought) else told + AS_RANDOM
        if self.by_outcome and not self.sampled:
            return "bounds", (
                f"pairs were labelled in the order {', '.join(sorted(self.by_outcome))}, which "
                "looks for relevant ones, so that averages of such labels are biased: a sample "
                "(findwell pool --for values) tells the value"
            )
        return "bounds", (
            f"the measure does not add up labels, and {count} of {of_all} queries have all that it "
            f"needs: label at least {ENOUGH_QUERIES} queries as a whole"
        )

    def _all_drawn(self, sought: Sought) -> bool:
        """Tell whether chance alone decided which queries are labelled as a whole."""
        return self.sampled and not (sought.needed_by_whole & self.chosen).any()

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
        complete = (lacking == 0) & (outside == 0)
        known = (verdicts, values, found, needed, complete, int(outside.sum()))
        return RunView(drawn, people, judge, every, *known)

    def _verdicts(self, run: str) -> Floats:
        """Return what the judge said of each pair, whichever run brought it up; last this run."""
        base = self.result.provenance.drawn_by
        verdicts = self.pool_judge
        relations = self.result.relations.items()
        for (name, by), judged in sorted(relations, key=lambda each: each[0][0] == run):
            if by != base:
                verdicts = grades_of_units(judged, self.result.relations[name, base], verdicts)
        return verdicts

    def _used(self, sought: Sought, how: str) -> int:
        """Count the labels that an estimate rests on."""
        if how == "queries":
            return int(sought.needed_by_whole.sum())
        needed = sought.needed & ~np.isnan(self.grade)
        return int((needed & ~self.chosen if how in {"pairs", "ratio"} else needed).sum())

    def _mean(self, sample: SampledLabels) -> LabelEstimate:
        return mean_of_sample(sample, level=self.level, clusters=self.clusters)

    def _by_judge(self, sought: Sought, how: str) -> LabelEstimate:
        """Return what the judge says of the same quantity that labels are used to estimate."""
        if how != "ratio":
            return self._plain(sought, people=False)
        sample = self._pairs(sought)
        whole = replace(sample, label=sample.judged, probability=np.ones(len(sample.query)))
        return replace(self._mean(whole.without_judge()), labels=0, effective=None)

    def _plain(self, sought: Sought, *, people: bool = True) -> LabelEstimate:
        """Return the mean of known values, or of the judge's, with the usual interval."""
        bounds, columns = sought.measure.bounds, sought.values(people=people)
        if len(columns) == 1:
            made = interval(columns[0], level=self.level, bounds=bounds, clusters=self.clusters)
        else:
            made = paired(*columns[::-1], level=self.level, bounds=bounds, clusters=self.clusters)[
                0
            ].difference
        used = self._used(sought, "all") if people else 0
        effective, trust = (float(used), 0.0) if people else (None, 1.0)
        limits = (made.value, made.low, made.high)
        return LabelEstimate(*limits, self.level, used, effective, trust, reason=made.reason)

    def _bounds(self, sought: Sought, why: str) -> LabelEstimate:
        """Return what the labels that are missing leave possible; there is no value in between."""
        ends: list[tuple[float, float] | None] = []
        for view in sought.views:
            ((low, high),) = bounds(view.people, [sought.measure])
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
        return LabelEstimate(None, lower, upper, self.level, 0, None, 0.0, reason=why)

    def _pairs(self, sought: Sought) -> SampledLabels:
        """Return the pairs as things that add to the value, or to the two sums of a ratio."""
        measure, drawn = sought.measure, sought.drawn
        divisor = sought.needed.astype(np.float64) if isinstance(measure, Recall) else None
        (weight, label, judged), *others = (self._added(measure, view) for view in sought.views)
        for their_weight, their_label, their_verdict in others:
            mine = weight != 0
            label = np.where(mine, label, their_label)
            judged = np.where(mine, judged, their_verdict)
            weight = weight - their_weight
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

    def _added(self, measure: Measure, view: RunView) -> tuple[Floats, Floats, Floats]:
        """Return what a label of 1 adds for each item, and label and verdict in these terms."""
        if isinstance(measure, Recall):
            columns = (view.found, self.grade >= measure.rel, view.verdicts >= measure.rel)
            weight, label, judged = (column.astype(np.float64) for column in columns)
            return weight, label, judged
        relations = (view.every, view.people, view.judge)
        weight, label, judged = (added_by_items(measure, each, view.drawn) for each in relations)
        worth = np.where(weight == 0, 1.0, weight)
        return weight, label / worth, judged / worth

    def _whole(self, sought: Sought) -> SampledLabels:
        """Return queries as things: the value of those labelled as a whole, the judge's of all.

        Where a measure is undefined for a query, the mean is a ratio: the sum of the values ÷ the
        number of queries that have one, and both are estimated.
        """
        drawn, complete = sought.drawn, sought.complete
        chance = np.full(drawn.n, complete.mean())
        if self._all_drawn(sought):
            whole = sought.needed_by_whole
            logs = np.log(self.chance[whole])
            chance = np.exp(np.bincount(drawn.item_query[whole], logs, minlength=drawn.n))
        columns = []
        for people in (True, False):
            column, *others = sought.values(people=people)
            for other in others:
                column = column - other
            has = ~np.isnan(column)
            columns.append((np.where(has, column, 0.0), has.astype(np.float64)))
        (value, has), (verdict, judge_has) = columns
        value, has = (np.where(complete, each, np.nan) for each in (value, has))
        number, zero, one = np.arange(drawn.n), np.zeros(drawn.n), np.ones(drawn.n)
        if not self.judging:
            verdict, judge_has = zero, zero
        least, most = sought.measure.bounds
        differs = len(sought.views) > 1
        limits = (least - most, most - least) if differs else sought.measure.bounds
        stratum = zero.astype(np.int64)
        sample = SampledLabels(
            number, one, value, verdict, chance, stratum, drawn.n, paired=differs, bounds=limits
        )
        if (has[complete] == 1).all():
            return sample
        return replace(
            sample,
            query=np.concatenate((number, number)),
            weight=np.concatenate((one, zero)),
            label=np.concatenate((value, has)),
            judged=np.concatenate((verdict, judge_has)),
            probability=np.concatenate((chance, chance)),
            stratum=np.concatenate((stratum, stratum)),
            divisor=np.concatenate((zero, one)),
            kind=np.concatenate((stratum, stratum + 1)),
        )


def regraded(relation: Relation, grade: Floats, keep: Bools | None = None) -> Relation:
    """Return a relation whose items have these grades; those not kept are left out.

    Only documents with a grade of 0 or more count as judged.
    """
    keep = np.ones(len(grade), dtype=bool) if keep is None else keep
    query = relation.item_query
    order = np.lexsort((-grade, query))  # stable: items of one grade stay as they are
    order = order[keep[order]]
    place = np.full(len(grade), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    edges = keep[relation.edge_item]
    judged = np.isin(
        _keys(relation.unit_query, relation.unit_rank),
        _keys(relation.edge_query, relation.edge_rank)[edges & (grade[relation.edge_item] >= 0)],
    )
    members = np.flatnonzero(keep[relation.member_item])
    members = members[np.argsort(place[relation.member_item[members]], kind="stable")]
    return replace(
        relation,
        item_offset=np.concatenate(([0], np.cumsum(relation.count(query[keep])))),
        item_grade=grade[order],
        edge_query=relation.edge_query[edges],
        edge_rank=relation.edge_rank[edges],
        edge_item=place[relation.edge_item[edges]],
        edge_weight=None if relation.edge_weight is None else relation.edge_weight[edges],
        unit_judged=judged,
        member_item=place[relation.member_item[members]],
        member_doc=relation.member_doc.gather(members),
        item_times=None,
    )


def added_by_items(measure: Measure, relation: Relation, drawn: Relation) -> Floats:
    """Return what each item of `drawn` adds to a measure that adds up, by these grades."""
    terms = measure.terms(relation)
    gained = np.ones(len(terms.query)) if terms.value is None else terms.value
    divisor = np.broadcast_to(measure.divisor(relation).value, relation.n)
    keys = _keys(drawn.edge_query, drawn.edge_rank)  # sorted, as the edges are; each unit has one
    item = drawn.edge_item[np.searchsorted(keys, _keys(terms.query, terms.rank))].astype(np.int64)
    total: Floats = np.bincount(  # type: ignore[assignment]
        item, gained / divisor[terms.query], len(drawn.item_grade)
    )
    return total


def grades_of_units(judged: Relation, relation: Relation, otherwise: Floats) -> Floats:
    """Return for each item of a relation the grade that another one gives to its unit.

    Both are of the same run. An item of no unit, or of one that was not judged, keeps its own.
    """
    found = otherwise.copy()
    theirs = _keys(judged.edge_query, judged.edge_rank)
    ours = _keys(relation.edge_query, relation.edge_rank)
    place = np.searchsorted(theirs, ours)
    same = place < len(theirs)
    same[same] = theirs[place[same]] == ours[same]
    at = np.flatnonzero(same)[::-1]  # the last assignment wins: that of the best rank
    found[relation.edge_item[at]] = judged.item_grade[judged.edge_item[place[at]]]
    return found


def _keys(query: Ints, rank: Ints) -> Ints:
    return query.astype(np.int64) * RANKS + rank
