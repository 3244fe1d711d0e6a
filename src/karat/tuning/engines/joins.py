"""The values that a document has in several lists become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from karat.core.data import Floats
    from karat.tuning.engines.engine import Setting


def weighted_sum(values: Floats, weights: Floats, setting: Setting) -> Floats:
    """Σ weight × value, over the lists that have the document."""
    del setting
    return _sum(weights[:, None] * values)


def weighted_mean(values: Floats, weights: Floats, setting: Setting) -> Floats:
    """Σ weight × value ÷ Σ weight; a list that lacks the document counts as 0."""
    return weighted_sum(values, weights, setting) / _sum(weights[:, None])


def reciprocal_weighted_rank(values: Floats, weights: Floats, setting: Setting) -> Floats:
    """Σ 1 ÷ (rank ÷ weight + k - 1): the weight divides the rank; a weight of 0 is no list."""
    below = values / weights[:, None] + np.asarray((setting.k or 0) - 1, dtype=values.dtype)
    return _sum(np.where(weights[:, None] > 0, 1 / below, np.nan))


def _sum(values: Floats) -> Floats:
    """Add up list by list, as engines do: another order of the sum rounds otherwise."""
    total = np.zeros(values.shape[1], dtype=values.dtype)
    for each in values:
        total = total + np.where(np.isnan(each), values.dtype.type(0), each)
    return total
