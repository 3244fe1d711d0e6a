"""TREC runs: `query Q0 doc rank score tag`; and judgements: `query iteration doc grade`.

Any whitespace separates the columns, lines that begin with # are comments. The tag may be missing.
Runs are parsed in blocks, so that a file may be larger than memory.

What a line means depends on that line alone, so that a file gives the same rows however it is cut
into blocks. Blocks are parsed in bulk, with the same result; where that is not possible, they are
parsed line by line.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from findwell.core.columns import whole_queries
from findwell.core.data import Gold, Run, RunStream
from findwell.core.errors import InputError
from findwell.core.findings import finding_about, shorten
from findwell.core.frames import pl
from findwell.io.native import DeclinedError, each_piece, kernel
from findwell.io.read.format import Block, Format, Look, not_utf8, register_format
from findwell.io.read.packed import gold_of_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from findwell.io.read.format import ReadContext, Source


RUN = ("query", "Q0", "doc", "rank", "score", "tag")
UNTAGGED = RUN[:-1]
QRELS = ("query", "iteration", "doc", "grade")
IDS, NUMBERS = ("query", "doc"), ("score", "grade")
BLANKS = " \t\r\v\f"  # what trec_eval separates columns by
RANK = re.compile("[0-9]+")
SPLIT = re.compile(f"[{BLANKS}]+")
EXCERPT = 40  # characters of a line that are shown
COMMENTS = re.compile(rb"^[ \t]*#.*\n?", re.MULTILINE)
LOOK = 4096  # bytes that tell whether one separator stands between two columns
CRLF = ord("\r") | ord("\n") << 8  # as two neighbouring bytes
WHITESPACE = bytes.maketrans(b"\t\r\v\f", b"    ")


@register_format
class TrecRun(Format):
    """A run: `query Q0 doc rank score tag`."""

    name: ClassVar[str] = "trec"
    roles: ClassVar = frozenset({"run"})
    order: ClassVar[int] = 90

    def sniff(self, look: Look, role: str) -> bool:
        """Six columns; four look like judgements in the wrong place, which `run` explains."""
        del role
        return has_columns(look)

    def run(self, source: Source, name: str) -> RunStream:
        """Read the run in blocks."""
        lines = Look.at(source).lines
        names = layout_of(lines[0]) if lines else RUN

        return RunStream(name, TrecLines(source, names, kernel() is not None))


@dataclass(frozen=True, slots=True)
class TrecLines:
    """The lines of a run: called, it parses them in batches; compiled code reads them itself."""

    source: Source
    names: tuple[str, ...]
    compiled: bool  # whether compiled code is there to read them

    def __call__(self) -> Iterator[pl.DataFrame]:
        """Parse all lines, block by block."""
        self.source.reading.begin()
        yield from parse_blocks(self.source, self.names)

    def parse(self, data: memoryview, offset: int = 0) -> pl.DataFrame:
        """Parse some of the lines."""
        return parse_lines(Block(self.source, bytes(data), offset), self.names)


def has_columns(look: Look) -> bool:
    """Tell whether the first line has the columns of a run or of judgements."""
    if look.binary or not look.lines:
        return False
    first = look.lines[0].decode("utf-8", "replace")
    named = (columns_of(first, names) for names in (RUN, QRELS))
    return any(named) or layout_of(look.lines[0]) is UNTAGGED


def parse_blocks(source: Source, names: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """Parse a file block by block; one without lines is an error."""
    height = 0
    for block in source.blocks():
        rows = parse_lines(block, names)
        height += rows.height
        yield rows
    if not height:
        source.reading.check_rest(0)
        fix = "check what wrote the file"
        raise InputError("the file contains no lines", where=source.where, fix=fix)


def layout_of(line: bytes) -> tuple[str, ...]:
    """Return the columns of a run by its first line: the tag may be missing from all lines.

    >>> layout_of(b"q1 Q0 d1 1 0.5") == UNTAGGED, layout_of(b"q1 d1 1 0.5 7") == RUN
    (True, True)
    """
    words = SPLIT.split(line.decode("utf-8", "replace").strip(BLANKS))
    if len(words) == len(UNTAGGED) and words[1].upper() == "Q0" and _is_number(words[-1]):
        return UNTAGGED
    return RUN


class Columns(NamedTuple):
    """The columns of a line, and the first word behind them."""

    cells: list[str]
    rest: str = ""


def columns_of(line: str, names: tuple[str, ...]) -> Columns | None:
    """Return the columns of a line, or None if it has others.

    Any whitespace separates them, as in trec_eval. If that gives too many, tabs alone may separate
    them, so that an id may hold a blank; anything may follow the tag of a run.

    >>> columns_of("q1\\t0\\td1 \\t1", QRELS).cells
    ['q1', '0', 'd1', '1']
    >>> columns_of("q1\\t0\\ta b.pdf\\t1", QRELS).cells
    ['q1', '0', 'a b.pdf', '1']
    >>> columns_of("q1 Q0 d1 1 0.5 bm25 k1=2 b=1", RUN).rest
    'k1=2'
    """
    words = SPLIT.split(line.strip(BLANKS))
    if len(words) == len(names):
        return Columns(words)
    cells = [cell.strip(BLANKS) for cell in line.split("\t")]
    if len(cells) == len(names) and all(cells):
        numbers = (cell for name, cell in zip(names, cells, strict=True) if name in NUMBERS)
        if all(map(_is_number, numbers)):
            return Columns(cells)
    more = names is RUN and len(words) > len(RUN) and RANK.fullmatch(words[3])
    # a number as the tag is rather a shifted score, where an id holds a blank:
    # `q1 Q0 my doc 1 0.5 bm25`, `q1 Q0 doc 2 1 0.5 bm25`
    if more and _is_number(words[4]) and not _is_number(words[5]):
        return Columns(words[: len(RUN)], words[len(RUN)])
    return None


def read_line(raw: bytes, names: tuple[str, ...], block: Block, number: int) -> Columns | None:
    """Return the columns of a line that may be blank or a comment, which have none."""
    try:
        line = raw.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(error, block.where(number)) from None
    words = line.strip(BLANKS)
    if not words or words.startswith("#"):
        return None
    found = columns_of(line, names)
    if found is None:
        count = len(SPLIT.split(words))
        what = f"found {count} columns instead of {len(names)}: {shorten(words)!r}"
        raise InputError(what, where=block.where(number), fix=_column_advice(count, names))
    for name, cell in zip(names, found.cells, strict=True):
        if name in NUMBERS and not _is_number(cell):
            raise InputError(
                f"the {name} {cell[:EXCERPT]!r} is not a number",
                where=block.where(number),
                fix=f"give every line a number as its {name}",
            )
    if names is QRELS and not math.isfinite(float(found.cells[-1])):
        query, _, doc, grade = found.cells
        raise InputError(
            f"the grade {grade[:EXCERPT]!r} of document {doc!r} for query {query!r} is not a "
            "finite number",
            where=block.where(number),
            fix="give every judged document a number: 0 for not relevant, 1 or more for relevant",
        )
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text  # Python alone reads 1_000 or ١ as a number


def _column_advice(found: int, names: tuple[str, ...]) -> str:
    if names is UNTAGGED:
        return f"make each line `{' '.join(names)}` like the first one, or add a tag to each"
    other = QRELS if names is RUN else RUN
    if found == len(other):
        role = "judgements" if other is QRELS else "a run"
        return f"this line looks like {role}: are run and gold swapped?"
    if names is RUN and found == len(UNTAGGED):
        return f"make each line `{' '.join(RUN)}`; only the tag may be missing, and then from all"
    return f"make each line `{' '.join(names)}`; ids contain spaces only if tabs separate columns"


def parse_lines(block: Block, names: tuple[str, ...]) -> pl.DataFrame:
    """Parse lines of these columns; only where that fails, look line by line."""
    data = block.data
    if b"\0" in data:
        return _line_by_line(block, names)  # which raises, perhaps because of a line above
    if b"#" in data:
        data = COMMENTS.sub(b"", data)
    separator = _separator(data)
    if separator is not None and separator * 2 in data[:LOOK]:
        separator = None
    rows = None if separator is None else _read(data, names, separator)
    if rows is None:
        squeezed, reading = _squeeze(data), block.source.reading
        rows = _read(squeezed, names, b" ")
        if rows is None and b"\t" in data:
            rows = _read_cells(data, names, reading)
        elif rows is None:
            rows = _read_more(squeezed, names, reading)
    if rows is None or (names is QRELS and not rows["grade"].is_finite().all()):
        return _line_by_line(block, names)
    return rows


def _separator(data: bytes) -> bytes | None:
    """Return the one separator of all lines, or None if they mix some."""
    mixed = b"\v" in data or b"\f" in data
    if not mixed and b"\r" in data:
        returns = np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\r"))
        mixed = returns != sum(np.count_nonzero(pair == CRLF) for pair in _pairs(data))
    tabs, spaces = b"\t" in data, b" " in data
    if mixed or tabs == spaces:
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

    Looking at the bytes is cheaper than parsing the columns that are not needed.
    """
    if np.count_nonzero(np.frombuffer(data, np.uint8) == separator[0]) != lines * (columns - 1):
        return False
    # no separator is followed by another one, or by the end of the line, as it is in Windows
    wrong = [separator[0] | mark << 8 for mark in separator + (b"\r" if b"\r" in data else b"")]
    return not any((pair == code).any() for pair in _pairs(data) for code in wrong)


