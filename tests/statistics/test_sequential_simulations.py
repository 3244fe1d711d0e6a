"""What is promised of alarms and sequences holds: looked at after every query, many times.

The tables of docs/alarms-promise.md are those of `benchmarks.alarms`, on which these tests stand.
"""

from __future__ import annotations

from math import log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.alarms import ALPHA, LOOKS, METHODS, RUN_LENGTH, RUNS, quiet_runs, tables
from findwell.statistics.sequential import (
    bernstein_sequence,
    betting_capital,
    change_evidence,
    conformal_ranks,
    e_bh,
    hedged_limits,
    shiryaev_roberts,
)

if TYPE_CHECKING:
    from findwell.core.data import Floats

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


def most(rate: float, runs: int) -> float:
    """Return a share of runs that a rate is above in one of a thousand cases.

    With 600 runs, an alarm at half of the evidence that it takes would be above it.
    """
    return float(rate + 3.1 * np.sqrt(rate * (1 - rate) / runs))


def test_the_tables_of_the_documentation() -> None:
    """Among the figures are all false alarms and run lengths, which are checked, too."""
    shown = (DOCS / "alarms-promise.md").read_text()
    found = tables()
    assert found in shown
    rows = {
        line.split(" | ")[0]: line.split(" | ") for line in found.partition("\n\n")[0].splitlines()
    }
    for kind in (2, 3):
        naive = float(rows[f"| {METHODS[0].name}"][kind].split()[0])
        assert 33 < naive < 67
        for method in METHODS[1:4]:
            share = float(rows[f"| {method.name}"][kind].split()[0]) / 100
            assert share <= most(ALPHA, RUNS)


def test_a_wrong_line_would_be_seen() -> None:
    """A tenth of the evidence, or an average run length of half, is not what is promised."""
    evidence, detector = METHODS[3], METHODS[4]
    wrong = type(evidence)("wrong", evidence.evidence, log(1 / (10 * ALPHA)), "")
    right, early, runs = quiet_runs("hits", (evidence, wrong, detector), 300)
    assert (right <= LOOKS).mean() <= most(ALPHA, 300)
    assert (early <= LOOKS).mean() > most(ALPHA, 300)
    error = runs.std() / np.sqrt(len(runs))
    assert RUN_LENGTH - 3.1 * error < runs.mean() < 1.5 * RUN_LENGTH


def test_sequences_hold_the_mean_at_all_times() -> None:
    rng = np.random.default_rng(21)
    for draw, mean in (
        (lambda shape: np.less(rng.random(shape), 0.02) * 1.0, 0.02),
        (lambda shape: rng.beta(4, 2, shape), 2 / 3),
        (lambda shape: np.less(rng.random(shape), 0.5) * 1.0, 0.5),
    ):
        table: Floats = np.asarray(draw((LOOKS, 300)))
        low, high = bernstein_sequence(table)
        missed = ((low > mean) | (high < mean)).any(axis=0)
        assert missed.mean() <= most(ALPHA, 300)
        # the last limits are the tightest of all looks
        limits = np.array([hedged_limits(column[:2000]) for column in table.T])
        missed = (limits[:, 0] > mean) | (limits[:, 1] < mean)
        assert missed.mean() <= most(ALPHA, 300)
        for side in ("below", "above", "both"):
            capital = betting_capital(table, mean, side=side)
            assert (capital.max(axis=0) >= log(20)).mean() <= most(ALPHA, 300)


def test_rates_that_are_rare_and_signals_that_depend_on_the_past() -> None:
    """Alarms about 2 % of empty results; and values whose spread, not mean, follows the past."""
    rng = np.random.default_rng(22)
    empty = (rng.random((LOOKS, 300)) < 0.02).astype(float)
    raised = change_evidence(empty, 0.02, side="above").max(axis=0) >= log(20)
    assert raised.mean() <= most(ALPHA, 300)
    values = np.full((LOOKS, 200), 0.5)
    wide = np.ones(200)
    for row in range(LOOKS):
        values[row] = 0.5 + 0.5 * wide * rng.choice([-1.0, 1.0], 200)
        wide = np.where(values[row] > 0.5, 1.0, 0.2)
    raised = change_evidence(values, 0.5, side="both").max(axis=0) >= log(20)
    assert raised.mean() <= most(ALPHA, 200)


def test_ranks_raise_no_false_alarms_whatever_the_distribution() -> None:
    rng = np.random.default_rng(23)
    raised = []
    for run in range(200):
        every = rng.standard_cauchy(4000) if run % 2 else np.round(rng.normal(0, 2, 4000))
        ranks = conformal_ranks(every[300:], every[:300], seed=run)
        raised.append(change_evidence(ranks, 0.5, side="both").max() >= log(20))
    assert np.mean(raised) <= most(ALPHA, 200)
    plain = []  # ranks in the reference alone are not valid: the test can tell
    for _ in range(100):
        every = rng.normal(size=6000)
        ranks = np.searchsorted(np.sort(every[:300]), every[300:]) / 300
        plain.append(change_evidence(ranks, 0.5, side="both").max() >= log(20))
    assert np.mean(plain) > 2 * ALPHA


def test_families_raise_few_false_alarms() -> None:
    """Twenty signals that go together; of five the mean has dropped. Looked at every 25 queries."""
    rng = np.random.default_rng(24)
    wrong, any_null, found = [], [], []
    for _ in range(300):
        shared = rng.random((1000, 1))
        table = 0.5 * shared + 0.5 * rng.random((1000, 20))
        null = change_evidence(table, 0.5)
        looks = range(24, 1000, 25)
        any_null.append(any(any(e_bh(null[look], ALPHA)) for look in looks))
        dropped = table.copy()
        dropped[:, :5] *= 0.85
        evidence = change_evidence(dropped, 0.5)
        # stop at the first rejection, and once more at the end: times that are chosen
        raised = (look for look in looks if any(e_bh(evidence[look], ALPHA)))
        for stop in {next(raised, 999), 999}:
            rejected = np.array(e_bh(evidence[stop], ALPHA))
            wrong.append(rejected[5:].sum() / max(rejected.sum(), 1))
        found.append(np.array(e_bh(evidence[999], ALPHA))[:5].all())
    assert np.mean(any_null) <= most(ALPHA, 300)
    assert np.mean(wrong) <= ALPHA
    assert np.mean(found) > 0.95


def test_a_family_of_detectors_keeps_its_run_length() -> None:
    rng = np.random.default_rng(25)
    runs = []
    for _ in range(150):
        evidence = shiryaev_roberts((rng.random((6000, 8)) < 0.3).astype(float), 0.3, side="above")
        first = next((look for look in range(6000) if any(e_bh(evidence[look], 1 / 500))), 6000)
        runs.append(first + 1)
    assert np.mean(runs) > 500 - 3.1 * np.std(runs) / np.sqrt(len(runs))
