"""One tool in one process: warm up, work, say how long it took and how much it held."""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.data import Files
from benchmarks.tools import TOOLS
from findwell.retrievers.memory import peak_bytes

if TYPE_CHECKING:
    from benchmarks.tools import Numbers, Task

REPEATS, PATIENCE = 5, 2.0  # stop after so many repetitions, or so many seconds
KIB = 1024


@dataclass(frozen=True, slots=True)
class Report:
    """What one process measured: seconds of each repetition, bytes, aggregated numbers."""

    seconds: list[float]
    before: int  # resident before the work, everything imported and compiled; 0 for a program
    peak: int  # resident at most, up to the end of the first repetition
    numbers: Numbers


def observe(task: Task) -> Report:
    """Do the work, several times if it is short."""
    gc.collect()
    before = _resident()
    first, returned = _timed(task)
    own = int(peak_bytes() or 0)
    program = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * KIB
    numbers = task.numbers(returned)
    del returned
    seconds = [first]
    while len(seconds) < REPEATS and sum(seconds) < PATIENCE:
        seconds.append(_timed(task)[0])
    return Report(seconds, before if own >= program else 0, max(own, program), numbers)


def _timed(task: Task) -> tuple[float, object]:
    start = time.perf_counter()
    returned = task.work()
    return time.perf_counter() - start, returned


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def main() -> None:
    """Measure the stages that the arguments name; print a report in JSON for each."""
    name, stages, folder, queries, depth, warm_queries = sys.argv[1:]
    tool = TOOLS[name]
    if tool.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: tool.cores])
    warm = Files(Path(folder), int(warm_queries))
    files = Files(Path(folder), int(queries), int(depth))
    for stage in stages.split(","):
        tool.task(stage, warm).work()
        print(json.dumps(asdict(observe(tool.task(stage, files)))))


if __name__ == "__main__":
    main()
