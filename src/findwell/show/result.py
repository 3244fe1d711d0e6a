"""Results as documents: the summary, slices, queries and timing; estimates from few labels.

Also curves over cutoffs, and the files of a LiveRAG pipeline's evaluator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from findwell.core.spelling import counted, name_method, name_relations
from findwell.judges.limits import judge_lines, verdict_limit
from findwell.show.document import Document, Line, Notes
from findwell.show.grid import Grid
from findwell.show.tables import BARS, DIGITS, decimals, interval, limits, number, signed
from findwell.show.timing import timing_grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from findwell.core.data import Floats
    from findwell.core.findings import Finding
    from findwell.evaluation.results.estimates import EstimateRow, Estimates
    from findwell.evaluation.results.result import Result
    from findwell.show.document import Part

SPREAD_BARS = 10  # of a distribution
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
ESTIMATORS = {"judge": "judge alone", "labels": "labels alone", "ppi": "labels + judge"}


def document(
    result: Result,
    *,
    per_query: bool = False,
    by: Iterable[str] = (),
    verdicts: bool = False,
    misses: bool = False,
) -> Document:
    """Return the summary, then each slicing, then the queries, then what retrieval cost.

    `verdicts` also shows what a judge said, `misses` why relevant items were missed. Formats with
    one row per line hold one table: the verdicts if asked for, else the misses, the queries or the
    slices if asked for, else the summary.
    """
    by = list(by)

    def data() -> dict[str, Any]:
        found = result.as_dict(per_query=per_query, by=by, misses=misses)
        return found | ({"verdicts": _verdict_frame(result).to_dicts()} if verdicts else {})

    def rows() -> pl.DataFrame:
        if verdicts:
            return _verdict_frame(result)
        if result.estimates is not None:
            return result.estimates.frame
        if misses:
            return result.misses()
        return with_relation(_rows(result, per_query=per_query, by=by), result.matched_by)

    judges = judge_lines([result.judge]) if result.judge else _judges_of_estimates(result.estimates)
    about = [judge_line(result.judge)] if result.judge else judges
    parts = _parts(result, about, per_query=per_query, by=by, verdicts=verdicts, misses=misses)
    return Document(parts, findings=result.findings, data=data, rows=rows, judges=judges)


def _parts(
    result: Result, said: list[str], *, per_query: bool, by: list[str], verdicts: bool, misses: bool
) -> Iterator[Part]:
    if result.estimates is not None:  # instead of values as if what has no label were irrelevant
        yield from estimate_parts(result.estimates)
    else:
        yield _summary(result)
        for column in by:
            yield _slices(result, column)
        if per_query:
            yield _queries(result)
        if misses:
            yield _misses(result)
        if result.timing:
            yield timing_grid(result.timing)
        for column in by:
            for run, sliced in result.timing_by(column).items():
                yield timing_grid(sliced, first=column, about=f" of {run} by {column}")
    yield from (Line(each, in_papers=True) for each in said)
    if verdicts and result.kept.verdicts is not None:
        from findwell.evaluation.explanation.units import verdicts_of  # noqa: PLC0415
        from findwell.show.explanation import verdict_grid  # noqa: PLC0415 - few results are judged

        title = f"what the judge {result.judge.get('name', '')} said"
        yield verdict_grid(title, verdicts_of(result), named=True)


def _verdict_frame(result: Result) -> pl.DataFrame:
    from findwell.evaluation.explanation.units import verdict_table  # noqa: PLC0415

    return verdict_table(result)


def _rows(result: Result, *, per_query: bool, by: list[str]) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415

    if per_query:
        return result.per_query
    if not by:
        return result.summary
    named = (result.by(name).insert_column(1, pl.lit(name).alias("column")) for name in by)
    return pl.concat(named)


def with_relation(rows: pl.DataFrame, matched_by: Mapping[str, str]) -> pl.DataFrame:
    """Add to rows with a measure the relation that it reads."""
    import polars as pl  # noqa: PLC0415

    read = pl.col("measure").replace_strict(matched_by, return_dtype=pl.String)
    return rows.with_columns(relation=read)


def _misses(result: Result) -> Grid:
    """Count the relevant items that each run missed, by cause."""
    from findwell.evaluation.results.misses import CAUSES  # noqa: PLC0415

    rows = result.misses().group_by("run", "cause").len().rows()
    counts = {(run, cause): count for run, cause, count in rows}
    causes = [cause for cause in CAUSES if any((run, cause) in counts for run in result.runs)]
    cells = [[run, *(str(counts.get((run, cause), 0)) for cause in causes)] for run in result.runs]
    title = f"relevant items missed, by cause ({result.measures[0]})"
    return Grid(title, ["run", *causes], cells)


def _summary(result: Result) -> Grid:
    """Lay out the values; where a terminal has room, also how the queries are spread."""
    synthetic = f" ({result.synthetic} synthetic)" if result.synthetic else ""
    matched_by = result.matched_by
    how = name_method(result.dialect, matched_by.values())
    title = f"{counted(result.n)}{synthetic}{how}"
    title += f" · judge {result.judge['name']}" if result.judge else ""
    several = len(result.runs) > 1 and result.measured.bounds is None
    lay_out = _leaderboard if several else _measures
    names = dict(zip(result.measures, matched_by, strict=True))
    bars = {
        (run, names[measure]): spread_line(values, unit=measure.unit_interval)
        for (run, measure), values in result.arrays.items()
    }
    return replace(lay_out(result, title, {}), wider=lay_out(result, title, bars))


def _measures(result: Result, title: str, bars: Mapping[tuple[str, str], str]) -> Grid:
    """One row per run and measure."""
    rows, level = result.rows, result.level
    extra = [*(() if result.measured.bounds is None else BOUNDS)]
    extra += [name for name in ("undefined", "failed") if any(row[name] for row in rows)]
    cells = [
        [row["measure"], value_of(row)]
        + ([] if level is None else [interval(row["low"], row["high"])])
        + ([bars[row["run"], row["measure"]]] if bars else [])
        + [str(row["n"])]
        + [number(row[name]) if name in BOUNDS else str(row[name]) for name in extra]
        for row in rows
    ]
    header = ["measure", "value", *([] if level is None else [f"{level:.0%} interval"])]
    header += [*(["spread"] if bars else []), "n", *extra]
    if len(result.runs) == 1:
        return Grid(f"{result.runs[0]} · {title}", header, cells)
    named = [[row["run"], *cell] for row, cell in zip(rows, cells, strict=True)]
    return Grid(title, ["run", *header], named, left=2)


def _leaderboard(result: Result, title: str, bars: Mapping[tuple[str, str], str]) -> Grid:
    """One row per run, one column per measure; marked is what is clearly the best of its column."""
    names = [str(measure) for measure in result.measures]
    undefined = any(row["undefined"] for row in result.rows)
    blank = [""] if undefined else []
    rows: list[list[str]] = []
    marked: set[tuple[int, int]] = set()
    for run in result.runs:
        mine = [row for row in result.rows if row["run"] == run]
        marked |= {
            (len(rows), at)
            for at, (row, measure) in enumerate(zip(mine, result.measures, strict=True), start=1)
            if measure.unit_interval
            and measure.higher_is_better
            # to mark the best is a verdict
            and not verdict_limit(result.judge, result.relation_name(measure))
            and _leads(row, result.rows)
        }
        rows.append([run, *map(value_of, mine)])
        rows[-1] += [str(max(row["undefined"] for row in mine))] if undefined else []
        if result.level is not None:
            limits = (interval(row["low"], row["high"]) for row in mine)
            rows.append([f"({result.level:.0%})", *limits, *blank])
        if bars:
            rows.append(["spread", *(bars[run, name] for name in names), *blank])
    header = ["run", *names, *(["undefined"] if undefined else [])]
    return Grid(title, header, rows, best=marked)


def _leads(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the interval of a value lies above those of all other runs."""
    others = [each for each in rows if each["measure"] == row["measure"] and each is not row]
    return row["low"] is not None and all(
        each["high"] is not None and each["high"] < row["low"] for each in others
    )


