"""Quotes are found where they stand, and nothing is guessed."""

from __future__ import annotations

import csv
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from findwell.core.errors import OptionError
from findwell.core.texts.fold import codes_of, fold, fold_quote, text_of
from findwell.io.read.corpus import load_corpus
from findwell.relations.spans import locate as module
from findwell.relations.spans.locate import _end, locate
from findwell.relations.spans.place import cover, place
from tests.strategies import examples

SPANS = Path(__file__).parents[2] / "../shared/data/spans"
LETTERS = st.text("aAbB “”'-–é\u0301ﬁß\n\t\u00a0中文\u200bא", max_size=40)
WORDS = [
    "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=3 + number % 7))
    for number in range(400)
]


def corpus(**texts: str) -> pl.DataFrame:
    return pl.DataFrame({"doc": list(texts), "text": list(texts.values())})


def prose(seed: int, words: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def find(quote: str, text: str, **options: Any) -> list[tuple[Any, ...]]:
    """Return start, end and status, which do not depend on whether the document is named."""
    rows = []
    for docs in (["d"], None):
        found = locate([quote], docs, corpus(d=text), **options)
        assert found["places"].to_list() == [found["start"].count()] * found.height
        rows.append(found.select("start", "end", "status").rows())
    assert rows[0] == rows[1]
    return rows[0]


@pytest.mark.parametrize(
    ("quote", "text", "rows"),
    [
        ("b", "abc", [(1, 2, "exact")]),
        ("abc", "abc", [(0, 3, "exact")]),
        (" b ", "a b c", [(1, 4, "exact")]),
        ("aa", "aaa", [(0, 2, "ambiguous"), (1, 3, "ambiguous")]),
        ("The cat", "the cat sat", [(0, 7, "normalised")]),
        ("The cat", "The cat. the cat", [(0, 7, "exact")]),
        ("the  cat\n", "on the\tcat sat", [(3, 10, "normalised")]),
        ('"no" - it\'s', "“No” – it’s", [(0, 11, "normalised")]),
        ("fish", "a ﬁsh", [(2, 5, "normalised")]),
        ("cafe\u0301", "un café noir", [(3, 7, "normalised")]),
        ("STRASSE", "die Straße", [(4, 10, "normalised")]),
        ("co-operate", "co\u00ad-oper\u200bate", [(0, 12, "normalised")]),
        ("北京", "他在北京工作", [(2, 4, "exact")]),
        ("שלום עולם", "אמר שלום  עולם", [(4, 14, "normalised")]),
        ("السلام", "قال السـلام", [(4, 11, "normalised")]),
        ("👍", "ok 👍!", [(3, 4, "exact")]),
        ("", "abc", [(None, None, "lost")]),
        (" \n", "a \n c", [(None, None, "lost")]),
        ("\u200b", "a\u200bc", [(None, None, "lost")]),
        ("x", "", [(None, None, "lost")]),
        ("x", "\u200b", [(None, None, "lost")]),
        ("xyz", "abc", [(None, None, "lost")]),
        ("a much longer quote than the text", "a much", [(None, None, "lost")]),
    ],
)
def test_places(quote: str, text: str, rows: list[tuple[Any, ...]]) -> None:
    assert find(quote, text) == rows


def test_no_quotes_and_no_documents() -> None:
    assert locate([], None, corpus(d="x")).height == 0
    nothing = pl.DataFrame(schema={"doc": pl.String, "text": pl.String})
    assert locate(["x"], None, nothing)["status"].to_list() == ["lost"]
    assert locate(["x"], ["d"], nothing)["status"].to_list() == ["lost"]


def test_a_named_document_is_the_only_one_that_counts() -> None:
    both = corpus(a="the cat", b="the cat")
    assert locate(["the cat"], ["b"], both).row(0)[1:6] == ("b", 0, 7, 1.0, "exact")
    assert locate(["the cat"], None, both)["doc"].to_list() == ["a", "b"]
    assert locate(["THE cat"], ["b"], both)["doc"].to_list() == ["b"]
    assert locate(["the cat"], ["x"], both)["status"].to_list() == ["lost"]


def test_no_quote_crosses_from_one_document_into_the_next() -> None:
    parts = corpus(a="the quick brown ", b=" fox jumps over", c="\u200b", d="the lazy dog")
    found = locate(["brown fox", "brown  fox", "over the lazy"], None, parts)
    assert set(found["status"]) == {"lost"}


def test_every_quote_has_its_rows_in_order() -> None:
    found = locate(["b", "x", "a", "b"], None, corpus(d="a b a"))
    assert found["quote"].to_list() == [0, 1, 2, 2, 3]
    assert found["places"].to_list() == [1, 0, 2, 2, 1]
    assert found["score"].to_list() == [1.0, None, 1.0, 1.0, 1.0]


def test_places_without_number_are_counted_and_listed_so_far() -> None:
    found = find_all = locate(["a"], ["d"], corpus(d="a" * 5000))
    assert find_all.height == module.LISTED_PLACES
    assert set(found["places"]) == {module.COUNTED_PLACES}
    assert locate(["A" * 50], None, corpus(d="a" * 5000)).height == module.LISTED_PLACES


@pytest.mark.parametrize("least", [0.0, -1, 1.5])
def test_a_score_is_between_0_and_1(least: float) -> None:
    with pytest.raises(OptionError):
        locate(["x"], None, corpus(d="x"), min_score=least)


def test_without_rapidfuzz_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    text = corpus(d="the quick brown fox")
    assert locate(["THE quick"], None, text)["status"].to_list() == ["normalised"]
    with pytest.raises(OptionError, match="rapidfuzz") as error:
        locate(["the quack"], None, text)
    assert ".[text]" in error.value.fix


@settings(deadline=None)
@given(LETTERS, LETTERS, LETTERS)
def test_a_quote_is_found_whatever_stands_around_it(before: str, quote: str, behind: str) -> None:
    assume(len(fold_quote(quote)[0]))
    text = before + quote + behind
    for docs in (["d"], None):
        found = locate([quote], docs, corpus(d=text))
        assert set(found["status"]) <= {"exact", "ambiguous"}
        spans = found.select("start", "end").rows()
        assert (len(before), len(before) + len(quote)) in spans
        assert all(text[start:end] == quote for start, end in spans)
        brute = [n for n in range(len(text)) if text.startswith(quote, n)]
        assert [start for start, _ in spans] == brute


@settings(deadline=None)
@given(LETTERS, st.lists(LETTERS, min_size=1, max_size=4))
def test_folded_places_are_those_of_folded_texts(quote: str, texts: list[str]) -> None:
    """Compared with folding each document alone and searching it by hand."""
    sought = text_of(fold_quote(quote)[0])
    assume(sought)
    expected = set()
    for number, text in enumerate(texts):
        folded, origin = fold(codes_of(text), np.array([0, len(text)]))
        plain = text_of(folded)
        for at in range(len(plain)):
            if plain.startswith(sought, at):
                expected.add((number, origin[at], origin[at + len(sought) - 1] + 1))
    block = module.Documents({str(number): text for number, text in enumerate(texts)})
    exact, equal = block.equal(module.Quote(quote, None))
    assert {(int(doc), start, end) for doc, start, end, _ in equal} == expected
    brute = {
        (number, at, at + len(quote))
        for number, text in enumerate(texts)
        for at in range(len(text))
        if text.startswith(quote, at)
    }
    assert {(int(doc), start, end) for doc, start, end, _ in exact} == brute


@settings(deadline=None)
@given(st.text(max_size=60))
def test_folding_knows_where_each_letter_comes_from(text: str) -> None:
    folded, origin = fold(codes_of(text), np.array([0, len(text)]))
    assert len(folded) == len(origin)
    assert (np.diff(origin) >= 0).all()
    assert "  " not in text_of(folded)
    for number in np.unique(origin):
        mine = text_of(folded[origin == number])
        alone, _ = fold(codes_of(text[number]), np.array([0, 1]))
        # white space that a character brings along may have been there already
        assert mine == text_of(alone) or mine == text_of(alone).removeprefix(" ")
    again, _ = fold(folded, np.array([0, len(folded)]))
    assert text_of(again) == text_of(folded)


def edit_distances(pattern: str, text: str) -> list[int]:
    """Return the fewest edits that make the pattern out of what ends at each place of a text."""
    column = list(range(len(pattern) + 1))
    ends = [column[-1]]
    for letter in text:
        new = [0]
        for at, mine in enumerate(pattern):
            new.append(min(column[at] + (mine != letter), column[at + 1] + 1, new[at] + 1))
        column = new
        ends.append(column[-1])
    return ends


@examples(200)
@given(st.text("abc", min_size=1, max_size=70), st.text("abcd", max_size=90))
def test_the_end_is_that_of_the_fewest_edits(pattern: str, text: str) -> None:
    ends = edit_distances(pattern, text)
    assert _end(pattern, text) == ends.index(min(ends))


@examples(40)
@given(st.integers(0, 10**6), st.integers(12, 120), st.integers(0, 200), st.integers(0, 200))
def test_an_edited_quote_is_found_where_its_text_stands(
    seed: int, size: int, before: int, behind: int
) -> None:
    """Edits inside a quote move neither of its edges."""
    rnd = random.Random(seed)
    words = prose(seed, size).split()
    edited = list(words)
    for _ in range(max(1, size // 20)):
        at = rnd.randrange(3, len(edited) - 3)
        edited[at : at + rnd.choice([0, 1])] = [rnd.choice(WORDS) + "q"]
    left, right = prose(seed + 1, before) + "\n", "\n" + prose(seed + 2, behind)
    text = left + " ".join(edited) + right
    (found,) = find(" ".join(words), text)
    assert found == (len(left), len(text) - len(right), "fuzzy")


def test_similar_places_that_are_equally_good_are_ambiguous() -> None:
    one, two = prose(1, 60), prose(2, 60)
    quote = prose(3, 30)
    changed = quote.replace(quote.split()[15], "changed", 1)
    text = f"{one} {changed} {two} {changed} {one}"
    rows = find(quote, text)
    assert [row[2] for row in rows] == ["ambiguous", "ambiguous"]
    assert all(text[start:end] == changed for start, end, _ in rows)
    worse = changed.replace(changed.split()[5], "worse", 1).replace(changed.split()[25], "bad", 1)
    text = f"{one} {worse} {two} {changed} {one}"
    ((start, end, status),) = find(quote, text)
    assert (text[start:end], status) == (changed, "fuzzy")


def test_the_score_is_the_ratio_and_the_least_is_kept() -> None:
    quote = "the quick brown fox jumps over the lazy dog"
    text = f"yes: {quote.replace('brown', 'green')}!"
    found = locate([quote], None, corpus(d=text))
    # of 43 letters the b, o and w of brown go, and the g and ee of green come
    assert found["score"][0] == pytest.approx(1 - (3 + 3) / (43 + 43))
    assert locate([quote], None, corpus(d=text), min_score=0.95)["status"].to_list() == ["lost"]
    assert locate([quote], None, corpus(d=text), min_score=1.0)["status"].to_list() == ["lost"]


def test_chinese_is_found_nearly() -> None:
    quote = "电池在零度以下不能充电，请先将其置于室温下至少两小时"
    text = "说明书。" + quote.replace("零度", "五度") + "。谢谢。"
    assert find(quote, text) == [(4, 4 + len(quote), "fuzzy")]


def test_a_megabyte() -> None:
    text = prose(5, 200_000)
    assert len(text) > 1_000_000
    words = text.split()
    exact = " ".join(words[100_000:100_050])
    spaced, edited = exact.replace(" ", "\n  ").upper(), exact.replace(words[100_020], "new", 1)
    start = text.index(exact)
    quotes = [exact, spaced, edited, "no " * 20, text, text.upper()]
    for docs in (["d"] * len(quotes), None):
        rows = locate(quotes, docs, corpus(d=text)).select("start", "end", "status").rows()
        assert rows == [
            (start, start + len(exact), "exact"),
            (start, start + len(exact), "normalised"),
            (start, start + len(exact), "fuzzy"),
            (None, None, "lost"),
            (0, len(text), "exact"),
            (0, len(text), "normalised"),
        ]


def test_a_long_quote_with_many_edits_keeps_its_edges() -> None:
    text = prose(6, 30_000)
    start, end = text.index(" ", 40_000) + 1, text.index(" ", 140_000)
    quote = text[start:end].replace("e", "ee", 3000)
    assert find(quote, text) == [(start, end, "fuzzy")]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"d{number}": prose(number, 200) for number in range(20)}
    texts["again"] = texts["d3"]
    quotes = [
        texts["d7"][100:200],
        texts["d3"][50:150],
        texts["d11"][60:160].upper(),
        texts["d12"][60:260].replace(" ", " x", 1),
        "nowhere at all to be seen",
    ]
    names = [None, None, None, "d12", None]
    whole = locate(quotes, names, corpus(**texts))
    assert whole["status"].to_list() == [
        "exact",
        "ambiguous",
        "ambiguous",
        "normalised",
        "fuzzy",
        "lost",
    ]
    monkeypatch.setattr(module, "BLOCK_SIZE", 1000)
    assert locate(quotes, names, corpus(**texts)).equals(whole)


def test_texts_that_say_where_they_are() -> None:
    both = corpus(a="one two one", b="three")
    rows: list[tuple[str | None, str | None, int | None, int | None]] = [
        ("one", "a", 8, 11),  # at its offsets, though it stands elsewhere too
        (None, "a", 4, 7),  # what stands there
        ("two", "a", 0, 3),  # the offsets lead elsewhere
        ("three", "a", None, None),  # it stands in another document
        ("two", "x", 4, 7),  # the document is gone
        ("one", "a", 0, 99),
        (None, "a", 0, 99),
        (None, "x", 0, 1),
        (None, None, None, None),
        ("four", "b", 0, 4),
    ]
    wanted = pl.DataFrame(rows, schema=["text", "doc", "start", "end"], orient="row")
    found = place(wanted, both).select("number", "doc", "start", "end", "status", "text", "note")
    assert found.rows() == [
        (0, "a", 8, 11, "exact", "one", ""),
        (1, "a", 4, 7, "exact", "two", ""),
        (2, "a", 4, 7, "exact", "two", "not at 0–3"),
        (3, "b", 0, 5, "exact", "three", "not in a"),
        (4, "a", 4, 7, "exact", "two", "not in x"),
        (5, "a", 0, 3, "ambiguous", "one", "a 0–3, a 8–11"),
        (5, "a", 8, 11, "ambiguous", "one", "a 0–3, a 8–11"),
        (6, None, None, None, "lost", None, "the document ends before"),
        (7, None, None, None, "lost", None, "no such document"),
        (8, None, None, None, "lost", None, "unknown id"),
        (9, None, None, None, "lost", None, "no such text"),
    ]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("de"), st.integers(0, 30), st.integers(0, 12)), max_size=8),
    st.lists(st.tuples(st.sampled_from("de"), st.integers(0, 30), st.integers(0, 12)), max_size=8),
)
def test_cover_is_what_counting_characters_says(
    spans: list[tuple[str, int, int]], chunks: list[tuple[str, int, int]]
) -> None:
    def table(rows: list[tuple[str, int, int]]) -> pl.DataFrame:
        schema = {"doc": pl.String, "start": pl.Int64, "end": pl.Int64}
        ends = [(doc, start, start + size) for doc, start, size in rows]
        return pl.DataFrame(ends, schema=schema, orient="row")

    held = table(chunks).with_columns(
        chunk=pl.Series([str(n) for n in range(len(chunks))], dtype=pl.String)
    )
    told = cover(table(spans), held).rows()
    for (doc, start, size), (names, share, cut) in zip(spans, told, strict=True):
        mine = set(range(start, start + size))
        sets = [
            mine & set(range(low, low + many)) if other == doc else set()
            for other, low, many in chunks
        ]
        assert set(names) == {str(number) for number, each in enumerate(sets) if each}
        together = len(set().union(*sets))
        assert share == pytest.approx(together / size if size else 0)
        if not together:
            assert cut == "none"
        elif mine in sets:
            assert cut == "whole"
        else:
            assert cut == ("split" if together == size else "partly")


