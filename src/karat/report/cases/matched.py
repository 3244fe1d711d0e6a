"""Which part of a text made it match: the places that reports highlight."""

from __future__ import annotations

import re
from collections.abc import Iterable

from karat.errors import KaratError
from karat.texts.sentences import split

LONGEST = 20_000  # letters of a text that are searched
WORDS = 400  # of a passage that is looked for
ALIKE = 0.7  # share of a sentence's words that stand in the passage as well
FEWEST = 3  # words of a sentence that can be alike
_WORD = re.compile(r"\w+")


def places(text: str, wanted: Iterable[str]) -> list[tuple[int, int]]:
    """Return where passages stand in a text; otherwise the sentences with most words in common.

    >>> places("Hello. The pump  is blue. Bye.", ["the pump is blue"])
    [(7, 24)]
    >>> places("Hello there. Please replace the old pump soon.", ["Replace the old pump!"])
    [(20, 40)]
    """
    text = text[:LONGEST]
    found: list[tuple[int, int]] = []
    for passage in wanted:
        exact = _exactly(text, passage)
        found += [exact] if exact else _alike(text, passage)
    return merged(found)


def sentences(text: str, parts: Iterable[str]) -> list[tuple[int, int]]:
    """Return where consecutive parts of a text stand in it."""
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
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    found = pattern.search(text, start) or _without_end(words, text, start)
    return found.span() if found else None


def _without_end(words: list[str], text: str, start: int) -> re.Match[str] | None:
    """Find it without the mark at its end, which a text in the middle of a sentence lacks."""
    last = words[-1].rstrip(".!?,;:")
    if last == words[-1] or len(words) < FEWEST:
        return None
    return re.compile(r"\s+".join(map(re.escape, [*words[:-1], last])), re.IGNORECASE).search(
        text, start
    )


def _alike(text: str, passage: str) -> list[tuple[int, int]]:
    known = {word.casefold() for word in _WORD.findall(passage)}
    try:
        parts = split([text])[0]
    except KaratError:  # no splitter is installed: lines have to do
        parts = [line for line in text.splitlines() if line.strip()]
    found = []
    for part, place in zip(parts, sentences(text, parts), strict=True):
        words = [word.casefold() for word in _WORD.findall(part)]
        shared = sum(word in known for word in words)
        if len(words) >= FEWEST and shared >= ALIKE * len(words):
            found.append(place)
    return found
