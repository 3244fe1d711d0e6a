"""One line of a TREC file: which columns it has, and what is wrong with it if it has others.

A run has lines `query Q0 doc rank score tag`, judgements `query iteration doc grade`. What a line
means is decided by itself, whatever stands around it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from karat.errors import InputError
from karat.read.source import not_utf8

if TYPE_CHECKING:
    from karat.read.source import Block

RUN = ("query", "q0", "doc", "rank", "score", "tag")
UNTAGGED = RUN[:-1]
QRELS = ("query", "iteration", "doc", "grade")
SHOWN = {
    RUN: "query Q0 doc rank score tag",
    UNTAGGED: "query Q0 doc rank score",
    QRELS: "query iteration doc grade",
}
IDS, NUMBERS = ("query", "doc"), ("score", "grade")
BLANKS = " \t\r\v\f"  # what trec_eval separates columns by
RANK = re.compile("[0-9]+")
SPLIT = re.compile(f"[{BLANKS}]+")
EXCERPT = 40  # characters of a line that are shown


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

    Any whitespace separates them, as in trec_eval. If that gives too many, tabs alone may do, so
    that an id may hold a blank; and behind the tag of a run there may stand anything.

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
    if names is RUN and _has_more(words):
        return Columns(words[: len(RUN)], words[len(RUN)])
    return None


def _has_more(words: list[str]) -> bool:
    """Tell whether something stands behind the tag; a number for a tag is rather a shifted score.

    So it is where an id holds a blank: `q1 Q0 my doc 1 0.5 bm25`, `q1 Q0 doc 2 1 0.5 bm25`.
    """
    if len(words) <= len(RUN):
        return False
    rank, score, tag = words[3:6]
    return bool(RANK.fullmatch(rank)) and _is_number(score) and not _is_number(tag)


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
        raise InputError(
            f"found {count} columns where {len(names)} belong: {_short(raw)}",
            where=block.where(number),
            fix=_column_advice(count, names),
        )
    for name, cell in zip(names, found.cells, strict=True):
        if name in NUMBERS and not _is_number(cell):
            raise InputError(
                f"the {name} {cell[:EXCERPT]!r} is not a number",
                where=block.where(number),
                fix=f"give every line a number as its {name}",
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
        return f"each line is `{SHOWN[UNTAGGED]}` as the first one, or each has a tag behind it"
    other = QRELS if names is RUN else RUN
    if found == len(other):
        role = "judgements" if other is QRELS else "a run"
        return f"this line looks like {role}: are run and gold swapped?"
    if names is RUN and found == len(UNTAGGED):
        return f"each line is `{SHOWN[RUN]}`; only the tag may be missing, from every line"
    return f"each line is `{SHOWN[names]}`; ids hold no spaces, unless tabs separate all columns"


def _short(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")
