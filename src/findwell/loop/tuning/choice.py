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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import InputError, OptionError
from findwell.statistics.intervals import as_units, cluster_codes, intervals
from findwell.statistics.resampling import balanced_folds, bootstrap_counts, on_one_grid
from findwell.statistics.significance import PERMUTATIONS, ROUNDING, adjust, sign_flip
from findwell.statistics.values import (
    UNIT,
    check_draws,
    check_share,
    each_statistic,
    from_scale,
    refuse_infinite,
    to_scale,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.estimate import Estimate
    from findwell.statistics.values import Bounds

FEWEST = 10  # queries with a value; fewer cannot choose anything
DRAWS = 200  # bootstraps that vote
ENOUGH = 25  # permutations for each test: a corrected p can be 1 ÷ 25
NEAR = 0.05  # settings whose places differ by no more than this count as the same choice
FOLDS, REPEATS = 5, 10


class TooFewQueriesError(InputError):
    """There are too few queries with a value to choose by."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The setting that was chosen, and what it is worth; settings are numbers of rows of values."""

    chosen: int
    best: int  # the setting with the best value on all queries
    in_sample: Estimate  # the value of the chosen setting on the queries that chose it
    held_out: Estimate  # the value on queries that did not take part in the choice
    optimism: float  # how much better the value in sample looks than the one held out
    plateau: tuple[int, ...]  # settings that are not shown to be worse than the best one
    stability: float  # the share of folds that choose the same setting, or one near it
    curve: tuple[Estimate, ...]  # the value of each setting on all queries
    worse: tuple[float | None, ...]  # p of each setting against the best, corrected (Holm)
    votes: Floats  # the share of bootstraps in which each setting is the best
    values: Floats  # the held-out value of each query, the mean over repeats; NaN: left out
    fold: Ints  # repeats × queries: the fold of each query; −1: left out
    picks: Ints  # repeats × folds: the setting that the other folds choose

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
    values: Floats,
    *,
    places: Floats | None = None,
    near: float = NEAR,
    clusters: Sequence[object] | None = None,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    draws: int = DRAWS,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    level: float = 0.95,
    statistic: str = "mean",
    bounds: Bounds = UNIT,
    higher_is_better: bool = True,
) -> Choice:
    """Choose one of several settings from their values on the same queries: settings × queries.

    `places` says where each setting lies (settings × numbers), such that settings up to `near`
    apart in every number are alike; without places no two are. A query that lacks a value with
    any setting (NaN) is left out. Queries of a cluster stay in one fold and are drawn together.

    >>> rng = np.random.default_rng(1)
    >>> peak = 1 - np.abs(np.linspace(0, 1, 11) - 0.6)[:, np.newaxis]
    >>> values = np.clip(peak - rng.random((11, 50)) * 0.4, 0, 1)
    >>> found = choose_setting(values, places=np.linspace(0, 1, 11)[:, np.newaxis])
    >>> found.chosen, found.plateau
    (6, (6,))
    """
    check_share("level", level)
    _check(values, folds, repeats, draws)
    order = value_order(values if higher_is_better else -values)
    ordered = values[:, order]
    labels = None if clusters is None else [clusters[place] for place in order]
    sampling = Sampling.of(ordered, labels, folds=folds, repeats=repeats, draws=draws, seed=seed)
    scores = sampling.scores(ordered, statistic, higher_is_better=higher_is_better)
    where = _places(places, len(values))
    picks = sampling.picks(scores, where)
    chosen, votes = sampling.pick(scores, where)
    means = _means(scores.sum(axis=0))
    best = int(means.argmax())
    sign = 1.0 if higher_is_better else -1.0
    worse = against_best(
        to_scale(ordered.T[sampling.known], [statistic] * len(values)) * sign,
        best,
        permutations=permutations,
        seed=seed,
        clusters=None
        if labels is None
        else [label for label, known in zip(labels, sampling.known, strict=True) if known],
    )
    back = np.argsort(order)
    fold = sampling.fold[:, back]
    held = _held_out_values(values, picks, fold, statistic)
    table = np.where(sampling.known[back], values, np.nan)
    held_out, *curve = _intervals(
        np.concatenate([held[np.newaxis], table]), level, statistic, bounds, clusters
    )
    in_sample = curve[chosen]
    apart = np.abs(where[picks] - where[chosen]).max(axis=2)
    return Choice(
        chosen=chosen,
        best=best,
        in_sample=in_sample,
        held_out=held_out,
        optimism=sign * ((in_sample.value or 0.0) - (held_out.value or 0.0)),
        plateau=tuple(
            number
            for number, p in enumerate(worse)
            if p is None or not (p < 1 - level and means[number] < means[best])
        ),
        stability=float((apart <= near + ROUNDING).mean()),
        curve=tuple(curve),
        worse=worse,
        votes=votes,
        values=held,
        fold=fold,
        picks=picks,
    )


