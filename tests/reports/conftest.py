"""Results to report, and a browser to look at them."""

from __future__ import annotations

from pathlib import Path

import pytest

import karat
from tests import hostile
from tests.browsing import browser, watched

DEMO = Path(karat.__file__).parent / "demo"

__all__ = ["browser", "watched"]


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the demo's result, with its lists."""
    result = karat.evaluate(
        [DEMO / "bm25.trec", DEMO / "minilm.trec"],
        DEMO / "questions.jsonl",
        corpus=DEMO / "passages.jsonl",
        keep=50,
    )
    return result.save(tmp_path_factory.mktemp("results") / "monday")


@pytest.fixture(scope="session")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a result in which every text is an attack."""
    return hostile.result().save(tmp_path_factory.mktemp("hostile") / "result")
