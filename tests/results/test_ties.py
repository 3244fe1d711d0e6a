"""Documents with equal scores: a finding says how much their order decides."""

from __future__ import annotations

from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import findwell
from findwell.core.relation import Ties
from findwell.engines.local import LocalEngine
from findwell.evaluation.results.summaries import tie_bounds
from findwell.measures import parse_measure
from findwell.measures.dialects import dialect
from findwell.relations.align import align
from findwell.relations.match import find_matcher
from findwell.relations.match.matcher import MatchContext
from tests.sample import kinds
from tests.strategies import examples

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

MEASURES = ["RR", "P@2", "recall@2", "AP", "nDCG", "nDCG@3", "success@1", "F@2", "Rprec"]


def brute(run: dict[str, float], gold: dict[str, int], measure: str) -> tuple[float, float]:
    """Return the least and the greatest value over every order of equal scores."""
    levels = sorted(set(run.values()), reverse=True)
    blocks = [permutations([doc for doc in run if run[doc] == level]) for level in levels]
    orders = {
        f"q{at}": [doc for block in order for doc in block]
        for at, order in enumerate(product(*blocks))
    }
    result = findwell.evaluate(orders, dict.fromkeys(orders, gold), measure, level=None)
    values = result.per_query["value"]
    return values.min(), values.max()  # type: ignore[return-value]


@examples(50)
@given(
    st.dictionaries(st.sampled_from("abcde"), st.sampled_from([0.0, 1.0]), min_size=1),
    st.dictionaries(st.sampled_from("abcdexy"), st.sampled_from([0, 1, 2]), min_size=1),
    st.sampled_from(MEASURES),
)
def test_bounds_over_all_orders(run: dict[str, float], gold: dict[str, int], measure: str) -> None:
    if not any(gold.values()):
        gold = gold | {"x": 1}
    loaded, known = findwell.io.load_run({"q": run}), findwell.io.load_gold({"q": gold})
    bound = find_matcher("ids").bind(known, MatchContext())
    related = LocalEngine().draw(loaded, bound, dialect("findwell").policy)
    none = np.zeros(0, dtype=np.int64)
    ties = related.ties or Ties(none, none, none)
    ((low, high),) = tie_bounds(related.relation, ties, [parse_measure(measure)])
    assert (low[0], high[0]) == pytest.approx(brute(run, gold, measure))


def test_ties_are_told_where_they_matter() -> None:
    run = {"q": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.5}, "other": {"x": 2.0, "y": 1.0}}
    gold = {"q": ["a"], "other": ["y"]}
    (found,) = findwell.evaluate(run, gold, ["RR", "P@2", "recall"]).findings
    assert (found.kind, found.count, found.examples) == ("tied-scores", 1, ("q",))
    assert "would move RR by at most 0.334." in found.message
    assert "recall" not in found.message
    assert kinds(findwell.evaluate(run, gold, ["P@3", "recall@3"])) == {}
    assert kinds(findwell.evaluate({"q": list("abcd")}, {"q": ["a"]}, ["RR"])) == {}


def test_an_all_tied_run_is_odd(cli: Findwell, save: Save) -> None:
    lines = [f"q{q} Q0 d{d} {d} 0.5 tag" for q in range(3) for d in range(12)]
    run = save("run.trec", "\n".join(lines) + "\n")
    gold = save("qrels.txt", "".join(f"q{q} 0 d{q} 1\n" for q in range(3)))
    done = cli("check", run, "--gold", gold)
    assert "tied-scores: run: 3 queries have tied scores (" in done.out
    done = cli("score", run, "--gold", gold, "-m", "P@5")
    assert "would move P@5 by at most 0.2." in done.err


def test_ties_of_queries_that_are_left_out() -> None:
    run = {"q2": {"a": 1.0, "b": 1.0}, "q3": {"a": 2.0, "b": 1.0}}
    gold = {"q1": ["a"], "q2": ["a"], "q3": ["a"]}
    found = findwell.evaluate(run, gold, "RR", reading=findwell.Reading(missing="skip")).findings
    (tied,) = (each for each in found if each.kind == "tied-scores")
    assert tied.examples == ("q2",)
    assert "would move RR by at most 0.25." in tied.message


def test_ties_are_found_in_any_order_of_queries() -> None:
    run = findwell.io.load_run({"b": {"x": 1.0, "y": 1.0}, "a": {"x": 1.0, "y": 1.0}}).collect()
    aligned = align(
        run, findwell.io.load_gold({"a": ["x"], "b": ["y"]}), dialect("findwell").policy
    )
    assert aligned.ties is not None
    assert aligned.ties.query.tolist() == [0, 1]
    at = aligned.ties.around(np.array([0, 0, 1, 1]), np.array([1, 3, 2, 9]))
    assert at.tolist() == [0, -1, 1, -1]
