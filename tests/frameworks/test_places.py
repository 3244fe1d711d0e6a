"""Real chunks of real splitters against a gold of places: in every form the number by hand."""

from __future__ import annotations

import pytest

from tests.frameworks.test_answers import ask

SPANS = {"by": "spans(threshold=0.5)", "findings": []}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["langchain", "stored", "llama_index", "haystack"])
def test_places_of_a_framework(name: str) -> None:
    found = ask(name, "tests.frameworks.places")
    right = found["by hand"]
    assert 0 < right < 1
    for form in ("retriever", "objects", "file", "source as id", "stems"):
        assert found[form] == {"recall": right, **SPANS}, form
    assert found["documents"]["recall"] > right  # which must be asked for with by="ids"
    assert found["paths"]["error"] == "AlignError"
    assert "--read ids=stem" in found["paths"]["fix"]
    if name == "langchain":  # ids are places: they might be those of a gold
        assert found["chunk gold"] == {"findings": ["no-shared-document"]}
    else:
        assert found["chunk gold"]["error"] == "AlignError"
        assert "ids of the run are" in found["chunk gold"]["what"]
