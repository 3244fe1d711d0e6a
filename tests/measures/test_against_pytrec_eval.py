"""findwell against pytrec_eval, which wraps the C code of trec_eval 9: the same number, per query.

Facts about the peer that the tests rely on, all verified here:

- it compares scores as 32-bit floats (so it is `trec_eval-9` for scores that are close);
- a query of the qrels that the run lacks is left out of its answer; trec_eval -c counts 0;
- an empty result, or a query whose grades are all negative, makes it read memory that is not its
  own (NaN, an endless loop or a crash), so it is never asked about one;
- every negative grade means pooled but unjudged, whichever number it is;
- `gm_map` of one query is ln(max(map, 0.00001)), the aggregate takes the exponential of the mean;
- `set_F` takes one x at a time, and reports every x as `set_F`; so does `utility` its weights.

`runid` and `relstring` are no numbers; every other measure of `all_trec` is compared.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import example, given

import findwell
from tests.members import quick
from tests.strategies import TRICKY_IDS, by_measure, examples, random_scored, scored_cases

if TYPE_CHECKING:
    from tests.strategies import Graded, Scored

CUTOFFS = (1, 2, 3, 5, 7, 10, 20, 100, 1000, 20000)
RECALL = tuple(f"{level / 100:.2f}" for level in (*range(0, 101, 5), 1, 33, 66, 99))
MULTIPLES = tuple(f"{fifth / 5:.2f}" for fifth in (*range(1, 11), 0.05, 25, 5000))
AT = ",".join(map(str, CUTOFFS))
ASKED = {
    "map",
    f"map_cut.{AT}",
    f"P.{AT}",
    f"recall.{AT}",
    "recip_rank",
    "Rprec",
    f"success.{AT}",
    "ndcg",
    f"ndcg_cut.{AT}",
    "bpref",
    "infAP",
    f"iprec_at_recall.{','.join(RECALL)}",
    "11pt_avg",
    "set_P",
    "set_recall",
    "set_F",
    "set_map",
    "set_relative_P",
    f"relative_P.{AT}",
    f"Rprec_mult.{','.join(MULTIPLES)}",
    "G",
    "binG",
    "ndcg_rel",
    "Rndcg",
    "utility",
    "num_q",
    "num_ret",
    "num_rel",
    "num_rel_ret",
    "num_nonrel_judged_ret",
}
# what pytrec_eval calls it → what findwell calls it at relevance level 1
SAME = {
    "map": "AP",
    **{f"map_cut_{k}": f"AP@{k}" for k in CUTOFFS},
    **{f"P_{k}": f"P@{k}" for k in CUTOFFS},
    **{f"recall_{k}": f"recall@{k}" for k in CUTOFFS},
    "recip_rank": "RR",
    "Rprec": "Rprec",
    **{f"success_{k}": f"success@{k}" for k in CUTOFFS},
    "ndcg": "nDCG",
    **{f"ndcg_cut_{k}": f"nDCG@{k}" for k in CUTOFFS},
    "bpref": "bpref",
    "infAP": "infAP",
    **{f"iprec_at_recall_{level}": f"IPrec@{float(level):g}" for level in RECALL},
    "11pt_avg": "11pt",
    "set_P": "P",
    "set_recall": "recall",
    "set_F": "F",
    "set_map": "set_map",
    "set_relative_P": "relative_P",
    **{f"relative_P_{k}": f"relative_P@{k}" for k in CUTOFFS},
    **{f"Rprec_mult_{each}": f"Rprec_mult@{float(each):g}" for each in MULTIPLES},
    "G": "G",
    "binG": "binG",
    "ndcg_rel": "ndcg_rel",
    "Rndcg": "Rndcg",
    "utility": "utility",
    "num_q": "queries",
    "num_ret": "retrieved",
    "num_rel": "relevant",
    "num_rel_ret": "relevant_retrieved",
    "num_nonrel_judged_ret": "rejected_retrieved",
}
COUNTS = {"num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret", "utility"}
UNGRADED = {"nDCG", *(f"nDCG@{k}" for k in CUTOFFS), "ndcg_rel", "G", "queries", "retrieved"}
ROUNDED = {"11pt_avg", *(f"iprec_at_recall_{level}" for level in RECALL)}  # differ in version 10
GEOMETRIC = {"gm_map": "GMAP", "gm_bpref": "gm_bpref"}
EXACT = 1e-9


def peer(run: Scored, gold: Graded, asked: set[str], level: int = 1) -> dict[str, dict[str, float]]:
    """Return pytrec_eval's values by query; zeros where nothing was retrieved, as with -c."""
    # a judged document that nobody retrieves changes nothing where none is relevant
    safe = {
        query: docs if max(docs.values()) >= 0 else {**docs, "never retrieved": 0}
        for query, docs in gold.items()
    }
    evaluator = pytrec_eval.RelevanceEvaluator(safe, asked, relevance_level=level)
    found = evaluator.evaluate({query: docs for query, docs in run.items() if docs})
    # a run that retrieves something for every query tells the names of what was asked
    names = next(iter(evaluator.evaluate({query: {"x": 1.0} for query in gold}).values()))
    values = {}
    for query, docs in gold.items():
        relevant = sum(grade >= level for grade in docs.values())
        nothing = dict.fromkeys(names, 0.0) | {"num_q": 1.0, "num_rel": float(relevant)}
        nothing |= dict.fromkeys(GEOMETRIC, math.log(0.00001))
        values[query] = found.get(query, {name: nothing[name] for name in names})
    return values


