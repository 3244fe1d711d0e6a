"""findwell fuses as the real frameworks do, and its snippets are what they take."""

from __future__ import annotations

from typing import Any

import pytest

from tests.frameworks.fusions import CASES, ORACLES
from tests.frameworks.test_answers import ask

UNORDERED = ("qdrant", "chroma")  # whose servers leave ties undefined


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_fusions_of_a_framework(name: str) -> None:
    found = ask(name, "tests.frameworks.fusions")
    assert len(found) == CASES * len(ORACLES[name][1])
    for each in found:
        _agree(each, ordered=name not in UNORDERED)


def _agree(found: dict[str, Any], *, ordered: bool) -> None:
    theirs, ours = (dict(found[who]) for who in ("framework", "findwell"))
    assert ours.keys() == theirs.keys(), found["case"]
    for doc, score in theirs.items():
        if score is not None:
            assert ours[doc] == pytest.approx(score, rel=2e-6, abs=2e-7), (found["case"], doc)
    if ordered:
        assert list(ours) == list(theirs), found["case"]
