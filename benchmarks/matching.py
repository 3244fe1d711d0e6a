"""Matching texts end to end: findwell and continuous-eval's PrecisionRecallF1 on the same data.

continuous-eval lives in an environment of its own, which `make bench` sets up: it depends on much
that would get in the way here. This file runs there too, so its beginning imports nothing else.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Table
    from benchmarks.sections import Facts
    from findwell.core.data import Floats, Ints

ROOT = Path(__file__).parent.parent
PEER = ROOT / ".venv" / "continuous-eval" / "bin" / "python"
MATCHING, NAME = "matching", "continuous-eval"
MEASURES = ("precision", "recall", "f1")
CHUNKS, GOLD, CHUNK_WORDS, GOLD_WORDS = 10, 3, 512, 40
PATIENCE = 15.0  # seconds of continuous-eval a round; it does as many queries as fit
BATCH = 20  # queries that it is given at once
REMARK = """\
{queries:,} queries × {chunks} chunks of {chunk_words} words × {gold} gold texts of {gold_words}
words, from a file of JSON lines to precision, recall and F1 of each query: of the gold texts a
third is cut from a chunk, a third is that with a sixth of its words exchanged, a third is from
elsewhere. continuous-eval's `PrecisionRecallF1(RougeChunkMatch())` is called as its documentation
has it, `batch`, which uses all cores. {scaled}findwell must give the same
numbers in its dialect `continuous-eval`; next to it is its own definition of ROUGE-L. *Unpruned*
compares every pair to the end, and must draw the same edges. *Ratio* is the time of
continuous-eval divided by that of the row. The best of the rounds, each in a process of its own
that has matched before."""
SCALED = """\
At its full size that would take too long here: {timed} queries were timed, and the time is scaled
to all of them. """
OURS = "findwell, as continuous-eval"
WAYS = {
    OURS: ("continuous-eval", False),
    f"{OURS}, unpruned": ("continuous-eval", True),
    "findwell": ("findwell", False),
    "findwell, unpruned": ("findwell", True),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """How long it took, the measures of each query, and what findwell drew."""

    seconds: float
    rows: list[list[float]]
    edges: list[list[int]] = field(default_factory=list)
    version: str = ""  # of a peer


def matching(folder: Path, queries: int, rounds: int, facts: Facts) -> Table:
    """Time all ways on this many queries, note the ratio and whether the numbers agree."""
    from benchmarks.report import Table

    path = _file(folder, queries)
    best: dict[str, Measured] = {}
    for number in range(1, rounds + 1):
        for way in [*WAYS, *([NAME] if PEER.exists() else [])]:
            found = _run(way, path)
            seconds = found.seconds * queries / len(found.rows)
            if way not in best or seconds < best[way].seconds:
                best[way] = replace(found, seconds=seconds)
            print(f"round {number} of {rounds}  {way}: {seconds:.3g} s", file=sys.stderr)
    facts.disagreements += _disagreements(best)
    theirs = best.get(NAME)
    if theirs:
        facts.ratios[MATCHING, NAME] = theirs.seconds / best[OURS].seconds
    rows = [_row(way, found, theirs, queries) for way, found in best.items()]
    rows += [] if theirs else [(NAME, "not installed", "–", "–")]
    header = ("tool", "seconds", "pairs a second", "ratio")
    return Table("9. Matching texts", _remark(queries, theirs), header, rows)


def _row(way: str, found: Measured, theirs: Measured | None, queries: int) -> tuple[str, ...]:
    ratio = f"{theirs.seconds / found.seconds:,.0f}" if theirs else "–"
    pairs = f"{queries * CHUNKS * GOLD / found.seconds:,.0f}"
    return f"{way} {found.version}".strip(), f"{found.seconds:.2f}", pairs, ratio


def _remark(queries: int, theirs: Measured | None) -> str:
    timed = len(theirs.rows) if theirs else queries
    return REMARK.format(
        queries=queries,
        chunks=CHUNKS,
        chunk_words=CHUNK_WORDS,
        gold=GOLD,
        gold_words=GOLD_WORDS,
        scaled=SCALED.format(timed=timed) if timed < queries else "",
    )


def _disagreements(best: dict[str, Measured]) -> list[str]:
    """Name the first batch that differs, and pruning that draws other edges.

    The original returns a batch in the order in which its processes finish.
    """
    said = [
        f"{way}: pruning changes a verdict"
        for way in ("findwell", OURS)
        if best[way].edges != best[f"{way}, unpruned"].edges
    ]
    theirs = best[NAME].rows if NAME in best else []
    for start in range(0, len(theirs), BATCH):
        batches = (sorted(rows[start : start + BATCH]) for rows in (best[OURS].rows, theirs))
        pairs = [pair for row in zip(*batches, strict=True) for pair in zip(*row, strict=True)]
        if any(abs(mine - other) > 1e-9 for mine, other in pairs):
            return [*said, f"{NAME}: some of the queries from {start} on differ from findwell's"]
    return said


def _run(way: str, path: Path) -> Measured:
    python = str(PEER) if way == NAME else sys.executable
    done = subprocess.run(
        [python, "-m", "benchmarks.matching", way, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{way} failed:\n{done.stderr}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def _file(folder: Path, queries: int) -> Path:
    """Write the samples unless they are there."""
    from benchmarks.rouge import chunk, gold

    path = folder / f"samples-{queries}.jsonl"
    if path.exists():
        return path
    rng = random.Random(20)
    with path.with_suffix(".draft").open("w", encoding="utf-8") as file:
        for _ in range(queries):
            chunks = [chunk(rng, CHUNK_WORDS) for _ in range(CHUNKS)]
            golds = [gold(rng, rng.choice(chunks), GOLD_WORDS) for _ in range(GOLD)]
            record = {
                "retrieved_context": [" ".join(words) for words in chunks],
                "ground_truth_context": [" ".join(words) for words in golds],
            }
            file.write(json.dumps(record) + "\n")
    path.with_suffix(".draft").rename(path)
    return path


def with_findwell(path: str, dialect: str, unpruned: bool) -> Measured:
    """Measure with findwell, once warm."""
    import findwell
    from findwell.relations.match.rouge import Rouge

    class Unpruned(Rouge):
        """ROUGE-L that computes every score."""

        def _compare(
            self,
            units: Sequence[str],
            items: Sequence[str],
            pairs: tuple[Ints, Ints],
            least: float,
        ) -> Floats:
            del least
            return super()._compare(units, items, pairs, 0.0)

    rouge = Unpruned if unpruned else Rouge
    by = rouge(text="raw", form="union") if dialect == NAME else rouge()
    warm = {"retrieved_context": ["a b. c"], "ground_truth_context": ["b c"]}
    findwell.evaluate([warm], measures=MEASURES, by=by, dialect=dialect)
    start = time.perf_counter()
    result = findwell.evaluate(path, measures=MEASURES, by=by, dialect=dialect)
    arrays = list(result.arrays.values())
    seconds = time.perf_counter() - start
    (relation,) = result.relations.values()
    edges = zip(relation.edge_query, relation.edge_rank, relation.edge_item, strict=True)
    rows = [list(row) for row in zip(*(each.tolist() for each in arrays), strict=True)]
    return Measured(seconds, rows, [[int(number) for number in edge] for edge in edges])


def with_peer(path: str) -> Measured:
    """Measure with continuous-eval, as many batches as patience allows; it must not call home."""
    os.environ |= {"CONTINUOUS_EVAL_DO_NOT_TRACK": "true", "XDG_DATA_HOME": str(Path(path).parent)}
    import nltk  # type: ignore[import-untyped]

    nltk.download = lambda *_args, **_options: False  # it would fetch data that is not needed
    from continuous_eval.metrics.retrieval import (  # type: ignore[import-not-found]
        PrecisionRecallF1,
        RougeChunkMatch,
    )

    metric = PrecisionRecallF1(RougeChunkMatch())
    metric.show_progress = False
    metric.batch(retrieved_context=[["a b. c"]], ground_truth_context=[["b c"]])
    rows: list[list[float]] = []
    spent = 0.0
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        lines = file.readlines()
    for first in range(0, len(lines), BATCH):
        start = time.perf_counter()
        samples = [json.loads(line) for line in lines[first : first + BATCH]]
        columns = {name: [sample[name] for sample in samples] for name in samples[0]}
        found = metric.batch(**columns)
        spent += time.perf_counter() - start
        rows += ([row[f"context_{name}"] for name in MEASURES] for row in found)
        if spent > PATIENCE:
            break
    return Measured(spent, rows, version=metadata.version(NAME))


if __name__ == "__main__":
    tool, samples = sys.argv[1:]
    measured = with_peer(samples) if tool == NAME else with_findwell(samples, *WAYS[tool])
    print(json.dumps(asdict(measured)))
