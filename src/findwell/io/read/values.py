"""Single values: ids, grades, JSON objects in which a name is repeated, lists written as text.

And the columns that describe queries, which may hold values of any kind.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import json
import math
import re
import tokenize
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError, nearest
from findwell.core.findings import shorten
from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# grades as people write them: numbers, or words whose meaning is clear
YES = ("yes", "y", "true", "t", "relevant")
NO = ("no", "n", "false", "f", "not relevant", "non relevant", "nonrelevant", "irrelevant")
WORDS = dict.fromkeys(YES, 1.0) | dict.fromkeys(NO, 0.0)
UNDERSTOOD = "numbers, or yes and no, true and false, relevant and not relevant"
NUMBER = re.compile(r"[-+]?\d+(\.\d*)?")
GRADE_FIX = f"give grades as {UNDERSTOOD}; 0 is not relevant, 1 or more is"
NEWLINE = b"\n"
HALF_PAIR = re.compile(  # one half of a surrogate pair, which no text holds
    rb"\\u[dD][89aAbB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89aAbB]..)\\u[dD][c-fC-F]"
)
NEIGHBOURS = re.compile(r"""['"]\s+['"]""")
LIST_FIX = """write a list such as ["d1", "d2"] or ['d1', 'd2'], or nothing"""


def no_column(
    what: str, name: str, spellings: Iterable[str], columns: Iterable[str], *, where: str = ""
) -> InputError:
    """Return the error for a column that is missing, with the names that are understood."""
    given, understood = list(columns), list(spellings)
    shown = ", ".join(repr(shorten(str(each))) for each in given[:12])
    close = next(filter(None, (nearest(str(each), understood) for each in given)), "")
    also = ", ".join(word for word in understood if word != name)
    return InputError(
        f"no {shorten(what)}; found {shown or 'nothing'}",
        where=where,
        fix=f"name it {name!r} (also understood: {also})" + (f"; {close}" if close else ""),
    )


def identifier(value: object, where: str = "") -> str:
    """Return an id as text; whole numbers are accepted, anything else is not an id."""
    if isinstance(value, str) and value.strip():
        return whole_letters(value, where)
    if isinstance(value, int) and not isinstance(value, bool):
        return digits(value)
    if hasattr(value, "item"):  # a NumPy scalar
        return identifier(value.item(), where)
    raise InputError(
        f"{str(value)[:40]!r} is not an id", where=where, fix="ids are texts or whole numbers"
    )


def whole_letters(text: str, where: str = "") -> str:
    """Return a text, unless it holds half a surrogate pair, which no file and no column can hold.

    >>> whole_letters("caf\u00e9")
    'café'
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            around = text[max(0, error.start - 20) : error.start + 20]
            what = f"{around!r} holds half of a character (a lone surrogate)"
            fix = "write the text again: something cut a character in two"
            raise InputError(what, where=where, fix=fix) from None
    return text


def text_id(text: str) -> str:
    """Return the id of something that is known by its text only.

    >>> text_id("It lasts.")
    'text-e513e9e63c9a9f3f'
    """
    return "text-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def digits(value: int) -> str:
    """Return a whole number as text, whatever its length."""
    try:
        return str(value)
    except ValueError:  # Python refuses thousands of digits, which take long
        return f"0x{value:x}"


def grade(value: object) -> float:
    """Return a grade as a number.

    >>> grade(2), grade("2"), grade(True), grade("Not_Relevant")
    (2.0, 2.0, 1.0, 0.0)
    """
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
        shown = digits(value) if isinstance(value, int) else str(value)
        raise InputError(f"the grade {shown[:40]!r} is not a finite number", fix=GRADE_FIX)
    word = str(value).strip().casefold().replace("_", " ").replace("-", " ")
    if isinstance(value, str) and word in WORDS:
        return WORDS[word]
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        return grade(float(value))
    if hasattr(value, "item"):  # a NumPy scalar
        return grade(value.item())
    raise InputError(f"the grade {str(value)[:40]!r} is not a number", fix=GRADE_FIX)


def grades(column: pl.Series) -> pl.Series:
    """Return texts as grades; what is not a grade becomes null."""
    words = column.str.strip_chars().str.to_lowercase().str.replace_all("[_-]", " ")
    found = words.replace_strict(list(WORDS), list(WORDS.values()), default=None)
    return column.str.strip_chars().cast(pl.Float64, strict=False).fill_null(found)


class Repeated(dict[str, Any]):
    """An object of JSON in which some names occur more than once; the last of each counts."""

    names: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    given = [name for name, _ in pairs]
    repeated = Repeated(found)
    repeated.names = tuple(name for name in found if given.count(name) > 1)
    return repeated


DECODER = json.JSONDecoder(object_pairs_hook=_object)


def loads(data: bytes | str) -> Any:  # noqa: ANN401
    """Parse JSON as `json.loads` does, but remember names that occur twice.

    >>> repeated(loads('{"a": 1, "b": 2, "a": 3}'))
    ('a',)
    """
    if isinstance(data, bytes):
        data = data.decode(json.detect_encoding(data))
    return DECODER.decode(data.removeprefix("\ufeff"))


def parse_json(data: bytes, where: str = "", fix: str = "write it again") -> Any:  # noqa: ANN401
    """Parse JSON; what is wrong with it is an InputError with the place and the fix.

    Data with a `where` is a file, of which the line is named. Bytes that are not UTF-8 are left to
    the caller, who knows the file. Half a surrogate pair, which no text can hold, is refused.

    >>> parse_json(b'{"a": ', "run.json")
    Traceback (most recent call last):
    findwell.core.errors.InputError: run.json, line 1: not valid JSON: Expecting value (column 7)
      fix: write it again
    """
    try:
        value = loads(data)
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        if isinstance(error, json.JSONDecodeError):
            what, where = f"{error.msg} (column {error.colno})", _line(where, error.lineno)
        elif where:
            fix = "write it again"
        raise InputError(f"not valid JSON: {what}", where=where, fix=fix) from None
    if b"\\u" in data:
        half = HALF_PAIR.search(data)
        if half is not None or not where:
            line = data.count(NEWLINE, 0, half.start()) + 1 if half else 1
            whole_letters(json.dumps(value, ensure_ascii=False), _line(where, line))
    return value


def _line(where: str, number: int) -> str:
    return where and f"{where}, line {number}"


def repeated(value: object) -> tuple[str, ...]:
    """Return the names that occur twice in an object."""
    return value.names if isinstance(value, Repeated) else ()


def refuse_repeated(
    value: object, what: str, among: Collection[str] | None = None, *, where: str = ""
) -> None:
    """Raise if a name occurs twice in an object, of all names or of these; `what` names it."""
    for name in repeated(value):
        if among is None or name in among:
            raise InputError(
                f"{what} {name!r} occurs more than once in the same object",
                where=where,
                fix="keep one of them; most programs would silently take the last",
            )


def listed(value: object, field: str, *, strict: bool = False, separator: str = "") -> Any:  # noqa: ANN401
    """Return the list that is written in a text; anything else stays as it is.

    If `strict`, a text that is not a list is an error. With a `separator` it is cut there.

    >>> listed("['a', 'b']", "gold"), listed('["a"]', "gold"), listed(" ", "gold")
    (['a', 'b'], ['a'], [])
    >>> listed("['a' 'b']", "gold")
    Traceback (most recent call last):
    findwell.core.errors.InputError: the list in 'gold' has no commas: "['a' 'b']"
      fix: NumPy writes arrays like this; turn them into lists before saving (.tolist())
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text:
        return []
    if is_joined(value, separator):
        return value.split(separator)
    if text[0] not in "[(":
        if strict:
            raise _wrong(field, text)
        return value
    try:
        found = loads(text)
    except (ValueError, RecursionError):
        found = _python(text, field)
    if "\\" in text:
        whole_letters(json.dumps(found, ensure_ascii=False, default=str))
    return list(found) if isinstance(found, list | tuple) else [found]


