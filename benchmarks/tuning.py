"""Tuning a hybrid: findwell.tuning.tune and ranx.optimize_fusion on the same files."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.data import ROOT
from benchmarks.report import NOTHING, Table
from benchmarks.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.sections import Facts

TUNE = "tune"
SEED = 20
DEPTH, JUDGED, STEP = 100, 30, 0.01
CLOSE = 1e-9  # of two values of the same weights
TIED = "0.5"  # the weight at which the first documents of both lists have the same sum
MEASURE = "nDCG@10"
REMARK = """\
{queries:,} queries, two TREC runs of {depth} documents, {judged} judged documents a query; min-max
normalised scores, the weight in steps of {step}, {measure}; from files to the choice, tools in
processes of their own, compiled and warm, the best of the rounds by processor time.
`findwell.tuning.tune` does what the others do not: 10 × 5 folds with a choice by 200 bootstraps in
each, the held-out value with its interval, the test of every weight against the best one, and the
gains over each run. *findwell, values only* is the search alone, which is what
`ranx.optimize_fusion` does: it keeps the best value on the queries that chose it. *Ratio* is the
processor time of ranx divided by that of findwell.

{skipped}All values of all weights that both try agree to {close:g}, but for {tied}: there the first
documents of the two lists have the same sum, and tools order equal sums differently."""
SKIPPED = """\
ranx tries the weights whose floating-point sum is exactly 1, and leaves out the others without a
word: here it tries {here} of 101 weights; with steps of 0.1 it tries {three} of 66 for three runs
and {four} of 286 for four. findwell counts in whole steps and tries all of them.
"""


@dataclass(frozen=True, slots=True)
class Timed:
    """How long one run took, and the value of each weight of the first run."""

    seconds: float
    processor: float
    values: dict[str, float] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)


def tuning(folder: Path, queries: int, rounds: int, facts: Facts) -> Table:
    """Time all ways of tuning, note the ratio and whether the values agree."""
    ways = [way for way in WAYS if way != RANX or not TOOLS["ranx"].absent()]
    _ensure(folder, queries)
    runs: dict[str, list[Timed]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            runs[way].append(_run(way, folder, queries))
            print(f"{way}: {runs[way][-1].processor:.3g} s", file=sys.stderr)
    best = {way: min(found, key=lambda run: run.processor) for way, found in runs.items()}
    theirs = best.get(RANX)
    if theirs is not None:
        facts.ratios[TUNE, "ranx"] = theirs.processor / best[VALUES].processor
        facts.disagreements += [
            f"ranx, weight {weight}: {value!r}, findwell {best[VALUES].values[weight]!r}"
            for weight, value in theirs.values.items()
            if weight != TIED and abs(value - best[VALUES].values[weight]) > CLOSE
        ]
    rows = [
        (
            way,
            f"{run.processor:.2f}",
            f"{run.seconds:.2f}",
            f"{theirs.processor / run.processor:.1f}" if theirs and way != RANX else NOTHING,
        )
        for way, run in best.items()
    ]
    remark = REMARK.format(
        queries=queries,
        depth=DEPTH,
        judged=JUDGED,
        step=STEP,
        measure=MEASURE,
        close=CLOSE,
        tied=TIED,
        skipped=SKIPPED.format(**theirs.tried) if theirs else "",
    )
    header = ("what", "processor s", "wall s", "ratio")
    return Table("17. Tuning a hybrid", remark, header, rows)


def _files(folder: Path, queries: int) -> tuple[Path, Path, Path]:
    names = ("a.trec", "b.trec", "qrels")
    first, second, gold = (folder / f"tuning-{queries}.{name}" for name in names)
    return first, second, gold


def _ensure(folder: Path, queries: int) -> None:
    """Write the files unless they are there: the runs share half of their documents."""
    import numpy as np

    *runs, gold = _files(folder, queries)
    if gold.exists():
        return
    rng = np.random.default_rng([SEED, queries])
    lines: list[list[str]] = [[], []]
    judged: list[str] = []
    for query in range(queries):
        docs = 100_000 + rng.choice(900_000, DEPTH * 2, replace=False)
        grades = rng.choice(4, JUDGED, p=(0.5, 0.25, 0.15, 0.1))
        grades[0] = 1  # every query has a relevant document
        judged += (f"q{query} 0 d{doc} {grade}\n" for doc, grade in zip(docs, grades, strict=False))
        pull = np.zeros(len(docs))
        pull[:JUDGED] = grades
        for run, strength in enumerate((0.4, 0.7)):
            scores = rng.normal(size=len(docs)) + strength * pull
            order = np.argsort(-scores)[:DEPTH]
            lines[run] += (
                f"q{query} Q0 d{docs[at]} {rank} {scores[at]:.6f} run\n"
                for rank, at in enumerate(order, start=1)
            )
    for path, content in zip(runs, lines, strict=True):
        path.write_text("".join(content))
    gold.write_text("".join(judged))


def _run(way: str, folder: Path, queries: int) -> Timed:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tuning", way, str(folder), str(queries)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{way} failed:\n{done.stderr}")
    return Timed(**json.loads(done.stdout.splitlines()[-1]))


def _tune(first: str, second: str, gold: str) -> dict[str, Any]:
    from findwell.loop.tuning.tune import tune

    tune([first, second], gold, MEASURE, engine="autorag-cc", normaliser="mm")
    return {}


def _values(first: str, second: str, gold: str) -> dict[str, Any]:
    from findwell.loop.tuning.engines import find_engine
    from findwell.loop.tuning.fused_values import RecordedRuns
    from findwell.loop.tuning.fusion_settings import grid_of

    engine = find_engine("autorag-cc")
    grid = grid_of(engine, 2, STEP, {"normaliser": "mm"})
    options = {"dialect": "findwell", "rel": None, "queries": None}
    runs = {"a": first, "b": second}
    source = RecordedRuns(runs, gold, MEASURE, options, engine)
    means = source.values(grid.settings).table[:, 0].mean(axis=1).tolist()
    return {
        "values": {
            f"{setting.weights[0]:g}": mean
            for setting, mean in zip(grid.settings, means, strict=False)
        }
    }


def _ranx(first: str, second: str, gold: str) -> dict[str, Any]:
    from ranx import Qrels, Run, optimize_fusion
    from ranx.fusion_optimization.optimize_weights import get_possible_weights, get_trial_configs

    qrels = Qrels.from_file(gold, kind="trec")
    runs = [Run.from_file(path, kind="trec") for path in (first, second)]
    _, report = optimize_fusion(
        qrels,
        runs,
        norm="min-max",
        method="wsum",
        metric="ndcg@10",
        step=STEP,
        show_progress=False,
        return_optimization_report=True,
    )
    pairs = zip(report.configs, report.results, strict=True)
    values = {f"{_first(name):g}": float(value) for name, value in pairs}
    tenths = get_possible_weights(0.1)
    tried = {"three": len(get_trial_configs(tenths, 3)), "four": len(get_trial_configs(tenths, 4))}
    return {"values": values, "tried": {"here": len(values), **tried}}


def _first(weights: str) -> float:
    """Return the first of several weights as ranx writes them: (np.float64(0.3), …)."""
    return float(re.findall(r"(?<![\w.])[0-9.]+", weights)[0])


RANX, VALUES, WHOLE = "ranx.optimize_fusion", "findwell, values only", "findwell.tuning.tune"
WAYS: dict[str, Callable[[str, str, str], dict[str, Any]]] = {
    WHOLE: _tune,
    VALUES: _values,
    RANX: _ranx,
}
WARM = 12  # queries of the files that compile and import


def main() -> None:
    """Tune once, after a small warm-up, and print how long it took."""
    way, folder, queries = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    _ensure(folder, WARM)
    WAYS[way](*map(str, _files(folder, WARM)))
    start, spent = time.perf_counter(), _processor()
    found = WAYS[way](*map(str, _files(folder, queries)))
    seconds, processor = time.perf_counter() - start, _processor() - spent
    print(json.dumps({"seconds": seconds, "processor": processor, **found}))


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
