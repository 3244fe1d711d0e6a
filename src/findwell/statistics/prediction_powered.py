"""Means from a few labels by people and many verdicts of a judge.

A judge's mean is biased by as much as the judge errs. Prediction-powered inference measures that
error on what people labelled, and takes it off: the mean of all verdicts, times a weight λ, plus
the mean of what labels differ from λ times the verdict. Whatever the judge is worth, the result is
unbiased; the better it is, the narrower is the interval. λ is chosen so that the variance is least
(PPI++: Angelopoulos, Duchi, Zrnic, arXiv 2311.01453), and 0 leaves the labels alone.

Labels of pairs that were drawn with known probabilities are weighed by these (`mean_of_sample`,
`ratio_of_sample`); the variance is that between queries, so that the interval is about queries like
these, not only about these ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import InputError, check_share
from findwell.core.estimate import Estimate, Estimated
from findwell.statistics.intervals import (
    ONE,
    ONE_CLUSTER,
    as_units,
    cluster_codes,
    estimate,
    limits_of_differences,
    limits_of_means,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Bools, Floats, Ints
    from findwell.statistics.intervals import Bounds

FEW_LABELS = 5  # labels of a stratum, below which it is joined with others
MANY_DEGREES = 2000  # of freedom, from which a series in 1/df gives the quantile to ten digits
METHOD = "prediction-powered"
NO_LABEL = "nothing is labelled"
ONE_LABEL = "one label says nothing about the spread"
NO_DIVISOR = "no relevant item is known, so there is nothing to divide by"


@dataclass(frozen=True, slots=True)
class LabelEstimate(Estimated):
    """A mean or a ratio from labels and verdicts; limits are None where unknown."""

    estimate: Estimate
    labels: int  # by people
    effective: float | None = None  # labels that would give the same precision without the judge
    trust: float = 0.0  # λ: how much of the judge was used, from 0 to 1; over strata, the mean
    error: float | None = None  # standard error


def _unknown(
    value: float | None, level: float, labels: int, trust: float, reason: str
) -> LabelEstimate:
    estimate = Estimate(value, None, None, level, "", labels, reason=reason)
    return LabelEstimate(estimate, labels, trust=trust)


def student_quantile(level: float, freedom: int) -> float:
    """Return how many standard errors around a mean hold a share of Student's distribution.

    >>> round(student_quantile(0.95, 9), 4), round(student_quantile(0.95, 100_000), 4)
    (2.2622, 1.96)
    """
    check_share("level", level)
    z = NormalDist().inv_cdf((1 + level) / 2)
    if freedom > MANY_DEGREES:  # Abramowitz and Stegun 26.7.5
        step = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + step[0] / freedom + step[1] / freedom**2
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t ÷ √freedom
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _share_inside(middle, freedom) < level else (low, middle)
    return math.tan((low + high) / 2) * math.sqrt(freedom)


def _share_inside(angle: float, freedom: int) -> float:
    """Return the share of Student's distribution within ± tan(angle) √freedom.

    The finite series of Abramowitz and Stegun 26.7.3 and 26.7.4.
    """
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for step in range(2 + odd, freedom - 1, 2):
        term *= cosine**2 * (step - 1) / step
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def ppi_mean(
    labels: ArrayLike,
    judged: ArrayLike,
    further: ArrayLike,
    *,
    level: float = 0.95,
    trust: float | None = None,
    normal: bool = False,
) -> LabelEstimate:
    """Return the mean of labels, with verdicts about the same things and about further ones.

    What is labelled and what is not must be drawn alike. `trust` is λ, by default the one that
    makes the variance least. The interval is Student's, with `normal` that of large samples.

    >>> found = ppi_mean([1, 0, 1, 1], [1, 0, 1, 0], [1, 0, 0, 1, 1, 0, 1, 1])
    >>> print(f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}], λ {found.trust:.2f}")
    0.789 [0.089, 1.489], λ 0.31
    """
    check_share("level", level)
    y, f, more = (np.asarray(each, dtype=np.float64).ravel() for each in (labels, judged, further))
    n, freedom = len(y), len(y) - 1
    if n != len(f):
        raise InputError(f"{n} labels have {len(f)} verdicts", fix="give one for each")
    if not n:
        return _unknown(None, level, n, 0.0, NO_LABEL)
    weight = _tuned(y, f, more) if trust is None else trust
    weight = weight if len(more) else 0.0
    rest = y - weight * f
    value = float(rest.mean() + (weight * more.mean() if weight else 0.0))
    if not freedom:
        return _unknown(value, level, n, weight, ONE_LABEL)
    variance, alone = float(rest.var()) / n, float(y.var()) / n
    variance += weight**2 * float(more.var()) / len(more) if weight else 0.0
    # population variances are those of ppi-python; of few labels they are too small
    variance, alone = (each * (1.0 if normal else n / freedom) for each in (variance, alone))
    times = NormalDist().inv_cdf((1 + level) / 2) if normal else student_quantile(level, freedom)
    half, gain = times * math.sqrt(variance), alone / variance if variance > 0 else 1.0
    made = Estimate(value, value - half, value + half, level, METHOD, n)
    return LabelEstimate(made, n, n * gain, weight, math.sqrt(variance))


def _tuned(y: Floats, f: Floats, more: Floats) -> float:
    """Return the λ of PPI++: cov(y, f) ÷ ((1 + n/N) var f), from 0 to 1."""
    every = np.concatenate((f, more))
    spread = every.var(ddof=1) if len(every) > 1 else 0.0
    if not len(more) or spread <= 0:
        return 0.0
    together = ((y - y.mean()) * (f - f.mean())).mean()
    return float(np.clip(together / ((1 + len(y) / len(more)) * spread), 0.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class SampledLabels:
    """Things that belong to queries; of some there is a label, drawn with a known probability.

    A thing is a pair of a query and a document, or a query as a whole. All of them stand in here,
    labelled or not, since the judge is asked about all.
    """

    query: Ints  # 0 to queries − 1
    weight: Floats  # what a label of 1 adds to the value of its query
    label: Floats  # NaN: it has no label
    judged: Floats  # by the judge, on the scale of labels; all 0 without one
    probability: Floats  # of being labelled; looked at where there is a label
    stratum: Ints  # things of one stratum were drawn alike
    queries: int
    divisor: Floats | None = None  # what a label of 1 adds to the divisor; None: 1 for each query
    kind: Ints | None = None  # what labels of one kind say nothing about another; None: all alike
    bounds: Bounds | None = None  # of the value of a query, where queries are labelled as a whole
    paired: bool = False  # whether these values are differences

    @property
    def labelled(self) -> Bools:
        """Which things have a label."""
        return ~np.isnan(self.label)

    def without_judge(self) -> SampledLabels:
        """Return the labels alone: without verdicts, and without strata, which may be theirs."""
        none = np.zeros(len(self.query), dtype=np.int64)
        return replace(self, judged=none.astype(np.float64), stratum=none)


def mean_of_sample(
    sample: SampledLabels,
    *,
    level: float = 0.95,
    clusters: Sequence[object] | None = None,
) -> LabelEstimate:
    """Return the mean over queries of what the labels of each add up to, or a ratio of two sums.

    Where everything is known of a query, its value is the sum of its labels; otherwise it is
    Σ weight × (p + (label − p) ÷ probability), the second part where there is a label. p = λ ×
    verdict + c is what the judge makes expect; λ and c are those of the stratum that leave the
    least variance. With `divisor` the result is Σ of all queries ÷ Σ of their divisors, and its
    variance that of value − ratio × divisor. With `bounds` the labels are values of queries, and
    the limits are those of `findwell.statistics.intervals`; without a judge they are the limits of
    the mean of these values.

    >>> label = np.array([1, 0, np.nan, 1, np.nan, 0, 1, 0, np.nan, 1])
    >>> zero, half = np.zeros(10), np.full(10, 0.5)
    >>> pairs = SampledLabels(np.arange(10) // 2, half, label, zero, half, zero.astype(int), 5)
    >>> mean_of_sample(pairs).value
    0.5714285714285714
    """
    check_share("level", level)
    n = int(sample.labelled.sum())
    if not n:
        return _unknown(None, level, 0, 0.0, NO_LABEL)
    strata = _joined_strata(sample)
    ratio = 0.0
    for _ in range(1 if sample.divisor is None else 3):  # the weights of a ratio depend on it
        model = _Model.fit(sample, strata, ratio)
        above, below = model.sums()
        if not below.sum() > 0:
            return _unknown(None, level, n, 0.0, NO_DIVISOR)
        ratio = float(above.sum() / below.sum())
    units = as_units(
        replace(model, ratio=ratio).influence()[:, np.newaxis],
        None if clusters is None else cluster_codes(clusters, sample.queries),
    )
    if len(units) < 2:
        return _unknown(ratio, level, n, model.used, ONE)
    if sample.bounds is not None:
        whole = replace(model, ratio=ratio)
        return _whole_queries(whole, float(below.mean()), sample.bounds, level, clusters)
    influence = estimate(units).influence.ravel()
    variance = float(influence.var(ddof=1)) / len(units) + model.unseen() / sample.queries**2
    error = math.sqrt(variance) / float(below.mean())
    freedom = len(units) - 1
    if model.drawn:  # what was not drawn but looked at as a whole needs no estimate of its spread
        freedom = max(1, min(freedom, n - 1))
    half = student_quantile(level, freedom) * error
    made = Estimate(ratio, ratio - half, ratio + half, level, METHOD, n)
    return LabelEstimate(made, n, n * model.gain(), model.used, error)


def _whole_queries(
    model: _Model,
    divisor: float,
    bounds: Bounds,
    level: float,
    clusters: Sequence[object] | None,
) -> LabelEstimate:
    """Return the estimate from queries that are labelled as a whole.

    Without a judge the limits are those of the mean of the labelled values. With one they are as
    far from the estimate as these are, times the ratio of the two standard errors. Few labels may
    flatter a judge by chance, so one further query counts whose value the judge does not explain.
    """
    sample = model.sample
    known = np.bincount(sample.query[sample.labelled], minlength=sample.queries) > 0
    n, labels = int(known.sum()), int(sample.labelled.sum())
    codes = None if clusters is None else cluster_codes(clusters, sample.queries)
    leverage = _leverage(sample, model.ratio) / divisor
    # alike for all queries where they had the same chance
    times = np.where(sample.labelled, n / (sample.queries * sample.probability), 0.0)
    beyond = np.where(sample.labelled, sample.label - model.expected, 0.0)
    rest = _by_query(sample, leverage * beyond * times)[known]
    units = as_units(rest[:, np.newaxis], None if codes is None else codes[known])
    if len(units) < 2:
        reason = ONE if codes is None else ONE_CLUSTER
        return _unknown(model.ratio, level, labels, model.used, reason)
    made = estimate(units)
    squares = float((made.influence**2).sum())
    if not (model.trust > 0).any():
        made = replace(made, values=np.array([model.ratio]))
        most = float(times.max()) / divisor
        if sample.paired:
            changes = made.influence + model.ratio
            low, high = limits_of_differences(made, changes, np.array([bounds[1] * most]), level)
        else:
            ends = [model.ratio + (each - model.ratio) * most for each in bounds]
            low, high = limits_of_means(made, np.array(ends[:1]), np.array(ends[1:]), level)
        error = math.sqrt(squares / (len(units) - 1) / len(units))
        made_of = Estimate(model.ratio, float(low[0]), float(high[0]), level, METHOD, labels)
        return LabelEstimate(made_of, labels, float(labels), 0.0, error)
    alone = mean_of_sample(sample.without_judge(), level=level, clusters=clusters)
    whole = as_units(model.influence()[:, np.newaxis] / divisor, codes)
    own = (alone.error or 0.0) ** 2
    variance = float(estimate(whole).influence.var(ddof=1)) / len(whole) + own / (len(units) - 1)
    times_own = math.sqrt(variance / own) if own > 0 else 1.0
    down, up = (
        abs(0.0 if limit is None or alone.value is None else limit - alone.value) * times_own
        for limit in (alone.low, alone.high)
    )
    found = Estimate(model.ratio, model.ratio - down, model.ratio + up, level, METHOD, labels)
    return LabelEstimate(found, labels, labels / times_own**2, model.used, math.sqrt(variance))


def _joined_strata(sample: SampledLabels) -> Ints:
    """Number the strata of each kind; those of few labels are joined with a neighbour.

    Of few labels neither the mean nor the spread says much.
    """
    found = np.zeros(len(sample.query), dtype=np.int64)
    kinds = found if sample.kind is None else sample.kind
    for kind in np.unique(kinds):
        inside = np.flatnonzero(kinds == kind)
        names, code = np.unique(sample.stratum[inside], return_inverse=True)
        counts = np.bincount(code[sample.labelled[inside]], minlength=len(names))
        group = np.arange(len(names))
        for at in range(1, len(names)):  # upwards, each with all before that are still too few
            if counts[group == group[at - 1]].sum() < FEW_LABELS:
                group[at] = group[at - 1]
        last = group[-1]
        if counts[group == last].sum() < FEW_LABELS and last > 0:
            group[group == last] = group[np.flatnonzero(group != last)[-1]]
        found[inside] = group[code] + found.max(initial=0) + 1
    return np.asarray(found - 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """What verdicts make expect of each thing, and what labels say beyond that."""

    sample: SampledLabels
    expected: Floats
    beyond: Floats  # (label − expected) ÷ probability; 0 where there is no label
    rest: Floats  # label − expected, made larger for what was fitted
    trust: Floats  # by stratum
    strata: Ints
    ratio: float

    @classmethod
    def fit(cls, sample: SampledLabels, strata: Ints, ratio: float) -> _Model:
        """Choose λ and c of each stratum; `ratio` is that of sum and divisor, so far."""
        leverage, known = _leverage(sample, ratio), sample.labelled
        expected, rest, beyond = (np.zeros(len(strata)) for _ in range(3))
        trust = np.zeros(int(strata.max(initial=0)) + 1)
        for stratum in np.unique(strata):
            inside = strata == stratum
            at = np.flatnonzero(inside & known)
            if not len(at):
                continue
            y, f, chance = sample.label[at], sample.judged[at], sample.probability[at]
            counted = leverage[at] ** 2 / chance
            if not counted.sum() > 0:
                counted = 1 / chance
            mean_y, mean_f = np.average(y, weights=counted), np.average(f, weights=counted)
            spread = np.average((f - mean_f) ** 2, weights=counted)
            together = np.average((y - mean_y) * (f - mean_f), weights=counted)
            if spread > 1e-12 and len(at) > 2:
                trust[stratum] = np.clip(together / spread, 0.0, 1.0)
            fitted = 1 + (trust[stratum] > 0)
            expected[inside] = mean_y + trust[stratum] * (sample.judged[inside] - mean_f)
            rest[at] = y - expected[at]
            beyond[at] = rest[at] / chance
            # residuals of a fit are smaller than those of what it estimates; where all is known,
            # nothing is estimated
            more = math.sqrt(len(at) / max(len(at) - fitted, 1)) - 1
            rest[at] *= 1 + more * (1 - chance)
        return cls(sample, expected, beyond, rest, trust, strata, ratio)

    def sums(self) -> tuple[Floats, Floats]:
        """Return the value and the divisor of each query."""
        sample = self.sample
        values = self.expected + self.beyond
        above = _by_query(sample, sample.weight * values)
        if sample.divisor is None:
            return above, np.ones(sample.queries)
        return above, _by_query(sample, sample.divisor * values)

    def influence(self) -> Floats:
        """Return what each query adds to the sum, less the ratio times what it adds below."""
        sample, leverage = self.sample, _leverage(self.sample, self.ratio)
        chance = np.where(sample.labelled, sample.probability, 1.0)
        one = 0.0 if sample.divisor is not None else self.ratio
        values = leverage * (self.expected + self.rest / chance)
        return _by_query(sample, values) - one

    @property
    def drawn(self) -> bool:
        """Whether chance decided what was labelled."""
        return bool((self.sample.probability[self.sample.labelled] < 1).any())

    @property
    def used(self) -> float:
        """How much of the judge was used, by the things of each stratum."""
        return float(self.trust[self.strata].mean()) if len(self.strata) else 0.0

    def _factor(self) -> Floats:
        """Return what the square of each residual adds to the variance of the sum."""
        chance = np.where(self.sample.labelled, self.sample.probability, 1.0)
        return np.asarray(_leverage(self.sample, self.ratio) ** 2 * (1 - chance) / chance**2)

    def gain(self) -> float:
        """Return how many labels without the judge one label with it is worth."""
        labels = self.sample.without_judge()
        alone = _Model.fit(labels, _joined_strata(labels), self.ratio)
        factor = self._factor()
        with_judge = float((factor * self.rest**2).sum())
        without = float((factor * alone.rest**2).sum())
        return without / with_judge if with_judge > 0 and without > 0 else 1.0

    def unseen(self) -> float:
        """Return what is added to the variance where labels leave hardly anything unsure.

        Labels that all agree with what is expected say that disagreement is rare, not that there is
        none: the variance is at least that of one full disagreement, had one more label been drawn.
        The strata share it by their size.
        """
        factor, known = self._factor(), self.sample.labelled
        added = 0.0
        for stratum in np.unique(self.strata):
            inside = self.strata == stratum
            at = inside & known
            if not at.any():
                continue
            full = max(1.0, float(np.abs(self.sample.label[at]).max())) ** 2
            least = float(inside.mean()) * full / (int(at.sum()) + 1)
            added += max(0.0, least - float((self.rest[at] ** 2).mean())) * float(factor[at].sum())
        return added


def _by_query(sample: SampledLabels, values: Floats) -> Floats:
    """Add up values by query."""
    sums: Floats = np.bincount(sample.query, values, sample.queries)  # type: ignore[assignment]
    return sums


def _leverage(sample: SampledLabels, ratio: float) -> Floats:
    """Return the weight of each label in what the variance is taken of."""
    return sample.weight if sample.divisor is None else sample.weight - ratio * sample.divisor
