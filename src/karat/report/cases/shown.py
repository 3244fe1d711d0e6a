"""Texts of others as reports show them: nothing in them is obeyed, and none is endless."""

from __future__ import annotations

import re

from karat.report.layout import printable

_KEPT = re.compile(r"[\t\n]")
_ENDS = re.compile(r"\r\n?")
_LONE = re.compile("[\ud800-\udfff]")  # half of a letter, which no file can hold


def shown(text: str) -> str:
    r"""Return a text with control and direction marks written out; line breaks stay.

    >>> shown("a\u202eb\n\x1b[0m")
    'a\\u202eb\n\\x1b[0m'
    """
    whole = _LONE.sub("\ufffd", _ENDS.sub("\n", text))
    kept = _KEPT.findall(whole)
    parts = [printable(part) for part in _KEPT.split(whole)]
    return "".join(part + mark for part, mark in zip(parts, [*kept, ""], strict=True))


def excerpt(
    text: str, spans: list[tuple[int, int]], most: int
) -> tuple[str, list[tuple[int, int]], int]:
    """Return at most so many letters, about the first span, with the spans in it and its start.

    >>> excerpt("abcdefghij", [(7, 9)], 4)
    ('ghij', [(1, 3)], 6)
    >>> excerpt("abc", [], 4)
    ('abc', [], 0)
    """
    if len(text) <= most:
        return text, spans, 0
    start = 0
    if spans and spans[0][1] > most:
        start = max(0, min(spans[0][0] - most // 4, len(text) - most))
    inside = [
        (max(low - start, 0), min(high - start, most))
        for low, high in spans
        if high > start and low < start + most
    ]
    return text[start : start + most], inside, start


def in_utf16(text: str, spans: list[tuple[int, int]]) -> list[list[int]]:
    """Count places as browsers do: a letter beyond the first 65,536 is two.

    >>> in_utf16("😀ab", [(1, 2)])
    [[2, 3]]
    """
    if text.isascii():
        return [list(span) for span in spans]
    return [[len(text[:place].encode("utf-16-le")) // 2 for place in span] for span in spans]
