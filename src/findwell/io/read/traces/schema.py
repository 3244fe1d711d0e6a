"""One row per retrieval call: what every reader of traces gives and every monitor of them reads.

Calls of one trace belong together: which are inside of others, and in which order they were made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ATTRIBUTE = pl.Struct({"key": pl.String, "value": pl.String})
ANNOTATION = pl.Struct(
    {"name": pl.String, "score": pl.Float64, "label": pl.String, "annotator": pl.String}
)
SPAN_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "trace": pl.String,  # with span the key of a call: hexadecimal, lower case
    "span": pl.String,
    "parent": pl.String,
    "time": pl.Datetime("us", "UTC"),  # when the call began
    "latency_ms": pl.Float64,
    "kind": pl.String,  # retriever or reranker; inner if it is not a call of its own
    "hop": pl.UInt32,  # 0, 1, … among the retriever calls of its trace
    "question": pl.String,
    "error": pl.String,  # null where nothing failed
    "docs": pl.List(pl.String),  # in rank order; null where the span does not say
    "scores": pl.List(pl.Float64),  # as long as docs, null where a document has none
    "texts": pl.List(pl.String),  # likewise
    "doc_metadata": pl.List(pl.String),  # likewise: JSON
    "inputs": pl.List(pl.String),  # of a reranker: the ids before
    "service": pl.String,
    "session": pl.String,
    "user": pl.String,
    "attributes": pl.List(ATTRIBUTE),  # of the span and its resource, except for the above
    "annotations": pl.List(ANNOTATION),
    "convention": pl.String,
}
TRACE_SCHEMA = pl.Schema(SPAN_COLUMNS)
RETRIEVER, RERANKER = "retriever", "reranker"
# a retriever inside of another one: not a call of its own, but kept for those that are inside of it
INNER = "inner"


class RetrievedDocument(NamedTuple):
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
    docs: Sequence[RetrievedDocument] | None = ()  # None where the span does not say
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
    made = {
        **{
            name: pl.Series(name, [getattr(call, name) for call in calls], dtype=kind)
            for name, kind in SINGLE_VALUES.items()
        },
        "time": pl.Series("time", [call.time for call in calls], dtype=pl.Int64),
        "hop": pl.Series("hop", np.zeros(len(calls), np.uint32)),
        **_lists([call.docs for call in calls], DOCUMENT_COLUMNS),
        **_lists([[(doc,) for doc in call.inputs] for call in calls], {"inputs": pl.String}),
        **_lists([call.attributes for call in calls], ATTRIBUTE.to_schema(), "attributes"),
        **_lists([call.annotations for call in calls], ANNOTATION.to_schema(), "annotations"),
    }
    made["time"] = made["time"].cast(TRACE_SCHEMA["time"])
    return pl.DataFrame([made[name] for name in TRACE_SCHEMA])


DOCUMENT_COLUMNS = {  # in the order of the fields of a document
    "docs": pl.String,
    "texts": pl.String,
    "scores": pl.Float64,
    "doc_metadata": pl.String,
}
SINGLE_VALUES = {
    name: kind
    for name, kind in TRACE_SCHEMA.items()
    if not kind.is_nested() and name not in ("time", "hop")
}


def _lists(
    rows: Sequence[Sequence[tuple[Any, ...]] | None], fields: Mapping[str, Any], struct: str = ""
) -> dict[str, pl.Series]:
    """Return columns of lists, one for each field of the tuples that are listed in the rows.

    With `struct` it is one column of this name, whose lists hold all fields of a tuple.

    They are made of one column each that is cut into lists: polars takes long to read lists one
    by one.
    """
    sizes = np.fromiter((len(each or ()) for each in rows), np.int64, len(rows))
    flat = [entry for each in rows for entry in each or ()]
    values = pl.DataFrame(
        [
            pl.Series(name, [entry[number] for entry in flat], dtype=kind)
            for number, (name, kind) in enumerate(fields.items())
        ]
    )
    values = values.to_struct(struct).to_frame() if struct else values
    unknown = [each is None for each in rows]
    cells = {name: pl.Series([[]], dtype=pl.List(kind)) for name, kind in values.schema.items()}
    empty = pl.DataFrame(cells)
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


def number_hops(frame: pl.DataFrame) -> pl.DataFrame:
    """Count the retriever calls of each trace by time: 0, 1, …; the rows keep their order.

    A reranker has the hop of the last retriever before it that stands next to it, which is inside
    of the same span; if there is none, that of the last one before it.
    """
    if not frame.height:
        return frame
    if frame["trace"].n_unique() == frame.height:  # one call each, as of most applications
        return frame.with_columns(hop=pl.lit(0, pl.UInt32))
    return with_hops(frame.lazy()).collect()


def with_hops(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Number the hops as `number_hops` does, in a table that is not read yet."""
    first = pl.col("kind") == RETRIEVER
    order = ["time", first.not_(), "span"]
    hop = first.cast(pl.Int64).cum_sum().over("trace", order_by=order) - 1
    neighbour = pl.when(first).then("hop").forward_fill().over("trace", "parent", order_by=order)
    # in two steps: inside the second window the first would see only the calls next to each other
    nearest = pl.coalesce(neighbour, "hop").clip(lower_bound=0).cast(pl.UInt32)
    return calls.with_columns(hop=hop).with_columns(hop=nearest)