def _pairs(data: bytes) -> list[NDArray[np.uint16]]:
    """Return every two neighbouring bytes as a number, in two arrays."""
    return [np.frombuffer(data, "<u2", (len(data) - at) // 2, at) for at in (0, 1)]


def _read_cells(data: bytes, names: tuple[str, ...], reading: ReadContext) -> pl.DataFrame | None:
    """Parse the cells between tabs, without blanks around them; None if a cell is missing."""
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


def _read_more(data: bytes, names: tuple[str, ...], reading: ReadContext) -> pl.DataFrame | None:
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
    """Return the columns to keep: of a run, Q0, the rank and the tag are not needed."""
    return list(names) if names is QRELS else ["query", "doc", "score"]


def _squeeze(data: bytes) -> bytes:
    """Make every stretch of whitespace one space and drop blank lines."""
    if any(other in data for other in (b"\t", b"\r", b"\v", b"\f")):
        data = data.translate(WHITESPACE)
    marks = np.frombuffer(b"".join((b"\n", data, b"\n")), np.uint8)
    blank, end = marks == ord(" "), marks == ord("\n")
    # a blank goes if another blank or the end of the line follows, and so does an empty line
    extra = (blank[:-1] & (blank[1:] | end[1:])) | (end[:-1] & end[1:])
    marks = marks[~np.append(extra, False)]
    begin = np.flatnonzero(marks == ord("\n")) + 1
    if (marks[begin[:-1]] > ord(" ")).all() and len(begin) > 1:
        return bytes(marks[1:].data)
    # some lines begin with a blank, or hold nothing else
    data = marks.tobytes().replace(b"\n ", b"\n")
    while b"\n\n" in data:
        data = data.replace(b"\n\n", b"\n")
    return data[1:]


def _line_by_line(block: Block, names: tuple[str, ...]) -> pl.DataFrame:
    """Parse with care, and report what is wrong with lines that cannot be read."""
    columns: dict[str, list[str | float]] = {name: [] for name in names}
    blank: list[str] = []
    rest: list[str] = []
    for number, raw in enumerate(block.data.split(b"\n")):
        if b"\0" in raw:  # not to be skipped, as other lines may be
            what = "the line contains a NUL byte, so this is not a text file"
            fix = f"give a text file of lines `{' '.join(names)}`"
            raise InputError(what, where=block.where(number), fix=fix)
        try:
            found = read_line(raw, names, block, number)
        except InputError as error:
            block.source.reading.meet(error)
            continue
        if found is None:
            continue
        line = dict(zip(names, found.cells, strict=True))
        for name, cell in line.items():
            columns[name].append(float(cell) if name in NUMBERS else cell)
        blank += [line[name] for name in IDS if SPLIT.search(line[name])][:1]
        rest += [found.rest[:EXCERPT]] if found.rest else []
    _note(block.source.reading, blank, rest)
    schema = {name: _kind(name) for name in names}
    return pl.DataFrame(columns, schema=schema).select(_wanted(names))


def _note(reading: ReadContext, blank: list[str], rest: list[str]) -> None:
    """Report ids that contain a blank and texts after tags, one entry per line."""
    reading.note(
        *finding_about(
            "blank-in-id",
            blank,
            "# line|lines has|have a blank inside an id, accepted between tabs.",
            "give ids without blanks; trec_eval and most other tools would split them",
        ),
        *finding_about(
            "text-behind-tag",
            rest,
            "# line|lines has|have more than the six columns of a run; the rest is left out.",
            "check that no id contains a blank; trec_eval leaves the rest out, too",
        ),
    )


def as_trec(run: Run) -> str:
    """Write a run, in the order that it has; queries for which nothing was found have no line.

    Who reads it goes by the scores, so that equal ones are set apart by their last digit.

    >>> rows = pl.DataFrame({"query": ["q", "q"], "doc": ["a", "b"], "score": [0.5, 0.5]})
    >>> print(as_trec(Run("fused", rows)), end="")
    q Q0 a 1 0.5 fused
    q Q0 b 2 0.49999999999999994 fused
    """
    rows = run.rows.filter(pl.col("doc").is_not_null())
    for column in IDS:
        blank = rows.filter(pl.col(column).str.contains(r"\s|^$"))
        if blank.height:
            raise InputError(
                f"query {shorten(blank['query'][0])!r}: the {column} id "
                f"{shorten(blank[column][0])!r} is blank or has blanks in it, "
                "which TREC files cannot hold",
                fix="write records instead: -o FILE.jsonl",
            )
    query, score = rows["query"].rle_id().to_numpy(), rows["score"].to_numpy().copy()
    for row in range(1, len(score)):
        if query[row] == query[row - 1] and score[row] >= score[row - 1]:
            score[row] = np.nextafter(score[row - 1], -np.inf)
    rank = rows.select(pl.int_range(1, pl.len() + 1).over("query")).to_series()
    tag = re.sub(r"\s+", "-", run.name) or "run"
    columns = zip(rows["query"], rows["doc"], rank, score.tolist(), strict=True)
    return "".join(f"{q} Q0 {doc} {place} {value!r} {tag}\n" for q, doc, place, value in columns)


class _NotInPartsError(Exception):
    """It takes a look at all judgements."""


@register_format
class Qrels(Format):
    """Judgements: `query iteration doc grade`, each document an item of its own."""

    name: ClassVar[str] = "qrels"
    roles: ClassVar = frozenset({"gold"})
    order: ClassVar[int] = 91

    def sniff(self, look: Look, role: str) -> bool:
        """Four columns and no document judged twice; six look like a run in the wrong place."""
        del role
        return has_columns(look)

    def gold(self, source: Source) -> Gold:
        """Read the judgements; of subtopics, if a document is judged for several of them."""
        gold = read_gold(source) or _built_in_parts(source)
        if gold is not None:
            return gold
        source.reading.begin()
        rows = pl.concat(parse_blocks(source, QRELS))
        if rows["iteration"].n_unique() == 1:
            return Gold.build(rows.drop("iteration"))
        if rows.select("query", "doc").n_unique() < rows.height:
            if rows.select("query", "doc", "iteration").n_unique() == rows.height:
                return _gold_by_subtopic(rows)
            return Gold.build(rows.drop("iteration"))
        findings = finding_about(
            "iteration-column",
            rows["iteration"].unique(maintain_order=True),
            "# different values are in the second column of the judgements. It was read as the "
            "iteration, which has no meaning.",
            "if it names subtopics, use --read gold_format=subtopic-qrels",
        )
        return Gold.build(rows.drop("iteration"), findings=findings)


@register_format
class SubtopicQrels(Format):
    """Judgements of subtopics: `query subtopic doc grade`, each subtopic one group.

    It is never detected by the first lines: `qrels` looks at the whole file and decides.
    """

    name: ClassVar[str] = "subtopic-qrels"
    roles: ClassVar = frozenset({"gold"})
    order: ClassVar[int] = 92

    def gold(self, source: Source) -> Gold:
        """Read the judgements with the second column as the group."""
        return _gold_by_subtopic(pl.concat(parse_blocks(source, QRELS)))


def _built_in_parts(source: Source) -> Gold | None:
    """Build the gold of judgements part by part, so that memory holds little else.

    None: it takes a look at all rows, because the second column varies or a query comes back.
    """
    seen: set[str] = set()

    def build(rows: pl.DataFrame) -> Gold:
        seen.update(rows["iteration"].unique())
        if len(seen) > 1:
            raise _NotInPartsError
        return Gold.build(rows.drop("iteration"))

    try:
        gold = Gold.join(map(build, whole_queries(parse_blocks(source, QRELS))))
    except _NotInPartsError:
        return None
    return gold if gold.queries["query"].n_unique() == gold.queries.height else None


def by_subtopic(rows: pl.DataFrame) -> pl.DataFrame:
    """Make each group, a subtopic, an item; a document relevant to none is judged not relevant."""
    relevant = rows.filter(pl.col("grade") > 0)
    rejected = (
        rows.filter(pl.col("grade") <= 0)
        .join(relevant, on=["query", "doc"], how="anti")
        .unique(["query", "doc"], maintain_order=True)
        .with_columns(group=pl.lit(None, pl.String))
    )
    return pl.concat([relevant, rejected])


def _gold_by_subtopic(rows: pl.DataFrame) -> Gold:
    queries = rows.select("query").unique(maintain_order=True)
    return Gold.build(by_subtopic(rows.rename({"iteration": "group"})), queries=queries)


def read_gold(source: Source, field: str | None = None) -> Gold | None:
    """Read judgements by compiled code, of TREC or lines of JSON with lists in a field.

    None: it is not built, or they are not plain.
    """
    native, last_query = kernel(), None if field is None else len
    if native is None:
        return None
    pieces, iterations = [], set()
    with suppress(DeclinedError):
        read = each_piece(source.open(), lambda it: native.read_gold(it.data, field), last_query)
        for _, found in read:
            if found is None:
                return None
            pieces.append(found[0])
            iterations.add(found[1])
        if len(iterations) == 1:  # with several, they may name subtopics
            return gold_of_columns(pieces)
    return None
