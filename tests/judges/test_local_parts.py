"""The parts of the local judge: terms, overlap, pieces and windows of a chunk."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findwell.core.texts.words import words
from findwell.judges.embeddings import find_embedder
from findwell.judges.local.calibration import logistic, logit
from findwell.judges.local.reading import LONGEST_PIECE, cut, windows
from findwell.judges.local.signals import MANY, compare, overlap
from findwell.judges.local.terms import content_terms, term_and_weight, words_of
from tests.strategies import examples


def test_the_logistic_function_and_its_inverse() -> None:
    for number in (-700.0, -3.0, 0.0, 0.5, 40.0, 700.0):
        assert 0.0 <= logistic(number) <= 1.0
    assert logit(logistic(1.25)) == pytest.approx(1.25)


def test_terms_see_through_case_accents_and_endings() -> None:
    first, second = content_terms(["Cafés closing", "the CAFE closed"])
    assert first == second
    assert term_and_weight("cafés")[0] == term_and_weight("cafe")[0]
    assert term_and_weight("が")[0] == "が"  # voicing marks make another letter
    assert term_and_weight("한국")[0] == "한국"


@examples(200)
@given(st.lists(st.text("ab 'sS’\"-_5.,\n“”‘–—…•·°×€£\xa0\t\x1cé", max_size=30), max_size=3))
def test_the_quick_way_to_words_is_the_usual_one(texts: list[str]) -> None:
    bare = pl.Series([re.sub(r"['’]s\b", "", text) for text in texts], dtype=pl.String)
    assert words_of(texts) == words(bare, "plain").to_list()


def test_overlap_by_hand() -> None:
    chunks = ["The zebra slept for an hour. Then the okapi met the zebra.", "Nothing of it."]
    needles = ["zebra okapi gnus", "walrus"]
    pairs = [(needles[0], chunks[0]), (needles[0], chunks[1]), (needles[1], chunks[0])]
    found, read = overlap(pairs)
    weights = {word: term_and_weight(word)[1] for word in ("zebra", "okapi", "gnus")}
    share = (weights["zebra"] + weights["okapi"]) / sum(weights.values())
    assert found.cover.tolist() == pytest.approx([share, 0.0, 0.0])
    assert found.place.tolist() == [1, 0, 0]
    assert found.words.tolist() == [3, 3, 1]
    assert [chunk.length for chunk in read] == [12, 3, 12]


@examples(60)
@given(st.lists(st.text(max_size=1500), max_size=4))
def test_pieces_are_parts_of_their_chunk_and_lose_no_letter(chunks: list[str]) -> None:
    for chunk in chunks:
        mine = cut(chunk)
        assert all(piece in chunk and len(piece) <= LONGEST_PIECE for piece in mine)
        assert "".join("".join(mine).split()) == "".join(chunk.split())


def test_windows_cover_a_chunk_and_fit_the_model() -> None:
    chunk = "A sentence of some length stands here. " * 100
    pieces = cut(chunk)
    found = windows(chunk, pieces)
    assert [first for _, first, _ in found[1:]] == [last for _, _, last in found[:-1]]
    assert (found[0][1], found[-1][2]) == (0, len(pieces))
    assert all(len(text) <= 900 for text, _, _ in found)
    assert windows("Short.", ["Short."]) == [("Short.", 0, 1)]


def test_the_likest_window_counts() -> None:
    filler = "Nothing of interest is said in this sentence at all. " * 30
    embedder = find_embedder(
        lambda texts: [[1.0, 9.0 * ("needle" in text)] for text in texts], name="needle"
    )
    chunk = f"{filler} The needle is here. {filler}"
    assert 1 < len(windows(chunk, cut(chunk))) <= MANY
    found = compare([("the needle", chunk), ("the needle", filler)], embedder).similarity
    assert found is not None
    assert found[0] == pytest.approx(1.0)
    assert found[1] < 0.2
