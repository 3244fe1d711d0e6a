"""Tables of text, and numbers as they show them: for the terminal, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from karat.reports import escape
from karat.reports.escape import printable

FORMATS = ("table", "json", "jsonl", "csv", "tsv", "markdown", "latex")
DIGITS = 4
BARS = "▁▂▃▄▅▆▇█"
BEST, GOOD, BAD, PLAIN = "\x1b[1;32m", "\x1b[32m", "\x1b[31m", "\x1b[0m"  # green, red, and back


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text; `best` marks the cells that lead their column."""

    title: str
    header: list[str]
    rows: list[list[str]]
    left: int = 1  # how many columns are text; the rest are numbers
    best: set[tuple[int, int]] = field(default_factory=set)
    good: set[tuple[int, int]] = field(default_factory=set)  # cells that tell of a success
    bad: set[tuple[int, int]] = field(default_factory=set)  # cells that tell of a failure


def number(value: float | None) -> str:
    """Write a number as tables show it; None is a dash.

    >>> number(0.5), number(None), number(1200.0)
    ('0.5000', '–', '1200')
    """
    if value is None:
        return "–"
    whole = float(value).is_integer() and abs(value) > 1
    return f"{value:.0f}" if whole else f"{value:.{DIGITS}f}"


def interval(low: float | None, high: float | None) -> str:
    """Write an interval with as many digits as tell its ends apart.

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


def limits(row: dict[str, Any]) -> str:
    """Write an interval of differences, with as many digits as tell its ends apart.

    >>> limits({"low": -0.0123, "high": 0.2}), limits({"low": 0.00211, "high": 0.00219})
    ('−0.012 … +0.200', '+0.0021 … +0.0022')
    """
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "–"
    digits = 3 if 0.01 <= high - low <= 10 else None
    return f"{signed(low, digits)} … {signed(high, digits)}"


def chance(p: float | None) -> str:
    """Write a p-value.

    >>> chance(0.03), chance(0.00001), chance(None)
    ('0.0300', '< 0.0001', '–')
    """
    if p is None:
        return "–"
    return "< 0.0001" if p < 0.00005 else f"{p:.4f}"


def count(queries: int) -> str:
    """Write a number of queries."""
    return "1 query" if queries == 1 else f"{queries} queries"


def render_grids(grids: Iterable[Grid], how: str, *, color: bool = False) -> str:
    """Return tables one after another as `table` for the terminal, `markdown` or `latex`."""
    if how == "table":
        return "".join(terminal(grid, color=color) for grid in grids)
    return "\n".join(map(markdown if how == "markdown" else latex, grids))


def terminal(grid: Grid, *, color: bool = False) -> str:
    """Return a table for the terminal; the best of a column is bold where colour is on."""
    from rich.cells import cell_len  # noqa: PLC0415

    grid = _printable(grid)
    columns = zip(grid.header, *grid.rows, strict=True)
    widths = [max(map(cell_len, column)) for column in columns]

    def line(cells: list[str], row: int = -1) -> str:
        padded = []
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            blank = " " * (width - cell_len(cell))
            paint = _paint(grid, row, at) if color else ""
            shown = f"{paint}{cell}{PLAIN}" if paint else cell
            padded.append(shown + blank if at < grid.left else blank + shown)
        return " " + "   ".join(padded).rstrip() + "\n"

    rule = " " + "─" * (sum(widths) + 3 * (len(widths) - 1)) + "\n"
    body = "".join(line(cells, row) for row, cells in enumerate(grid.rows))
    return f"{grid.title}\n\n{line(grid.header)}{rule}{body}\n"


def _paint(grid: Grid, row: int, column: int) -> str:
    if (row, column) in grid.best:
        return BEST
    if (row, column) in grid.good:
        return GOOD
    return BAD if (row, column) in grid.bad else ""


def markdown(grid: Grid) -> str:
    """Return a table as GitHub Markdown; the best of a column is bold."""

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cells) + " |\n"

    rules = ["---" if at < grid.left else "---:" for at in range(len(grid.header))]
    body = "".join(
        line(
            [
                f"**{escape.markdown(cell)}**" if (y, x) in grid.best else escape.markdown(cell)
                for x, cell in enumerate(row)
            ]
        )
        for y, row in enumerate(grid.rows)
    )
    header = line([escape.markdown(cell) for cell in grid.header])
    return f"**{escape.markdown(grid.title)}**\n\n" + header + line(rules) + body


def _printable(grid: Grid) -> Grid:
    """Return the table with nothing in it that a terminal would obey."""
    return replace(
        grid,
        title=printable(grid.title),
        header=[printable(cell) for cell in grid.header],
        rows=[[printable(cell) for cell in row] for row in grid.rows],
    )


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
    lines = []
    for row, cells in enumerate(grid.rows):
        shown = [escape.latex(cell).replace("–", "--").replace("…", r"\ldots{}") for cell in cells]
        shown = [
            rf"\textbf{{{cell}}}" if (row, at) in grid.best else cell
            for at, cell in enumerate(shown)
        ]
        lines.append(" & ".join(shown) + r" \\")
    kinds = "l" * grid.left + "r" * (len(grid.header) - grid.left)
    header = " & ".join(map(escape.latex, grid.header)) + r" \\"
    return latex_table(escape.latex(grid.title), kinds, header, lines)


def latex_table(caption: str, kinds: str, header: str, lines: list[str]) -> str:
    """Return rows of LaTeX as a table; `kinds` are the kinds of its columns, such as lrr."""
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule",
            header,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )
