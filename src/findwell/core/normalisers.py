"""How ids are made comparable: each way has a name, which `--read ids` takes and hints give."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from findwell.core.errors import OptionError, unknown
from findwell.core.frames import pl

if TYPE_CHECKING:
    from collections.abc import Callable

Normaliser: TypeAlias = "str | Callable[[str], str]"

NORMALISERS = {
    "identity": "ids as they are",
    "uuid": "the first <urn:uuid:…> inside the id, other ids unchanged",
    "chunk-to-doc:SEP": "the id up to its last SEP (# by default)",
    "stem": "the file name without its folders and its ending: docs/guide.pdf becomes guide",
    "lower": "the id in lower case",
    "nfc": "the id in the Unicode form NFC, in which é is one character and not e and an accent",
    "regex:PATTERN": "the first group of the first match, other ids unchanged",
}
UUID = "(<urn:uuid:[^>]+>)"
STEM = r"([^/\\]+?)(?:\.[A-Za-z][A-Za-z0-9]{0,4})?$"  # .pdf and .mp3, but not the .5 of v1.5


def normaliser(how: Normaliser) -> Callable[[pl.Series], pl.Series] | None:
    """Return the function that normalises a column of ids, or None for identity.

    >>> normaliser("stem")(pl.Series(["docs/guide.pdf", "guide", "v1.5"])).to_list()
    ['guide', 'guide', 'v1.5']
    """
    if callable(how):
        return lambda ids: _map_distinct(ids, how)
    if how in PLAIN:
        return PLAIN[how]
    name, _, argument = how.partition(":")
    if name == "chunk-to-doc":
        separator = re.escape(argument or "#")
        return lambda ids: _extract(ids, f"(?s)^(.*){separator}")
    if name == "regex" and argument:
        _check_pattern(argument)
        return lambda ids: _extract(ids, argument)
    raise unknown("id normaliser", how, NORMALISERS)


def _extract(ids: pl.Series, pattern: str) -> pl.Series:
    return ids.str.extract(pattern, 1).fill_null(ids)


PLAIN: dict[str, Callable[[pl.Series], pl.Series] | None] = {
    "identity": None,
    "uuid": lambda ids: _extract(ids, UUID),
    "stem": lambda ids: _extract(ids, STEM),
    "lower": lambda ids: ids.str.to_lowercase(),
    "nfc": lambda ids: ids.str.normalize("NFC"),
}


def _map_distinct(ids: pl.Series, function: Callable[[str], str]) -> pl.Series:
    distinct = ids.unique(maintain_order=True)
    changed = pl.Series([str(function(value)) for value in distinct], dtype=pl.String)
    return ids.replace_strict(distinct, changed, return_dtype=pl.String)


def _check_pattern(pattern: str) -> None:
    try:
        groups = re.compile(pattern).groups
        pl.Series([""]).str.extract(pattern, 1)
    except (re.error, pl.exceptions.PolarsError) as error:
        first = str(error).splitlines()[0]
        raise OptionError(f"{pattern!r} is not a regular expression: {first}") from None
    if not groups:
        raise OptionError(
            f"the pattern {pattern!r} has no group",
            fix="put parentheses around the part of the id to keep",
        )
