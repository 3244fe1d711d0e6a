"""Agreement of two or more annotators: raw, Cohen and Fleiss κ, Krippendorff α, Gwet AC1.

Items may lack labels of some annotators. Every figure is a function of sums over items, so that an
interval is a bootstrap over the items: a resample is a sum of other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import InputError, choose
from findwell.statistics.values import check_draws, check_share

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from findwell.core.data import Floats

SCALES = ("nominal", "ordinal", "interval")  # of Krippendorff's α
NO_PAIR = "no item has two labels"
ONE_VALUE = "all labels are the same one, so chance agrees as well"
FEW = "fewer than two items have two labels, so the spread is unknown"
AT_ONCE = 1 << 22  # numbers that a block of resamples may hold
BOOTSTRAP = 3  # the stream of random numbers, beside those of `findwell.statistics.resampling`


@dataclass(frozen=True, slots=True)
class AgreementFigure:
    """A figure with its interval over items; None with a reason if it is undefined."""

    statistic: str
    value: float | None
    low: float | None
    high: float | None
    n: int  # items with at least two labels
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """How many annotators gave each item each label."""

    labels: Floats  # the different ones, in order
    counts: Floats  # items × labels
    table: Floats  # items × annotators, NaN: no label

    @classmethod
    def of(cls, ratings: ArrayLike, labels: Sequence[float] | None = None) -> Ratings:
        """Count ratings, items × annotators, NaN where an annotator gave no label.

        `labels` are all that could be given; those that were given, by default.

        >>> Ratings.of([[1, 1, 0], [0, np.nan, 0]]).counts.tolist()
        [[1.0, 2.0], [2.0, 0.0]]
        """
        table = np.asarray(ratings, dtype=np.float64)
        if table.ndim != 2:
            raise InputError(f"ratings have {table.ndim} dimensions, not items × annotators")
        given = np.unique(table[~np.isnan(table)])
        known = given if labels is None else np.unique(np.asarray(labels, dtype=np.float64))
        if not np.isin(given, known).all():
            other = given[~np.isin(given, known)][0]
            raise InputError(f"the label {other:g} is none of those that can be given")
        counts = (table[:, :, np.newaxis] == known).sum(axis=1).astype(np.float64)
        return cls(known, counts, table)

    @property
    def paired(self) -> Floats:
        """The rows of items that have at least two labels."""
        return np.asarray(self.counts[self.counts.sum(axis=1) >= 2])


Formula = Callable[["Ratings"], tuple["Floats", Callable[["Floats"], "Floats"]]]


def _raw(ratings: Ratings) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return what each item adds, and the figure of such sums (draws × parts): raw agreement."""
    agreed = _agreed(ratings.paired)
    parts = np.column_stack([agreed, np.ones(len(agreed))])
    return parts, lambda sums: _divided(sums[:, 0], sums[:, 1])


def _cohen(ratings: Ratings) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Cohen (1960), the mean over all two annotators who labelled the same items."""
    size = len(ratings.labels)
    given = ratings.table[(~np.isnan(ratings.table)).sum(axis=1) >= 2]
    marks = (given[:, :, np.newaxis] == ratings.labels).astype(np.float64)
    two = list(combinations(range(given.shape[1]), 2))
    tables = [marks[:, one, :, np.newaxis] * marks[:, other, np.newaxis, :] for one, other in two]
    parts = np.stack(tables, axis=1).reshape(len(given), -1)

    def figure(sums: Floats) -> Floats:
        table = sums.reshape(-1, len(two), size, size)
        total = table.sum(axis=(2, 3))
        met = _divided(np.trace(table, axis1=2, axis2=3), total)
        chance = _divided((table.sum(axis=2) * table.sum(axis=3)).sum(axis=2), total**2)
        each = _divided(met - chance, 1 - chance)
        known = ~np.isnan(each)
        return _divided(np.where(known, each, 0).sum(axis=1), known.sum(axis=1).astype(np.float64))

    return parts, figure


def _fleiss(ratings: Ratings) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Fleiss (1971): chance by the shares of all labels together."""
    counts = ratings.paired
    parts = np.column_stack([_agreed(counts), np.ones(len(counts)), counts])

    def figure(sums: Floats) -> Floats:
        met = _divided(sums[:, 0], sums[:, 1])
        shares = _divided(sums[:, 2:].T, sums[:, 2:].sum(axis=1)).T
        chance = (shares**2).sum(axis=1)
        return _divided(met - chance, 1 - chance)

    return parts, figure


