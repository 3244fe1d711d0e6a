"""Comparisons as text: tables for the terminal and Markdown, rows for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from karat.findings import shorten
from karat.report.layout import Grid, number, printable
from karat.report.text import FORMATS as TEXT
from karat.report.text import escape, markdown, terminal, with_relation
from karat.spelling import name_relations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from karat.comparison.compare import Comparison

FORMATS = TEXT
CORRECTIONS = {"holm": "p (Holm)", "tukey": "p (Tukey)", "bh": "p (BH)"}
TESTS = {
    "exact": "all sign flips",
    "permutation": "random sign flips",
    "t": "Student's t test",
    "mcnemar": "McNemar's test",
}
READ = (
    "Read it: difference is system − baseline, p how often chance alone makes as much, effect the\n"
    "difference in standard deviations; won, tied and lost count queries."
)


def render(comparison: Comparison, how: str, *, moved: int = 5, color: bool = False) -> str:
    """Return a comparison in one of FORMATS, with a line break at the end.

    Formats with one row a line hold one table: the slices if there are any, else the comparisons.
    """
    if how == "json":
        return json.dumps(comparison.as_dict(), indent=1, ensure_ascii=False) + "\n"
    if how == "latex":
        from karat.report.latex import comparison_table  # noqa: PLC0415

        return comparison_table(comparison)
    if how in ("table", "markdown"):
        return _tables(comparison, how, moved=moved, color=color)
    rows = comparison.slices if comparison.slices.height else comparison.comparisons
    rows = with_relation(rows, comparison.matched_by)
    if how == "jsonl":
        return "".join(
            json.dumps(row, ensure_ascii=False) + "\n" for row in rows.iter_rows(named=True)
        )
    return rows.write_csv(separator="\t" if how == "tsv" else ",")


def unmeasured(comparison: Comparison) -> list[str]:
    """Say which measures no query has for both systems of a pair, and why."""
    rows = comparison.comparisons.filter(comparison.comparisons["n"] == 0)
    return [
        f"{row['measure']} ({row['system']} against {row['baseline']}): {row['reason']}"
        for row in rows.iter_rows(named=True)
    ]


def _tables(comparison: Comparison, how: str, *, moved: int, color: bool) -> str:
    drawn = [
        markdown(grid) if how == "markdown" else terminal(grid, color=color)
        for grid in grids(comparison, moved=moved)
    ]
    said = map(printable, notes(comparison))
    told = "".join(f"- {escape(note)}\n" if how == "markdown" else f"{note}\n" for note in said)
    if how == "markdown":
        return "\n".join([drawn[0], f"{READ}\n", told, *drawn[1:]])
    return "".join([drawn[0], f"{READ}\n{told}", "\n" if drawn[1:] else "", *drawn[1:]])


def grids(comparison: Comparison, *, moved: int = 5) -> Iterator[Grid]:
    """Lay out the comparisons, then the slices, then the queries that moved."""
    title = f"against {comparison.baseline}"
    if _several_baselines(comparison.comparisons):
        title = f"all pairs of {len(comparison.systems)} systems"
    title += f" · {count(comparison.queries)} · dialect {comparison.dialect}"
    title += name_relations(comparison.matched_by.values())
    title += "" if comparison.cluster is None else f" · clusters by {comparison.cluster}"
    yield _grid(comparison, comparison.comparisons, title, [])
    for (column,), rows in comparison.slices.partition_by(
        "column", as_dict=True, maintain_order=True
    ).items():
        yield _grid(comparison, rows, f"by {column}", ["slice"])
    if moved and comparison.moved.height:
        yield _moved(comparison, moved)


def _grid(comparison: Comparison, rows: pl.DataFrame, title: str, first: list[str]) -> Grid:
    pairs = _several_baselines(rows)
    corrected = [name for name in rows["correction"].unique() if name != "none"]
    texts = [*first, "measure", *(["baseline"] if pairs else []), "system"]
    cells = [
        [_text(row[name]) for name in texts]
        + [verdict(comparison, row)]
        + [number(row["baseline_value"]), number(row["system_value"])]
        + [signed(row["difference"]), limits(row), chance(row["p"])]
        + ([chance(row["p_adjusted"])] if corrected else [])
        + [signed(row["effect"], 2), _counts(row), str(row["n"])]
        for row in _by_measure(comparison, rows)
    ]
    header = [*texts, "verdict", "before", "after", "difference"]
    header += [f"{100 * comparison.level:g}% interval", "p"]
    header += [CORRECTIONS[corrected[0]]] if corrected else []
    header += ["effect", "won/tied/lost", "n"]
    return Grid(title, header, cells, left=len(texts) + 1)


def _by_measure(comparison: Comparison, rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows measure by measure; within one they keep their order."""
    place = {str(measure): at for at, measure in enumerate(comparison.measures)}
    return sorted(rows.to_dicts(), key=lambda row: place[row["measure"]])


