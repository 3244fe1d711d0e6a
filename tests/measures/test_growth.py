"""What a measure costs grows with what was hit: one query with very many hits, and many queries.

Every measure of the registry, and every formula of a dialect, is measured on relations of two
sizes. Beside the growth a limit holds: what a hit costs, relative to what it costs in nDCG.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findwell
from findwell.measures.alpha_ndcg import UNSHARED_ITEM, greedy_gains
from findwell.measures.dialects import known_dialects
from findwell.measures.running import LONG_GROUP, running_products, running_sums
from tests.chunk_facts import with_facts
from tests.growth import SLACK, assert_near_linear, cpu_seconds
from tests.members import over, quick

if TYPE_CHECKING:
    from findwell import Measure
    from findwell.core.relation import Relation

SMALL, LARGE = 4_000, 32_000
DEAREST = 300  # times nDCG of the same relation; a loop over hits in Python comes to about 100


def _graded(size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    docs = [f"d{number}" for number in range(size)]
    return {"q": docs}, {"q": dict(zip(docs, rng.integers(-1, 4, size).tolist(), strict=True))}


def _all_different(size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    docs = [f"d{number}" for number in range(size)]
    grades = (rng.permutation(size) + 1) / size * 4
    return {"q": docs}, {"q": dict(zip(docs, grades.tolist(), strict=True))}


def _groups(size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    docs = rng.permutation([f"d{number}" for number in range(size)]).tolist()
    items = rng.integers(0, size, (size // 2, 4)).tolist()
    return {"q": docs}, {"q": [[docs[place] for place in item] for item in items]}


def _two_groups(size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    del rng
    docs = [f"d{number}" for number in range(size)]
    return {"q": docs}, {"q": [docs[: size // 2], docs[size // 4 :]]}


def _repetitions(size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    docs = [f"d{number % (size // 2)}" for number in range(size)]
    return {"q": docs}, {"q": dict(zip(docs, rng.integers(0, 3, size).tolist(), strict=True))}


def _many_queries(size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    docs = rng.integers(0, 9, (size // 8, 4)).tolist()
    run = {f"q{number}": {str(doc): -float(doc) for doc in row} for number, row in enumerate(docs)}
    return run, {query: {"2": 1, "5": 2, "7": 0} for query in run}


SHAPES = {
    "graded": _graded,
    "all grades different": _all_different,
    "groups": _groups,
    "two groups": _two_groups,
    "repetitions": _repetitions,
    "many queries": _many_queries,
}


@cache
def relation_of(shape: str, size: int) -> Relation:
    run, gold = SHAPES[shape](size, np.random.default_rng(20))
    result = findwell.evaluate(run, gold, measures=["queries"])
    return with_facts(result.relation(result.runs[0]))


def _formulas() -> dict[str, Measure]:
    plain = [cls() for cls in findwell.plugins.known_measures().values()]
    cut = [replace(each, k=1000) for each in plain if each.at == "k"]
    every = {f"{each}": each for each in (*plain, *cut)}
    for dialect in known_dialects().values():
        for measure in (*plain, *cut):
            formula = dialect.formula(measure)
            if formula is not measure:
                every[f"{measure} of {dialect.name}"] = formula
    return every


FORMULAS = _formulas()


@pytest.mark.parametrize("shape", quick(SHAPES, "many queries"))
@over(name=FORMULAS)
def test_a_measure_costs_what_was_hit(name: str, shape: str) -> None:
    measure = FORMULAS[name]
    small, large = (relation_of(shape, size) for size in (SMALL, LARGE))
    _, seconds = assert_near_linear(
        lambda: measure.values(replace(small)),
        lambda: measure.values(replace(large)),
        LARGE // SMALL,
    )
    usual = cpu_seconds(lambda: findwell.plugins.parse_measure("nDCG").values(replace(large)), 3)
    assert seconds <= DEAREST * usual + SLACK


# ---- the parts that were rewritten for it give the very same numbers


def test_running_sums_and_products_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(1)
    count = rng.permutation(
        [0, 1, 2, 3, LONG_GROUP - 1, LONG_GROUP, LONG_GROUP + 1, 3 * LONG_GROUP, 0, 5]
    )
    value = rng.random(count.sum()) * 1.5
    sums, products = [], []
    for group in np.split(value, np.cumsum(count)[:-1]):
        total, product = 0.0, 1.0
        for each in group.tolist():
            total, product = total + each, product * each
            sums.append(total)
            products.append(product)
    assert running_sums(value, count).tolist() == sums
    assert running_products(value, count).tolist() == products


def plain_greedy(covers: list[tuple[int, ...]], alpha: float) -> list[float]:
    """Look at every document at every rank, as the definition says."""
    worth = {item: 1.0 for items in covers for item in items}
    left = dict(enumerate(covers))
    gains = []
    while left:
        gain: dict[int, float] = {}
        for document, items in left.items():
            gain[document] = 0.0
            for item in items:
                gain[document] += 1.0 if item == UNSHARED_ITEM else worth[item]
        best = max(left, key=lambda document: (gain[document], -document))
        if not gain[best]:
            break
        gains.append(gain[best])
        for item in {*left.pop(best)}:
            worth[item] *= 1 - alpha
    return gains


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.93, 1.0])
def test_the_ideal_list_is_the_greedy_one(alpha: float) -> None:
    rng = np.random.default_rng(2)
    for items in (2, 6, 40):
        covers = [
            (*rng.choice(items, rng.integers(1, min(items, 5) + 1), replace=False).tolist(),)
            + (UNSHARED_ITEM,) * int(rng.integers(0, 2))
            for _ in range(120)
        ]
        assert greedy_gains(covers, alpha) == plain_greedy(covers, alpha)
        assert greedy_gains(covers, alpha, 7) == plain_greedy(covers, alpha)[:7]
