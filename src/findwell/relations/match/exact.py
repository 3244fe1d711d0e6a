"""The relations `exact`, `exact-sentence` and `containment`: texts that are equal, or contained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

import numpy as np

from findwell.core.frames import pl
from findwell.core.texts.sentences import find_splitter
from findwell.core.texts.words import tidy, words
from findwell.relations.match.matcher import EqualKeys, Matcher, edges_to_members, register_matcher
from findwell.relations.match.texts import BoundPairs, BoundTexts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Floats, Gold, Ints
    from findwell.core.relation import Edges, Units
    from findwell.core.texts.sentences import Splitter
    from findwell.relations.match.matcher import MatchContext

Words: TypeAlias = dict[int, list[str]]  # of texts, by their numbers
TRIED_PLACES = 8  # places where an overlap may end that are tried one by one


@register_matcher
class Exact(Matcher):
    """Equal texts, after the text policy."""

    text: str = "plain"

    name: ClassVar[str] = "exact"
    about: ClassVar[str] = "a chunk covers the gold texts that it equals"

    def bind(self, gold: Gold, context: MatchContext) -> EqualTexts:
        """Compare texts with those of the gold."""
        return EqualTexts(gold, context, self.text)


@register_matcher
class ExactSentence(Exact):
    """Equal sentences, after the text policy."""

    splitter: str = "sentencex"

    name: ClassVar[str] = "exact-sentence"
    about: ClassVar[str] = "a sentence of a chunk covers the gold sentence that it equals"

    def bind(self, gold: Gold, context: MatchContext) -> EqualTexts:
        """Compare sentences with those of the gold."""
        return EqualTexts(gold, context, self.text, find_splitter(self.splitter))


class EqualTexts(BoundTexts):
    """Draws an edge where texts are equal; a blank text equals nothing, unless all counts."""

    order_matters = False

    def __init__(
        self, gold: Gold, context: MatchContext, policy: str, splitter: Splitter | None = None
    ) -> None:
        super().__init__(gold, context, policy, splitter)
        self.equal = EqualKeys(self.gold, tidy(self.gold.member_doc, policy))


@register_matcher
class Containment(Matcher):
    """The chunk contains the words of the gold text, one after the other.

    With `across=yes` a gold text that was cut in two is covered once both halves are retrieved:
    one chunk ends with its beginning, another begins with its end. The later of the two covers it.
    """

    text: str = "plain"
    across: str = "yes"

    name: ClassVar[str] = "containment"
    about: ClassVar[str] = "a chunk covers the gold texts that it contains word by word"

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        self.require(self.across in ("yes", "no"), "across", "is yes or no")

    def bind(self, gold: Gold, context: MatchContext) -> BoundContainment:
        """Look for the texts of the gold."""
        return BoundContainment(gold, context, self.text, across=self.across == "yes")


class BoundContainment(BoundPairs):
    """Draws an edge from a chunk to the gold texts inside it, or completed by it."""

    def __init__(self, gold: Gold, context: MatchContext, policy: str, *, across: bool) -> None:
        super().__init__(gold, context, self._pairwise(CONTAINED_COMPARISON), 1.0, policy)
        self._across = across
        self.order_matters = across

    def _pairwise(self, kind: _Comparison) -> Callable[..., Floats]:
        """Return a comparison of texts that scores the words of each pair."""

        def compare(
            units: Sequence[str], items: Sequence[str], pairs: tuple[Ints, Ints], min_score: float
        ) -> Floats:
            del min_score
            left, right = (
                self._words(texts, which)
                for texts, which in zip((units, items), pairs, strict=True)
            )
            sought, held = kind.clues(left, right)
            rows = list(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True))
            scores = np.zeros(len(rows))
            for number, (unit, item) in enumerate(rows):  # most pairs have nothing in common
                seeks, holds = (unit, item) if kind.unit_seeks else (item, unit)
                if sought[seeks] in held[holds]:
                    scores[number] = kind.score(left[unit], right[item])
            return scores

        return compare

    def _words(self, texts: Sequence[str], which: Ints) -> Words:
        """Return the words of these texts, by their numbers."""
        some = np.unique(which).tolist()
        found = words(pl.Series([texts[number] for number in some], dtype=pl.String), self._policy)
        return dict(zip(some, found.to_list(), strict=True))

    def draw(self, units: Units) -> Edges:
        """Return the edges of chunks that hold a gold text, or complete one."""
        unit, member, _ = self._scored(units, 1.0)
        if self._across:
            more_unit, more_member = self._completed(units)
            unit, member = np.append(unit, more_unit), np.append(member, more_member)
        return edges_to_members(units, unit, member, self.gold)

    def _completed(self, units: Units) -> tuple[Ints, Ints]:
        """Return the units that complete a gold text together with a unit above them."""
        some = float(np.nextafter(0, 1))
        heads, tails = (self._scored(units, some, self._pairwise(kind)) for kind in (HEAD, TAIL))
        begun: dict[int, list[tuple[int, float, bool]]] = {}
        again = set() if units.repeat is None else set(np.flatnonzero(units.repeat).tolist())
        for is_head, (unit, member, share) in ((True, heads), (False, tails)):
            for row in zip(member.tolist(), unit.tolist(), share.tolist(), strict=True):
                if row[1] not in again:  # a repetition is not another chunk
                    begun.setdefault(row[0], []).append((row[1], row[2], is_head))
        found = [(unit, member) for member, ends in begun.items() for unit in _completing(ends)]
        completing = np.array(found, dtype=np.int64).reshape(-1, 2)
        return completing[:, 0], completing[:, 1]


def _completing(ends: list[tuple[int, float, bool]]) -> list[int]:
    """Return the first unit with which beginning and end of a gold text are there, in two units.

    >>> _completing([(4, 0.5, True), (7, 0.6, False), (9, 0.9, False)])
    [7]
    >>> _completing([(4, 0.5, True), (7, 0.4, False)])
    []
    >>> _completing([(4, 0.5, True), (4, 0.5, False)])
    []
    """
    best = {True: 0.0, False: 0.0}
    for unit, group in groupby(sorted(ends), key=itemgetter(0)):
        mine = {is_head: share for _, share, is_head in group}
        for is_head, share in mine.items():
            other = best[not is_head]
            if other > 0 and share + other >= 1 - 1e-9:
                return [unit]
        best |= {is_head: max(best[is_head], share) for is_head, share in mine.items()}
    return []


def _contained(unit: list[str], item: list[str]) -> float:
    """Return 1 if the unit contains the words of the item one after the other."""
    if not item or len(item) > len(unit):
        return 0.0
    return float(f" {' '.join(item)} " in f" {' '.join(unit)} ")


def _head(unit: list[str], item: list[str]) -> float:
    """Return the longest part of the item that begins it and ends the unit."""
    most = min(len(unit), len(item) - 1)
    return _overlap(unit[len(unit) - most :], item[:most]) / len(item) if most > 0 else 0.0


def _tail(unit: list[str], item: list[str]) -> float:
    """Return the longest part of the item that ends it and begins the unit."""
    most = min(len(unit), len(item) - 1)
    if most <= 0:
        return 0.0
    return _overlap(unit[:most][::-1], item[len(item) - most :][::-1]) / len(item)


def _overlap(left: list[str], right: list[str]) -> int:
    """Return how many words the longest end of one list has that is a beginning of the other.

    Both have the same number of words. Few words of one are the last of the other, as a rule, and
    each is tried; where there are many, as in a text that repeats itself, the lists are compared in
    one pass (Knuth, Morris and Pratt 1977), so that time grows with their length alone.

    >>> _overlap(["x", "a", "b"], ["a", "b", "y"]), _overlap(["a"] * 90, ["a"] * 80 + ["b"] * 10)
    (2, 80)
    """
    if right.count(left[-1]) <= TRIED_PLACES:
        ends = (at + 1 for at in range(len(right) - 1, -1, -1) if right[at] == left[-1])
        return next((size for size in ends if left[-size:] == right[:size]), 0)
    shorter = [0] * len(right)  # how much still fits where one more word does not
    size = 0
    for at in range(1, len(right)):
        while size and right[at] != right[size]:
            size = shorter[size - 1]
        size += right[at] == right[size]
        shorter[at] = size
    size = 0
    for word in left:
        while size and word != right[size]:
            size = shorter[size - 1]
        size += word == right[size]
    return size


class _Comparison(NamedTuple):
    """How the words of a unit and of an item are scored, and when the score is surely 0.

    `clues` says which word a text seeks, and which words the other holds: without it there among
    them the score is 0. `unit_seeks` says whose word it is.
    """

    score: Callable[[list[str], list[str]], float]
    unit_seeks: bool
    clues: Callable[[Words, Words], tuple[dict[int, str | None], dict[int, set[str]]]]


def _rarest(units: Words, items: Words) -> tuple[dict[int, str | None], dict[int, set[str]]]:
    """Seek the word of each item that the fewest units hold."""
    held = {number: set(found) for number, found in units.items()}
    often = Counter(chain.from_iterable(held.values()))
    rarest = {n: min(found, key=often.__getitem__, default=None) for n, found in items.items()}
    return rarest, held


def _at(end: int) -> Callable[[Words, Words], tuple[dict[int, str | None], dict[int, set[str]]]]:
    """Seek the word at an end of each unit."""

    def clues(units: Words, items: Words) -> tuple[dict[int, str | None], dict[int, set[str]]]:
        sought = {number: found[end] if found else None for number, found in units.items()}
        return sought, {number: set(found) for number, found in items.items()}

    return clues


CONTAINED_COMPARISON = _Comparison(_contained, unit_seeks=False, clues=_rarest)
HEAD = _Comparison(_head, unit_seeks=True, clues=_at(-1))
TAIL = _Comparison(_tail, unit_seeks=True, clues=_at(0))
