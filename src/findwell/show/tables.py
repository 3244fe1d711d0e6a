"""Tables, sentences and numbers for the terminal, Markdown and LaTeX; rows and JSON.

In a terminal they are as wide as it is, never wider.
"""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import replace
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any, TypeVar

from findwell.core.findings import shorten
from findwell.show import escape
from findwell.show.escape import printable
from findwell.show.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from findwell.core.findings import Finding


Key = TypeVar("Key")

ROW_FORMATS = ("jsonl", "csv", "tsv")  # with one row per line, and room for nothing else
FORMATS = ("table", "json", *ROW_FORMATS, "markdown", "latex")
DIGITS = 4
READABLE_WIDTH = 80  # letters of a line
BARS = "▁▂▃▄▅▆▇█"
_NARROW = re.compile(r"[ -~\u00a0-\u00ac\u00ae-\u02ff–—…−×≤≥·↑↓→†‡▁-█─]*")  # one column each


def cell_len(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    >>> cell_len("0.07 … 0.12"), cell_len("検索")
    (11, 4)
    """
    if _NARROW.fullmatch(text):  # importing rich takes longer than a small table
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415

    return cell_len(text)


def number(value: float | None, digits: int = DIGITS) -> str:
    """Write a number as tables show it; None is a dash.

    >>> number(0.5), number(None), number(1200.0)
    ('0.5000', '–', '1200')
    """
    if value is None:
        return "–"
    whole = float(value).is_integer() and abs(value) > 1
    return f"{value:.0f}" if whole else f"{value:.{digits}f}"


def rounded(count: int) -> int:
    """Return a number with two digits: it is an estimate.

    >>> rounded(2486), rounded(71)
    (2500, 71)
    """
    return round(count, 1 - floor(log10(max(count, 1))))


def decimals(low: float | None, high: float | None) -> int:
    """Return how many decimals a number deserves next to its interval.

    >>> decimals(0.61, 0.83), decimals(0.610, 0.614), decimals(400.0, 900.0)
    (3, 4, 1)
    """
    if low is None or high is None:
        return 3
    width = high - low
    return 4 if width < 0.02 else 3 if width <= 10 else 1


def interval(low: float | None, high: float | None) -> str:
    """Write an interval with as many digits as its ends need to differ.

    >>> interval(0.5, 0.75), interval(0.501, 0.502), interval(None, None)
    ('0.50 … 0.75', '0.5010 … 0.5020', '–')
    """
    if low is None or high is None:
        return "–"
    if high - low < 0.02 or high > 10:
        return f"{number(low)} … {number(high)}"
    return f"{low:.2f} … {high:.2f}"


def signed(value: float | None, digits: int | None = None) -> str:
    """Write a difference with its sign.

    >>> signed(0.02), signed(-0.5, 2), signed(None)
    ('+0.0200', '−0.50', '–')
    """
    if value is None:
        return "–"
    shown = number(abs(value)) if digits is None else f"{abs(value):.{digits}f}"
    if not shown.strip("0."):
        return shown
    return ("−" if value < 0 else "+") + shown


def limits(low: float | None, high: float | None) -> str:
    """Write the interval of a difference; a limit that is not 0 never looks like 0.

    >>> limits(-0.0123, 0.2), limits(0.00211, 0.00219), limits(0.0002, 0.2)
    ('−0.012 … +0.200', '+0.0021 … +0.0022', '+0.0002 … +0.200')
    """
    if low is None or high is None:
        return "–"
    digits = decimals(low, high)
    return " … ".join(
        signed(each, max(digits, min(ceil(-log10(abs(each))), 9) if each else 0))
        for each in (low, high)
    )


def chance(p: float | None) -> str:
    """Write a p-value.

    >>> chance(0.25), chance(0.0312), chance(0.00001), chance(None)
    ('0.25', '0.031', '< 0.001', '–')
    """
    if p is None:
        return "–"
    return "< 0.001" if p < 0.0005 else f"{p:.3f}" if p < 0.0995 else f"{p:.2f}"


def best_first(*, higher: bool) -> Callable[[float | None], tuple[bool, float]]:
    """Return the key that sorts the best value first, and what has no value last."""
    sign = -1 if higher else 1
    return lambda value: (value is None, sign * (value or 0.0))


def best(values: Mapping[Key, float | None], *, higher_is_better: bool) -> set[Key]:
    """Return the keys of the best value; none if all values are the same.

    >>> best({"a": 0.5, "b": None, "c": 0.7}, higher_is_better=True)
    {'c'}
    """
    known = {key: value for key, value in values.items() if value is not None}
    if len(set(known.values())) < 2:
        return set()
    top = (max if higher_is_better else min)(known.values())
    return {key for key, value in known.items() if value == top}


def describe_finding(finding: Finding) -> str:
    """Return a finding as one line, safe to print."""
    said = ", ".join(map(shorten, finding.examples))
    said += ", …" if said and finding.count > len(finding.examples) else ""
    first, dot, rest = finding.message.partition(". ")  # the examples belong to what was counted
    said = f" ({said})." if said else "."
    run = f"{finding.run}: " if finding.run else ""
    return printable(f"{run}{first.removesuffix('.')}{said}{dot[1:]}{rest}")


def to_rows(table: pl.DataFrame, how: str) -> str:
    """Return a table as `jsonl`, `csv` or `tsv`; in these two a text is never a formula."""
    if how == "jsonl":
        rows = table.iter_rows(named=True)
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    from findwell.core.spreadsheets import to_csv  # noqa: PLC0415 - it needs polars

    return to_csv(table, "\t" if how == "tsv" else ",")


def bullets(lines: Iterable[str], how: str, width: int | None = None) -> str:
    """Return lines as a list in `markdown`; for the terminal indented, no wider than `width`."""
    if how == "markdown":
        return "".join(f"- {escape.markdown(line)}\n" for line in lines)
    return wrap("".join(f"  {printable(line)}\n" for line in lines), width, hang=2)


def reading_width(width: int | None) -> int:
    """Return how wide sentences are: as the terminal, and never wider than 80."""
    return min(width or READABLE_WIDTH, READABLE_WIDTH)


def render_grids(
    grids: Iterable[Grid], how: str, *, color: bool = False, width: int | None = None
) -> str:
    """Return tables one after another as `table` for the terminal, `markdown` or `latex`."""
    if how == "table":
        return "".join(terminal(grid, color=color, width=width) for grid in grids)
    return "\n".join(map(markdown if how == "markdown" else latex, grids))


def markdown(grid: Grid) -> str:
    """Return a table as GitHub Markdown; the best of a column is bold."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |\n"

    rules = ["---" if at < grid.left else "---:" for at in range(len(grid.header))]
    body = "".join(map(line, _cells(grid, escape.markdown, "**{}**")))
    header = line(map(escape.markdown, grid.header))
    note = f"\n{escape.markdown(grid.note)}\n" if grid.note else ""
    return f"**{escape.markdown(grid.title)}**\n\n" + header + line(rules) + body + note


def _cells(
    grid: Grid, clean: Callable[[str], str], bold: str, raised: str = "{}"
) -> Iterator[list[str]]:
    """Return the rows of a table, cleaned, the best of a column bold, with the marks of cells."""
    for y, row in enumerate(grid.rows):
        shown = [
            bold.format(cell) if (y, x) in grid.best else cell
            for x, cell in enumerate(map(clean, row))
        ]
        yield [
            cell + (raised.format(clean(grid.marks[y, x])) if (y, x) in grid.marks else "")
            for x, cell in enumerate(shown)
        ]


def latex(grid: Grid) -> str:
    r"""Return any table for a paper; the best of a column is bold.

    >>> print(latex(Grid("95 queries", ["run", "AP"], [["bm25", "0.58"]], best={(0, 1)})))
    % needs \usepackage{booktabs}
    \begin{table}
    \centering
    \caption{95 queries}
    \begin{tabular}{lr}
    \toprule
    run & AP \\
    \midrule
    bm25 & \textbf{0.58} \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """

    def clean(cell: str) -> str:
        return escape.latex(cell).replace("–", "--").replace("…", r"\ldots{}")

    rows = _cells(grid, clean, r"\textbf{{{}}}", r"\textsuperscript{{{}}}")
    kinds = "l" * grid.left + "r" * (len(grid.header) - grid.left)
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape.latex(grid.title)}}}",
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule",
            " & ".join(map(escape.latex, grid.header)) + r" \\",
            r"\midrule",
            *(" & ".join(cells) + r" \\" for cells in rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def latex_notes(lines: Iterable[str]) -> str:
    """Return lines as comments of LaTeX."""
    return "".join(f"% {printable(line)}\n" for line in lines)


# bold green, green, red, and back
BEST_COLOR, GOOD_COLOR, BAD_COLOR, NO_COLOR = "\x1b[1;32m", "\x1b[32m", "\x1b[31m", "\x1b[0m"
GAPS = (3, 2)  # blanks between columns, as wide as the terminal allows
SHORT_CELL, READABLE_CELL = 10, 24  # letters that are left of a text at least, and better
TRANSPOSED_COLUMNS = 8  # columns of a table on its side, at most


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
    turned: list[Grid] = []
    whole = grid.keys < grid.left  # what is said of a row is read together
    if grid.keys and (whole or len(grid.rows) < TRANSPOSED_COLUMNS):
        for gap in GAPS:
            turned = _turned(grid, width, gap)
            if len(turned) == 1:
                yield turned[0], gap
                return
    gap = GAPS[-1]
    grid = _cut(grid, width, gap)
    if _width(grid, gap) <= width:
        yield grid, gap
        return
    blocks = list(_side_by_side(grid, width, gap))
    # of as many tables, those that have all of a row in one of them
    kept = turned if turned and (whole or len(turned) <= len(blocks)) else blocks
    yield from ((each, gap) for each in kept)


def _turned(grid: Grid, width: int, gap: int) -> list[Grid]:
    """Return a table on its side, in as many tables as fit; none if a single row does not."""
    turned: list[Grid] = []
    first = 0
    while first < len(grid.rows):
        fitting: Grid | None = None
        for end in range(first + 1, len(grid.rows) + 1):
            longer = _transposed(_some_rows(grid, first, end))
            if _width(longer, gap) > width:
                break
            fitting = longer
        if fitting is None:
            return []
        turned.append(fitting)
        first += len(fitting.header) - 1
    return turned


def _some_rows(grid: Grid, first: int, end: int) -> Grid:
    moved = _moved(grid, lambda row, at: (row - first, at) if first <= row < end else None)
    return replace(grid, rows=grid.rows[first:end], **moved)


def _moved(grid: Grid, place: Callable[[int, int], tuple[int, int] | None]) -> dict[str, Any]:
    """Return the cells that stand out where they are in another table; None is out of it."""
    return {
        name: {new for cell in getattr(grid, name) if (new := place(*cell)) is not None}
        for name in ("best", "good", "bad")
    }


def _side_by_side(grid: Grid, width: int, gap: int) -> Iterator[Grid]:
    """Return some columns of a table after the others, each time with those that name the rows."""
    widths = _widths(grid)
    keys = list(range(grid.keys))
    room = width - 1 - sum(widths[at] + gap for at in keys)
    block: list[int] = []
    for at in range(grid.keys, len(widths)):
        if block and sum(widths[each] + gap for each in [*block, at]) - gap > room:
            yield _columns(grid, [*keys, *block])
            block = []
        block.append(at)
    yield _columns(grid, [*keys, *block])


def _widths(grid: Grid) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(grid.header, *grid.rows, strict=True)]


