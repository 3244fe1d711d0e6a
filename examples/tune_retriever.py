"""How should BM25 be set up? Configurations are asked, few questions first, then more.

    python examples/tune_retriever.py

A space says which values each knob may have. All configurations are asked a few questions, the best
of them more. What the best is worth, and whether that is more than today's, is then measured on
questions that were not asked before.
"""

# needs the packages bm25s and PyStemmer; `make test` installs them

import json
from collections.abc import Callable
from pathlib import Path

import bm25s
import Stemmer

import findwell

DEMO = Path(findwell.__file__).parent / "demo"
SPACE = {
    "knobs": {"k1": [0.8, 1.2, 1.6], "b": [0.25, 0.5, 0.75], "stem": [True, False]},
    "current": {"k1": 1.2, "b": 0.75, "stem": False},
    "retrieval": {"k": 10},
}
PASSAGES = [json.loads(line) for line in (DEMO / "passages.jsonl").read_text("utf-8").splitlines()]
DOCS = [row["doc"] for row in PASSAGES]


def make_retriever(k1: float, b: float, *, stem: bool) -> Callable[..., list[str]]:
    """Return a retriever with these values of the knobs."""
    stemmer = Stemmer.Stemmer("english") if stem else None

    def words(texts: list[str]) -> list[list[str]]:
        found: list[list[str]] = bm25s.tokenize(
            texts, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False
        )
        return found

    index = bm25s.BM25(k1=k1, b=b)
    index.index(words([row["text"] for row in PASSAGES]), show_progress=False)

    def search(question: str, k: int = 10) -> list[str]:
        scores = index.get_scores(words([question])[0])
        return [DOCS[at] for at in scores.argsort()[::-1][:k]]

    return search


tuning = findwell.tuning.tune(make_retriever, DEMO / "questions.jsonl", "nDCG@10", space=SPACE)
print(f"chosen: {tuning.chosen}")
print(f"on the questions that chose it: {tuning.in_sample.value:.3f}")
print(f"on others: {tuning.held_out.value:.3f}")
(gain,) = tuning.gains
verdict = gain.verdict
print(f"gain over {tuning.current}: {verdict.difference.value:+.3f}, {verdict.word}")
if gain.needed is not None:
    print(f"to show a gain of this size takes about {gain.needed} questions")
everything = len(tuning.grid.settings) * len(tuning.asked.queries)
print(f"{tuning.asked.calls.asked} questions asked instead of {everything}")
