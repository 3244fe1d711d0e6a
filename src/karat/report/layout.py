"""How a result is laid out as tables of text: the same cells for the terminal and Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from karat.spelling import name_relations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from karat.core.data import Floats
    from karat.core.timing import Timing
    from karat.results.result import Result

DIGITS = 4
BOUNDS = ("lower", "upper")
BARS = "▁▂▃▄▅▆▇█"
SPREAD = 10  # bars of a distribution
# C0, DEL and C1, line separators, and what turns the direction of writing
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


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


def grids(
    result: Result, *, per_query: bool = False, by: Iterable[str] = (), spread: bool = False
) -> Iterator[Grid]:
    """Lay out the summary, then each slicing, then the queries.

    `spread` adds to the summary how the queries are spread from the lowest value to the highest.
    """
    yield _summary(result, spread=spread)
    for column in by:
        yield _slices(result, column)
    if per_query:
        yield _queries(result)
    for run, found in result.timing.items():
        yield _timing(run, found)


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


def printable(text: str) -> str:
    """Write control characters as escapes: an id must not steer the terminal.

    >>> print(printable("d\x1b[31m1"))
    d\\x1b[31m1
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _summary(result: Result, *, spread: bool = False) -> Grid:
    rows = result.summary.to_dicts()
    title = f"{result.queries.height} queries · dialect {result.dialect}{_matching(result)}"
    if len(result.runs) > 1 and not result.bound_arrays:
        return _leaderboard(result, title, spread=spread)
    bars = _spread(result) if spread else {}
    header = ["measure", "value", *_interval_header(result), *(["spread"] if bars else []), "n"]
    extra = [name for name in BOUNDS if result.bound_arrays]
    extra += [name for name in ("undefined", "failed") if any(row[name] for row in rows)]
    several = len(result.runs) > 1
    return Grid(
        title if several else f"{result.runs[0]} · {title}",
        (["run"] if several else []) + header + extra,
        [
            ([row["run"]] if several else [])
            + [row["measure"], number(row["value"]), *_interval_cell(result, row)]
            + ([bars[row["run"], row["measure"]]] if spread else [])
            + [str(row["n"])]
            + [number(row[name]) if name in BOUNDS else str(row[name]) for name in extra]
            for row in rows
        ],
        left=2 if several else 1,
    )


def _interval_header(result: Result) -> list[str]:
    return [] if result.level is None else [f"{result.level:.0%} interval"]


def _interval_cell(result: Result, row: dict[str, Any]) -> list[str]:
    if result.level is None:
        return []
    return [interval(row["low"], row["high"])]


def _matching(result: Result) -> str:
    """Say what matched, with its parameters, unless it was plain ids, and who judged."""
    by = name_relations(result.matched_by.values())
    return by + (f" · judge {result.judge['name']}" if result.judge else "")


def judge_line(judge: Mapping[str, Any]) -> str:
    """Say in a line what a judge took, and how far it agrees with people where that is known.

    >>> took = {"calls": 1200, "prompt_tokens": 9000, "completion_tokens": 1500, "cost": 0.25}
    >>> took |= {"stored": 8, "failed": {}, "seconds": {"p50": 1.5}}
    >>> judge_line({"name": "openai:m", **took})
    'judge openai:m: 1,200 calls, 10,500 tokens, cost 0.25, 8 answers from the cache, 1.5 s a call'
    """
    told: list[str] = []
    if "prompt_tokens" in judge:
        tokens = judge["prompt_tokens"] + judge["completion_tokens"]
        told += [f"{judge['calls']:,} calls", f"{tokens:,} tokens"]
        told += [f"cost {judge['cost']:.4g}"] if judge["cost"] is not None else []
        told += [f"{judge['stored']:,} answers from the cache"] if judge["stored"] else []
        failed = sum(judge["failed"].values())
        told += [f"{failed:,} failed"] if failed else []
        told += [f"{judge['seconds']['p50']:.2g} s a call"] if judge["seconds"] else []
        votes = [f"{name} {share:.0%}" for name, share in judge.get("agreement", {}).items()]
        told += [f"votes agree ({', '.join(votes)})"] if votes else []
    told += [judge["card"].removeprefix(f"{judge['name']}: ")] if "card" in judge else []
    return f"judge {judge['name']}: {', '.join(told)}" if told else ""


def _spread(result: Result) -> dict[tuple[str, str], str]:
    """Draw for each run and measure how many queries have which value."""
    return {
        (run, str(measure)): spread_line(values, unit=measure.unit_interval)
        for (run, measure), values in result.arrays.items()
    }


def spread_line(values: Floats, *, unit: bool = True, bins: int = SPREAD) -> str:
    """Draw a histogram in one line: from 0 to 1, or from the lowest value to the highest.

    >>> import numpy as np
    >>> spread_line(np.array([0, 0, 0.5, 1, 1, 1]), bins=4)
    '▆ ▃█'
    """
    import numpy as np  # noqa: PLC0415 - the command line's help need not wait for it

    known = values[~np.isnan(values)]
    if not len(known):
        return ""
    reach = (0.0, 1.0) if unit else (float(known.min()), float(known.max()))
    counts, _ = np.histogram(known, bins, reach)
    steps = np.ceil(counts / counts.max() * len(BARS)).astype(int)
    return "".join(" " if step == 0 else BARS[step - 1] for step in steps.tolist())


def _leaderboard(result: Result, title: str, *, spread: bool = False) -> Grid:
    """One row a run, one column a measure, the best of each column marked."""
    names = [str(measure) for measure in result.measures]
    table = result.summary
    undefined = bool(table["undefined"].sum())
    bars = _spread(result) if spread else {}
    rows = []
    for run in result.runs:
        mine = table.filter(table["run"] == run)
        rows.append(
            [run, *(number(value) for value in mine["value"])]
            + ([str(max(mine["undefined"].to_list()))] if undefined else [])
        )
        if result.level is not None:
            limits = [_interval_cell(result, row)[0] for row in mine.iter_rows(named=True)]
            rows.append([f"({result.level:.0%})", *limits, *([""] if undefined else [])])
        if spread:
            drawn = [bars[run, name] for name in names]
            rows.append(["spread", *drawn, *([""] if undefined else [])])
    return Grid(
        title,
        ["run", *names, *(["undefined"] if undefined else [])],
        rows,
        best=_best(result, table, lines=1 + (result.level is not None) + spread),
    )


def _slices(result: Result, column: str) -> Grid:
    """One row a slice and run."""
    table = result.by(column)
    names = [str(measure) for measure in result.measures]
    keys = (
        table.select("slice", "run")
        .unique(maintain_order=True)
        .sort("slice", nulls_last=True, maintain_order=True)
    )
    rows = []
    for value, run in keys.rows():
        mine = table.filter(table["slice"].eq_missing(value), table["run"] == run)
        queries = max(n + undefined for n, undefined in mine.select("n", "undefined").rows())
        label = "(none)" if value is None else value
        rows.append([label, run, str(queries), *(number(cell) for cell in mine["value"])])
    return Grid(f"by {column}", [column, "run", "queries", *names], rows, left=2)


def _timing(run: str, found: Timing) -> Grid:
    """One row a figure about how long retrieval took."""
    rows = [
        *([f"latency p{p}", _ms(getattr(found, f"p{p}"))] for p in (50, 90, 99)),
        ["throughput", "–" if found.throughput is None else f"{found.throughput:.2f} queries/s"],
        ["errors", "–" if found.error_rate is None else f"{found.error_rate:.1%}"],
    ]
    title = f"timing of {run} ({found.n} queries, from {found.source})"
    return Grid(title, ["figure", "value"], rows)


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} ms"


def _queries(result: Result) -> Grid:
    """One row a run and query."""
    names = [str(measure) for measure in result.measures]
    rows = []
    for run in result.runs:
        columns = [result.arrays[run, measure].tolist() for measure in result.measures]
        for query, *values in zip(result.relation(run).queries, *columns, strict=True):
            cells = [number(None if value != value else value) for value in values]  # noqa: PLR0124
            rows.append([run, query, *cells])
    return Grid("per query", ["run", "query", *names], rows, left=2)


def _best(result: Result, table: pl.DataFrame, lines: int) -> set[tuple[int, int]]:
    """Return the cells that lead their column; each run has so many lines."""
    best = set()
    for number_, measure in enumerate(result.measures):
        if not measure.unit_interval or not measure.higher_is_better:
            continue
        values = table.filter(table["measure"] == str(measure))["value"].to_list()
        known = [value for value in values if value is not None]
        if len(set(known)) > 1:
            top = max(known)
            rows = range(len(result.runs))
            best |= {(lines * row, number_ + 1) for row in rows if values[row] == top}
    return best
