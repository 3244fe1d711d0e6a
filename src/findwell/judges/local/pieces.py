"""Chunks cut into pieces of about a sentence, and into windows that an embedding model can read.

This cutting is quick and rough: it needs no library, and all it decides is which part of a chunk
is looked at and quoted. What is counted as a statement is cut by `findwell.core.texts.sentences`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SHORTEST = 20  # characters of a piece, so that abbreviations and headings stay with what follows
# one set of characters first: a search for it is several times as quick as one for alternatives
END = re.compile(
    r"""[.!?\n。！？…](?:(?<=[.!?])["'”’)\]]*\s+|(?<=[。！？…])["'”’」』）]*|(?<=\n)\s*)"""
)
LONGEST = 600  # characters of a piece; text without any full stop is cut at spaces
READ = 1100  # characters that an embedding model reads at once, about 256 tokens of English
WINDOW = 900  # characters of a window of a longer chunk


def cut(chunk: str) -> list[str]:
    """Cut a chunk into pieces; a blank one has none.

    >>> cut("Dr. Lee came to Brasília. He stayed for a month. "), cut(" "), cut("No end")
    (['Dr. Lee came to Brasília.', 'He stayed for a month.'], [], ['No end'])
    """
    pieces: list[str] = []
    start = 0
    while start < len(chunk):
        found = END.search(chunk, start + SHORTEST)
        end = len(chunk) if found is None else found.end()
        if piece := chunk[start:end].strip():
            if len(piece) > LONGEST:
                pieces += _parts(piece)
            else:
                pieces.append(piece)
        start = end
    return pieces


def _parts(text: str) -> list[str]:
    parts = []
    while len(text) > LONGEST:
        end = text.rfind(" ", LONGEST // 2, LONGEST) + 1 or LONGEST
        parts.append(text[:end].strip())
        text = text[end:].strip()
    return [part for part in [*parts, text] if part]


def windows(chunk: str, pieces: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the texts that stand for a chunk before an embedding model, and their pieces.

    A chunk that the model can read at once is one text. A longer one is cut between pieces.

    >>> windows("One two. Three.", ["One two.", "Three."])
    [('One two. Three.', 0, 2)]
    """
    if len(chunk) <= READ:
        return [(chunk, 0, len(pieces))]
    found = []
    first, length = 0, 0
    for place, piece in enumerate(pieces):
        if length and length + len(piece) > WINDOW:
            found.append((" ".join(pieces[first:place]), first, place))
            first, length = place, 0
        length += len(piece) + 1
    return [*found, (" ".join(pieces[first:]), first, len(pieces))]
