"""The relation `semantic`: texts that mean nearly the same, by the cosine of their embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from findwell.core.findings import Finding
from findwell.relations.match.matcher import Matcher, register_matcher
from findwell.relations.match.texts import BoundPairs

if TYPE_CHECKING:
    import polars as pl

    from findwell.core.data import Gold
    from findwell.relations.match.matcher import MatchContext


@register_matcher
class Semantic(Matcher):
    """Embeddings whose cosine is at least the threshold.

    What cosine means "the same" differs between models, between corpora and between chunk sizes.
    The default is the best compromise for MiniLM on two public sets (docs/matching.md).
    `calibrated` names what the threshold was found with (labels, a study); as long as it is `no`,
    results warn.
    """

    threshold: float = 0.6
    model: str = "minilm"
    calibrated: str = "no"

    name: ClassVar[str] = "semantic"
    about: ClassVar[str] = "a chunk covers the gold texts that it resembles, by embeddings"

    def bind(self, gold: Gold, context: MatchContext) -> BoundPairs:
        """Compare embeddings with those of the gold."""
        return BoundSemantic(gold, context, self)

    def findings(self) -> list[Finding]:
        """Warn of a threshold that was never calibrated."""
        if self.calibrated != "no":
            return []
        return [
            Finding(
                "uncalibrated-threshold",
                1,
                (str(self.threshold),),
                f"The threshold of {self.name} is a guess: it was never calibrated.",
                "choose it on pairs that people labelled, then name them: "
                "semantic(threshold=…,calibrated=NAME)",
            )
        ]


class BoundSemantic(BoundPairs):
    """Draws edges between texts whose embeddings are alike, and reports which it cannot read."""

    def __init__(self, gold: Gold, context: MatchContext, matcher: Semantic) -> None:
        # few evaluations embed anything, and what asks servers takes long to import
        from findwell.io.storage.database import cache_folder  # noqa: PLC0415
        from findwell.judges.embeddings import cached, cosine, find_embedder, unread_findings  # noqa: PLC0415

        self._unread = unread_findings
        self._embedder = find_embedder(
            context.embedder or matcher.model,  # type: ignore[arg-type]
            base_url=context.base_url,
        )
        stored = cached(self._embedder, cache_folder())
        super().__init__(
            gold,
            context,
            lambda units, items, pairs, _: cosine(units, items, pairs, stored),
            matcher.threshold,
            "raw",
        )
        unread = unread_findings(self._texts, self._embedder)
        self.gold = replace(self.gold, findings=(*self.gold.findings, *unread))

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Replace ids by texts."""
        found, findings = super().rows(rows)
        return found, findings + self._unread(found["text"].unique().to_list(), self._embedder)
