"""The choice of one setting among many, and what that setting is worth on queries it never saw.

The setting that scores best on some queries scores worse on others: the best of many was also the
luckiest. So the value is measured by cross-validation. The queries are dealt into folds, each fold
is scored with the setting that the others choose, and this is repeated with other folds. The same
rule chooses everywhere, inside the folds and in the end: bagged argmax. Queries are drawn again and
again with replacement, each draw votes for the setting that is best on it (equally good ones share
the vote), and the setting wins that is nearest to all votes; on a line that is their median. It is
always a setting that was best on some draw, so that it cannot fall into a valley between two peaks.

Folds and draws go by the values, not by the names of queries or their order: the same queries
under other names, or shuffled, give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import InputError, OptionError, check_draws
from findwell.core.spelling import counted
from findwell.core.verdict import UNCLEAR, WORSE, Verdict
from findwell.statistics.intervals import (
    UNIT,
    Quantity,
    as_units,
    cluster_codes,
    each_statistic,
    estimate,
    from_scale,
    intervals,
    refuse_infinite,
    statistic_of,
    to_scale,
)
from findwell.statistics.paired import paired
from findwell.statistics.resampling import balanced_folds, bootstrap_counts, on_one_grid
from findwell.statistics.sample_size import PlannedComparison, spread
from findwell.statistics.significance import PERMUTATIONS, ROUNDING, adjust, error_rates
from findwell.statistics.verdicts import join_reasons, verdict_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.estimate import Estimate
    from findwell.measures import Measure
    from findwell.statistics.intervals import Bounds
    from findwell.statistics.paired import Paired

FEWEST_QUERIES = 10  # with a value; fewer cannot choose anything
DRAWS = 200  # bootstraps that vote
PERMUTATIONS_PER_TEST = 25  # of each test against the best: a corrected p can be 1 ÷ 25
NEAR_DISTANCE = 0.05  # settings whose places differ by no more than this count as the same choice
FOLDS, REPEATS = 5, 10
CURRENT = "current"  # what the setting in use is called, among the runs
PESSIMISTIC = "worse only on held-out queries, as is likely: they did not choose it"
ROUNDED_GAIN = 1e-12  # difference that rounding makes
POWER = 0.8  # the chance to see a difference that the number of queries is for


class TooFewQueriesError(InputError):
    """There are too few queries with a value to choose by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRule:
    """How a setting is chosen, and how what is said about it is tested."""

    clusters: Sequence[object] | None = None  # of each query; those of one stay in one fold
    folds: int = FOLDS
    repeats: int = REPEATS
    draws: int = DRAWS
    permutations: int = PERMUTATIONS
    seed: int = 0
    level: float = 0.95
    statistic: str = "mean"
    bounds: Bounds = UNIT
    higher_is_better: bool = True

    def by(self, measure: Measure) -> ChoiceRule:
        """Return the same rule for the values of a measure."""
        return replace(
            self,
            statistic=measure.aggregation,
            bounds=measure.bounds,
            higher_is_better=measure.higher_is_better,
        )

    def only(self, queries: Ints) -> ChoiceRule:
        """Return the same rule for some of the queries, in this order."""
        if self.clusters is None:
            return self
        return replace(self, clusters=[self.clusters[at] for at in queries])

    @property
    def sign(self) -> float:
        """1 where more is better, else −1."""
        return 1.0 if self.higher_is_better else -1.0

    def intervals(self, table: Floats) -> tuple[Estimate, ...]:
        """Return the aggregated value of each row of queries, with its interval."""
        return intervals(
            table.T,
            level=self.level,
            statistic=self.statistic,
            bounds=self.bounds,
            clusters=self.clusters,
        )

    def interval(self, values: Floats) -> Estimate:
        """Return the aggregated value of queries, with its interval."""
        return self.intervals(values[np.newaxis])[0]


