"""The engine of a part of a run: its rows are one batch of whole queries, wherever that is.

An evaluation that is spread over machines calls it for every part. What can be said about the whole
only is left to who holds all parts; see `findwell.core.parts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.relations.pipeline import draw_batch, join

if TYPE_CHECKING:
    from findwell.core.data import RunStream
    from findwell.core.policy import Policy
    from findwell.core.progress import Report
    from findwell.relations.facts import FactReader
    from findwell.relations.match.matcher import BoundMatcher
    from findwell.relations.pipeline import Drawn


class PartEngine:
    """Draws the relation of the queries of a part, also where the run has no row for them."""

    def draw(
        self,
        run: RunStream,
        bound: BoundMatcher,
        policy: Policy,
        *,
        keep: int = 0,
        progress: Report | None = None,
        facts: FactReader | None = None,
    ) -> Drawn:
        """Draw the relation of a part; see `findwell.engines.BatchEngine`."""
        del progress
        return join(run, [draw_batch(run.collect(), bound, policy, keep, facts)], bound, policy)
