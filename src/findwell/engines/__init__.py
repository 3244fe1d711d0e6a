"""How it runs, never what it computes: where the batches of a run are worked on.

What is done with a batch, and with all of them in the end, is `findwell.relations.pipeline`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from findwell.core.data import RunStream
    from findwell.core.policy import Policy
    from findwell.core.progress import Report
    from findwell.relations.facts import FactReader
    from findwell.relations.match.matcher import BoundMatcher
    from findwell.relations.pipeline import Drawn


class BatchEngine(Protocol):
    """Draws the relation of a run: cuts it into batches of whole queries, and joins the parts.

    An engine calls `findwell.relations.pipeline.draw_batch` for every batch, wherever that is, and
    `join` with the parts, and so gives the numbers of every other engine.
    """

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
        """Draw the relation of a run.

        `keep` is how many documents of each list are kept, `facts` what is asked about chunks.
        """
