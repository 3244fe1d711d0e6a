"""AutoRAG's choice of a module, and its token metrics."""

from typing import Any

import pytest

from findwell.core.errors import OptionError
from findwell.measures.dialects.autorag import select_best, token_scores
from tests.dialects.golden import cases


@pytest.mark.parametrize("case", cases("autorag", "select_best"), ids=lambda case: case["id"])
def test_select_best(case: Any) -> None:
    params = case["params"]
    chosen = select_best(
        case["inputs"]["results"], params["strategy"], columns=params.get("columns")
    )
    assert chosen == case["expected"]


def test_slow_modules_are_out_unless_all_are() -> None:
    results = {"good": {"f1": [0.9]}, "fast": {"f1": [0.5]}}
    seconds = {"good": 9.0, "fast": 1.0}
    assert select_best(results, seconds=seconds, speed_threshold=5) == "fast"
    assert select_best(results, seconds=seconds, speed_threshold=0.5) == "good"


def test_wrong_choices() -> None:
    with pytest.raises(OptionError, match="unknown strategy 'meen'"):
        select_best({"a": {"f1": [1.0]}}, "meen")
    with pytest.raises(OptionError, match="no module"):
        select_best({})


def test_token_scores() -> None:
    # "cat sat" against "cat sat on mat" (articles go): 2 of 2 and 2 of 4 words
    scores = token_scores(["The cat sat!"], ["A cat sat on the mat.", "dogs"])
    assert scores is not None
    assert (scores.precision, scores.recall) == (1.0, 0.5)
    assert scores.f1 == pytest.approx(2 / 3)
    assert token_scores([], ["x"]) is None
    nothing = token_scores(["alpha"], ["beta"])
    assert nothing is not None
    assert nothing.f1 == 0.0


def test_repeated_words_count_as_often_as_both_have_them() -> None:
    scores = token_scores(["b b b"], ["b b c"])
    assert scores is not None
    assert (scores.precision, scores.recall) == pytest.approx((2 / 3, 2 / 3))
