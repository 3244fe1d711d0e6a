"""What engines compute: scores of a list made comparable, values of several lists made one, ties.

The entries of `engines.toml` name these functions. The same name means different numbers in
different engines, above all where all scores of a list are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.core.errors import InputError, OptionError
from findwell.core.frames import pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from findwell.core.data import Bools, Floats, Ints
    from findwell.loop.tuning.engines import Prepared, Setting
    from findwell.loop.tuning.pool import Pool

    Values: TypeAlias = NDArray[Any]

Normaliser: TypeAlias = "Callable[[ScoreLists], Values]"  # a value for each score
Join: TypeAlias = "Callable[[Prepared, Floats, Setting], Floats]"  # with the weights
TieKeys: TypeAlias = "Callable[[Pool], Sequence[Any]]"  # keys of rows, the first decides

NORMALISERS = {
    "mm": "(score − min) ÷ (max − min): the list's worst is 0, its best 1",
    "tmm": "(score − lowest) ÷ (max − lowest), with the lowest score the retriever can give",
    "z": "(score − mean) ÷ standard deviation",
    "dbsf": "(score − (mean − 3σ)) ÷ 6σ: what lies within three standard deviations is 0…1",
}
SMALLEST_ABOVE_0 = float(np.finfo(np.float32).smallest_subnormal)  # Float.MIN_VALUE of Java
ELASTICSEARCH_NOTHING = np.float32(1e-6)  # what Elasticsearch takes for 0
OPENSEARCH_FLOOR = np.float32(0.001)  # what OpenSearch gives instead of 0
WEAVIATE_DIGITS = 7  # decimal digits in which Weaviate distinguishes scores


class ScoreLists:
    """Scores of which each query has a list; NaN is a missing score and does not count.

    What is computed has one value per list; `spread` gives it to every score.

    >>> lists = ScoreLists(np.array([5.0, 3.0, np.nan, 7.0]), np.array([0, 0, 0, 1]))
    >>> lists.low.tolist(), lists.high.tolist(), lists.mean.tolist()
    ([3.0, 7.0], [5.0, 7.0], [4.0, 7.0])
    >>> lists.spread(lists.count).tolist()
    [2.0, 2.0, 2.0, 1.0]
    """

    def __init__(self, score: Values, query: Ints) -> None:
        self.score = score
        self.known = ~np.isnan(score)
        begins = np.diff(query, prepend=query[:1] - 1) != 0
        self._number = np.cumsum(begins) - 1
        self._start = np.flatnonzero(begins)

    def spread(self, values: Values) -> Values:
        """Give the value of each list to its scores."""
        spread: Values = values[self._number]
        return spread

    def total(self, values: Values) -> Values:
        """Add up values in each list."""
        # in 64 bits, so that the order of the rows does not matter
        there = np.where(self.known, values, 0).astype(np.float64)
        total = np.add.reduceat(there, self._start) if len(self._start) else there
        return total.astype(values.dtype)

    def largest(self, values: Values, nothing: float) -> Values:
        """Return the largest value of each list, or `nothing` where a list has none."""
        there = np.where(self.known, values, values.dtype.type(nothing))
        return np.maximum.reduceat(there, self._start) if len(self._start) else there

    @property
    def count(self) -> Values:
        """How many scores each list has."""
        return self.total(np.ones_like(self.score))

    @property
    def high(self) -> Values:
        """The highest score of each list; -inf where it has none."""
        return self.largest(self.score, -np.inf)

    @property
    def low(self) -> Values:
        """The lowest score of each list; inf where it has none."""
        return -self.largest(-self.score, -np.inf)

    @property
    def equal(self) -> Values:
        """Whether all scores of each list are the same."""
        equal: Values = self.low == self.high
        return equal

    @property
    def mean(self) -> Values:
        """The mean score of each list; NaN where it has none."""
        return self._exact_mean().astype(self.score.dtype)

    def deviation(self, less: int = 0) -> Values:
        """Return the standard deviation of each list, divided by n - `less`."""
        exact = self.score.astype(np.float64)
        with np.errstate(all="ignore"):
            squares = self.total((exact - self.spread(self._exact_mean())) ** 2)
            root = np.sqrt(squares / (self.count.astype(np.float64) - less))
        return root.astype(self.score.dtype)

    def _exact_mean(self) -> Values:
        with np.errstate(invalid="ignore"):
            mean: Values = self.total(self.score.astype(np.float64)) / self.count
        return mean


# scores made comparable


def scale_lists(lists: ScoreLists, how: str, lowest: float | None = None) -> Floats:
    """Scale the scores of one retriever by one of NORMALISERS, the list of each query by itself.

    A missing score stays NaN and does not count. Where all scores of a list are equal they say
    nothing, and the result is NaN. σ divides by n, not n − 1.

    >>> lists = ScoreLists(np.array([5.0, 3.0, 7.0, 7.0]), np.array([0, 0, 1, 1]))
    >>> scale_lists(lists, "mm").tolist()
    [1.0, 0.0, nan, nan]
    """
    if how == "tmm" and lowest is None:
        raise OptionError(
            "tmm needs the lowest score that each retriever can give",
            fix="for example -1 for a cosine, 0 for BM25: lowest=(-1, 0)",
        )
    with np.errstate(all="ignore"):
        count, high, low = lists.count, lists.high, lists.low
        least = np.full(len(low), lowest) if how == "tmm" else low
        if ((high < least) & (count > 0)).any():
            raise OptionError(
                f"all scores of a query lie below {lowest:g}, the lowest score given",
                fix="give tmm the lowest score that the retriever can give",
            )
        floor, span = least, high - least
        if how in {"z", "dbsf"}:
            floor, span = lists.mean, lists.deviation()
        if how == "dbsf":
            bottom = floor - 3 * span
            floor, span = bottom, (floor + 3 * span) - bottom
        # equal scores may have a deviation by rounding, and nearly equal ones none
        span = np.where((high > least) & (span > 0), span, np.nan)
        bad = (count > 0) & (np.isinf(low) | np.isinf(high) | np.isinf(span))
        if bad.any():
            raise InputError(
                f"the scores of {int(bad.sum())} lists are infinite, or too far apart to be scaled",
                fix="give finite scores, or fuse by rank, which needs none",
            )
        scaled: Floats = (lists.score - lists.spread(floor)) / lists.spread(span)
    return scaled


def _where_equal(lists: ScoreLists, equal: float | str, scaled: Values) -> Values:
    """Return scaled scores, but for lists of equal scores: a number, the sign, or raw scores."""
    values: dict[float | str, Values] = {
        "sign": (lists.score > 0).astype(lists.score.dtype),
        "raw": lists.score,
    }
    return np.where(lists.spread(lists.equal), values.get(equal, equal), scaled)


def _span(lists: ScoreLists, equal: float | str) -> Values:
    """(s - min) ÷ (max - min)."""
    low, high = lists.spread(lists.low), lists.spread(lists.high)
    return _where_equal(lists, equal, (lists.score - low) / (high - low))


def _within_3_deviations(lists: ScoreLists, equal: float | str, less: int = 0) -> Values:
    """(s - (mean - 3σ)) ÷ 6σ, with σ over n - `less`."""
    mean, reach = lists.spread(lists.mean), 3 * lists.spread(lists.deviation(less))
    low, high = mean - reach, mean + reach
    return _where_equal(lists, equal, (lists.score - low) / (high - low))


def _positive_high(lists: ScoreLists) -> Values:
    """Return the highest score, searched upwards from the smallest number above 0."""
    return lists.spread(np.maximum(lists.high, lists.score.dtype.type(SMALLEST_ABOVE_0)))


def elasticsearch_minmax(lists: ScoreLists) -> Values:
    """(s - min) ÷ (max - min), with a max above 0; nearly equal scores are 1."""
    low, high = lists.spread(lists.low), _positive_high(lists)
    nearly_equal = np.abs(low - high) < ELASTICSEARCH_NOTHING
    return np.where(nearly_equal, np.ones_like(lists.score), (lists.score - low) / (high - low))


def opensearch_min_max(lists: ScoreLists) -> Values:
    """(s - min) ÷ (max - min), with a max above 0; 0 becomes 0.001, equal scores 1."""
    low, high = lists.spread(lists.low), _positive_high(lists)
    scaled = np.where(high == low, 1, (lists.score - low) / (high - low))
    return np.where(scaled == 0, OPENSEARCH_FLOOR, scaled)


def _l2_norm(lists: ScoreLists) -> Values:
    return lists.spread(np.sqrt(lists.total(lists.score * lists.score)))


def elasticsearch_l2(lists: ScoreLists) -> Values:
    """Return s ÷ √Σs²; unchanged where the root is nearly 0."""
    norm = _l2_norm(lists)
    return np.where(norm < ELASTICSEARCH_NOTHING, lists.score, lists.score / norm)


def opensearch_l2(lists: ScoreLists) -> Values:
    """Return s ÷ √Σs²; 0 where the root is 0."""
    norm = _l2_norm(lists)
    return np.where(norm == 0, 0 * lists.score, lists.score / norm)


def opensearch_z_score(lists: ScoreLists) -> Values:
    """(s - mean) ÷ sample deviation; up to 0 becomes 0.001, the mean itself the highest score."""
    mean, deviation = lists.spread(lists.mean), lists.spread(lists.deviation(1))
    scaled = (lists.score - mean) / deviation
    scaled = np.where(scaled <= 0, OPENSEARCH_FLOOR, scaled)
    scaled = np.where(deviation == 0, lists.spread(lists.low), scaled)
    return np.where(lists.score == mean, lists.spread(lists.high), scaled)


def _turn(values: Values) -> Values:
    """Return atan ÷ π, rounded to the precision of the values."""
    turned: Values = (np.arctan(values.astype(np.float64)) / np.pi).astype(values.dtype)
    return turned


def milvus_l2(lists: ScoreLists) -> Values:
    """1 - 2 atan(d) ÷ π, with the distance, whatever sign the run gives it."""
    return 1 - 2 * _turn(np.abs(lists.score))


SCORE_NORMALISERS: Mapping[str, Normaliser] = {
    "raw": lambda lists: lists.score,
    "span_or_0": partial(_span, equal=0.0),
    "span_or_1": partial(_span, equal=1.0),
    "span_or_half": partial(_span, equal=0.5),
    "span_or_sign": partial(_span, equal="sign"),
    "deviations_or_sign": partial(_within_3_deviations, equal="sign"),
    "deviations_or_raw": partial(_within_3_deviations, equal="raw"),
    "sample_deviations_or_half": partial(_within_3_deviations, equal=0.5, less=1),
    "elasticsearch_minmax": elasticsearch_minmax,
    "elasticsearch_l2": elasticsearch_l2,
    "opensearch_min_max": opensearch_min_max,
    "opensearch_l2": opensearch_l2,
    "opensearch_z_score": opensearch_z_score,
    "milvus_cosine": lambda lists: (1 + lists.score) * np.float32(0.5),
    "milvus_ip": lambda lists: np.float32(0.5) + _turn(lists.score),
    "milvus_bm25": lambda lists: 2 * _turn(lists.score),
    "milvus_l2": milvus_l2,
    "mm": partial(scale_lists, how="mm"),
    "z": partial(scale_lists, how="z"),
    "dbsf": partial(scale_lists, how="dbsf"),
    "tmm_cosine": partial(scale_lists, how="tmm", lowest=-1.0),
    "tmm_bm25": partial(scale_lists, how="tmm", lowest=0.0),
}
# those that look for a best score above 0
POSITIVE_MAXIMUM = (elasticsearch_minmax, opensearch_min_max)


# values of several lists made one


def add_up(values: Floats) -> Floats:
    """Add up list by list, as engines do: another order of the sum rounds otherwise."""
    total = np.zeros(values.shape[1], dtype=values.dtype)
    for each in values:
        total = total + np.where(np.isnan(each), values.dtype.type(0), each)
    return total


def weighted_sum(prepared: Prepared, weights: Floats, _: Setting) -> Floats:
    """Σ weight × value, over the lists that have the document."""
    return add_up(weights[:, None] * prepared.values)


def sum_of_shares(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight × value, with weights that are made to add up to 1."""
    return weighted_sum(prepared, weights / weights.sum(), setting)


