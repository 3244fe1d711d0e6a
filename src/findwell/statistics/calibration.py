"""How far probabilities can be believed: reliability, expected calibration error, Brier score.

A judge is calibrated if of the verdicts it gives a probability of 0.8 about 80 % are right. The
probabilities are put into bins of equal width; in each the mean of the probabilities is compared
with the share of outcomes that are true. The expected calibration error is the mean distance of
the two, weighed by the pairs of a bin (Naeini, Cooper, Hauskrecht 2015); of few pairs it is too
large, since chance alone parts the two. The Brier score is the mean squared distance of
probability and outcome (Brier 1950): 0 is perfect, and always saying the share of true outcomes p
gives p · (1 − p), the `uninformed` score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import InputError, OptionError
from findwell.core.estimate import Estimate, Estimated
from findwell.statistics.intervals import cluster_codes, interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike


BINS = 10
JSON_FIELDS = ("start", "end", "n", "predicted", "observed", "low", "high")  # of a bin


@dataclass(frozen=True, slots=True)
class ReliabilityBin(Estimated):
    """Probabilities between two limits, and the share of true outcomes, with its interval."""

    start: float
    end: float  # not inside, but for the last bin
    predicted: float  # the mean of the probabilities
    estimate: Estimate  # of the share of outcomes that are true

    @property
    def observed(self) -> float | None:
        """The share of outcomes that are true."""
        return self.estimate.value


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

    def as_dict(self) -> dict[str, Any]:
        """Return it as the JSON output prints it."""
        bins = [{name: getattr(each, name) for name in JSON_FIELDS} for each in self.bins]
        return {name: getattr(self, name) for name in self.__slots__} | {"bins": bins}

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, level: float) -> Calibration | None:
        """Return what `as_dict` was made of; None stays None."""
        if given is None:
            return None
        bins = tuple(
            ReliabilityBin(
                each["start"],
                each["end"],
                each["predicted"],
                Estimate(each["observed"], each["low"], each["high"], level, "", each["n"]),
            )
            for each in given["bins"]
        )
        return cls(**{**given, "bins": bins})


def calibration(
    probabilities: ArrayLike,
    outcomes: ArrayLike,
    *,
    bins: int = BINS,
    level: float = 0.95,
    clusters: Sequence[object] | None = None,
) -> Calibration | None:
    """Compare probabilities with what came true, 0 or 1; None if there is no probability.

    NaN is a pair without a probability and left out. `clusters` has a label for each pair: pairs
    with the same one are not independent.

    >>> found = calibration([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0])
    >>> round(found.expected_calibration_error, 4), round(found.brier, 4)
    (0.25, 0.21)
    >>> [(each.n, each.predicted, each.observed) for each in found.bins]
    [(2, 0.1, 0.0), (2, 0.9, 0.5)]
    """
    chance, true = (np.asarray(each, dtype=np.float64) for each in (probabilities, outcomes))
    if chance.ndim != 1 or chance.shape != true.shape:
        raise InputError(f"{chance.size} probabilities were given for {true.size} outcomes")
    known = ~np.isnan(chance)
    if ((chance[known] < 0) | (chance[known] > 1)).any():
        raise InputError("a probability is not between 0 and 1")
    if not np.isin(true, (0.0, 1.0)).all():
        raise InputError("an outcome is neither 0 nor 1")
    if bins < 1:
        raise OptionError(f"the number of bins is {bins}", fix="use at least 1")
    codes = cluster_codes(range(len(chance)) if clusters is None else clusters, len(chance))[known]
    chance, true = chance[known], true[known]
    if not len(chance):
        return None
    edges = np.arange(bins + 1) / bins
    which = np.minimum(np.searchsorted(edges, chance, side="right") - 1, bins - 1)  # 1: the last
    gaps = np.bincount(which, weights=chance - true, minlength=bins)
    curve = []
    for at in np.unique(which).tolist():
        inside = which == at
        made = interval(true[inside], level=level, clusters=codes[inside].tolist())
        share = Estimate(made.value, made.low, made.high, level, "", made.n)  # as JSON has it
        predicted = float(chance[inside].mean())
        curve.append(ReliabilityBin(float(edges[at]), float(edges[at + 1]), predicted, share))
    score = interval((chance - true) ** 2, level=level, clusters=codes.tolist())
    share_true = float(true.mean())
    return Calibration(
        n=len(chance),
        expected_calibration_error=float(np.abs(gaps).sum() / len(chance)),
        brier=float(np.mean((chance - true) ** 2)),
        brier_low=score.low,
        brier_high=score.high,
        uninformed=share_true * (1 - share_true),
        bins=tuple(curve),
    )
