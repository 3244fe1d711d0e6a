"""From values to verdicts: the only place that says whether a system is better.

A test decides the word, and the same test decides whether 0 is in the interval of the difference,
so that the two cannot contradict each other. Of several tests each p is corrected for their number,
and so is its interval (docs/decisions/0022-one-test-decides.md).

`contrasts` compares systems; `correct` and `correct_all_pairs` correct what it returns. What is not
compared value by value brings its own difference and p to `verdict_of`. The signals of production
are decided by an interval or by bets (`verdict_of_interval`, `verdict_of_change`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.core.errors import OptionError, choose
from findwell.core.verdict import BETTER, HIGHER, LOWER, SAME, UNCLEAR, UNKNOWN, WORSE, Verdict
from findwell.statistics.intervals import aggregate, to_scale
from findwell.statistics.paired import TESTS, paired
from findwell.statistics.significance import (
    PERMUTATIONS,
    adjust,
    decide_zero,
    error_rates,
    out_of_reach,
    rejects,
    tukey,
)
from findwell.statistics.unpaired import unpaired

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from findwell.core.data import Bools, Floats
    from findwell.core.estimate import Estimate
    from findwell.core.measure import Measure
    from findwell.core.verdict import Word
    from findwell.statistics.paired import Paired
    from findwell.statistics.unpaired import Unpaired

Pair: TypeAlias = tuple[int, int]  # the numbers of baseline and system

NOTHING_SHARED = "no retrieved document is in the gold, so that nothing was compared"
NO_TUKEY = "the correction for all pairs takes queries of a cluster as independent"


def verdict_of(
    difference: Estimate,
    p: float | None,
    *,
    level: float,
    higher_is_better: bool = True,
    found: Paired | Unpaired | None = None,
    correction: str = "none",
    reason: str = "",
) -> Verdict:
    """Return the verdict of a test about a difference, system − baseline, and its interval.

    `p` is corrected for the number of tests, `difference` has the interval that goes with it.
    `found` names the test, and counts the queries: `same` is said where they are paired and none of
    them differs.

    >>> from findwell.core.estimate import Estimate
    >>> found = verdict_of(Estimate(0.1, -0.02, 0.3, 0.95, "some", 20), 0.01, level=0.95)
    >>> print(found.word, f"{found.difference.low:.4f}")
    better 0.0239
    """
    word: Word = UNCLEAR
    won, tied, lost = (found.wins, found.ties, found.losses) if found else (None, None, None)
    if not higher_is_better:  # to win is to be better, not to have more
        won, lost = lost, won
    if difference.value is not None and p is not None:
        if won == 0 and lost == 0:
            word = SAME
        elif difference.value and rejects(p, 1 - level):
            word = _direction(upward=difference.value > 0, higher_is_better=higher_is_better)
    decided = decide_zero(difference, p, 1 - level)
    test = found.test.method if found else ""
    return Verdict(word, decided, p, correction, test, won, tied, lost, reason)


def _direction(*, upward: bool, higher_is_better: bool | None) -> Word:
    if higher_is_better is None:
        return HIGHER if upward else LOWER
    return BETTER if upward == higher_is_better else WORSE


def verdict_of_interval(difference: Estimate, *, higher_is_better: bool | None) -> Verdict:
    """Return the verdict where an interval decides: clear if 0 is outside of it.

    If no direction is good, `higher_is_better` is None, and the verdict says higher or lower.

    >>> from findwell.core.estimate import Estimate
    >>> found = Estimate(0.1, 0.02, 0.3, 0.95, "some", 20)
    >>> verdict_of_interval(found, higher_is_better=None).word
    'higher'
    """
    low, high = difference.low, difference.high
    upward = None if low is None or high is None or low <= 0 <= high else low > 0
    return verdict_of_change(
        difference, upward=upward, higher_is_better=higher_is_better, test=difference.method
    )


def verdict_of_change(
    difference: Estimate,
    *,
    upward: bool | None,
    higher_is_better: bool | None,
    p: float | None = None,
    correction: str = "none",
    test: str = "",
    reason: str = "",
) -> Verdict:
    """Return the verdict where bets have decided: `upward` is None if they show no change."""
    word: Word = UNCLEAR
    if upward is not None:
        word = _direction(upward=upward, higher_is_better=higher_is_better)
    return Verdict(word, difference, p, correction, test, reason=reason)


def withhold(found: Verdict, limit: str) -> Verdict:
    """Return what is left of a verdict if the judge of the values gives none about systems."""
    return replace(found, word=UNKNOWN, p=None, reason=join_reasons(found.reason, limit))


def join_reasons(*reasons: str) -> str:
    """Return all reasons in a line, each once."""
    return "; ".join(dict.fromkeys(filter(None, reasons)))


@dataclass(frozen=True, slots=True)
class DifferenceTest:
    """How differences are tested."""

    level: float = 0.95
    permutations: int = PERMUTATIONS
    seed: int = 0
    test: str = "auto"
    clusters: tuple[object, ...] | None = None
    unpaired: bool = False  # whether the systems were asked different queries

    def only(self, inside: Bools) -> DifferenceTest:
        """Return the same for some of the queries."""
        if self.clusters is None:
            return self
        kept = tuple(label for label, keep in zip(self.clusters, inside, strict=True) if keep)
        return replace(self, clusters=kept)


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A system against a baseline on one measure: what differs, and the verdict about it."""

    pair: Pair
    measure: Measure
    values: tuple[Floats, Floats]  # of baseline and system
    how: DifferenceTest
    found: Paired | Unpaired  # the difference and its test by themselves
    difference: Estimate  # corrected as p is
    p: float | None  # corrected for the number of tests
    correction: str = "none"
    reason: str = ""
    stranger: bool = False  # whether one of the two retrieved nothing that is in the gold
    limit: str = ""  # why the judge of the values gives no verdict about systems

    @property
    def sides(self) -> tuple[float | None, float | None]:
        """The aggregated values of baseline and system, on the queries that are compared."""
        before, after = self.values
        if not self.how.unpaired:
            both = ~(np.isnan(before) | np.isnan(after))
            before, after = before[both], after[both]
        return aggregate(self.measure, before).value, aggregate(self.measure, after).value

    @property
    def verdict(self) -> Verdict:
        """The verdict, by the corrected p."""
        made = verdict_of(
            self.difference,
            self.p,
            level=self.how.level,
            higher_is_better=self.measure.higher_is_better,
            found=self.found,
            correction=self.correction,
            reason=self.reason,
        )
        if made.word == SAME and self.stranger and not self.sides[0]:
            reason = join_reasons(NOTHING_SHARED, made.reason)
            made = replace(made, word=UNCLEAR, reason=reason)
        return withhold(made, self.limit) if self.limit else made


