"""Tables as text and as Markdown, and the page they stand on."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.tools import MEASURES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LIBRARIES = ("polars", "numpy", "numba")

INTRODUCTION = f"""\
# Benchmarks

Made by `make bench`; the numbers on this page were measured in one run of it, unless a section says
otherwise. Each tool computes
the same six measures from the same seeded files:
{", ".join(MEASURES)}.
About 30 documents are judged for each query, with grades 0 to 3; half of them are retrieved.

Times are the best of as many tries as the table says, memory is the worst. The tools take turns, so
that a slow minute hits all of them, each time in a fresh process that first does the same work on a
small file, so that imports and compilation are not timed. The files are in the page cache. karat
and ranx use all cores, the other tools one. *Ratio* is a tool's time divided by karat's: above 1,
karat is faster.
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

    def markdown(self) -> str:
        """Return it for the page."""
        numbers = len(self.header) - self.texts
        rule = ["---"] * self.texts + ["---:"] * numbers
        lines = [f"| {' | '.join(line)} |" for line in (self.header, rule, *self.rows)]
        remark = [self.remark, ""] if self.remark else []
        return "\n".join([f"## {self.title}", "", *remark, *lines, ""])

    def _aligned(self, line: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            cell.ljust(width) if number < self.texts else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]


def page(tables: Iterable[Table], quick: bool) -> str:
    """Return the whole Markdown page."""
    parts = [INTRODUCTION, *([QUICK] if quick else []), *(table.markdown() for table in tables)]
    return "\n".join(parts)


def machine() -> Table:
    """Say where and with what this was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    rows = [
        ("date", datetime.now(UTC).date().isoformat()),
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