def is_joined(value: object, separator: str) -> bool:
    """Tell whether texts were joined into this one, rather than written as a list.

    >>> is_joined("a|b", "|"), is_joined('["a|b"]', "|"), is_joined("[1] see|b", "|")
    (True, False, True)
    """
    if not separator or not isinstance(value, str) or not value.strip():
        return False
    if value.lstrip()[0] not in "[(":
        return True
    try:
        return not isinstance(listed(value, ""), list)
    except InputError:
        return True


def _python(text: str, field: str) -> object:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise _wrong(field, text) from None
    if NEIGHBOURS.search(text) and _has_neighbours(text):  # Python would silently join them
        what = f"the list in {field!r} has no commas: {text[:60]!r}"
        fix = "NumPy writes arrays like this; turn them into lists before saving (.tolist())"
        raise InputError(what, fix=fix)
    return found


def _has_neighbours(text: str) -> bool:
    """Tell whether two strings follow each other without a comma."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    before = 0
    for token in tokens:
        if token.type == before == tokenize.STRING:
            return True
        if token.type not in (tokenize.NL, tokenize.NEWLINE):
            before = token.type
    return False


def _wrong(field: str, text: str) -> InputError:
    return InputError(f"the text in {field!r} is not a list: {text[:60]!r}", fix=LIST_FIX)


def flat(value: Any) -> Any:  # noqa: ANN401
    """Return a list or an object as JSON; anything else stays."""
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    if isinstance(value, Mapping | list | tuple):
        value = json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, str):
        return whole_letters(value)
    return digits(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def describing(name: str, values: list[Any]) -> pl.Series:
    """Return a column about queries; values that do not go together become texts."""
    try:
        return _plain(pl.Series(name, values, strict=False))
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
        texts = [None if value is None else str(value) for value in values]
        return pl.Series(name, texts, dtype=pl.String)


def plain_columns(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table about queries whose values can all be shown, and sliced by."""
    return table.with_columns(_plain(column) for column in table.iter_columns())


def _plain(column: pl.Series) -> pl.Series:
    """Return a column of lists, objects, bytes or durations as texts; others stay."""
    kind = column.dtype
    if not (kind.is_nested() or kind in (pl.Binary, pl.Object) or kind == pl.Duration):
        return column
    write = functools.partial(json.dumps, ensure_ascii=False, default=str)
    texts = (
        value if value is None else write(value) if isinstance(value, list | dict) else str(value)
        for value in column.to_list()
    )
    return pl.Series(column.name, list(texts), dtype=pl.String)


def join_about(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Join the parts of the table of queries; a column of several types becomes text."""
    if not tables:
        return pl.DataFrame(schema={"query": pl.String})
    try:
        return pl.concat(tables, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        return pl.concat([table.cast(pl.String) for table in tables], how="diagonal")