def _intervals(
    rows: Floats,
    level: float,
    statistic: str,
    bounds: Bounds,
    clusters: Sequence[object] | None,
) -> list[Estimate]:
    """Return the interval of each row, whose value is to the last digit that of `evaluate`."""
    found = intervals(rows.T, level=level, statistic=statistic, bounds=bounds, clusters=clusters)
    return [
        replace(each, value=_aggregated(row[~np.isnan(row)], statistic))
        for each, row in zip(found, rows, strict=True)
    ]


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


def against_best(
    table: Floats,
    best: int,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    clusters: Sequence[object] | None = None,
) -> tuple[float | None, ...]:
    """Return p of every column against the best one, corrected for their number (Holm).

    Columns with the very same values are one test. The best has none.

    >>> against_best(np.array([[0.9, 0.1, 0.9]] * 8), best=0)
    (None, 0.0078125, 1.0)
    """
    differences = table - table[:, [best]]
    _, first, again = np.unique(
        np.nan_to_num(differences), axis=1, return_index=True, return_inverse=True
    )
    # with so many tests a corrected p could not fall below the level, whatever the values
    least = ENOUGH * len(first)
    tests = sign_flip(
        differences[:, first], permutations=max(permutations, least), seed=seed, clusters=clusters
    )
    same = int(again.ravel()[best])  # what equals the best differs nowhere: no test is made
    raw = [None if number == same else test.p for number, test in enumerate(tests)]
    adjusted = adjust(raw, "holm")
    return tuple(
        None if number == best else 1.0 if group == same else adjusted[group]
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

    @property
    def units(self) -> int:
        """How many units there are."""
        return int(self.counts.shape[1])

    @classmethod
    def of(
        cls,
        values: Floats,
        clusters: Sequence[object] | None,
        *,
        folds: int,
        repeats: int,
        draws: int,
        seed: int,
    ) -> Sampling:
        """Deal the queries of values, settings × queries, into folds, and draw them again.

        Both go by the order of the queries.
        """
        known: Bools = np.asarray(~np.isnan(values).any(axis=0))
        count = int(known.sum())
        if count < FEWEST:
            raise TooFewQueriesError(
                f"{count} queries have a value, and fewer than {FEWEST} cannot choose a setting",
                fix="add queries; until then keep the defaults of your engine (findwell fuse)",
            )
        labels = range(len(known)) if clusters is None else clusters
        kept = [label for label, keep in zip(labels, known, strict=True) if keep]
        unit = cluster_codes(kept, count)
        units = int(unit.max()) + 1
        if units < folds:
            what = "queries" if clusters is None else "clusters"
            raise OptionError(
                f"{units} {what} cannot be dealt into {folds} folds",
                fix=f"ask for {units} folds or fewer" if units > 1 else "choose another column",
            )
        unit_fold = balanced_folds(units, folds, repeats, seed)
        fold = np.full((repeats, len(known)), -1)
        fold[:, known] = unit_fold[:, unit]
        return cls(known, unit, fold, unit_fold, bootstrap_counts(units, draws, seed))

    def scores(
        self,
        values: Floats,
        statistic: str,
        *,
        higher_is_better: bool,
        inside: Bools | None = None,
    ) -> Floats:
        """Return the sums of what is compared, units × settings, such that more is better.

        They are multiples of one step, so that sums are exact in whatever order they are added.
        Only the queries `inside` count.
        """
        scaled = to_scale(values.T[self.known], each_statistic(statistic, len(values)))
        if inside is not None:
            scaled = np.where(inside[self.known, np.newaxis], scaled, 0.0)
        sums = as_units(scaled if higher_is_better else -scaled, self.unit).sums
        reach = np.full(len(values), np.abs(sums).max(initial=0.0) * self.units)
        return on_one_grid(sums, reach)

    def pick(self, scores: Floats, places: Floats) -> tuple[int, Floats]:
        """Return the setting that all units choose, and the votes for each setting."""
        return _nearest_to_votes(self.counts @ scores, scores.sum(axis=0), places)

    def picks(self, scores: Floats, places: Floats) -> Ints:
        """Return the setting that the other units choose for each fold: repeats × folds.

        Nobody votes about its own fold: what its units add to a bootstrap is taken off again.
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


def _check(values: Floats, folds: int, repeats: int, draws: int) -> None:
    if values.ndim != 2 or not len(values):
        raise InputError("there are no settings to choose from", fix="give settings × queries")
    refuse_infinite(values)
    check_draws("repeats", repeats)
    check_draws("bootstraps", draws)
    if folds < 2:
        raise OptionError(f"{folds} folds were asked for", fix="ask for 2 or more; 5 are usual")


def _places(places: Floats | None, settings: int) -> Floats:
    """Return where settings lie; without places, each as far from every other one."""
    if places is None:
        return np.eye(settings)
    found = np.asarray(places, dtype=np.float64)
    if found.ndim == 1:
        found = found[:, np.newaxis]
    if len(found) != settings:
        raise InputError(f"{len(found)} places were given for {settings} settings")
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
    labels: Sequence[str | None],
    overall: Choice,
    *,
    places: Floats | None = None,
    clusters: Sequence[object] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    statistic: str = "mean",
    higher_is_better: bool = True,
) -> tuple[tuple[SliceChoice, ...], Floats]:
    """Choose a setting for each slice of the queries, with the folds of a choice for all.

    Return the slices, and the held-out value of each query under the settings of its slice. A
    slice with too few queries keeps the setting of all.
    """
    order = value_order(values if higher_is_better else -values)
    repeats, folds = overall.picks.shape
    clusters = None if clusters is None else [clusters[place] for place in order]
    moved = values[:, order]
    sampling = Sampling.of(moved, clusters, folds=folds, repeats=repeats, draws=draws, seed=seed)
    where = _places(places, len(values))
    names = np.array(["" if label is None else str(label) for label in labels])
    held, found = overall.values.copy(), []
    for label in sorted(set(names.tolist())):
        inside = names == label
        known = inside & ~np.isnan(overall.values)
        own = int(known.sum()) >= FEWEST
        chosen, ours = overall.chosen, overall.values
        if own:
            scores = sampling.scores(
                moved, statistic, higher_is_better=higher_is_better, inside=inside[order]
            )
            chosen, _ = sampling.pick(scores, where)
            picks = sampling.picks(scores, where)
            ours = _held_out_values(values, picks, overall.fold, statistic)
            held[inside] = ours[inside]
        in_sample, held_out, shared = (
            _aggregated(each[known], statistic) for each in (values[chosen], ours, overall.values)
        )
        found.append(SliceChoice(label, int(known.sum()), chosen, in_sample, held_out, shared, own))
    return tuple(found), held


def _aggregated(values: Floats, statistic: str) -> float | None:
    """Return what `findwell.statistics.values` makes of values, to the last digit."""
    if not len(values):
        return None
    if statistic == "sum":
        return float(values.sum())
    mean = float(to_scale(values[:, np.newaxis], [statistic])[:, 0].mean())
    return from_scale(mean, statistic, len(values))
