"""The functions of the course's labs: rank fusion, and recall and precision over lists."""

from typing import Any

import numpy as np
import pytest

import findwell
from findwell.loop.tuning import reciprocal_rank_fusion
from findwell.loop.tuning.engines import reciprocal_ranks
from tests.dialects.golden import cases, same
from tests.dialects.test_course import value


@pytest.mark.parametrize("case", cases("course-notes", "rrf_score"), ids=lambda case: case["id"])
def test_the_score_of_a_document(case: Any) -> None:
    found = reciprocal_ranks(np.array(case["inputs"]["ranks"]), case["params"]["k"]).sum()
    assert same(float(found), case["expected"])


@pytest.mark.parametrize(
    "case", cases("course-notes", "reciprocal_rank_fusion"), ids=lambda case: case["id"]
)
def test_rank_fusion(case: Any) -> None:
    runs = [{"q": case["inputs"][name]} for name in ("list1", "list2")]
    fused = reciprocal_rank_fusion(runs, case["params"]["K"], k=case["params"]["top_k"])
    assert fused.rows["doc"].to_list() == [str(doc) for doc in case["expected"]]


@pytest.mark.parametrize("case", cases("course-notes", "recall(list,list)"))
def test_recall_over_lists(case: Any) -> None:
    found = findwell.evaluate(
        {"q": case["inputs"]["l1"]}, {"q": case["inputs"]["l2"]}, "recall", dialect="course"
    )
    assert same(found["recall"], case["expected"])


@pytest.mark.parametrize("case", cases("course-notes", "lab recall"), ids=lambda case: case["id"])
def test_recall_over_counts(case: Any) -> None:
    given = case["inputs"]
    hits = list(range(1, given["tp"] + 1))
    retrieved, relevant = given["tp"] + given["fp"], given["tp"] + given["fn"]
    assert same(value("recall", hits, retrieved, relevant), case["expected"])


@pytest.mark.parametrize(
    "case", cases("course-notes", "lab compute_metrics"), ids=lambda case: case["id"]
)
def test_metrics_of_the_top(case: Any) -> None:
    # all that is relevant is in the top k: nothing was missed
    top, found = case["params"]["top_k"], case["inputs"]["true_positives_in_top_k"]
    hits = list(range(1, found + 1))
    expected = case["expected"]
    assert same(value(f"P@{top}", hits, top, found), expected["precision"])
    assert same(value(f"recall@{top}", hits, top, found), expected["recall"])