def contrasts(
    values: Floats,
    measures: Sequence[Measure],
    pairs: Sequence[Pair],
    how: DifferenceTest,
    *,
    strangers: Collection[int] = (),
) -> list[Contrast]:
    """Compare each pair of systems by each measure; nothing is corrected for their number yet.

    `values` are queries × systems × measures, NaN where one is missing; `strangers` are the systems
    that retrieved nothing that is in the gold: that no query differs says nothing about them.
    """
    columns = [(pair, measure) for pair in pairs for measure in measures]
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    before, after = (
        values[:, side, :].reshape(len(values), len(columns)) for side in (first, second)
    )
    every: Sequence[Paired | Unpaired]
    if how.unpaired:
        every = [
            _of_groups(before[:, at], after[:, at], measure, how)
            for at, (_, measure) in enumerate(columns)
        ]
    else:
        every = paired(
            before,
            after,
            statistic=[measure.aggregation for _, measure in columns],
            level=how.level,
            bounds=[measure.bounds for _, measure in columns],
            clusters=how.clusters,
            test=how.test,
            permutations=how.permutations,
            seed=how.seed,
        )
    return [
        Contrast(
            pair,
            measure,
            (before[:, at], after[:, at]),
            how,
            found,
            found.difference,
            found.test.p,
            reason=join_reasons(found.test.reason, found.difference.reason, found.effect.reason),
            stranger=not {*pair}.isdisjoint(strangers),
        )
        for at, ((pair, measure), found) in enumerate(zip(columns, every, strict=True))
    ]