def verdict(comparison: Comparison, row: dict[str, Any]) -> str:
    """Say in a word what the corrected test shows: better, worse, same, or not shown."""
    if row["difference"] is None or row["p_adjusted"] is None:
        return "unknown"
    if not row["wins"] and not row["losses"]:
        return "same"
    if row["p_adjusted"] >= 1 - comparison.level:
        return "not shown"
    (measure,) = (each for each in comparison.measures if str(each) == row["measure"])
    return "better" if (row["difference"] > 0) == measure.higher_is_better else "worse"


def _moved(comparison: Comparison, count: int) -> Grid:
    """One row a query that moved, by the first measure; those that gained come first."""
    name = str(comparison.measures[0])
    mine = [row for row in comparison.moved.to_dicts() if row["measure"] == name]
    several = len(comparison.systems) > 2
    questions = any((row["question"] or row["query"]) != row["query"] for row in mine)
    cells = []
    seen: dict[tuple[str, bool], int] = {}
    for row in mine:
        key = (row["system"], row["difference"] > 0)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= count:
            cells.append(
                ([row["system"]] if several else [])
                + [shorten(row["query"])]
                + ([shorten(row["question"] or "")] if questions else [])
                + [number(row["before"]), number(row["after"]), signed(row["difference"])]
            )
    texts = [*(["system"] if several else []), "query", *(["question"] if questions else [])]
    header = [*texts, "before", "after", "difference"]
    return Grid(f"queries that moved most in {name}", header, cells, left=len(texts))


def _several_baselines(rows: pl.DataFrame) -> bool:
    return rows["baseline"].n_unique() > 1


def notes(comparison: Comparison) -> list[str]:
    """Say how was tested, and what is odd about rows: what cannot be tested, or never shown."""
    rows = [("", row) for row in comparison.comparisons.to_dicts()]
    rows += ((f"{_text(row['slice'])}, ", row) for row in comparison.slices.to_dicts())
    return [_how_tested(comparison), *_reasons(rows)]


def _how_tested(comparison: Comparison) -> str:
    tests: dict[str, dict[str, None]] = {}
    for test, measure in comparison.comparisons.select("test", "measure").rows():
        tests.setdefault(TESTS.get(test, test), {})[measure] = None
    if len(tests) == 1:
        return f"p by {next(iter(tests))}"
    return "p by " + "; by ".join(f"{test}: {', '.join(names)}" for test, names in tests.items())


def _reasons(rows: Iterable[tuple[str, dict[str, Any]]]) -> Iterable[str]:
    """Say each reason once, with the rows that have it."""
    told: dict[str, list[str]] = {}
    for part, row in rows:
        if row["reason"]:
            told.setdefault(row["reason"], []).append(f"{part}{row['system']} {row['measure']}")
    for reason, where in told.items():
        more = f" and {len(where) - 3} more" if len(where) > 3 else ""
        yield f"{', '.join(where[:3])}{more}: {reason}"


def count(queries: int) -> str:
    """Write a number of queries."""
    return "1 query" if queries == 1 else f"{queries} queries"


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


def _counts(row: dict[str, Any]) -> str:
    return f"{row['wins']}/{row['ties']}/{row['losses']}"


def chance(p: float | None) -> str:
    """Write a p-value.

    >>> chance(0.03), chance(0.00001), chance(None)
    ('0.0300', '< 0.0001', '–')
    """
    if p is None:
        return "–"
    return "< 0.0001" if p < 0.00005 else f"{p:.4f}"


def _text(value: object) -> str:
    return "(none)" if value is None else str(value)
