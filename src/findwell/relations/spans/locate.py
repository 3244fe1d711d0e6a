"""Where a quote is in the documents.

First the exact characters are looked for, then the same text with other white space, case,
quotation marks and dashes, then the most similar stretch of text. Every place counts: a quote with
several places is ambiguous, and one without any is lost.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from findwell.core.errors import OptionError
from findwell.core.texts.fold import is_blank
from findwell.relations.spans.index import COUNTED, Documents, Place, Quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SCHEMA = {"quote": pl.Int64, "doc": pl.String, "start": pl.Int64, "end": pl.Int64}
SCHEMA |= {"score": pl.Float64, "status": pl.String, "places": pl.Int64}
LISTED = 100  # places of an ambiguous quote that are listed
BLOCK = 8 << 20  # characters that are indexed at once
TIE = 0.01  # scores that differ by less say nothing


def locate(
    quotes: Iterable[str],
    docs: Iterable[str | None] | None,
    corpus: pl.DataFrame,
    *,
    min_score: float = 0.85,
) -> pl.DataFrame:
    """Find each quote in the document that it names, or in all where it names none.

    `corpus` has the columns doc and text. The result has a row for each place: the number of the
    quote, doc, start and end (in characters, the end not part of it), the score (1 unless the
    status is `fuzzy`), the status `exact`, `normalised`, `fuzzy`, `ambiguous` or `lost`, and the
    number of places (1000 stands for more, too). An ambiguous quote has a row for each of its first
    hundred places; a lost one has one row without a place. A fuzzy place has a score of at least
    `min_score`, and no other place is better by a hundredth.

    >>> corpus = pl.DataFrame({"doc": ["d"], "text": ["“One”  fox.\\nOne cat, one cat."]})
    >>> found = locate(['"one" fox', "One", "One cat", "dog"], None, corpus)
    >>> for row in found.select("quote", "start", "end", "status").rows():
    ...     print(row)
    (0, 0, 10, 'normalised')
    (1, 1, 4, 'ambiguous')
    (1, 12, 15, 'ambiguous')
    (2, 12, 19, 'exact')
    (3, None, None, 'lost')
    """
    if not 0 < min_score <= 1:
        raise OptionError(f"the minimum score {min_score} is not in (0, 1]", fix="try 0.85")
    listed = list(quotes)
    given = list(map(Quote, listed, [None] * len(listed) if docs is None else docs))
    texts = dict(corpus.select("doc", "text").iter_rows())
    found = {quote: ("exact", _occurrences(quote, texts)) for quote in dict.fromkeys(given)}
    found |= _search([quote for quote in found if not found[quote][1]], texts, min_score)
    rows = [row for number, quote in enumerate(given) for row in _rows(number, *found[quote])]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _rows(number: int, status: str, places: list[Place]) -> Iterator[tuple[object, ...]]:
    if not places:
        yield number, None, None, None, None, "lost", 0
    for place in places[:LISTED]:
        yield number, *place, "ambiguous" if len(places) > 1 else status, len(places)


def _occurrences(quote: Quote, texts: dict[str, str]) -> list[Place]:
    """Return every place of the exact characters in the document that a quote names."""
    places: list[Place] = []
    if quote.doc is None or is_blank(quote.text):
        return places
    text = texts.get(quote.doc) or ""
    at = text.find(quote.text)
    while at >= 0 and len(places) < COUNTED:
        places.append(Place(quote.doc, at, at + len(quote.text)))
        at = text.find(quote.text, at + 1)
    return places


def _search(
    wanted: list[Quote], texts: dict[str, str], min_score: float
) -> dict[Quote, tuple[str, list[Place]]]:
    """Look for quotes in all documents that may hold them, some documents at a time."""
    scope = {quote.doc for quote in wanted}
    docs = [doc for doc, text in texts.items() if text and (None in scope or doc in scope)]
    part = np.cumsum([len(texts[doc]) for doc in docs], dtype=np.int64) // BLOCK
    parts = [[docs[at] for at in np.flatnonzero(part == n)] for n in np.unique(part)]
    block = functools.lru_cache(maxsize=1)(
        lambda n: Documents({doc: texts[doc] for doc in parts[n]})
    )
    exact: dict[Quote, list[Place]] = {quote: [] for quote in wanted}
    equal: dict[Quote, list[Place]] = {quote: [] for quote in wanted}
    similar: dict[Quote, list[Place]] = {quote: [] for quote in wanted}
    for n in range(len(parts)):
        for quote in block(n).concern(wanted):
            for found, places in zip((exact, equal), block(n).equal(quote), strict=True):
                found[quote] += places
    rest = [quote for quote in wanted if not equal[quote]]
    for n in range(len(parts)):
        for quote in block(n).concern(rest):
            similar[quote] += block(n).similar(quote, min_score)
    best = {quote: ("fuzzy", _best(similar[quote])) for quote in rest}
    best |= {quote: ("normalised", places) for quote, places in equal.items() if places}
    return best | {quote: ("exact", places) for quote, places in exact.items() if places}


def _best(places: list[Place]) -> list[Place]:
    """Return the places that are as good as the best, of those that overlap the better."""
    kept: list[Place] = []
    for place in sorted(places, key=lambda place: -place.score):
        if kept and place.score < kept[0].score - TIE:
            break
        if all(p.doc != place.doc or place.end <= p.start or p.end <= place.start for p in kept):
            kept.append(place)
    return sorted(kept)


def place_of(quote: str, text: str) -> tuple[int, int] | None:
    """Return the first place of a quote in one text, in characters; None if it is not there.

    >>> place_of("red  Button", "Press the red button."), place_of("blue", "Press the red button.")
    ((10, 20), None)
    """
    if is_blank(quote):
        return None
    found = locate([quote], None, pl.DataFrame({"doc": ["text"], "text": [text]}))
    start, end = found.select("start", "end").row(0)
    return None if start is None else (start, end)
