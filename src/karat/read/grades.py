"""Grades as people label: numbers, or words of which it is clear what they mean."""

from __future__ import annotations

import polars as pl

from karat.errors import InputError

YES = ("yes", "y", "true", "t", "relevant")
NO = ("no", "n", "false", "f", "not relevant", "non relevant", "nonrelevant", "irrelevant")
WORDS = dict.fromkeys(YES, 1.0) | dict.fromkeys(NO, 0.0)
UNDERSTOOD = "numbers, or yes and no, true and false, relevant and not relevant"


def grade(value: object) -> float:
    """Return a grade as a number.

    >>> grade(2), grade(True), grade("Not_Relevant")
    (2.0, 1.0, 0.0)
    """
    try:
        if isinstance(value, int | float):
            return float(value)
    except OverflowError:
        value = str(value)
    word = str(value).strip().casefold().replace("_", " ").replace("-", " ")
    if isinstance(value, str) and word in WORDS:
        return WORDS[word]
    raise InputError(
        f"the grade {str(value)[:40]!r} is not a number",
        fix=f"give grades as {UNDERSTOOD}; 0 is not relevant, 1 or more is",
    )


def grades(column: pl.Series) -> pl.Series:
    """Return texts as grades; what is none is null."""
    words = column.str.strip_chars().str.to_lowercase().str.replace_all("[_-]", " ")
    found = words.replace_strict(list(WORDS), list(WORDS.values()), default=None)
    return column.str.strip_chars().cast(pl.Float64, strict=False).fill_null(found)
