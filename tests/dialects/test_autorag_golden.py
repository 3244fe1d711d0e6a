"""AutoRAG's hybrid retrieval: normalisers, fusions, the search for a weight, the speed limit."""

from typing import Any

import numpy as np
import pytest

from findwell.core.data import Run
from findwell.loop.tuning import convex_combination, reciprocal_rank_fusion, tune_weight
from findwell.loop.tuning.formulas import ScoreLists, scale_lists
from findwell.measures.dialects.autorag import select_best
from tests.dialects.golden import cases, same

THEORETICAL_MINIMA = (-1.0, 0.0)  # semantic, lexical


def run(ids: list[list[str]], scores: list[list[float]]) -> list[dict[str, Any]]:
    """Return a run as AutoRAG's result file has it: a record a query."""
    return [
        {"qid": f"q{number}", "retrieved_ids": docs, "retrieve_scores": numbers}
        for number, (docs, numbers) in enumerate(zip(ids, scores, strict=True))
    ]


def lists(fused: Run) -> tuple[list[list[str]], list[list[float]]]:
    """Return ids and scores of a run by query."""
    rows = fused.rows.group_by("query", maintain_order=True).all().sort("query")
    return rows["doc"].to_list(), rows["score"].to_list()


def check(fused: Run, ids: list[list[str]], scores: list[list[float]]) -> None:
    found_ids, found_scores = lists(fused)
    assert found_ids == ids
    for found, expected in zip(found_scores, scores, strict=True):
        assert len(found) == len(expected)
        assert all(map(same, found, expected)), (found, expected)


@pytest.mark.parametrize("case", cases("autorag", "normalize"), ids=lambda case: case["id"])
def test_normalise(case: Any) -> None:
    how = case["params"]["case"].split()[1]
    given = case["inputs"]
    alone = ScoreLists(np.array(given["scores"]), np.zeros(len(given["scores"]), np.int64))
    found = scale_lists(alone, how, given["fixed_min_value"]).tolist()
    assert len(found) == len(case["expected"])
    assert all(map(same, found, case["expected"])), found


@pytest.mark.parametrize("case", cases("autorag", "hybrid_cc"), ids=lambda case: case["id"])
def test_convex_combination(case: Any) -> None:
    given, (ids, scores) = case["inputs"], case["expected"]
    if "ids" in given:  # many queries at once
        runs = [run(*pair) for pair in zip(given["ids"], given["scores"], strict=True)]
    else:
        runs = [
            run([given[f"{name}_ids"]], [given[f"{name}_scores"]])
            for name in ("semantic", "lexical")
        ]
        ids, scores = [ids], [scores]
    fused = convex_combination(
        runs,
        (given["weight"], 1 - given["weight"]),
        normaliser=given["normalize_method"],
        lowest=(given.get("semantic_min", -1.0), given.get("lexical_min", 0.0)),
        k=given["top_k"],
    )
    check(fused, ids, scores)


@pytest.mark.parametrize("case", cases("autorag", "hybrid_rrf"), ids=lambda case: case["id"])
def test_rank_fusion(case: Any) -> None:
    given, (ids, scores) = case["inputs"], case["expected"]
    runs = [
        run([docs], [numbers]) for docs, numbers in zip(given["ids"], given["scores"], strict=True)
    ]
    fused = reciprocal_rank_fusion(runs, given["rrf_k"], by="score", k=given["top_k"])
    check(fused, [ids], [scores])


@pytest.mark.parametrize("case", cases("autorag", "tune.hybrid_cc"), ids=lambda case: case["id"])
def test_search_for_a_weight(case: Any) -> None:
    given, params, expected = case["inputs"], case["params"], case["expected"]
    runs = [
        run(given[f"retrieved_ids_{name}"], given[f"retrieve_scores_{name}"])
        for name in ("semantic", "lexical")
    ]
    gold = [
        {"qid": f"q{number}", "retrieval_gt": groups}
        for number, groups in enumerate(given["retrieval_gt"])
    ]
    names = [name.removeprefix("retrieval_") for name in params["metrics"]]
    low, high = params["weight_range"]
    tuned = tune_weight(
        runs,
        gold,
        names,
        weights=np.linspace(low, high, params["test_weight_size"]),
        normaliser=params["normalize_method"],
        lowest=THEORETICAL_MINIMA,
        k=params["top_k"],
        strategy=params["strategy"],
        dialect="autorag",
    )
    assert tuned.best == expected["best_weight"]
    assert lists(tuned.run)[0] == expected["retrieved_ids"]
    per_query = tuned.result.per_query.group_by("query", maintain_order=True).agg("value")
    for found, values in zip(per_query["value"].to_list(), expected["per_query"], strict=True):
        assert len(found) == len(values)
        assert all(map(same, found, values))
    assert tuned.table.height == params["test_weight_size"]


@pytest.mark.parametrize(
    "case", cases("autorag", "filter_by_threshold"), ids=lambda case: case["id"]
)
def test_what_is_too_slow_is_out(case: Any) -> None:
    given, (results, metadatas) = case["inputs"], case["expected"]
    seconds = dict(zip(given["metadatas"], given["value"], strict=True))

    def stays(module: str) -> bool:
        """Tell whether a module that is better than all others is chosen."""
        values = {name: {"f1": [float(name == module)]} for name in seconds}
        chosen = select_best(values, seconds=seconds, speed_threshold=case["params"]["threshold"])
        return chosen == module

    kept = [module for module in seconds if stays(module)]
    assert kept == metadatas
    assert [given["results"][given["metadatas"].index(module)] for module in kept] == results
