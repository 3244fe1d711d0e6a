"""Words by place: token precision, recall and IoU against gold spans."""

from __future__ import annotations

import random

import pytest

import findwell

TEXT = "The quick brown fox jumps over the lazy dog and the quick cat."
MEASURES = ["P", "recall", "F", "IoU", "P@1", "recall@1"]


def chunk(start: int, end: int) -> dict[str, object]:
    return {"doc": "d", "start": start, "end": end, "text": TEXT[start:end]}


def record(retrieved: list[dict[str, object]], gold: list[dict[str, object]]) -> dict[str, object]:
    return {"query": "q", "retrieved": retrieved, "gold": gold}


def test_worked_example() -> None:
    # retrieved: The quick brown fox | fox jumps over; gold: brown fox jumps
    sample = record([chunk(0, 19), chunk(16, 30)], [chunk(10, 25)])
    found = findwell.evaluate([sample], measures=MEASURES, by="span-words").values
    assert found == pytest.approx(
        {
            "P": 3 / 7,  # the second fox is noise
            "recall": 1.0,
            "F": 0.6,
            "IoU": 3 / 7,
            "P@1": 2 / 4,
            "recall@1": 2 / 3,
        }
    )


def test_the_same_word_elsewhere_is_another() -> None:
    later = TEXT.index("the quick")
    sample = record([chunk(later, later + 9)], [chunk(0, 9)])
    assert findwell.evaluate([sample], measures="recall", by="span-words")["recall"] == 0.0
    assert findwell.evaluate([sample], measures="recall", by="words")["recall"] == 1.0


def test_against_sets_of_places() -> None:
    generator = random.Random(3)
    records, expected = [], {}
    for number in range(200):
        spans = [sorted(generator.sample(range(len(TEXT)), 2)) for _ in range(3)]
        (gold_start, gold_end), *chunks = spans
        gold = _inside(gold_start, gold_end)
        if not gold:
            continue
        sample = record([chunk(a, b) for a, b in chunks], [chunk(gold_start, gold_end)])
        records.append(sample | {"query": f"q{number}"})
        found = [place for a, b in chunks for place in _inside(a, b)]
        hits = len(gold & set(found))
        expected[f"q{number}"] = (hits / len(gold), hits / max(len(found), 1))
    result = findwell.evaluate(records, measures=["recall", "P"], by="span-words")
    (run,) = result.runs
    recall, precision = result.measures
    got = zip(result.arrays[run, recall], result.arrays[run, precision], strict=True)
    queries = result.relation(run, recall).queries
    for query, values in zip(queries, got, strict=True):
        assert values == pytest.approx(expected.pop(query))
    assert not expected


def _inside(start: int, end: int) -> set[int]:
    """Return where words, or what is left of them, begin between two places."""
    letters = [at for at in range(start, end) if TEXT[at].isalnum()]
    return {at for at in letters if at == start or not TEXT[at - 1].isalnum()}


def test_texts_may_come_from_the_corpus() -> None:
    run = [{"query": "q", "retrieved": [{"doc": "d", "start": 0, "end": 19}]}]
    gold = [{"query": "q", "gold": [{"quote": "brown fox jumps"}]}]
    result = findwell.evaluate(run, gold, ["recall", "P"], by="span-words", corpus={"d": TEXT})
    assert result.values == pytest.approx({"recall": 2 / 3, "P": 2 / 4})


def test_each_character_of_a_script_without_spaces_is_a_word() -> None:
    text = "東京は日本の首都です"
    run = [{"query": "q", "retrieved": [{"doc": "d", "start": 0, "end": 3}]}]
    gold = [{"query": "q", "gold": [{"doc": "d", "start": 0, "end": 6}]}]
    result = findwell.evaluate(run, gold, ["recall", "P"], by="span-words", corpus={"d": text})
    assert result.values == {"recall": 0.5, "P": 1.0}
