"""Tables as text and as Markdown, and the page they stand on."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.data import ROOT
from benchmarks.tools import MEASURES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MB = 1e6
NOTHING = "–"
LIBRARIES = ("polars", "numpy", "numba")

INTRODUCTION = f"""\
# Benchmarks

Made by `make bench`. Every section says on which day, at which commit and on which machine it was
measured: sections with the same line are of one run, others are older and not to be compared with
them. Each tool computes the same six measures from the same seeded files:
{", ".join(MEASURES)}.
About 30 documents are judged for each query, with grades 0 to 3; half of them are retrieved.

Times are the best of as many tries as the table says, memory is the worst. The tools take turns, so
that a slow minute hits all of them, each time in a fresh process that first does the same work on a
small file, so that imports and compilation are not timed; whole commands, which are, have sections
of their own. The files are in the page cache. findwell and ranx use all cores, the other tools one.
*Ratio* is a tool's time divided by findwell's: above 1, findwell is faster.

`TREC_EVAL_SRC=FOLDER make bench` builds trec_eval from its sources, with -O2, and measures it, too;
`TREC_EVAL=PROGRAM` names one that is ready. `python -m benchmarks.bench --only 14,15` measures some
sections and leaves the others as they are, `--million` adds a run of 1,000,000 queries to the whole
commands, and `--quick` takes small files, to see that everything works.
"""
QUICK = """\
**A quick run on small files, all stages of a tool in one process: it shows that the benchmarks
work, judge nothing by it.**
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table with a remark; its first columns hold text, the others are right-aligned."""

    title: str
    remark: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1  # how many columns hold text

    def text(self) -> str:
        """Return it for the terminal."""
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = ["  ".join(self._aligned(line, widths)).rstrip() for line in lines]
        return "\n".join([self.title, "", *shown, ""])

    def markdown(self, stamp: str = "") -> str:
        """Return it for the page, with when and where it was measured."""
        numbers = len(self.header) - self.texts
        rule = ["---"] * self.texts + ["---:"] * numbers
        lines = [f"| {' | '.join(line)} |" for line in (self.header, rule, *self.rows)]
        remark = [self.remark, ""] if self.remark else []
        measured = [stamp, ""] if stamp else []
        return "\n".join([f"## {self.title}", "", *measured, *remark, *lines, ""])

    def _aligned(self, line: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            cell.ljust(width) if number < self.texts else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]


def page(tables: Iterable[Table], quick: bool, before: str = "") -> str:
    """Return the whole Markdown page; what was not measured anew is kept from the page before."""
    stamp = stamped()
    sections = _sections(before) | {table.title: table.markdown(stamp) for table in tables}
    order = sorted(sections, key=_place)
    parts = [INTRODUCTION, *([QUICK] if quick else []), *(sections[title] for title in order)]
    return "\n".join(parts)


def _sections(text: str) -> dict[str, str]:
    """Return the sections of a page by title."""
    _, *found = f"\n{text}".split("\n## ")
    return {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in found}


def _place(title: str) -> int:
    """Return where a section stands: first those without a number, as they were made."""
    number = title.partition(".")[0]
    return int(number) if number.isdigit() else 0


def stamped() -> str:
    """Say when, at which commit and on which machine this is measured."""
    today = datetime.now(UTC).date().isoformat()
    where = f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return f"*Measured on {today} at commit {_commit()}; {where}.*"


def _commit() -> str:
    """Return the commit of these sources, and whether they were changed since."""
    said = [
        subprocess.run(["git", *asked], cwd=ROOT, capture_output=True, text=True, check=False)
        for asked in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "src"])
    ]
    if said[0].returncode:
        return "unknown"
    return said[0].stdout.strip() + (", with changes" if said[1].stdout.strip() else "")


def shown_seconds(value: float) -> str:
    """Return a time with as many digits as mean something."""
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def machine() -> Table:
    """Say where and with what this was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    rows = [
        ("date", datetime.now(UTC).date().isoformat()),
        ("commit", _commit()),
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("memory", f"{memory / 2**30:.0f} GiB"),
        ("system", platform.platform(terse=True)),
        ("Python", platform.python_version()),
        *((name, metadata.version(name)) for name in LIBRARIES if _installed(name)),
        *(
            (name, tool.absent() or tool.version())
            for name, tool in TOOLS.items()
            if name == tool.package
        ),
    ]
    return Table("The machine and the versions", "", ("what", "which"), rows, texts=2)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or sys.platform


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
