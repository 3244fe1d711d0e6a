"""Which chunks of a list say nearly the same as one above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from findwell.core.texts.words import words

if TYPE_CHECKING:
    import polars as pl

    from findwell.core.data import Floats, Ints

SHINGLE = 3  # words that are compared together
ALIKE_SHARE = 0.8  # the share of them that near-duplicates have in common


def copies(query: Ints, text: pl.Series) -> Floats:
    """Mark with 1 the chunks whose words nearly repeat those of a chunk above, else 0.

    Two texts are near-duplicates where the sets of their sequences of three words have a Jaccard
    index of at least .8. Rows stand by query and rank. A blank text repeats nothing.

    >>> import polars as pl
    >>> texts = pl.Series(["Press the red button twice.", "Call us.", "press the RED button twice"])
    >>> copies(np.array([0, 0, 0]), texts).tolist()
    [0.0, 0.0, 1.0]
    """
    found = np.zeros(len(text))
    above: list[frozenset[tuple[str, ...]]] = []
    last = -1
    for at, (number, tokens) in enumerate(zip(query.tolist(), words(text, "plain"), strict=True)):
        if number != last:
            above, last = [], number
        mine = _shingles(tokens.to_list())
        found[at] = any(_alike(mine, other) for other in above)
        above.append(mine)  # also a copy: the next chunk may be like it, and unlike the first
    return found


def _shingles(tokens: list[str]) -> frozenset[tuple[str, ...]]:
    short = [tuple(tokens)] if tokens else []
    return frozenset(
        zip(*(tokens[first:] for first in range(SHINGLE)), strict=False)
        if len(tokens) >= SHINGLE
        else short
    )


def _alike(mine: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    small, large = sorted((len(mine), len(other)))
    if small < ALIKE_SHARE * large:  # then the Jaccard index is below, too
        return False
    shared = len(mine & other)
    return shared >= ALIKE_SHARE * (len(mine) + len(other) - shared) > 0