def outermost(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out retriever calls inside another one, whose documents are those that counted.

    Retrievers of LlamaIndex call themselves, and those that fuse or filter call others. A span
    may arrive before the one that it is inside of, so stores ask this when they are read.
    """
    return without_inner(frame.lazy()).collect() if _may_be_inside(frame) else frame


def with_inner_marked(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep of each retriever inside another one only its place, for those that are inside of it.

    These may arrive in another batch: of A around B around C, C alone does not show that B is
    inside of A.
    """
    if not _may_be_inside(frame):
        return frame
    inner = _inner(frame.lazy()).collect().with_columns(pl.lit(True).alias("\0inner"))
    marked = frame.join(inner, on=["trace", "span"], how="left", maintain_order="left")
    is_inner = pl.col("\0inner").is_not_null()
    place = ("trace", "span", "parent", "time", "convention")
    rest = (name for name in TRACE_SCHEMA if name not in (*place, "kind", "hop"))
    return marked.with_columns(
        pl.when(is_inner).then(pl.lit(INNER)).otherwise("kind").alias("kind"),
        *(pl.when(~is_inner).then(name).alias(name) for name in rest),
    ).drop("\0inner")


def calls_among() -> pl.Expr:
    """Count the rows that are calls."""
    return (pl.col("kind") != INNER).sum()


def _may_be_inside(frame: pl.DataFrame) -> bool:
    retrievers = frame.filter(pl.col("kind").is_in([RETRIEVER, INNER]))
    if (retrievers["kind"] == INNER).any():
        return True
    return retrievers.height > 1 and retrievers["parent"].null_count() < retrievers.height


def _inner(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Return trace and span of the retrievers that are inside of another one."""
    retrievers = calls.filter(pl.col("kind").is_in([RETRIEVER, INNER]))
    around = retrievers.select("trace", "span", pl.lit(True).alias("around"))
    placed = retrievers.select("trace", "span", "parent", "kind").join(
        around, left_on=["trace", "parent"], right_on=["trace", "span"], how="left"
    )
    inside = pl.col("around").is_not_null() & (pl.col("parent") != pl.col("span"))
    return placed.filter(inside | (pl.col("kind") == INNER)).select("trace", "span").unique()


def without_inner(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Leave out what `outermost` leaves out, of a table that is not read yet."""
    return calls.join(_inner(calls), on=["trace", "span"], how="anti", maintain_order="left")
