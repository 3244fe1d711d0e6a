"""Fusions, beside the same formulas written down document by document."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findwell.core.errors import FindwellError, OptionError
from findwell.loop.tuning import Pool, convex_combination, reciprocal_rank_fusion
from findwell.loop.tuning.engines import reciprocal_ranks

if TYPE_CHECKING:
    from findwell.core.data import Run

Scored: TypeAlias = dict[str, dict[str, float]]
Fused: TypeAlias = dict[str, dict[str, float]]

DOCS = ["a", "b", "c", "d", "é", "文档"]
RUN = st.fixed_dictionaries(
    {
        query: st.dictionaries(st.sampled_from(DOCS), st.integers(-4, 8).map(lambda n: n / 4))
        for query in ("q1", "q2")
    }
)
RUNS = st.lists(RUN, min_size=1, max_size=3)


def scores(run: Run) -> Fused:
    """Return the scores by query and document, in the order of the run."""
    found: Fused = {}
    for query, doc, score in run.rows.select("query", "doc", "score").iter_rows():
        if doc is not None:
            found.setdefault(query, {})[doc] = score
    return found


def agree(found: Fused, expected: Fused) -> None:
    """Compare the scores, and see that the best come first."""
    assert found.keys() == {query for query, docs in expected.items() if docs}
    for query, docs in found.items():
        assert docs == pytest.approx(expected[query], abs=1e-12)
        assert list(docs.values()) == sorted(docs.values(), reverse=True)


def by_hand(runs: list[Scored], value: Any) -> Fused:
    """Add up what each run gives to each document."""
    return {
        query: {
            doc: math.fsum(value(number, run[query], doc) for number, run in enumerate(runs))
            for doc in {doc for run in runs for doc in run[query]}
        }
        for query in ("q1", "q2")
    }


@given(RUNS, st.sampled_from([0, 1, 60, 0.5]))
@settings(deadline=None)
def test_rank_fusion_by_score(runs: list[Scored], rrf_k: float) -> None:
    def value(_: int, docs: dict[str, float], doc: str) -> float:
        if doc not in docs:
            return 0.0
        return 1 / (rrf_k + 1 + sum(other > docs[doc] for other in docs.values()))

    before = copy.deepcopy(runs)
    agree(scores(reciprocal_rank_fusion(runs, rrf_k, by="score")), by_hand(runs, value))
    assert runs == before


@given(RUNS)
@settings(deadline=None)
def test_rank_fusion_by_rank(runs: list[Scored]) -> None:
    def value(_: int, docs: dict[str, float], doc: str) -> float:
        listed = list(docs)  # as it stands: a list is in rank order
        return 1 / (60 + listed.index(doc) + 1) if doc in docs else 0.0

    listed = [{query: list(docs) for query, docs in run.items()} for run in runs]
    agree(scores(reciprocal_rank_fusion(listed)), by_hand(runs, value))


@given(st.lists(RUN, min_size=2, max_size=2), st.floats(0, 1), st.sampled_from([0.0, -3.0]))
@settings(deadline=None)
def test_convex_combination(runs: list[Scored], weight: float, fill: float) -> None:
    weights = (weight, 1 - weight)

    def value(number: int, docs: dict[str, float], doc: str) -> float:
        low, high = min(docs.values(), default=0.0), max(docs.values(), default=0.0)
        scaled = (docs[doc] - low) / (high - low) if doc in docs and high > low else fill
        return weights[number] * scaled

    agree(scores(convex_combination(runs, weights, fill=fill)), by_hand(runs, value))


@given(st.lists(RUN, min_size=2, max_size=2), st.integers(1, 7))
@settings(deadline=None)
def test_k_keeps_the_beginning(runs: list[Scored], k: int) -> None:
    pool = Pool.of(runs)
    whole = scores(convex_combination(pool, (0.5, 0.5)))
    cut = scores(convex_combination(pool, (0.5, 0.5), k=k))
    assert cut == {query: dict(list(docs.items())[:k]) for query, docs in whole.items()}


def test_the_whole_weight_on_one_run_is_that_run() -> None:
    first, second = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}, {"q": {"c": 3.0, "b": 2.0, "a": 1.0}}
    assert list(scores(convex_combination([first, second], (1, 0)))["q"]) == ["a", "b", "c"]
    assert list(scores(convex_combination([first, second], (0, 1)))["q"]) == ["c", "b", "a"]


def test_ties_go_to_what_is_met_first() -> None:
    first, second = {"q": ["b", "a"]}, {"q": ["c", "d"]}
    assert list(scores(reciprocal_rank_fusion([first, second]))["q"]) == ["b", "c", "a", "d"]
    assert list(scores(reciprocal_rank_fusion([second, first]))["q"]) == ["c", "b", "d", "a"]


def test_many_ties_keep_their_order() -> None:
    docs = [f"d{number}" for number in range(1000)]
    run = [{"query": "q", "retrieved": [{"doc": doc, "score": 1.0} for doc in docs]}]
    assert list(scores(reciprocal_rank_fusion([run], by="score"))["q"]) == docs
    assert list(scores(convex_combination([run, run], (0.3, 0.7)))["q"]) == docs


def test_under_z_a_missing_document_is_as_good_as_the_mean() -> None:
    runs = [{"q": {"a": 4.0, "b": 0.0}}, {"q": {"c": 4.0, "a": 3.0, "b": 2.0}}]
    by_mean = scores(convex_combination(runs, (0.9, 0.1), normaliser="z"))["q"]
    assert list(by_mean) == ["a", "c", "b"]
    filled = scores(convex_combination(runs, (0.9, 0.1), normaliser="z", fill=-3))["q"]
    assert list(filled) == ["a", "b", "c"]


def test_scores_of_ranks() -> None:
    assert reciprocal_ranks(np.array([], np.int64), 60).tolist() == []
    assert reciprocal_ranks(np.array([3, 0]), 0).tolist() == [1 / 3, 0]


RUNS_OF_TWO: list[Any] = [{"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 3.0, "c": 1.0}}]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((1.0,), "1 weights for 2 runs"),
        ((0.5, 0.6), "does not take the weights 0.5, 0.6"),
        ((-0.5, 1.5), "does not take the weights"),
        ((float("nan"), 1.0), "does not take the weights"),
    ],
)
def test_weights_are_shares(weights: Sequence[float], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        convex_combination(RUNS_OF_TWO, weights)


def test_wrong_choices() -> None:
    with pytest.raises(OptionError, match="tmm needs the lowest score that each"):
        convex_combination(RUNS_OF_TWO, (0.5, 0.5), normaliser="tmm")
    with pytest.raises(OptionError, match="1 lowest scores for 2 runs"):
        convex_combination(RUNS_OF_TWO, (0.5, 0.5), normaliser="tmm", lowest=[0])
    with pytest.raises(OptionError, match="unknown kind of rank 'place'"):
        reciprocal_rank_fusion(RUNS_OF_TWO, by="place")
    for rrf_k in (-1, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="is not a number from 0"):
            reciprocal_rank_fusion(RUNS_OF_TWO, rrf_k)
    for k in (0, -1, 2.0, True):
        with pytest.raises(OptionError, match="is not a whole number from 1"):
            reciprocal_rank_fusion(RUNS_OF_TWO, k=k)  # type: ignore[arg-type]


def test_lists_without_scores_have_no_convex_combination() -> None:
    with pytest.raises(FindwellError, match="carries no scores") as caught:
        convex_combination([{"q": ["a"]}, {"q": ["b"]}], (0.5, 0.5))
    assert "reciprocal_rank_fusion" in caught.value.fix
