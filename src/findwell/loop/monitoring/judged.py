"""Judged signals: a judge looks at what calls retrieved, at all of it or at a sample.

Which traces are in the sample follows from their ids, so that a second look judges the same ones
and takes the answers of a model from its cache. With a number of calls a day, as many are judged as
that, whatever the traffic is. Annotations of people in the traces are labels: where a bucket
has some, the mean of the judge is corrected by them (`findwell.statistics.prediction_powered`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from findwell.core.errors import JudgeError, OptionError
from findwell.evaluation.evaluate import evaluate
from findwell.judges.find import find_judge, on_server
from findwell.judges.verdicts import JudgeReason
from findwell.loop.monitoring.call_values import KEY, RAW, Calls, key_columns, slice_names
from findwell.loop.monitoring.documents import texts_by_document
from findwell.loop.monitoring.references import NOTHING_GIVEN, References
from findwell.loop.monitoring.signals import SIGNALS, Signal, find_signals
from findwell.loop.monitoring.time_buckets import LABEL, VERDICT

if TYPE_CHECKING:
    from datetime import datetime

    from findwell.core.progress import Report
    from findwell.judges.verdicts import JudgeProtocol

MEASURES = {"sufficiency": "context_sufficiency"}  # where a signal and its measure differ in name
AT_ONCE = 2000  # calls whose texts are held at the same time
PEOPLE = ("human", "")  # annotators whose word is a label
SALT = b"judged"  # so that this sample is not the one that a store may have taken of its traces


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
        if self.per_day is None:
            return _place(calls["trace"]) < self.share
        day = pl.col("time").dt.date()
        rows = calls.select(
            day.alias("day"), *KEY, place=_place(calls["trace"]), row=pl.int_range(pl.len())
        )
        days = rows.group_by("day").len().sort("day")
        usual = pl.col("len").shift(1).fill_null(pl.col("len"))
        share = (self.per_day / usual).clip(upper_bound=self.share).alias("share")
        near = rows.join(days.select("day", share), on="day").filter(
            pl.col("place") < pl.col("share")
        )
        nth = pl.int_range(pl.len()).over("day")
        judged = near.sort(KEY).filter(nth < self.per_day)["row"]
        return pl.int_range(calls.height, eager=True).is_in(judged.implode())


def judged_signals(names: Iterable[str] | str | None) -> list[Signal]:
    """Return those of some signals that a judge is asked about."""
    return [each for each in find_signals(names) if each.needs == "judge"]


def judged_frame(
    calls: Calls,
    names: Iterable[str] | str,
    sample: JudgedSample,
    *,
    by: Iterable[str] | str = (),
    kind: str = "retriever",
    given: References = NOTHING_GIVEN,
    progress: Report | None = None,
    since: datetime | None = None,
) -> pl.DataFrame:
    """Return what a judge says about calls, with the columns of `signal_frame`.

    A value is null where the call was not in the sample, failed, has no question, or its
    documents have no text, neither in the trace nor in the corpus. Labels stand in a column of
    their own beside that of their signal. Calls that have one are always judged; what the judge
    says about them stands in a third column, so that those outside of the sample correct a mean
    and are no part of it: people do not annotate at random. Calls before `since` are only there
    for the budget of a day, and not judged.
    """
    wanted = judged_signals(names)
    slices = slice_names(by)
    columns = key_columns(slices)
    raw = ("question", "docs", "texts", "error", "annotations")
    rows = calls.lazy().filter(pl.col("kind") == kind)
    keys = rows.select(*KEY).collect().sort(KEY)
    labels = rows.select(columns + [_label(each) for each in wanted]).collect().sort(KEY)
    labelled = labels.select(
        pl.any_horizontal(pl.col(each.name + LABEL).is_not_null() for each in wanted)
    )
    sampled = sample.chosen(keys)
    if since is not None:
        late = keys["time"] >= since
        keys, labels, labelled = (each.filter(late) for each in (keys, labels, labelled))
        sampled = sampled.filter(late)
    asked = keys.filter(sampled | labelled.to_series())
    judge = sample.find()
    parts = []
    for first in range(0, asked.height, AT_ONCE):
        chosen = asked.slice(first, AT_ONCE)
        inside = rows.join(chosen.lazy(), on=[*KEY], how="semi").select(
            *KEY, *(pl.col(name).alias(RAW + name) for name in raw)
        )
        parts.append(_judged(inside.collect().sort(KEY), wanted, judge, given, progress))
    schema = dict.fromkeys((each.name for each in wanted), pl.Float64())
    found = (
        pl.concat(parts)
        if parts
        else keys.head(0).with_columns(
            pl.lit(None, dtype).alias(name) for name, dtype in schema.items()
        )
    )
    with_labels = [name for name in schema if labels[name + LABEL].count()]
    beside = [name + each for name in with_labels for each in (LABEL, VERDICT)]
    made = labels.join(found, on=[*KEY], how="left", maintain_order="left").with_columns(
        *(
            pl.when(pl.col(name + LABEL).is_not_null()).then(name).alias(name + VERDICT)
            for name in with_labels
        ),
        *(pl.when(sampled).then(name).alias(name) for name in schema),
    )
    named = [name for name in slices if name != "kind"]
    return made.select(*KEY, "kind", *named, *schema, *beside)


def _judged(
    table: pl.DataFrame,
    wanted: list[Signal],
    judge: JudgeProtocol,
    given: References,
    progress: Report | None,
) -> pl.DataFrame:
    """Have some calls judged; equal questions with equal texts are judged once."""
    listed = texts_by_document(table[RAW + "docs"], table[RAW + "texts"], given.corpus)
    texts = listed.drop_nulls("text").group_by("call", maintain_order=True).agg("text")
    calls = (
        table.with_row_index("call")
        .with_columns(pl.col("call").cast(pl.Int64))
        .join(texts, on="call", how="left", maintain_order="left")
        .with_columns(pl.col("text").fill_null([]))
    )
    question = pl.col(RAW + "question")
    readable = (
        pl.col(RAW + "error").is_null()
        & question.str.contains(r"\S")
        & ((pl.col("text").list.len() > 0) | (pl.col(RAW + "docs").list.len() == 0))
    )
    asked = calls.filter(readable).with_columns(question=question)
    distinct = asked.select("question", "text").unique(maintain_order=True).with_row_index("query")
    names = [each.name for each in wanted]
    values = {name: np.full(distinct.height, np.nan) for name in names}
    if distinct.height:
        records = [
            {"query": str(number), "question": asked_for, "retrieved": _documents(shown)}
            for number, asked_for, shown in distinct.rows()
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


def _documents(texts: list[str]) -> list[dict[str, Any]]:
    return [{"id": str(rank), "text": text} for rank, text in enumerate(texts)]


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


def _label(signal: Signal) -> pl.Expr:
    """Return what people said about a call in its annotations: the mean of their scores."""
    entry = pl.element()
    known = [signal.name, *signal.aliases]
    of_people = entry.struct.field("annotator").fill_null("").str.to_lowercase().is_in(PEOPLE)
    named = entry.struct.field("name").str.to_lowercase().is_in(known)
    score = entry.struct.field("score")
    low, high = SIGNALS[signal.name].bounds
    scores = entry.filter(of_people & named & score.is_between(low, high)).struct.field("score")
    return pl.col("annotations").list.eval(scores).list.mean().alias(signal.name + LABEL)


def _place(traces: pl.Series) -> pl.Series:
    """Return a number from 0 to 1 for each trace, which only its id decides."""
    distinct = traces.unique()
    places = [
        int.from_bytes(hashlib.blake2b(each.encode(), digest_size=8, key=SALT).digest(), "big")
        / 2**64
        for each in distinct
    ]
    return traces.replace_strict(
        distinct, pl.Series(places, dtype=pl.Float64), return_dtype=pl.Float64
    )
