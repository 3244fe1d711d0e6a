"""The Poisson bootstrap: each unit is drawn as often as a Poisson variable of mean 1 says.

Unlike other bootstraps it needs no list of all units, so that it runs where they are: every machine
weighs the units that it has, and the weighted sums of all machines are added up. How often a unit
is drawn depends on its name and the number of the sample alone: a task that is tried again, or
another cut of the data, draws the same samples.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from findwell.core.data import Floats

MOST = 16  # draws of a unit in a sample; more have a probability of 1e-15
_CHANCES = np.cumsum([math.exp(-1) / math.factorial(count) for count in range(MOST)])
_STEP = np.uint64(0x9E3779B97F4A7C15)  # of the generator splitmix64, as are the constants below


def name_hashes(names: Iterable[object]) -> NDArray[np.uint64]:
    """Return a number for each name that looks random and is the same everywhere, for ever.

    >>> name_hashes(["q1"]).tolist() == name_hashes(["q1", "q2"]).tolist()[:1]
    True
    """
    digest = (hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(digest), dtype="<u8").astype(np.uint64)


def poisson_weights(units: NDArray[np.uint64], samples: int) -> Floats:
    """Return how often each unit is drawn in each sample: units × samples.

    >>> weights = poisson_weights(name_hashes(range(2000)), 50)
    >>> weights.shape, abs(float(weights.mean()) - 1) < 0.02, abs(float(weights.var()) - 1) < 0.05
    ((2000, 50), True, True)
    """
    with np.errstate(over="ignore"):
        number = np.arange(1, samples + 1, dtype=np.uint64) * _STEP
        mixed = units[:, np.newaxis] + number[np.newaxis, :]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    chance = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    drawn: Floats = np.searchsorted(_CHANCES, chance, side="right").astype(np.float64)
    return drawn
