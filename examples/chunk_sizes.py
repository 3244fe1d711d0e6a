"""Chunks of 200, 400 and 800 characters, compared at the same cost instead of the same K.

    python examples/chunk_sizes.py

Five chunks of 800 characters hold four times the text of five chunks of 200, so `recall@5` says
little about which size is better. With a budget of tokens every size fills the same context.

The documents are the chapters of the demo's help centre; the gold is where in them the passages
stand that answer a question, so the labels survive every chunker (`spans`). BM25 ranks the chunks.
"""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import findwell

DEMO = Path(findwell.__file__).parent / "demo"
SIZES = (200, 400, 800)
DEPTH = 100  # chunks that are retrieved: enough to fill every budget below
MEASURES = ["recall@5/spans", "recall@250,500,1000tokens/spans", "tokens@5/spans"]


def records(name: str) -> list[dict[str, Any]]:
    """Read the JSON objects of a file, one a line."""
    return [json.loads(line) for line in (DEMO / name).read_text("utf-8").splitlines()]


def chapters() -> tuple[dict[str, str], dict[str, tuple[str, int, int]]]:
    """Join the passages to chapters; return these, and where each passage stands."""
    texts: dict[str, str] = {}
    places = {}
    for passage in records("passages.jsonl"):
        chapter = passage["doc"].rpartition("-")[0]
        before = texts.get(chapter, "")
        start = len(before) + 1 if before else 0
        texts[chapter] = f"{before} {passage['text']}" if before else passage["text"]
        places[passage["doc"]] = (chapter, start, start + len(passage["text"]))
    return texts, places


def split(text: str, size: int) -> list[tuple[int, int]]:
    """Cut a text between words into pieces of at most `size` characters."""
    found, start = [], 0
    while start < len(text):
        end = min(start + size, len(text))
        if end < len(text):
            end = text.rfind(" ", start, end) + 1 or end
        found.append((start, end))
        start = end
    return found


def words(text: str) -> list[str]:
    """Return the words of a text, without their endings as far as a rule can tell."""
    return [re.sub(r"(ing|ed|es|s|e)$", "", word) for word in re.findall(r"\w+", text.casefold())]


def bm25(chunks: list[dict[str, Any]], questions: dict[str, str]) -> list[dict[str, Any]]:
    """Rank the chunks for every question: a stand-in for your retriever."""
    counts = [Counter(words(chunk["text"])) for chunk in chunks]
    length = [sum(count.values()) for count in counts]
    usual = sum(length) / len(length)
    having = Counter(word for count in counts for word in count)
    weight = {word: math.log(1 + (len(chunks) - n + 0.5) / (n + 0.5)) for word, n in having.items()}

    def score(at: int, asked: set[str]) -> float:
        long = 1.2 * (0.25 + 0.75 * length[at] / usual)
        hits = ((word, counts[at][word]) for word in asked if counts[at][word])
        return sum(weight[word] * n * 2.2 / (n + long) for word, n in hits)

    run = []
    for query, question in questions.items():
        asked = set(words(question))
        best = sorted(range(len(chunks)), key=lambda at: -score(at, asked))[:DEPTH]
        run.append({"query": query, "retrieved": [chunks[at] for at in best]})
    return run


def gold(places: dict[str, tuple[str, int, int]]) -> list[dict[str, Any]]:
    """Return the questions with the places of their answers instead of the ids of passages."""
    found = []
    for question in records("questions.jsonl"):
        items = [
            [
                dict(zip(("doc", "start", "end"), places[doc], strict=True), grade=item["grade"])
                for doc in item["docs"]
            ]
            for item in question["gold"]
        ]
        found.append({**question, "gold": items})
    return found


def main() -> findwell.Result:
    """Measure the three sizes, print them, and draw recall over the tokens of the context."""
    documents, places = chapters()
    questions = {row["query"]: row["question"] for row in records("questions.jsonl")}
    runs = {}
    for size in SIZES:
        chunks = [
            {"doc": name, "text": text[start:end], "start": start, "end": end}
            for name, text in documents.items()
            for start, end in split(text, size)
        ]
        runs[f"{size} characters"] = bm25(chunks, questions)
    result = findwell.evaluate(runs, gold(places), MEASURES)
    for name in result.runs:
        shown = {str(each): result[name, str(each)] for each in result.measures}
        print(f"{name}:  " + "  ".join(f"{each} {value:.3f}" for each, value in shown.items()))
    return result


if __name__ == "__main__":
    main()
