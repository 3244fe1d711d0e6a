"""`Values` of calls: one value per call and signal, computed from the traces, or judged.

Which traces a judge sees follows from their ids, so that a second look judges the same ones and
takes the answers of a model from its cache. With a number of calls a day, that many are judged,
whatever the traffic is. Annotations of people in the traces are labels: where a bucket has some,
they correct the mean of the judge (`findwell.statistics.prediction_powered`).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypedDict

import numpy as np

from findwell.core.errors import JudgeError, OptionError, choose
from findwell.core.frames import changed, later, pl
from findwell.core.values import Values
from findwell.evaluation.evaluate import evaluate
from findwell.io.read.traces.schema import RERANKER, RETRIEVER
from findwell.judges.find import find_judge, on_server
from findwell.judges.limits import judge_lines
from findwell.judges.verdicts import JudgeReason
from findwell.loop.monitoring.signals import (
    KEY,
    NOTHING_GIVEN,
    RAW_PREFIX,
    CallTable,
    References,
    Signal,
    find_signals,
    texts_of,
)
from findwell.loop.monitoring.times import DAY, in_utc, parse_moment, parse_period

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.core.data import Floats, Ints
    from findwell.core.progress import Report
    from findwell.judges.verdicts import JudgeProtocol
    from findwell.loop.monitoring.store import TraceStore

# calls are sliced by these
CALL_COLUMNS = ("service", "session", "user", "kind", "hop", "convention")
# what else the columns of a table of values or buckets are called
RESERVED_NAMES = {"signal", "n", "undefined", "value", "low", "high", "method", "labels"}
NO_SLICE = "(none)"  # where a call lacks the attribute
# behind the name of a judged signal: the columns of labels, and of verdicts about the same calls
LABEL, VERDICT = " label", " verdict"
SAMPLED_COLUMN = RAW_PREFIX + "sampled"
MEASURES = {"sufficiency": "context_sufficiency"}  # where a signal and its measure differ in name
JUDGED_AT_ONCE = 2000  # calls whose texts are held at the same time
CALLS_AT_ONCE = 100_000  # calls whose values are held at the same time, about
PEOPLE = ("human", "")  # annotators whose word is a label
SALT = b"judged"  # so that this sample is not the one that a store may have taken of its traces

Calls = pl.LazyFrame | pl.DataFrame
Moment = datetime | timedelta | str


@dataclass(frozen=True, eq=False)
class CallValues(Values):
    """Values of calls: the runs are kinds of calls, the measures signals, the queries calls.

    The table about the calls has time, trace, span and kind, the slices, and behind a mark what
    summaries read in addition to the values: lists of documents, and labels.
    """

    measures: tuple[Signal, ...]  # type: ignore[assignment]  # which are not of a relation

    @classmethod
    def concat(cls, parts: Iterable[CallValues]) -> CallValues:
        """Return the values of several parts, of the same signals."""
        every = list(parts)
        asked = [each.asked for each in every if each.asked is not None]
        return changed(
            every[0],
            queries=later(lambda: pl.concat([each.queries for each in every], how="diagonal")),
            table=np.concatenate([each.table for each in every], axis=2),
            asked=np.concatenate(asked, axis=1) if asked else None,
        )

    def run_of(self, signal: Signal) -> int:
        """Return the number of the kind of calls that a signal is about."""
        return self.runs.index(signal.kind or self.runs[0])

    def column_of(self, signal: Signal) -> Floats:
        """Return the values of a signal for all calls; NaN for those of another kind."""
        found: Floats = self.table[self.run_of(signal), self.measures.index(signal)]
        return found

    def alone(self, signal: Signal) -> Self:
        """Return the values of one signal, of the calls that it is about."""
        at = self.run_of(signal)
        found = changed(
            self,
            runs=(self.runs[at],),
            measures=(signal,),
            table=self.column_of(signal)[np.newaxis, np.newaxis],
            asked=None,
        )
        return found if self.asked is None else found.only(self.asked[at])

    def sliced(self, column: str, value: str | None) -> Self:
        """Return the calls of a slice; all if no column or no value is named."""
        if not column or value is None:
            return self
        return self.only((self.queries[column] == value).to_numpy())

    @property
    def times(self) -> Ints:
        """When the calls began, in microseconds since 1970."""
        return self.queries["time"].dt.timestamp("us").to_numpy()

    @property
    def series(self) -> Floats:
        """The values of the first signal."""
        found: Floats = self.table[0, 0]
        return found

    @property
    def defined(self) -> Self:
        """The calls that have a value of the first signal."""
        return self.only(~np.isnan(self.series))

    def since(self, moment: datetime | None) -> Self:
        """Return the calls that began at a moment or later."""
        if moment is None:
            return self
        return self.only((self.queries["time"] >= in_utc(moment)).to_numpy())

    def frame(self) -> pl.DataFrame:
        """Return one row per call: time, trace, span, kind, slices, and one column per signal.

        A signal of many calls, such as the concentration, has in its column what it is made of.
        """
        marked = [name for name in self.queries.columns if name.startswith(RAW_PREFIX)]
        docs = RAW_PREFIX + "docs"
        return self.queries.select(
            pl.exclude(marked),
            *(
                pl.col(docs).alias(each.name)
                if each.needs_lists
                else pl.Series(each.name, self.column_of(each)).fill_nan(None)
                for each in self.measures
            ),
            *(pl.col(name).alias(name.removeprefix(RAW_PREFIX)) for name in marked if name != docs),
        )


def slice_names(by: Iterable[str] | str, wanted: Iterable[Signal] = ()) -> list[str]:
    """Return the names of columns to slice by, each once; none is that of a wanted signal."""
    names = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    taken = {"", *KEY, *RESERVED_NAMES, *(each.name for each in wanted)}
    for name in names:
        if name in taken or name.startswith(RAW_PREFIX):
            raise OptionError(
                f"calls are not sliced by {name or 'nothing'}",
                fix="choose service, user, or an attribute",
            )
    return names


def _slice_columns(slices: Sequence[str]) -> Iterator[pl.Expr]:
    entry = pl.element()
    for name in slices:
        of_name = entry.filter(entry.struct.field("key") == name).struct.field("value")
        held = pl.col("attributes").list.eval(of_name).list.first()
        column = pl.col(name).cast(pl.String) if name in CALL_COLUMNS else held
        if name != "kind":
            yield column.fill_null(NO_SLICE).alias(name)


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """Who judges, and how many calls: a share of the traces, and at most some calls a day.

    With `per_day` alone, the share of a day is the one that would have given that many calls on
    the last day before that has any; of the first day its own. So a day may be looked at
    while it lasts: later calls of it never replace earlier ones.
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
                f"{self.per_day} calls a day cannot be judged",
                fix="give 1 or more, or leave it out",
            )

    def find(self) -> JudgeProtocol:
        """Return the judge."""
        return find_judge(on_server(self.judge, self.base_url)[0])

    def worth(self) -> list[str]:
        """Return who judges, and what that is worth."""
        found = self.find()
        return judge_lines([{"name": found.name, **found.about()}])

    def chosen(self, calls: pl.DataFrame) -> pl.Series:
        """Tell which calls are judged; they have time, trace and span."""
        distinct = calls["trace"].unique()
        hashes = (hashlib.blake2b(each.encode(), digest_size=8, key=SALT) for each in distinct)
        places = [int.from_bytes(each.digest(), "big") / 2**64 for each in hashes]
        # a number from 0 to 1 for each trace, which only its id decides
        place = calls["trace"].replace_strict(
            distinct, pl.Series(places, dtype=pl.Float64), return_dtype=pl.Float64
        )
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


