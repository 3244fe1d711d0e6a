"""Every relation where there is nothing: no gold, no list, blank texts; as a file and as a list.

Each case stands alone on purpose: beside other records a column of empty lists has the type of
their texts, and the gold has items, so that nothing of what goes wrong here is seen.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findwell
from findwell.core.measure import COUNTED_UNITS
from findwell.relations.match import known_matchers
from tests.members import over

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


def _letters(texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([[1.0 + text.count(letter) for letter in "abcdefghij"] for text in texts])


@functools.cache
def _measures(relation: str) -> list[findwell.Measure]:
    every = [cls() for cls in findwell.plugins.known_measures().values()]
    every += (
        []
        if known_matchers()[relation].about_list
        else [type(each)(k=1) for each in every if each.at == "k"]
    )
    return [each for each in every if each.facts() <= {*COUNTED_UNITS, "copies"}]


def outcome(given: Any, measures: Sequence[findwell.Measure], **options: Any) -> Any:
    """Return values, or what a user is told instead; anything else is raised."""
    try:
        result = findwell.evaluate(given, None, measures, embedder=_letters, **options)
    except findwell.FindwellError as error:
        return str(error).partition(": ")[2]  # without the file
    values = result.values
    assert [0.0 <= each <= 1.0 for each in values.values() if each is not None]
    return values, {(each.kind, each.count) for each in result.findings}


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        ("findwell", "a.jsonl"),
        pytest.param("findwell", "a.json", marks=pytest.mark.slow),
        # which goes on without any gold
        pytest.param("continuous-eval", "a.jsonl", marks=pytest.mark.slow),
        pytest.param("continuous-eval", "a.json", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("by", known_matchers())
@over(case=CASES)
def test_nothing(by: str, case: str, dialect: str, name: str, tmp_path: Path) -> None:
    record = CASES[case]
    spelled = json.dumps(record) + "\n" if name == "a.jsonl" else json.dumps([record])
    (tmp_path / name).write_text(spelled, encoding="utf-8")
    options: dict[str, Any] = {"by": by, "dialect": dialect}
    if known_matchers()[by].judged:
        options["judge"] = "local:text"
    if dialect == "continuous-eval" and "sentence" in by:
        options["by"] = f"{by}(splitter=sentencex)"  # the other's data may not be installed
    told = outcome([record], _measures(by), **options)
    assert told == outcome(tmp_path / name, _measures(by), **options)
