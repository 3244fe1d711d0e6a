"""One value per call and signal: computed, judged, and of the calls of a store.

Which traces a judge sees follows from their ids, so that a second look judges the same ones
and takes the answers of a model from its cache. With a number of calls a day, as many are judged as
that, whatever the traffic is. Annotations of people in the traces are labels: where a bucket
has some, the mean of the judge is corrected by them (`findwell.statistics.prediction_powered`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import JudgeError, OptionError, choose
from findwell.core.frames import pl
from findwell.evaluation.evaluate import evaluate
from findwell.io.read.traces.schema import RERANKER, RETRIEVER
from findwell.judges.find import find_judge, on_server
from findwell.judges.verdicts import JudgeReason
from findwell.loop.monitoring.signals import (
    KEY,
    NOTHING_GIVEN,
    RAW,
    CallTable,
    References,
    Signal,
    find_signals,
    texts_of,
)
from findwell.loop.monitoring.times import in_utc

if TYPE_CHECKING:
    from findwell.core.progress import Report
    from findwell.judges.verdicts import JudgeProtocol
    from findwell.loop.monitoring.store import TraceStore

COLUMNS = ("service", "session", "user", "kind", "hop", "convention")  # calls are sliced by these
# what else the columns of a table of values or buckets are called
RESERVED = {"signal", "n", "undefined", "value", "low", "high", "method", "labels"}
NO_SLICE = "(none)"  # where a call lacks the attribute
# behind the name of a judged signal: the columns of labels, and of verdicts about the same calls
LABEL, VERDICT = " label", " verdict"
MEASURES = {"sufficiency": "context_sufficiency"}  # where a signal and its measure differ in name
JUDGED_AT_ONCE = 2000  # calls whose texts are held at the same time
PEOPLE = ("human", "")  # annotators whose word is a label
SALT = b"judged"  # so that this sample is not the one that a store may have taken of its traces

Calls = pl.LazyFrame | pl.DataFrame


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


def _key_columns(slices: Sequence[str]) -> list[pl.Expr]:
    """Return what distinguishes calls, and what they are sliced by."""
    found: list[pl.Expr] = [pl.col(*KEY, "kind")]
    for name in slices:
        entry = pl.element()
        of_name = entry.filter(entry.struct.field("key") == name).struct.field("value")
        held = pl.col("attributes").list.eval(of_name).list.first()
        column = pl.col(name).cast(pl.String) if name in COLUMNS else held
        found += [column.fill_null(NO_SLICE).alias(name)] if name != "kind" else []
    return found


def signal_frame(
    calls: Calls,
    names: Iterable[str] | str | None = None,
    *,
    by: Iterable[str] | str = (),
    kind: str = RETRIEVER,
    given: References = NOTHING_GIVEN,
) -> pl.DataFrame:
    """Return one row per call: time, trace, span, kind, a column per slice and one per signal.

    `calls` has the columns of `findwell.io.read.traces.schema.TRACE_SCHEMA`, `names` are those of
    `SIGNALS`, by default the cheap ones. A value is null where the signal is undefined. `by` are
    columns to slice by: service, session, user, kind, hop, convention, or the key of any attribute.
    `kind` says whose lists are looked at, those of retrievers or those of rerankers. Signals of
    many calls, such as the concentration, have in their column what they are made of. `given` is
    what some signals compare with: a corpus, the questions of the evaluation. Judged signals are
    added by `judged_frame`. Rows are in the order of time.
    """
    wanted = find_signals(names)
    for each in wanted:
        given.require(each)
    choose("kind", kind, (RETRIEVER, RERANKER))
    slices = slice_names(by, wanted)
    kinds = {each.name: each.kind or kind for each in wanted}
    functions = [each for each in wanted if not isinstance(each.value, pl.Expr)]
    columns = _key_columns(slices)
    columns += [
        pl.when(pl.col("kind") == kinds[each.name]).then(each.value).alias(each.name)
        for each in wanted
        if isinstance(each.value, pl.Expr)
    ]
    raw = sorted({name for each in functions for name in each.reads} - set(KEY))
    columns += [pl.col(name).alias(RAW + name) for name in raw]
    rows = calls.lazy().filter(pl.col("kind").is_in(sorted({kind, *kinds.values()})))
    table = rows.select(columns).collect().sort(KEY)
    found: dict[str, pl.Series] = {}
    for of in {kinds[each.name] for each in functions}:
        mine = table["kind"] == of
        part = CallTable(table if mine.all() else table.filter(mine), slices, given)
        for each in functions:
            if kinds[each.name] == of and callable(each.value):
                values = np.full(table.height, np.nan)
                values[mine.to_numpy()] = each.value(part)
                found[each.name] = pl.Series(each.name, values).fill_nan(None)
    named = [*KEY, "kind", *(name for name in slices if name != "kind")]
    return table.with_columns(found.values()).select(*named, *kinds)


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """Who judges, and how many calls: a share of the traces, and at most so many calls a day.

    With `per_day` alone, the share of a day is the one that would have given as many calls on
    the last day before that has any; of the first day its own. So a day may be looked at
    while it lasts: later calls of it never take the place of earlier ones.
    """

    judge: object = "local"
    share: float = 1.0
    per_day: int | None = None
    base_url: str | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0 < self.share <= 1:
            raise OptionError(f"a share of {self.share} cannot be judged", fix="write 0.05, or 1")
        if self.per_day is not None and self.per_day < 1:
            raise OptionError(
                f"{self.per_day} calls a day cannot be judged", fix="give 1 or more, or no number"
            )

    def find(self) -> JudgeProtocol:
        """Return the judge."""
        return find_judge(on_server(self.judge, self.base_url)[0])

    def chosen(self, calls: pl.DataFrame) -> pl.Series:
        """Tell which calls are judged; they have time, trace and span."""
        place = _place(calls["trace"])
        if self.per_day is None:
            return place < self.share
        day = pl.col("time").dt.date().alias("day")
        rows = calls.select(day, *KEY, place=place, row=pl.int_range(pl.len()))
        days = rows.group_by("day").len().sort("day")
        usual = pl.col("len").shift(1).fill_null(pl.col("len"))
        share = (self.per_day / usual).clip(upper_bound=self.share).alias("share")
        near = rows.join(days.select("day", share), on="day").filter(
            pl.col("place") < pl.col("share")
        )
        nth = pl.int_range(pl.len()).over("day")
        judged = near.sort(KEY).filter(nth < self.per_day)["row"]
        return pl.int_range(calls.height, eager=True).is_in(judged.implode())


def _place(traces: pl.Series) -> pl.Series:
    """Return a number from 0 to 1 for each trace, which only its id decides."""
    distinct = traces.unique()
    hashes = (hashlib.blake2b(each.encode(), digest_size=8, key=SALT) for each in distinct)
    places = [int.from_bytes(each.digest(), "big") / 2**64 for each in hashes]
    return traces.replace_strict(
        distinct, pl.Series(places, dtype=pl.Float64), return_dtype=pl.Float64
    )


def judged_frame(
    calls: Calls,
    names: Iterable[str] | str,
    sample: JudgedSample,
    *,
    by: Iterable[str] | str = (),
    kind: str = RETRIEVER,
    given: References = NOTHING_GIVEN,
    progress: Report | None = None,
    since: datetime | None = None,
) -> pl.DataFrame:
    """Return what a judge says about calls, with the columns of `signal_frame`.

    A value is null where the call was not in the sample, failed, has no question, or its
    documents have no text, neither in the trace nor in the corpus. Labels stand in a column of
    their own next to that of their signal. Calls that have one are always judged; what the judge
    says about them stands in a third column, so that those outside of the sample correct a mean
    and are no part of it: people do not annotate at random. Calls before `since` are only there
    for the budget of a day, and not judged.
    """
    wanted = [each for each in find_signals(names) if each.needs == "judge"]
    signals, slices = [each.name for each in wanted], slice_names(by)
    rows = calls.lazy().filter(pl.col("kind") == kind)
    labels = rows.select(*_key_columns(slices), *map(_label, wanted)).collect().sort(KEY)
    sampled = sample.chosen(labels.select(KEY))
    if since is not None:
        late = labels["time"] >= since
        labels, sampled = labels.filter(late), sampled.filter(late)
    labelled = pl.any_horizontal(pl.col(name + LABEL).is_not_null() for name in signals)
    asked = labels.filter(sampled | labels.select(labelled).to_series()).select(KEY)
    judge = sample.find()
    parts = [asked.head(0).with_columns(pl.lit(None, pl.Float64).alias(name) for name in signals)]
    raw = ("question", "docs", "texts", "error")
    for first in range(0, asked.height, JUDGED_AT_ONCE):
        chosen = asked.slice(first, JUDGED_AT_ONCE).lazy()
        inside = rows.join(chosen, on=[*KEY], how="semi").select(*KEY, *raw).collect().sort(KEY)
        parts.append(_judged(inside, signals, judge, given, progress))
    with_labels = [name for name in signals if labels[name + LABEL].count()]
    made = labels.join(pl.concat(parts), on=[*KEY], how="left", maintain_order="left")
    made = made.with_columns(
        *(
            pl.when(pl.col(name + LABEL).is_not_null()).then(name).alias(name + VERDICT)
            for name in with_labels
        ),
        *(pl.when(sampled).then(name).alias(name) for name in signals),
    )
    named = [*KEY, "kind", *(name for name in slices if name != "kind"), *signals]
    return made.select(*named, *(name + end for name in with_labels for end in (LABEL, VERDICT)))


def _label(signal: Signal) -> pl.Expr:
    """Return what people said about a call in its annotations: the mean of their scores."""
    entry = pl.element()
    of_people = entry.struct.field("annotator").fill_null("").str.to_lowercase().is_in(PEOPLE)
    named = entry.struct.field("name").str.to_lowercase().is_in([signal.name, *signal.aliases])
    score = entry.struct.field("score")
    scores = entry.filter(of_people & named & score.is_between(*signal.bounds))
    mean = pl.col("annotations").list.eval(scores.struct.field("score")).list.mean()
    return mean.alias(signal.name + LABEL)


def _judged(
    calls: pl.DataFrame,
    names: list[str],
    judge: JudgeProtocol,
    given: References,
    progress: Report | None,
) -> pl.DataFrame:
    """Have some calls judged; equal questions with equal texts are judged once."""
    texts = texts_of(calls["docs"], calls["texts"], given.corpus).drop_nulls("text")
    calls = (
        calls.with_columns(call=pl.int_range(pl.len()))
        .join(
            texts.group_by("call", maintain_order=True).agg("text"),
            on="call",
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("text").fill_null([]))
    )
    asked = calls.filter(
        pl.col("error").is_null()
        & pl.col("question").str.contains(r"\S")
        & ((pl.col("text").list.len() > 0) | (pl.col("docs").list.len() == 0))
    )
    distinct = asked.select("question", "text").unique(maintain_order=True)
    values = {name: np.full(distinct.height, np.nan) for name in names}
    if distinct.height:
        records = [
            {
                "query": str(number),
                "question": question,
                "retrieved": [{"id": str(at), "text": text} for at, text in enumerate(shown)],
            }
            for number, (question, shown) in enumerate(distinct.rows())
        ]
        measures = [MEASURES.get(name, name) for name in names]
        result = evaluate(records, measures=measures, judge=judge, level=None, progress=progress)
        rows = result.per_query.with_columns(pl.col("query").cast(pl.Int64))
        for name, measure in zip(names, measures, strict=True):
            mine = rows.filter(pl.col("measure") == measure)
            values[name][mine["query"].to_numpy()] = mine["value"].cast(pl.Float64).to_numpy()
            _require_verdicts(name, mine, distinct["text"].list.len())
    judged = distinct.with_columns(pl.Series(name, each) for name, each in values.items())
    joined = asked.join(judged, on=["question", "text"], how="left", maintain_order="left")
    return joined.select(*KEY, *(pl.col(name).fill_nan(None) for name in names))


def _require_verdicts(name: str, rows: pl.DataFrame, shown: pl.Series) -> None:
    """Raise if a judge has no verdict about anything, but for lists that are empty."""
    full = rows.filter(pl.col("query").is_in((shown > 0).arg_true().implode()))
    if not full.height or full["value"].count():
        return
    reason = full["reason"][0]
    if not reason.endswith(JudgeReason.DRY_RUN):  # which goes on, to count what would be asked
        raise JudgeError(
            f"the judge gave no verdict about {name}: {reason}",
            fix="ask a language model (--judge openai:MODEL), or leave this signal out",
        )


def stored_signals(
    store: TraceStore,
    names: Iterable[str] | str | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: Iterable[str] | str = (),
    kind: str = RETRIEVER,
    given: References = NOTHING_GIVEN,
    sample: JudgedSample | None = None,
    progress: Report | None = None,
) -> pl.DataFrame:
    """Return what `signal_frame` does of the calls of a period, and judged signals by `sample`.

    Signals that depend on earlier calls see those before the period, too.
    """
    wanted = find_signals(names)
    judged = [each for each in wanted if each.needs == "judge"]
    if judged and sample is None:
        given.require(judged[0])
    slices = slice_names(by, wanted)
    history = any(each.history for each in wanted)
    calls = store.scan(None if history else since, until)
    plain = [each.name for each in wanted if each.needs != "judge"]
    frame = signal_frame(calls, plain, by=slices, kind=kind, given=given)
    since = None if since is None else in_utc(since)
    if history and since is not None:
        frame = frame.filter(pl.col("time") >= since)
    if not judged or sample is None:
        return frame
    begin = since
    if since is not None and sample.per_day is not None:
        # the budget of a day follows from the last day with calls before it
        midnight = since.replace(hour=0, minute=0, second=0, microsecond=0)
        earlier = store.scan(None, midnight).filter(pl.col("kind") == kind)
        last = earlier.select(pl.col("time").max().dt.truncate("1d")).collect().item()
        begin = last if isinstance(last, datetime) else midnight
    found = judged_frame(
        store.scan(begin, until),
        [each.name for each in judged],
        sample,
        by=slices,
        kind=kind,
        given=given,
        progress=progress,
        since=since,
    )
    values = found.drop("kind", *slices, strict=False)
    joined = frame.join(values, on=[*KEY], how="left", maintain_order="left")
    order = [each.name for each in wanted]
    keys = [name for name in frame.columns if name not in order]
    labels = [name for name in values.columns if name not in (*KEY, *order)]
    return joined.select(*keys, *order, *labels)