def value_of(row: Mapping[str, Any]) -> str:
    """Write the value of a row of a summary, with the digits that its interval allows."""
    digits = DIGITS if row["low"] is None else decimals(row["low"], row["high"])
    return number(row["value"], digits)


def spread_line(values: Floats, *, unit: bool = True, bins: int = SPREAD_BARS) -> str:
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
        rows.append([label, run, str(queries), *map(value_of, mine.iter_rows(named=True))])
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


# estimates from labels: what the judge, labels, and both say, and on what it rests


def estimates_document(found: Estimates) -> Document:
    """Return the estimates of each run, then the differences, with the design in words below."""
    judges = _judges_of_estimates(found)
    said = (Line(each, in_papers=True) for each in judges)
    return Document(
        [*estimate_parts(found), *said],
        data=found.as_dict,
        rows=lambda: found.frame,
        judges=judges,
    )


def _judges_of_estimates(found: Estimates | None) -> list[str]:
    """Say who judged, and what that is worth, where labels correct verdicts or a pool had some."""
    judge = {} if found is None else found.design
    return [f"judge {judge['judge']}: {judge['judge_limits']}"] if judge.get("judge") else []


def estimate_parts(found: Estimates) -> Iterator[Part]:
    """Yield the estimates of each run, then the differences, then the design in words."""
    design = found.design
    of_all = f" of {design['pairs']} pairs" if "pairs" in design else ""
    title = f"{counted(design['labels'], 'label', 'labels')}{of_all}"
    title += f" · {counted(design['queries'])}"
    title += f" · judge {design['judge']}" if design.get("judge") else ""
    own = [each for each in found.rows if each.baseline is None]
    yield _estimate_grid(own, title, found.level, plain=True)
    if found.differences:
        (baseline,) = {each.baseline for each in found.differences}
        title = f"differences: each system − {baseline}"
        yield _estimate_grid(found.differences, title, found.level, plain=False)
    yield Notes(tuple(estimate_notes(found)))


