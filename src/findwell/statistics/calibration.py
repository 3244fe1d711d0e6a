"""How far probabilities can be believed: reliability, expected calibration error, Brier score.

A judge is calibrated if of the verdicts it gives a probability of 0.8 about 80 % are right. The
probabilities are put into bins of equal width; in each the mean of the probabilities is held
against the share of outcomes that are true. The expected calibration error is the mean distance of
the two, weighed by the pairs of a bin (Naeini, Cooper, Hauskrecht 2015); of few pairs it is too
large, since chance alone parts the two. The Brier score is the mean squared distance of
probability and outcome (Brier 1950): 0 is perfect, and always saying the share of true outcomes p
gives p · (1 − p), the `uninformed` score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import InputError, OptionError
from findwell.statistics.intervals import cluster_codes, interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Floats, Ints

BINS = 10


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Probabilities between two limits, and the share of true outcomes, with its interval."""

    start: float
    end: float  # not inside, but for the last bin
    n: int
    predicted: float  # the mean of the probabilities
    observed: float  # the share of outcomes that are true
    low: float | None  # of that share
    high: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far probabilities can be believed; bins without a pair are left out."""

    n: int
    expected_calibration_error: float
    brier: float
    brier_low: float | None
    brier_high: float | None
    uninformed: float  # the Brier score of always saying the share of true outcomes
    bins: tuple[ReliabilityBin, ...]


def calibration(
    probabilities: ArrayLike,
    outcomes: ArrayLike,
    *,
    bins: int = BINS,
    level: float = 0.95,
    clusters: Sequence[object] | None = None,
) -> Calibration | None:
    """Hold probabilities against what came true, 0 or 1; None if there is no probability.

    NaN is a pair without a probability and left out. `clusters` has a label for each pair: pairs
    with the same one are not independent.

    >>> found = calibration([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0])
    >>> round(found.expected_calibration_error, 4), round(found.brier, 4)
    (0.25, 0.21)
    >>> [(each.n, each.predicted, each.observed) for each in found.bins]
    [(2, 0.1, 0.0), (2, 0.9, 0.5)]
    """
    chance, true = _checked(probabilities, outcomes)
    known = ~np.isnan(chance)
    codes = cluster_codes(range(len(chance)) if clusters is None else clusters, len(chance))[known]
    chance, true = chance[known], true[known]
    if not len(chance):
        return None
    score = interval((chance - true) ** 2, level=level, clusters=codes.tolist())
    share = float(true.mean())
    return Calibration(
        n=len(chance),
        expected_calibration_error=expected_calibration_error(chance, true, bins=bins),
        brier=brier_score(chance, true),
        brier_low=score.low,
        brier_high=score.high,
        uninformed=share * (1 - share),
        bins=reliability(chance, true, bins=bins, level=level, clusters=codes.tolist()),
    )


def reliability(
    probabilities: ArrayLike,
    outcomes: ArrayLike,
    *,
    bins: int = BINS,
    level: float = 0.95,
    clusters: Sequence[object] | None = None,
) -> tuple[ReliabilityBin, ...]:
    """Return the reliability curve: the bins that hold a pair, from the lowest on.

    >>> [each.observed for each in reliability([0.2, 0.25, 0.75], [0, 1, 1], bins=2)]
    [0.5, 1.0]
    """
    chance, true = _checked(probabilities, outcomes)
    edges, which = _binned(chance, bins)
    codes = None if clusters is None else np.array(cluster_codes(clusters, len(chance)))
    found = []
    for at in range(bins):
        inside = np.flatnonzero(which == at)
        if not len(inside):
            continue
        of_bin = None if codes is None else codes[inside].tolist()
        each = interval(true[inside], level=level, clusters=of_bin)
        found.append(
            ReliabilityBin(
                start=float(edges[at]),
                end=float(edges[at + 1]),
                n=len(inside),
                predicted=float(chance[inside].mean()),
                observed=float(true[inside].mean()),
                low=each.low,
                high=each.high,
            )
        )
    return tuple(found)


def expected_calibration_error(
    probabilities: ArrayLike, outcomes: ArrayLike, *, bins: int = BINS
) -> float:
    """Return the mean distance of probability and observed share over the bins; NaN of nothing.

    >>> expected_calibration_error([0.75, 0.75, 0.75, 0.75], [1, 1, 1, 0])
    0.0
    """
    chance, true = _checked(probabilities, outcomes)
    if not len(chance):
        return float("nan")
    _, which = _binned(chance, bins)
    gaps = np.bincount(which, weights=chance - true, minlength=bins)
    return float(np.abs(gaps).sum() / len(chance))


def brier_score(probabilities: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the mean squared distance of probability and outcome; NaN of nothing.

    >>> brier_score([1.0, 0.5], [1, 0])
    0.125
    """
    chance, true = _checked(probabilities, outcomes)
    return float(np.mean((chance - true) ** 2)) if len(chance) else float("nan")


def _binned(chance: Floats, bins: int) -> tuple[Floats, Ints]:
    """Return the limits of the bins, and the bin of each probability; 1 is in the last."""
    if bins < 1:
        raise OptionError(f"the number of bins is {bins}", fix="use at least 1")
    edges = np.arange(bins + 1) / bins
    return edges, np.minimum(np.searchsorted(edges, chance, side="right") - 1, bins - 1)


def _checked(probabilities: ArrayLike, outcomes: ArrayLike) -> tuple[Floats, Floats]:
    chance = np.asarray(probabilities, dtype=np.float64)
    true = np.asarray(outcomes, dtype=np.float64)
    if chance.ndim != 1 or chance.shape != true.shape:
        raise InputError(f"{chance.size} probabilities were given for {true.size} outcomes")
    known = chance[~np.isnan(chance)]
    if ((known < 0) | (known > 1)).any():
        raise InputError("a probability is not between 0 and 1")
    if not np.isin(true, (0.0, 1.0)).all():
        raise InputError("an outcome is neither 0 nor 1")
    return chance, true
