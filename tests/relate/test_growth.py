"""What drawing a relation costs grows with the texts: long, repetitive and many equal ones.

Every relation that a rule draws from texts is measured on inputs of two sizes, in one query and in
many. What grows with a product, and so is left out, stands in docs/matching.md: the pairs of
relations that score every chunk with every gold text, where both are many, and the length of two
long texts in ROUGE-L.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import findwell
from findwell.relations.match import known_matchers
from findwell.relations.match.spans import Spans, SpanWords
from findwell.relations.spans.place import overlapping
from tests.growth import assert_near_linear

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SMALL, FACTOR = 5_000, 8
PLACES = (Spans, SpanWords)
OVER_TEXTS = [
    name
    for name, matcher in known_matchers().items()
    if matcher.reads_texts and not matcher.judged and matcher not in PLACES
]
OVER_TEXTS += ["rouge(form=union)", "exact(text=raw)", "exact-sentence(splitter=lines)"]


def _texts(count: int, seed: int) -> list[str]:
    rows = np.random.default_rng(seed).integers(0, 5_000, (count, 8)).tolist()
    return [" ".join(f"w{number}" for number in row) for row in rows]


SHAPES: dict[str, Callable[[int], tuple[list[str], list[str]]]] = {
    "one word again and again": lambda n: (["a " * n], ["a " * (n // 2)]),
    "a word in the middle": lambda n: (["a " * n], ["a " * (n // 2) + "b" + " a" * (n // 2)]),
    "a word at either end": lambda n: (["a " * n + "b", "b" + " a" * n], ["b " + "a " * n + "b"]),
    "a script without spaces": lambda n: (["東" * n], ["東" * (n // 2) + "京"]),
    "one character": lambda n: (["x " + "a" * 8 * n], ["x " + "a" * 4 * n + "b"]),
    "full stops": lambda n: (["x " + "." * 8 * n], ["x " + "." * 8 * n + " y"]),
    "quotation marks": lambda n: (["x " + "'" * 8 * n + "y"], ["x " + "’" * 8 * n + "y"]),
    "marks": lambda n: (["x a" + "\u0301" * 4 * n], ["x a" + "\u0301" * 4 * n + "b"]),
    "lines": lambda n: (["a\n" * n], ["b a\n" * 4]),
    "equal chunks": lambda n: (["the same text"] * n, ["the same text", "another text"]),
    "equal gold": lambda n: (["the same text", "another text"], ["the same text"] * n),
    "equal chunks and gold": lambda n: (["the same text"] * n, ["the same text"] * n),
    "many chunks": lambda n: (_texts(n, 1), _texts(3, 2)),
    "many gold texts": lambda n: (_texts(3, 1), _texts(n, 2)),
}


def _embedded(texts: Sequence[str]) -> list[list[float]]:
    return [[len(text) % 7 + 1.0, text.count("w1"), text.count("a") % 5] for text in texts]


def _score(records: list[dict[str, Any]], by: str) -> None:
    findwell.evaluate(
        records, measures=["recall"], by=by, embedder=_embedded if by == "semantic" else None
    )


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("by", OVER_TEXTS)
def test_one_query(by: str, shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    small, large = (
        [{"query": "q", "retrieved": retrieved, "gold": gold}]
        for retrieved, gold in map(SHAPES[shape], (SMALL, FACTOR * SMALL))
    )
    assert_near_linear(lambda: _score(small, by), lambda: _score(large, by), FACTOR)


@pytest.mark.slow
@pytest.mark.parametrize("by", OVER_TEXTS)
def test_many_queries(by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texts = _texts(5 * FACTOR * 400, 3)
    records = [
        {"query": f"q{at}", "retrieved": texts[at : at + 3], "gold": texts[at + 2 : at + 5]}
        for at in range(0, len(texts), 5)
    ]
    small = records[:400]
    assert_near_linear(lambda: _score(small, by), lambda: _score(records, by), FACTOR)


def _tiles(size: int) -> tuple[list[Any], list[Any]]:
    chunks = [{"doc": "d", "start": 100 * at, "end": 100 * at + 100} for at in range(size)]
    gold = [{"doc": "d", "start": 100 * at + 30, "end": 100 * at + 130} for at in range(size)]
    return chunks, gold


def _one_long_chunk(size: int) -> tuple[list[Any], list[Any]]:
    chunks, gold = _tiles(size)
    return [{"doc": "d", "start": 0, "end": 100 * size}, *chunks], gold


def _one_long_gold(size: int) -> tuple[list[Any], list[Any]]:
    chunks, _ = _tiles(size)
    return chunks, [{"doc": "d", "start": 0, "end": 100 * size}]


@pytest.mark.parametrize("shape", [_tiles, _one_long_chunk, _one_long_gold])
def test_places(shape: Callable[[int], tuple[list[Any], list[Any]]]) -> None:
    small, large = (
        [{"query": "q", "retrieved": retrieved, "gold": gold}]
        for retrieved, gold in map(shape, (1_000, FACTOR * 1_000))
    )
    assert_near_linear(lambda: _score(small, "spans"), lambda: _score(large, "spans"), FACTOR)


def test_words_at_places() -> None:
    def records(size: int) -> list[dict[str, Any]]:
        text = "ab " * (10 * size)
        chunks = [
            {"doc": "d", "start": at, "end": at + 30, "text": text[at : at + 30]}
            for at in range(0, 30 * size, 30)
        ]
        return [{"query": "q", "retrieved": chunks, "gold": chunks[::2]}]

    small, large = records(500), records(FACTOR * 500)
    assert_near_linear(
        lambda: _score(small, "span-words"), lambda: _score(large, "span-words"), FACTOR
    )


def test_overlaps_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(5)

    def table(rows: int) -> pl.DataFrame:
        start = rng.integers(0, 60, rows)
        end = start + rng.choice([-1, 0, 1, 2, 5, 30, 60], rows)
        known = pl.DataFrame({"doc": rng.choice(["a", "b"], rows), "start": start, "end": end})
        lost = pl.Series(rng.random(rows) < 0.1)
        return known.with_columns(pl.when(~lost).then(pl.col("doc", "start")))

    for _ in range(200):
        spans, chunks = table(int(rng.integers(0, 12))), table(int(rng.integers(0, 12)))
        found = overlapping(spans, chunks, ["doc"])
        wanted = [
            (one, other)
            for one, (doc, low, high) in enumerate(spans.rows())
            for other, (name, start, end) in enumerate(chunks.rows())
            if doc is not None and doc == name and max(low, start) < min(high, end)
        ]
        assert list(zip(*(rows.tolist() for rows in found), strict=True)) == wanted
