"""Retrieval quality as an ordinary test: findwell is a pytest plugin.

    pytest examples/ci/test_retrieval.py

A failure shows each value with its interval and the worst questions. Relative paths are looked for
next to the test.
"""

from collections.abc import Callable
from pathlib import Path

import findwell
from findwell.pytest_plugin import assert_retrieval

DEMO = Path(findwell.__file__).parent / "demo"


def test_minilm_finds_what_is_needed(findwell_evaluate: Callable[..., findwell.Result]) -> None:
    """Enough is found, and few questions are without a value."""
    result = findwell_evaluate(DEMO / "minilm.trec", DEMO / "questions.jsonl", ["recall@5", "RR"])
    assert_retrieval(result, "recall@5>=0.7", "undefined<=5%")


def test_minilm_is_no_worse_than_bm25(findwell_evaluate: Callable[..., findwell.Result]) -> None:
    """The interval of the paired difference lies above 0."""
    old, new = (
        findwell_evaluate(DEMO / run, DEMO / "questions.jsonl", ["recall@5"])
        for run in ("bm25.trec", "minilm.trec")
    )
    assert_retrieval(new, "recall@5>=baseline", baseline=old)