def _label(signal: Signal) -> pl.Expr:
    """Return what people said about a call in its annotations: the mean of their scores."""
    entry = pl.element()
    of_people = entry.struct.field("annotator").fill_null("").str.to_lowercase().is_in(PEOPLE)
    named = entry.struct.field("name").str.to_lowercase().is_in([signal.name, *signal.aliases])
    score = entry.struct.field("score")
    scores = entry.filter(of_people & named & score.is_between(*signal.bounds))
    mean = pl.col("annotations").list.eval(scores.struct.field("score")).list.mean()
    return mean.alias(RAW_PREFIX + signal.name + LABEL)


@dataclass(frozen=True, slots=True)
class JudgedCalls:
    """Calls that a judge is asked about, and what it is asked.

    There is no value where a call was not in the sample, failed, has no question, or where its
    documents have no text, neither in the trace nor in the corpus. Calls with a label are always
    judged; what the judge says about them stands next to the label, so that those outside of the
    sample correct a mean without being a part of it: people do not annotate at random.
    """

    rows: pl.LazyFrame
    names: list[str]
    sample: JudgedSample
    given: References
    progress: Report | None

    def add_to(self, table: pl.DataFrame, kind: str, since: datetime | None) -> pl.DataFrame:
        """Add the columns of judged signals, and of verdicts about calls with labels."""
        own = pl.col("kind") == kind
        mine = table.filter(own)
        sampled = mine.select(KEY).with_columns(self.sample.chosen(mine).alias(SAMPLED_COLUMN))
        table = table.join(sampled, on=[*KEY], how="left", maintain_order="left")
        labelled = pl.any_horizontal(
            pl.col(RAW_PREFIX + n + LABEL).is_not_null() for n in self.names
        )
        late = pl.lit(value=True) if since is None else pl.col("time") >= since
        asked = table.filter(own & late & (pl.col(SAMPLED_COLUMN) | labelled)).select(KEY)
        judge = self.sample.find()
        empty = {name: pl.lit(None, pl.Float64) for name in self.names}
        parts = [asked.head(0).with_columns(**empty)]
        for first in range(0, asked.height, JUDGED_AT_ONCE):
            chosen = asked.slice(first, JUDGED_AT_ONCE).lazy()
            inside = self.rows.join(chosen, on=[*KEY], how="semi")
            inside = inside.select(*KEY, "question", "docs", "texts", "error")
            parts.append(self._judged(inside.collect().sort(KEY), judge))
        made = table.join(pl.concat(parts), on=[*KEY], how="left", maintain_order="left")
        several = [name for name in self.names if made[RAW_PREFIX + name + LABEL].count()]
        return made.with_columns(
            *(
                pl.when(pl.col(RAW_PREFIX + name + LABEL).is_not_null())
                .then(name)
                .alias(RAW_PREFIX + name + VERDICT)
                for name in several
            ),
            *(pl.when(SAMPLED_COLUMN).then(name).alias(name) for name in self.names),
        ).drop(
            SAMPLED_COLUMN,
            *(RAW_PREFIX + name + LABEL for name in self.names if name not in several),
        )

    def _judged(self, calls: pl.DataFrame, judge: JudgeProtocol) -> pl.DataFrame:
        """Have some calls judged; equal questions with equal texts are judged once."""
        texts = texts_of(calls["docs"], calls["texts"], self.given.corpus).drop_nulls("text")
        of_call = texts.group_by("call", maintain_order=True).agg("text")
        calls = calls.with_columns(call=pl.int_range(pl.len()))
        calls = calls.join(of_call, on="call", how="left", maintain_order="left")
        asked = calls.with_columns(pl.col("text").fill_null([])).filter(
            pl.col("error").is_null()
            & pl.col("question").str.contains(r"\S")
            & ((pl.col("text").list.len() > 0) | (pl.col("docs").list.len() == 0))
        )
        distinct = asked.select("question", "text").unique(maintain_order=True)
        values = {name: np.full(distinct.height, np.nan) for name in self.names}
        if distinct.height:
            records = [
                {
                    "query": str(number),
                    "question": question,
                    "retrieved": [{"id": str(at), "text": text} for at, text in enumerate(shown)],
                }
                for number, (question, shown) in enumerate(distinct.rows())
            ]
            measures = [MEASURES.get(name, name) for name in self.names]
            result = evaluate(
                records, measures=measures, judge=judge, level=None, progress=self.progress
            )
            rows = result.per_query.with_columns(pl.col("query").cast(pl.Int64))
            for name, measure in zip(self.names, measures, strict=True):
                mine = rows.filter(pl.col("measure") == measure)
                values[name][mine["query"].to_numpy()] = mine["value"].cast(pl.Float64).to_numpy()
                _require_verdicts(name, mine, distinct["text"].list.len())
        judged = distinct.with_columns(pl.Series(name, each) for name, each in values.items())
        joined = asked.join(judged, on=["question", "text"], how="left", maintain_order="left")
        return joined.select(*KEY, *(pl.col(name).fill_nan(None) for name in self.names))


