"""The same numbers, bit for bit, on any number of threads and with any seed of Python's hashes."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findwell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCES = Path(findwell.__file__).parent
POOLS = (
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# what adds up in an order that depends on threads; exact there, as their docstrings say
EXACT = {"statistics/resampling.py", "loop/tuning/choice.py"}
SUMMING = "dot vdot inner matmul tensordot convolve correlate cov corrcoef polyfit"
LINEAR_ALGEBRA = {f"np.{name}" for name in SUMMING.split()}
WORDS = [f"word{number}" for number in range(60)]


def test_no_sum_is_left_to_a_library_of_linear_algebra() -> None:
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        if name in EXACT:
            continue
        text = path.read_text("utf-8")
        if not any(each in text for each in (" @ ", *LINEAR_ALGEBRA)):  # as ruff writes them
            continue
        for node in ast.walk(ast.parse(text)):
            product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
            if product or (isinstance(node, ast.Attribute) and ast.unparse(node) in LINEAR_ALGEBRA):
                found.append(f"{name}: {ast.unparse(node)}")
    assert not found, "add up in a fixed order: the last digit would depend on the threads"


def _write(folder: Path) -> None:
    """Write three runs with their judgements, and records with texts."""
    rng = np.random.default_rng(20)
    queries, depth = 3_000, 40
    gold = rng.integers(0, 200, (queries, 12))
    (folder / "qrels").write_text(
        "".join(
            f"q{query} 0 d{doc} {grade}\n"
            for query in range(queries)
            for doc, grade in {doc: doc % 4 for doc in gold[query].tolist()}.items()
        )
    )
    for name in "abc":
        docs = np.argsort(rng.random((queries, 200)), axis=1)[:, :depth]
        scores = rng.random((queries, depth)).round(2)  # with ties
        (folder / f"{name}.trec").write_text(
            "".join(
                f"q{query} Q0 d{doc} 0 {score} {name}\n"
                for query in range(queries)
                for doc, score in zip(docs[query].tolist(), scores[query].tolist(), strict=True)
            )
        )
    with (folder / "texts.jsonl").open("w") as file:
        for query in range(200):
            gold_texts = [" ".join(rng.choice(WORDS, 12)) + "." for _ in range(3)]
            texts = [" ".join((*rng.choice(WORDS, 30), gold_texts[0])) for _ in range(6)]
            row = {"query": f"t{query}", "retrieved": texts, "gold": gold_texts}
            file.write(json.dumps(row) + "\n")


NO_VALUE = {"utility", "cost_to"}  # for want of parameters, and where no list gets there
ALL = [
    name
    for name, cls in findwell.plugins.known_measures().items()
    if name not in NO_VALUE and not cls().facts()
]
RELATIONS = ("exact", "rouge", "rouge-sentence", "rouge(form=union)", "containment", "words")
OVER_TEXTS = [f"{name}/{relation}" for relation in RELATIONS for name in ("recall", "nDCG")]
COMMANDS: Mapping[str, tuple[str, Sequence[str]]] = {
    "score": ("score a.trec b.trec --gold qrels --per-query --bounds", ALL),
    "compare": (
        "compare a.trec b.trec c.trec --gold qrels",
        ["nDCG@10", "AP", "GMAP", "ERR@20", "bpref"],
    ),
    "all pairs": ("compare a.trec b.trec c.trec --gold qrels --all-pairs", ["nDCG@10", "RR"]),
    "texts": ("score texts.jsonl --per-query", OVER_TEXTS),
}


def _outputs(folder: Path, threads: int) -> dict[str, Any]:
    """Run the demo and all commands with so many threads, on as many cores at most."""
    environment = os.environ | dict.fromkeys(POOLS, str(threads))
    environment |= {"PYTHONHASHSEED": str(threads), "NO_COLOR": "1"}
    cores = sorted(os.sched_getaffinity(0))[:threads]

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "findwell", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    found: dict[str, Any] = {
        name: run(*command.split(), *(f"--measure={each}" for each in measures), "--format", "json")
        for name, (command, measures) in COMMANDS.items()
    }
    saved = folder / f"demo-{threads}"
    run("demo", "--save", str(saved), "--report", str(folder / f"report-{threads}.html"))
    found["demo"] = (saved / "summary.json").read_text("utf-8")
    found["demo, by query"] = findwell.load(saved).per_query.to_dict(as_series=False)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are chosen on Linux only")
def test_threads_and_hashes_change_no_bit(tmp_path: Path) -> None:
    _write(tmp_path)
    one, two, three = (_outputs(tmp_path, threads) for threads in (1, 2, 3))
    assert all(one.values())
    for other in (two, three):
        assert [name for name in one if one[name] != other[name]] == []
