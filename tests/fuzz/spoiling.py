"""Ways to spoil a file. Each is a function of the content and a seeded generator."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from typing import Any, TypeAlias

import polars as pl

Spoil: TypeAlias = Callable[[bytes, random.Random], bytes]

LONG = 70_000  # more than the bytes by which a format is recognised
DEEP = 60_000
CELLS = (
    *(b"", b" ", b'"', b"'", b'"x', b'x"y', b"#", b"# x", b"{", b"[", b"{x}", b"[]", b"{}", b","),
    *(b"nan", b"NaN", b"inf", b"-inf", b"1e308", b"-1e308", b"1e999", b"1e-400", b"-0", b"0x10"),
    *(b"1_000", b"0,5", b"1" * 400, b"007", b"None", b"null", b"true", b"yes", b"1.5", b"-1"),
    *(b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\x00", b"\x1b[31m", b"\x07", b"\x0b", b"\x0c"),
    *("é文".encode(), "\u2028".encode(), "\u202e".encode(), "١".encode(), "\u00a0".encode()),
    *(b"x" * LONG, b"a b", b"a\tb", b"a;b", b"a,b", b"../../etc/passwd", b"\\", b"\\ud800"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**400, 1e308, -1e308, float("nan"), float("inf")),
    *("", " ", "x", "\ud800", "a\udc00b", "\x00", "\x1b[31m", "nan", "1", "[", "{", "['a' 'b']"),
    *([], {}, [[]], [{}], [None], ["x", 1], {"": 1}, {"x": None}, [[["x"]]], {"\ud800": 1}),
    *("y" * LONG, "é文\u2028", 2**63, 2**64, [1.5], {"doc": None}, {"docs": [[]]}, [True]),
)


def _cut(data: bytes, rng: random.Random, most: int = 40) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randint(1, most))


def flip(data: bytes, rng: random.Random) -> bytes:
    """Change some bytes."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 3, 20))):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def behead(data: bytes, rng: random.Random) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def delete(data: bytes, rng: random.Random) -> bytes:
    start, end = _cut(data, rng)
    return data[:start] + data[end:]


def repeat(data: bytes, rng: random.Random) -> bytes:
    start, end = _cut(data, rng, 400)
    return data[:end] + data[start:end] * rng.choice((1, 1, 5)) + data[end:]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(CELLS) + data[at:]


def insert_noise(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 8, 200))) + data[at:]


def empty(data: bytes, rng: random.Random) -> bytes:
    del data
    return rng.choice((b"", b"\n", b" \n\t\n", b"\xef\xbb\xbf", b"\0", b"[]", b"{}", b"null"))