def _of_groups(before: Floats, after: Floats, measure: Measure, how: DifferenceTest) -> Unpaired:
    """Compare two systems that were asked different queries."""
    choose("test", how.test, TESTS)
    if how.test == "mcnemar":
        raise OptionError(
            "McNemar's test needs the same queries for both systems",
            fix="leave out the test, or the choice of unpaired queries",
        )
    return unpaired(
        before,
        after,
        statistic=measure.aggregation,
        level=how.level,
        bounds=measure.bounds,
        # a query without a value belongs to neither group
        clusters=None if how.clusters is None else (how.clusters, how.clusters),
        test="welch" if how.test == "t" else "division",
        permutations=how.permutations,
        seed=how.seed,
    )


def correct(found: Sequence[Contrast], method: str) -> list[Contrast]:
    """Correct p and the intervals for the number of tests of a measure: `holm` or `bh`.

    A single p-value needs no correction. Where a test has too few queries to show anything, that
    is said.
    """
    families: dict[str, list[int]] = {}
    for at, each in enumerate(found):
        families.setdefault(str(each.measure), []).append(at)
    corrected = list(found)
    for family in families.values():
        p_values = [found[at].p for at in family]
        tests = len(family) if method == "holm" else 1
        if len(family) > 1:
            rates = error_rates(p_values, method, 1 - found[family[0]].how.level)
            for at, p, rate in zip(family, adjust(p_values, method), rates, strict=True):
                span = found[at].found.interval(1 - rate, found[at].found.test)
                corrected[at] = replace(found[at], p=p, correction=method, difference=span)
        for at in family:
            corrected[at] = _with_reach(corrected[at], tests)
    return corrected


def correct_all_pairs(
    found: Sequence[Contrast], values: Floats, measures: Sequence[Measure]
) -> list[Contrast]:
    """Correct p and the intervals of all pairs of systems together: randomised Tukey HSD.

    `found` is what `contrasts` returns for all pairs. The interval is that of the error rate that
    is left to each pair if all have the same; the joint p decides about 0.
    """
    how = found[0].how
    statistics = [measure.aggregation for measure in measures]
    joint = tukey(values, statistic=statistics, permutations=how.permutations, seed=how.seed)
    corrected = []
    for at, each in enumerate(found):
        every = joint[at % len(measures)]
        p = None
        if each.found.n:  # by the mean difference on the scale of the statistic
            names = [each.measure.aggregation]
            before, after = (to_scale(side[:, np.newaxis], names) for side in each.values)
            p = every.chance(float(np.nanmean(after - before)))
        alpha = 1 - how.level
        span = decide_zero(each.found.interval(1 - alpha / len(every.p), None), p, alpha)
        reason = join_reasons(each.reason, every.reason, NO_TUKEY if how.clusters else "")
        made = replace(each, p=p, correction="tukey", difference=span, reason=reason)
        corrected.append(_with_reach(made, 1))
    return corrected


def _with_reach(each: Contrast, tests: int) -> Contrast:
    """Say whether the test could have shown anything: with few queries or clusters it cannot."""
    test = each.found.test
    reach = out_of_reach(
        test.method,
        test.smallest,
        1 - each.how.level,
        tests=tests,
        clustered=each.how.clusters is not None,
    )
    return replace(each, reason=join_reasons(each.reason, reach))
