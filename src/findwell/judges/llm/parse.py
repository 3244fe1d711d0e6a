"""The JSON object in what a model wrote: found in prose and code fences, or a reason why not.

Tolerant of wrapping, strict about content. Accepted besides JSON are what can mean only one thing:
a comma before a closing bracket, strings in single quotes, Python's True, False and None, line
breaks inside strings. Not accepted: two different objects, a key given twice, numbers that are not
finite, an object that ends too early; and an object is never taken out of a broken one around it.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from findwell.judges.client.protocol import Json

THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
START = re.compile(r"""(\[\s*)?\{(?=\s*["'}])""")
TOKEN = re.compile(
    r"""[\s]+ | [{}\[\],:]"""
    r""" | "[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*' | [^\s{}\[\],:"']+""",
    re.DOTALL | re.VERBOSE,
)
QUOTED = re.compile(r"""\\(.)|(")""", re.DOTALL)
PYTHON = {"True": "true", "False": "false", "None": "null"}
NAMES = {list: "array", str: "string", bool: "boolean", type(None): "null"}


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a text holds no answer."""

    reason: str


class _NotJsonError(ValueError):
    """A text that looks like an object and is none."""


def extract_object(text: str) -> dict[str, Json] | Unreadable:
    """Return the one JSON object in a text.

    >>> extract_object('Sure! ```json\\n{"grade": 2,}\\n```')
    {'grade': 2}
    >>> extract_object('{"grade": 2, "quote": "the batt')
    Unreadable(reason='the object is cut off')
    """
    answer = THINKING.sub("", text, count=1).strip()
    try:
        value = DECODER.decode(answer)
    except (ValueError, RecursionError):
        try:
            return _wrapped(answer)
        except _NotJsonError as error:
            return Unreadable(str(error))
    if isinstance(value, dict):
        return value
    return Unreadable(f"a JSON {NAMES.get(type(value), 'number')}, not an object")


def _wrapped(text: str) -> dict[str, Json]:
    found: dict[str, Json] | None = None
    position = 0
    while start := START.search(text, position):
        if start[1]:
            raise _NotJsonError("a JSON array, not an object")
        strict, position = _rewrite(text, start.start())
        value = _load(strict)
        if found not in (None, value):
            raise _NotJsonError("several different JSON objects")
        found = value
    if found is None:
        raise _NotJsonError("no JSON object" if text else "an empty text")
    return found


def _rewrite(text: str, start: int) -> tuple[str, int]:
    """Return the object that starts here as strict JSON, and where it ends."""
    pieces: list[str] = []
    depth, position = 0, start
    while token := TOKEN.match(text, position):
        piece, position = token[0], token.end()
        if piece.isspace():
            continue
        if piece in "}]" and pieces[-1:] == [","] and pieces[-2] not in ("{", "[", ",", ":"):
            pieces.pop()
        pieces.append(_strict(piece))
        depth += (piece in "{[") - (piece in "}]")
        if not depth:
            return " ".join(pieces), position
    raise _NotJsonError("the object is cut off")


def _strict(piece: str) -> str:
    if piece[0] == "'":
        return f'"{QUOTED.sub(_requote, piece[1:-1])}"'
    return PYTHON.get(piece, piece)


def _requote(match: re.Match[str]) -> str:
    if match[1] == "'":
        return "'"
    return '\\"' if match[2] else match[0]


def _load(text: str) -> dict[str, Json]:
    try:
        value: dict[str, Json] = DECODER.decode(text)
    except _NotJsonError:
        raise
    except RecursionError:
        raise _NotJsonError("nested too deeply") from None
    except ValueError as error:
        raise _NotJsonError(f"not JSON: {error}") from None
    return value


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise _NotJsonError("a key is given twice")
    return value


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        _refuse(number)
    return value


def _refuse(name: str) -> NoReturn:
    raise _NotJsonError(f"{name} is not a number")


DECODER = json.JSONDecoder(
    strict=False,  # line breaks in strings mean themselves
    object_pairs_hook=_distinct,
    parse_float=_finite,
    parse_constant=_refuse,
)
