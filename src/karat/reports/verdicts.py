"""What a judge said about each chunk and item: as rows, and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.reports.grid import Grid, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from karat.explanation.units import ExplainedVerdict
    from karat.results.result import Result

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


def result_verdict_grid(result: Result) -> Grid:
    """Lay out every verdict of a result."""
    from karat.explanation.units import verdicts_of  # noqa: PLC0415 - few results are judged

    judge = result.judge.get("name", "")
    return verdict_grid(f"what the judge {judge} said", verdicts_of(result), named=True)


def verdict_frame(result: Result) -> pl.DataFrame:
    """Return every verdict of a result as a row."""
    from karat.explanation.units import verdict_table  # noqa: PLC0415

    return verdict_table(result)