def _gwet(ratings: Ratings) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Gwet (2008), AC1: chance is small where one label prevails; single labels count for it."""
    counts = ratings.counts[ratings.counts.sum(axis=1) >= 1]
    several = counts.sum(axis=1) >= 2
    met = np.where(several, _agreed(counts), 0.0)
    shares = counts / counts.sum(axis=1, keepdims=True)
    parts = np.column_stack([met, several, np.ones(len(counts)), shares])

    def figure(sums: Floats) -> Floats:
        agreed = _divided(sums[:, 0], sums[:, 1])
        share = _divided(sums[:, 3:].T, sums[:, 2]).T
        chance = (share * (1 - share)).sum(axis=1) / max(len(ratings.labels) - 1, 1)
        return _divided(agreed - chance, 1 - chance)

    return parts, figure


def _krippendorff(
    scale: str,
) -> Callable[[Ratings], tuple[Floats, Callable[[Floats], Floats]]]:
    """Return Krippendorff's α (2011) on a scale: 1 − observed / expected disagreement."""

    def formula(ratings: Ratings) -> tuple[Floats, Callable[[Floats], Floats]]:
        counts = ratings.paired
        size = len(ratings.labels)
        pairs = counts[:, :, np.newaxis] * counts[:, np.newaxis, :]
        pairs[:, np.arange(size), np.arange(size)] -= counts
        total = counts.sum(axis=1)
        parts = (pairs / np.maximum(total - 1, 1)[:, np.newaxis, np.newaxis]).reshape(-1, size**2)

        def figure(sums: Floats) -> Floats:
            together = sums.reshape(-1, size, size)
            margin = together.sum(axis=2)
            far = _distance(ratings.labels, margin, scale)
            n = margin.sum(axis=1)
            met = (together * far).sum(axis=(1, 2)) / np.maximum(n, 1)
            product = margin[:, :, np.newaxis] * margin[:, np.newaxis, :]
            expected = (product * far).sum(axis=(1, 2)) / np.maximum(n * (n - 1), 1)
            return 1 - _divided(met, expected)

        return parts, figure

    return formula


def _distance(labels: Floats, margin: Floats, scale: str) -> Floats:
    """Return how far labels are apart, squared: draws × labels × labels."""
    if scale == "ordinal":  # by how many labels lie between, half of the two themselves
        middle = np.cumsum(margin, axis=1) - margin / 2
        return np.asarray((middle[:, :, np.newaxis] - middle[:, np.newaxis, :]) ** 2)
    apart = np.abs(labels[:, np.newaxis] - labels)
    return np.asarray((apart > 0).astype(np.float64) if scale == "nominal" else apart**2)[
        np.newaxis
    ]


def _agreed(counts: Floats) -> Floats:
    """Return the share of pairs of annotators that agree about each item."""
    total = counts.sum(axis=1)
    return _divided((counts * (counts - 1)).sum(axis=1), total * (total - 1))


def _divided(upper: Floats, lower: Floats) -> Floats:
    """Divide; NaN where the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(np.abs(lower) > 1e-12, upper / lower, np.nan))


FORMULAS: dict[str, Formula] = {
    "agreement": _raw,
    "cohen_kappa": _cohen,
    "fleiss_kappa": _fleiss,
    **{f"alpha ({scale})": _krippendorff(scale) for scale in SCALES},
    "gwet_ac1": _gwet,
}


def agreement_of(  # noqa: PLR0917
    ratings: ArrayLike,
    statistic: str,
    labels: Sequence[float] | None = None,
    level: float = 0.95,
    samples: int = 2000,
    seed: int = 0,
) -> AgreementFigure:
    """Return one of FORMULAS for ratings (items × annotators, NaN: no label), with its interval.

    The interval is of the percentiles of a bootstrap over items; `samples=0` leaves it out.

    >>> found = agreement_of([[0, 0], [1, 1], [1, 0], [1, 1]], "alpha (nominal)", samples=0)
    >>> round(found.value, 3)
    0.533
    """
    choose("statistic", statistic, FORMULAS)
    check_share("level", level)
    counted = Ratings.of(ratings, labels)
    n = len(counted.paired)
    if not n:
        return AgreementFigure(statistic, None, None, None, 0, NO_PAIR)
    parts, figure = FORMULAS[statistic](counted)
    value = float(figure(parts.sum(axis=0)[np.newaxis])[0])
    if np.isnan(value):
        return AgreementFigure(statistic, None, None, None, n, ONE_VALUE)
    if samples == 0:
        return AgreementFigure(statistic, value, None, None, n)
    if n < 2:
        return AgreementFigure(statistic, value, None, None, n, FEW)
    check_draws("samples", samples)
    drawn = np.concatenate(list(map(figure, _resampled(parts, samples, seed))))
    drawn = drawn[~np.isnan(drawn)]  # of a resample in which all labels are the same
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail]) if len(drawn) else (np.nan, np.nan)
    if np.isnan(low):
        return AgreementFigure(statistic, value, None, None, n, ONE_VALUE)
    return AgreementFigure(statistic, value, float(low), float(high), n)


def _resampled(parts: Floats, samples: int, seed: int) -> list[Floats]:
    """Return the sums of the parts of resampled items, in blocks."""
    items = len(parts)
    block = max(1, AT_ONCE // items)
    found = []
    for number, first in enumerate(range(0, samples, block)):
        source = np.random.SeedSequence(seed, spawn_key=(BOOTSTRAP, number))
        rows = min(block, samples - first)
        drawn = np.random.default_rng(source).multinomial(items, np.full(items, 1 / items), rows)
        # einsum instead of a product of matrices, whose last digit depends on the threads
        found.append(np.einsum("ij,jk->ik", drawn.astype(np.float64), parts))
    return found


def prevalence_of(ratings: ArrayLike, rel: float = 1.0) -> float | None:
    """Return the share of labels from `rel` up: each item counts once, however many labelled it.

    >>> prevalence_of([[1, 0], [2, 2], [0, np.nan]])
    0.5
    """
    table = np.asarray(ratings, dtype=np.float64)
    given = ~np.isnan(table)
    labelled = given.any(axis=1)
    if not labelled.any():
        return None
    share = (given & (table >= rel)).sum(axis=1)[labelled] / given.sum(axis=1)[labelled]
    return float(share.mean())