def ours(run: Scored, gold: Graded, dialect: str, level: int = 1) -> dict[str, dict[str, Any]]:
    """Return findwell's values by pytrec_eval's name and by query."""
    # parsed, as P and recall stand for lists where trec_eval's names are asked for
    parsed = {name: findwell.plugins.parse_measure(name) for name in SAME.values()}
    asked = list(parsed.values())
    # num_ret and the like have no level, so it is written into those that have one
    result = findwell.evaluate(
        run,
        gold,
        asked,
        dialect=dialect,
        reading=findwell.Reading(missing="zero"),
        rel=level,
        by="ids",
    )
    values = by_measure(result)
    spelled = {str(measure.with_level(level)): name for name, measure in parsed.items()}
    ours_by_name = {spelled[name]: column for name, column in values.items()}
    return {theirs: ours_by_name[our] for theirs, our in SAME.items()}


def has_relevant(docs: dict[str, int], our_name: str, level: int) -> bool:
    """Tell whether a query has a relevant document for a measure."""
    least = 1 if our_name in UNGRADED else level
    return any(grade >= least for grade in docs.values())


def has_value(docs: dict[str, int], our_name: str) -> bool:
    """Tell whether findwell's own policy has a value where nothing is relevant.

    Where documents were judged, none of them relevant, the list is bad, as for trec_eval; but how
    much there is to find is unknown.
    """
    judged = any(grade >= 0 for grade in docs.values())
    return judged and not findwell.plugins.parse_measure(our_name).counts_items


def agree(run: Scored, gold: Graded, level: int = 1) -> None:
    """Assert that all measures agree for all queries, under trec_eval's dialects and findwell's."""
    theirs = peer(run, gold, ASKED, level)
    assert all(values.keys() == SAME.keys() for values in theirs.values())
    for dialect in ("trec_eval", "trec_eval-9", "findwell"):
        found = ours(run, gold, dialect, level)
        for name, our_name in SAME.items():
            if dialect == "trec_eval" and name in ROUNDED:
                continue  # see tests/dialects/test_trec_eval.py
            for query, docs in gold.items():
                expected: float | None = theirs[query][name]
                undefined = name not in COUNTS and not has_relevant(docs, our_name, level)
                if undefined:
                    assert expected == 0, (name, query)
                if undefined and dialect == "findwell" and not has_value(docs, our_name):
                    expected = None
                assert close(found[name][query], expected), (
                    f"{name} of {query} in {dialect}: {found[name][query]}, not {expected}"
                )


def close(found: float | None, expected: float | None) -> bool:
    """Tell whether two values are the same number, or both undefined."""
    if found is None or expected is None:
        return found is expected
    return abs(found - expected) <= EXACT * max(1.0, abs(expected))


