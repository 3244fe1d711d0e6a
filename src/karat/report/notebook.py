"""Results, comparisons and explanations as HTML for notebooks; all is text, nothing is obeyed."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from karat.report import comparison as comparisons
from karat.report import explanation
from karat.report.layout import Grid, grids, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from karat.comparison.compare import Comparison
    from karat.explanation.explain import Explanation
    from karat.findings import Finding
    from karat.results.result import Result

ROWS = 100  # of a table; a notebook is no place for more


def result_html(result: Result) -> str:
    """Return a result as HTML: the summary, and what is odd about the input."""
    return _page(list(grids(result)), map(_describe, result.findings))


def comparison_html(comparison: Comparison) -> str:
    """Return a comparison as HTML: the table, slices, queries that moved, notes and findings."""
    told = [*comparisons.notes(comparison), *map(_describe, comparison.findings)]
    return _page(list(comparisons.grids(comparison)), told)


def explanation_html(told: Explanation) -> str:
    """Return an explanation as HTML: lists, gold, how each number comes about, what differs."""
    lines = [*map(explanation.sentence, told.calculations), *told.differences]
    listed = "".join(f"<li>{_text(line)}</li>" for line in lines)
    title = f"<p>{_text(explanation.heading(told))}</p>"
    return f"<div>{title}{''.join(map(html_table, explanation.grids(told)))}<ul>{listed}</ul></div>"


def _page(tables: list[Grid], told: Iterable[str]) -> str:
    notes = "".join(f"<li>{_text(note)}</li>" for note in told)
    listed = f"<ul>{notes}</ul>" if notes else ""
    return f"<div>{''.join(map(html_table, tables))}{listed}</div>"


def html_table(grid: Grid) -> str:
    """Return a table as HTML; the best of a column is bold."""
    head = "".join(_cell("th", cell, at < grid.left) for at, cell in enumerate(grid.header))
    body = "".join(
        "<tr>"
        + "".join(
            _cell("td", cell, at < grid.left, bold=(row, at) in grid.best)
            for at, cell in enumerate(cells)
        )
        + "</tr>"
        for row, cells in enumerate(grid.rows[:ROWS])
    )
    more = len(grid.rows) - ROWS
    rest = f"<p>and {more} more rows</p>" if more > 0 else ""
    return (
        f"<table><caption>{_text(grid.title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
    )


def _cell(tag: str, text: str, left: bool, *, bold: bool = False) -> str:
    shown = f"<b>{_text(text)}</b>" if bold else _text(text)
    return f'<{tag} style="text-align: {"left" if left else "right"}">{shown}</{tag}>'


def _text(text: str) -> str:
    return escape(printable(text))


def _describe(finding: Finding) -> str:
    run = f"{finding.run}: " if finding.run else ""
    return f"{run}{finding.count} × {finding.message} ({', '.join(finding.examples)})"
