"""continuous-eval itself, asked about made-up samples.

It depends on much and lives in an environment of its own (`make .venv/peer`). What it said about
some samples is kept in `tests/golden/continuous-eval.json`, so that all test runs compare with it:

    make .venv/dev .venv/peer && .venv/bin/python -m tests.dialects.continuous_eval_peer
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[2]
PEER = ROOT / ".venv" / "continuous-eval" / "bin" / "python"
GOLDEN = ROOT / "tests" / "golden" / "continuous-eval.json"
NLTK_DATA = "llama_index/core/_static/nltk_cache"
KEPT = 150  # random samples in the golden file

Sample: TypeAlias = dict[str, list[str]]
Values: TypeAlias = dict[str, list[float | None]]  # by relation; None where it stops

# words that differ in case or dots only, what punkt takes for abbreviations and numbers, marks
# alone, several scripts
LINES = (
    "a b c I dog dog. Dog the The fox fox. He It x.y . .. ! ? … é É 1 1.5 $3.50. don't",
    'Dr. Mr. U.S. e.g. i.e. p.m. Jan. No. St. J. etc. a.m. vs. end? end! "Why?" (Fig. 2). Yes.)',
    "日本 日本. 東京。 שלום Ende. straße STRASSE ﬁn ｆｕｌｌ I.B.M. 3. 4) -- —",
)
WORDS = [word for line in LINES for word in line.split()]
SPACES = (" ", " ", " ", " ", "  ", "\n", "\n\n", "\t", "\u00a0", "\u3000", "\r\n", "\u2028")
EDGES = ("", "", "", "", " ", "\n", "\t ", "\u00a0")
ODD = ("", " ", ".", "...", "\n\n", "?", "a", "A.", ". .", "\u200b", "\x00")

# (retrieved, gold): repetitions, spaces before a sentence, abbreviations, nothing at all
WRITTEN = (
    (["a"], ["a", "a"]),
    (["a", "b", "a"], ["a", "b", "a", "c"]),
    (["b", "a b"], ["a", "b"]),
    (["  One thing. Another."], ["One thing.", "Another."]),
    (["One thing. Another."], ["One thing. Another.", "Another. One thing."]),
    (["Dr. Lee left the U.S. at 5 p.m. on Jan. 3. She took No. 4."], ["She took No. 4."]),
    (["The pump costs $3.50. It runs at 1.5 bar, i.e. slowly."], ["It runs at 1.5 bar."]),
    (["Paris is the capital of France. Lyon is not."], ["Lyon is not. Paris is the capital."]),
    (["He asked “Why?” and left. (See Fig. 2.) The end"], ["The end", "(See Fig. 2.)"]),
    ([], ["a"]),
    (["a"], []),
    ([], []),
    ([""], [""]),
    ([".", " ", "..."], [".", " ", "...", "."]),
)


def text(rng: random.Random, most: int) -> str:
    """Return a text of a few words, sometimes with spaces around it."""
    words = rng.choices(WORDS, k=rng.randrange(most))
    parts = [part for word in words for part in (word, rng.choice(SPACES))]
    return rng.choice(EDGES) + "".join(parts[:-1]) + rng.choice(EDGES)


def sample(rng: random.Random) -> Sample:
    """Return retrieved and gold texts: blank, equal, contained, several in one, repeated."""
    gold = [text(rng, 8) for _ in range(rng.randrange(4))]
    retrieved = [text(rng, 16) for _ in range(rng.randrange(6))]
    for texts in (gold, retrieved):
        if rng.random() < 0.1:
            texts.insert(rng.randrange(len(texts) + 1), rng.choice(ODD))
    if gold and rng.random() < 0.6:
        inside = f"{text(rng, 4)} {rng.choice(gold)}{rng.choice(('', ' ', '. '))}{text(rng, 4)}"
        retrieved.insert(rng.randrange(len(retrieved) + 1), rng.choice((rng.choice(gold), inside)))
    if len(gold) > 1 and rng.random() < 0.3:
        retrieved.insert(0, rng.choice((". ", " ", "\n")).join(gold))
    for texts in (gold, retrieved):
        if texts and rng.random() < 0.25:
            texts.insert(rng.randrange(len(texts) + 1), rng.choice(texts))
    return {"retrieved_context": retrieved, "ground_truth_context": gold}


def ask(samples: list[Sample]) -> dict[str, Any]:
    """Return what continuous-eval says about samples, and its version."""
    with tempfile.TemporaryDirectory() as folder:
        known = metadata.distribution("llama-index-core").locate_file(NLTK_DATA)
        shutil.copytree(str(known), f"{folder}/nltk")  # NLTK refuses files that have two names
        kept = {"CONTINUOUS_EVAL_DO_NOT_TRACK": "true", "NLTK_DATA": f"{folder}/nltk"}
        done = subprocess.run(
            [str(PEER), __file__],
            input=json.dumps(samples),
            env={**os.environ, **kept, "XDG_DATA_HOME": folder},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def answer(samples: list[Sample]) -> dict[str, Any]:
    """Compute all of continuous-eval's deterministic retrieval metrics; it runs beside it."""
    import nltk  # type: ignore[import-untyped]

    nltk.download = lambda *_args, **_options: False  # it would fetch data that is there
    from continuous_eval.metrics import retrieval  # type: ignore[import-not-found]

    strategies = {
        "exact": retrieval.ExactChunkMatch(),
        "rouge": retrieval.RougeChunkMatch(),
        "exact-sentence": retrieval.ExactSentenceMatch(),
        "rouge-sentence": retrieval.RougeSentenceMatch(),
    }
    rows: list[Values] = []
    for each in samples:
        row: Values = {}
        for name, strategy in strategies.items():
            row[name] = [*retrieval.PrecisionRecallF1(strategy).compute(**each).values()]
            if not name.endswith("-sentence"):
                row[name] += ranked(retrieval.RankedRetrievalMetrics(strategy), each)
        rows.append(row)
    packages = ("continuous-eval", "nltk", "rouge")
    return {"versions": {name: metadata.version(name) for name in packages}, "values": rows}


def ranked(metric: Any, each: Sample) -> list[float | None]:
    """Compute the ranked metrics, which stop without gold."""
    try:
        return [*metric.compute(**each).values()]
    except ZeroDivisionError:
        return [None, None, None]


def write_golden() -> None:
    """Write the golden file anew."""
    rng = random.Random(21)
    samples = [
        {"retrieved_context": retrieved, "ground_truth_context": gold}
        for retrieved, gold in WRITTEN
    ]
    samples += [sample(rng) for _ in range(KEPT)]
    told = ask(samples)
    cases = [
        {**each, "values": values} for each, values in zip(samples, told["values"], strict=True)
    ]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    versions = json.dumps(told["versions"])
    GOLDEN.write_text(f'{{"versions": {versions},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    if sys.prefix.endswith("continuous-eval"):
        json.dump(answer(json.load(sys.stdin)), sys.stdout)
    else:
        write_golden()
