"""The arithmetic of the course notes."""

from typing import Any

import pytest

import findwell
from tests.dialects.golden import cases, same


def value(name: str, hits: list[int], retrieved: int, relevant: int) -> float | None:
    """Measure a list of so many documents with hits at these ranks, and so many relevant ones."""
    run = {
        "q": [f"hit-{rank}" if rank in hits else f"x-{rank}" for rank in range(1, retrieved + 1)]
    }
    missed = [f"missed-{number}" for number in range(relevant - len(hits))]
    gold = {"q": [f"hit-{rank}" for rank in hits] + missed}
    return findwell.evaluate(run, gold, name, dialect="course")[name]


@pytest.mark.parametrize("case", cases("course-notes", "precision", "recall"))
def test_precision_and_recall(case: Any) -> None:
    given = case["inputs"]
    found = given["relevant_retrieved"]
    retrieved, relevant = given.get("retrieved", found), given.get("relevant_total", found)
    hits = list(range(1, found + 1))
    assert same(value(case["metric"], hits, retrieved, relevant), case["expected"])


@pytest.mark.parametrize("case", cases("course-notes", "precision@k", "recall@k"))
def test_at_k(case: Any) -> None:
    k, found = case["params"]["k"], case["inputs"]["relevant_in_top_k"]
    name = case["metric"].replace("@k", f"@{k}")
    relevant = case["inputs"].get("relevant_total", found)
    assert same(value(name, list(range(1, found + 1)), k, relevant), case["expected"])


@pytest.mark.parametrize(
    "case", cases("course-notes", "average_precision@k", "precision@k (inside AP example)")
)
def test_the_average_precision_example(case: Any) -> None:
    k = case["params"]["k"]
    name = f"{'AP' if case['metric'].startswith('average') else 'P'}@{k}"
    assert same(value(name, case["inputs"]["relevant_ranks"], 6, 5), case["expected"])


@pytest.mark.parametrize("case", cases("course-notes", "reciprocal_rank", "mrr"))
def test_reciprocal_rank(case: Any) -> None:
    given = case["inputs"]
    ranks = given.get("first_relevant_ranks") or [given["first_relevant_rank"]]
    run = {str(n): [f"x{i}" for i in range(1, rank)] + ["a"] for n, rank in enumerate(ranks)}
    gold = {query: ["a"] for query in run}
    assert same(findwell.evaluate(run, gold, "RR", dialect="course")["RR"], case["expected"])
