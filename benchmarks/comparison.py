"""Comparing systems: findwell's permutation test and that of ranx.compare on the same values."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.data import ROOT
from benchmarks.report import Table
from benchmarks.tools import MEASURES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from benchmarks.sections import Facts

COMPARE = "compare"
SEED = 20
PATIENCE = 20.0  # seconds of ranx a round; it does as many tests as fit, at least one
REMARK = """\
{queries:,} queries × {systems} systems × {measures} measures, {permutations:,} permutations; from a
value for each query, system and measure in memory to p-values, tools in processes of their own,
compiled and warm, the best of the rounds. ranx is the part of `ranx.compare(stat_test="fisher")`
that follows the evaluation: it tests every pair of systems, both ways round. {scaled}findwell
against a baseline is `paired`: p, and also differences, intervals, effect sizes, wins and losses.
All pairs of findwell are the same p-values for each pair, once; Tukey HSD corrects for their
number, and needs no shuffling with this many queries. *Ratio* is the time of ranx for as many
tests,
divided by that of findwell."""
SCALED = """\
At its full size that would take too long here: {measured} of its {tests:,} tests were timed, the
time is that of one test × {tests:,}. """


@dataclass(frozen=True, slots=True)
class Size:
    """What is compared."""

    queries: int
    systems: int
    permutations: int
    measures: int = len(MEASURES)

    @property
    def tests(self) -> int:
        """The tests of all systems against the first."""
        return (self.systems - 1) * self.measures


FULL = Size(queries=10_000, systems=20, permutations=10_000)
QUICK = Size(queries=300, systems=4, permutations=500)


@dataclass(frozen=True, slots=True)
class Timed:
    """How long one run took for how many tests, and the p-values of the first system's."""

    seconds: float
    tests: int
    p_values: list[float]