def _width(grid: Grid, gap: int) -> int:
    return 1 + sum(_widths(grid)) + gap * (len(grid.header) - 1)


def _transposed(grid: Grid) -> Grid:
    """Return a table on its side: each column becomes a row."""
    turned = [list(column) for column in zip(grid.header, *grid.rows, strict=True)]
    moved = _moved(grid, lambda row, column: (column - 1, row + 1) if column else None)
    return Grid(grid.title, turned[0], turned[1:], **moved)


def _cut(grid: Grid, width: int, gap: int) -> Grid:
    """Cut the longest texts, so that the columns that name the rows leave room for one more."""
    from rich.cells import set_cell_size  # noqa: PLC0415

    widths = _widths(grid)
    keys = range(grid.keys)
    others = widths[grid.keys :]
    room = width - 1 - sum(others) - gap * (len(widths) - 1)
    least = READABLE_CELL if len(keys) == 1 else SHORT_CELL  # several names need not be whole
    if room < sum(min(widths[at], least) for at in keys):  # the table will not be one
        room = max(width - 1 - max(others, default=0) - gap * len(keys), SHORT_CELL * len(keys))
    most = dict(enumerate(widths))
    while sum(most[at] for at in keys) > room and max(most[at] for at in keys) > SHORT_CELL:
        longest = max(keys, key=lambda at: most[at])
        most[longest] = max(SHORT_CELL, most[longest] - 1)
    # a text that is not a name may take what the names leave
    for at in range(grid.keys, grid.left):
        most[at] = max(SHORT_CELL, min(most[at], width - 1 - sum(most[key] + gap for key in keys)))

    def short(cell: str, at: int) -> str:
        if cell_len(cell) <= most[at]:
            return cell
        return set_cell_size(cell, most[at] - 1).rstrip() + "…"

    rows = [[short(cell, at) for at, cell in enumerate(row)] for row in grid.rows]
    return replace(grid, rows=rows, header=[short(each, at) for at, each in enumerate(grid.header)])


