"""Where a quote is in the documents.

First the exact characters are looked for, then the same text with other white space, case,
quotation marks and dashes, then the most similar stretch of text. Every place counts: a quote with
several places is ambiguous, and one without any is lost.

Similar stretches are found by the rarest four-letter pieces that they share with the quote. Where
many of them are in the same order, the edges are fitted by edit distance (Myers 1999: a column of
the table of distances is a row of bits), and the score is rapidfuzz's ratio of the text between the
edges.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from findwell.core.errors import OptionError, needs_package
from findwell.core.frames import pl
from findwell.core.texts.fold import codes_of, fold, fold_quote, is_blank, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from findwell.core.data import Ints
    from findwell.core.texts.fold import Codes

PLACE_COLUMNS: dict[str, type[pl.DataType]] = {
    "doc": pl.String, "start": pl.Int64, "end": pl.Int64, "score": pl.Float64,
    "status": pl.String, "places": pl.Int64,
}  # fmt: skip
LISTED_PLACES = 100  # of an ambiguous quote
COUNTED_PLACES = 1000  # of a quote; more are not needed to call it ambiguous
BLOCK_SIZE = 8 << 20  # characters that are indexed at once
SCORE_TIE = 0.01  # scores that differ by less say nothing
PIECE = 4  # letters of a piece
VOTERS, VOTES = 64, 1 << 17  # pieces of a quote that are looked up, and places where they stand
TRIED_STRETCHES = 8  # that are compared with a quote
EDGE = 512  # letters at either end of a quote by which its edges are fitted
LONG_QUOTE = 1 << 16  # letters from which on a quote is compared only once


class Place(NamedTuple):
    """A stretch of a document and how similar it is to the quote."""

    doc: str
    start: int
    end: int
    score: float = 1.0


class Quote(NamedTuple):
    """What to look for, and in which document if that is known."""

    text: str
    doc: str | None


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
    rows: list[tuple[object, ...]] = []
    for number, quote in enumerate(given):
        status, places = found[quote]
        if not places:
            rows.append((number, None, None, None, None, "lost", 0))
        status = "ambiguous" if len(places) > 1 else status
        rows += ((number, *place, status, len(places)) for place in places[:LISTED_PLACES])
    return pl.DataFrame(rows, schema={"quote": pl.Int64, **PLACE_COLUMNS}, orient="row")


def _occurrences(quote: Quote, texts: dict[str, str]) -> list[Place]:
    """Return every place of the exact characters in the document that a quote names."""
    places: list[Place] = []
    if quote.doc is None or is_blank(quote.text):
        return places
    text = texts.get(quote.doc) or ""
    at = text.find(quote.text)
    while at >= 0 and len(places) < COUNTED_PLACES:
        places.append(Place(quote.doc, at, at + len(quote.text)))
        at = text.find(quote.text, at + 1)
    return places


def _search(
    wanted: list[Quote], texts: dict[str, str], min_score: float
) -> dict[Quote, tuple[str, list[Place]]]:
    """Look for quotes in all documents that may hold them, some documents at a time."""
    scope = {quote.doc for quote in wanted}
    docs = [doc for doc, text in texts.items() if text and (None in scope or doc in scope)]
    part = np.cumsum([len(texts[doc]) for doc in docs], dtype=np.int64) // BLOCK_SIZE
    parts = [[docs[at] for at in np.flatnonzero(part == n)] for n in np.unique(part)]
    block = functools.lru_cache(maxsize=1)(
        lambda n: Documents({doc: texts[doc] for doc in parts[n]})
    )
    exact: dict[Quote, list[Place]] = {quote: [] for quote in wanted}
    equal: dict[Quote, list[Place]] = {quote: [] for quote in wanted}
    similar: dict[Quote, list[Place]] = {quote: [] for quote in wanted}
    for n in range(len(parts)):
        for quote in block(n).concern(wanted):
            same, folded = block(n).equal(quote)
            exact[quote] += same
            equal[quote] += folded
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
        if kept and place.score < kept[0].score - SCORE_TIE:
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


class Documents:
    """Some documents one after the other, as they are and folded, with an index of pieces."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.docs = list(texts)
        self.number = {doc: at for at, doc in enumerate(self.docs)}
        self.raw = codes_of("".join(texts.values()))
        self.raw_first = np.cumsum([0, *map(len, texts.values())])  # where each document begins
        self.folded, self.origin = fold(self.raw, self.raw_first)
        self.first = np.searchsorted(self.origin, self.raw_first)
        pieces = _pieces(self.folded)
        self._order = np.argsort(pieces, kind="stable")
        self._begin = np.concatenate(([0], np.cumsum(np.bincount(pieces, minlength=1 << 16))))

    def concern(self, quotes: list[Quote]) -> list[Quote]:
        """Return the quotes that these documents may hold."""
        return [quote for quote in quotes if quote.doc is None or quote.doc in self.number]

    def equal(self, quote: Quote) -> tuple[list[Place], list[Place]]:
        """Return every place of the exact characters, and every place of the folded ones."""
        sought, lead = fold_quote(quote.text)
        size, raw = len(sought), codes_of(quote.text)
        if not size:
            return [], []
        if size < PIECE:
            at = np.flatnonzero(self.folded == sought[0])
        else:  # it may begin where its rarest piece says
            pieces = _pieces(sought).astype(np.int64)
            rarest = int(np.argmin(self._begin[pieces + 1] - self._begin[pieces]))
            at = self._holders(pieces[rarest]) - rarest
        number = None if quote.doc is None else self.number[quote.doc]
        low, high = (0, len(self.folded)) if number is None else self.first[number : number + 2]
        at = _same(self.folded, at[(at >= low) & (at + size <= high)], sought)
        exact = self.origin[at] - lead
        fits = (exact >= 0) & (exact + len(raw) <= len(self.raw))
        exact = _same(self.raw, exact[fits], raw)
        return (
            self._places(exact, exact + len(raw), quote.doc),
            self._places(self.origin[at], self.origin[at + size - 1] + 1, quote.doc),
        )

    def _holders(self, piece: int) -> Ints:
        return self._order[self._begin[piece] : self._begin[piece + 1]]

    def _places(self, start: Ints, end: Ints, named: str | None) -> list[Place]:
        """Return the stretches that lie inside one document, or inside the named one."""
        doc = np.searchsorted(self.raw_first, start, side="right") - 1
        good = end <= self.raw_first[doc + 1]
        if named is not None:
            good &= doc == self.number[named]
        doc, start, end = (each[good][:COUNTED_PLACES] for each in (doc, start, end))
        first = self.raw_first[doc]
        rows = zip(doc.tolist(), (start - first).tolist(), (end - first).tolist(), strict=True)
        return list(dict.fromkeys(Place(self.docs[d], s, e) for d, s, e in rows))

    def similar(self, quote: Quote, min_score: float) -> list[Place]:
        """Return the places that score at least `min_score`, among the most promising."""
        ratio, shared = _rapidfuzz()
        sought, _ = fold_quote(quote.text)
        text = text_of(sought)
        places: list[Place] = []
        enough = 0
        for low, high, votes in self._stretches(sought, quote.doc, min_score):
            if places and votes < enough:  # with so few common pieces it cannot be as good
                break
            window = text_of(self.folded[low:high])
            if len(text) < LONG_QUOTE:
                most = shared(text, window)  # letters: no part of the window shares more
                if 2 * most < min_score * (len(text) + most):
                    continue
            start, end = _fit(text, window)
            score = ratio(text, window[start:end], min_score)
            if score >= min_score:
                first, last = self.origin[[low + start]], self.origin[[low + end - 1]]
                found = self._places(first, last + 1, quote.doc)
                places += [place._replace(score=score) for place in found]
                enough = max(enough, votes // 2)
        return places

    def _stretches(
        self, sought: Codes, doc: str | None, min_score: float
    ) -> Iterator[tuple[int, int, int]]:
        """Go through the stretches that hold most pieces of a folded quote in its order."""
        pieces = _pieces(sought).astype(np.int64)
        common = self._begin[pieces + 1] - self._begin[pieces]
        voters = _rarest(common)
        if not len(voters):
            return
        spots = np.concatenate([self._holders(pieces[k]) for k in voters])
        line = spots - np.repeat(voters, common[voters])  # where the quote would begin
        owner = np.searchsorted(self.first, spots, side="right") - 1
        if doc is not None:
            line, owner = (each[owner == self.number[doc]] for each in (line, owner))
        size = len(sought)
        slack = int(size * (2 / min_score - 2)) + 1  # how much longer or shorter a stretch may be
        margin = min(slack, 4 * EDGE)
        gap = owner * (size + slack + 1)  # which keeps the documents apart
        order = np.argsort(line + gap, kind="stable")
        line, gap, owner = line[order], gap[order], owner[order]
        spread = line + gap
        votes = np.searchsorted(spread, spread + slack, side="right") - np.arange(len(spread))
        for _ in range(max(1, min(TRIED_STRETCHES, LONG_QUOTE // size))):
            if not votes.any():
                return
            at = int(np.argmax(votes))
            last = at + int(votes[at]) - 1
            low, high = self.first[owner[at] : owner[at] + 2]
            low, high = max(low, line[at] - margin), min(high, line[last] + size + margin)
            yield low, high, last - at + 1
            votes[np.abs(spread - spread[at]) <= slack] = 0


def _rapidfuzz() -> tuple[Callable[[str, str, float], float], Callable[[str, str], int]]:
    """Return two functions: how alike two texts are, and how many letters they share."""
    what = "a quote is nowhere in the texts letter by letter; to find similar text"
    with needs_package(what, "text"):
        from rapidfuzz import fuzz  # noqa: PLC0415
        from rapidfuzz.distance import LCSseq  # noqa: PLC0415

    def ratio(one: str, other: str, min_score: float) -> float:
        # the higher the bar, the faster the answer, and most texts differ little or much
        high = fuzz.ratio(one, other, score_cutoff=98)
        return (high or fuzz.ratio(one, other, score_cutoff=100 * min_score)) / 100

    return ratio, LCSseq.similarity


def _fit(quote: str, window: str) -> tuple[int, int]:
    """Return the stretch of a window that takes the fewest edits to become the quote."""
    reach = max(len(window) - len(quote), EDGE) + 2 * EDGE  # within which the edges must lie
    tail = max(0, len(window) - reach)
    end = tail + _end(quote[-EDGE:], window[tail:])
    head = window[: min(end, reach)]
    return len(head) - _end(quote[:EDGE][::-1], head[::-1]), end


def _end(pattern: str, text: str) -> int:
    """Return where the best match of a pattern inside a text ends, the first of equal ones.

    Bit i of `up` and `down` says whether cell i of a column of the table of edit distances is one
    more or one less than the cell above it.

    >>> _end("brown", "the brwn fox"), _end("xyz", "")
    (8, 0)
    """
    mask, high = (1 << len(pattern)) - 1, 1 << (len(pattern) - 1)
    letters: dict[str, int] = {}
    for at, letter in enumerate(pattern):
        letters[letter] = letters.get(letter, 0) | 1 << at
    up, down = mask, 0
    distance = best = len(pattern)
    end = 0
    for at, letter in enumerate(text, start=1):
        match = letters.get(letter, 0)
        cross = (((match & up) + up) ^ up) | match | down
        right, left = down | (mask & ~(cross | up)), up & cross
        distance += bool(right & high) - bool(left & high)
        right = right << 1
        up = (left << 1 | ~(match | down | right)) & mask
        down = right & (match | down) & mask
        if distance < best:
            best, end = distance, at
    return end


def _pieces(codes: Codes) -> NDArray[np.uint16]:
    """Return a 16-bit number for each four letters in a row; equal pieces have equal numbers."""
    count = max(0, len(codes) - PIECE + 1)
    mixed = np.zeros(count, dtype=np.uint32)
    for at in range(PIECE):
        mixed = (mixed + codes[at : at + count]) * np.uint32(0x9E3779B1)
    return (mixed >> np.uint32(16)).astype(np.uint16)


def _rarest(common: Ints) -> Ints:
    """Return the pieces of a quote to look up: of each part of it the one that stands least often.

    >>> _rarest(np.array([3, 0, 1, 2])).tolist()
    [2, 3, 0]
    """
    known = np.flatnonzero(common)
    part = known * VOTERS // max(len(common), VOTERS)
    order = np.lexsort((common[known], part))
    rarest = known[order[np.unique(part[order], return_index=True)[1]]]
    rarest = rarest[np.argsort(common[rarest], kind="stable")]
    many = np.cumsum(common[rarest]) > VOTES
    many[:1] = False
    return rarest[~many]


def _same(codes: Codes, at: Ints, sought: Codes) -> Ints:
    """Keep the places where all letters are those that are sought."""
    probes = np.unique(np.linspace(0, len(sought) - 1, 32).astype(np.int64))
    for probe in probes:
        at = at[codes[at + probe] == sought[probe]]
    if len(probes) == len(sought):
        return at
    at = at[:COUNTED_PLACES]
    return at[[bool((codes[a : a + len(sought)] == sought).all()) for a in at]]
