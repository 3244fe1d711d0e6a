"""The metrics of LlamaIndex's evaluator are findwell's, in every digit."""

from __future__ import annotations

import pytest

from tests.frameworks.evaluators import NAMES
from tests.frameworks.test_answers import ask


@pytest.mark.slow
def test_the_metrics_of_llama_index_agree_in_every_digit() -> None:
    assert ask("llama_index", "tests.frameworks.evaluators") == dict.fromkeys(NAMES, 0.0)