def _estimate_grid(rows: Sequence[EstimateRow], title: str, level: float, *, plain: bool) -> Grid:
    several = len({each.run for each in rows}) > 1
    cells = [
        [
            *([each.run] if several else []),
            each.measure,
            ESTIMATORS[each.method],
            number(each.value) if plain else signed(each.value),
            (interval if plain else limits)(each.low, each.high)
            + ("*" if each.estimator == "bounds" else ""),
            str(each.labels) if each.method != "judge" else "–",
            "–" if each.effective is None else f"{each.effective:.0f}",
        ]
        for each in rows
    ]
    header = ["measure", "by", "value", f"{level:.0%} interval", "labels", "worth"]
    return Grid(title, ["run", *header] if several else header, cells, left=2 + several)


def estimate_notes(found: Estimates) -> Iterator[str]:
    """Say how pairs were chosen, how each measure is estimated, and what the columns mean."""
    design = found.design
    counts = ", ".join(f"{times} {name}" for name, times in design["sampling"].items())
    strata = f", in {len(design['strata'])} strata" if len(design["strata"]) > 1 else ""
    yield f"labels: {counts}{strata}, of {counted(design['labelled_queries'])}"
    reasons: dict[str, list[str]] = {}
    for measure, each in design["measures"].items():
        reasons.setdefault(f"{each['estimator']}: {each['why']}", []).append(measure)
    yield from (f"{', '.join(names)} by {why}" for why, names in reasons.items())
    if any(each.estimator == "bounds" for each in found.rows):
        yield "* not an estimate: the range that the missing labels leave possible"
    for order in found.rankings():
        if order.why:
            by = ESTIMATORS[order.method]
            yield f"{order.measure}, best first by {by}: {', '.join(order.runs)} ({order.why})"
    if any(each.method == "ppi" and each.effective is not None for each in found.rows):
        yield "worth: how many labels would be as precise without the judge"


def estimate_facts(found: Estimates, run: str) -> Iterator[tuple[str, str]]:
    """Yield names and values for the part of a report that says what made the numbers."""
    for each in found.rows:
        if each.run == run and each.baseline is None:
            value = f"{number(each.value)} ({interval(each.low, each.high)})"
            worth = "" if each.effective is None else f", worth {each.effective:.0f}"
            used = "" if each.method == "judge" else f", {each.labels} labels{worth}"
            how = f", by {each.estimator}" if each.estimator else ""
            yield f"{each.measure}, {ESTIMATORS[each.method]}", value + used + how
    yield from (("design of the labels", line) for line in estimate_notes(found))


def curve_document(
    table: pl.DataFrame,
    enough: list[dict[str, Any]],
    matched_by: Mapping[str, str],
    over: str,
    *,
    judges: Iterable[str] = (),
    findings: Sequence[Finding] = (),
) -> Document:
    """Return the curves over cutoffs or budgets, with the cutoff that is enough below."""
    judges = list(judges)
    cutoffs = table["k"].unique(maintain_order=True).to_list()
    rows = []
    for (run, measure), part in table.group_by(["run", "measure"], maintain_order=True):
        values = part["value"].to_list()
        rows.append([str(run), str(measure), sparkline(values), *map(number, values)])
    header = ["run", "measure", "shape", *(f"@{k}" for k in cutoffs)]
    at = "at each cutoff" if over == "k" else f"at each budget of {over}"
    grid = Grid(f"{at}{name_relations(matched_by.values())}", header, rows, left=3)
    reached = Notes(tuple(_target_line(each, over) for each in enough))
    about = (Line(judge, in_papers=True) for judge in judges)
    data = {
        "curve": table.to_dicts(),
        "over": over,
        "reach": enough,
        "matched_by": dict(matched_by),
        **({"judges": judges} if judges else {}),
    }
    return Document(
        [grid, reached, *about],
        findings=findings,
        data=lambda: data,
        rows=lambda: with_relation(table, matched_by),
        judges=judges,
    )


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
        return f"{goal} is not reached at any {'cutoff' if over == 'k' else 'budget'}"
    where = f"K = {entry['k']}" if over == "k" else f"{entry['k']} {over}"
    return f"{goal} is reached at {where}"


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