def comparison(size: Size, rounds: int, facts: Facts) -> Table:
    """Time all ways of comparing, note the ratio and whether the p-values agree."""
    ways = [way for way in WAYS if way != RANX or not TOOLS["ranx"].absent()]
    runs: dict[str, list[Timed]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            runs[way].append(_run(way, size))
            print(f"{way}: {runs[way][-1].seconds:.3g} s", file=sys.stderr)
    best = {way: min(found, key=lambda run: run.seconds / run.tests) for way, found in runs.items()}
    theirs = best.get(RANX)
    if theirs:
        each = theirs.seconds / theirs.tests
        facts.ratios[COMPARE, "ranx"] = each * size.tests / best[BASELINE].seconds
        facts.disagreements += _disagreements(best[BASELINE], theirs, size)
    rows = [_row(way, run, theirs, size) for way, run in best.items()]
    header = ("what", "tests", "seconds", "ms a test", "ratio")
    return Table("10. Comparing systems", _remark(size, theirs), header, rows)


def _row(way: str, run: Timed, theirs: Timed | None, size: Size) -> tuple[str, ...]:
    each = run.seconds / run.tests
    tests = _all_of_ranx(size) if way == RANX else run.tests
    same = theirs if way != TUKEY else None
    ratio = f"{same.seconds / same.tests / each:,.0f}" if same else "–"
    return way, f"{tests:,}", f"{each * tests:.2f}", f"{each * 1000:.2f}", ratio


def _remark(size: Size, theirs: Timed | None) -> str:
    scaled = ""
    if theirs and theirs.tests < _all_of_ranx(size):
        scaled = SCALED.format(measured=theirs.tests, tests=_all_of_ranx(size))
    return REMARK.format(
        queries=size.queries,
        systems=size.systems,
        measures=size.measures,
        permutations=size.permutations,
        scaled=scaled,
    )


def _all_of_ranx(size: Size) -> int:
    return size.systems * size.tests


def _disagreements(ours: Timed, theirs: Timed, size: Size) -> list[str]:
    """Return where p-values lie further apart than the chance of both samples explains."""
    noise = 5 * (0.5 / size.permutations) ** 0.5 + 1 / size.permutations
    pairs = zip(ours.p_values, theirs.p_values, strict=False)
    return [
        f"ranx p-value of test {number}: {other:.4f}, findwell {mine:.4f}"
        for number, (mine, other) in enumerate(pairs)
        if abs(mine - other) > noise
    ]


def _run(way: str, size: Size) -> Timed:
    numbers = [str(number) for number in (size.queries, size.systems, size.permutations)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.comparison", way, *numbers],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{way} failed:\n{done.stderr}")
    return Timed(**json.loads(done.stdout.splitlines()[-1]))


def values(size: Size) -> np.ndarray:
    """Return queries × systems × measures: shared difficulty, own noise, small differences."""
    import numpy as np

    rng = np.random.default_rng([SEED, size.queries])
    shape = (size.queries, size.systems, size.measures)
    hard = rng.beta(1.2, 1, (size.queries, 1, 1))
    better = np.linspace(0, 0.6 / np.sqrt(size.queries), size.systems)[:, np.newaxis]
    return np.clip(hard + better + rng.normal(0, 0.2, shape), 0, 1).round(4)


def _baseline(table: np.ndarray, size: Size) -> Timed:
    from findwell.statistics.paired import paired

    before = table[:, :1].repeat(size.systems - 1, axis=1).reshape(len(table), -1)
    after = table[:, 1:].reshape(len(table), -1)
    start = time.perf_counter()
    found = paired(before, after, permutations=size.permutations)
    seconds = time.perf_counter() - start
    return Timed(seconds, size.tests, [each.test.p or 0.0 for each in found])


def _all_pairs(table: np.ndarray, size: Size) -> Timed:
    import numpy as np

    from findwell.statistics.significance import sign_flip

    start = time.perf_counter()
    differences = [
        table[:, second] - table[:, first]
        for first in range(size.systems)
        for second in range(first + 1, size.systems)
    ]
    found = sign_flip(np.hstack(differences), permutations=size.permutations)
    return Timed(time.perf_counter() - start, len(found), [])


def _tukey(table: np.ndarray, size: Size) -> Timed:
    from findwell.statistics.significance import tukey

    start = time.perf_counter()
    found = tukey(table, permutations=size.permutations)
    return Timed(time.perf_counter() - start, sum(len(each.p) for each in found), [])


def _ranx(table: np.ndarray, size: Size) -> Timed:
    """Call what ranx.compare calls for each pair and measure, as long as patience lasts."""
    from ranx.statistical_tests import compute_statistical_significance

    spent, tests, p_values = 0.0, 0, []
    for second in range(1, size.systems):
        for measure in range(size.measures):
            scores = {
                name: {"m": table[:, place, measure].copy()}
                for name, place in (("first", 0), ("second", second))
            }
            start = time.perf_counter()
            found = compute_statistical_significance(
                list(scores), scores, "fisher", size.permutations, random_seed=SEED
            )
            spent += time.perf_counter() - start
            tests += 2  # both ways round
            p_values.append(float(found["first", "second"]["m"]["p_value"]))
            if spent > PATIENCE:
                return Timed(spent, tests, p_values)
    return Timed(spent, tests, p_values)


BASELINE, ALL_PAIRS, TUKEY, RANX = (
    "findwell, all against a baseline",
    "findwell, all pairs",
    "findwell, all pairs, Tukey HSD",
    "ranx, all pairs both ways",
)
WAYS: dict[str, Callable[[np.ndarray, Size], Timed]] = {
    BASELINE: _baseline,
    ALL_PAIRS: _all_pairs,
    TUKEY: _tukey,
    RANX: _ranx,
}


def main() -> None:
    """Time one way of comparing, once warm; print the outcome in JSON."""
    from dataclasses import asdict

    way = WAYS[sys.argv[1]]
    size = Size(*(int(number) for number in sys.argv[2:5]))
    warm = Size(queries=50, systems=2, permutations=20)
    way(values(warm), warm)
    print(json.dumps(asdict(way(values(size), size))))


if __name__ == "__main__":
    main()
