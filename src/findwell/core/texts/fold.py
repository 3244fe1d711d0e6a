"""Folded text: the same letters for the same words, and where each of them comes from.

Folding takes away what two copies of a text often differ in: case, the kind of quotation marks and
dashes, the amount of white space, invisible characters, and how accents and ligatures are coded.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from findwell.core.data import Ints

    Codes: TypeAlias = NDArray[np.uint32]

_ALIKE = {"'": "‘’‚‛′`´ʼ", '"': "“”„‟″«»", "-": "‐‑‒–—―−", "": "\u0640"}  # the last: kashida
_LETTER = {other: letter for letter, others in _ALIKE.items() for other in others}


def codes_of(text: str) -> Codes:
    """Return the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def text_of(codes: Codes) -> str:
    """Return the text of code points."""
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


@functools.lru_cache(maxsize=4)
def fold_quote(text: str) -> tuple[Codes, int]:
    """Fold a quote without the white space around it; also say how many characters that took."""
    folded, origin = fold(codes_of(text), np.array([0, len(text)]))
    solid = np.flatnonzero(folded != ord(" "))
    if not len(solid):
        return folded[:0], 0
    return folded[solid[0] : solid[-1] + 1], int(origin[solid[0]])


def is_blank(text: str) -> bool:
    """Tell whether nothing in a text can be seen."""
    return all(_spell(letter) in ("", " ") for letter in text)


def fold(raw: Codes, first: Ints) -> tuple[Codes, Ints]:
    """Fold concatenated documents; `first` says where each of them begins.

    Returns the folded letters and for each of them the number of the character it comes from.

    >>> folded, origin = fold(codes_of("A  “ﬁt”"), np.array([0, 7]))
    >>> text_of(folded), origin.tolist()
    ('a "fit"', [0, 1, 3, 4, 4, 5, 6])
    """
    seen = np.zeros(int(raw.max(initial=0)) + 1, dtype=bool)
    seen[raw] = True
    letters = np.flatnonzero(seen)
    spelt = [_spell(chr(letter)) for letter in letters.tolist()]
    sizes = np.array([len(word) for word in spelt], dtype=np.int32)
    number = np.zeros(len(seen), dtype=np.int32)
    number[letters] = np.arange(len(letters))
    which = number[raw]
    size = sizes[which]
    origin = np.repeat(np.arange(len(raw), dtype=np.int32), size)
    shift = (np.cumsum(sizes) - sizes)[which] - (np.cumsum(size) - size)
    folded = codes_of("".join(spelt))[np.arange(len(origin)) + shift[origin]]
    blank = folded == ord(" ")
    drop = blank & np.roll(blank, 1)
    begins = np.searchsorted(origin, first[:-1])
    drop[begins[begins < len(drop)]] = False
    return folded[~drop], origin[~drop]


@functools.cache
def _spell(letter: str) -> str:
    """Return how a character is folded: NFKD, no case, plain marks, one kind of white space."""
    if letter in _LETTER or letter.isspace():
        return _LETTER.get(letter, " ")
    if unicodedata.category(letter) == "Cf":  # soft hyphens, joiners, marks of direction
        return ""
    plain = unicodedata.normalize("NFKD", letter).casefold()
    return "".join(_LETTER.get(each, each) for each in unicodedata.normalize("NFKD", plain))
