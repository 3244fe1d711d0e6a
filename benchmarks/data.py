"""Seeded TREC files, written once and kept under `.benchmarks/`.

The collection has 900,000 documents, d100000 to d999999. About 30 of them are judged for each
query, half of these are among the retrieved, and the top ranks hold most of them. Scores fall
strictly, by steps that a 32-bit float can tell, and every query has a relevant document, so that
no tool has to decide about ties or undefined values.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    RunDict = dict[str, dict[str, float]]
    GoldDict = dict[str, dict[str, int]]

ROOT = Path(__file__).parent.parent
SEED = 20
FIRST_DOC, DOCS = 100_000, 900_000  # all ids have one length: ranx compiles anew for another
CHUNK = 1_000  # queries made at once, each chunk from a seed of its own
NOT_RETRIEVED = 30  # candidates for judged documents that the run lacks, every second is judged
GRADES = (0.5, 0.25, 0.15, 0.1)  # how likely grade 0, 1, 2, 3 is
BYTES_A_ROW = 40


@dataclass(frozen=True, slots=True)
class Files:
    """A run and its judgements on disk."""

    folder: Path
    queries: int
    depth: int = 100

    @property
    def run(self) -> Path:
        """The TREC run."""
        return self.folder / f"run-{self.queries}x{self.depth}.trec"

    @property
    def gold(self) -> Path:
        """The TREC judgements."""
        return self.folder / f"gold-{self.queries}x{self.depth}.qrels"

    @property
    def run_bytes(self) -> int:
        """The size of the run, estimated as long as it is not written."""
        if self.run.exists():
            return self.run.stat().st_size
        return self.queries * self.depth * BYTES_A_ROW

    def __str__(self) -> str:
        return f"{self.queries:,} × {self.depth:,}"


def ensure(files: Files) -> None:
    """Write the files unless they are there, in a process of its own.

    The process that measures must stay small: on Linux a child's peak memory begins with its
    parent's.
    """
    if files.run.exists() and files.gold.exists():
        return
    print(f"writing {files.run.name}", file=sys.stderr)
    arguments = [str(files.folder), str(files.queries), str(files.depth)]
    subprocess.run([sys.executable, "-m", "benchmarks.data", *arguments], cwd=ROOT, check=True)


def read_dicts(files: Files) -> tuple[RunDict, GoldDict]:
    """Return run and judgements as the dicts that every tool takes."""
    run: RunDict = {}
    gold: GoldDict = {}
    with files.run.open() as lines:
        for line in lines:
            query, _, doc, _, score, _ = line.split()
            run.setdefault(query, {})[doc] = float(score)
    with files.gold.open() as lines:
        for line in lines:
            query, _, doc, grade = line.split()
            gold.setdefault(query, {})[doc] = int(grade)
    return run, gold


def write(files: Files) -> None:
    """Make the files, chunk by chunk; they appear under their names when they are whole."""
    files.folder.mkdir(parents=True, exist_ok=True)
    targets = (files.run, files.gold)
    drafts = [target.with_suffix(".draft") for target in targets]
    with drafts[0].open("wb") as run, drafts[1].open("wb") as gold:
        for first in range(0, files.queries, CHUNK):
            frames = _chunk(first, min(CHUNK, files.queries - first), files.depth)
            for frame, file in zip(frames, (run, gold), strict=True):
                frame.write_csv(file, include_header=False, separator=" ", float_precision=6)
    for draft, target in zip(drafts, targets, strict=True):
        draft.replace(target)


def _chunk(first: int, queries: int, depth: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the lines of run and judgements of some queries."""
    import numpy as np

    rng = np.random.default_rng([SEED, depth, first])
    docs = _docs(rng, queries, depth + NOT_RETRIEVED)
    names = np.arange(first, first + queries) + 1
    return _run(rng, names, docs[:, :depth]), _gold(rng, names, docs, depth)


def _docs(rng: np.random.Generator, queries: int, width: int) -> np.ndarray:
    """Draw different documents for each query: one from each stretch of the collection."""
    import numpy as np

    stretch = DOCS // width
    docs = rng.integers(0, stretch, (queries, width)) + np.arange(width) * stretch
    return rng.permuted(docs + FIRST_DOC, axis=1)


def _run(rng: np.random.Generator, names: np.ndarray, docs: np.ndarray) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    queries, depth = docs.shape
    steps = rng.uniform(0.001, 0.2, (queries, depth))
    scores = 0.5 + np.cumsum(steps[:, ::-1], axis=1)[:, ::-1]
    return pl.DataFrame(
        {
            "query": np.repeat(names, depth),
            "q0": "Q0",
            "doc": docs.ravel(),
            "rank": np.tile(np.arange(1, depth + 1), queries),
            "score": scores.ravel(),
            "tag": "bench",
        },
    ).with_columns(_named("query", "q"), _named("doc", "d"), q0=pl.lit("Q0"), tag=pl.lit("bench"))


def _gold(
    rng: np.random.Generator, names: np.ndarray, docs: np.ndarray, depth: int
) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    chance = np.full(docs.shape[1], 0.5)
    chance[:depth] = 0.5 * np.exp(-np.arange(depth) / 32)  # about 15 of the retrieved
    judged = rng.random(docs.shape) < chance
    grades = rng.choice(len(GRADES), docs.shape, p=GRADES)
    judged[:, depth], grades[:, depth] = True, 1  # every query has a relevant document
    query, place = np.nonzero(judged)
    return (
        pl.DataFrame(
            {"query": names[query], "doc": docs[query, place], "grade": grades[query, place]}
        )
        .sort("query", "doc")
        .select(_named("query", "q"), pl.lit("0").alias("iteration"), _named("doc", "d"), "grade")
    )


def _named(column: str, letter: str) -> pl.Expr:
    import polars as pl

    return pl.concat_str(pl.lit(letter), column).alias(column)


if __name__ == "__main__":
    write(Files(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
