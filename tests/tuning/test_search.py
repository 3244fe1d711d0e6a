"""The search for the best weight or constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.loop.tuning import (
    Tuned,
    convex_combination,
    reciprocal_rank_fusion,
    tune_rrf_k,
    tune_weight,
)

SEMANTIC = {"q1": {"a": 0.9, "b": 0.6, "c": 0.1}, "q2": {"d": 0.8, "e": 0.7, "f": 0.2}}
LEXICAL = {"q1": {"c": 9.0, "b": 8.0, "x": 1.0}, "q2": {"f": 7.0, "e": 6.5, "y": 1.0}}
GOLD = {"q1": ["b"], "q2": ["e"]}


def test_the_best_is_the_best_of_the_table() -> None:
    tuned = tune_weight([SEMANTIC, LEXICAL], GOLD, ["nDCG", "RR"], k=3)
    assert tuned.table.columns == ["weight", "nDCG", "RR"]
    assert tuned.table["weight"].to_list() == np.linspace(0, 1, 101).tolist()
    means = tuned.table.select((pl.col("nDCG") + pl.col("RR")) / 2).to_series()
    assert tuned.best == tuned.table["weight"][int(means.arg_max() or 0)]
    assert means.max() == 1  # both together find what neither ranks first
    assert 0 < tuned.best < 1


def test_every_row_is_what_evaluate_says() -> None:
    tuned = tune_weight([SEMANTIC, LEXICAL], GOLD, ["RR"], weights=[0, 0.4, 1], k=2)
    for weight, value in tuned.table.iter_rows():
        fused = convex_combination([SEMANTIC, LEXICAL], (weight, 1 - weight), k=2)
        assert value == findwell.evaluate(fused, GOLD, "RR")["RR"]
    assert tuned.result["RR"] == findwell.evaluate(tuned.run, GOLD, "RR")["RR"]
    assert tuned.run.name == "fused"


def test_equally_good_weights_the_first_wins() -> None:
    same = {"q": {"a": 2.0, "b": 1.0}}
    for weights in ([0.2, 0.8], [0.8, 0.2]):
        assert tune_weight([same, same], {"q": ["a"]}, "RR", weights=weights).best == weights[0]


def test_several_measures_are_weighed_by_a_strategy() -> None:
    semantic = {
        "q1": {"d": 3.0, "b": 2.0, "e": 1.0, "a": 0.0},
        "q2": {"b": 3.0, "c": 2.0, "e": 1.0, "f": 0.0},
    }
    lexical = {
        "q1": {"c": 3.0, "b": 2.0, "e": 1.0, "f": 0.0},
        "q2": {"d": 3.0, "b": 2.0, "c": 1.0, "f": 0.0},
    }
    gold = {"q1": {"a": 1, "c": 1, "d": 3, "f": 3}, "q2": {"b": 2, "d": 2, "f": 3}}

    def search(strategy: str) -> Tuned:
        measures, weights = ["nDCG@2", "recall@3"], [0, 0.5, 0.75]
        return tune_weight([semantic, lexical], gold, measures, weights=weights, strategy=strategy)

    table = search("mean").table
    assert table["nDCG@2"].round(4).to_list() == [0.4849, 0.4281, 0.5412]
    assert table["recall@3"].round(4).to_list() == [0.4583, 0.5833, 0.2917]
    # the highest sum; 1/3 + 1 as much as 1 + 1/3, and first; 0.50 + 0.57 of the way to the best
    best = {"mean": 0.5, "rank": 0.5, "normalize_mean": 0.0}
    assert {strategy: search(strategy).best for strategy in best} == best
    with pytest.raises(OptionError, match="unknown strategy 'best'"):
        search("best")


def test_the_theoretical_minimum_changes_the_fusion() -> None:
    semantic = {"q": {"a": 0.9, "b": 0.8}}
    lexical = {"q": {"b": 9.0, "a": 1.0}}
    best = {
        how: tune_weight([semantic, lexical], {"q": ["a"]}, "RR", normaliser=how).best
        for how in ("mm", "tmm")
    }
    assert best["mm"] == 0.5  # a tie, met first
    assert best["tmm"] > 0.9  # 0.8 is nearly as good as 0.9 when scores begin at -1


def test_the_constant_of_rank_fusion() -> None:
    # a is first once, c is second twice: a large constant forgives a worse rank
    runs = [{"q": ["a", "c"]}, {"q": ["b", "c"]}]
    tuned = tune_rrf_k(runs, {"q": ["c"]}, "RR", rrf_ks=[0, 10])
    assert tuned.table["RR"].to_list() == [0.5, 1.0]  # the tie at 0 goes to a, which is met first
    assert tuned.best == 10
    assert tuned.table.columns == ["rrf_k", "RR"]
    fused = reciprocal_rank_fusion(runs, tuned.best)
    assert tuned.run.rows.equals(fused.rows)
    assert tune_rrf_k(runs, {"q": ["c"]}, "RR").table.height == 77


def test_dialects_measure_as_they_do() -> None:
    gold = {"q1": [["b", "a"], ["zz"]], "q2": [["e"]]}
    tuned = tune_weight([SEMANTIC, LEXICAL], gold, ["mrr"], weights=[0.5], dialect="autorag")
    assert tuned.result.dialect == "autorag"
    assert tuned.table["RR"].to_list() == [pytest.approx(0.75)]
    assert tuned.table["RR"][0] == tuned.result["RR"]


def test_records_without_ids_are_joined_by_position() -> None:
    def records(run: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
        return [
            {"retrieved_ids": list(docs), "retrieve_scores": list(docs.values())}
            for docs in run.values()
        ]

    gold = [{"qid": query, "retrieval_gt": [docs]} for query, docs in GOLD.items()]
    tuned = tune_weight([records(SEMANTIC), records(LEXICAL)], gold, "RR", weights=[0.5])
    assert tuned.result["RR"] == 1
    assert "joined-by-position" in {finding.kind for finding in tuned.result.findings}


def test_a_query_that_one_run_lacks() -> None:
    partly = {"q1": LEXICAL["q1"]}
    tuned = tune_weight([SEMANTIC, partly], GOLD, "recall", weights=[0.5])
    assert tuned.result["recall"] == 1
    assert tuned.result.queries.height == 2


def test_wrong_choices() -> None:
    with pytest.raises(OptionError, match="cannot be shared by 3 runs"):
        tune_weight([SEMANTIC, LEXICAL, LEXICAL], GOLD, "RR")
    with pytest.raises(OptionError, match="there is no weight to try"):
        tune_weight([SEMANTIC, LEXICAL], GOLD, "RR", weights=[])
    with pytest.raises(OptionError, match="does not take the weights"):
        tune_weight([SEMANTIC, LEXICAL], GOLD, "RR", weights=[1.5])
    with pytest.raises(OptionError, match="is better when it is lower"):
        tune_rrf_k([SEMANTIC, LEXICAL], GOLD, ["RR", "RBP_residual"])
