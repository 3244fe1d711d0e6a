"""A judge of your own: any function that looks at a sample and returns verdicts.

    python examples/own_judge.py

Where there are no labels, a judge says which chunks help. The function below counts shared words,
so that the example needs no model; yours may call one. What it raises or answers wrongly becomes a
failure with a reason, which is counted and never scored as 0.
"""

import json
import re
from pathlib import Path
from typing import Any

import findwell

DEMO = Path(findwell.__file__).parent / "demo"
COMMON = frozenset(
    ["a", "an", "and", "do", "does", "for", "how", "i", "is", "it", "my", "of", "the", "to"]
)


def words(text: str) -> set[str]:
    """Return the words of a text that say something."""
    return set(re.findall(r"\w+", text.casefold())) - COMMON


def shared_words(sample: Any) -> dict[str, list[int]]:  # noqa: ANN401 - findwell's sample
    """Grade each chunk from 0 to 3 by how many words of the question it has."""
    question = words(sample.question)
    shares = [len(question & words(chunk)) / len(question) for chunk in sample.chunks]
    return {"relevance": [min(3, int(4 * share)) for share in shares]}


def lines(name: str) -> list[dict[str, Any]]:
    """Read a file of the demo."""
    return [json.loads(line) for line in (DEMO / name).read_text("utf-8").splitlines()]


# samples as a RAG pipeline logs them: a question and the texts of what was retrieved
texts = {passage["doc"]: passage["text"] for passage in lines("passages.jsonl")}
retrieved: dict[str, list[str]] = {}
for line in (DEMO / "bm25.trec").read_text("utf-8").splitlines():
    query, _, doc = line.split()[:3]
    retrieved.setdefault(query, []).append(texts[doc])
samples = [
    {
        "query": question["query"],
        "question": question["question"],
        "retrieved": retrieved[question["query"]][:5],
    }
    for question in lines("questions.jsonl")[:20]
]

judged = findwell.judges.judge(
    samples, ["context_precision", "nDCG@5/relevance"], judge=shared_words
)
for measure, value in judged.values.items():
    print(f"{measure}: {value:.3f}")

# how far to trust it: the same questions, labelled by a person
by_person = findwell.evaluate(
    DEMO / "bm25.trec",
    lines("questions.jsonl")[:20],
    ["AP(over=retrieved)@5"],
)
print(f"by the labels of a person: {by_person['AP(over=retrieved)@5']:.3f}")
