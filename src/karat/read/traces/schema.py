"""One row per retrieval call: what every reader of traces gives and every monitor of them reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ATTRIBUTE = pl.Struct({"key": pl.String, "value": pl.String})
ANNOTATION = pl.Struct(
    {"name": pl.String, "score": pl.Float64, "label": pl.String, "annotator": pl.String}
)
TRACE_SCHEMA = pl.Schema(
    {
        "trace": pl.String,  # with span the key of a call: hexadecimal, lower case
        "span": pl.String,
        "parent": pl.String,
        "time": pl.Datetime("us", "UTC"),  # when the call began
        "latency_ms": pl.Float64,
        "kind": pl.String,  # retriever or reranker
        "hop": pl.UInt32,  # 0, 1, … among the retriever calls of its trace
        "question": pl.String,
        "error": pl.String,  # null where nothing failed
        "docs": pl.List(pl.String),  # in rank order
        "scores": pl.List(pl.Float64),  # as long as docs, null where a document has none
        "texts": pl.List(pl.String),  # likewise
        "doc_metadata": pl.List(pl.String),  # likewise: JSON
        "inputs": pl.List(pl.String),  # of a reranker: the ids before
        "service": pl.String,
        "session": pl.String,
        "user": pl.String,
        "attributes": pl.List(ATTRIBUTE),  # of the span and its resource, but for the above
        "annotations": pl.List(ANNOTATION),
        "convention": pl.String,
    }
)
RETRIEVER, RERANKER = "retriever", "reranker"


class Retrieved(NamedTuple):
    """One document of a call."""

    id: str
    text: str | None
    score: float | None
    metadata: str | None  # JSON


class Annotation(NamedTuple):
    """What a person, a program or a model said about a call."""

    name: str
    score: float | None
    label: str | None
    annotator: str | None


@dataclass(slots=True)
class RetrievalCall:
    """One call of a retriever or a reranker."""

    trace: str
    span: str
    time: int  # microseconds since 1970, UTC
    convention: str
    kind: str = RETRIEVER
    parent: str | None = None
    latency_ms: float | None = None
    question: str | None = None
    error: str | None = None
    docs: Sequence[Retrieved] = ()
    inputs: Sequence[str] = ()
    service: str | None = None
    session: str | None = None
    user: str | None = None
    attributes: Sequence[tuple[str, str]] = ()
    annotations: Sequence[Annotation] = ()


@dataclass(frozen=True, slots=True)
class Decoded:
    """The retrieval calls of some spans, how many spans there were, and what was wrong with some.

    `malformed` counts by reason: spans that were left out, and parts of spans that were cut.
    """

    frame: pl.DataFrame
    spans: int = 0
    malformed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Sequence[RetrievalCall], spans: int, malformed: Counter[str]) -> Decoded:
        """Put calls into a table."""
        return cls(number_hops(frame_of_calls(calls)), spans, dict(malformed))

    @classmethod
    def join(cls, parts: Iterable[Decoded]) -> Decoded:
        """Put several together; the hops of traces that stand in several parts are counted anew."""
        listed = list(parts)
        malformed: Counter[str] = Counter()
        for part in listed:
            malformed.update(part.malformed)
        frames = [part.frame for part in listed] or [TRACE_SCHEMA.to_frame()]
        spans = sum(part.spans for part in listed)
        return cls(number_hops(pl.concat(frames)), spans, dict(malformed))


def number_hops(frame: pl.DataFrame) -> pl.DataFrame:
    """Count the retriever calls of each trace by time; a reranker has the hop of the last one.

    The rows keep their order.
    """
    if not frame.height:
        return frame
    if frame["trace"].n_unique() == frame.height:  # one call each, as of most applications
        return frame.with_columns(hop=pl.lit(0, pl.UInt32))
    ranked = frame.select(
        "trace",
        "time",
        retriever=pl.col("kind") == RETRIEVER,
        row=pl.int_range(pl.len()),
        tie="span",
    ).sort("time", pl.col("retriever").not_(), "tie")
    hops = ranked.select(
        "row",
        hop=(pl.col("retriever").cum_sum().over("trace").cast(pl.Int64) - 1)
        .clip(lower_bound=0)
        .cast(pl.UInt32),
    ).sort("row")
    return frame.with_columns(hops["hop"])


def frame_of_calls(calls: Sequence[RetrievalCall]) -> pl.DataFrame:
    """Return one row per call; all hops are 0."""
    if not calls:
        return TRACE_SCHEMA.to_frame()
    sizes = np.fromiter((len(call.docs) for call in calls), np.int64, len(calls))
    docs = [doc for call in calls for doc in call.docs]
    lists = {
        "docs": pl.Series([doc.id for doc in docs], dtype=pl.String),
        "scores": pl.Series([doc.score for doc in docs], dtype=pl.Float64),
        "texts": pl.Series([doc.text for doc in docs], dtype=pl.String),
        "doc_metadata": pl.Series([doc.metadata for doc in docs], dtype=pl.String),
    }
    columns: dict[str, object] = {
        "trace": [call.trace for call in calls],
        "span": [call.span for call in calls],
        "parent": [call.parent for call in calls],
        "time": pl.Series([call.time for call in calls], dtype=pl.Int64),
        "latency_ms": [call.latency_ms for call in calls],
        "kind": [call.kind for call in calls],
        "hop": [0] * len(calls),
        "question": [call.question for call in calls],
        "error": [call.error for call in calls],
        **_grouped(lists, sizes),
        "inputs": [list(call.inputs) for call in calls],
        "service": [call.service for call in calls],
        "session": [call.session for call in calls],
        "user": [call.user for call in calls],
        "attributes": _structs([call.attributes for call in calls], ATTRIBUTE),
        "annotations": _structs([call.annotations for call in calls], ANNOTATION),
        "convention": [call.convention for call in calls],
    }
    series = [
        value.alias(name).cast(TRACE_SCHEMA[name])
        if isinstance(value, pl.Series)
        else pl.Series(name, value, dtype=TRACE_SCHEMA[name])
        for name, value in columns.items()
    ]
    return pl.DataFrame(series)


def _grouped(
    flat: dict[str, pl.Series], sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> dict[str, pl.Series]:
    """Return lists of these sizes made of the values of each column, one after another."""
    rows = pl.DataFrame({"row": np.arange(len(sizes))})
    values = pl.DataFrame({"row": np.repeat(np.arange(len(sizes)), sizes), **flat})
    lists = values.group_by("row", maintain_order=True).agg(pl.all())
    joined = rows.join(lists, on="row", how="left", maintain_order="left").drop("row")
    return {each.name: each.fill_null([]) for each in joined.iter_columns()}


def _structs(lists: Sequence[Sequence[tuple[object, ...]]], dtype: pl.Struct) -> pl.Series:
    """Return a column of lists of tuples; one struct at a time would take long."""
    sizes = np.fromiter(map(len, lists), np.int64, len(lists))
    if not sizes.any():
        return pl.Series([[]] * len(lists), dtype=pl.List(dtype))
    entries = [entry for each in lists for entry in each]
    fields = [
        pl.Series(part.name, [entry[number] for entry in entries], dtype=part.dtype)
        for number, part in enumerate(dtype.fields)
    ]
    flat = pl.DataFrame(fields).to_struct("entries")
    return _grouped({"entries": flat}, sizes)["entries"]
