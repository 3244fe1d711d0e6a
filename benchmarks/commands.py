"""Whole commands: from the start of a process to its end, as a user waits for it.

Every tool is a process of its own that reads the same two files and prints the same six numbers;
all it needs to start, import and compile is part of its time. Nothing is warmed up but the files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.data import ensure
from benchmarks.report import MB, NOTHING, Table, shown_seconds
from benchmarks.sections import exponent
from benchmarks.tools import MEASURES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.data import Files
    from benchmarks.sections import Facts
    from benchmarks.tools import Numbers

COMMAND = "command"
FINDWELL, ONE_CORE = "findwell", "findwell, one core"
REMARK = """\
From a TREC run and TREC judgements on disk to six numbers on standard output, each tool as a
command of its own, start-up included: `findwell score RUN --gold QRELS -m …`, which also gives
intervals and findings; `trec_eval -m … QRELS RUN`; and scripts for `python -c` with the calls that
the documentation of the other tools shows. The best of the rounds, in turns; *CPU* is user and
system time of all threads, *wall* what a clock shows. *Ratio* is a tool's time divided by
findwell's. *Peak* is the most memory that the process held. Beyond {limit:,} queries only findwell
and trec_eval
are measured, once, as the others would not fit into memory."""
LIMIT = 200_000  # queries
SLOW = 20.0  # seconds beyond which a command is not tried again
UNCOMPILED = "PYTHONDONTWRITEBYTECODE"  # a user's Python keeps the modules that it has compiled
GROWTH = """\
How the time of whole commands grows: the slope of log CPU time over log queries, where 1 is linear;
from the smallest files on, where start-up hides growth, and between the two largest."""
# a small process starts the command, as a child's peak memory begins with its parent's
LAUNCHER = """
import json, os, sys, time
printed, cores, *command = sys.argv[1:]
if cores != "0":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
to = (os.POSIX_SPAWN_OPEN, 1, printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
start = time.perf_counter()
process = os.posix_spawn(command[0], command, os.environ, file_actions=[to])
_, status, usage = os.wait4(process, 0)
wall = time.perf_counter() - start
cpu = usage.ru_utime + usage.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), wall, cpu, usage.ru_maxrss * 1024]))
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one command took, and the numbers it printed."""

    wall: float
    cpu: float
    peak: int  # bytes
    numbers: Numbers

    def best(self, other: Spent | None) -> Spent:
        """Return the least times and the most memory of two runs."""
        if other is None:
            return self
        wall, cpu = min(self.wall, other.wall), min(self.cpu, other.cpu)
        return Spent(wall, cpu, max(self.peak, other.peak), self.numbers)


def findwell_command(run: Path, gold: Path) -> list[str]:
    """Return the command that scores a run, which prints JSON."""
    asked = [part for name in MEASURES for part in ("-m", name)]
    command = [sys.executable, "-m", "findwell", "score", str(run), "--gold", str(gold), *asked]
    return [*command, "--format", "json", "-o", "-"]


def findwell_numbers(printed: str) -> Numbers:
    """Read the numbers that findwell printed."""
    return {row["measure"]: row["value"] for row in json.loads(printed)["result"]["summary"]}


def spend(command: Sequence[str], *, cores: int = 0) -> tuple[Spent, str]:
    """Run a command in a fresh process, on so many cores (0: all); also return what it printed."""
    with tempfile.TemporaryDirectory(prefix="findwell-bench-") as folder:
        printed = Path(folder) / "printed"
        done = subprocess.run(
            [sys.executable, "-S", "-c", LAUNCHER, str(printed), str(cores), *command],
            cwd=folder,  # where no project has settings
            env={name: value for name, value in os.environ.items() if name != UNCOMPILED},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command[:4]} could not be started:\n{done.stderr}")
        code, wall, cpu, peak = json.loads(done.stdout)
        if code:
            raise RuntimeError(f"{command[:4]} failed with {code}:\n{done.stderr}")
        return Spent(wall, cpu, peak, {}), printed.read_text("utf-8")


def commands(sizes: Sequence[Files], rounds: int, facts: Facts) -> tuple[Table, Table]:
    """Time every tool as a whole command over all sizes; the second table tells the growth."""
    found: dict[Files, dict[str, Spent]] = {}
    for files in sizes:
        ensure(files)
        mine = found[files] = {}
        tries = rounds if files.queries <= LIMIT else 1
        for number in range(1, tries + 1):
            for name in _able(files):
                if name in mine and mine[name].wall > SLOW:
                    continue  # once tells enough
                spent = _spend(name, files)
                mine[name] = spent.best(mine.get(name))
                took = f"{spent.wall:.3g} s, CPU {spent.cpu:.3g} s"
                print(f"round {number} of {tries}  {name}, {files}: {took}", file=sys.stderr)
        facts.disagreements += _disagreements(mine, files)
        facts.commands[files.queries] = {name: spent.cpu for name, spent in mine.items()}
    lines = [line for files, mine in found.items() for line in _lines(files, mine)]
    header = ("queries × documents", "tool", "wall s", "CPU s", "ratio, wall", "ratio, CPU")
    title = "14. Whole commands"
    remark = REMARK.format(limit=LIMIT)
    return Table(title, remark, (*header, "peak MB"), lines, texts=2), _growth(found, facts)


def _able(files: Files) -> list[str]:
    peers = PEERS if files.queries <= LIMIT else PEERS[:1]
    return [FINDWELL, ONE_CORE, *(name for name in peers if not TOOLS[name].absent())]


def _spend(name: str, files: Files) -> Spent:
    if name in (FINDWELL, ONE_CORE):
        spent, printed = spend(findwell_command(files.run, files.gold), cores=int(name == ONE_CORE))
        numbers = findwell_numbers(printed)
    else:
        spent, printed = spend(TOOLS[name].command(files))
        numbers = TOOLS[name].printed(printed)
    return Spent(spent.wall, spent.cpu, spent.peak, numbers)


def _lines(files: Files, mine: Mapping[str, Spent]) -> list[tuple[str, ...]]:
    ours = mine[FINDWELL]
    lines: list[tuple[str, ...]] = []
    for name in (FINDWELL, ONE_CORE, *PEERS):
        if name not in mine:
            why = TOOLS[name].absent() or "not measured"
            lines.append((str(files), name, why, *[NOTHING] * 4))
            continue
        spent = mine[name]
        times = (shown_seconds(spent.wall), shown_seconds(spent.cpu))
        ratios = (f"{spent.wall / ours.wall:.1f}", f"{spent.cpu / ours.cpu:.1f}")
        lines.append((str(files), name, *times, *ratios, f"{spent.peak / MB:,.0f}"))
    return lines


def _growth(found: Mapping[Files, Mapping[str, Spent]], facts: Facts) -> Table:
    rows = []
    for name in next(iter(found.values())):
        points = [(files.queries, mine[name].cpu) for files, mine in found.items() if name in mine]
        if len(points) < 2:
            continue
        whole, last = exponent(points), exponent(points[-2:])
        if name == FINDWELL:
            facts.command_exponent = last
        rows.append((name, f"{whole:.2f}", f"{last:.2f}"))
    header = ("tool", "exponent, all sizes", "exponent, the two largest")
    return Table("16. Growth of whole commands", GROWTH, header, rows)


def _disagreements(mine: Mapping[str, Spent], files: Files) -> list[str]:
    """Name every number that is not findwell's."""
    ours = mine[FINDWELL].numbers
    return [
        f"{name}, as a command, {files}: {measure} is {spent.numbers[measure]:.8f}, "
        f"findwell's is {ours[measure]:.8f}"
        for name, spent in mine.items()
        for measure in MEASURES
        if abs(spent.numbers[measure] - ours[measure])
        > (TOOLS[name].tolerance if name in TOOLS else 0.0)
    ]


PEERS = ("trec_eval", "pytrec-eval-terrier", "ir-measures", "ranx")
