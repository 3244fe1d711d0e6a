"""Estimates from labels and verdicts: numbers of ppi-python, of asht, and what must always hold."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from findwell.core.errors import InputError
from findwell.statistics.prediction_powered import (
    NO_DIVISOR,
    NO_LABEL,
    ONE_LABEL,
    SampledLabels,
    mean_of_sample,
    ppi_mean,
    student_quantile,
)

if TYPE_CHECKING:
    from findwell.core.data import Floats

WORDS: tuple[list[float], list[float]] = (
    [1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 0],
    [1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1],
)
FURTHER: list[float] = [
    1,
    1,
    0,
    0,
    1,
    0,
    1,
    1,
    0,
    1,
    0,
    0,
    1,
    0,
    1,
    1,
    1,
    0,
    0,
    1,
    0,
    1,
    1,
    0,
    0,
    1,
]
LABELS = [0.2, 0.5, 0.9, 0.4, 0.7, 0.1, 0.35, 0.8]
GOOD = [0.3, 0.4, 0.95, 0.5, 0.6, 0.3, 0.2, 0.7]
CONTRARY = [0.7, 0.5, 0.1, 0.6, 0.4, 0.8, 0.75, 0.1]
STEPS = [step / 40 for step in range(40)]
# ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci, by lam; alpha .05, and .1 for "graded"
ORACLE: dict[str, dict[float | None, tuple[float, float, float]]] = {
    "yes and no": {
        None: (0.48488562091503273, 0.22785019413251506, 0.7419210476975504),
        0: (0.5, 0.21710356648095702, 0.7828964335190429),
        1: (0.4551282051282051, 0.11671149905425854, 0.7935449112021518),
        0.5: (0.47756410256410253, 0.21555902095998147, 0.7395691841682236),
    },
    "graded": {
        None: (0.49013467948673595, 0.38796529568672594, 0.592304063286746),
        0: (0.49374999999999997, 0.3382227643857323, 0.6492772356142676),
        1: (0.4875, 0.38505709193049387, 0.5899429080695061),
        0.5: (0.490625, 0.38401452897174615, 0.5972354710282538),
    },
    "contrary": {
        None: (0.49374999999999997, 0.3084278683377441, 0.6790721316622559),
        0: (0.49374999999999997, 0.3084278683377441, 0.6790721316622559),
        1: (0.4875, 0.11649154658053945, 0.8585084534194605),
        0.5: (0.490625, 0.21492511246198198, 0.766324887538018),
    },
}
GIVEN: dict[str, tuple[list[float], list[float], list[float]]] = {
    "yes and no": (WORDS[0], WORDS[1], FURTHER),
    "graded": (LABELS, GOOD, STEPS),
    "contrary": (LABELS, CONTRARY, STEPS),
}
# scipy.stats.t.ppf(.975, …)
STUDENT = {
    1: 12.706204736174694,
    2: 4.302652729749462,
    3: 3.1824463052837078,
    10: 2.228138851986274,
    29: 2.045229642132703,
    52: 2.006646805061688,
    1001: 1.9623367052808798,
    5000: 1.9604385517065073,
}


@pytest.mark.parametrize("freedom", STUDENT)
def test_students_quantile(freedom: int) -> None:
    assert student_quantile(0.95, freedom) == pytest.approx(STUDENT[freedom], rel=1e-9)


@pytest.mark.parametrize("name", ORACLE)
@pytest.mark.parametrize("trust", [None, 0, 1, 0.5])
def test_numbers_of_ppi_python(name: str, trust: float | None) -> None:
    labels, judged, further = GIVEN[name]
    level = 0.9 if name == "graded" else 0.95
    found = ppi_mean(labels, judged, further, level=level, trust=trust, normal=True)
    wanted = ORACLE[name][trust]
    assert (found.value, found.low, found.high) == pytest.approx(wanted, abs=1e-12)


def test_few_labels_have_wider_intervals() -> None:
    normal = ppi_mean(LABELS, GOOD, STEPS, normal=True)
    student = ppi_mean(LABELS, GOOD, STEPS)
    assert student.value == normal.value
    assert student.low is not None
    assert normal.low is not None
    assert student.low < normal.low


def test_a_judge_that_is_contrary_or_constant_is_not_used() -> None:
    alone = ppi_mean(LABELS, LABELS, STEPS, trust=0)
    for judged in (CONTRARY, [0.5] * len(LABELS)):
        found = ppi_mean(LABELS, judged, STEPS)
        assert found.trust == 0
        assert (found.value, found.low, found.high) == (alone.value, alone.low, alone.high)
        assert found.effective == found.labels == len(LABELS)


def test_too_few() -> None:
    assert ppi_mean([], [], STEPS).reason == NO_LABEL
    assert ppi_mean([0.5], [0.4], STEPS).reason == ONE_LABEL
    with pytest.raises(InputError, match="2 labels have 1 verdicts"):
        ppi_mean([0.5, 0.1], [0.4], STEPS)


def sample(
    share: float = 0.4, seed: int = 0, queries: int = 40, good: float = 0.7, *, strata: bool = False
) -> SampledLabels:
    """Draw pairs of 40 queries × 10 documents, a judge, and labels for a share of them."""
    rng = np.random.default_rng(seed)
    count = queries * 10
    truth = (rng.random(count) < np.repeat(rng.beta(1, 2, queries), 10)).astype(float)
    judged = np.where(rng.random(count) < good, truth, rng.random(count) < 0.5)
    drawn = rng.permutation(count) < share * count
    return SampledLabels(
        query=np.repeat(np.arange(queries), 10),
        weight=np.full(count, 0.1),
        label=np.where(drawn, truth, np.nan),
        judged=judged,
        probability=np.full(count, share),
        stratum=judged.astype(int) if strata else np.zeros(count, int),
        queries=queries,
    )


def test_all_labelled_is_the_plain_mean() -> None:
    whole = replace(sample(1.0), probability=np.ones(400))
    values = np.bincount(whole.query, whole.label * whole.weight)
    for each in (whole, whole.without_judge()):
        found = mean_of_sample(each)
        assert found.value == pytest.approx(values.mean())
        assert found.error == pytest.approx(values.std(ddof=1) / np.sqrt(40))
        assert found.effective == found.labels == 400


def test_whole_queries_are_ppi_mean() -> None:
    """A sample of queries is what PPI++ is about: the two ways give the same number."""
    rng = np.random.default_rng(4)
    truth = rng.random(60)
    judged = np.clip(truth + rng.normal(0, 0.2, 60), 0, 1)
    known = np.arange(60) < 20
    queries = SampledLabels(
        query=np.arange(60),
        weight=np.ones(60),
        label=np.where(known, truth, np.nan),
        judged=judged,
        probability=np.full(60, 20 / 60),
        stratum=np.zeros(60, int),
        queries=60,
    )
    found = mean_of_sample(queries)
    # the weight of PPI++ is about the verdicts that have no label, this one about all of them
    same = ppi_mean(truth[known], judged[known], judged[~known], trust=found.trust * 40 / 60)
    assert found.value == pytest.approx(same.value)
    tuned = ppi_mean(truth[known], judged[known], judged[~known])
    assert tuned.trust == pytest.approx(found.trust * 40 / 60, abs=0.12)
    assert found.low == pytest.approx(same.low, abs=0.02)


def test_the_judge_helps_and_a_useless_one_does_not_harm() -> None:
    good, useless = sample(good=0.9), sample(good=0.0)
    found, alone = mean_of_sample(good), mean_of_sample(good.without_judge())
    assert found.trust > 0.7
    assert found.error is not None
    assert alone.error is not None
    assert found.error < alone.error
    assert found.effective is not None
    assert found.effective > 2 * found.labels
    assert mean_of_sample(useless).trust < 0.1
    constant = replace(good, judged=np.ones(400))
    assert mean_of_sample(constant) == alone


def test_strata_of_the_judge_are_worth_what_the_judge_is() -> None:
    plain, strata = mean_of_sample(sample(good=0.9)), mean_of_sample(sample(good=0.9, strata=True))
    assert strata.value == pytest.approx(plain.value, abs=0.01)
    assert strata.effective == pytest.approx(plain.effective, rel=0.15)


def test_strata_of_few_labels_are_joined() -> None:
    drawn = sample(0.1)
    lonely = drawn.stratum.copy()
    lonely[np.flatnonzero(drawn.labelled)[:2]] = 7
    lonely[np.flatnonzero(~drawn.labelled)[:3]] = 9
    assert mean_of_sample(replace(drawn, stratum=lonely)) == mean_of_sample(drawn)


def test_order_and_names_of_queries_do_not_matter() -> None:
    drawn = sample()
    wanted = mean_of_sample(drawn)
    order = np.random.default_rng(1).permutation(400)
    names = np.random.default_rng(2).permutation(40)
    columns = ("weight", "label", "judged", "probability", "stratum")
    shuffled = replace(
        drawn,
        query=names[drawn.query][order],
        **{name: getattr(drawn, name)[order] for name in columns},
    )
    found = mean_of_sample(shuffled)
    assert (found.value, found.low) == pytest.approx((wanted.value, wanted.low))


def test_clusters_are_units() -> None:
    drawn = sample()
    alone = mean_of_sample(drawn, clusters=list(range(40)))
    assert alone.error == pytest.approx(mean_of_sample(drawn).error)
    assert mean_of_sample(drawn, clusters=["all"] * 40).low is None
    pairs = mean_of_sample(drawn, clusters=[at // 2 for at in range(40)])
    assert pairs.value == alone.value
    assert pairs.error != alone.error


def test_labels_that_all_agree_leave_something_unsure() -> None:
    drawn = sample(0.1, good=1.0)
    never = replace(drawn, label=drawn.label * 0, judged=np.zeros(400))
    found = mean_of_sample(never)
    assert found.value == 0
    assert found.high is not None
    # of 40 labels none was positive: the rule of three says 7.5 %
    assert 0.03 < found.high < 0.1


def test_ratio() -> None:
    """The share of the relevant that stands among the first five, over all queries."""
    drawn = sample(1.0)
    first: Floats = (np.arange(400) % 10 < 5).astype(float)
    whole = replace(
        drawn, probability=np.ones(400), weight=first, divisor=np.ones(400), judged=np.zeros(400)
    )
    found = mean_of_sample(whole)
    assert found.value == pytest.approx(np.nansum(whole.label * first) / np.nansum(whole.label))
    part = mean_of_sample(
        replace(whole, label=np.where(np.isnan(sample().label), np.nan, whole.label))
    )
    assert part.value == pytest.approx(found.value, abs=0.1)
    none = replace(whole, label=np.zeros(400))
    assert mean_of_sample(none).reason == NO_DIVISOR


def test_a_ratio_of_equal_weights_is_one() -> None:
    drawn = replace(sample(), divisor=np.full(400, 0.1))
    found = mean_of_sample(drawn)
    assert found.value == pytest.approx(1.0)
    assert found.error == pytest.approx(0.0)


def test_nothing_labelled() -> None:
    drawn = sample()
    assert mean_of_sample(replace(drawn, label=np.full(400, np.nan))).reason == NO_LABEL
