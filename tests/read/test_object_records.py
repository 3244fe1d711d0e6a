"""Records whose fields of texts also hold something else."""

import pytest

import findwell
from findwell.core.errors import InputError


def test_an_entry_without_a_text_among_texts_is_refused() -> None:
    record = {"input": "Why?", "retrieval_context": ["a", ["x", 1]], "context": ["a"]}
    with pytest.raises(InputError, match="an entry of 'retrieval_context' has no text") as caught:
        findwell.evaluate([record])
    assert "query 'Why?'" in str(caught.value)