def _require_verdicts(name: str, rows: pl.DataFrame, shown: pl.Series) -> None:
    """Raise if a judge has no verdict about anything, except for lists that are empty."""
    full = rows.filter(pl.col("query").is_in((shown > 0).arg_true().implode()))
    if not full.height or full["value"].count():
        return
    reason = full["reason"][0]
    if not reason.endswith(JudgeReason.DRY_RUN):  # which goes on, to count what would be asked
        raise JudgeError(
            f"the judge gave no verdict about {name}: {reason}",
            fix="ask a language model (--judge openai:MODEL), or leave this signal out",
        )


class SignalOptions(TypedDict, total=False):
    """Which calls are looked at, and what they are compared with."""

    by: Iterable[str] | str
    since: Moment | None
    until: Moment | None
    kind: str
    corpus: object
    questions: object
    embedder: object
    expected_language: str
    date_key: str | None
    judge: object
    sample: float
    per_day: int | None
    base_url: str | None
    progress: Report | None


@dataclass(frozen=True, slots=True)
class CallQuery:
    """Which signals of which calls of a store are asked for."""

    names: Iterable[str] | str | None = None  # of SIGNALS; None: the cheap ones
    # service, session, user, kind, hop, convention, or the key of any attribute
    by: Iterable[str] | str = ()
    since: datetime | None = None  # in UTC
    until: datetime | None = None
    kind: str = RETRIEVER  # calls of retrievers, or of rerankers
    given: References = NOTHING_GIVEN  # what some signals compare with
    sample: JudgedSample | None = None  # which judged signals need
    progress: Report | None = None

    @classmethod
    def of(
        cls, store: TraceStore, names: Iterable[str] | str | None, options: SignalOptions
    ) -> CallQuery:
        """Read options, once for all parts of the store."""
        given: dict[str, Any] = dict(options)
        sample = None
        if (judge := given.get("judge")) is not None:
            share = given.get("sample", 1.0)
            sample = JudgedSample(judge, share, given.get("per_day"), given.get("base_url"))
        compared = ("corpus", "questions", "embedder", "expected_language", "date_key")
        return cls(
            [each.name for each in find_signals(names)],
            slice_names(given.get("by", ())),
            moment_of(store, given.get("since")),
            moment_of(store, given.get("until")),
            given.get("kind", RETRIEVER),
            References.of(**{name: given[name] for name in compared if name in given}),
            sample,
            given.get("progress"),
        )

    @property
    def looks_back(self) -> bool:
        """Whether a signal depends on earlier calls."""
        return any(each.history for each in find_signals(self.names))

    def values(self, store: TraceStore) -> CallValues:
        """Return the values; signals that depend on earlier calls see those before the period."""
        begin = None if self.looks_back else self.since
        if begin is not None and self.sample is not None and self.sample.per_day is not None:
            # the budget of a day follows from the last day with calls before it
            midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
            earlier = store.scan(None, midnight).filter(pl.col("kind") == self.kind)
            last = earlier.select(pl.col("time").max().dt.truncate("1d")).collect().item()
            begin = last if isinstance(last, datetime) else midnight
        return self.of_calls(store.scan(begin, self.until))

    def of_calls(self, calls: Calls) -> CallValues:
        """Return the values of some calls, in the order of time; NaN where one is undefined.

        `calls` has the columns of `findwell.io.read.traces.schema.TRACE_SCHEMA`. Those before
        `since` are read for what depends on them, and have no values here.
        """
        wanted = find_signals(self.names)
        judged = [each for each in wanted if each.needs == "judge"]
        for each in wanted:
            if each not in judged or self.sample is None:
                self.given.require(each)
        kind = choose("kind", self.kind, (RETRIEVER, RERANKER))
        slices = slice_names(self.by, wanted)
        runs = tuple(dict.fromkeys((kind, *(each.kind or kind for each in wanted))))
        simple = {each.name: each.value for each in wanted if isinstance(each.value, pl.Expr)}
        read = {name for each in wanted if each.name not in simple for name in each.reads}
        rows = calls.lazy().filter(pl.col("kind").is_in(runs))
        table = (
            rows.select(
                pl.col(*KEY, "kind"),
                *_slice_columns(slices),
                *(value.alias(name) for name, value in simple.items()),
                *(pl.col(name).alias(RAW_PREFIX + name) for name in sorted(read - set(KEY))),
                *map(_label, judged),
            )
            .collect()
            .sort(KEY)
        )
        if judged and self.sample is not None:
            names = [each.name for each in judged]
            ask = JudgedCalls(rows, names, self.sample, self.given, self.progress)
            table = ask.add_to(table, kind, self.since)
        asked = np.stack([(table["kind"] == run).to_numpy() for run in runs])
        made = np.full((len(runs), len(wanted), table.height), np.nan)
        for at, run in enumerate(runs):
            inside = asked[at]
            part = CallTable(table if inside.all() else table.filter(inside), slices, self.given)
            for column, each in enumerate(wanted):
                if (each.kind or kind) == run and callable(each.value):
                    made[at, column, inside] = each.value(part)
                elif (each.kind or kind) == run and each.name in table.columns:
                    values = table[each.name].cast(pl.Float64).to_numpy()
                    made[at, column, inside] = values[inside]
        known = [*KEY, "kind", *(name for name in slices if name != "kind")]
        lists = [RAW_PREFIX + "docs"] if any(each.needs_lists for each in wanted) else []
        labels = [
            name
            for name in table.columns
            if name.startswith(RAW_PREFIX) and name.endswith((LABEL, VERDICT))
        ]
        queries = table.select(
            *known, *(pl.when(pl.col("kind") == kind).then(name) for name in lists), *labels
        )
        found = CallValues(queries, runs, tuple(wanted), made, asked if len(runs) > 1 else None)
        return found.since(self.since)

    def parts(self, store: TraceStore, length: timedelta) -> Iterator[CallValues]:
        """Yield the values of some days after another, if buckets of a length divide a day.

        What depends on earlier calls, or on all calls of a day, is computed as a whole.
        """
        counts = store.counts()
        judged = self.sample is not None and self.sample.per_day is not None
        divides = DAY % length == timedelta(0)
        if judged or self.looks_back or not divides or counts.first is None or counts.last is None:
            yield self.values(store)
            return
        first = counts.first if self.since is None else max(self.since, counts.first)
        last = counts.last if self.until is None else min(self.until, counts.last)
        start = first.replace(hour=0, minute=0, second=0, microsecond=0)
        days = max(1, (counts.last - counts.first) // DAY + 1)
        step = max(1, CALLS_AT_ONCE * days // max(1, counts.calls)) * DAY
        part = self
        while part is self or start <= last:
            until = start + step if self.until is None else min(start + step, self.until)
            part = replace(self, since=self.since if part is self else start, until=until)
            yield part.values(store)
            start += step


def moment_of(store: TraceStore, given: Moment | None) -> datetime | None:
    """Return a point in time in UTC: as it is, its text, a time before now, or that of a mark."""
    if given is None or isinstance(given, datetime):
        return None if given is None else in_utc(given)
    if isinstance(given, timedelta):
        return datetime.now(UTC) - given
    marks = store.marks()
    named = [mark.time for mark in marks if mark.name == given]
    if named:
        return named[-1]
    with contextlib.suppress(OptionError):
        return parse_moment(given)
    try:
        return datetime.now(UTC) - parse_period(given)
    except OptionError:
        known = ", ".join(mark.name for mark in marks)
        raise OptionError(
            f"{given!r} is not a point in time",
            fix="write 2026-05-31T14:00 (UTC), 7d for seven days ago, or the name of a mark"
            + (f": {known}" if known else ""),
        ) from None
