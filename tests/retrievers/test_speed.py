"""What karat adds to a call: the processor time of questions that cost nothing themselves."""

import time
from pathlib import Path

import pytest

import karat

MOST = 30e-6  # seconds of the processor for each question


def nothing(_: str) -> list[str]:
    return []


def cost(queries: dict[str, str], concurrency: int, resume: Path | None = None) -> float:
    """Return the processor time of a question: the least, since others only ever add to it."""
    found: list[float] = []
    while len(found) < 6 and min(found, default=1.0) >= MOST:
        before = time.process_time()
        karat.retrieve(nothing, queries, concurrency=concurrency, resume=resume)
        found.append((time.process_time() - before) / len(queries))
        if resume is not None:
            resume.unlink()
    return min(found)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_question_costs_little(concurrency: int) -> None:
    assert cost({str(n): f"question {n}" for n in range(10_000)}, concurrency) < MOST


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("kept", [False, True])
def test_a_hundred_thousand_questions(concurrency: int, tmp_path: Path, *, kept: bool) -> None:
    queries = {str(n): f"question {n}" for n in range(100_000)}
    assert cost(queries, concurrency, tmp_path / "run.part" if kept else None) < MOST
