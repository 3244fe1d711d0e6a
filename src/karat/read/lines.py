"""Lines of TREC files in bulk, and one by one where that needs care.

What a line means is decided in `karat.read.line`, so that a file gives the same rows however it is
cut into blocks; what is parsed in bulk here must give the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.errors import InputError
from karat.findings import EXAMPLES, Finding
from karat.read.line import BLANKS, EXCERPT, IDS, NUMBERS, QRELS, RANK, RUN, SHOWN, SPLIT, read_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from karat.read.reading import Reading
    from karat.read.source import Block

COMMENTS = re.compile(rb"^[ \t]*#.*\n?", re.MULTILINE)
CRLF = ord("\r") | ord("\n") << 8  # as two neighbouring bytes
WHITESPACE = bytes.maketrans(b"\t\r\v\f", b"    ")


def parse_lines(block: Block, names: tuple[str, ...]) -> pl.DataFrame:
    """Parse lines of these columns; only where that fails, look line by line."""
    data = block.data
    if b"\0" in data:
        raise InputError(
            "the line holds a NUL byte, so this is no text file",
            where=block.where(data[: data.index(b"\0")].count(b"\n")),
            fix=f"give a text file of lines `{SHOWN[names]}`",
        )
    if b"#" in data:
        data = COMMENTS.sub(b"", data)
    separator = _separator(data)
    rows = None if separator is None else _read(data, names, separator)
    if rows is None:
        squeezed = _squeeze(data)
        rows = _read(squeezed, names, b" ")
        if rows is None:
            reading = block.source.reading
            tabs = b"\t" in data
            rows = (_read_cells if tabs else _read_more)(data if tabs else squeezed, names, reading)
    return _line_by_line(block, names) if rows is None else rows


def _separator(data: bytes) -> bytes | None:
    """Return the one separator of all lines, or None if they mix some."""
    odd = b"\v" in data or b"\f" in data
    if not odd and b"\r" in data:
        returns = np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\r"))
        odd = returns != sum(np.count_nonzero(pair == CRLF) for pair in _pairs(data))
    tabs, spaces = b"\t" in data, b" " in data
    if odd or tabs == spaces:
        return None
    return b"\t" if tabs else b" "


def _read(data: bytes, names: tuple[str, ...], separator: bytes) -> pl.DataFrame | None:
    """Parse with a single separator; None when a line does not have exactly these columns.

    The last column is read only to see that no line lacks it.
    """
    if not data:
        return pl.DataFrame(schema={name: _kind(name) for name in _wanted(names)})
    try:
        rows = (
            pl.scan_csv(
                data,
                has_header=False,
                separator=separator.decode(),
                quote_char=None,
                schema={name: _kind(name) for name in names},
            )
            .select(list(dict.fromkeys([*_wanted(names), names[-1]])))
            .collect()
        )
    except pl.exceptions.PolarsError:  # not a number
        return None
    missing = any(column.null_count() for column in rows)
    if missing or not _is_regular(data, separator, rows.height, len(names)):
        return None
    return rows.select(_wanted(names))


def _is_regular(data: bytes, separator: bytes, lines: int, columns: int) -> bool:
    """Tell whether every line has exactly these columns, given that none has too few.

    Looking at the bytes is cheaper than parsing the columns that nobody reads.
    """
    if np.count_nonzero(np.frombuffer(data, np.uint8) == separator[0]) != lines * (columns - 1):
        return False
    # no separator stands before another one, or before the end of the line, as it is in Windows
    wrong = [separator[0] | mark << 8 for mark in separator + (b"\r" if b"\r" in data else b"")]
    return not any((pair == code).any() for pair in _pairs(data) for code in wrong)


def _pairs(data: bytes) -> list[NDArray[np.uint16]]:
    """Return every two neighbouring bytes as a number, in two arrays."""
    return [np.frombuffer(data, "<u2", (len(data) - at) // 2, at) for at in (0, 1)]


def _read_cells(data: bytes, names: tuple[str, ...], reading: Reading) -> pl.DataFrame | None:
    """Parse what stands between tabs, blanks around it dropped; None if that is not all there."""
    cells = _texts(data, names, "\t")
    if cells is None or cells["rest"].count():
        return None
    cells = cells.drop("rest").with_columns(pl.all().str.strip_chars(BLANKS))
    rows = cells.with_columns(_as_number(name) for name in names if name in NUMBERS)
    if any(column.null_count() for column in rows) or any((each == "").any() for each in cells):
        return None
    query, doc = (pl.col(name).str.contains(f"[{BLANKS}]") for name in IDS)
    blank = cells.filter(query | doc).select(pl.when(query).then("query").otherwise("doc"))
    _note(reading, blank.to_series().to_list(), [])
    return rows.select(_wanted(names))


def _read_more(data: bytes, names: tuple[str, ...], reading: Reading) -> pl.DataFrame | None:
    """Parse lines of a run that have something behind the tag; None if there are others, too."""
    cells = None if names is not RUN else _texts(data, RUN, " ")
    if cells is None:
        return None
    rows = cells.with_columns(_as_number("score"))
    more = cells.filter(pl.col("rest").is_not_null())
    shifted = ~pl.col("rank").str.contains(f"^{RANK.pattern}$") | _as_number("tag").is_not_null()
    if any(rows[name].null_count() for name in RUN) or more.select(shifted.any()).item():
        return None
    _note(reading, [], more["rest"].str.extract("^([^ ]+)").to_list())
    return rows.select(_wanted(names))


def _texts(data: bytes, names: tuple[str, ...], separator: str) -> pl.DataFrame | None:
    """Return the columns as texts; those that a line lacks are null, further ones are the rest."""
    try:
        lines = pl.Series(data.decode().split("\n"))
    except UnicodeDecodeError:
        return None
    lines = lines.filter(lines.str.strip_chars(BLANKS) != "")
    return (
        lines.str.splitn(separator, len(names) + 1)
        .struct.rename_fields([*names, "rest"])
        .struct.unnest()
    )


def _as_number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64, strict=False)


def _kind(name: str) -> pl.DataType:
    return pl.Float64() if name in NUMBERS else pl.String()


def _wanted(names: tuple[str, ...]) -> list[str]:
    """Return the columns to keep: of a run, nobody reads Q0, the rank and the tag."""
    return list(names) if names is QRELS else ["query", "doc", "score"]


def _squeeze(data: bytes) -> bytes:
    """Make every stretch of whitespace one space and drop blank lines."""
    data = b"\n" + data.translate(WHITESPACE) + b"\n"
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n")
    while b"\n\n" in data:
        data = data.replace(b"\n\n", b"\n")
    return data[1:]


def _line_by_line(block: Block, names: tuple[str, ...]) -> pl.DataFrame:
    """Parse with care, and say what is wrong with the lines that cannot be read."""
    columns: dict[str, list[str | float]] = {name: [] for name in names}
    blank: list[str] = []
    behind: list[str] = []
    for number, raw in enumerate(block.data.split(b"\n")):
        try:
            found = read_line(raw, names, block, number)
        except InputError as error:
            block.source.reading.meet(error)
            continue
        if found is None:
            continue
        for name, cell in zip(names, found.cells, strict=True):
            columns[name].append(float(cell) if name in NUMBERS else cell)
        blank += [cell for cell in _ids(found.cells, names) if SPLIT.search(cell)][:1]
        if found.rest:
            behind.append(found.rest[:EXCERPT])
    _note(block.source.reading, blank, behind)
    schema = {name: _kind(name) for name in names}
    return pl.DataFrame(columns, schema=schema).select(_wanted(names))


def _ids(cells: list[str], names: tuple[str, ...]) -> Iterator[str]:
    return (cell for name, cell in zip(names, cells, strict=True) if name in IDS)


def _note(reading: Reading, blank: list[str], behind: list[str]) -> None:
    """Say which ids hold a blank and what stood behind tags, an entry a line each."""
    if blank:
        reading.note(
            Finding(
                "blank-in-id",
                len(blank),
                tuple(dict.fromkeys(blank))[:EXAMPLES],
                "line with a blank inside an id: read, because tabs separate its columns",
                "give ids without blanks; trec_eval and most other tools would split them",
            )
        )
    if behind:
        reading.note(
            Finding(
                "text-behind-tag",
                len(behind),
                tuple(dict.fromkeys(behind))[:EXAMPLES],
                "line with more than the six columns of a run: what stands behind is left out",
                "check that no id holds a blank; trec_eval leaves it out, too",
            )
        )