def means_agree(run: Scored, gold: Graded, level: int = 1) -> None:
    """Assert that the aggregates agree, the geometric mean included."""
    theirs = peer(run, gold, {*ASKED, *GEOMETRIC}, level)
    names = {**SAME, **GEOMETRIC}
    asked = [findwell.plugins.parse_measure(name) for name in names.values()]
    result = findwell.evaluate(
        run,
        gold,
        asked,
        dialect="trec_eval-9",
        reading=findwell.Reading(missing="zero"),
        rel=level,
        by="ids",
    )
    for name, our_name in names.items():
        expected = pytrec_eval.compute_aggregated_measure(
            name, [values[name] for values in theirs.values()]
        )
        found = result[str(findwell.plugins.parse_measure(our_name).with_level(level))]
        assert close(found, expected), name


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("seed", quick(range(4), 0, 1))
def test_random_runs_without_ties(seed: int, level: int) -> None:
    run, gold = random_scored(seed)
    agree(run, gold, level)
    means_agree(run, gold, level)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("levels", [1, 2, 5])
def test_random_runs_with_ties(levels: int, level: int) -> None:
    run, gold = random_scored(100 + levels, levels=levels)
    agree(run, gold, level)
    means_agree(run, gold, level)


@pytest.mark.parametrize("levels", [1, 3, None])
def test_ties_of_tricky_ids_are_broken_by_bytes(levels: int | None) -> None:
    run, gold = random_scored(7, ids=TRICKY_IDS, depth=len(TRICKY_IDS), judged=8, levels=levels)
    agree(run, gold)


@pytest.mark.parametrize("level", [1, 2, 5, 10])
def test_grades_up_to_ten(level: int) -> None:
    run, gold = random_scored(11, grades=range(-2, 11))
    agree(run, gold, level)
    means_agree(run, gold, level)


@given(case=scored_cases())
@example(case=({"anchor": {"d": 1.0}}, {"anchor": {"d": 1}}))
@example(case=({"anchor": {"x": 1.0}}, {"anchor": {"d": 1}, "q1": {"d": 0}, "q2": {"d": -1}}))
@examples(40)
def test_drawn_cases(case: tuple[Scored, Graded]) -> None:
    run, gold = case
    agree(run, gold)


@given(case=scored_cases())
@examples(20)
def test_drawn_cases_at_a_higher_level(case: tuple[Scored, Graded]) -> None:
    run, gold = case
    agree(run, gold, level=2)
    means_agree(run, gold, level=2)


