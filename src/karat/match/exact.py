"""The relations `exact` and `exact-sentence`: equal texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat.match.ids import EqualKeys
from karat.match.matcher import Matcher, register_matcher
from karat.match.sentences import find_splitter
from karat.match.texts import chunks, sentences, text_gold, with_texts
from karat.match.words import TEXTS, tidy

if TYPE_CHECKING:
    import polars as pl

    from karat.align import Aligned
    from karat.data import Gold
    from karat.findings import Finding
    from karat.match.matcher import Edges, Material, Units
    from karat.match.sentences import Splitter


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

    def against(self, gold: Gold, material: Material) -> EqualTexts:
        """Compare texts with those of a gold."""
        return EqualTexts(gold, material, self.text)


@register_matcher
@dataclass(frozen=True, kw_only=True)
class ExactSentence(Exact):
    """Equal sentences, after the text policy."""

    splitter: str = "sentencex"

    name: ClassVar[str] = "exact-sentence"
    about: ClassVar[str] = "a sentence of a chunk covers the gold sentence that it equals"

    def against(self, gold: Gold, material: Material) -> EqualTexts:
        """Compare sentences with those of a gold."""
        return EqualTexts(gold, material, self.text, find_splitter(self.splitter))


class EqualTexts:
    """Draws an edge where texts are equal; a blank text equals nothing, unless all counts."""

    blank_is_unit = True

    def __init__(
        self, gold: Gold, material: Material, policy: str, splitter: Splitter | None = None
    ) -> None:
        self.gold = text_gold(gold, material.corpus, policy, splitter)
        self._corpus = material.corpus
        self._policy = policy
        self._splitter = splitter
        self._equal = EqualKeys(self.gold, tidy(self.gold.member_doc, policy))

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Put texts in the place of ids."""
        return with_texts(rows, self._corpus, self._policy)

    def units(self, aligned: Aligned) -> Units:
        """Return the chunks of a batch, or their sentences."""
        if self._splitter is None:
            return chunks(aligned)
        return sentences(aligned, self._splitter, self._policy)

    def draw(self, units: Units) -> Edges:
        """Return the edges of the units that equal an item."""
        return self._equal.edges(units)

    def scores(self, units: Units) -> None:
        """Texts are equal or not."""
