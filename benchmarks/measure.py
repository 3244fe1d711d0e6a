"""Time tools fairly: a fresh process each, in rounds, so that a slow minute hits all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.data import ROOT, Files, ensure
from benchmarks.tools import TOOLS
from benchmarks.worker import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.tools import Numbers

WARM_QUERIES = 50  # with fewer than 10 ranx would keep to one thread for good
STARTS = 15
SLOW = 8.0  # seconds of work beyond which a job is not tried again


@dataclass(frozen=True, slots=True)
class Job:
    """A tool, what it begins with, and its files."""

    tool: str
    stage: str
    files: Files

    def __str__(self) -> str:
        return f"{self.tool}, {self.stage}, {self.files}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best time of a job, how often it was tried, its worst memory and its numbers."""

    seconds: float
    tries: int
    before: int
    peak: int
    numbers: Numbers

    @property
    def added(self) -> int:
        """The peak above what was resident before the work."""
        return max(self.peak - self.before, 0)


def run_all(jobs: Sequence[Job], rounds: int, *, shared: bool = False) -> dict[Job, Outcome]:
    """Run each job in every round; jobs of tools that are absent are left out.

    `shared` lets the stages of a tool share a process: quicker, as ranx alone needs many seconds
    to import, but what one stage leaves in memory is there in the next.
    """
    able = [job for job in jobs if not TOOLS[job.tool].absent()]
    for files in dict.fromkeys(job.files for job in able):
        ensure(files)
        ensure(replace(files, queries=WARM_QUERIES, depth=100))
    reports: dict[Job, list[Report]] = {job: [] for job in able}
    for number in range(1, rounds + 1):
        for group in _processes(able, shared):
            if number > 1 and sum(min(reports[job][0].seconds) for job in group) > SLOW:
                continue  # once tells enough
            for job, report in zip(group, _reports(group), strict=True):
                reports[job].append(report)
                best = min(report.seconds)
                print(f"round {number} of {rounds}  {job}: {best:.3g} s", file=sys.stderr)
    return {job: _outcome(found) for job, found in reports.items()}


def _processes(jobs: Sequence[Job], shared: bool) -> list[list[Job]]:
    """Split the jobs into those that one process does."""
    if not shared:
        return [[job] for job in jobs]
    groups: dict[tuple[str, Files], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.tool, job.files), []).append(job)
    return list(groups.values())


def _reports(jobs: Sequence[Job]) -> list[Report]:
    """Run jobs of one tool and the same files in one process."""
    tool, files = jobs[0].tool, jobs[0].files
    stages = ",".join(job.stage for job in jobs)
    sizes = [str(number) for number in (files.queries, files.depth, WARM_QUERIES)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.worker", tool, stages, str(files.folder), *sizes],
        cwd=ROOT,
        env=os.environ | TOOLS[tool].environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{jobs[0]} failed:\n{done.stderr}")
    return [Report(**json.loads(line)) for line in done.stdout.splitlines()]


def _outcome(reports: Sequence[Report]) -> Outcome:
    seconds = [second for report in reports for second in report.seconds]
    worst = max(reports, key=lambda report: report.peak)
    return Outcome(min(seconds), len(seconds), worst.before, worst.peak, worst.numbers)


def start_ups(commands: Sequence[Sequence[str]]) -> list[float | None]:
    """Return the median time of starting Python with each of these, None if one fails."""
    seconds: list[list[float]] = [[] for _ in commands]
    broken: set[int] = set()
    for _ in range(STARTS):
        for number, arguments in enumerate(commands):
            start = time.perf_counter()
            done = subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
            seconds[number].append(time.perf_counter() - start)
            if done.returncode:
                broken.add(number)
    return [None if n in broken else median(found) for n, found in enumerate(seconds)]