@pytest.mark.parametrize("depth", quick([1, 2, 10, 99, 100, 101, 1000, 10_000], 1, 10, 100, 1000))
def test_lists_of_any_length(depth: int) -> None:
    rng = np.random.default_rng(depth)
    docs = [f"d{number}" for number in range(depth)]
    scores = rng.integers(max(depth // 3, 1), size=depth)
    run = {"q": dict(zip(docs, map(float, scores), strict=True))}
    judged = rng.permutation(depth)[: max(depth // 5, 1)]
    gold = {"q": {docs[doc]: int(rng.choice([-1, 0, 1, 2])) for doc in judged} | {"missed": 3}}
    agree(run, gold)


def test_more_relevant_documents_than_retrieved() -> None:
    run = {"q": {f"d{number}": float(-number) for number in range(5)}}
    gold = {"q": {f"d{number}": 1 + number % 3 for number in range(500)}}
    agree(run, gold)


def test_a_query_only_in_the_gold_scores_zero() -> None:
    run = {"q1": {"a": 1.0}}
    gold = {"q1": {"a": 1}, "q2": {"a": 1, "b": 2}}
    agree(run, gold)
    means_agree(run, gold)


def test_a_query_only_in_the_run_is_left_out() -> None:
    run = {"q1": {"a": 1.0}, "q2": {"a": 1.0}}
    gold = {"q1": {"a": 1}}
    agree(run, gold)
    assert peer(run, gold, {"map"}).keys() == {"q1"}


def test_a_query_with_an_empty_result_scores_zero() -> None:
    run: Scored = {"q1": {"a": 1.0}, "q2": {}}
    gold = {"q1": {"a": 1}, "q2": {"a": 1}}
    agree(run, gold)
    means_agree(run, gold)


def test_a_query_without_a_relevant_document() -> None:
    run = {"q1": {"a": 1.0}, "q2": {"a": 1.0, "b": 2.0}, "q3": {"a": 1.0}}
    gold = {"q1": {"a": 1}, "q2": {"a": 0, "b": -1}, "q3": {"x": 0}}
    agree(run, gold)
    means_agree(run, gold)


@pytest.mark.parametrize("unjudged", [-1, -2, -10])
def test_pooled_but_unjudged_documents(unjudged: int) -> None:
    run = {"q": {"u": 6.0, "n": 5.0, "a": 4.0, "v": 3.0, "outside": 2.0, "b": 1.0}}
    gold = {"q": {"u": unjudged, "v": unjudged, "n": 0, "a": 1, "b": 2, "w": unjudged}}
    agree(run, gold)


def test_missing_queries_can_be_skipped_like_trec_eval_9_does() -> None:
    run, gold = random_scored(5, queries=12)
    for query in ("2", "5", "9"):
        del run[query]
    evaluator = pytrec_eval.RelevanceEvaluator(gold, {"map", "gm_map", "num_q", "num_rel"})
    theirs = evaluator.evaluate(run)
    result = findwell.evaluate(
        run, gold, ["AP", "GMAP", "queries", "relevant"], dialect="trec_eval-9"
    )
    for name, our_name in (("map", "AP"), ("gm_map", "GMAP"), ("num_q", "queries")):
        expected = pytrec_eval.compute_aggregated_measure(
            name, [values[name] for values in theirs.values()]
        )
        assert close(result[our_name], expected)
    assert result["relevant"] == sum(values["num_rel"] for values in theirs.values())


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("x", ["0.1", "0.25", "0.5", "1", "1.0", "2", "2.0", "4.0", "10.0"])
def test_set_f_with_another_x(x: str, level: int) -> None:
    run, gold = random_scored(23)
    theirs = peer(run, gold, {f"set_F.{x}"}, level)
    beta = math.sqrt(float(x))  # trec_eval's x is beta²
    result = findwell.evaluate(
        run,
        gold,
        [f"F(beta={beta!r})"],
        dialect="trec_eval-9",
        reading=findwell.Reading(missing="zero"),
        rel=level,
    )
    (found,) = by_measure(result).values()
    for query in gold:
        assert close(found[query], theirs[query]["set_F"])


@pytest.mark.parametrize("level", [1, 2])
def test_gm_map_of_one_query_is_a_logarithm(level: int) -> None:
    run, gold = random_scored(31)
    theirs = peer(run, gold, {"gm_map"}, level)
    result = findwell.evaluate(run, gold, ["GMAP"], dialect="trec_eval-9", rel=level)
    (found,) = by_measure(result).values()
    for query in gold:
        value = found[query]
        assert value is not None
        assert close(math.log(max(value, 0.00001)), theirs[query]["gm_map"])


NEAR_EQUAL = [
    (1.0 + 1e-9, 1.0),  # one number in 32 bits
    (1e300, 1e299),  # both infinite in 32 bits
    (1e-50, 0.0),  # both zero in 32 bits
    (16_777_217.0, 16_777_216.0),  # the first whole number that 32 bits cannot hold
    (-1.0, -1.0 - 1e-9),
]


@pytest.mark.parametrize(("high", "low"), NEAR_EQUAL)
def test_near_equal_scores_tie_in_version_9_only(high: float, low: float) -> None:
    # the tie, if it is one, goes to the document with the greater id: the lower score
    run, gold = {"q": {"a": high, "b": low}}, {"q": {"b": 1, "a": 0}}
    assert peer(run, gold, {"recip_rank"})["q"]["recip_rank"] == 1
    assert findwell.evaluate(run, gold, ["RR"], dialect="trec_eval-9")["RR"] == 1
    assert findwell.evaluate(run, gold, ["RR"], dialect="trec_eval")["RR"] == 0.5
    assert findwell.evaluate(run, gold, ["RR"], dialect="findwell")["RR"] == 0.5


def test_many_near_equal_scores_as_version_9_ranks_them() -> None:
    rng = np.random.default_rng(3)
    docs = [f"d{number}" for number in range(300)]
    run = {"q": {doc: 1.0 + float(rng.integers(40)) * 1e-8 for doc in docs}}
    gold = {"q": {doc: int(rng.integers(-1, 3)) for doc in docs[::3]}}
    theirs = peer(run, gold, ASKED)
    found = ours(run, gold, "trec_eval-9")
    for name in SAME:
        assert close(found[name]["q"], theirs["q"][name]), name
    exact = ours(run, gold, "trec_eval")
    assert exact["map"] != found["map"]  # so the test can tell the two apart
