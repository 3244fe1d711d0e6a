"""Why ids of a run and a gold may not meet, and what makes them equal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from karat.normalisers import normaliser

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


@dataclass(frozen=True, slots=True)
class Hint:
    """What may make ids differ, and how to undo it: by a normaliser of `--ids`, or otherwise.

    A normaliser makes one of several ids, so that any two might meet. Where this is its purpose,
    one side must have the ids `already`; where it is not, the ids of each side must stay `apart`.
    """

    why: str
    ids: str = ""
    undo: Callable[[pl.Series], pl.Series] | None = None
    only_if: Literal["already", "apart", ""] = ""

    def meet(self, ours: pl.Series, theirs: pl.Series) -> int:
        """Count the ids of one side, each given once, that would meet some of the other anew."""
        change = normaliser(self.ids) if self.undo is None else self.undo
        if change is None:
            return 0
        before = ours.is_in(theirs.implode())
        one, other = change(ours), change(theirs)
        if self.only_if == "apart" and (one.n_unique() < len(one) or other.n_unique() < len(other)):
            return 0
        new = one.is_in(other.implode()) & ~before
        if self.only_if == "already":
            new &= one.is_in(theirs.implode()) | (one == ours)
        return int(new.sum())


def _without_zeros(ids: pl.Series) -> pl.Series:
    return ids.str.replace(r"^(\D*)0+(\d)", "${1}${2}")


SAME = (  # what differs only in how it is written
    Hint("they differ in upper and lower case", "lower"),
    Hint(
        "they differ in how Unicode spells accents and the like: one side as one character (NFC), "
        "the other as a letter and a mark (NFD)",
        "nfc",
    ),
    Hint("one side has spaces around its ids", undo=lambda ids: ids.str.strip_chars()),
    Hint("one side pads its numbers with zeros", undo=_without_zeros),
    Hint("one side writes whole numbers as 1.0", undo=lambda ids: ids.str.replace(r"\.0+$", "")),
)
NUMBER = Hint("they differ in what stands before the number", r"regex:(\d+)\D*$", only_if="apart")
MARKS = ("::", "#", ":", "_", "/", "-", ".", "@", " ")
QUERIES = (*SAME, NUMBER)
DOCUMENTS = (
    *SAME,
    Hint("one side has a <urn:uuid:…> inside its ids", "uuid"),
    Hint("one side names files with their folders or endings", "stem", only_if="apart"),
    *(
        Hint("one side names chunks of documents", how, only_if="already")
        for how in (
            *(f"chunk-to-doc:{mark}" for mark in (*MARKS, "_chunk", "-chunk")),
            *(rf"regex:^(.+){re.escape(mark)}\d+$" for mark in MARKS),  # the document has the mark
        )
    ),
    NUMBER,
)


def hint(ours: pl.Series, theirs: pl.Series, known: tuple[Hint, ...]) -> tuple[Hint, int] | None:
    """Return the first reason that makes ids meet which did not, and how many.

    >>> import polars as pl
    >>> found = hint(pl.Series(["d2#3", "d3#2"]), pl.Series(["d2", "d3"]), DOCUMENTS)
    >>> found[0].ids, found[1]
    ('chunk-to-doc:#', 2)
    """
    ours, theirs = (ids.drop_nulls().unique(maintain_order=True) for ids in (ours, theirs))
    for each in known:
        count = each.meet(ours, theirs)
        if count:
            return each, count
    return None
