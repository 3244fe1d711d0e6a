"""Estimates from few labels, drawn a thousand times from known truth: intervals hold it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from findwell.statistics.intervals import interval
from findwell.statistics.paired import paired as difference
from findwell.statistics.prediction_powered import SampledLabels, mean_of_sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from findwell.core.data import Floats, Ints

REPEATS = 1000
QUERIES, POOL, DEEP = 60, 14, 10
EASE = 0.9 ** np.arange(POOL)  # relevance falls with the rank of the first system
MEAN = 0.5  # of how easy queries are
SAYS_YES = 0.55  # how often a judge says yes that does not look: it is biased


def copied(kappa: float) -> float:
    """Return how often a judge must look, so that its κ is this on average."""
    yes = MEAN * EASE.mean()
    low, high = 0.0, 1.0
    for _ in range(50):
        share = (low + high) / 2
        says = share * yes + (1 - share) * SAYS_YES
        agree = share + (1 - share) * (yes * SAYS_YES + (1 - yes) * (1 - SAYS_YES))
        chance = yes * says + (1 - yes) * (1 - says)
        low, high = (share, high) if (agree - chance) / (1 - chance) < kappa else (low, share)
    return low


@dataclass
class Draw:
    """Queries with the truth about each document of the pool, and what a judge says."""

    truth: Floats  # queries × documents
    judged: Floats

    @classmethod
    def of(cls, rng: np.random.Generator, kappa: float, queries: int = QUERIES) -> Draw:
        ease = rng.beta(1.5, 1.5, size=(queries, 1)) * 2 * MEAN
        truth = (rng.random((queries, POOL)) < ease * EASE).astype(float)
        looks = rng.random(truth.shape) < copied(kappa)
        judged = np.where(looks, truth, rng.random(truth.shape) < SAYS_YES).astype(float)
        return cls(truth, judged)


def sampled(
    rng: np.random.Generator, drawn: Draw, labels: int, columns: Ints, *, strata: bool
) -> tuple[Floats, Floats, Ints]:
    """Label pairs of these columns, by strata of the judge or not: labels, chances, strata."""
    truth, judged = drawn.truth[:, columns].ravel(), drawn.judged[:, columns].ravel()
    stratum = judged.astype(np.int64) if strata else np.zeros(len(truth), dtype=np.int64)
    label, chance = np.full(len(truth), np.nan), np.ones(len(truth))
    for each in np.unique(stratum):
        inside = np.flatnonzero(stratum == each)
        count = min(len(inside), max(2, round(labels * len(inside) / len(truth))))
        chosen = rng.choice(inside, count, replace=False)
        label[chosen], chance[inside] = truth[chosen], count / len(inside)
    return label, chance, stratum


def pairs(
    rng: np.random.Generator,
    kappa: float,
    *,
    weight: Floats,
    divisor: Floats | None = None,
    labels: int = 200,
    strata: bool = False,
) -> SampledLabels:
    """Draw a sample of pairs; weight and divisor are those of each document of the pool."""
    drawn = Draw.of(rng, kappa)
    counts = weight != 0 if divisor is None else divisor != 0
    columns = np.flatnonzero(counts)
    label, chance, stratum = sampled(rng, drawn, labels, columns, strata=strata)
    return SampledLabels(
        query=np.repeat(np.arange(QUERIES), len(columns)),
        weight=np.tile(weight[columns], QUERIES),
        label=label,
        judged=drawn.judged[:, columns].ravel(),
        probability=chance,
        stratum=stratum,
        queries=QUERIES,
        divisor=None if divisor is None else np.tile(divisor[columns], QUERIES),
    )


FIRST = np.arange(POOL) < DEEP
LAST = np.arange(POOL) >= POOL - DEEP
TOP = (np.arange(POOL) < 5).astype(float)
MEASURES: dict[str, tuple[Callable[[np.random.Generator, float], SampledLabels], float]] = {
    "P@10": (
        lambda rng, kappa: pairs(rng, kappa, weight=FIRST / DEEP),
        MEAN * float(EASE[FIRST].mean()),
    ),
    "P@10, few labels": (
        lambda rng, kappa: pairs(rng, kappa, weight=FIRST / DEEP, labels=50),
        MEAN * float(EASE[FIRST].mean()),
    ),
    "P@10, strata": (
        lambda rng, kappa: pairs(rng, kappa, weight=FIRST / DEEP, strata=True),
        MEAN * float(EASE[FIRST].mean()),
    ),
    "recall@5, ratio": (
        lambda rng, kappa: pairs(rng, kappa, weight=TOP, divisor=np.ones(POOL)),
        float(EASE[:5].sum() / EASE.sum()),
    ),
    "recall@5, ratio, strata": (
        lambda rng, kappa: pairs(rng, kappa, weight=TOP, divisor=np.ones(POOL), strata=True),
        float(EASE[:5].sum() / EASE.sum()),
    ),
    "difference of P@10": (
        lambda rng, kappa: pairs(rng, kappa, weight=(FIRST * 1.0 - LAST) / DEEP),
        MEAN * float(EASE[FIRST].mean() - EASE[LAST].mean()),
    ),
}


def ndcg(grades: Floats, k: int = DEEP) -> Floats:
    """Return nDCG@k of documents in this order, NaN where nothing is relevant."""
    discount = 1 / np.log2(np.arange(2, grades.shape[1] + 2))
    discount[k:] = 0
    ideal = (-np.sort(-grades, axis=1) * discount).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((grades * discount).sum(axis=1) / ideal)


def whole_queries(
    rng: np.random.Generator, kappa: float, value: Callable[[Floats], Floats], labelled: int = 40
) -> SampledLabels:
    """Draw 120 queries of which some are labelled, for a measure that does not add up."""
    drawn = Draw.of(rng, kappa, 120)
    known = rng.permutation(120) < labelled
    paired = value is ndcg_difference
    values, judged = value(drawn.truth), value(drawn.judged)
    has, judge_has = ~np.isnan(values), ~np.isnan(judged)
    number, zero, one = np.arange(120), np.zeros(120), np.ones(120)
    label = np.where(known, np.nan_to_num(values), np.nan)
    return SampledLabels(
        query=np.concatenate((number, number)),
        weight=np.concatenate((one, zero)),
        label=np.concatenate((label, np.where(known, has, np.nan))),
        judged=np.concatenate((np.nan_to_num(judged), judge_has)),
        probability=np.full(240, labelled / 120),
        stratum=np.zeros(240, dtype=np.int64),
        queries=120,
        divisor=np.concatenate((zero, one)),
        kind=np.concatenate((zero, one)).astype(np.int64),
        bounds=(-1.0, 1.0) if paired else (0.0, 1.0),
        paired=paired,
    )


def ndcg_difference(grades: Floats) -> Floats:
    """Return what the second system has more nDCG@10 than the first."""
    other = np.concatenate((grades[:, POOL - DEEP :], grades[:, : POOL - DEEP]), axis=1)
    return ndcg(grades) - ndcg(other)


def success(grades: Floats) -> Floats:
    """Return whether one of the first three is relevant, NaN where nothing is."""
    return np.where(grades.any(axis=1), grades[:, :3].any(axis=1), np.nan)


def reciprocal_rank(grades: Floats) -> Floats:
    """Return 1 ÷ the rank of the first relevant document, NaN where there is none."""
    return np.where(grades.any(axis=1), 1 / (1 + grades.argmax(axis=1)), np.nan)


def coverage(
    draw: Callable[[np.random.Generator], SampledLabels], truth: float, repeats: int = REPEATS
) -> tuple[Floats, Floats, float]:
    """Return how often intervals of labels alone and with the judge hold the truth, and widths."""
    rng = np.random.default_rng(17)
    held, width, gain = np.zeros(2), np.zeros(2), 0.0
    for _ in range(repeats):
        sample = draw(rng)
        for at, each in enumerate((sample.without_judge(), sample)):
            found = mean_of_sample(each)
            assert found.low is not None
            assert found.high is not None
            held[at] += found.low <= truth <= found.high
            width[at] += found.high - found.low
        gain += (found.effective or 0) / found.labels
    return held / repeats, width / repeats, gain / repeats


def check(held: Floats, width: Floats, gain: float, kappa: float) -> None:
    """Assert that intervals hold the truth in 93 to 97 %, and that a good judge narrows them."""
    assert 0.93 <= held[1] <= 0.97, (held, width)
    assert held[0] >= 0.93, (held, width)  # without strata that helped to draw, it may be wide
    if kappa == 0:
        assert width[1] == pytest.approx(width[0], rel=0.04)
    if kappa >= 0.6:
        assert width[1] < 0.97 * width[0]
        assert gain > 1.2


@pytest.mark.slow
@pytest.mark.parametrize("kappa", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("name", MEASURES)
def test_pairs_hold_the_truth(name: str, kappa: float) -> None:
    draw, truth = MEASURES[name]
    held, width, gain = coverage(lambda rng: draw(rng, kappa), truth)
    check(held, width, gain, kappa)


@pytest.mark.slow
@pytest.mark.parametrize("kappa", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("value", [ndcg, ndcg_difference])
def test_whole_queries_hold_the_truth(value: Callable[[Floats], Floats], kappa: float) -> None:
    many = value(Draw.of(np.random.default_rng(5), 0.0, 400_000).truth)
    truth = float(np.nanmean(many))
    held, width, _ = coverage(lambda rng: whole_queries(rng, kappa, value), truth)
    assert 0.93 <= held[1] <= 0.99, (held, width)
    assert 0.93 <= held[0] <= 0.99, (held, width)
    if kappa == 0:  # verdicts by chance say next to nothing about a list
        assert width[1] == pytest.approx(width[0], rel=0.05)
    if kappa >= 0.6:
        assert width[1] < width[0]


FEW_WHOLE = (ndcg, ndcg_difference, success, reciprocal_rank)


@pytest.mark.slow
@pytest.mark.parametrize("kappa", [0.0, 0.6])
@pytest.mark.parametrize("labelled", [10, 12, 15, 20])
@pytest.mark.parametrize("value", FEW_WHOLE)
def test_few_whole_queries_hold_the_truth(
    value: Callable[[Floats], Floats], labelled: int, kappa: float
) -> None:
    truth = float(np.nanmean(value(Draw.of(np.random.default_rng(5), 0.0, 400_000).truth)))
    held, width, _ = coverage(lambda rng: whole_queries(rng, kappa, value, labelled), truth)
    assert held.min() >= 0.93, (held, width)


def test_few_whole_queries_are_as_wide_as_their_values_say() -> None:
    """A floor of one full error made intervals of 10 queries 1.5 times as wide as they need be."""
    rng = np.random.default_rng(3)
    held, widths = np.zeros(2), np.zeros(2)
    for _ in range(60):
        values, other = rng.beta(3, 1.5, (2, 100))
        judged = np.where(rng.random(100) < 0.6, values, other)
        known, zero = rng.permutation(100) < 10, np.zeros(100)
        sample = SampledLabels(
            np.arange(100), zero + 1, np.where(known, values, np.nan), judged, zero + 0.1,
            zero.astype(np.int64), 100, bounds=(0.0, 1.0),
        )  # fmt: skip
        for at, each in enumerate((replace(sample, bounds=None), sample)):
            found = mean_of_sample(each)
            assert found.low is not None
            assert found.high is not None
            widths[at] += found.high - found.low
            held[at] += found.low <= 3 / 4.5 <= found.high
    assert held[1] >= 55
    assert widths[1] < 0.75 * widths[0]


@pytest.mark.parametrize("paired", [False, True])
def test_whole_queries_without_a_judge_have_the_interval_of_their_values(*, paired: bool) -> None:
    rng = np.random.default_rng(4)
    values = rng.beta(3, 1.5, 80) - (rng.beta(2, 2, 80) if paired else 0)
    known = rng.permutation(80) < 11
    zero = np.zeros(80)
    sample = SampledLabels(
        np.arange(80), zero + 1, np.where(known, values, np.nan), zero, zero + 11 / 80,
        zero.astype(np.int64), 80, bounds=(-1.0, 1.0) if paired else (0.0, 1.0), paired=paired,
    )  # fmt: skip
    found, own = mean_of_sample(sample), values[known]
    usual = difference(np.zeros(11), own)[0].difference if paired else interval(own)
    assert (found.value, found.low, found.high) == pytest.approx(
        (usual.value, usual.low, usual.high)
    )


@pytest.mark.slow
def test_verdicts_replaced_by_labels_stay_biased() -> None:
    """Labels put in the place of verdicts correct no verdict that nobody looked at."""
    rng = np.random.default_rng(3)
    truth = MEAN * float(EASE[FIRST].mean())
    errors: dict[str, list[float]] = {"judge": [], "replaced": [], "ppi": []}
    for _ in range(300):
        sample = pairs(rng, 0.3, weight=FIRST / DEEP)
        mixed = np.where(sample.labelled, np.nan_to_num(sample.label), sample.judged)
        errors["judge"].append(float(sample.judged.mean()) - truth)
        errors["replaced"].append(float(mixed.mean()) - truth)
        errors["ppi"].append((mean_of_sample(sample).value or 0) - truth)
    bias = {name: float(np.mean(each)) for name, each in errors.items()}
    assert bias["judge"] > 0.05
    assert bias["replaced"] == pytest.approx(bias["judge"] * (1 - 200 / 600), rel=0.1)
    assert abs(bias["ppi"]) < 0.01


def test_a_few_draws() -> None:
    """The same for a few draws, in the quick tests: rough, but it would notice a wrong formula."""
    draw, truth = MEASURES["P@10, strata"]
    held, width, _ = coverage(lambda rng: draw(rng, 0.6), truth, repeats=150)
    assert held.min() > 0.88
    assert width[1] < width[0]
