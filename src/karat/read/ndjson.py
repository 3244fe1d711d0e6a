"""Lines of JSON as a frame, where polars reads them as Python would."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from karat.read.shapes import Shape

HALF_PAIR = re.compile(  # one half of a surrogate pair, which no text holds
    rb"\\u[dD][89aAbB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89aAbB]..)\\u[dD][c-fC-F]"
)


def frame_of(data: bytes, like: pl.Schema | None, shape: Shape) -> pl.DataFrame | None:
    """Parse lines of JSON; None where polars cannot, or where the lines are not a record each.

    `like` is the schema of earlier lines. Finding out the schema of all lines takes as long as
    parsing them, so it is first assumed that the first lines are like the others, and checked.
    """
    if b"\\" in data and HALF_PAIR.search(data):
        return None
    frame = _parsed(data, like)
    if frame is not None and _has_keys(data, frame):
        return frame
    try:
        frame = pl.read_ndjson(data, infer_schema_length=None)
    except (pl.exceptions.PolarsError, ValueError):
        return None
    whole = frame.height == _lines(data) and _names_once(data, frame, shape)
    return frame if whole else None


def _parsed(data: bytes, like: pl.Schema | None) -> pl.DataFrame | None:
    try:
        frame = pl.read_ndjson(data, schema=like)
    except (pl.exceptions.PolarsError, ValueError):
        return None
    return frame if frame.height == _lines(data) else None


def _lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n"))


def _has_keys(data: bytes, frame: pl.DataFrame) -> bool:
    """Tell whether the lines hold the keys of the frame and no others; if in doubt, say no."""
    keys = 0
    for column in frame.iter_columns():
        absent = column.null_count()
        keys += data.count(b'"%s":' % column.name.encode()) if absent else frame.height
        inner = getattr(column.dtype, "inner", column.dtype)
        if isinstance(inner, pl.Struct):
            if inner == column.dtype:
                return False
            elements = column.list.explode(empty_as_null=False, keep_nulls=False)
            fields = elements.struct.unnest()
            if any(field.null_count() for field in fields.iter_columns()):
                return False
            keys += fields.height * fields.width
    codes = np.frombuffer(data, np.uint8)
    colons = np.flatnonzero(codes == ord(":"))
    ends = (codes[colons - 1] == ord('"')) & (codes[colons - 2] != ord("\\"))
    return int(np.count_nonzero(ends)) == keys


def _names_once(data: bytes, frame: pl.DataFrame, shape: Shape) -> bool:
    """Tell whether no record names one of its main fields twice: polars and Python differ there."""
    picked = shape.pick(frame.columns)
    main = (picked[name] for name in ("query", "retrieved", "gold") if name in picked)
    return all(data.count(b'"%s"' % name.encode()) <= frame.height for name in main)
