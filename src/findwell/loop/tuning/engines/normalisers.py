"""How engines make the scores of one list comparable with those of another.

Each takes the lists of one run and returns a value per score; what has no score is left out later.
The same name means different numbers in different engines, above all where all scores of a list
are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from findwell.loop.tuning.lists import ScoreLists

    Values: TypeAlias = NDArray[Any]
    Normaliser: TypeAlias = Callable[[ScoreLists], Values]

SMALLEST = float(np.finfo(np.float32).smallest_subnormal)  # Float.MIN_VALUE of Java
EPSILON = np.float32(1e-6)  # what Elasticsearch takes for nothing
FLOOR = 0.001  # what OpenSearch gives instead of 0


def raw(lists: ScoreLists) -> Values:
    """Leave the scores as they are."""
    return lists.score


def elasticsearch_minmax(lists: ScoreLists) -> Values:
    """(s - min) ÷ (max - min), with a max above 0; nearly equal scores are 1."""
    return _elasticsearch_minmax(lists, np.ones_like(lists.score))


def elasticsearch_minmax_8_18_0(lists: ScoreLists) -> Values:
    """As today, but nearly equal scores stay the lowest of them."""
    return _elasticsearch_minmax(lists, lists.spread(lists.low))


def _elasticsearch_minmax(lists: ScoreLists, equal: Values) -> Values:
    low, high = lists.spread(lists.low), lists.spread(_positive_high(lists))
    return np.where(np.abs(low - high) < EPSILON, equal, (lists.score - low) / (high - low))


def elasticsearch_l2(lists: ScoreLists) -> Values:
    """Return s ÷ √Σs²; unchanged where the root is nearly 0."""
    norm = lists.spread(_norm(lists))
    return np.where(norm < EPSILON, lists.score, lists.score / norm)


def opensearch_min_max(lists: ScoreLists) -> Values:
    """(s - min) ÷ (max - min), with a max above 0; 0 becomes 0.001, equal scores 1."""
    low, high = lists.spread(lists.low), lists.spread(_positive_high(lists))
    scaled = np.where(high == low, 1, (lists.score - low) / (high - low))
    return np.where(scaled == 0, np.float32(FLOOR), scaled)


def opensearch_l2(lists: ScoreLists) -> Values:
    """Return s ÷ √Σs²; 0 where the root is 0."""
    norm = lists.spread(_norm(lists))
    return np.where(norm == 0, 0 * lists.score, lists.score / norm)


def opensearch_z_score(lists: ScoreLists) -> Values:
    """(s - mean) ÷ sample deviation; up to 0 becomes 0.001, the mean itself the highest score."""
    mean, deviation = lists.spread(lists.mean), lists.spread(lists.deviation(1))
    scaled = (lists.score - mean) / deviation
    scaled = np.where(scaled <= 0, np.float32(FLOOR), scaled)
    scaled = np.where(deviation == 0, lists.spread(lists.low), scaled)
    return np.where(lists.score == mean, lists.spread(lists.high), scaled)


def share_of_span(lists: ScoreLists) -> Values:
    """(s - min) ÷ (max - min); equal scores are 1."""
    low, high = lists.spread(lists.low), lists.spread(lists.high)
    return np.where(high == low, 1, (lists.score - low) / (high - low))


def zero_or_share_of_span(lists: ScoreLists) -> Values:
    """(s - min) ÷ (max - min); equal scores are 0."""
    return np.where(_equal(lists), 0, share_of_span(lists))


def span_or_half(lists: ScoreLists) -> Values:
    """(s - min) ÷ (max - min); equal scores are 0.5."""
    return np.where(_equal(lists), 0.5, share_of_span(lists))


def sign_or_share_of_span(lists: ScoreLists) -> Values:
    """(s - min) ÷ (max - min); equal scores are 1 if they are above 0, else 0."""
    return _sign_where_equal(lists, share_of_span(lists))


def within_3_deviations(lists: ScoreLists) -> Values:
    """(s - (mean - 3σ)) ÷ 6σ with σ over n; equal scores are 1 if they are above 0, else 0."""
    return _sign_where_equal(lists, _within_3(lists, 0))


def raw_or_within_3_deviations(lists: ScoreLists) -> Values:
    """(s - (mean - 3σ)) ÷ 6σ with σ over n; equal scores stay as they are."""
    return np.where(_equal(lists), lists.score, _within_3(lists, 0))


def within_3_sample_deviations(lists: ScoreLists) -> Values:
    """(s - (mean - 3σ)) ÷ 6σ with σ over n - 1; equal scores, or one alone, are 0.5."""
    return np.where(_equal(lists), 0.5, _within_3(lists, 1))


def milvus_cosine(lists: ScoreLists) -> Values:
    """(1 + s) ÷ 2."""
    return (1 + lists.score) * np.float32(0.5)


def milvus_ip(lists: ScoreLists) -> Values:
    """½ + atan(s) ÷ π."""
    return np.float32(0.5) + _turn(lists.score)


def milvus_bm25(lists: ScoreLists) -> Values:
    """2 atan(s) ÷ π."""
    return 2 * _turn(lists.score)


def milvus_l2(lists: ScoreLists) -> Values:
    """1 - 2 atan(d) ÷ π, with the distance, whatever sign the run gives it."""
    return 1 - 2 * _turn(np.abs(lists.score))


def _turn(values: Values) -> Values:
    """Return atan ÷ π, rounded to the precision of the values."""
    turned: Values = (np.arctan(values.astype(np.float64)) / np.pi).astype(values.dtype)
    return turned


def _positive_high(lists: ScoreLists) -> Values:
    """Return the highest score, searched upwards from the smallest number above 0."""
    high: Values = np.maximum(lists.high, lists.score.dtype.type(SMALLEST))
    return high


def _norm(lists: ScoreLists) -> Values:
    norm: Values = np.sqrt(lists.total(lists.score * lists.score))
    return norm


def _equal(lists: ScoreLists) -> Values:
    return lists.spread(lists.low == lists.high)


def _within_3(lists: ScoreLists, less: int) -> Values:
    mean, reach = lists.spread(lists.mean), 3 * lists.spread(lists.deviation(less))
    low, high = mean - reach, mean + reach
    scaled: Values = (lists.score - low) / (high - low)
    return scaled


def _sign_where_equal(lists: ScoreLists, scaled: Values) -> Values:
    sign = (lists.score > 0).astype(lists.score.dtype)
    return np.where(_equal(lists), sign, scaled)
