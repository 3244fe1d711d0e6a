"""Tests of differences: enumerated, against SciPy and statsmodels, invariances, the same seed."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.errors import InputError, OptionError
from findwell.statistics.resampling import BLOCK, PRODUCT, all_sign_sums, sign_sums
from findwell.statistics.significance import (
    EXACT_UNITS,
    NO_PAIR,
    NONE_DIFFERS,
    NOT_BINARY,
    ONE_PAIR,
    SAME_DIFFERENCE,
    adjust,
    mcnemar,
    paired_t,
    sign_flip,
)
from tests.lazy import lazy
from tests.statistics.scores import columns
from tests.strategies import examples

stats = lazy("scipy.stats")
contingency_tables = lazy("statsmodels.stats.contingency_tables")
multitest = lazy("statsmodels.stats.multitest")

RNG = np.random.default_rng(7)


def enumerated(values: np.ndarray) -> float:
    """Return the exact p by trying every sign, with sums that do not depend on their order."""
    from math import fsum

    seen, found = fsum(values), []
    for signs in product((-1, 1), repeat=len(values)):
        total = fsum(sign * value for sign, value in zip(signs, values, strict=True))
        found.append(abs(total) >= abs(seen) - 1e-12)
    return float(np.mean(found))


@examples(60)
@given(sides=columns(most=9, sides=2))
def test_few_queries_are_enumerated(sides: np.ndarray) -> None:
    differences = np.round(sides[:, 1] - sides[:, 0], 6)
    (found,) = sign_flip(differences)
    assert found.p == pytest.approx(enumerated(differences))
    assert found.method == "exact"


@pytest.mark.parametrize("seed", range(4))
def test_exact_is_scipys(seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.2, 1, 12)
    theirs = stats.permutation_test(
        (differences,),
        np.sum,
        permutation_type="samples",
        n_resamples=np.inf,
    )
    (found,) = sign_flip(differences)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-12)


def test_random_signs_agree_with_scipy() -> None:
    differences = RNG.beta(0.5, 1, 80) - RNG.beta(0.5, 1.3, 80)
    theirs = stats.permutation_test(
        (differences,),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        n_resamples=40_000,
        vectorized=True,
        rng=1,
    )
    (found,) = sign_flip(differences, permutations=40_000)
    assert found.method == "permutation"
    assert found.p == pytest.approx(theirs.pvalue, abs=4 * np.sqrt(0.25 * 2 / 40_000))


def test_random_signs_agree_with_all_signs() -> None:
    differences = np.append(RNG.normal(0.3, 1, EXACT_UNITS), 1e-7)  # one unit too many to enumerate
    exact = np.abs(all_sign_sums(differences)) >= abs(differences.sum()) - 1e-12
    (found,) = sign_flip(differences, permutations=40_000)
    assert found.method == "permutation"
    assert found.p == pytest.approx(exact.mean(), abs=4 * np.sqrt(0.25 / 40_000))


def test_what_is_seen_counts_as_one_of_the_patterns() -> None:
    (found,) = sign_flip(np.linspace(1, 2, 60), permutations=999)
    assert found.p == pytest.approx(1 / 1000)


def test_equal_sums_are_equal_in_spite_of_rounding() -> None:
    tenths = np.array([0.1, 0.2, -0.3] * 7)  # sums to 0 but for rounding: every pattern is as far
    (found,) = sign_flip(tenths, permutations=200)
    assert found.p == 1.0
    step = np.array([0.1] * 13 + [-0.1] * 7)  # 6 steps: a binomial
    (found,) = sign_flip(step, permutations=40_000)
    assert found.p == pytest.approx(stats.binomtest(13, 20).pvalue, abs=0.01)


@examples(40)
@given(
    sides=columns(most=60, nan=True, sides=2),
    factor=st.floats(0.01, 100),
    seed=st.integers(0, 5),
)
def test_swapping_and_scaling_leave_p_alone(sides: np.ndarray, factor: float, seed: int) -> None:
    differences = np.round(sides[:, 1] - sides[:, 0], 6)
    (found,) = sign_flip(differences, permutations=300, seed=seed)
    (swapped,) = sign_flip(-differences, permutations=300, seed=seed)
    (scaled,) = sign_flip(differences * factor, permutations=300, seed=seed)
    assert found.p == swapped.p == scaled.p


@examples(40)
@given(sides=columns(most=40, sides=2), left_out=st.integers(0, 5))
def test_undefined_queries_are_left_out(sides: np.ndarray, left_out: int) -> None:
    differences = np.round(sides[:, 1] - sides[:, 0], 6)
    padded = np.append(differences, [np.nan] * left_out)
    (found,), (all_of_them,) = (
        sign_flip(padded, permutations=99),
        sign_flip(differences, permutations=99),
    )
    assert found.n == all_of_them.n == len(differences)
    if found.method == "exact":
        assert found.p == all_of_them.p


def test_a_column_gets_the_same_in_any_company() -> None:
    table = RNG.normal(0.1, 1, (300, 7))
    table[:, 2] = np.sign(table[:, 2])
    table[:50, 3] = np.nan
    table[20:, 4] = 0.0
    table[::3, 5] *= 1e-13
    together = sign_flip(table, permutations=1_000, seed=3)
    for column in range(7):
        assert together[column] == sign_flip(table[:, column], permutations=1_000, seed=3)[0]
    assert together != sign_flip(table, permutations=1_000, seed=4)


def test_blocks_and_chunks_have_any_size() -> None:
    wide = RNG.normal(size=(PRODUCT // BLOCK + 9, 2))
    blocks = list(sign_sums(wide, 2 * BLOCK + 3, seed=1))
    assert [len(block) for block in blocks] == [BLOCK, BLOCK, 3]
    more = np.concatenate(list(sign_sums(wide, 3 * BLOCK, seed=1)))
    assert np.array_equal(np.concatenate(blocks[:2]), more[: 2 * BLOCK])
    draws = np.concatenate(blocks)
    assert draws.std(axis=0) == pytest.approx(np.sqrt((wide**2).sum(axis=0)), rel=0.15)
    assert len(np.unique(draws[:, 0])) == len(draws)


def test_signs_are_independent_and_even() -> None:
    signs = np.concatenate(list(sign_sums(np.eye(40), 20_000, seed=2)))
    assert set(np.unique(signs)) == {-1.0, 1.0}
    correlation = signs.T @ signs / len(signs)
    assert np.abs(correlation - np.eye(40)).max() < 5 / np.sqrt(20_000)
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(20_000)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_threads_do_not_change_p(threads: str) -> None:
    code = (
        "import numpy as np; from findwell.statistics.significance import sign_flip;"
        "table = np.random.default_rng(1).normal(0.02, 1, (3_000, 9)).round(1);"
        "print([found.p for found in sign_flip(table, permutations=2_000, seed=5)])"
    )
    limits = {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | limits,
        capture_output=True,
        text=True,
        check=True,
    )
    table = np.random.default_rng(1).normal(0.02, 1, (3_000, 9)).round(1)
    expected = [found.p for found in sign_flip(table, permutations=2_000, seed=5)]
    assert done.stdout.strip() == str(expected)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 6, 40])
def test_products_are_too_small_to_be_spread_over_threads(columns: int) -> None:
    """Where other processes run, threads that wait for each other cost ten times as much."""
    code = (
        "import time; import numpy as np; from findwell.statistics.resampling import sign_sums;"
        f"table = np.random.default_rng(1).normal(size=(8_000, {columns}));"
        "list(sign_sums(table, 256, 0)); start = time.process_time();"
        "list(sign_sums(table, 5_000, 0)); print(time.process_time() - start)"
    )
    taken = []
    for threads in ("1", "8"):
        limits = {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        runs = [
            subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | limits,
                capture_output=True,
                text=True,
                check=True,
            )
            for _ in range(2)
        ]
        taken.append(min(float(run.stdout) for run in runs))
    assert taken[1] < 3 * taken[0]


def test_queries_of_a_cluster_flip_together() -> None:
    differences = RNG.normal(0.4, 1, 30)
    labels = [f"doc {n // 5}" for n in range(30)]
    sums = differences.reshape(6, 5).sum(axis=1)
    (found,) = sign_flip(differences, clusters=labels)
    assert found.p == pytest.approx(enumerated(sums))
    assert (found.method, found.n) == ("exact", 30)
    (even,) = sign_flip([0.5, -0.5], clusters=["a", "a"])
    assert (even.p, even.reason) == (1.0, "")


def test_t_is_scipys() -> None:
    before, after = RNG.beta(2, 2, (40, 3)), RNG.beta(2, 1.8, (40, 3))
    after[:4, 1] = np.nan
    found = paired_t(after - before)
    theirs = stats.ttest_rel(after, before, nan_policy="omit")
    assert [each.p for each in found] == pytest.approx(list(theirs.pvalue), rel=1e-9)
    assert [each.statistic for each in found] == pytest.approx(list(theirs.statistic), rel=1e-9)
    assert [each.n for each in found] == [40, 36, 40]


def test_t_of_clusters_of_equal_size_is_t_of_their_means() -> None:
    differences = RNG.normal(0.1, 1, 60)
    (found,) = paired_t(differences, clusters=[n // 4 for n in range(60)])
    theirs = stats.ttest_1samp(differences.reshape(15, 4).mean(axis=1), 0)
    assert (found.p, found.statistic) == pytest.approx((theirs.pvalue, theirs.statistic))


@pytest.mark.parametrize(
    ("lost", "won"),
    [
        (0, 1),
        (1, 1),
        (0, 40),
        (3, 9),
        (9, 3),
        (400, 500),
        (0, 1100),
        (4_950, 5_050),
        (50_000, 50_700),
    ],
)
def test_mcnemar_is_that_of_statsmodels(lost: int, won: int) -> None:
    before = np.repeat([1.0, 0.0, 1.0], [lost, won, 2])
    after = np.repeat([0.0, 1.0, 1.0], [lost, won, 2])
    (found,) = mcnemar(before, after)
    theirs = contingency_tables.mcnemar([[2, lost], [won, 0]], exact=True)
    assert found.p == pytest.approx(theirs.pvalue, rel=1e-9, abs=1e-300)
    assert found.statistic == theirs.statistic


def test_mcnemar_on_a_published_table() -> None:
    # Agresti, Categorical Data Analysis, 10.1: approval of 1600 voters, asked twice
    before = np.repeat([1.0, 1.0, 0.0, 0.0], [794, 150, 86, 570])
    after = np.repeat([1.0, 0.0, 1.0, 0.0], [794, 150, 86, 570])
    (found,) = mcnemar(before, after)
    assert found.p == pytest.approx(stats.binomtest(86, 236).pvalue)
    assert found.p == pytest.approx(3.7e-5, rel=0.02)
    assert (found.n, found.statistic) == (1600, 86.0)


@examples(40)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=EXACT_UNITS))
def test_flipping_hits_and_misses_is_mcnemar(pairs: list[tuple[bool, bool]]) -> None:
    before, after = np.array(pairs, dtype=float).T
    (flipped,), (exact,) = sign_flip(after - before), mcnemar(before, after)
    assert flipped.p == pytest.approx(exact.p)


def test_nothing_to_test() -> None:
    for test in (sign_flip, paired_t):
        (nothing,) = test([])
        assert (nothing.p, nothing.n, nothing.reason) == (None, 0, NO_PAIR)
        (undefined,) = test([np.nan, np.nan])
        assert (undefined.p, undefined.n, undefined.reason) == (None, 0, NO_PAIR)
        (alike,) = test([0.0] * 30)
        assert (alike.p, alike.n, alike.reason) == (1.0, 30, NONE_DIFFERS)
        assert test(np.zeros((4, 0))) == ()
    (one,) = sign_flip([0.4])
    assert (one.p, one.n) == (1.0, 1)
    (one,) = paired_t([0.4])
    assert (one.p, one.reason) == (None, ONE_PAIR)
    (same,) = paired_t([0.1 + 0.2] * 9)
    assert (same.p, same.reason) == (None, SAME_DIFFERENCE)
    (same,) = sign_flip([0.1 + 0.2] * 9)
    assert same.p == pytest.approx(2 / 2**9)
    assert mcnemar([], [])[0].reason == NO_PAIR
    assert mcnemar([0.5, 1.0], [1.0, 1.0])[0].reason == NOT_BINARY
    (alike,) = mcnemar([1.0, 0.0, np.nan], [1.0, 0.0, 1.0])
    assert (alike.p, alike.n, alike.reason) == (1.0, 2, NONE_DIFFERS)


def test_mistakes_are_explained() -> None:
    with pytest.raises(InputError, match="infinite"):
        sign_flip([0.1, -np.inf])
    with pytest.raises(OptionError, match="0 permutations"):
        sign_flip([0.1], permutations=0)
    with pytest.raises(InputError, match="cannot be paired"):
        mcnemar([1.0], [1.0, 0.0])


@given(
    p_values=st.lists(st.none() | st.floats(0, 1), max_size=12),
    method=st.sampled_from(["holm", "bh"]),
)
@examples(60)
def test_corrections(p_values: list[float | None], method: str) -> None:
    found = adjust(p_values, method)
    assert [p is None for p in found] == [p is None for p in p_values]
    known = [p for p in p_values if p is not None]
    if known:
        theirs = multitest.multipletests(known, method={"holm": "holm", "bh": "fdr_bh"}[method])[1]
        assert [p for p in found if p is not None] == pytest.approx(list(theirs))
    assert all(
        new is None or new >= (old or 0) - 1e-12 for old, new in zip(p_values, found, strict=True)
    )


def test_corrections_of_published_examples() -> None:
    # Benjamini and Hochberg 1995, section 3.2: four of fifteen are discoveries at 5 %
    thrombolysis = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
        0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000,
    ]  # fmt: skip
    found = adjust(thrombolysis, "bh")
    assert sum(p is not None and p <= 0.05 for p in found) == 4
    assert found[3] == pytest.approx(0.0095 * 15 / 4)
    assert sum(p is not None and p <= 0.05 for p in adjust(thrombolysis, "holm")) == 3


def test_corrections_refuse_what_is_no_p() -> None:
    assert adjust([]) == ()
    assert adjust([None]) == (None,)
    with pytest.raises(InputError, match="not between 0 and 1"):
        adjust([1.2])
    with pytest.raises(OptionError, match="unknown correction 'bonferoni'"):
        adjust([0.1], "bonferoni")


def test_random_sign_sums_do_not_depend_on_the_order_of_adding() -> None:
    # a product of matrices adds in an order that depends on its shape, and on threads
    rng = np.random.default_rng(3)
    table = (rng.random((PRODUCT // BLOCK + 77, 9)) - 0.5) * 10.0 ** rng.integers(-6, 6, 9)
    together = np.concatenate(list(sign_sums(table, BLOCK, seed=1)))
    alone = [
        np.concatenate(list(sign_sums(np.ascontiguousarray(table[:, [column]]), BLOCK, seed=1)))
        for column in range(table.shape[1])
    ]
    assert np.array_equal(together, np.hstack(alone))
    signs = np.concatenate(list(sign_sums(np.eye(len(table)), BLOCK, seed=1)))
    exact = np.array([[math.fsum(column * row) for column in table.T] for row in signs])
    assert np.abs(together - exact).max(axis=0) / np.abs(table).sum(axis=0) == pytest.approx(
        0, abs=1e-13
    )
