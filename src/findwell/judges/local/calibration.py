"""The weights of the local judge's signals, fitted on public labels; never fitted at run time.

`examples/maintenance/calibrate_local_judge.py` prints these tables again; how far they agree with
people is in docs/local-judge-measured.md. A score is the logistic function of the weighted sum of
the signals; a verdict is in favour from a threshold on, and grades 2 and 3 have thresholds of their
own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import OptionError, choose

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints

VERSION = 4  # of the weights and the signals: raised when a verdict may change


@dataclass(frozen=True, slots=True)
class Model:
    """Weights of signals, and the scores from which a verdict is 1, 2, 3."""

    intercept: float
    weights: Mapping[str, float]
    thresholds: tuple[float, ...]  # of the score, 0…1

    def sums(self, signals: Mapping[str, Floats]) -> Floats:
        """Return the weighted sums; added column by column, so other pairs change nothing."""
        total = np.full(len(next(iter(signals.values()))), self.intercept)
        for name, weight in self.weights.items():
            total += weight * signals[name]
        return total

    def grades(self, sums: Floats) -> Ints:
        """Return the verdicts of weighted sums."""
        found = np.zeros(len(sums), dtype=np.int64)
        for threshold in self.thresholds:
            found += sums >= logit(threshold)
        return found

    def at(self, threshold: float) -> Model:
        """Return the model with another threshold; those of higher grades move along."""
        shift = logit(threshold) - logit(self.thresholds[0])
        moved = (logistic(logit(each) + shift) for each in self.thresholds[1:])
        return Model(self.intercept, self.weights, (threshold, *moved))


def logistic(number: float) -> float:
    """Return the logistic function."""
    return 1 / (1 + math.exp(-number)) if number >= 0 else 1 - 1 / (1 + math.exp(number))


def logit(share: float) -> float:
    """Return the inverse of the logistic function."""
    return math.log(share / (1 - share))


MODELS: dict[str, dict[str, Model]] = {
    "text": {
        "relevance": Model(-2.05, {"cover": 0.62, "often": 2.09}, (0.51, 0.61, 0.7)),
        "claims": Model(-5.98, {"cover": 10.43}, (0.62,)),
        "statements": Model(-0.79, {"cover": 3.85}, (0.58,)),
    },
    "minilm": {
        "relevance": Model(-4.75, {"cover": 1.28, "similarity": 7.53}, (0.55, 0.65, 0.73)),
        "claims": Model(-8.22, {"cover": 7.38, "closest": 6.6}, (0.46,)),
        "statements": Model(-1.99, {"cover": 0.76, "similarity": 4.97}, (0.65,)),
    },
}


def models(kind: str, thresholds: Mapping[str, float] | None = None) -> dict[str, Model]:
    """Return the models of a kind of judge by aspect, some with thresholds of the user's own."""
    found = dict(MODELS[kind])
    for aspect, threshold in (thresholds or {}).items():
        choose("aspect with a threshold", aspect, found)
        if not 0 < threshold < 1:
            raise OptionError(f"the threshold of {aspect} must be between 0 and 1, not {threshold}")
        found[aspect] = found[aspect].at(threshold)
    return found
