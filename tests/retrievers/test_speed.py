"""What findwell adds to a call grows with the questions, and not faster than they do."""

from pathlib import Path

import pytest

import findwell
from tests.growth import assert_near_linear

FACTOR = 10


def nothing(_: str) -> list[str]:
    return []


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("kept", [False, True])
def test_each_question_costs_the_same(concurrency: int, tmp_path: Path, *, kept: bool) -> None:
    def ask(count: int) -> None:
        queries = {str(n): f"question {n}" for n in range(count)}
        resume = tmp_path / "run.part" if kept else None
        findwell.retrieve(nothing, queries, concurrency=concurrency, resume=resume)
        if resume is not None:
            resume.unlink()

    assert_near_linear(lambda: ask(10_000), lambda: ask(10_000 * FACTOR), FACTOR)
