"""What a judge said about each chunk and item: as rows, and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.show.escape import printable
from findwell.show.grid import Grid, one_line
from findwell.show.tables import render_grids
from findwell.show.terminal import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from findwell.evaluation.explanation.units import ExplainedVerdict
    from findwell.evaluation.results.result import Result

VerdictColumns = dict[str, "Callable[[ExplainedVerdict], str]"]


def verdict_grid(title: str, verdicts: Sequence[ExplainedVerdict], *, named: bool = False) -> Grid:
    """Lay out verdicts; `named` also shows the query of each, and the run where there are several.

    The probability is that of a yes, where the judge told one.
    """
    title += ", ? marks a yes that no quote proves" * any(each.unproven for each in verdicts)
    several = len({each.run for each in verdicts}) > 1
    columns: VerdictColumns = {"run": lambda verdict: verdict.run} if named and several else {}
    columns |= {"query": lambda verdict: verdict.query} if named else {}
    keys = len(columns)
    columns |= {
        "about": lambda verdict: verdict.aspect,
        "question, claim, entity or statement": lambda verdict: one_line(verdict.item, 40),
        "chunk": lambda verdict: "–" if verdict.rank is None else str(verdict.rank),
        "verdict": lambda verdict: (
            "failed" if verdict.value is None else f"{verdict.value}{' ?' * verdict.unproven}"
        ),
    }
    at = len(columns) - 1
    if any(each.probability is not None for each in verdicts):
        columns["probability"] = lambda verdict: (
            "" if verdict.probability is None else f"{verdict.probability:.2f}"
        )
    columns["why"] = lambda verdict: one_line(verdict.reason, 48)
    columns["quote"] = lambda verdict: one_line(verdict.quote, 48)
    return Grid.of(
        title,
        columns,
        verdicts,
        left=len(columns),
        named_by=keys + 3 if named else None,
        good={(row, at) for row, each in enumerate(verdicts) if each.value},
        bad={(row, at) for row, each in enumerate(verdicts) if each.value is None},
    )


def render_verdicts(
    result: Result, how: str, *, color: bool = False, width: int | None = None
) -> str:
    """Return every verdict of a result as a table; as a list, where a table is too wide."""
    from rich.cells import cell_len  # noqa: PLC0415

    from findwell.evaluation.explanation.units import verdicts_of  # noqa: PLC0415 - few results are judged

    if result.kept.verdicts is None:
        return ""
    verdicts = verdicts_of(result)
    title = f"what the judge {result.judge.get('name', '')} said"
    drawn = render_grids([verdict_grid(title, verdicts, named=True)], how, color=color)
    if how != "table" or width is None or max(map(cell_len, drawn.splitlines())) <= width:
        return drawn
    several = len(result.runs) > 1
    lines = [f"{title}\n"]
    for place, each in enumerate(verdicts):
        name = f"{each.run} · {each.query}" if several else each.query
        before = verdicts[place - 1] if place else None
        if before is None or (before.run, before.query) != (each.run, each.query):
            lines.append(f"\n {printable(name)}\n")
        lines += [f"{printable(line)}\n" for line in _lines(each)]
    return wrap("".join(lines), width, hang=2) + "\n"


def _lines(verdict: ExplainedVerdict) -> Iterator[str]:
    """Yield one verdict in lines: what it is, then why."""
    facts = [verdict.aspect]
    facts += [one_line(verdict.item, 120)] if verdict.item != verdict.query else []
    facts += [] if verdict.rank is None else [f"chunk {verdict.rank}"]
    facts.append("failed" if verdict.value is None else f"verdict {verdict.value}")
    facts += [] if verdict.probability is None else [f"probability {verdict.probability:.2f}"]
    yield f"   {' · '.join(facts)}"
    if verdict.reason:
        yield f"     why: {one_line(verdict.reason, 200)}"
    if verdict.quote:
        missing = " (not in the chunk)" if verdict.unproven else ""
        yield f"     quote: {one_line(verdict.quote, 200)}{missing}"


def verdict_frame(result: Result) -> pl.DataFrame:
    """Return every verdict of a result as a row."""
    from findwell.evaluation.explanation.units import verdict_table  # noqa: PLC0415

    return verdict_table(result)
