"""Words as units: the overlap of what was retrieved and the gold, as multisets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import findwell
from tests.relate import brute
from tests.strategies import by_measure, examples


@examples(40)
@given(brute.records(), st.sampled_from([1, 2, 9]))
@example(brute.many(2), 2)
def test_precision_recall_f_and_iou_are_those_of_multisets(
    made: list[dict[str, Any]], k: int
) -> None:
    measures = [f"{name}@{k}" for name in ("P", "recall", "F", "IoU")]
    found = by_measure(findwell.evaluate(brute.with_texts(made), measures=measures, by="words"))
    for record in made:
        texts = {brute.plain(text): text for text in reversed(record["gold"]) if brute.plain(text)}
        want = Counter(word for text in texts.values() for word in brute.words(text))
        have = Counter(word for text in record["retrieved"][:k] for word in brute.words(text))
        values = [found[measure][record["query"]] for measure in measures]
        if not want:
            assert values == [None] * 4
            continue
        both = (have & want).total()
        precision, recall = both / max(have.total(), 1), both / want.total()
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        assert values == pytest.approx([precision, recall, f1, both / (have | want).total()])


def test_by_hand() -> None:
    record = {
        "query": "q",
        "retrieved": ["The quick fox.", "A fox, a fox!"],
        "gold": ["the fox and the other fox"],
    }
    measures = ["P@1", "recall@1", "P", "recall", "IoU"]
    result = findwell.evaluate([record], measures=measures, by="words")
    # gold: the fox and the other fox; first chunk: the, fox; second: one more fox of two
    assert result.values == {
        "P@1": 2 / 3,
        "recall@1": 2 / 6,
        "P": 3 / 7,
        "recall": 3 / 6,
        "IoU": 3 / 10,
    }


def test_of_alternatives_the_first_is_asked_for() -> None:
    record = {"query": "q", "retrieved": ["c d"], "gold": [["a b", "c d"]]}
    result = findwell.evaluate([record], measures="recall", by="words")
    assert result["recall"] == 0.0
    assert [found.kind for found in result.findings] == ["alternatives-dropped"]


def test_numbers_behind_a_hash_are_words_of_their_own() -> None:
    record = {"query": "q", "retrieved": ["fox #2 fox"], "gold": ["fox fox"]}
    for by in ("words", "words(text=raw)"):
        result = findwell.evaluate([record], measures=["P", "recall"], by=by)
        assert result.values == {"P": pytest.approx(2 / 3), "recall": 1.0}