def _columns(grid: Grid, kept: Sequence[int]) -> Grid:
    """Return some columns of a table."""
    place = {old: new for new, old in enumerate(kept)}
    return replace(
        grid,
        header=[grid.header[at] for at in kept],
        rows=[[row[at] for at in kept] for row in grid.rows],
        left=sum(at < grid.left for at in kept),
        **_moved(grid, lambda row, at: (row, place[at]) if at in place else None),
    )


def _draw(grid: Grid, gap: int, *, color: bool) -> str:
    widths = _widths(grid)

    def line(cells: list[str], row: int = -1) -> str:
        padded = []
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            blank = " " * (width - cell_len(cell))
            paint = _paint(grid, (row, at)) if color else ""
            shown = f"{paint}{cell}{NO_COLOR}" if paint else cell
            padded.append(shown + blank if at < grid.left else blank + shown)
        return " " + (" " * gap).join(padded).rstrip() + "\n"

    rule = " " + "─" * (sum(widths) + gap * (len(widths) - 1)) + "\n"
    body = "".join(line(cells, row) for row, cells in enumerate(grid.rows))
    return f"{line(grid.header)}{rule}{body}"


def _paint(grid: Grid, cell: tuple[int, int]) -> str:
    kinds = ((grid.best, BEST_COLOR), (grid.good, GOOD_COLOR), (grid.bad, BAD_COLOR))
    return next((paint for cells, paint in kinds if cell in cells), "")