def near_sum(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight × value; sums that Weaviate cannot distinguish are equal."""
    return np.round(weighted_sum(prepared, weights, setting), WEAVIATE_DIGITS)


def weights_over(prepared: Prepared, weights: Floats, _: Setting) -> Floats:
    """Σ weight ÷ value, over the lists that have the document."""
    return add_up(weights[:, None] / prepared.values)


def ratios_over(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ weight ÷ value, where the first weight is always 1."""
    return weights_over(prepared, weights / weights[0], setting)


def near_weights_over(prepared: Prepared, weights: Floats, _: Setting) -> Floats:
    """Σ weight ÷ value, each in 32 bits."""
    return add_up((weights[:, None] / prepared.values).astype(np.float32))


def scaled_weights_over(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ n · weight ÷ value ÷ (n ÷ 61), with weights that are made to add up to 1."""
    count = len(weights)
    return weights_over(prepared, weights / weights.sum() * count, setting) / (count / 61)


def reciprocal_weighted_rank(prepared: Prepared, weights: Floats, setting: Setting) -> Floats:
    """Σ 1 ÷ (rank ÷ weight + k - 1): the weight divides the rank, and 0 leaves out the list."""
    precision = prepared.values.dtype.type
    below = prepared.values / weights[:, None] + precision(setting.k or 0) - precision(1)
    return add_up(np.where(weights[:, None] > 0, precision(1) / below, np.nan))


def _weight_of(counted: Bools, weights: Floats) -> Floats:
    """Return the weight of the lists that count for each row."""
    return add_up(np.where(counted, weights[:, None], weights.dtype.type(0)))


def weighted_mean(prepared: Prepared, weights: Floats, _: Setting) -> Floats:
    """Σ weight × value ÷ Σ weight; what is missing counts as 0, what is negative not at all."""
    counted = np.isnan(prepared.values) | (prepared.values >= 0)
    total = add_up(np.where(counted, weights[:, None] * prepared.values, np.nan))
    share = _weight_of(counted, weights)
    return np.where(share == 0, 0, total / share).astype(total.dtype)


def geometric_mean(prepared: Prepared, weights: Floats, _: Setting) -> Floats:
    """exp(Σ weight × ln value ÷ Σ weight), over the lists in which the value is above 0."""
    counted = prepared.values > 0
    total = add_up(np.where(counted, weights[:, None] * np.log(prepared.values), np.nan))
    share = _weight_of(counted, weights)
    return np.where(share > 0, np.exp(total / share), 0).astype(total.dtype)


def harmonic_mean(prepared: Prepared, weights: Floats, _: Setting) -> Floats:
    """Σ weight ÷ Σ (weight ÷ value), over the lists in which the value is above 0."""
    counted = prepared.values > 0
    below = add_up(np.where(counted, weights[:, None] / prepared.values, np.nan))
    share = _weight_of(counted, weights)
    return np.where(below == 0, 0, share / below).astype(share.dtype)


def largest(prepared: Prepared, _: Floats, __: Setting) -> Floats:
    """Return the largest value of a document in any list."""
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


JOINS: Mapping[str, Join] = {
    each.__name__: each
    for each in (
        weighted_sum, sum_of_shares, near_sum, weights_over, ratios_over, near_weights_over,
        scaled_weights_over, reciprocal_weighted_rank, weighted_mean, geometric_mean,
        harmonic_mean, largest, filled_sum,
    )
}  # fmt: skip


# what decides between equal scores


def by_id(pool: Pool) -> Sequence[Ints]:
    """Break ties by the id of the document, ascending; whole numbers come first, by value."""
    number = pool.doc.cast(pl.Int64, strict=False).fill_null(np.iinfo(np.int64).max)
    return number.to_numpy(), pool.doc.rank("dense").to_numpy().astype(np.int64)


def by_last_score(pool: Pool) -> Sequence[Ints | Floats]:
    """Break ties by the score in the last list that has the document, then by id."""
    last = pool.score[0]
    for each in pool.score[1:]:
        last = np.where(np.isnan(each), last, each)
    return (-last, *by_id(pool))


def by_last_list(pool: Pool) -> Sequence[Ints]:
    """Break ties by the rank in the last list, then in the one before it."""
    absent = pool.rank.max(initial=0) + 1
    return tuple(np.where(each > 0, each, absent) for each in pool.rank[::-1])


TIE_RULES: Mapping[str, TieKeys] = {
    "by_id": by_id,
    "by_last_score": by_last_score,
    "by_last_list": by_last_list,
}
# which normalisers of several runs go together
NORMALISER_RULES: Mapping[str, Callable[[tuple[str, ...]], bool]] = {
    "all_the_same": lambda names: len(set(names)) == 1,
    # every run is normalised, or none but distances among similarities
    "all_or_distances": lambda names: "none" not in names or set(names) <= {"none", "l2"},
}
