"""Lists inside text: a cell of a table that holds JSON or a Python literal."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import Any

from karat.errors import InputError
from karat.read.objects import loads

_NEIGHBOURS = re.compile(r"""['"]\s+['"]""")
_FIX = """write a list such as ["d1", "d2"] or ['d1', 'd2'], or nothing"""


def listed(value: object, field: str, *, strict: bool = False) -> Any:  # noqa: ANN401
    """Return the list that a text spells; what is no text stays as it is.

    A text that spells no list also stays as it is, but if `strict` it is an error.

    >>> listed("['a', 'b']", "gold"), listed('["a"]', "gold"), listed(" ", "gold")
    (['a', 'b'], ['a'], [])
    >>> listed("['a' 'b']", "gold")
    Traceback (most recent call last):
    karat.errors.InputError: the list in 'gold' has no commas: "['a' 'b']"
      fix: NumPy writes arrays so; turn them into lists before saving (.tolist())
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text:
        return []
    if text[0] not in "[(":
        if strict:
            raise _wrong(field, text)
        return value
    try:
        found = loads(text)
    except (ValueError, RecursionError):
        found = _python(text, field)
    return list(found) if isinstance(found, list | tuple) else [found]


def _python(text: str, field: str) -> object:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise _wrong(field, text) from None
    if _NEIGHBOURS.search(text) and _has_neighbours(text):  # Python would join them in silence
        raise InputError(
            f"the list in {field!r} has no commas: {text[:60]!r}",
            fix="NumPy writes arrays so; turn them into lists before saving (.tolist())",
        )
    return found


def _has_neighbours(text: str) -> bool:
    """Tell whether two strings stand side by side without a comma."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    before = 0
    for token in tokens:
        if token.type == before == tokenize.STRING:
            return True
        if token.type not in (tokenize.NL, tokenize.NEWLINE):
            before = token.type
    return False


def _wrong(field: str, text: str) -> InputError:
    return InputError(f"the text in {field!r} is not a list: {text[:60]!r}", fix=_FIX)