USUAL_RULE = ChoiceRule()


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The setting that was chosen, and what it is worth; settings are numbers of rows of values."""

    chosen: int
    best: int  # the setting with the best value on all queries
    in_sample: Estimate  # the value of the chosen setting on the queries that chose it
    held_out: Estimate  # the value on queries that did not take part in the choice
    optimism: float | None  # how much better the value in sample looks than the one held out
    plateau: tuple[int, ...]  # settings that cannot be ruled out as the best
    stability: float | None  # the share of folds that choose the same setting, or one near it
    curve: tuple[Estimate, ...]  # the value of each setting on all queries
    values: Floats  # the held-out value of each query, the mean over repeats; NaN: left out
    # of cross-validation alone
    behind: tuple[Verdict, ...] = ()  # each setting against the best one; corrected (Holm)
    # the share of bootstraps in which each setting is the best
    votes: Floats = field(default_factory=lambda: np.zeros(0))
    # repeats × queries: the fold of each query; −1: left out
    fold: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    # repeats × folds: the setting that the other folds choose
    picks: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    @property
    def n(self) -> int:
        """How many queries took part."""
        return self.held_out.n

    @property
    def left_out(self) -> int:
        """The queries that lack a value with some setting."""
        return self.held_out.undefined

    def held_out_values(self, values: Floats, statistic: str = "mean") -> Floats:
        """Return what the settings chosen for each fold score by another measure, per query.

        `values` are settings × queries, as those that chose; a query that was left out of the
        choice is left out here.
        """
        return _held_out_values(values, self.picks, self.fold, statistic)


def choose_setting(
    values: Floats, rule: ChoiceRule = USUAL_RULE, *, places: Floats | None = None
) -> Choice:
    """Choose one of several settings from their values on the same queries: settings × queries.

    `places` says where each setting lies (settings × numbers), such that settings up to 0.05 apart
    in every number are alike; without places each is as far from every other one. A query that
    lacks a value with any setting (NaN) is left out. Queries of a cluster stay in one fold and are
    drawn together.

    >>> rng = np.random.default_rng(1)
    >>> peak = 1 - np.abs(np.linspace(0, 1, 11) - 0.6)[:, np.newaxis]
    >>> values = np.clip(peak - rng.random((11, 50)) * 0.4, 0, 1)
    >>> found = choose_setting(values, places=np.linspace(0, 1, 11)[:, np.newaxis])
    >>> found.chosen, found.plateau
    (6, (6,))
    """
    refuse_infinite(values)
    where = np.eye(len(values)) if places is None else places
    order = value_order(rule.sign * values)
    ordered, ordered_rule = values[:, order], rule.only(order)
    sampling = Sampling.of(ordered, ordered_rule)
    scores = sampling.scores(ordered, rule)
    picks = sampling.picks(scores, where)
    chosen, votes = sampling.pick(scores, where)
    means = _means(scores.sum(axis=0))
    best = int(means.argmax())
    behind = against_best(
        ordered.T[sampling.known], best, ordered_rule.only(np.flatnonzero(sampling.known))
    )
    back = np.argsort(order)
    fold = sampling.fold[:, back]
    held = _held_out_values(values, picks, fold, rule.statistic)
    rows = np.concatenate([held[np.newaxis], np.where(sampling.known[back], values, np.nan)])
    # each value is to the last digit that of `evaluate`
    held_out, *curve = (
        replace(each, value=statistic_of(row[~np.isnan(row)], rule.statistic))
        for each, row in zip(rule.intervals(rows), rows, strict=True)
    )
    return Choice(
        chosen=chosen,
        best=best,
        in_sample=curve[chosen],
        held_out=held_out,
        optimism=optimism_of(curve[chosen], held_out, rule),
        plateau=tuple(number for number, each in enumerate(behind) if each.word != WORSE),
        stability=stability_of(picks, chosen, where),
        curve=tuple(curve),
        behind=behind,
        votes=votes,
        values=held,
        fold=fold,
        picks=picks,
    )


def optimism_of(in_sample: Estimate, held_out: Estimate, rule: ChoiceRule) -> float:
    """Return how much better a value looks on the queries that chose."""
    return rule.sign * ((in_sample.value or 0.0) - (held_out.value or 0.0))


def stability_of(picks: Ints, chosen: int, places: Floats) -> float:
    """Return the share of folds that choose the setting, or one near it."""
    apart = np.abs(places[picks] - places[chosen]).max(axis=2)
    return float((apart <= NEAR_DISTANCE + ROUNDING).mean())


def value_order(values: Floats) -> Ints:
    """Return the order of queries by their values, settings × queries, whatever their names.

    The order of the settings, which is that of the runs, decides only between queries that have
    the same values.

    >>> values = np.array([[0.9, 0.1, 0.5], [0.2, 0.3, 0.5]])
    >>> value_order(values).tolist(), value_order(values[::-1]).tolist()
    ([1, 0, 2], [1, 0, 2])
    """
    keys = np.concatenate([np.sort(values, axis=0), values])
    return np.lexsort(keys[::-1])


def against_best(table: Floats, best: int, rule: ChoiceRule = USUAL_RULE) -> tuple[Verdict, ...]:
    """Compare every column of a table, queries × settings, with the best one.

    p and the interval of the difference are corrected for the number of tests (Holm). Columns with
    the very same values are one test. The best has no p.

    >>> found = against_best(np.array([[0.9, 0.1, 0.9]] * 8), best=0)
    >>> [(each.word, each.p) for each in found]
    [('same', None), ('worse', 0.0078125), ('same', 1.0)]
    """
    differences = to_scale(table, [rule.statistic] * table.shape[1])
    differences = differences - differences[:, [best]]
    _, first, again = np.unique(
        np.nan_to_num(differences), axis=1, return_index=True, return_inverse=True
    )
    tests = paired(
        np.repeat(table[:, [best]], len(first), axis=1),
        table[:, first],
        statistic=rule.statistic,
        level=rule.level,
        bounds=rule.bounds,
        clusters=rule.clusters,
        # with fewer a corrected p could not fall below the level, whatever the values
        permutations=max(rule.permutations, PERMUTATIONS_PER_TEST * len(first)),
        seed=rule.seed,
    )
    same = int(again.ravel()[best])  # what equals the best differs nowhere: no test is made
    raw = [None if number == same else each.test.p for number, each in enumerate(tests)]
    rates = error_rates(raw, "holm", 1 - rule.level)
    found = [
        verdict_of(
            each.interval(1 - rate, None),
            1.0 if number == same else p,
            level=rule.level,
            higher_is_better=rule.higher_is_better,
            found=each,
            correction="holm",
            reason=each.test.reason,
        )
        for number, (each, p, rate) in enumerate(
            zip(tests, adjust(raw, "holm"), rates, strict=True)
        )
    ]
    return tuple(
        replace(found[group], p=None) if number == best else found[group]
        for number, group in enumerate(again.ravel().tolist())
    )


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """Folds and bootstraps of units: queries, or clusters of them."""

    known: Bools  # which queries have a value with every setting
    unit: Ints  # of each known query
    fold: Ints  # repeats × queries; −1: left out
    unit_fold: Ints  # repeats × units
    counts: Floats  # bootstraps × units

    @classmethod
    def of(cls, values: Floats, rule: ChoiceRule) -> Sampling:
        """Deal the queries of values, settings × queries, into folds, and draw them again.

        Both go by the order of the queries.
        """
        check_draws("repeats", rule.repeats)
        check_draws("bootstraps", rule.draws)
        if rule.folds < 2:
            raise OptionError(
                f"{rule.folds} folds were asked for", fix="ask for 2 or more; 5 are usual"
            )
        known: Bools = np.asarray(~np.isnan(values).any(axis=0))
        count = int(known.sum())
        if count < FEWEST_QUERIES:
            raise TooFewQueriesError(
                f"{counted(count)} with a value: fewer than {FEWEST_QUERIES} cannot choose a "
                "setting",
                fix="add queries; until then keep the defaults of your engine (findwell fuse)",
            )
        labels = range(len(known)) if rule.clusters is None else rule.clusters
        unit = cluster_codes([labels[at] for at in np.flatnonzero(known).tolist()], count)
        units = int(unit.max()) + 1
        if units < rule.folds:
            what = "queries" if rule.clusters is None else "clusters"
            raise OptionError(
                f"{units} {what} cannot be divided into {rule.folds} folds",
                fix=f"ask for {units} folds or fewer" if units > 1 else "choose another column",
            )
        unit_fold = balanced_folds(units, rule.folds, rule.repeats, rule.seed)
        fold = np.full((rule.repeats, len(known)), -1)
        fold[:, known] = unit_fold[:, unit]
        return cls(known, unit, fold, unit_fold, bootstrap_counts(units, rule.draws, rule.seed))

    def scores(self, values: Floats, rule: ChoiceRule, inside: Bools | None = None) -> Floats:
        """Return the sums of what is compared, units × settings, such that more is better.

        They are multiples of one step, so that sums are exact in whatever order they are added.
        Only the queries `inside` count.
        """
        scaled = to_scale(values.T[self.known], each_statistic(rule.statistic, len(values)))
        if inside is not None:
            scaled = np.where(inside[self.known, np.newaxis], scaled, 0.0)
        sums = as_units(scaled if rule.higher_is_better else -scaled, self.unit).sums
        reach = np.full(len(values), np.abs(sums).max(initial=0.0) * self.counts.shape[1])
        return on_one_grid(sums, reach)

    def pick(self, scores: Floats, places: Floats) -> tuple[int, Floats]:
        """Return the setting that all units choose, and the votes for each setting."""
        return _nearest_to_votes(self.counts @ scores, scores.sum(axis=0), places)

    def picks(self, scores: Floats, places: Floats) -> Ints:
        """Return the setting that the other units choose for each fold: repeats × folds.

        No fold votes about itself: what its units add to a bootstrap is taken off again.
        """
        sums, total = self.counts @ scores, scores.sum(axis=0)
        found = np.empty((len(self.unit_fold), int(self.unit_fold.max()) + 1), dtype=np.int64)
        for repeat, dealt in enumerate(self.unit_fold):
            for fold in range(found.shape[1]):
                out = dealt == fold
                left = sums - self.counts[:, out] @ scores[out]
                found[repeat, fold], _ = _nearest_to_votes(
                    left, total - scores[out].sum(axis=0), places
                )
        return found


def _means(sums: Floats) -> Floats:
    """Return sums such that those that differ by rounding only are equal."""
    step = ROUNDING * max(1.0, float(np.abs(sums).max(initial=0.0)))
    return np.round(sums / step) * step


def _nearest_to_votes(sums: Floats, total: Floats, places: Floats) -> tuple[int, Floats]:
    """Return the setting nearest to the winners of bootstraps, and the share of votes of each."""
    close = ROUNDING * np.abs(sums).max(initial=0.0)
    won = sums >= sums.max(axis=1, keepdims=True) - close
    votes = (won / won.sum(axis=1, keepdims=True)).mean(axis=0)
    some = np.flatnonzero(votes)
    apart = np.zeros((len(some), len(some)))
    for place in places[some].T:
        apart += np.abs(place[:, np.newaxis] - place)
    far = (apart * votes[some]).sum(axis=1)
    near = some[far <= far.min() + 1e-9]  # several are as near: the best of them
    means = _means(total[near])
    equal = near[means >= means.max() - close]
    # then the one in their middle, then in that of all: the order of runs does not matter
    for middle in (places[equal].mean(axis=0), places.mean(axis=0)):
        off = np.abs(places[equal] - middle).sum(axis=1)
        equal = equal[off <= off.min() + 1e-9]
    return int(equal[0]), votes


def _held_out_values(values: Floats, picks: Ints, fold: Ints, statistic: str) -> Floats:
    """Return the value of each query with the settings of its folds, the mean over repeats."""
    seen = np.array(
        [
            np.where(dealt < 0, np.nan, values[chosen[dealt], np.arange(values.shape[1])])
            for chosen, dealt in zip(picks, fold, strict=True)
        ]
    )
    scaled = to_scale(seen, [statistic] * values.shape[1])
    # differences from the first, so that values which are all the same stay what they are
    mean: Floats = scaled[0] + (scaled - scaled[0]).mean(axis=0)
    if statistic != "geometric":
        return mean
    return np.array([from_scale(float(each), statistic, 1) for each in mean])


# one setting for each slice


@dataclass(frozen=True, slots=True, eq=False)
class SliceChoice:
    """The setting that the queries of one slice choose."""

    label: str
    n: int  # queries of the slice with a value
    chosen: int
    in_sample: float | None  # of its own setting, on the queries that chose it
    held_out: float | None  # of its own setting, on queries of the slice that did not
    shared: float | None  # of the one setting for all, held out, on the same queries
    own: bool  # it has queries enough to choose; else the setting of all is its own


def choose_by_slice(
    values: Floats,
    labels: Sequence[str],
    overall: Choice,
    rule: ChoiceRule = USUAL_RULE,
    *,
    places: Floats | None = None,
) -> tuple[tuple[SliceChoice, ...], Floats]:
    """Choose a setting for each slice of the queries, with the folds of a choice for all.

    Return the slices, and the held-out value of each query under the settings of its slice. A
    slice with too few queries keeps the setting of all.
    """
    order = value_order(rule.sign * values)
    repeats, folds = overall.picks.shape
    ordered = values[:, order]
    sampling = Sampling.of(ordered, replace(rule.only(order), folds=folds, repeats=repeats))
    where = np.eye(len(values)) if places is None else places
    names = np.array(labels)
    held, found = overall.values.copy(), []
    for label in sorted(set(labels)):
        inside = names == label
        known = inside & ~np.isnan(overall.values)
        own = int(known.sum()) >= FEWEST_QUERIES
        chosen, ours = overall.chosen, overall.values
        if own:
            scores = sampling.scores(ordered, rule, inside[order])
            chosen, _ = sampling.pick(scores, where)
            picks = sampling.picks(scores, where)
            ours = _held_out_values(values, picks, overall.fold, rule.statistic)
            held[inside] = ours[inside]
        in_sample, held_out, shared = (
            statistic_of(each[known], rule.statistic)
            for each in (values[chosen], ours, overall.values)
        )
        found.append(SliceChoice(label, int(known.sum()), chosen, in_sample, held_out, shared, own))
    return tuple(found), held


# what a choice gains


@dataclass(frozen=True, slots=True)
class Gain:
    """The chosen setting against something else: a run alone, or the current setting."""

    over: str
    verdict: Verdict  # of the choice, held out, against the other
    p: float | None  # before it is corrected for the number of gains
    value: float | None  # of the other on the same queries
    needed: int | None = None  # queries, or clusters, that would show such a difference

    def as_dict(self) -> dict[str, Any]:
        """Return it as the JSON output prints it."""
        verdict, difference = self.verdict, self.verdict.difference
        return {
            "over": self.over,
            "difference": difference.value,
            "low": difference.low,
            "high": difference.high,
            "p": self.p,
            "p_adjusted": verdict.p,
            "verdict": verdict.word,
            "value": self.value,
            "wins": verdict.won,
            "ties": verdict.tied,
            "losses": verdict.lost,
            "n": difference.n,
            "needed": self.needed,
            "reason": verdict.reason,
        }


def worth_keeping(gains: Sequence[Gain], *, higher_is_better: bool) -> Gain | None:
    """Return the best of what the choice does not surpass on held-out queries, or None.

    Of a run and the current setting that are equally good, it is the run, which is simpler.
    """
    sign = 1.0 if higher_is_better else -1.0
    unbeaten = [
        gain
        for gain in gains
        if gain.value is not None
        and (difference := gain.verdict.difference.value) is not None
        and sign * difference <= ROUNDED_GAIN
    ]
    return max(
        unbeaten, key=lambda gain: (sign * (gain.value or 0.0), gain.over != CURRENT), default=None
    )


def gains_over(
    held_out: Floats,
    others: Mapping[str, Floats],
    rule: ChoiceRule = USUAL_RULE,
    *,
    in_sample: Floats | None = None,
) -> tuple[Gain, ...]:
    """Compare held-out values with those of others on the same queries.

    The test is paired; p-values are corrected for the number of others (Holm), and the corrected
    one decides, also whether 0 is in the interval. Where it is unclear, `needed` is how many
    queries (with clusters: how many clusters) would show a difference as large as the one seen,
    four times in five.

    `in_sample` are the values of the chosen setting itself. Settings chosen without a query tend to
    be bad for it, as what was left out is missing from the choice; so `worse` is only what the same
    test calls worse in sample, too.

    >>> held = np.linspace(0.5, 0.9, 20)
    >>> (gain,) = gains_over(held, {"before": held - 0.1})
    >>> round(gain.verdict.difference.value, 3), gain.verdict.word
    (0.1, 'better')
    """

    def verdict(test: Paired, difference: Estimate, p: float | None, reason: str = "") -> Verdict:
        return verdict_of(
            difference,
            p,
            level=rule.level,
            higher_is_better=rule.higher_is_better,
            found=test,
            correction="holm",
            reason=reason,
        )

    found = {name: _compared(held_out, values, rule) for name, values in others.items()}
    p_values = [each.test.p for each in found.values()]
    rates = error_rates(p_values, "holm", 1 - rule.level)
    gains = []
    for (name, each), p, rate in zip(found.items(), adjust(p_values, "holm"), rates, strict=True):
        wide = each
        if len(found) > 1:
            wide = _compared(held_out, others[name], replace(rule, level=1 - rate))
        difference = replace(each.difference, low=wide.difference.low, high=wide.difference.high)
        value, needed = _needed(held_out, others[name], rule)
        reason = join_reasons(each.test.reason, needed.reason)
        said = verdict(each, difference, p, reason)
        if said.word == WORSE and in_sample is not None:
            chosen = _compared(in_sample, others[name], rule)
            if verdict(chosen, chosen.difference, chosen.test.p).word != WORSE:
                # both must be worse, so that the larger p decides, about the interval as well
                agree = (chosen.difference.value or 0.0) * (difference.value or 0.0) > 0
                both = max(p or 1.0, chosen.test.p or 1.0) if agree else 1.0
                said, needed = verdict(each, difference, both, PESSIMISTIC), Quantity(None)
        count = None if said.word != UNCLEAR or needed.value is None else int(needed.value)
        gains.append(Gain(name, said, each.test.p, value, count))
    return tuple(gains)


def _compared(mine: Floats, other: Floats, rule: ChoiceRule) -> Paired:
    """Compare values query by query."""
    # random signs go by place: sorted, names and order of the queries do not matter
    order = np.lexsort((other, mine - other))
    (found,) = paired(
        other[order],
        mine[order],
        clusters=rule.only(order).clusters,
        level=rule.level,
        permutations=rule.permutations,
        seed=rule.seed,
        statistic=rule.statistic,
        bounds=rule.bounds,
    )
    return found


def _needed(mine: Floats, other: Floats, rule: ChoiceRule) -> tuple[float | None, Quantity]:
    """Return the value of the other, and how many units show a difference as large as this."""
    order = np.lexsort((other, mine - other))
    both = np.flatnonzero(~np.isnan((mine - other)[order]))
    scaled = to_scale(np.column_stack([other, mine])[order][both], [rule.statistic] * 2)
    labels = rule.only(order).clusters
    codes = None if labels is None else cluster_codes(labels, len(order))[both]
    made = estimate(as_units(scaled[:, [1]] - scaled[:, [0]], codes))
    if not made.n:
        return None, Quantity(None, spread(np.zeros(0)).reason)
    value = from_scale(float(scaled[:, 0].mean()), rule.statistic, made.n)
    differences = made.values + made.influence[0]
    varied = spread(differences)
    if varied.sd is None:
        return value, Quantity(None, varied.reason)
    planned = PlannedComparison(varied.sd, varied.changed, POWER, 1 - rule.level)
    try:
        return value, planned.queries_needed(abs(float(differences.mean())))
    except OptionError as error:
        return value, Quantity(None, str(error).splitlines()[0])
