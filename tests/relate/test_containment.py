"""A gold text inside a chunk, or across the border of two."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import findwell
from tests.relate import brute
from tests.strategies import examples


def completed(units: list[str], item: str) -> int | None:
    """Return the rank of the chunk that completes an item with another above it, naively."""
    want = brute.words(item)
    seen: dict[str, list[str]] = {}
    for rank, unit in enumerate(units, start=1):
        have = brute.words(unit)
        if brute.plain(unit) in seen:
            continue
        for above in seen.values():
            for left, right in ((above, have), (have, above)):
                for cut in range(1, len(want)):
                    ends = left[-cut:] == want[:cut]
                    rest = len(want) - cut
                    begins = any(right[:size] == want[-size:] for size in range(rest, len(want)))
                    if ends and begins:
                        return rank
        seen[brute.plain(unit)] = have
    return None


@examples(40)
@given(brute.records())
@example(brute.many(1))
def test_inside_one_chunk(made: list[dict[str, Any]]) -> None:
    result = findwell.evaluate(brute.with_texts(made), measures="P", by="containment(across=no)")
    assert brute.edges(result) == brute.expected(made, brute.contains)


@examples(40)
@given(brute.records())
@example(brute.many(1))
def test_across_the_border_of_two_chunks(made: list[dict[str, Any]]) -> None:
    result = findwell.evaluate(brute.with_texts(made), measures="P", by="containment")
    wanted = brute.expected(made, brute.contains)
    everything = brute.expected(made, lambda _unit, _item: True)
    for record in made:
        for item in {item for _, item in everything[record["query"]]}:
            rank = completed(record["retrieved"], item)
            wanted[record["query"]] |= {(rank, item)} if rank else set()
    assert brute.edges(result) == wanted


@examples(40)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=3, max_size=9), st.data())
def test_a_text_cut_in_two_is_found_again(letters: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(letters) - 1))
    overlap = data.draw(st.integers(0, min(2, cut)))
    before, after = "zero " + " ".join(letters[:cut]), " ".join(letters[cut - overlap :]) + " nine"
    chunks = data.draw(st.permutations([before, "other", after]))
    gold = " ".join(letters)
    record = {"query": "q", "retrieved": chunks, "gold": [gold]}
    result = findwell.evaluate([record], measures=["recall", "recall@2", "P"], by="containment")
    assert result["recall"] == 1.0
    later = max(chunks.index(before), chunks.index(after)) + 1
    assert min(rank for rank, _ in brute.edges(result)["q"]) <= later
    alone = {"query": "q", "retrieved": [before, "other"], "gold": [gold]}
    inside = brute.contains(before, gold)
    found = findwell.evaluate([alone], measures="recall", by="containment")["recall"]
    assert found == float(inside)


def test_words_are_whole_and_in_one_piece() -> None:
    gold = ["the cat sat"]
    for chunk, found in [
        ("Then the cat sat down.", 1.0),
        ("The CAT, sat?", 1.0),
        ("bathe cat sat", 0.0),
        ("the cat satin", 0.0),
        ("the cat then sat", 0.0),
        ("sat cat the", 0.0),
    ]:
        record = {"query": "q", "retrieved": [chunk], "gold": gold}
        assert findwell.evaluate([record], measures="recall", by="containment")["recall"] == found


def test_a_chunk_does_not_complete_itself() -> None:
    # it begins with the end of the gold and ends with its beginning
    chunk = "sat on the mat and then the cat"
    record = {"query": "q", "retrieved": [chunk, chunk], "gold": ["the cat sat on the mat"]}
    assert findwell.evaluate([record], measures="recall", by="containment")["recall"] == 0.0


def test_text_as_it_is() -> None:
    record = {"query": "q", "retrieved": ["Then the cat sat."], "gold": ["The cat sat"]}
    assert (
        findwell.evaluate([record], measures="recall", by="containment(text=raw)")["recall"] == 0.0
    )
    assert findwell.evaluate([record], measures="recall", by="containment")["recall"] == 1.0


def test_scripts_without_spaces() -> None:
    record = {
        "query": "q",
        "retrieved": ["東京は日本の首都", "です。人口は多い。"],
        "gold": ["日本の首都です", "人口"],
    }
    result = findwell.evaluate([record], measures=["recall@1", "recall@2"], by="containment")
    assert result.values == {"recall@1": 0.0, "recall@2": 1.0}


@pytest.mark.parametrize("by", ["containment", "rouge", "exact", "words"])
def test_a_megabyte(by: str) -> None:
    long = "lorem ipsum dolor sit amet " * 40_000
    record = {
        "query": "q",
        "retrieved": [long, "x " * 500_000 + "the needle in the hay", long],
        "gold": ["needle in the hay", long],
    }
    result = findwell.evaluate([record], measures=["recall", "P"], by=by)
    wanted = {"containment": 1.0, "rouge": 1.0, "exact": 0.5}
    assert result["recall"] == pytest.approx(wanted.get(by, 1.0))
    assert {found.kind for found in result.findings} >= (
        set() if by == "words" else {"duplicate-document"}
    )
