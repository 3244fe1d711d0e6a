"""Successive halving: many configurations are asked few questions, the best of them more.

Every configuration that must be asked costs time or money. So all are asked the questions of a
first rung, the best 1 ÷ η of them go on to the next, which has η times as many, and so on; the
best of the last rung is chosen (Jamieson and Talwalkar 2016). Its value on these questions is not a
claim: they chose it. What it is worth, and whether that is more than today's configuration, is
measured on questions that were kept back, and that only these two are asked.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from findwell.core.errors import FindwellError, InputError, OptionError, RetrieverError
from findwell.statistics.intervals import cluster_codes

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints

# the values of some settings on some queries, and which of the settings failed
MeasureSettings: TypeAlias = "Callable[[Sequence[int], Ints], tuple[Floats, Bools]]"

ETA = 3
FEWEST_FINAL = 10  # queries that the final claim is made on
ERROR_RATE = 0.05  # of the test that could separate a setting from the best
DIFFERING_SHARE = 0.5  # of the queries: two settings mostly give the others the same value


@dataclass(frozen=True, slots=True)
class Rung:
    """How many settings are asked how many queries, those of the rungs before included."""

    settings: int
    queries: int


@dataclass(frozen=True, slots=True)
class HalvingPlan:
    """The rungs, and how many queries are kept for the final claim."""

    rungs: tuple[Rung, ...]
    final: int
    eta: int

    @property
    def searched(self) -> int:
        """How many queries choose."""
        return self.rungs[-1].queries

    def calls(self, claims: int = 2) -> int:
        """Return how many questions are asked in all; `claims` settings are asked in the end.

        >>> plan_halving(9, 90).calls()
        360
        """
        before, total = 0, 0
        for rung in self.rungs:
            total += rung.settings * (rung.queries - before)
            before = rung.queries
        return total + claims * self.final

    def __str__(self) -> str:
        steps = ", ".join(f"{rung.settings} × {rung.queries}" for rung in self.rungs)
        return f"settings × queries: {steps}; final claim on {self.final} others"


def fewest_queries(settings: int) -> int:
    """Return how many queries it takes to separate one of these settings from the best.

    The exact test of d queries that differ has a p of 2 ÷ 2^d at least, which must fall to the
    error rate, corrected for the number of settings. Fewer queries rank settings by luck.

    >>> fewest_queries(2), fewest_queries(10), fewest_queries(73)
    (12, 18, 24)
    """
    differing = math.ceil(1 + math.log2((settings - 1) / ERROR_RATE))
    return math.ceil(differing / DIFFERING_SHARE)


def plan_halving(
    settings: int,
    queries: int,
    *,
    eta: int | None = None,
    first: int | None = None,
    final: float = 1 / 3,
) -> HalvingPlan:
    """Lay out the rungs: how many settings are asked how many queries.

    There are as many rungs as it takes to leave `eta` settings, or as many as the queries allow
    that are not kept for the final claim: each has `eta` times as many queries as the one before,
    and the first has as many as can separate the settings (`fewest_queries`). `first` is another
    number of queries for the first one.

    >>> print(plan_halving(25, 150))
    settings × queries: 25 × 33, 9 × 99; final claim on 51 others
    >>> print(plan_halving(73, 95))
    settings × queries: 73 × 63; final claim on 32 others
    """
    if settings < 2:
        raise OptionError(
            "one setting leaves nothing to choose", fix="give a knob of the space several values"
        )
    kept, share = max(FEWEST_FINAL, round(final * queries)), ETA if eta is None else eta
    least, room = fewest_queries(settings) if first is None else first, queries - kept
    if room < least:
        raise OptionError(
            f"{settings} settings need {least} queries to choose by and {kept} others for the "
            f"final claim; there are {queries}",
            fix="add queries, try fewer settings, or change search: "
            f"first (now {least}), final (now {final:.2f})",
        )
    counts = [settings]
    while counts[-1] > share and least * share ** len(counts) <= room:
        counts.append(math.ceil(counts[-1] / share))
    start = room // share ** (len(counts) - 1) if first is None else first
    rungs = tuple(Rung(count, start * share**step) for step, count in enumerate(counts))
    return HalvingPlan(rungs, queries - rungs[-1].queries, share)


@dataclass(frozen=True, slots=True, eq=False)
class Halving:
    """What was measured, and which setting is left; settings and queries are numbers."""

    chosen: int
    values: Floats  # settings × queries; NaN where not asked, or undefined
    search: Ints  # the queries that chose
    final: Ints  # the queries of the final claim, of which none chose
    rungs: tuple[tuple[int, ...], ...]  # the settings of each, the best of the rung before first
    asked: Ints  # of each setting: how many of the queries that chose it was asked


def halve(
    measure: MeasureSettings,
    plan: HalvingPlan,
    order: Ints,
    final: Ints,
    *,
    current: int | None = None,
    higher_is_better: bool = True,
) -> Halving:
    """Go through the rungs, and measure who is left, and the current setting, on the final queries.

    `order` are the queries that choose, in the order in which they are asked. Of settings with
    equal values the current one goes on first, then the one that stands first.

    >>> truth = np.array([0.2, 0.9, 0.5])
    >>> ask = lambda settings, queries: (truth[settings, None] + 0 * queries, np.zeros(3, bool))
    >>> plan = plan_halving(3, 40)
    >>> halve(ask, plan, np.arange(27), np.arange(27, 40), current=0).chosen
    1
    """
    values = np.full((plan.rungs[0].settings, int(max(order.max(), final.max())) + 1), np.nan)
    asked = np.zeros(len(values), dtype=np.int64)
    left = list(range(len(values)))
    rungs, before = [], 0
    for step, rung in enumerate(plan.rungs):
        left = left[: rung.settings]
        rungs.append(tuple(left))
        added = order[before : rung.queries]
        found, failed = measure(left, added)
        values[np.array(left)[:, np.newaxis], added] = found
        asked[left] += len(added)
        means = _means(values[left][:, order[: rung.queries]])
        means[failed[: len(left)]] = np.nan
        if np.isnan(means).all():
            raise _nothing_measured(step, failed)
        sign = 1.0 if higher_is_better else -1.0
        score = np.where(np.isnan(means), -np.inf, sign * means)
        at = np.array([setting != current for setting in left])
        left = [left[place] for place in np.lexsort((np.array(left), at, -score))]
        before = rung.queries
    chosen = left[0]
    claimed = list(dict.fromkeys([chosen, chosen if current is None else current]))
    values[np.array(claimed)[:, np.newaxis], final], _ = measure(claimed, final)
    return Halving(chosen, values, order[: plan.searched], final, tuple(rungs), asked)


def _means(values: Floats) -> Floats:
    """Return the mean of each row over what is defined, or NaN."""
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    total = np.where(known, values, 0.0).sum(axis=1)
    rounded = np.round(total / np.maximum(count, 1), 12)  # equal means stay equal
    return np.where(count > 0, rounded, np.nan)


def _nothing_measured(step: int, failed: Bools) -> FindwellError:
    what = f"no setting has a value on the queries of rung {step + 1}"
    if failed.all():
        fix = "correct the retriever, and start again; `findwell run` asks one setting alone"
        return RetrieverError(f"every setting failed in rung {step + 1}", fix=fix)
    return InputError(what, fix="give gold labels whose queries have something relevant")


def deal_queries(
    questions: Sequence[str],
    plan: HalvingPlan,
    *,
    seed: int = 0,
    clusters: Sequence[object] | None = None,
) -> tuple[Ints, Ints]:
    """Return the queries that choose, in the order in which they are asked, and the final ones.

    The order comes from the questions and the seed, so that neither the names of queries nor the
    order in which they come decide about it. A cluster is never on both sides, nor is a question
    that is asked twice: the rest of one that the search ended in is not asked.

    >>> order, final = deal_queries([f"question {n}" for n in range(40)], plan_halving(3, 40))
    >>> len(order), len(final)
    (27, 13)
    """
    keys = [hashlib.sha256(f"{seed} {text}".encode()).hexdigest() for text in questions]
    groups = cluster_codes(questions if clusters is None else clusters, len(keys)).tolist()
    first: dict[int, str] = {}
    for key, group in zip(keys, groups, strict=True):
        first[group] = min(key, first.get(group, key))
    order = sorted(range(len(keys)), key=lambda at: (first[groups[at]], groups[at], keys[at]))
    ranked = np.array(order, dtype=np.int64)
    search = ranked[: plan.searched]
    inside = {groups[at] for at in search}
    final = np.array([at for at in order[plan.searched :] if groups[at] not in inside], np.int64)
    if len(final) < FEWEST_FINAL:
        raise OptionError(
            f"{len(final)} queries are left for the final claim, because clusters are not split",
            fix="change search: a larger final, a smaller first; or use smaller clusters",
        )
    return search, final
