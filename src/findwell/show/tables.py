"""What all texts are made of: tables for the terminal, Markdown and LaTeX, numbers, rows, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import ceil, floor, log10
from typing import TYPE_CHECKING, TypeVar

from findwell.core.findings import shorten
from findwell.show import escape
from findwell.show.escape import printable
from findwell.show.grid import Grid  # noqa: TC001 - for the examples
from findwell.show.terminal import terminal, wrap

if TYPE_CHECKING:
    import polars as pl

    from findwell.core.findings import Finding

Key = TypeVar("Key")

ROW_FORMATS = ("jsonl", "csv", "tsv")  # with one row per line, and room for nothing else
FORMATS = ("table", "json", *ROW_FORMATS, "markdown", "latex")
DIGITS = 4
READABLE = 80  # letters of a line
BARS = "▁▂▃▄▅▆▇█"


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
    return 4 if width < 0.01 else 3 if width <= 10 else 1


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
    examples = ", ".join(map(shorten, finding.examples))
    examples += ", …" if finding.count > len(finding.examples) else ""
    run = f"{finding.run}: " if finding.run else ""
    return printable(f"{run}{finding.count} × {finding.message} ({examples})")


def to_json(data: object) -> str:
    """Return data as the JSON that commands print."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def to_rows(table: pl.DataFrame, how: str) -> str:
    """Return a table as `jsonl`, `csv` or `tsv`; in these two a text is never a formula."""
    if how == "jsonl":
        rows = table.iter_rows(named=True)
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    from findwell.core.spreadsheets import to_csv  # noqa: PLC0415 - it needs polars

    return to_csv(table, "\t" if how == "tsv" else ",")


def cleaner(how: str) -> Callable[[str], str]:
    """Return the function that makes a text only text, in `markdown` or for the terminal."""
    return escape.markdown if how == "markdown" else printable


def bullets(lines: Iterable[str], how: str, width: int | None = None) -> str:
    """Return lines as a list in `markdown`; for the terminal indented, no wider than `width`."""
    if how == "markdown":
        return "".join(f"- {escape.markdown(line)}\n" for line in lines)
    return wrap("".join(f"  {printable(line)}\n" for line in lines), width, hang=2)


def reading_width(width: int | None) -> int:
    """Return how wide sentences are: as the terminal, and never wider than 80."""
    return min(width or READABLE, READABLE)


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
