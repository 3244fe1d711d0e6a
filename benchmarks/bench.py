"""Run the benchmarks: `python -m benchmarks.bench [--quick] [--write docs/benchmarks.md]`.

Linux only, as memory is read from /proc. Tables go to stdout, progress to stderr; the exit code
is 1 if the tools disagree about any number.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import comparison as comparing
from benchmarks import sections
from benchmarks.data import ROOT, Files
from benchmarks.judge_calls import judge_calls
from benchmarks.judging import judging
from benchmarks.local_judge import local_judge
from benchmarks.matching import matching
from benchmarks.measure import run_all
from benchmarks.records import records
from benchmarks.report import Table, machine, page
from benchmarks.rouge import rouge
from benchmarks.sections import COMPARISONS, Facts
from benchmarks.targets import agreement, targets

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOM = 3  # leave so many times the largest file free on the disk


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure."""

    compared: tuple[int, ...]  # queries of the tables that compare tools
    scaled: tuple[int, ...]
    weighed: tuple[int, ...]
    depths: tuple[int, ...]  # of runs with as many queries as the smallest that is weighed
    rounds: int
    record_bytes: int
    pairs: int  # of texts
    matched: int  # queries whose texts are matched
    systems: comparing.Size
    judged: int  # samples, by a model
    shared: bool = False  # one process for all stages of a tool


FULL = Plan(
    compared=(10_000, 100_000),
    scaled=(1_000, 3_000, 10_000, 30_000, 100_000),
    weighed=(10_000, 100_000, 300_000),
    depths=(300, 1_000, 3_000),
    rounds=3,
    record_bytes=1_000_000_000,
    pairs=10_000,
    matched=1_000,
    systems=comparing.FULL,
    judged=1_000,
)
QUICK = Plan(
    compared=(2_000,),
    scaled=(500, 1_000, 2_000),
    weighed=(1_000, 2_000),
    depths=(200, 400),
    rounds=1,
    record_bytes=5_000_000,
    pairs=50,
    matched=20,
    systems=comparing.QUICK,
    judged=50,
    shared=True,
)


def measure(plan: Plan, folder: Path, facts: Facts) -> Iterator[Table]:
    """Measure section by section."""
    compared = [Files(folder, queries) for queries in plan.compared]
    for group in [COMPARISONS] if plan.shared else [(each,) for each in COMPARISONS]:
        jobs = [job for comparison in group for job in comparison.jobs(compared)]
        outcomes = run_all(jobs, plan.rounds, shared=plan.shared)
        for comparison in group:
            comparison.note(compared, outcomes, facts)
            yield comparison.table(compared, outcomes)
    yield sections.scaling([Files(folder, size) for size in plan.scaled], plan.rounds, facts)
    more = [files for size in plan.weighed if _fits(files := Files(folder, size))]
    deeper = [
        files for depth in plan.depths if _fits(files := Files(folder, plan.weighed[0], depth))
    ]
    yield sections.memory(more, deeper, plan.rounds, facts)
    yield sections.start_up(facts)
    yield records(folder, plan.record_bytes, plan.rounds)
    yield rouge(plan.pairs, plan.rounds, facts)
    yield matching(folder, plan.matched, plan.rounds, facts)
    yield comparing.comparison(plan.systems, plan.rounds, facts)
    table, facts.busy = judging(plan.judged, plan.rounds)
    yield table
    yield judge_calls()[0]
    yield local_judge(plan.judged, plan.rounds)


def _fits(files: Files) -> bool:
    return shutil.disk_usage(files.folder).free > ROOM * files.run_bytes


def main() -> int:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small files, to see that it works")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write a Markdown page")
    parser.add_argument("--cache", type=Path, default=ROOT / ".benchmarks", help="keep files here")
    asked = parser.parse_args()
    folder: Path = asked.cache.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    facts = Facts()
    tables = [_show(machine())]
    tables += [_show(table) for table in measure(QUICK if asked.quick else FULL, folder, facts)]
    verdicts = [_show(targets(facts, asked.quick)), _show(agreement(facts))]
    if asked.write:
        asked.write.parent.mkdir(parents=True, exist_ok=True)
        asked.write.write_text(page([*verdicts, *tables], asked.quick), encoding="utf-8")
    return 1 if facts.disagreements else 0


def _show(table: Table) -> Table:
    print(table.text(), flush=True)
    return table


if __name__ == "__main__":
    raise SystemExit(main())
