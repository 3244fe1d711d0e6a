"""The relation `semantic`: texts that mean nearly the same, by the cosine of their embeddings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from karat.embeddings import cached, cosine, find_embedder, unread_findings
from karat.findings import Finding
from karat.relate.match.matcher import Matcher, register_matcher
from karat.relate.match.texts import BoundPairs
from karat.storage.database import cache_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from karat.core.data import Floats, Gold, Ints
    from karat.embeddings import Embedder
    from karat.relate.match.matcher import MatchContext
    from karat.relate.match.texts import Compare


class BoundSemantic(BoundPairs):
    """Draws edges between texts whose embeddings are alike, and says which it cannot read."""

    def __init__(
        self,
        gold: Gold,
        context: MatchContext,
        compare: Compare,
        threshold: float,
        embedder: Embedder,
    ) -> None:
        super().__init__(gold, context, compare, threshold, "raw")
        self._embedder = embedder
        unread = unread_findings(self._texts, embedder)
        self.gold = replace(self.gold, findings=(*self.gold.findings, *unread))

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Put texts in the place of ids."""
        found, findings = super().rows(rows)
        return found, findings + unread_findings(found["text"].unique().to_list(), self._embedder)


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Semantic(Matcher):
    """Embeddings whose cosine is at least the threshold.

    What cosine means "the same" differs between models, between corpora and between chunk sizes.
    The default is the best compromise for MiniLM on two public sets (docs/matching.md).
    `calibrated` names what the threshold was found with (labels, a study); as long as it says `no`,
    results warn.
    """

    threshold: float = 0.6
    model: str = "minilm"
    calibrated: str = "no"

    name: ClassVar[str] = "semantic"
    about: ClassVar[str] = "a chunk covers the gold texts that it resembles, by embeddings"

    def __post_init__(self) -> None:
        """Check the threshold."""
        self.require(0 < self.threshold <= 1, "threshold", "is a number above 0, at most 1")

    def bind(self, gold: Gold, context: MatchContext) -> BoundPairs:
        """Compare embeddings with those of a gold."""
        embedder = find_embedder(
            context.embedder or self.model,  # type: ignore[arg-type]
            base_url=context.base_url,
        )
        remembers = cached(embedder, cache_folder())

        def compare(
            units: Sequence[str], items: Sequence[str], pairs: tuple[Ints, Ints], least: float
        ) -> Floats:
            del least
            return cosine(units, items, pairs, remembers)

        return BoundSemantic(gold, context, compare, self.threshold, embedder)

    def findings(self) -> list[Finding]:
        """Warn of a threshold that nobody has calibrated."""
        if self.calibrated != "no":
            return []
        return [
            Finding(
                "uncalibrated-threshold",
                1,
                (str(self.threshold),),
                f"the threshold of {self.name} was never calibrated: what counts as the same is "
                "a guess",
                "choose it on pairs that people labelled, then name them: "
                "semantic(threshold=…,calibrated=NAME)",
            )
        ]
