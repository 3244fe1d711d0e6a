"""BM25 over the demo's passages with its two knobs, and retrievers that misbehave: real ones."""

import json
import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import findwell
from tests.lazy import lazy

bm25s = lazy("bm25s")

DEMO = Path(findwell.__file__).parent / "demo"
GOLD = DEMO / "questions.jsonl"
Search = Callable[..., list[tuple[str, float]]]


def words(text: str) -> list[str]:
    found: list[list[str]] = bm25s.tokenize(
        [text], stopwords="en", return_ids=False, show_progress=False
    )
    return found[0]


@cache
def passages() -> tuple[list[str], list[list[str]]]:
    rows = [json.loads(line) for line in (DEMO / "passages.jsonl").read_text().splitlines()]
    return [row["doc"] for row in rows], [words(row["text"]) for row in rows]


@cache
def indexed(k1: float, b: float) -> Any:
    index = bm25s.BM25(k1=k1, b=b)
    index.index(passages()[1], show_progress=False)
    return index


def make_retriever(k1: float = 1.5, b: float = 0.75) -> Search:
    docs, index = passages()[0], indexed(k1, b)

    def search(question: str, k: int = 10) -> list[tuple[str, float]]:
        scores = index.get_scores(words(question))
        return [(docs[at], float(scores[at])) for at in scores.argsort()[::-1][:k]]

    return search


def make_noted(k1: float = 1.5, b: float = 0.75) -> Search:
    """Note every question in the file that NOTES names, before it is answered, and take a while."""
    search = make_retriever(k1, b)

    def noted(question: str, k: int = 10) -> list[tuple[str, float]]:
        with Path(os.environ["NOTES"]).open("a", encoding="utf-8") as file:
            file.write(f"{k1} {b} {question}\n")
        time.sleep(0.002)
        return search(question, k)

    return noted


def make_flaky(k1: float = 1.5, b: float = 0.75) -> Search:
    """Fail for every tenth question."""
    search, asked = make_retriever(k1, b), [0]

    def flaky(question: str, k: int = 10) -> list[tuple[str, float]]:
        asked[0] += 1
        if asked[0] % 10 == 0:
            raise ConnectionError("the index is away")
        return search(question, k)

    return flaky