def test_a_span_without_a_place_has_no_cover() -> None:
    nowhere = pl.DataFrame({"doc": [None], "start": [None], "end": [None]}).cast(
        {"doc": pl.String, "start": pl.Int64, "end": pl.Int64}
    )
    chunks = pl.DataFrame({"chunk": ["a"], "doc": ["d"], "start": [0], "end": [5]})
    assert cover(nowhere, chunks).rows() == [([], None, None)]


@pytest.fixture(scope="module")
def published() -> tuple[pl.DataFrame, list[str], list[str], list[tuple[int, int]]]:
    """The corpora, and the quotes of all questions with their documents and offsets."""
    if not SPANS.is_dir():
        pytest.skip("the data of the spans is not there")
    quotes, docs, places = [], [], []
    with (SPANS / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for entry in json.loads(row["references"]):
                quotes.append(entry["content"])
                docs.append(f"{row['corpus_id']}.md")
                places.append((entry["start_index"], entry["end_index"]))
    return load_corpus(SPANS / "corpora"), quotes, docs, places


def spans_of(found: pl.DataFrame) -> list[list[tuple[str, int, int]]]:
    rows = found.group_by("quote", maintain_order=True).agg(pl.struct("doc", "start", "end"))
    return [[tuple(span.values()) for span in spans] for spans in rows["doc"].to_list()]


@pytest.mark.parametrize("named", [True, False])
def test_published_quotes(published: Any, named: bool) -> None:
    """All 790 quotes are found at their offsets; 97 of them stand in other places as well."""
    texts, quotes, docs, places = published
    assert len(quotes) == 790
    found = locate(quotes, docs if named else None, texts)
    for doc, place_, spans in zip(docs, places, spans_of(found), strict=True):
        assert (doc, *place_) in spans
    counts = dict(found.unique("quote")["status"].value_counts().iter_rows())
    assert counts == {"exact": 693, "ambiguous": 97}


def test_published_quotes_that_were_damaged(published: Any) -> None:
    """Of quotes with one letter in twenty wrong, each is found within a few letters."""
    texts, quotes, docs, places = published
    rnd = random.Random(1)
    noisy = ["".join(rnd.choice("xyz") if rnd.random() < 0.05 else c for c in q) for q in quotes]
    found = locate(noisy, docs, texts)
    near = [
        any(abs(start - low) <= 12 and abs(end - high) <= 12 for _, start, end in spans if end)
        for (low, high), spans in zip(places, spans_of(found), strict=True)
    ]
    assert np.mean(near) > 0.99
