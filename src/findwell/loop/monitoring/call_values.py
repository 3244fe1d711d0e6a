"""One value per call and signal, for all calls at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.errors import OptionError, choose
from findwell.io.read.traces.schema import RERANKER, RETRIEVER
from findwell.loop.monitoring.documents import (
    ages,
    near_duplicate_shares,
    unknown_shares,
    unseen_shares,
)
from findwell.loop.monitoring.questions import in_another_language, question_distances
from findwell.loop.monitoring.references import NOTHING_GIVEN, References
from findwell.loop.monitoring.signals import find_signals
from findwell.statistics.agreement import rbo_of_lists

if TYPE_CHECKING:
    from findwell.core.data import Floats, Ints
    from findwell.loop.monitoring.signals import Signal

KEY = ("time", "trace", "span")
COLUMNS = ("service", "session", "user", "kind", "hop", "convention")  # calls are sliced by these
KINDS = (RETRIEVER, RERANKER)
NO_SLICE = "(none)"  # where a call lacks the attribute

Calls = pl.LazyFrame | pl.DataFrame


def signal_frame(
    calls: Calls,
    names: Iterable[str] | str | None = None,
    *,
    by: Iterable[str] | str = (),
    kind: str = "retriever",
    given: References = NOTHING_GIVEN,
) -> pl.DataFrame:
    """Return one row per call: time, trace, span, kind, a column per slice and one per signal.

    `calls` has the columns of `findwell.io.read.traces.schema.TRACE_SCHEMA`, `names` are those of
    `SIGNALS`, by default the cheap ones. A value is null where the signal is undefined. `by` are
    columns to slice by: service, session, user, kind, hop, convention, or the key of any attribute.
    `kind` says whose lists are looked at, those of retrievers or those of rerankers. Signals of
    many calls, such as the concentration, have in their column what they are made of. `given` is
    what some signals compare with: a corpus, the questions of the evaluation. Judged signals are
    added by `findwell.loop.monitoring.judged`. Rows are in the order of time.
    """
    wanted = find_signals(names)
    for each in wanted:
        given.require(each)
    choose("kind", kind, KINDS)
    slices = slice_names(by, wanted)
    kinds = {kind, *(each.kind for each in wanted if each.kind)}
    made = [each for each in wanted if each.name in EXPRESSIONS]
    rest = [each for each in wanted if each.name not in EXPRESSIONS]
    raw = sorted({name for each in rest for name in each.reads} - set(KEY))
    columns = key_columns(slices)
    columns += [
        pl.when(pl.col("kind") == (each.kind or kind))
        .then(EXPRESSIONS[each.name]())
        .alias(each.name)
        for each in made
    ]
    columns += [pl.col(name).alias(RAW + name) for name in raw]
    rows = calls.lazy().filter(pl.col("kind").is_in(sorted(kinds)))
    table = rows.select(columns).collect().sort(KEY)
    found: dict[str, pl.Series] = {}
    for of in {each.kind or kind for each in rest}:
        mine = table["kind"] == of
        part = CallTable(table if mine.all() else table.filter(mine), slices, given)
        for each in rest:
            if of == (each.kind or kind):
                values = np.full(table.height, np.nan)
                values[mine.to_numpy()] = VALUES[each.name](part)
                found[each.name] = pl.Series(each.name, values).fill_nan(None)
    order = [
        *KEY,
        "kind",
        *(name for name in slices if name != "kind"),
        *(each.name for each in wanted),
    ]
    return table.with_columns(found.values()).select(order)


RAW = "\0"  # before the names of columns of the traces, which slices may have as well


class ScoreLists:
    """The scores of calls in one array; those that are no number are NaN."""

    def __init__(self, lists: pl.Series) -> None:
        """Lay lists of scores end to end."""
        self.count = lists.list.len().fill_null(0).to_numpy().astype(np.int64)
        flat = lists.explode(empty_as_null=False, keep_nulls=False).cast(pl.Float64).to_numpy()
        self.flat: Floats = np.where(np.isfinite(flat), flat, np.nan)
        self.start = np.cumsum(self.count) - self.count

    def at(self, rank: int) -> Floats:
        """Return the score at a rank, from 0."""
        found = np.full(len(self.count), np.nan)
        there = self.count > rank
        found[there] = self.flat[self.start[there] + rank]
        return found

    @cached_property
    def known(self) -> tuple[Ints, Floats]:
        """The calls of the scores that are known, and these."""
        calls = np.repeat(np.arange(len(self.count)), self.count)
        there = ~np.isnan(self.flat)
        return calls[there], self.flat[there]

    def sums(self, calls: Ints, values: Floats) -> Floats:
        """Add up values by call."""
        return np.bincount(calls, values, minlength=len(self.count)).astype(np.float64)


class CallTable:
    """Columns of calls, as signals read them."""

    def __init__(self, table: pl.DataFrame, slices: Sequence[str], given: References) -> None:
        """Take a table whose columns of the traces have a mark before their names."""
        self._table = table
        self.slices = table.select(slices)
        self.given = given

    def __getitem__(self, name: str) -> pl.Series:
        return self._table[name if name in KEY else RAW + name]

    def __len__(self) -> int:
        return self._table.height

    @property
    def history(self) -> pl.DataFrame:
        """What earlier calls have to share to be compared with: service and slices."""
        service = self["service"].alias(RAW + "service")
        return pl.DataFrame([*self.slices.get_columns(), service])

    @cached_property
    def scores(self) -> ScoreLists:
        """The scores of all calls."""
        return ScoreLists(self["scores"])


def slice_names(by: Iterable[str] | str, wanted: Iterable[Signal] = ()) -> list[str]:
    """Return the names of columns to slice by, each once; none is that of a wanted signal."""
    names = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    taken = {"", *KEY, *RESERVED, *(each.name for each in wanted)}
    for name in names:
        if name in taken or name.startswith(RAW):
            raise OptionError(
                f"calls are not sliced by {name or 'nothing'}",
                fix="choose service, user, or an attribute",
            )
    return names


RESERVED = {"signal", "n", "undefined", "value", "low", "high", "method", "labels"}


def key_columns(slices: Sequence[str]) -> list[pl.Expr]:
    """Return what tells calls apart, and what they are sliced by."""
    return [pl.col(*KEY, "kind"), *(slice_column(name) for name in slices if name != "kind")]


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


def _latencies() -> pl.Expr:
    taken = pl.col("latency_ms")  # of whoever fills a store by themselves, anything
    return pl.when(taken.is_finite() & (taken >= 0)).then(taken)


def _duplicates() -> pl.Expr:
    count = pl.col("docs").list.len()
    return pl.when(count > 0).then(1 - pl.col("docs").list.n_unique() / count)


EXPRESSIONS: dict[str, Callable[[], pl.Expr]] = {
    "queries": lambda: pl.lit(1.0),
    "error": lambda: (~_fine()).cast(pl.Float64),
    "empty": lambda: pl.when(_fine()).then((pl.col("docs").list.len() == 0).cast(pl.Float64)),
    "latency": _latencies,
    "latency_p95": _latencies,
    "latency_p99": _latencies,
    "documents": lambda: pl.when(_fine()).then(pl.col("docs").list.len().cast(pl.Float64)),
    "duplicates": _duplicates,
    "query_length": lambda: pl.col("question").str.len_chars().cast(pl.Float64),
    "concentration": lambda: pl.col("docs"),
    "never_retrieved": lambda: pl.col("docs"),
}


def _spreads(calls: CallTable) -> Floats:
    scores = calls.scores
    of, value = scores.known
    n = scores.sums(of, np.ones(len(value)))
    mean = scores.sums(of, value) / np.maximum(n, 1)
    squares = scores.sums(of, (value - mean[of]) ** 2)
    return np.where(n > 1, np.sqrt(squares / np.maximum(n, 1)), np.nan)


def _entropies(calls: CallTable) -> Floats:
    scores = calls.scores
    of, value = scores.known
    n = scores.sums(of, np.ones(len(value)))
    lowest = np.full(len(n), np.inf)
    np.minimum.at(lowest, of, value)
    above = value - lowest[of]
    total = scores.sums(of, above)
    # of three scores two can lie above the lowest; of two only one, whose share is always 1
    enough, flat = n >= 3, total == 0
    share = above / np.where(flat, 1.0, total)[of]
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    largest = np.log(np.where(enough, n - 1, 3.0))
    found = np.clip(scores.sums(of, -share * logs) / largest, 0.0, 1.0)
    return np.where(enough, np.where(flat, 1.0, found), np.nan)


def _churns(calls: CallTable) -> Floats:
    """Compare each list with that of the last call with the same question."""
    question = calls["question"].str.strip_chars().str.to_lowercase().str.replace_all(r"\s+", " ")
    table = calls.history.with_columns(
        calls["hop"].alias(RAW + "hop"), question.alias(RAW + "question")
    )
    keys = table.columns
    asked = table.with_row_index(RAW + "row").filter(
        calls["error"].is_null()
        & calls["docs"].is_not_null()
        & question.is_not_null()
        & (question != "")
    )
    before = asked.with_columns(pl.col(RAW + "row").shift(1).over(keys).alias("before"))
    pairs = before.drop_nulls("before").select(RAW + "row", "before")
    found = np.full(len(calls), np.nan)
    rows, earlier = (pairs[name].to_numpy() for name in (RAW + "row", "before"))
    found[rows] = 1 - rbo_of_lists(calls["docs"].gather(rows), calls["docs"].gather(earlier))
    return found


def _rerank_churns(calls: CallTable) -> Floats:
    after, before = calls["docs"], calls["inputs"]
    cut = pl.DataFrame({"before": before, "n": after.list.len()}).select(
        pl.col("before").list.head("n")
    )
    known = (before.list.len() > 0).fill_null(value=False) & calls["error"].is_null()
    return np.where(known.to_numpy(), 1 - rbo_of_lists(after, cut["before"]), np.nan)


VALUES: dict[str, Callable[[CallTable], Floats]] = {
    "top_score": lambda calls: calls.scores.at(0),
    "score_gap": lambda calls: np.abs(calls.scores.at(0) - calls.scores.at(1)),
    "score_spread": _spreads,
    "score_entropy": _entropies,
    "other_language": lambda calls: in_another_language(
        calls["question"], calls.given.expected_language
    ),
    "query_distance": lambda calls: question_distances(calls["question"], calls.given),
    "near_duplicates": lambda calls: near_duplicate_shares(
        calls["docs"], calls["texts"], calls.given
    ),
    "age": lambda calls: ages(calls["time"], calls["docs"], calls["doc_metadata"], calls.given),
    "unseen": lambda calls: unseen_shares(calls["time"], calls["docs"], calls.history),
    "unknown_documents": lambda calls: unknown_shares(calls["docs"], calls.given),
    "churn": _churns,
    "rerank_churn": _rerank_churns,
}
