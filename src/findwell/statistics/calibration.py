"""How far probabilities can be believed: reliability, expected calibration error, Brier score.

A judge is calibrated if of the verdicts it gives a probability of 0.8 about 80 % are right. The
probabilities are put into bins of equal width; in each the mean of the probabilities is compared
with the share of outcomes that are true. The expected calibration error is the mean distance of
the two, weighed by the pairs of a bin (Naeini, Cooper, Hauskrecht 2015); of few pairs it is too
large, since chance alone parts the two. The Brier score is the mean squared distance of
probability and outcome (Brier 1950): 0 is perfect, and always saying the share of true outcomes p
gives p · (1 − p), the `uninformed` score.

Scores of any kind become probabilities by a `ScoreMap`: a logistic curve (Platt 1999, with his
smoothed targets) or, where labels are many, the best curve that never falls (isotonic regression).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from findwell.core.errors import InputError, OptionError
from findwell.core.estimate import Estimate, Estimated
from findwell.statistics.intervals import cluster_codes, interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from findwell.core.data import Bools, Floats


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


# --- from scores to probabilities -----------------------------------------------------------------

FOLDS = 10
PLATT_STEPS = 100  # of Newton's method, at most


@dataclass(frozen=True, slots=True)
class ScoreMap:
    """Turns scores into probabilities of a yes, higher scores into no lower ones.

    `platt` is a logistic curve with the slope `y[0]` and the intercept `y[1]`, over scores that are
    shifted by `x[0]` and divided by `x[1]`; `isotonic` is straight between the points (x, y).

    >>> curve = platt([-2, -1, 0.5, 2], [0, 0, 1, 1])
    >>> [round(float(each), 2) for each in curve([-3, 0, 3])]
    [0.13, 0.53, 0.89]
    """

    method: str
    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, scores: ArrayLike) -> Floats:
        """Return the probability of each score."""
        given = np.asarray(scores, dtype=np.float64)
        if self.method == "isotonic":
            return np.asarray(np.interp(given, self.x, self.y), dtype=np.float64)
        linear = self.y[0] * (given - self.x[0]) / self.x[1] + self.y[1]
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(linear, -500, 500))), dtype=np.float64)


def platt(scores: ArrayLike, outcomes: ArrayLike) -> ScoreMap:
    """Fit a logistic curve to scores and what came true; a slope below 0 becomes 0."""
    given, true = (np.asarray(each, dtype=np.float64) for each in (scores, outcomes))
    shift, scale = float(given.mean()), float(given.std()) or 1.0
    column = (given - shift) / scale
    yes = float(true.sum())
    target = np.where(true > 0, (yes + 1) / (yes + 2), 1 / (len(true) - yes + 2))
    slope, intercept = 0.0, float(np.log((yes + 1) / (len(true) - yes + 1)))
    for _ in range(PLATT_STEPS):
        chance = 1 / (1 + np.exp(-(slope * column + intercept)))
        weight = np.maximum(chance * (1 - chance), 1e-12)
        error = target - chance
        gradient = np.array([(error * column).sum(), error.sum()])
        curved = np.array(
            [
                [(weight * column**2).sum() + 1e-9, (weight * column).sum()],
                [(weight * column).sum(), weight.sum() + 1e-9],
            ]
        )
        step = np.linalg.solve(curved, gradient)
        slope, intercept = slope + float(step[0]), intercept + float(step[1])
        if np.abs(step).max() < 1e-9:
            break
    if slope < 0:
        slope, intercept = 0.0, float(np.log((yes + 1) / (len(true) - yes + 1)))
    return ScoreMap("platt", (shift, scale), (slope, intercept))


def isotonic(scores: ArrayLike, outcomes: ArrayLike) -> ScoreMap:
    """Fit the curve that never falls and is nearest to what came true (pool adjacent violators).

    >>> isotonic([1, 2, 3, 4], [0, 1, 0, 1])([1, 2.5, 4]).tolist()
    [0.0, 0.5, 1.0]
    """
    given, true = (np.asarray(each, dtype=np.float64) for each in (scores, outcomes))
    values, at = np.unique(given, return_inverse=True)
    sizes = np.bincount(at).astype(np.float64)
    means = np.bincount(at, weights=true) / sizes
    blocks: list[list[float]] = []  # mean, size, number of values
    for mean, size in zip(means.tolist(), sizes.tolist(), strict=True):
        blocks.append([mean, size, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (one, many, count), (other, more, further) = blocks[-2:]
            joined = (one * many + other * more) / (many + more)
            blocks[-2:] = [[joined, many + more, count + further]]
    fitted = np.repeat([mean for mean, *_ in blocks], [int(count) for *_, count in blocks])
    return ScoreMap("isotonic", tuple(values.tolist()), tuple(fitted.tolist()))


def best_threshold(probabilities: ArrayLike, outcomes: ArrayLike, usual: float = 0.5) -> float:
    """Return where to cut so that yes and no agree best with what came true, by κ.

    It is halfway between two probabilities; of several that are as good the one nearest to `usual`.

    >>> best_threshold([0.2, 0.55, 0.6, 0.9], [0, 0, 1, 1])
    0.575
    """
    chance, true = (np.asarray(each, dtype=np.float64) for each in (probabilities, outcomes))
    values = np.unique(chance)
    cuts = np.concatenate([[usual], (values[1:] + values[:-1]) / 2])
    said = chance[None, :] >= cuts[:, None]
    right = (said == (true > 0)[None, :]).mean(axis=1)
    yes, share = said.mean(axis=1), float((true > 0).mean())
    by_chance = yes * share + (1 - yes) * (1 - share)
    kappas = np.where(by_chance < 1, (right - by_chance) / np.maximum(1 - by_chance, 1e-12), 0.0)
    best = np.flatnonzero(kappas >= kappas.max() - 1e-12)
    return float(cuts[best[np.argmin(np.abs(cuts[best] - usual))]])


def deal_folds(
    clusters: Sequence[object], folds: int = FOLDS, seed: int = 0
) -> Iterator[tuple[Bools, Bools]]:
    """Yield which rows are learnt from and which are held out, each held out once.

    Rows of a cluster stay together; a single cluster cannot be held out.
    """
    groups, group = np.unique(np.array(clusters, dtype=object), return_inverse=True)
    many = min(folds, len(groups))
    part = np.random.default_rng(seed).permutation(len(groups)) % max(many, 1)
    for number in range(many if many > 1 else 0):
        out = part[group] == number
        yield ~out, out
