"""ROUGE-L: findwell's two definitions next to `rouge` and `rouge-score`, pairs a second."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.data import ROOT, SEED
from benchmarks.report import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.sections import Facts

    Score = Callable[[Sequence[str], Sequence[str]], list[float]]

ROUGE = """\
From texts in memory to the recall of each pair, tokenising included, every text another one. Of
the items a third is cut from its chunk, a third is that with a sixth of its words exchanged, a
third is from elsewhere. The package `rouge` has a definition of its own (unique words, the union
of the subsequences of all sentences): it faces findwell's reproduction of it, `rouge-score` faces
findwell's default, and *ratio* is how often the findwell they face would have done their work in
their time. They are asked for ROUGE-L only and score as many pairs as they can in {patience:.0f}
seconds; all their scores must be findwell's, and pruning at {least} must change no verdict. The
best of the
rounds, each in a process of its own."""
CHUNK = 512
ITEMS = (40, 512)  # words of the items
LEAST = 0.7  # the threshold of the pruned rows
PATIENCE = 5.0  # seconds that a peer may take a round
WARM = 5  # pairs before the clock starts
VOCABULARY, SENTENCE = 20_000, 18  # words


@dataclass(frozen=True, slots=True)
class Tool:
    """A way to score pairs; those that face the same findwell share a definition."""

    faces: str
    score: Callable[[], Score]
    package: str = ""  # a peer's
    least: float = 0.0  # scores below may differ

    def absent(self) -> bool:
        """Tell whether it cannot run here."""
        return bool(self.package) and not importlib.util.find_spec(self.package.replace("-", "_"))


def _findwell(function: str, least: float) -> Score:
    import numpy as np

    from findwell.relations.match import rouge

    def score(units: Sequence[str], items: Sequence[str]) -> list[float]:
        pairs = np.arange(len(units)), np.arange(len(units))
        found: list[float] = getattr(rouge, function)(units, items, pairs, min_score=least).tolist()
        return found

    return score


def _rouge() -> Score:
    from rouge import Rouge

    scorer = Rouge(metrics=["rouge-l"], stats=["r"])
    return _one_by_one(lambda unit, item: scorer.get_scores(unit, item)[0]["rouge-l"]["r"])


def _rouge_score() -> Score:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    return _one_by_one(lambda unit, item: scorer.score(item, unit)["rougeL"].recall)


def _one_by_one(one: Callable[[str, str], float]) -> Score:
    def score(units: Sequence[str], items: Sequence[str]) -> list[float]:
        end = time.perf_counter() + PATIENCE
        found = []
        for unit, item in zip(units, items, strict=True):
            found.append(float(one(unit, item)))
            if time.perf_counter() > end:
                break
        return found

    return score


OURS, LIKE_ROUGE = "findwell", "findwell, as rouge"
PRUNED = f"pruned at {LEAST}"
TOOLS: dict[str, Tool] = {
    OURS: Tool(OURS, lambda: _findwell("rouge_l_recall", 0.0)),
    f"{OURS}, {PRUNED}": Tool(OURS, lambda: _findwell("rouge_l_recall", LEAST), least=LEAST),
    "rouge-score": Tool(OURS, _rouge_score, "rouge-score"),
    LIKE_ROUGE: Tool(LIKE_ROUGE, lambda: _findwell("union_lcs_recall", 0.0)),
    f"{LIKE_ROUGE}, {PRUNED}": Tool(
        LIKE_ROUGE, lambda: _findwell("union_lcs_recall", LEAST), least=LEAST
    ),
    "rouge": Tool(LIKE_ROUGE, _rouge, "rouge"),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The scores of the first pairs, and how many a second."""

    speed: float
    scores: list[float]


