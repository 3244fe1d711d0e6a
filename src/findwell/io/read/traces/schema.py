"""One row per retrieval call: what every reader of traces gives and every monitor of them reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from findwell.core.data import Ints

ATTRIBUTE = pl.Struct({"key": pl.String, "value": pl.String})
ANNOTATION = pl.Struct(
    {"name": pl.String, "score": pl.Float64, "label": pl.String, "annotator": pl.String}
)
COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "trace": pl.String,  # with span the key of a call: hexadecimal, lower case
    "span": pl.String,
    "parent": pl.String,
    "time": pl.Datetime("us", "UTC"),  # when the call began
    "latency_ms": pl.Float64,
    "kind": pl.String,  # retriever or reranker; inner where it is no call of its own
    "hop": pl.UInt32,  # 0, 1, … among the retriever calls of its trace
    "question": pl.String,
    "error": pl.String,  # null where nothing failed
    "docs": pl.List(pl.String),  # in rank order; null where the span does not tell
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
TRACE_SCHEMA = pl.Schema(COLUMNS)
RETRIEVER, RERANKER = "retriever", "reranker"
# a retriever inside of another one: no call of its own, and kept for those that are inside of it
INNER = "inner"


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
    docs: Sequence[Retrieved] | None = ()  # None where the span does not tell
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


def frame_of_calls(calls: Sequence[RetrievalCall]) -> pl.DataFrame:
    """Return one row per call; all hops are 0."""
    if not calls:
        return TRACE_SCHEMA.to_frame()
    docs = _lists(
        [call.docs for call in calls],
        {
            "docs": pl.String,
            "texts": pl.String,
            "scores": pl.Float64,
            "doc_metadata": pl.String,
        },
    )
    inputs = [[(doc,) for doc in call.inputs] for call in calls]
    attributes = [call.attributes for call in calls]
    annotations = [call.annotations for call in calls]
    columns = {name: [getattr(call, name) for call in calls] for name in SINGLE}
    made = {
        **{name: pl.Series(name, each, dtype=SINGLE[name]) for name, each in columns.items()},
        "time": pl.Series("time", [call.time for call in calls], dtype=pl.Int64),
        "hop": pl.Series("hop", np.zeros(len(calls), np.uint32)),
        **docs,
        **_lists(inputs, {"inputs": pl.String}),
        "attributes": _structs("attributes", attributes, ATTRIBUTE),
        "annotations": _structs("annotations", annotations, ANNOTATION),
    }
    made["time"] = made["time"].cast(TRACE_SCHEMA["time"])
    return pl.DataFrame([made[name] for name in TRACE_SCHEMA])


SINGLE = {
    name: kind
    for name, kind in TRACE_SCHEMA.items()
    if not kind.is_nested() and name not in ("time", "hop")
}


def _lists(
    rows: Sequence[Sequence[tuple[Any, ...]] | None],
    fields: Mapping[str, pl.DataType | type[pl.DataType]],
) -> dict[str, pl.Series]:
    """Return columns of lists, one for each field of the tuples that are listed in the rows.

    They are made of one column each that is cut into lists: polars takes long to read lists one
    by one.
    """
    sizes = np.fromiter((len(each or ()) for each in rows), np.int64, len(rows))
    flat = [entry for each in rows for entry in each or ()]
    values = [
        pl.Series(name, [entry[number] for entry in flat], dtype=kind)
        for number, (name, kind) in enumerate(fields.items())
    ]
    return _cut(pl.DataFrame(values), sizes, [each is None for each in rows])


def _structs(name: str, rows: Sequence[Sequence[tuple[Any, ...]]], kind: pl.Struct) -> pl.Series:
    """Return a column of lists of structs."""
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    flat = [entry for each in rows for entry in each]
    fields = [
        pl.Series(part.name, [entry[number] for entry in flat], dtype=part.dtype)
        for number, part in enumerate(kind.fields)
    ]
    flat_column = pl.DataFrame(fields).to_struct(name).to_frame()
    return _cut(flat_column, sizes, [False] * len(rows))[name]


def _cut(values: pl.DataFrame, sizes: Ints, unknown: list[bool]) -> dict[str, pl.Series]:
    """Cut columns into lists of these sizes; where they are unknown, there is no list."""
    empty = pl.DataFrame(
        {name: pl.Series([[]], dtype=pl.List(kind)) for name, kind in values.schema.items()}
    )
    if not sizes.any():
        lists, place = empty, np.zeros(len(sizes), np.int64)
    else:
        row = pl.Series("\0row", np.repeat(np.arange(len(sizes)), sizes))
        grouped = values.with_columns(row).group_by("\0row", maintain_order=True).agg(pl.all())
        lists = pl.concat([grouped.drop("\0row"), empty])
        place = np.where(sizes > 0, np.cumsum(sizes > 0) - 1, lists.height - 1)
    index = pl.Series(place)
    if any(unknown):
        index = index.set(pl.Series(unknown), None)
    elif lists.height == len(sizes) + 1 and len(sizes):  # none is empty
        lists = lists.head(len(sizes))
        return {each.name: each for each in lists.iter_columns()}
    return {each.name: each for each in lists.select(pl.all().gather(index)).iter_columns()}
