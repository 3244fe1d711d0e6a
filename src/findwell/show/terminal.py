"""Tables and sentences in a terminal: as wide as it is, never wider."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

from findwell.show.escape import printable
from findwell.show.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BEST, GOOD, BAD, PLAIN = "\x1b[1;32m", "\x1b[32m", "\x1b[31m", "\x1b[0m"  # green, red, and back
GAPS = (3, 2)  # blanks between columns, as wide as the terminal allows
LEAST, READABLE = 10, 24  # letters that are left of a text at least, and better
TRANSPOSED = 8  # columns of a table on its side, at most


def terminal(grid: Grid, *, color: bool = False, width: int | None = None) -> str:
    """Return a table for the terminal; the best of a column is bold where colour is on.

    One that is wider than the terminal stands on its side if it then fits; else texts are cut, and
    its columns are shown in several tables, each with the columns that name the rows.
    """
    shown = _printable(grid)
    if width is not None and grid.wider is not None:
        wider = _printable(grid.wider)
        shown = wider if _width(wider, GAPS[0]) <= width else shown
    if width is not None and grid.listed and _width(shown, GAPS[0]) > width:
        body = wrap(grid.listed, width, hang=2)
    else:
        blocks = [(shown, GAPS[0])] if width is None else _fitted(shown, width)
        body = "\n".join(_draw(block, gap, color=color) for block, gap in blocks)
    note = f"\n{wrap(f' {printable(grid.note)}', width)}\n" if grid.note else ""
    return f"{wrap(printable(grid.title), width)}\n\n{body}{note}\n"


def _printable(grid: Grid) -> Grid:
    return replace(
        grid,
        header=[printable(cell) for cell in grid.header],
        rows=[[printable(cell) for cell in row] for row in grid.rows],
    )


def wrap(text: str, width: int | None, hang: int = 0) -> str:
    """Break lines that are wider than the terminal between words.

    They go on where they began, or as many blanks further in as they `hang`.

    >>> print(wrap("  recall@5 is 0 for some of the queries", 24))
      recall@5 is 0 for some
      of the queries
    """
    if width is None:
        return text
    return "".join(_wrapped(line, width, hang) for line in text.splitlines(keepends=True))


def _wrapped(line: str, width: int, hang: int) -> str:
    from rich.cells import cell_len  # noqa: PLC0415

    if cell_len(line.rstrip("\n")) <= width or "\x1b" in line:
        return line
    indent = " " * (len(line) - len(line.lstrip(" ")))
    lines = textwrap.wrap(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent + " " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) + ("\n" if line.endswith("\n") else "")


def _fitted(grid: Grid, width: int) -> Iterator[tuple[Grid, int]]:
    """Return the tables that show a grid within a width, and the gaps of their columns."""
    for gap in GAPS:
        if _width(grid, gap) <= width:
            yield grid, gap
            return
    if grid.keys and len(grid.rows) < TRANSPOSED:
        turned = _transposed(grid)
        for gap in GAPS:
            if _width(turned, gap) <= width:
                yield turned, gap
                return
    gap = GAPS[-1]
    grid = _cut(grid, width, gap)
    if _width(grid, gap) <= width:
        yield grid, gap
        return
    widths = _widths(grid)
    keys = list(range(grid.keys))
    room = width - 1 - sum(widths[at] + gap for at in keys)
    block: list[int] = []
    for at in range(grid.keys, len(widths)):
        if block and sum(widths[each] + gap for each in [*block, at]) - gap > room:
            yield _columns(grid, [*keys, *block]), gap
            block = []
        block.append(at)
    yield _columns(grid, [*keys, *block]), gap


def _widths(grid: Grid) -> list[int]:
    from rich.cells import cell_len  # noqa: PLC0415

    return [max(map(cell_len, column)) for column in zip(grid.header, *grid.rows, strict=True)]


def _width(grid: Grid, gap: int) -> int:
    return 1 + sum(_widths(grid)) + gap * (len(grid.header) - 1)


def _transposed(grid: Grid) -> Grid:
    """Return a table on its side: each column becomes a row."""
    turned = [list(column) for column in zip(grid.header, *grid.rows, strict=True)]
    marks = (
        {(column - 1, row + 1) for row, column in cells if column}
        for cells in (grid.best, grid.good, grid.bad)
    )
    best, good, bad = marks
    return Grid(grid.title, turned[0], turned[1:], best=best, good=good, bad=bad)


def _cut(grid: Grid, width: int, gap: int) -> Grid:
    """Cut the longest texts, so that the columns that name the rows leave room for one more."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415

    widths = _widths(grid)
    keys = range(grid.keys)
    others = widths[grid.keys :]
    room = width - 1 - sum(others) - gap * (len(widths) - 1)
    if room < sum(min(widths[at], READABLE) for at in keys):  # the table will not be one
        room = max(width - 1 - max(others, default=0) - gap * len(keys), LEAST * len(keys))
    most = dict(enumerate(widths))
    while sum(most[at] for at in keys) > room and max(most[at] for at in keys) > LEAST:
        longest = max(keys, key=lambda at: most[at])
        most[longest] = max(LEAST, most[longest] - 1)
    for at in range(
        grid.keys, grid.left
    ):  # a text that is not a name may take what the names leave
        most[at] = max(LEAST, min(most[at], width - 1 - sum(most[key] + gap for key in keys)))

    def short(cell: str, at: int) -> str:
        if cell_len(cell) <= most[at]:
            return cell
        return set_cell_size(cell, most[at] - 1).rstrip() + "…"

    rows = [[short(cell, at) for at, cell in enumerate(row)] for row in grid.rows]
    return replace(grid, rows=rows, header=[short(each, at) for at, each in enumerate(grid.header)])


def _columns(grid: Grid, kept: Sequence[int]) -> Grid:
    """Return some columns of a table."""
    place = {old: new for new, old in enumerate(kept)}
    marks = (
        {(row, place[at]) for row, at in cells if at in place}
        for cells in (grid.best, grid.good, grid.bad)
    )
    best, good, bad = marks
    return replace(
        grid,
        header=[grid.header[at] for at in kept],
        rows=[[row[at] for at in kept] for row in grid.rows],
        left=sum(at < grid.left for at in kept),
        best=best,
        good=good,
        bad=bad,
    )


def _draw(grid: Grid, gap: int, *, color: bool) -> str:
    from rich.cells import cell_len  # noqa: PLC0415

    widths = _widths(grid)

    def line(cells: list[str], row: int = -1) -> str:
        padded = []
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            blank = " " * (width - cell_len(cell))
            paint = _paint(grid, (row, at)) if color else ""
            shown = f"{paint}{cell}{PLAIN}" if paint else cell
            padded.append(shown + blank if at < grid.left else blank + shown)
        return " " + (" " * gap).join(padded).rstrip() + "\n"

    rule = " " + "─" * (sum(widths) + gap * (len(widths) - 1)) + "\n"
    body = "".join(line(cells, row) for row, cells in enumerate(grid.rows))
    return f"{line(grid.header)}{rule}{body}"


def _paint(grid: Grid, cell: tuple[int, int]) -> str:
    kinds = ((grid.best, BEST), (grid.good, GOOD), (grid.bad, BAD))
    return next((paint for cells, paint in kinds if cell in cells), "")
