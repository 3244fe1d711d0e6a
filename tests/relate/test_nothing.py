"""Every relation where there is nothing: no gold, no list, blank texts; as a file and as a list.

Each case stands alone on purpose: beside other records a column of empty lists has the type of
their texts, and the gold has items, so that nothing of what goes wrong here is seen.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findwell
from findwell.core.measure import COUNTED
from findwell.relations.match import known_matchers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BLANK = {"doc": "x", "text": " ", "start": 0, "end": 1}
EMPTY = {"doc": "x", "text": "", "start": 0, "end": 0}
DOC = {"doc": "y", "text": "One two three.", "start": 0, "end": 14}
ASKED = {"query": "q", "question": "Why?", "reference": "Because of Oslo."}
CASES: dict[str, dict[str, Any]] = {
    "no gold": ASKED | {"retrieved": [DOC], "gold": []},
    "no list": ASKED | {"retrieved": [], "gold": [DOC]},
    "neither": ASKED | {"retrieved": [], "gold": []},
    "a blank chunk": ASKED | {"retrieved": [BLANK], "gold": [DOC]},
    "a blank gold": ASKED | {"retrieved": [DOC], "gold": [BLANK]},
    "all blank": ASKED | {"retrieved": [BLANK], "gold": [EMPTY]},
    "no text": ASKED | {"retrieved": [EMPTY], "gold": [EMPTY]},
    "an empty group": ASKED | {"retrieved": [DOC], "gold": [[]]},
    "no support": ASKED | {"retrieved": [DOC], "gold": [{"docs": {"One two.": 0}}]},
    "a blank question": ASKED | {"question": " ", "reference": "", "retrieved": [], "gold": [DOC]},
    "texts": {"question": "q", "retrieved_context": ["a b"], "ground_truth_context": []},
    "no texts": {"question": "q", "retrieved_context": [], "ground_truth_context": ["a b"]},
    "no texts at all": {"question": "q", "retrieved_context": [], "ground_truth_context": []},
}
DIALECTS = ("findwell", "continuous-eval")  # of which the other one goes on without any gold


def _letters(texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([[1.0 + text.count(letter) for letter in "abcdefghij"] for text in texts])


def _measures(relation: str) -> list[findwell.Measure]:
    every = [cls() for cls in findwell.plugins.known_measures().values()]
    every += (
        []
        if known_matchers()[relation].about_list
        else [type(each)(k=1) for each in every if each.at == "k"]
    )
    return [each for each in every if each.facts() <= {*COUNTED, "copies"}]


def outcome(given: Any, measures: Sequence[findwell.Measure], **options: Any) -> Any:
    """Return values, or what a user is told instead; anything else is raised."""
    try:
        result = findwell.evaluate(given, None, measures, embedder=_letters, **options)
    except findwell.FindwellError as error:
        return str(error).partition(": ")[2]  # without the file
    assert [0.0 <= each <= 1.0 for each in result.values.values() if each is not None]
    return result.values, {(each.kind, each.count) for each in result.findings}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("by", known_matchers())
def test_nothing(by: str, case: str, tmp_path: Path) -> None:
    record = CASES[case]
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps([record]), encoding="utf-8")
    for dialect in DIALECTS:
        options: dict[str, Any] = {"by": by, "dialect": dialect}
        if known_matchers()[by].judged:
            options["judge"] = "local:text"
        if dialect == "continuous-eval" and "sentence" in by:
            options["by"] = f"{by}(splitter=sentencex)"  # the other's data may not be installed
        told = outcome([record], _measures(by), **options)
        assert told == outcome(tmp_path / "a.jsonl", _measures(by), **options)
        assert told == outcome(tmp_path / "a.json", _measures(by), **options)
