"""The relations `rouge` and `rouge-sentence`: most of a gold text, in its order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat.relate.match.lcs import rouge_l_recall, union_lcs_recall
from karat.relate.match.matcher import Matcher, register_matcher
from karat.relate.match.pairs import BoundPairs
from karat.texts.sentences import find_splitter
from karat.texts.words import TEXTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.core.data import Floats, Gold, Ints
    from karat.relate.match.matcher import MatchContext


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Rouge(Matcher):
    """ROUGE-L recall: the longest common subsequence of words ÷ the words of the gold text.

    `form=union` is summary-level ROUGE-L as the PyPI package rouge 1.0.1 computes it.
    """

    threshold: float = 0.7
    text: str = "plain"
    form: str = "lcs"

    name: ClassVar[str] = "rouge"
    about: ClassVar[str] = "a chunk covers the gold texts of which it holds most, by ROUGE-L recall"

    def __post_init__(self) -> None:
        """Check the parameters."""
        self.require(0 < self.threshold <= 1, "threshold", "is a number above 0, at most 1")
        self.require(self.text in TEXTS, "text", f"is one of {', '.join(TEXTS)}")
        self.require(self.form in ("lcs", "union"), "form", "is lcs or union")

    def bind(self, gold: Gold, context: MatchContext) -> BoundPairs:
        """Compare texts with those of a gold."""
        return BoundPairs(gold, context, self._compare, self.threshold, self.text)

    def _compare(
        self,
        units: Sequence[str],
        items: Sequence[str],
        pairs: tuple[Ints, Ints],
        least: float,
    ) -> Floats:
        if self.form == "union":
            return union_lcs_recall(units, items, pairs, least=least)
        return rouge_l_recall(units, items, pairs, text=self.text, least=least)


@register_matcher
@dataclass(frozen=True, kw_only=True)
class RougeSentence(Rouge):
    """ROUGE-L recall between sentences."""

    threshold: float = 0.8
    splitter: str = "sentencex"

    name: ClassVar[str] = "rouge-sentence"
    about: ClassVar[str] = "a sentence of a chunk covers the gold sentences of which it holds most"

    def bind(self, gold: Gold, context: MatchContext) -> BoundPairs:
        """Compare sentences with those of a gold."""
        splitter = find_splitter(self.splitter)
        return BoundPairs(gold, context, self._compare, self.threshold, self.text, splitter)
