"""Which cosine tells a chunk that holds a gold text from one that does not?

`python -m benchmarks.threshold DATA` prints the tables of docs/matching.md; DATA holds the public
sets `spans` (chunking_evaluation) and `clapnq`. For each question the ten chunks that MiniLM ranks
first are compared with each gold text; the truth is what the relation `spans` says: a chunk covers
a gold text of which it holds at least half.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.report import Table
from findwell.judges.embeddings import find_embedder
from findwell.relations.match.rouge import rouge_l_recall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.core.data import Bools, Floats

SIZES = (60, 200)  # words of a chunk
DEPTH, HELD, ROUGE = 10, 0.5, 0.7
STEPS = np.round(np.arange(0.3, 0.96, 0.01), 2)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A text, and for each question the stretches of it that are gold."""

    text: str
    questions: list[tuple[str, list[tuple[int, int]]]]


def spans(folder: Path) -> list[Corpus]:
    """Read the questions with gold spans over five corpora."""
    with (folder / "spans/questions_df.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    made = []
    for path in sorted((folder / "spans/corpora").glob("*.md")):
        questions = [
            (
                row["question"],
                [(g["start_index"], g["end_index"]) for g in json.loads(row["references"])],
            )
            for row in rows
            if row["corpus_id"] == path.stem
        ]
        made.append(Corpus(path.read_text(encoding="utf-8"), questions))
    return made


def clapnq(folder: Path) -> list[Corpus]:
    """Read the questions with selected sentences; all passages are one corpus."""
    text, questions = "", []
    for name in ("answerable", "unanswerable"):
        for line in (folder / f"clapnq/clapnq_dev_{name}.jsonl").open(encoding="utf-8"):
            record = json.loads(line)
            gold = []
            for sentence in record["passages"][0]["sentences"]:
                if sentence in (record["output"][0].get("selected_sentences") or []):
                    gold.append((len(text), len(text) + len(sentence)))
                text += sentence + " "
            text += "\n\n"
            questions.append((record["input"], gold))
    return [Corpus(text, [each for each in questions if each[1]])]


class Pairs(NamedTuple):
    """Retrieved chunks and gold texts: how alike they are, and which chunks hold the text."""

    cosine: Floats
    rouge: Floats
    holds: Bools


def pairs(corpus: Corpus, size: int) -> Pairs:
    """Compare the chunks that are retrieved for each question with its gold texts."""
    words = list(re.finditer(r"\S+", corpus.text))
    cut = [
        (words[at].start(), words[min(at + size, len(words)) - 1].end())
        for at in range(0, len(words), size)
    ]
    chunks = [corpus.text[start:end] for start, end in cut]
    golds = [(start, end) for _, gold in corpus.questions for start, end in gold]
    asked = np.repeat(np.arange(len(corpus.questions)), [len(gold) for _, gold in corpus.questions])
    embed = find_embedder("minilm").embed
    meanings = embed(chunks)
    nearness = embed([question for question, _ in corpus.questions]) @ meanings.T
    top = np.argsort(-nearness, axis=1)[:, :DEPTH][asked]
    unit, item = top.ravel(), np.repeat(np.arange(len(golds)), top.shape[1])
    texts = [corpus.text[start:end] for start, end in golds]
    low, high = np.array(cut).T
    start, end = np.array(golds).T
    held = np.minimum(high[unit], end[item]) - np.maximum(low[unit], start[item])
    return Pairs(
        (meanings[unit] * embed(texts)[item]).sum(axis=1, dtype=np.float64),
        rouge_l_recall(chunks, texts, (unit, item)),
        held >= HELD * (end - start)[item],
    )


def judge(said: Bools, holds: Bools) -> tuple[float, float]:
    """Return balanced accuracy and F1 of verdicts."""
    true, positive = int(np.count_nonzero(said & holds)), int(np.count_nonzero(holds))
    recall = true / max(positive, 1)
    precision = true / max(int(np.count_nonzero(said)), 1)
    rejected = int(np.count_nonzero(~said & ~holds)) / max(len(holds) - positive, 1)
    f1 = 2 * precision * recall / (precision + recall) if true else 0.0
    return (recall + rejected) / 2, f1


def study(folder: Path) -> Iterator[Table]:
    """Try all thresholds on all sets."""
    rows = []
    curves: dict[str, Floats] = {}
    for name, read in (("spans", spans), ("clapnq", clapnq)):
        for size in SIZES:
            parts = zip(*(pairs(corpus, size) for corpus in read(folder)), strict=True)
            found = Pairs(*(np.concatenate(part) for part in parts))
            scores = np.array([judge(found.cosine >= step, found.holds) for step in STEPS])
            curves[f"{name}, {size} words"] = scores
            best = [f"{scores[at, n]:.2f} at {STEPS[at]}" for n, at in enumerate(scores.argmax(0))]
            rouge = "{:.2f}, {:.2f}".format(*judge(found.rouge >= ROUGE, found.holds))
            share = f"{found.holds.mean():.0%}"
            rows.append((name, str(size), f"{len(found.holds):,}", share, *best, rouge))
    header = ("set", "words", "pairs", "hold it", "balanced accuracy", "F1", "rouge")
    yield Table("The best thresholds", "", header, rows)
    steps = range(len(STEPS))[20:51:5]
    lines = [
        (str(STEPS[at]), *("{:.2f}, {:.2f}".format(*scores[at]) for scores in curves.values()))
        for at in steps
    ]
    yield Table("Balanced accuracy and F1", "", ("threshold", *curves), lines)


if __name__ == "__main__":
    for table in study(Path(sys.argv[1])):
        print(table.markdown())
