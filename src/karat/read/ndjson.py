"""Lines of JSON as a frame, where polars reads them as Python would."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import polars as pl

HALF_PAIR = re.compile(  # one half of a surrogate pair, which no text holds
    rb"\\u[dD][89aAbB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89aAbB]..)\\u[dD][c-fC-F]"
)


def frame_of(data: bytes, like: pl.Schema | None) -> pl.DataFrame | None:
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
    whole = frame.height == _lines(data) and _names_once(data, frame)
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
        given = frame.height
        if column.null_count():
            given = data.count(b'"%s":' % column.name.encode())
            if given > column.count() + _nulls(data, column.name):  # a record names it twice
                return False
        keys += given
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


def _names_once(data: bytes, frame: pl.DataFrame) -> bool:
    """Tell whether certainly no record or entry of a list names a field twice.

    Polars and Python take different ones then.
    """
    places: Counter[str] = Counter()
    for column in frame.iter_columns():
        places[column.name] += column.count()
        inner = getattr(column.dtype, "inner", column.dtype)
        if isinstance(inner, pl.Struct):
            entries = column if inner == column.dtype else column.explode()
            places.update({each.name: each.count() for each in entries.struct.unnest()})
    return all(
        data.count(b'"%s"' % name.encode()) <= most + _nulls(data, name)
        for name, most in places.items()
    )


def _nulls(data: bytes, name: str) -> int:
    return sum(data.count(b'"%s":%snull' % (name.encode(), blank)) for blank in (b"", b" "))