def only_comments(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")[: rng.choice((1, 3, 99))]
    return b"\n".join(b"# " + line for line in lines) + b"\n"


def only_first_line(data: bytes, rng: random.Random) -> bytes:
    return data.split(b"\n")[0] + rng.choice((b"", b"\n", b"\r\n", b"\n\n"))


def line_ends(data: bytes, rng: random.Random) -> bytes:
    ends = rng.choice(((b"\r\n",), (b"\r",), (b"\n", b"\r\n"), (b"\n", b"\r"), (b"\n", b"\n\n")))
    return b"".join(line + rng.choice(ends) for line in data.rstrip(b"\n").split(b"\n"))


def encode(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    name = rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp1252", "half"))
    if name == "half":
        return text.encode("utf-16")[:-1]
    return ("é" + text if name == "latin-1" else text).encode(name, "replace")


def zip_badly(data: bytes, rng: random.Random) -> bytes:
    packed = bytearray(gzip.compress(data, mtime=0))
    how = rng.choice(("whole", "cut", "flip", "tail"))
    if how == "cut":
        return bytes(packed[: rng.randrange(2, len(packed))])
    if how == "flip":
        packed[rng.randrange(2, len(packed))] ^= 1 << rng.randrange(8)
    return bytes(packed) + (b"tail" if how == "tail" else b"")


def _on_line(data: bytes, rng: random.Random, change: Callable[[bytes], bytes]) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(max(1, len(lines) - 1)) if rng.random() < 0.8 else 0
    lines[at] = change(lines[at])
    return b"\n".join(lines)


def lines_dropped(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def lines_repeated(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    return b"\n".join([*lines[: at + 1], *[lines[at]] * rng.choice((1, 50)), *lines[at + 1 :]])


def lines_shuffled(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def line_cut(data: bytes, rng: random.Random) -> bytes:
    return _on_line(data, rng, lambda line: line[: rng.randrange(len(line) + 1)])


def line_long(data: bytes, rng: random.Random) -> bytes:
    filler = rng.choice((b"x", b" ", b"\t", b"x ", b"#", b'"', b"{", b"[")) * LONG
    return _on_line(data, rng, lambda line: rng.choice((line + filler, filler + line)))


def line_quoted(data: bytes, rng: random.Random) -> bytes:
    """Open a quote that nothing closes."""

    def change(line: bytes) -> bytes:
        at = rng.choice([0, *(place + 1 for place, mark in enumerate(line) if mark in b",;\t")])
        return line[:at] + b'"' + line[at:]

    return _on_line(data, rng, change)


def _on_field(data: bytes, rng: random.Random, change: Callable[[list[bytes]], None]) -> bytes:
    def on(line: bytes) -> bytes:
        separator = max((b"\t", b",", b" ", b";"), key=line.count)
        fields = line.split(separator)
        change(fields)
        return separator.join(fields)

    return _on_line(data, rng, on)


def field_replaced(data: bytes, rng: random.Random) -> bytes:
    def change(fields: list[bytes]) -> None:
        fields[rng.randrange(len(fields))] = rng.choice(CELLS)

    return _on_field(data, rng, change)


def field_dropped(data: bytes, rng: random.Random) -> bytes:
    return _on_field(data, rng, lambda fields: fields.__delitem__(rng.randrange(len(fields))))


def field_repeated(data: bytes, rng: random.Random) -> bytes:
    return _on_field(data, rng, lambda fields: fields.append(rng.choice(fields)))


def fields_shuffled(data: bytes, rng: random.Random) -> bytes:
    return _on_field(data, rng, rng.shuffle)


def column_replaced(data: bytes, rng: random.Random) -> bytes:
    """Put the same strange value into a column of every line."""
    value, at = rng.choice(CELLS), rng.randrange(6)
    lines = []
    for line in data.split(b"\n"):
        separator = max((b"\t", b",", b" ", b";"), key=line.count)
        fields = line.split(separator)
        if len(fields) > at:
            fields[at] = value
        lines.append(separator.join(fields))
    return b"\n".join(lines)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = list(enumerate(value))[:20]
    return [path, *(place for key, each in inner for place in _places(each, (*path, key)))]


def change_value(value: Any, rng: random.Random) -> Any:
    """Replace, remove, rename or repeat something inside a JSON value."""
    path = rng.choice(_places(value))
    if not path:
        return rng.choice(VALUES)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    key, how = path[-1], rng.random()
    if how < 0.65:
        inner[key] = rng.choice(VALUES)
    elif how < 0.8:
        del inner[key]
    elif isinstance(inner, dict):
        inner[rng.choice(("x", "", "\ud800", f"{key}s", str(key).upper()))] = inner.pop(key)
    else:
        inner.append(inner[key])
    return value


def json_changed(data: bytes, rng: random.Random) -> bytes:
    """Change something in the value, or in a line of it."""
    try:
        return json.dumps(change_value(json.loads(data), rng)).encode()
    except ValueError:
        pass

    def change(line: bytes) -> bytes:
        try:
            return json.dumps(change_value(json.loads(line), rng)).encode()
        except ValueError:
            return line

    return _on_line(data, rng, change)


def json_deep(data: bytes, rng: random.Random) -> bytes:
    mark = rng.choice((b"[", b'{"a":'))
    return _on_line(data, rng, lambda line: line.replace(b"[", mark * DEEP + b"[", 1))


def json_key_repeated(data: bytes, rng: random.Random) -> bytes:
    return _on_line(data, rng, lambda line: line.replace(b"{", b'{"query": "again", "q1": {}, ', 1))


def _frame(data: bytes) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(data))


def _parquet(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


KINDS: tuple[Callable[[pl.Series], pl.Series], ...] = (
    lambda column: column.cast(pl.String, strict=False),
    lambda column: column.cast(pl.Binary, strict=False),
    lambda column: column.is_null(),
    lambda column: pl.int_range(len(column), eager=True, dtype=pl.Int64).cast(pl.Float32),
    lambda column: pl.repeat(None, len(column), eager=True),
    lambda column: pl.repeat(float("nan"), len(column), eager=True),
    lambda column: pl.repeat(float("inf"), len(column), eager=True),
    lambda column: pl.repeat(1e308, len(column), eager=True),
    lambda column: pl.Series([[each] for each in column], strict=False),
    lambda column: pl.Series([{"x": 1}] * len(column)),
    lambda column: pl.int_range(len(column), eager=True).cast(pl.Date),
    lambda column: pl.int_range(len(column), eager=True).cast(pl.Datetime("us", "UTC")),
    lambda column: pl.int_range(len(column), eager=True).cast(pl.Decimal(20, 2)),
    lambda column: pl.int_range(len(column), eager=True).cast(pl.String).cast(pl.Categorical),
    lambda column: pl.int_range(len(column), eager=True).cast(pl.Duration("us")),
    lambda column: pl.Series([""] * len(column)),
    lambda column: column.reverse(),
    lambda column: -pl.int_range(len(column), eager=True) - 5,
    lambda column: pl.repeat(2**62, len(column), eager=True),
    lambda column: pl.Series([[]] * len(column), dtype=pl.List(pl.Int64)),
)


def parquet_changed(data: bytes, rng: random.Random) -> bytes:
    """Write the table again with another type, without a column or without rows."""
    frame = _frame(data)
    name = rng.choice(frame.columns)
    how = rng.random()
    if how < 0.6:
        try:
            changed = rng.choice(KINDS)(frame[name])
        except pl.exceptions.PolarsError:
            changed = pl.repeat(None, frame.height, eager=True)
        return _parquet(frame.with_columns(changed.alias(name)))
    if how < 0.7:
        return _parquet(frame.drop(name))
    if how < 0.8:
        return _parquet(frame.rename({name: rng.choice(("x", "", f"{name}s"))}))
    if how < 0.9:
        gaps = pl.Series([rng.random() < 0.5 for _ in range(frame.height)])
        return _parquet(frame.with_columns(pl.when(gaps).then(pl.col(name)).alias(name)))
    return _parquet(rng.choice((frame.clear(), frame.head(1), pl.concat([frame, frame]))))


def parquet_torn(data: bytes, rng: random.Random) -> bytes:
    """Change bytes of the pages, of the footer or of its length."""
    out = bytearray(data)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    start, end = rng.choice(
        ((4, max(5, footer)), (max(4, footer), len(data)), (len(data) - 8, len(data)))
    )
    for _ in range(rng.choice((1, 1, 4))):
        out[rng.randrange(start, min(end, len(out)))] = rng.randrange(256)
    return bytes(out)


BYTES: tuple[Spoil, ...] = (flip, truncate, behead, delete, repeat, insert, insert_noise, empty)
LINES: tuple[Spoil, ...] = (
    *(only_comments, only_first_line, line_ends, encode, zip_badly, lines_dropped, lines_repeated),
    *(lines_shuffled, line_cut, line_long),
)
FIELDS: tuple[Spoil, ...] = (
    *(field_replaced, field_replaced, field_replaced, field_dropped, field_repeated),
    *(fields_shuffled, column_replaced),
)
JSON: tuple[Spoil, ...] = (*(json_changed,) * 6, json_deep, json_key_repeated)
PARQUET: tuple[Spoil, ...] = (*(parquet_changed,) * 6, parquet_torn, parquet_torn)
WAYS: dict[str, tuple[Spoil, ...]] = {
    "columns": (*BYTES, *LINES, *FIELDS),
    "table": (*BYTES, *LINES, *FIELDS, line_quoted, line_quoted),
    "lines": (*BYTES, *LINES, *JSON),
    "json": (*BYTES, *LINES, *JSON),
    "parquet": (*BYTES, *PARQUET),
    "zipped": BYTES,
    "text": (*BYTES, *LINES),
}


def spoil(data: bytes, kind: str, rng: random.Random) -> tuple[str, bytes]:
    """Spoil a file of a kind; return what was done, and the content."""
    way = rng.choice(WAYS[kind])
    return way.__name__, way(data, rng)
