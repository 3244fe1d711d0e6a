"""Which document comes next: the methods by hand, and what they are worth in a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from findwell.loop.labels.label_pool import METHODS, next_document, quotas, simulated_order, uniform
from findwell.statistics.agreement import kendall_tau

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints

# three runs over eight documents
RANKS = np.array(
    [
        [1, 2, 3, 4, 0, 0, 0, 0],
        [0, 1, 0, 0, 2, 3, 4, 0],
        [0, 0, 2, 0, 0, 0, 3, 1],
    ]
)


def order(method: str, relevant: str) -> list[int]:
    """Return the order of all documents; `relevant` are the numbers of the good ones."""
    good = np.array([str(doc) in relevant for doc in range(8)])
    return simulated_order(RANKS, good, method, 8)


def test_depth() -> None:
    """The lowest rank first; of equal ones what more runs hold, then the order given."""
    assert order("depth", "") == [1, 0, 7, 2, 4, 6, 5, 3]


def test_move_to_front() -> None:
    """Stay with a run while it is good; then the run of the highest priority, lowest next rank."""
    # run 0: 0 good, 1 bad -> behind; runs 1 and 2: the next of run 2 is of rank 1
    # run 2: 7 bad -> behind; run 1: 4 good, 5 bad -> all behind by one: run 2 has rank 2 next
    assert order("mtf", "04") == [0, 1, 7, 4, 5, 2, 3, 6]


def test_the_bandit_learns_for_every_run_that_holds_the_document() -> None:
    # 0 is bad: run 0 falls to 1/3, runs 1 and 2 have 1/2; of these run 1 comes first
    # 1 is good: runs 0 and 1 both rise to 2/3; run 1 has rank 2 next, run 0 rank 3
    # 4 is bad: run 1 falls to 1/3; run 0 is at 2/3: 2 is good: runs 0 and 2 are at 2/3
    # run 2 has rank 1 next, 7; bad: run 2 falls; run 0: 3; all fall, then ranks decide
    assert order("mm-ns", "12") == [0, 1, 4, 2, 7, 3, 5, 6]


@pytest.mark.parametrize("method", METHODS)
def test_everything_is_asked_once(method: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        ranks = np.array(
            [np.where(rng.random(12) < 0.6, rng.permutation(12) + 1, 0) for _ in "abc"]
        )
        held = set(np.flatnonzero((ranks > 0).any(axis=0)))
        good = rng.random(12) < 0.4
        asked = simulated_order(ranks, good, method, 99)
        assert sorted(asked) == sorted(held)
        known: dict[int, bool] = {}
        for doc in asked:  # the same, one by one, as a pool asks
            assert next_document(ranks, known, method) == doc
            known[doc] = bool(good[doc])
        assert next_document(ranks, known, method) is None


@pytest.mark.parametrize("method", METHODS)
def test_what_others_look_at_is_passed_over(method: str) -> None:
    first = next_document(RANKS, {}, method)
    assert first is not None
    second = next_document(RANKS, {}, method, taken={first})
    assert second not in (None, first)
    assert next_document(RANKS, {}, method, taken=set(range(8))) is None


def test_quotas() -> None:
    assert quotas([5, 5, 5], 7) == [3, 2, 2]
    assert quotas([1, 9], 8) == [1, 7]
    assert quotas([2, 2], 99) == [2, 2]
    assert quotas([], 5) == []


def test_random_numbers_depend_on_names_alone() -> None:
    assert uniform(0, "ab", "c") != uniform(0, "a", "bc")
    assert uniform(1, "a") != uniform(0, "a")
    many = np.array([uniform(0, f"q{number}", "d") for number in range(4000)])
    assert abs(many.mean() - 0.5) < 0.02
    assert np.abs(np.histogram(many, 10, (0, 1))[0] / 400 - 1).max() < 0.25


class Track:
    """A small simulated track: systems of different quality, with known relevance."""

    def __init__(self, seed: int, *, systems: int, queries: int, depth: int) -> None:
        rng = np.random.default_rng(seed)
        self.depth = depth
        docs = 4 * depth
        skill = np.linspace(0.2, 1.2, systems)
        self.ranks: list[Ints] = []
        self.relevant: list[Bools] = []
        for _ in range(queries):
            good = rng.random(docs) < rng.beta(1, 4)
            hard = rng.normal(0, 1, docs)  # what all systems get wrong alike
            here = np.maximum(skill + rng.normal(0, 0.6, systems), 0)  # some queries suit a system
            noise = rng.normal(0, 1, (systems, docs))
            score = 2 * here[:, np.newaxis] * good + 0.6 * hard + noise
            place = np.argsort(np.argsort(-score, axis=1), axis=1) + 1
            self.ranks.append(np.where(place <= depth, place, 0))
            self.relevant.append(good)

    def values(self, labelled: list[set[int]] | None) -> Floats:
        """Return nDCG@10 of every system; what is not labelled counts as not relevant."""
        found = []
        for at, (ranks, good) in enumerate(zip(self.ranks, self.relevant, strict=True)):
            known = np.array([labelled is None or doc in labelled[at] for doc in range(len(good))])
            seen = good & known
            gain = np.where((ranks > 0) & (ranks <= 10), 1 / np.log2(ranks + 1.0 + (ranks == 0)), 0)
            ideal = (1 / np.log2(np.arange(2, 12)))[: int(seen.sum())].sum()
            found.append((gain * seen).sum(axis=1) / ideal if ideal else np.zeros(len(ranks)))
        return np.asarray(np.mean(found, axis=0))

    def tau(self, method: str, budget: int) -> float:
        """Return how far labels of a method order the systems as all labels do."""
        rng = np.random.default_rng(7)
        labelled = []
        for ranks, good in zip(self.ranks, self.relevant, strict=True):
            if method == "random":
                held = np.flatnonzero((ranks > 0).any(axis=0))
                labelled.append(set(rng.permutation(held)[:budget].tolist()))
            else:
                mixed = rng.permutation(len(ranks))  # as a pool does, so that ties favour no run
                labelled.append(set(simulated_order(ranks[mixed], good, method, budget)))
        value = kendall_tau(self.values(None), self.values(labelled)).value
        assert value is not None
        return value


@pytest.mark.slow
@pytest.mark.parametrize("budget", [10, 20])
def test_the_order_of_methods_in_a_simulated_track(budget: int) -> None:
    """As measured on TREC: what looks for relevant documents beats chance by far; mm-ns leads."""
    tracks = [Track(seed, systems=16, queries=25, depth=20) for seed in range(12)]
    methods = (*METHODS, "random")
    tau = {name: np.mean([track.tau(name, budget) for track in tracks]) for name in methods}
    assert min(tau[name] for name in METHODS) > tau["random"] + 0.15
    assert tau["mm-ns"] > tau["mtf"]
    assert tau["mm-ns"] > tau["depth"] - 0.02


def test_few_labels_order_systems() -> None:
    track = Track(3, systems=8, queries=15, depth=15)
    assert track.tau("mm-ns", 8) > track.tau("random", 8)
    assert track.tau("mm-ns", 60) == pytest.approx(1.0)  # everything is labelled
