"""Run the benchmarks: `python -m benchmarks.bench [--quick] [--write docs/benchmarks.md]`.

Linux only, as memory is read from /proc. Tables go to stdout, progress to stderr; the exit code
is 1 if the tools disagree about any number. TREC_EVAL_SRC names a folder with the sources of
trec_eval, TREC_EVAL a ready program.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from benchmarks import comparison as comparing
from benchmarks import sections
from benchmarks.commands import commands
from benchmarks.data import ROOT, Files
from benchmarks.judge_calls import judge_calls
from benchmarks.judging import judging
from benchmarks.local_judge import local_judge
from benchmarks.matching import matching
from benchmarks.measure import run_all
from benchmarks.records import records
from benchmarks.reference_program import provide
from benchmarks.report import Table, machine, page
from benchmarks.rouge import rouge
from benchmarks.sections import COMPARISONS, Facts
from benchmarks.small import small
from benchmarks.spark import spark
from benchmarks.targets import agreement, targets
from benchmarks.traces import traces
from benchmarks.tuning import tuning
from benchmarks.variants import variants

if TYPE_CHECKING:
    from collections.abc import Iterator

Wanted: TypeAlias = Callable[[int], bool]  # by the number of a section
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
    commanded: tuple[int, ...]  # queries of the runs that whole commands read
    written: int  # queries of the run that is written in several ways
    tuned: int  # queries of the runs that are fused
    spans: int  # that are taken in
    spread: tuple[int, ...]  # queries of the runs that Spark evaluates
    shared: bool = False  # one process for all stages of a tool


FULL = Plan(
    compared=(10_000, 100_000),
    scaled=(1_000, 3_000, 10_000, 30_000, 100_000),
    weighed=(10_000, 100_000),
    depths=(300, 1_000),
    rounds=2,
    record_bytes=300_000_000,
    pairs=10_000,
    matched=1_000,
    systems=comparing.FULL,
    judged=1_000,
    commanded=(1_000, 10_000, 100_000),
    written=100_000,
    tuned=1_000,
    spans=1_000_000,
    spread=(10_000, 100_000),
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
    commanded=(500, 1_000),
    written=500,
    tuned=50,
    spans=20_000,
    spread=(),  # a JVM is not started to see that it works: the slow tests do
    shared=True,
)


def measure(plan: Plan, folder: Path, facts: Facts, wanted: Wanted) -> Iterator[Table]:
    """Measure section by section."""
    yield from _compared(plan, folder, facts, wanted)
    for numbers, section in _sections(plan, folder, facts).items():
        if any(map(wanted, numbers)):
            yield from section()


def _sections(
    plan: Plan, folder: Path, facts: Facts
) -> dict[tuple[int, ...], Callable[[], Iterable[Table]]]:
    """Return what measures the sections behind the first ones, by their numbers."""
    rounds = plan.rounds

    def fitting(sizes: Iterable[tuple[int, int]]) -> list[Files]:
        return [files for size in sizes if _fits(files := Files(folder, *size))]

    def weighed() -> list[Table]:
        more = fitting((size, 100) for size in plan.weighed)
        deeper = fitting((plan.weighed[0], depth) for depth in plan.depths)
        return [sections.memory(more, deeper, rounds, facts)]

    def judged() -> list[Table]:
        table, facts.busy = judging(plan.judged, rounds)
        return [table]

    scaled = [Files(folder, size) for size in plan.scaled]
    return {
        (4,): lambda: [sections.scaling(scaled, rounds, facts)],
        (5,): weighed,
        (6,): lambda: [sections.start_up(facts)],
        (7,): lambda: [records(folder, plan.record_bytes, rounds)],
        (8,): lambda: [rouge(plan.pairs, rounds, facts)],
        (9,): lambda: [matching(folder, plan.matched, rounds, facts)],
        (10,): lambda: [comparing.comparison(plan.systems, rounds, facts)],
        (11,): judged,
        (12,): lambda: [judge_calls()[0]],
        (13,): lambda: [local_judge(plan.judged, rounds)],
        (14, 16): lambda: commands(fitting((size, 100) for size in plan.commanded), rounds, facts),
        (15,): lambda: [variants(Files(folder, plan.written), rounds, facts)],
        (17,): lambda: [tuning(folder, plan.tuned, rounds, facts)],
        (18,): lambda: [traces(plan.spans, folder, facts)],
        (19,): lambda: [spark(folder, plan.spread, facts)] if plan.spread else [],
        (20,): lambda: [small(Files(folder, plan.scaled[0]), rounds, facts)],
    }


def _compared(plan: Plan, folder: Path, facts: Facts, wanted: Wanted) -> Iterator[Table]:
    """Measure the sections that compare a stage of several tools, the first ones."""
    compared = [Files(folder, queries) for queries in plan.compared]
    asked = [each for number, each in enumerate(COMPARISONS, start=1) if wanted(number)]
    groups = [asked] if plan.shared else [[each] for each in asked]
    for group in filter(None, groups):
        jobs = [job for comparison in group for job in comparison.jobs(compared)]
        outcomes = run_all(jobs, plan.rounds, shared=plan.shared)
        for comparison in group:
            comparison.note(compared, outcomes, facts)
            yield comparison.table(compared, outcomes)


def _fits(files: Files) -> bool:
    return shutil.disk_usage(files.folder).free > ROOM * files.run_bytes


def main() -> int:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small files, to see that it works")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write a Markdown page")
    parser.add_argument("--cache", type=Path, default=ROOT / ".benchmarks", help="keep files here")
    parser.add_argument("--only", metavar="N,N", help="measure these sections, keep the others")
    parser.add_argument("--million", action="store_true", help="commands on a million queries, too")
    asked = parser.parse_args()
    folder: Path = asked.cache.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    provide(folder)
    plan = QUICK if asked.quick else FULL
    if asked.million:
        plan = replace(plan, commanded=(*plan.commanded, 1_000_000))
    only = {int(number) for number in asked.only.split(",")} if asked.only else None
    facts = Facts()
    tables = [] if only else [_show(machine())]
    tables += [
        _show(table)
        for table in measure(plan, folder, facts, lambda number: not only or number in only)
    ]
    verdicts = [_show(targets(facts, asked.quick)), _show(agreement(facts))]
    if asked.write:
        asked.write.parent.mkdir(parents=True, exist_ok=True)
        before = asked.write.read_text("utf-8") if only and asked.write.exists() else ""
        written = tables if only else [*verdicts, *tables]
        asked.write.write_text(page(written, asked.quick, before), encoding="utf-8")
    return 1 if facts.disagreements else 0


def _show(table: Table) -> Table:
    print(table.text(), flush=True)
    return table


if __name__ == "__main__":
    raise SystemExit(main())
