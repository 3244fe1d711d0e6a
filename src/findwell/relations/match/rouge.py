"""The relations `rouge` and `rouge-sentence`: most of a gold text, in its order.

Two definitions of ROUGE-L recall. `rouge_l_recall` is findwell's own, the one of the paper: the
longest common subsequence of words ÷ words of the item. `union_lcs_recall` is what the package
`rouge` 1.0.1 computes. Both take `min_score`, the lowest score that matters: pairs that cannot
reach it by a cheap upper bound are given 0 and never compared, all others get their exact score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from math import isqrt
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

import numpy as np

from findwell.core.errors import needs_package
from findwell.core.frames import pl
from findwell.core.texts.sentences import find_splitter
from findwell.core.texts.words import words
from findwell.relations.match.matcher import Matcher, register_matcher
from findwell.relations.match.texts import BoundPairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats, Gold, Ints
    from findwell.relations.match.matcher import MatchContext

Sentence: TypeAlias = tuple[list[str], set[str]]
BATCH = 4_000_000  # characters of text in memory as words at once
FIRST_SURROGATE, SURROGATES = 0xD800, 0x800  # code points that no string may hold
ALPHABET = 0x110000 - SURROGATES
LONG_ITEM = 128  # words of an item from which on looking for each is faster than comparing
BITS = 4_096  # of what is looked into; a chunk of 512 words sets a tenth of them
KEPT_ROWS = 64  # of a table of subsequences that are kept for the way back
CUT_ITEMS = 4_096  # items kept cut into words


@register_matcher
class Rouge(Matcher):
    """ROUGE-L recall: the longest common subsequence of words ÷ the words of the gold text.

    `form=union` is summary-level ROUGE-L as the PyPI package rouge 1.0.1 computes it.
    """

    threshold: float = 0.7
    text: str = "plain"
    form: str = "lcs"

    name: ClassVar[str] = "rouge"
    about: ClassVar[str] = (
        "a chunk covers the gold texts whose words it mostly holds, by ROUGE-L recall"
    )

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        self.require(self.form in ("lcs", "union"), "form", "is lcs or union")

    def bind(self, gold: Gold, context: MatchContext) -> BoundPairs:
        """Compare texts with those of the gold."""
        return BoundPairs(gold, context, self._compare, self.threshold, self.text)

    def _compare(
        self, units: Sequence[str], items: Sequence[str], pairs: tuple[Ints, Ints], min_score: float
    ) -> Floats:
        if self.form == "union":
            return union_lcs_recall(units, items, pairs, min_score=min_score)
        return rouge_l_recall(units, items, pairs, text=self.text, min_score=min_score)


@register_matcher
class RougeSentence(Rouge):
    """ROUGE-L recall between sentences."""

    threshold: float = 0.8
    splitter: str = "sentencex"

    name: ClassVar[str] = "rouge-sentence"
    about: ClassVar[str] = (
        "a sentence of a chunk covers the gold sentences whose words it mostly holds"
    )

    def bind(self, gold: Gold, context: MatchContext) -> BoundPairs:
        """Compare sentences with those of the gold."""
        splitter = find_splitter(self.splitter)
        return BoundPairs(gold, context, self._compare, self.threshold, self.text, splitter)


def rouge_l_recall(
    units: Sequence[str],
    items: Sequence[str],
    pairs: tuple[Ints, Ints],
    *,
    text: str = "plain",
    min_score: float = 0.0,
) -> Floats:
    """Return LCS(words of unit, words of item) ÷ words of item for each pair of indices.

    A unit or item without words scores 0. `text` names the policy that makes words of texts.
    Batches do not change a score.

    >>> chunk, gold = "The capital of Brazil is Brasília.", "Brasília is the capital of Brazil"
    >>> rouge_l_recall([chunk], [gold], (np.array([0]), np.array([0])))
    array([0.66666667])
    """
    scores = np.zeros(len(pairs[0]))
    for rows in _batches(units, items, pairs):
        some_units, unit = np.unique(pairs[0][rows], return_inverse=True)
        some_items, item = np.unique(pairs[1][rows], return_inverse=True)
        of_units = words(pl.Series([units[u] for u in some_units], dtype=pl.String), text)
        of_items = words(pl.Series([items[i] for i in some_items], dtype=pl.String), text)
        scores[rows] = _recall(of_units, of_items, (unit, item), min_score)
    return scores


def _batches(
    units: Sequence[str], items: Sequence[str], pairs: tuple[Ints, Ints]
) -> Iterator[Ints]:
    """Yield positions of pairs whose texts fit in a batch; those of one unit come together."""
    unit, item = pairs
    order = np.argsort(unit, kind="stable")
    unit_size = np.fromiter(map(len, units), np.int64, len(units))
    item_size = np.fromiter(map(len, items), np.int64, len(items))
    is_first = np.diff(unit[order], prepend=-1) > 0
    size = item_size[item[order]] + np.where(is_first, unit_size[unit[order]], 0)
    batch = np.cumsum(size) // BATCH
    yield from (rows for rows in np.split(order, np.flatnonzero(np.diff(batch)) + 1) if len(rows))


class _Codes(NamedTuple):
    """Texts as numbers, one for each different word; text t is flat[offset[t] : offset[t + 1]]."""

    flat: Ints
    offset: Ints

    def spelled(self, alphabet: int) -> list[str] | list[list[int]]:
        """Return each text as a string, a character for a word, if there are enough characters."""
        bounds = self.offset.tolist()
        if alphabet > ALPHABET:
            return [self.flat[a:z].tolist() for a, z in pairwise(bounds)]
        points = self.flat + SURROGATES * (self.flat >= FIRST_SURROGATE)
        coded = points.astype("<u4").tobytes()
        return [coded[4 * a : 4 * z].decode("utf-32-le") for a, z in pairwise(bounds)]


def _recall(
    of_units: pl.Series, of_items: pl.Series, pairs: tuple[Ints, Ints], min_score: float
) -> Floats:
    """Score pairs of lists of words: those that length and single words do not rule out."""
    unit, item = pairs
    length = _lengths(of_items)[item]
    most = np.minimum(_lengths(of_units)[unit], length)
    divisor = np.maximum(length, 1)
    # common words come first, as the first characters are the fastest
    counted = of_items.explode().drop_nulls().alias("word").value_counts(sort=True)
    known = counted.select("word").with_row_index("code")
    units, items = _codes(of_units, known), _codes(of_items, known)
    asked = np.flatnonzero((most > 0) & (most / divisor >= min_score))
    if min_score > 0:
        long = asked[length[asked] >= LONG_ITEM]
        most[long] = _shared(units, items, unit[long], item[long])
        asked = asked[most[asked] / divisor[asked] >= min_score]
    scores = np.zeros(len(unit))
    scores[asked] = _common(units, items, (unit[asked], item[asked]), len(known)) / length[asked]
    return scores


def _lengths(of_texts: pl.Series) -> Ints:
    return of_texts.list.len().to_numpy().astype(np.int64)


def _codes(of_texts: pl.Series, known: pl.DataFrame) -> _Codes:
    """Number the words of texts; words that no item has can be in no subsequence: left out."""
    flat = of_texts.explode().drop_nulls().alias("word").to_frame()
    code = flat.join(known, on="word", how="left", maintain_order="left")["code"]
    before = np.concatenate(([0], np.cumsum(code.is_not_null().to_numpy())))
    start = np.concatenate(([0], np.cumsum(_lengths(of_texts))))
    return _Codes(code.drop_nulls().to_numpy().astype(np.int64), before[start])


def _shared(units: _Codes, items: _Codes, unit: Ints, item: Ints) -> Ints:
    """Count the words of each item that its unit has: never too few, as words may share a bit."""
    some, row = np.unique(unit, return_inverse=True)
    has = np.zeros((len(some), BITS), dtype=bool)
    owner, position = _ranges(units.offset, some)
    has[owner, units.flat[position] % BITS] = True
    pair, position = _ranges(items.offset, item)
    hit = has[row[pair], items.flat[position] % BITS]
    return np.bincount(pair[hit], minlength=len(unit))


def _ranges(offset: Ints, texts: Ints) -> tuple[Ints, Ints]:
    """Return for each word of some texts which of these it belongs to, and where it stands."""
    size = offset[texts + 1] - offset[texts]
    owner = np.repeat(np.arange(len(texts)), size)
    return owner, np.arange(size.sum()) - np.repeat(np.cumsum(size) - size - offset[texts], size)


def _common(units: _Codes, items: _Codes, pairs: tuple[Ints, Ints], alphabet: int) -> Ints:
    """Return the length of the longest common subsequence of each pair."""
    with needs_package("ROUGE-L", "text"):
        from rapidfuzz.distance import LCSseq  # noqa: PLC0415
        from rapidfuzz.process import cpdist  # noqa: PLC0415
    unit_texts, item_texts = units.spelled(alphabet), items.spelled(alphabet)
    common: Ints = cpdist(
        [item_texts[item] for item in pairs[1].tolist()],
        [unit_texts[unit] for unit in pairs[0].tolist()],
        scorer=LCSseq.similarity,
        dtype=np.int64,
        workers=-1,  # all cores
    )
    return common


def union_lcs_recall(
    units: Sequence[str], items: Sequence[str], pairs: tuple[Ints, Ints], *, min_score: float = 0.0
) -> Floats:
    """Return the recall of ROUGE-L as the package `rouge` 1.0.1 computes it for each pair.

    A sentence ends at every full stop; words are separated by white space and kept as written. From
    each sentence of the item and each of the unit one longest common subsequence is taken, and the
    score is the different words in any of them ÷ the different words of the item. Which one is
    taken where there are several is part of the definition: going back from the ends of both
    sentences, a word of the unit's is dropped rather than one of the item's.

    Where `rouge` raises there is no score but 0: for texts that are empty or only full stops. Where
    it exceeds the recursion limit, in sentences of about a thousand words, this is what it would
    have returned.
    Blanks between two full stops, or after the last, are a sentence of one empty word, too.

    >>> chunk, gold = "He saw Rome. He went to Paris.", "He saw Paris, Texas"
    >>> union_lcs_recall([chunk], [gold], (np.array([0]), np.array([0])))
    array([0.5])
    """
    scores = np.zeros(len(pairs[0]))
    cut_item = lru_cache(CUT_ITEMS)(lambda item: _cut(items[item]))
    order = np.argsort(pairs[0], kind="stable")
    rows = zip(order.tolist(), pairs[0][order].tolist(), pairs[1][order].tolist(), strict=True)
    for unit, group in groupby(rows, key=itemgetter(1)):
        in_unit = {"", *units[unit].replace(".", " ").split()}
        sentences: list[Sentence] = []
        for pair, _, item in group:
            gold, in_gold = cut_item(item)
            shared = len(in_gold & in_unit)
            if shared and shared / len(in_gold) >= min_score:
                sentences = sentences or _cut(units[unit])[0]
                scores[pair] = len(_union(gold, sentences)) / len(in_gold)
    return scores


def _cut(text: str) -> tuple[list[Sentence], set[str]]:
    """Return the sentences of a text, each as a list and a set of words, and all its words."""
    lists = [part.split() or [""] for part in text.split(".") if part]
    return [(words, set(words)) for words in lists], set().union(*lists)


def _union(gold: list[Sentence], unit: list[Sentence]) -> set[str]:
    """Return the words of the subsequences taken from all pairs of sentences.

    Easy pairs come first; of the others few have a word left that is new.
    """
    union: set[str] = set()
    hard = []
    for x_list, x in gold:
        new = x - union
        for y_list, y in unit:
            if new.isdisjoint(y):
                continue
            common = x & y
            if len(common) == 1 or _in_order(x_list, y_list, common):
                union |= common
                new -= common
            else:
                hard.append((common, x_list, y_list))
    for common, x_list, y_list in hard:
        if not common <= union:
            union.update(_taken(x_list, y_list))
    return union


def _in_order(x: list[str], y: list[str], common: set[str]) -> bool:
    """Tell whether the common words of one are all in the other in that order: then all count."""
    of_x = [word for word in x if word in common]
    of_y = [word for word in y if word in common]
    shorter, longer = sorted((of_x, of_y), key=len)
    rest = iter(longer)
    return all(word in rest for word in shorter)


def _taken(x: list[str], y: list[str]) -> Iterator[str]:
    """Yield the words of the longest common subsequence that is taken, from the last on.

    A row of the table of lengths is one number: a bit for each word of y, 0 where the length grows
    there (Crochemore et al. 2001). Words that only one of the two has are on no way back.
    """
    where: dict[str, int] = dict.fromkeys(x, 0)
    y = [word for word in y if word in where]
    for place, word in enumerate(y):
        where[word] |= 1 << place
    matches = [match for word in x if (match := where[word])]
    left = len(y)
    for row, match in _back(matches, len(y)):
        # Dropping words of y leads to where the length last grew. If the word of x is equal to one
        # that is dropped before, it is also equal to the one there.
        left = (~row & ((1 << left) - 1)).bit_length()
        if not left:
            return
        if match >> (left - 1) & 1:
            left -= 1
            yield y[left]


def _back(matches: list[int], width: int) -> Iterator[tuple[int, int]]:
    """Yield the rows of the table of lengths from the last on, each with its matches.

    Of a long table only the beginnings of blocks are kept; blocks are made again on the way back.
    """
    size = max(KEPT_ROWS, isqrt(len(matches)))
    blocks = [matches[start : start + size] for start in range(0, len(matches) or 1, size)]
    first = [(1 << width) - 1]
    for block in blocks[:-1]:
        first.append(_rows(first[-1], block)[-1])
    for row, block in zip(reversed(first), reversed(blocks), strict=True):
        yield from zip(reversed(_rows(row, block)), reversed(block), strict=True)


def _rows(row: int, matches: list[int]) -> list[int]:
    """Return the rows that follow a row; bits above the width of the table mean nothing."""
    rows = []
    for match in matches:
        hit = row & match
        row = (row + hit) | (row - hit)
        rows.append(row)
    return rows