def rouge(pairs: int, rounds: int, facts: Facts) -> Table:
    """Time all tools on so many pairs of either size."""
    rows = []
    for length in ITEMS:
        with tempfile.TemporaryDirectory(prefix="findwell-bench-") as folder:
            texts = Path(folder) / "texts.json"
            texts.write_text(json.dumps(_texts(length, pairs)), encoding="utf-8")
            found = _measure(length, texts, rounds)
        for name, each in found.items():
            ours = found[TOOLS[name].faces]
            facts.disagreements += _disagreements(name, length, each, ours)
            ratio = f"{ours.speed / each.speed:,.1f}"
            cells = [_label(name), f"{len(each.scores):,}", f"{each.speed:,.0f}", ratio]
            rows.append([f"{CHUNK} × {length}", *cells])
        absent = [name for name, tool in TOOLS.items() if tool.absent()]
        rows += [[f"{CHUNK} × {length}", name, "not installed", "–", "–"] for name in absent]
    header = ("words", "tool", "pairs", "pairs a second", "ratio")
    return Table("8. ROUGE-L", ROUGE.format(patience=PATIENCE, least=LEAST), header, rows, texts=2)


def _measure(length: int, texts: Path, rounds: int) -> dict[str, Measured]:
    """Run each tool in every round, in a process of its own."""
    best: dict[str, Measured] = {}
    for number in range(1, rounds + 1):
        for name in (name for name, tool in TOOLS.items() if not tool.absent()):
            command = [sys.executable, "-m", "benchmarks.rouge", name, str(texts)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            measured = Measured(**json.loads(done.stdout))
            said = f"{name}, {CHUNK} × {length}: {measured.speed:,.0f} pairs a second"
            print(f"round {number} of {rounds}  {said}", file=sys.stderr)
            if name not in best or measured.speed > best[name].speed:
                best[name] = measured
    return best


def _label(name: str) -> str:
    package = TOOLS[name].package
    return f"{name} {metadata.version(package)}" if package else name


def _disagreements(name: str, length: int, found: Measured, ours: Measured) -> list[str]:
    """Name the first score that is not findwell's, or not on the same side of the threshold."""
    least = TOOLS[name].least
    for number, (theirs, mine) in enumerate(zip(found.scores, ours.scores, strict=False)):
        if abs(theirs - mine) > 1e-9 and max(theirs, mine) >= least:
            return [f"{name}, pair {number} of {CHUNK} × {length}: {theirs}, findwell's is {mine}"]
    return []


def chunk(rng: random.Random, length: int = CHUNK) -> list[str]:
    """Return so many words as frequent as in a language, with a full stop here and there."""
    vocabulary, frequency = _vocabulary()
    words = rng.choices(vocabulary, cum_weights=frequency, k=length)
    return [f"{word}." if rng.randrange(SENTENCE) == 0 else word for word in words]


def gold(rng: random.Random, source: Sequence[str], length: int) -> list[str]:
    """Return an item for a chunk: cut from it, that with some words exchanged, or another text."""
    kind = rng.randrange(3)
    if kind == 2:
        return chunk(rng, length)
    start = rng.randrange(len(source) - length + 1)
    words = list(source[start : start + length])
    for place in rng.sample(range(length), kind * length // 6):
        words[place] = rng.choice(_vocabulary()[0])
    return words


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """Return words, and how often the first so many occur (Zipf's law)."""
    rng = random.Random(SEED)
    letters = "etaoinshrdlucmwfgypbvk"
    words = {"".join(rng.choices(letters, k=rng.randrange(2, 11))): None for _ in range(VOCABULARY)}
    return list(words), list(accumulate(1 / rank for rank in range(1, len(words) + 1)))


def _texts(length: int, pairs: int) -> tuple[list[str], list[str]]:
    """Return chunks, and an item for each."""
    rng = random.Random(SEED)
    chunks = [chunk(rng) for _ in range(pairs)]
    items = [" ".join(gold(rng, source, length)) for source in chunks]
    return [" ".join(words) for words in chunks], items


def main() -> None:
    """Score with the tool that the arguments name; print what was measured in JSON."""
    name, texts = sys.argv[1:]
    units, items = json.loads(Path(texts).read_text(encoding="utf-8"))
    score = TOOLS[name].score()
    score(units[:WARM], items[:WARM])
    start = time.perf_counter()
    scores = score(units, items)
    speed = len(scores) / (time.perf_counter() - start)
    print(json.dumps({"speed": speed, "scores": scores}))


if __name__ == "__main__":
    main()
