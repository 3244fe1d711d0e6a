"""The relations `exact` and `exact-sentence`: equal texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat.relate.match.ids import EqualKeys
from karat.relate.match.matcher import Matcher, register_matcher
from karat.relate.match.texts import BoundTexts
from karat.texts.sentences import find_splitter
from karat.texts.words import TEXTS, tidy

if TYPE_CHECKING:
    from karat.core.data import Gold
    from karat.relate.match.matcher import Edges, MatchContext, Units
    from karat.texts.sentences import Splitter


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Exact(Matcher):
    """Equal texts, after the text policy."""

    text: str = "plain"

    name: ClassVar[str] = "exact"
    about: ClassVar[str] = "a chunk covers the gold texts that it equals"

    def __post_init__(self) -> None:
        """Check the policy."""
        self.require(self.text in TEXTS, "text", f"is one of {', '.join(TEXTS)}")

    def bind(self, gold: Gold, context: MatchContext) -> EqualTexts:
        """Compare texts with those of a gold."""
        return EqualTexts(gold, context, self.text)


@register_matcher
@dataclass(frozen=True, kw_only=True)
class ExactSentence(Exact):
    """Equal sentences, after the text policy."""

    splitter: str = "sentencex"

    name: ClassVar[str] = "exact-sentence"
    about: ClassVar[str] = "a sentence of a chunk covers the gold sentence that it equals"

    def bind(self, gold: Gold, context: MatchContext) -> EqualTexts:
        """Compare sentences with those of a gold."""
        return EqualTexts(gold, context, self.text, find_splitter(self.splitter))


class EqualTexts(BoundTexts):
    """Draws an edge where texts are equal; a blank text equals nothing, unless all counts."""

    def __init__(
        self, gold: Gold, context: MatchContext, policy: str, splitter: Splitter | None = None
    ) -> None:
        super().__init__(gold, context, policy, splitter)
        self._equal = EqualKeys(self.gold, tidy(self.gold.member_doc, policy))

    def draw(self, units: Units) -> Edges:
        """Return the edges of the units that equal an item."""
        return self._equal.edges(units)

    def scores(self, units: Units) -> None:
        """Texts are equal or not."""
