"""Sentences as units: they are counted, while a cutoff counts the chunks they stand in."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import findwell
from findwell.core.data import RunStream
from findwell.relations.match.rouge import RougeSentence
from tests.relate import brute
from tests.strategies import by_measure, examples

LINES = "rouge-sentence(splitter=lines)"
CHUNKS = ["The cat sat.\nIt slept.", "Rain fell.", "", "A dog barked.\nThe cat sat.\nIt ate."]
GOLD = ["A dog barked.", "It ate fish.", "The cat sat.\nIt slept."]


def covers(threshold: float) -> Any:
    return lambda unit, item: brute.rouge(unit, item) >= threshold


@examples(40)
@given(brute.records(), st.sampled_from([0.5, 0.8, 1.0]))
@example(brute.many(2), 0.8)
def test_sentences_match_sentences(made: list[dict[str, Any]], threshold: float) -> None:
    by = f"rouge-sentence(threshold={threshold},splitter=lines)"
    result = findwell.evaluate(brute.with_texts(made), measures="P", by=by)
    assert brute.edges(result) == brute.expected(made, covers(threshold), brute.lines)


@examples(40)
@given(brute.records())
@example(brute.many(1))
def test_equal_sentences(made: list[dict[str, Any]]) -> None:
    by = "exact-sentence(splitter=lines)"
    result = findwell.evaluate(brute.with_texts(made), measures="P", by=by)
    same = lambda unit, item: brute.plain(unit) == brute.plain(item)  # noqa: E731
    assert brute.edges(result) == brute.expected(made, same, brute.lines)


def values(made: list[dict[str, Any]], k: int, threshold: float = 0.8) -> dict[str, Any]:
    """Compute some measures naively: units are the sentences of the first k chunks."""
    found = brute.expected(made, covers(threshold), brute.lines)
    rows: dict[str, Any] = {}
    for record in made:
        shown = [line for text in record["retrieved"][:k] for line in brute.lines(text)]
        lines = {brute.plain(line) for text in record["gold"] for line in brute.lines(text)} - {""}
        if not lines:
            rows[record["query"]] = (None, None, None, None)
            continue
        seen: set[str] = set()
        met: set[str] = set()
        hits, credit, first = 0, 0.0, 0.0
        for rank, line in enumerate(shown, start=1):
            items = {brute.plain(item) for at, item in found[record["query"]] if at == rank}
            repeated = brute.plain(line) in seen
            seen.add(brute.plain(line))
            if repeated or not items:
                continue
            hits += 1
            first = first or 1 / rank
            credit += len(items - met) / math.log2(rank + 1)
            met |= items
        ideal = sum(1 / math.log2(rank + 2) for rank in range(len(lines)))  # not cut
        rows[record["query"]] = (
            hits / max(len(shown), 1),
            len(met) / len(lines),
            first,
            min(credit / ideal, 1.0),
        )
    return rows


@examples(40)
@given(brute.records(), st.integers(1, 4))
@example(brute.many(3), 2)
def test_a_cutoff_counts_chunks(made: list[dict[str, Any]], k: int) -> None:
    measures = [f"{name}@{k}" for name in ("P", "recall", "RR", "nDCG")]
    result = by_measure(findwell.evaluate(brute.with_texts(made), measures=measures, by=LINES))
    for query, wanted in values(made, k).items():
        for measure, value in zip(measures, wanted, strict=True):
            assert result[measure][query] == (value if value is None else pytest.approx(value))


def test_by_hand() -> None:
    data = [{"query": "q", "retrieved": CHUNKS, "gold": GOLD}]
    measures = ["P@1", "P@2", "P@3", "P@4", "P@9", "P", "recall@1", "recall@4", "success@2"]
    result = findwell.evaluate(data, measures=measures, by=LINES)
    # the second "The cat sat." repeats the first; "It ate." is 2 of the 3 words of its gold
    assert result.values == {
        "P@1": 2 / 2,
        "P@2": 2 / 3,
        "P@3": 2 / 3,
        "P@4": 3 / 6,
        "P@9": 3 / 6,
        "P": 3 / 6,
        "recall@1": 2 / 4,
        "recall@4": 3 / 4,
        "success@2": 1.0,
    }


def test_the_default_splitter_knows_abbreviations() -> None:
    data = [
        {
            "query": "q",
            "retrieved": ["Dr. Lee paid $3.50. He left at 5 p.m. on Monday."],
            "gold": ["Dr. Lee paid $3.50."],
        }
    ]
    result = findwell.evaluate(data, measures=["P", "recall"], by="exact-sentence")
    assert result.values == {"P": 0.5, "recall": 1.0}
    assert result.provenance.settings["exact-sentence"]["splitter"] == "sentencex"


def test_languages_without_spaces() -> None:
    data = [
        {
            "query": "q",
            "retrieved": ["東京は日本の首都です。人口は多い。", "今日は雨です。"],
            "gold": ["人口は多い。", "日本の首都は東京です。"],
        }
    ]
    result = findwell.evaluate(data, measures=["P@1", "P", "recall"], by="rouge-sentence")
    # 日本の首都 is in order, は and 東京 are not: 7 of 10 characters
    assert result.values == {"P@1": 1 / 2, "P": 1 / 3, "recall": 0.5}
    loose = findwell.evaluate(data, measures="recall", by="rouge-sentence(threshold=0.7)")
    assert loose["recall"] == 1.0


def test_a_function_may_split() -> None:
    matcher = RougeSentence(splitter=lambda text: text.split("|"))  # type: ignore[arg-type]
    data = [{"query": "q", "retrieved": ["a b|c d"], "gold": ["c d"]}]
    assert findwell.evaluate(data, measures=["P"], by=matcher)["P"] == 0.5


def test_alternatives_cannot_be_asked_for_by_sentence() -> None:
    data = [{"query": "q", "retrieved": ["One.\nTwo."], "gold": [["One.\nThree.", "Two."]]}]
    result = findwell.evaluate(data, measures=["recall"], by=LINES)
    assert result["recall"] == 0.5
    assert [found.kind for found in result.findings] == ["alternatives-dropped"]


def test_many_batches_are_as_good_as_one() -> None:
    data = [
        {"query": f"q{n}", "retrieved": CHUNKS[n % 4 :] + CHUNKS[: n % 3], "gold": GOLD}
        for n in range(20)
    ]
    run = [
        (record["query"], at, f"{record['query']}-{at}", text)
        for record in data
        for at, text in enumerate(record["retrieved"])
    ]
    frame = pl.DataFrame(run, schema=["query", "at", "doc", "text"], orient="row")
    gold = [{"query": record["query"], "gold": record["gold"]} for record in data]
    measures = ["P@2", "nDCG@3", "recall@1", "AP"]
    whole = by_measure(findwell.evaluate(data, measures=measures, by=LINES))
    batches = [list(frame.drop("at").iter_slices(size)) for size in (1, 3, 7, 50)]
    halves = [frame.filter(pl.col("at") < 2), frame.filter(pl.col("at") >= 2)]
    batches.append([half.drop("at") for half in halves])  # the rows of no query stand together
    for parts in batches:
        stream = RunStream("run", partial(iter, parts), order="listed")
        assert by_measure(findwell.evaluate(stream, gold, measures, by=LINES)) == whole
