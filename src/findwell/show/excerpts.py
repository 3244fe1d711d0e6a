"""Where passages stand in a text: exactly, or the sentences most alike; and which part is shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from findwell.core.errors import FindwellError
from findwell.core.texts.sentences import split
from findwell.show.escape import multiline

if TYPE_CHECKING:
    from collections.abc import Iterable

SHORT_TEXT = 400  # letters of an id, a reason or a gold text
LONGEST_TEXT = 20_000  # letters of a text that are searched
WORDS = 400  # of a passage that is looked for
ALIKE_SHARE = 0.7  # share of a sentence's words that are in the passage as well
FEWEST_WORDS = 3  # words of a sentence that can be alike
_WORD = re.compile(r"\w+")


def shorten(text: str, most: int = SHORT_TEXT) -> str:
    """Return at most this many letters of a text, fit to be shown."""
    clean = multiline(text[: most + 1])
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def places(text: str, wanted: Iterable[str]) -> list[tuple[int, int]]:
    """Return where passages are in a text; otherwise the sentences with most words in common.

    >>> places("Hello. The pump  is blue. Bye.", ["the pump is blue"])
    [(7, 24)]
    >>> places("Hello there. Please replace the old pump soon.", ["Replace the old pump!"])
    [(20, 40)]
    """
    text = text[:LONGEST_TEXT]
    found: list[tuple[int, int]] = []
    for passage in wanted:
        exact = _exactly(text, passage)
        found += [exact] if exact else _alike(text, passage)
    return merged(found)


def sentences(text: str, parts: Iterable[str]) -> list[tuple[int, int]]:
    """Return where consecutive parts of a text are in it."""
    found, start = [], 0
    for part in parts:
        place = _exactly(text, part, start)
        if place is None:
            found.append((start, start))
            continue
        found.append(place)
        start = place[1]
    return found


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, those that touch as one, empty ones left out.

    >>> merged([(5, 9), (0, 6), (12, 12)])
    [(0, 9)]
    """
    joined: list[tuple[int, int]] = []
    for low, high in sorted(span for span in spans if span[1] > span[0]):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _exactly(text: str, passage: str, start: int = 0) -> tuple[int, int] | None:
    """Find a passage, whatever its case and however it is wrapped."""
    words = passage.split()
    if not words:
        return None
    if len(words) > WORDS:  # a pattern that long is slow: the plain way must do
        at = text.find(passage.strip(), start)
        return (at, at + len(passage.strip())) if at >= 0 else None
    pattern = r"\s+".join(map(re.escape, words))
    found = re.compile(pattern, re.IGNORECASE).search(text, start)
    bare = passage.strip().rstrip(".!?,;:")
    if found is None and len(words) >= FEWEST_WORDS and bare != passage.strip():
        return _exactly(text, bare, start)  # a text in the middle of a sentence lacks its end
    return found.span() if found else None


def _alike(text: str, passage: str) -> list[tuple[int, int]]:
    known = {word.casefold() for word in _WORD.findall(passage)}
    try:
        parts = split([text])[0]
    except FindwellError:  # no splitter is installed: lines have to do
        parts = [line for line in text.splitlines() if line.strip()]
    found = []
    for part, place in zip(parts, sentences(text, parts), strict=True):
        words = [word.casefold() for word in _WORD.findall(part)]
        shared = sum(word in known for word in words)
        if len(words) >= FEWEST_WORDS and shared >= ALIKE_SHARE * len(words):
            found.append(place)
    return found


def excerpt(
    text: str, spans: list[tuple[int, int]], most: int
) -> tuple[str, list[tuple[int, int]], int]:
    """Return at most this many letters, about the first span, with the spans in it and its start.

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
    part = text[start : start + most]
    return part, within(spans, start, len(part)), start


def within(spans: Iterable[tuple[int, int]], start: int, size: int) -> list[tuple[int, int]]:
    """Return spans of a text as places in a part of it, those that lie outside left out.

    >>> within([(0, 3), (7, 12)], 6, 4)
    [(1, 4)]
    """
    return [
        (max(low - start, 0), min(high - start, size))
        for low, high in spans
        if high > start and low < start + size
    ]


def in_utf16(text: str, spans: list[tuple[int, int]]) -> list[list[int]]:
    """Count places as browsers do: a letter beyond the first 65,536 is two.

    >>> in_utf16("😀ab", [(1, 2)])
    [[2, 3]]
    """
    if text.isascii():
        return [list(span) for span in spans]
    return [[len(text[:place].encode("utf-16-le")) // 2 for place in span] for span in spans]
