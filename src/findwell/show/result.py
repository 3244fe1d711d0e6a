"""Results as text: JSON, JSON lines, CSV, TSV, Markdown, LaTeX, and tables for the terminal.

Also curves over cutoffs, and the files of a LiveRAG pipeline's evaluator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.core.spelling import counted, name_relations
from findwell.judges.limits import judge_lines, verdict_limit
from findwell.show import estimates
from findwell.show.grid import Grid
from findwell.show.tables import (
    BARS,
    best,
    cleaner,
    interval,
    latex_notes,
    number,
    render_grids,
    to_json,
    to_rows,
)
from findwell.show.terminal import wrap
from findwell.show.timing import timing_grid
from findwell.show.verdicts import render_verdicts, verdict_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from findwell.core.data import Floats
    from findwell.evaluation.results.estimates import Estimates
    from findwell.evaluation.results.result import Result

SPREAD = 10  # bars of a distribution
LIVERAG_EVALUATOR = "ContextRecall"
LIVERAG_ROWS = {
    "context_recall": "recall",
    "context_precision": "P",
    "context_f1": "F",
    "retrieved_docs_count": "retrieved",
    "gold_docs_count": "relevant",
    "correct_docs_count": "relevant_retrieved",
    "ndcg_10": "nDCG@10",
}
LIVERAG_COUNTS = ("retrieved_docs_count", "gold_docs_count", "correct_docs_count")
BOUNDS = ("lower", "upper")  # as in findwell.core.values, which `findwell --help` need not wait for


def render(
    result: Result,
    how: str,
    *,
    per_query: bool = False,
    by: Iterable[str] = (),
    verdicts: bool = False,
    color: bool = False,
    width: int | None = None,
) -> str:
    """Return the result in one of FORMATS, with a line break at the end.

    `width` is that of the terminal, which tables fit; where it allows, they show how the queries
    are spread.

    `verdicts` also shows what a judge said. Formats with one row per line hold one table: the
    verdicts if asked for, else the queries if asked for, else the slices if asked for, else the
    summary.
    """
    by = list(by)
    if not verdicts:
        return _numbers(result, how, per_query=per_query, by=by, color=color, width=width)
    if how == "json":
        said = verdict_frame(result).to_dicts()
        return to_json(result.as_dict(per_query=per_query, by=by) | {"verdicts": said})
    if how not in ("markdown", "table", "latex"):
        return to_rows(verdict_frame(result), how)
    shown = _numbers(result, how, per_query=per_query, by=by, color=color, width=width)
    return shown + render_verdicts(result, how, color=color, width=width)


def _numbers(
    result: Result,
    how: str,
    *,
    per_query: bool,
    by: list[str],
    color: bool,
    width: int | None,
) -> str:
    """Return the values of a result."""
    if result.estimates is not None and how != "json":
        return _estimated(result.estimates, result.judge, how, color=color, width=width)
    if how == "json":
        return to_json(result.as_dict(per_query=per_query, by=by))
    if how in ("markdown", "table", "latex"):
        spread = how == "table" and width is not None and _fits(result, width)
        tables = grids(result, per_query=per_query, by=by, spread=spread)
        drawn = render_grids(tables, how, color=color, width=width)
        return with_judge(drawn, result.judge, how, width)
    return to_rows(_rows(result, per_query=per_query, by=by), how)


def _estimated(
    found: Estimates, judge: Mapping[str, Any], how: str, *, color: bool, width: int | None
) -> str:
    """Return what labels and a judge say, instead of values as if the rest were irrelevant."""
    if how not in ("markdown", "table", "latex"):
        return to_rows(found.frame, how)
    drawn = estimates.render(found, how, color=color, width=width)
    return with_judge(drawn, judge, how, width)


def with_judge(drawn: str, judge: Mapping[str, Any], how: str, width: int | None) -> str:
    """Add to tables the line about the judge, where there is one; in LaTeX it is a comment."""
    if not judge:
        return drawn
    if how == "latex":
        return latex_notes(judge_lines([judge])) + drawn
    line = wrap(cleaner(how)(judge_line(judge)), width)
    return f"{drawn.rstrip()}\n\n{line}\n" + ("" if how == "markdown" else "\n")


def _fits(result: Result, width: int) -> bool:
    """Tell whether the summary with a column about the spread fits a terminal."""
    from rich.cells import cell_len  # noqa: PLC0415

    lines = render_grids([next(grids(result, spread=True))], "table").splitlines()
    return max(map(cell_len, lines)) <= width


def _rows(result: Result, *, per_query: bool, by: list[str]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415

    rows = result.summary
    if per_query:
        rows = result.per_query
    elif by:
        rows = pl.concat(
            [result.by(column).insert_column(1, pl.lit(column).alias("column")) for column in by]
        )
    return with_relation(rows, result.matched_by)


def with_relation(rows: pl.DataFrame, matched_by: Mapping[str, str]) -> pl.DataFrame:
    """Add to rows with a measure the relation that it reads."""
    import polars as pl  # noqa: PLC0415

    read = pl.col("measure").replace_strict(matched_by, return_dtype=pl.String)
    return rows.with_columns(relation=read)


def grids(
    result: Result, *, per_query: bool = False, by: Iterable[str] = (), spread: bool = False
) -> Iterator[Grid]:
    """Lay out the summary, then each slicing, then the queries, then what retrieval cost.

    `spread` adds to the summary how the queries are spread from the lowest value to the highest.
    """
    if result.estimates is None:
        yield _summary(result, spread=spread)
    else:
        yield from estimates.grids(result.estimates)
    for column in by:
        yield _slices(result, column)
    if per_query:
        yield _queries(result)
    if result.timing:
        yield timing_grid(result.timing)
    for column in by:
        for run, sliced in result.timing_by(column).items():
            yield timing_grid(sliced, first=column, about=f" of {run} by {column}")


def _summary(result: Result, *, spread: bool = False) -> Grid:
    rows = result.rows
    synthetic = f" ({result.synthetic} synthetic)" if result.synthetic else ""
    title = f"{counted(result.n)}{synthetic} · dialect {result.dialect}{_matching(result)}"
    if len(result.runs) > 1 and result.measured.bounds is None:
        return _leaderboard(result, title, spread=spread)
    bars = _spread(result) if spread else {}
    several, level = len(result.runs) > 1, result.level
    extra = [*(() if result.measured.bounds is None else BOUNDS)]
    extra += [name for name in ("undefined", "failed") if any(row[name] for row in rows)]
    cells = [
        [row["measure"], number(row["value"])]
        + ([] if level is None else [interval(row["low"], row["high"])])
        + ([bars[row["run"], row["measure"]]] if spread else [])
        + [str(row["n"])]
        + [number(row[name]) if name in BOUNDS else str(row[name]) for name in extra]
        for row in rows
    ]
    header = ["measure", "value", *([] if level is None else [f"{level:.0%} interval"])]
    header += [*(["spread"] if spread else []), "n", *extra]
    if not several:
        return Grid(f"{result.runs[0]} · {title}", header, cells)
    named = [[row["run"], *cell] for row, cell in zip(rows, cells, strict=True)]
    return Grid(title, ["run", *header], named, left=2)


def _matching(result: Result) -> str:
    """Say what matched, with its parameters, unless it was plain ids, and who judged."""
    by = name_relations(result.matched_by.values())
    return by + (f" · judge {result.judge['name']}" if result.judge else "")


def judge_line(judge: Mapping[str, Any]) -> str:
    """Say in a line how far a judge agrees with people, and what it took.

    >>> took = {"calls": 1200, "prompt_tokens": 9000, "completion_tokens": 1500, "cost": 0.25}
    >>> took |= {"stored": 8, "failed": {}, "seconds": {"p50": 1.5}}
    >>> judge_line({"name": "openai:m", **took})[:60]
    'judge openai:m: not checked against people: see findwell jud'
    """
    from findwell.judges.client.budget import unanswered_note  # noqa: PLC0415 - few results have a judge

    facts: list[str] = []
    if "prompt_tokens" in judge:
        tokens = judge["prompt_tokens"] + judge["completion_tokens"]
        facts += [f"{judge['calls']:,} calls", f"{tokens:,} tokens"]
        facts += [f"cost {judge['cost']:.4g}"] if judge["cost"] is not None else []
        facts += [f"{judge['stored']:,} answers from the cache"] if judge["stored"] else []
        failed = sum(judge["failed"].values())
        facts += [f"{failed:,} failed"] if failed else []
        lost = judge.get("unanswered_calls", 0)
        facts += [unanswered_note(lost)] if lost else []
        facts += [f"{judge['seconds']['p50']:.2g} s a call"] if judge["seconds"] else []
        votes = [f"{name} {share:.0%}" for name, share in judge.get("agreement", {}).items()]
        facts += [f"votes agree ({', '.join(votes)})"] if votes else []
    return "; ".join([*judge_lines([judge]), *([", ".join(facts)] if facts else [])])


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
    """One row per run, one column per measure, the best of each column marked."""
    names = [str(measure) for measure in result.measures]
    undefined = any(row["undefined"] for row in result.rows)
    blank = [""] if undefined else []
    bars = _spread(result) if spread else {}
    rows: list[list[str]] = []
    values: dict[tuple[int, int], float | None] = {}  # by the cell that shows it
    for run in result.runs:
        mine = [row for row in result.rows if row["run"] == run]
        values |= {(len(rows), at): row["value"] for at, row in enumerate(mine, start=1)}
        rows.append([run, *(number(row["value"]) for row in mine)])
        rows[-1] += [str(max(row["undefined"] for row in mine))] if undefined else []
        if result.level is not None:
            limits = (interval(row["low"], row["high"]) for row in mine)
            rows.append([f"({result.level:.0%})", *limits, *blank])
        if spread:
            rows.append(["spread", *(bars[run, name] for name in names), *blank])
    leading = [
        best(
            {cell: value for cell, value in values.items() if cell[1] == at}, higher_is_better=True
        )
        for at, measure in enumerate(result.measures, start=1)
        if measure.unit_interval
        and measure.higher_is_better
        # to mark the best is a verdict
        and not verdict_limit(result.judge, result.relation_name(measure))
    ]
    header = ["run", *names, *(["undefined"] if undefined else [])]
    return Grid(title, header, rows, best=set().union(*leading))


def _slices(result: Result, column: str) -> Grid:
    """One row per slice and run."""
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


def _queries(result: Result) -> Grid:
    """One row per run and query."""
    names = [str(measure) for measure in result.measures]
    rows = []
    for run in result.runs:
        columns = [result.arrays[run, measure].tolist() for measure in result.measures]
        asked, queries = result.measured.was_asked(run), result.queries["query"]
        queries = queries if isinstance(asked, slice) else queries.filter(asked)
        for query, *values in zip(queries, *columns, strict=True):
            cells = [number(None if value != value else value) for value in values]  # noqa: PLR0124
            rows.append([run, query, *cells])
    return Grid("per query", ["run", "query", *names], rows, left=2)


def render_curve(
    table: pl.DataFrame,
    enough: list[dict[str, Any]],
    how: str,
    matched_by: Mapping[str, str],
    over: str = "k",
    *,
    width: int | None = None,
) -> str:
    """Return the curves as `table` or `markdown`, with what is enough below."""
    cutoffs = table["k"].unique(maintain_order=True).to_list()
    rows = []
    for (run, measure), part in table.group_by(["run", "measure"], maintain_order=True):
        values = part["value"].to_list()
        rows.append([str(run), str(measure), sparkline(values), *map(number, values)])
    header = ["run", "measure", "shape", *(f"@{k}" for k in cutoffs)]
    counted = "at each cutoff" if over == "k" else f"at each budget of {over}"
    grid = Grid(f"{counted}{name_relations(matched_by.values())}", header, rows, left=3)
    drawn = render_grids([grid], how, width=width)
    return drawn + "".join(_target_line(each, over) for each in enough)


def sparkline(values: list[float | None]) -> str:
    """Draw values between 0 and 1 as bars; what has no value is a blank.

    >>> sparkline([0.0, 0.5, None, 1.0])
    '▁▅ █'
    """
    return "".join(
        " " if value is None else BARS[min(int(max(value, 0) * len(BARS)), len(BARS) - 1)]
        for value in values
    )


def _target_line(entry: dict[str, Any], over: str) -> str:
    goal = f"{entry['run']}: {entry['measure']} >= {entry['target']:g}"
    if entry["k"] is None:
        where = "any cutoff" if over == "k" else "any budget"
        return f"{goal} is not reached at {where}\n"
    where = f"K = {entry['k']}" if over == "k" else f"{entry['k']} {over}"
    return f"{goal} is reached at {where}\n"


def liverag_tables(result: Result) -> dict[str, pl.DataFrame]:
    """Return what a LiveRAG pipeline's evaluator writes about the first run: means, and rows."""
    import polars as pl  # noqa: PLC0415

    scored = result.score([*LIVERAG_ROWS.values(), "success", "all_found"])
    run = scored.runs[0]
    arrays = {
        str(measure): values for (name, measure), values in scored.arrays.items() if name == run
    }
    rows = pl.DataFrame(
        {
            "qid": scored.relation(run).queries,
            **{column: arrays[measure] for column, measure in LIVERAG_ROWS.items()},
        }
    ).with_columns(pl.col(LIVERAG_COUNTS).cast(pl.Int64), pl.col("ndcg_10").fill_nan(None))
    # one repeated chunk anywhere makes the original's mean nDCG 0, as does a run of empty lists
    repeated = bool((scored.relation(run).repeats(exact=True) > 0).any())
    ndcg = scored[run, "nDCG@10"]
    aggregated = pl.DataFrame(
        {
            "avg_context_recall": [scored[run, "recall"]],
            "avg_context_precision": [scored[run, "P"]],
            "avg_context_f1": [scored[run, "F"]],
            "pct_records_with_at_least_one_ref": [100 * (scored[run, "success"] or 0.0)],
            "pct_records_with_all_refs": [100 * (scored[run, "all_found"] or 0.0)],
            "ndcg_10": [0.0 if repeated or ndcg is None else ndcg],
            "sample_count": [rows.height],
            "evaluator_name": [LIVERAG_EVALUATOR],
            "system_name": [run],
        }
    )
    return {"aggregated": aggregated, "rows": rows}
