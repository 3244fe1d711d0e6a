"""Frames of polars as the batches that Spark takes: it knows no lists and texts of 64-bit size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def to_batches(frame: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a frame."""
    import pyarrow as pa  # noqa: PLC0415

    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    fields = [pa.field(each.name, _small(each.type)) for each in table.schema]
    yield from table.cast(pa.schema(fields)).to_batches()


def _small(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_large_list(kind):
        return pa.list_(_small(kind.value_type))
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind
