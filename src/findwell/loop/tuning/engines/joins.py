"""The values that a document has in several lists become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats
    from findwell.loop.tuning.engines.engine import Prepared, Setting

NEAR = 7  # decimal digits in which Weaviate tells scores apart


def weighted_sum(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight × value, over the lists that have the document."""
    del setting
    return add_up(weights[:, None] * prepared.values)


def weights_over(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight ÷ value, over the lists that have the document."""
    del setting
    return add_up(weights[:, None] / prepared.values)


def ratios_over(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight ÷ value, where the first weight is always 1."""
    return weights_over(prepared, weights / weights[0], setting)


def sum_of_shares(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight × value, with weights that are made to add up to 1."""
    return weighted_sum(prepared, weights / weights.sum(), setting)


def near_sum(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight × value; sums that differ by less than can be told apart are equal."""
    return np.round(weighted_sum(prepared, weights, setting), NEAR)


def near_weights_over(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight ÷ value, each in 32 bits."""
    del setting
    return add_up((weights[:, None] / prepared.values).astype(np.float32))


def scaled_weights_over(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ n · weight ÷ value ÷ (n ÷ 61), with weights that are made to add up to 1."""
    count = len(weights)
    shares = weights / weights.sum()
    return weights_over(prepared, shares * count, setting) / (count / 61)


def reciprocal_weighted_rank(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ 1 ÷ (rank ÷ weight + k - 1): the weight divides the rank; a weight of 0 is no list."""
    precision = prepared.values.dtype.type
    below = prepared.values / weights[:, None] + precision(setting.k or 0) - precision(1)
    return add_up(np.where(weights[:, None] > 0, precision(1) / below, np.nan))


def weighted_mean(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight × value ÷ Σ weight; what is missing counts as 0, what is negative not at all."""
    del setting
    missing = np.isnan(prepared.values)
    counted = missing | (prepared.values >= 0)
    total = add_up(np.where(counted, weights[:, None] * prepared.values, np.nan))
    return _divided(total, _weight(weights, counted))


def geometric_mean(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """exp(Σ weight × ln value ÷ Σ weight), over the lists in which the value is above 0."""
    del setting
    counted = prepared.values > 0
    total = add_up(np.where(counted, weights[:, None] * np.log(prepared.values), np.nan))
    share = _weight(weights, counted)
    return np.where(share > 0, np.exp(total / share), 0).astype(total.dtype)


def harmonic_mean(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight ÷ Σ (weight ÷ value), over the lists in which the value is above 0."""
    del setting
    counted = prepared.values > 0
    below = add_up(np.where(counted, weights[:, None] / prepared.values, np.nan))
    return _divided(_weight(weights, counted), below)


def largest(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Return the largest value of a document in any list."""
    del weights, setting
    most: Floats = np.fmax.reduce(prepared.values, axis=0)
    return most


def filled_sum(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight × value, with 1 - fill for what is missing; a query with one list keeps its own."""
    there = ~np.isnan(prepared.values)
    queries = int(prepared.query.max(initial=-1)) + 1
    lists = np.array([np.bincount(prepared.query[each], minlength=queries) > 0 for each in there])
    alone = (lists.sum(axis=0) == 1)[prepared.query]
    filled = np.where(there, prepared.values, 1 - (setting.fill or 0.0))
    return np.where(alone, add_up(prepared.values), add_up(weights[:, None] * filled))


def inverted_filled_sum(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """1 - the sum, which ranks the least relevant document first."""
    return 1 - filled_sum(prepared, weights, setting)


def add_up(values: Floats) -> Floats:
    """Add up list by list, as engines do: another order of the sum rounds otherwise."""
    total = np.zeros(values.shape[1], dtype=values.dtype)
    for each in values:
        total = total + np.where(np.isnan(each), values.dtype.type(0), each)
    return total


def _weight(weights: Floats, counted: Bools) -> Floats:
    """Return the weight of the lists that count for each row."""
    return add_up(np.where(counted, weights[:, None], weights.dtype.type(0)))


def _divided(total: Floats, by: Floats) -> Floats:
    return np.where(by == 0, 0, total / by).astype(total.dtype)
