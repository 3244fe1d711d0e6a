"""One value per call and signal, for all calls at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import polars as pl

from karat.monitoring.signals import find_signals

KEY = ("time", "trace", "span")
COLUMNS = ("service", "session", "user", "kind", "hop", "convention")  # calls are sliced by these
NO_SLICE = "(none)"  # where a call lacks the attribute

Calls = pl.LazyFrame | pl.DataFrame


def signal_frame(
    calls: Calls,
    names: Iterable[str] | str | None = None,
    *,
    by: Iterable[str] | str = (),
    kind: str = "retriever",
) -> pl.DataFrame:
    """Return one row per call: time, trace, span, a column per slice and one per signal.

    `calls` has the columns of `karat.read.traces.schema.TRACE_SCHEMA`. A value is null where the
    signal is undefined. `by` are columns to slice by: service, session, user, kind, hop,
    convention, or the key of any attribute. `kind` says whose lists are looked at: those of
    retrievers, or those of rerankers. Signals of many calls, such as the concentration, have in
    their column what they are made of. Rows are in the order of time.
    """
    wanted = find_signals(names)
    slices = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    kinds = {kind, *(each.kind for each in wanted if each.kind)}
    rows = calls.lazy().filter(pl.col("kind").is_in(sorted(kinds)))
    columns = [*KEY, *(slice_column(name) for name in slices)]
    columns += [
        pl.when(pl.col("kind") == (each.kind or kind)).then(VALUES[each.name]()).alias(each.name)
        for each in wanted
    ]
    return rows.select(columns).collect().sort(KEY)


def slice_column(name: str) -> pl.Expr:
    """Return what calls are sliced by: a column of theirs, or else one of their attributes."""
    if name in COLUMNS:
        found = pl.col(name).cast(pl.String)
    else:
        entry = pl.element()
        of_name = entry.filter(entry.struct.field("key") == name).struct.field("value")
        found = pl.col("attributes").list.eval(of_name).list.first()
    return found.fill_null(NO_SLICE).alias(name)


def _fine() -> pl.Expr:
    return pl.col("error").is_null()


def _scores() -> pl.Expr:
    """Return the scores that are numbers; a missing one keeps its place."""
    score = pl.element()
    return pl.col("scores").list.eval(pl.when(score.is_finite()).then(score))


def _score(rank: int) -> pl.Expr:
    return _scores().list.get(rank, null_on_oob=True)


def _entropy() -> pl.Expr:
    known = _scores().list.drop_nulls()
    above = known - known.list.min()
    total = above.list.sum()
    share = above / total
    weight = pl.element()
    information = share.list.eval(pl.when(weight > 0).then(-weight * weight.log()).otherwise(0.0))
    largest = (known.list.len() - 1).cast(pl.Float64).log()
    found = information.list.sum() / largest
    # of three scores two can be above the lowest: fewer have only one possible share
    value = pl.when(total > 0).then(found.clip(0.0, 1.0)).otherwise(1.0)
    return pl.when(known.list.len() >= 3).then(value)


def _duplicates() -> pl.Expr:
    count = pl.col("docs").list.len()
    return pl.when(count > 0).then(1 - pl.col("docs").list.n_unique() / count)


VALUES: dict[str, Callable[[], pl.Expr]] = {
    "queries": lambda: pl.lit(1.0),
    "error": lambda: (~_fine()).cast(pl.Float64),
    "empty": lambda: pl.when(_fine()).then((pl.col("docs").list.len() == 0).cast(pl.Float64)),
    "latency": lambda: pl.col("latency_ms"),
    "latency_p95": lambda: pl.col("latency_ms"),
    "latency_p99": lambda: pl.col("latency_ms"),
    "documents": lambda: pl.when(_fine()).then(pl.col("docs").list.len().cast(pl.Float64)),
    "top_score": lambda: _score(0),
    "score_gap": lambda: abs(_score(0) - _score(1)),
    "score_spread": lambda: pl.when(_scores().list.drop_nulls().list.len() > 1).then(
        _scores().list.std(ddof=0)
    ),
    "score_entropy": _entropy,
    "duplicates": _duplicates,
    "query_length": lambda: pl.col("question").str.len_chars().cast(pl.Float64),
    "concentration": lambda: pl.col("docs"),
}
