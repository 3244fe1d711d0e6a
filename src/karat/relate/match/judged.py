"""The relations that a judge draws: their names; who judges is another matter, see `judges`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

from karat.errors import OptionError
from karat.judges.aspects import LISTED
from karat.relate.judged.bound import BoundJudged
from karat.relate.judged.judging import Task
from karat.relate.match.matcher import Matcher, register_matcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.core.data import Gold
    from karat.judges.verdicts import Aspect
    from karat.measures import Measure
    from karat.relate.match.matcher import BoundMatcher, MatchContext


@dataclass(frozen=True, kw_only=True)
class Judged(Matcher):
    """Base of the relations that a judge draws."""

    judged: ClassVar[bool] = True

    def bind(self, gold: Gold, context: MatchContext) -> BoundMatcher:
        """Let the judge of the context draw the edges."""
        if context.judging is None:
            raise OptionError(
                f"{self.name} is drawn by a judge", fix='ask for one, for example judge="local"'
            )
        bare = replace(gold, flaws={}, findings=())  # the judge finds the items
        return BoundJudged(bare, context.corpus, context.judging, context.judging.tasks[self])

    def task(self, measures: Sequence[Measure]) -> Task:
        """Return what the relation asks of a judge: no deeper than the measures over it read."""
        depths = [measure.depth(listed=self.name in LISTED) for measure in measures]
        known = [depth for depth in depths if depth is not None]
        depth = max(known) if known and len(known) == len(depths) else None
        return Task(cast("Aspect", self.name), depth, **self.settings())


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Relevance(Judged):
    """Each chunk with a grade from 0 to 3 for its use in answering the question."""

    name: ClassVar[str] = "relevance"
    about: ClassVar[str] = "judged: how much a chunk helps to answer the question, 0 to 3"


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Claims(Judged):
    """A chunk covers the claims of the reference answer that it supports.

    `splitter` tells the claims apart: by default they are the sentences of the reference.
    """

    splitter: str = "sentencex"

    name: ClassVar[str] = "claims"
    about: ClassVar[str] = "judged: a chunk covers the claims of the reference that it supports"


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Entities(Judged):
    """A chunk covers the entities of the reference answer that it mentions."""

    name: ClassVar[str] = "entities"
    about: ClassVar[str] = "judged: a chunk covers the entities of the reference that it mentions"


@register_matcher
@dataclass(frozen=True, kw_only=True)
class Statements(Judged):
    """A statement of a chunk is relevant, or it is not.

    `splitter` tells the statements apart: by default they are the sentences of the chunk.
    """

    splitter: str = "sentencex"

    name: ClassVar[str] = "statements"
    about: ClassVar[str] = "judged: which statements of a chunk help to answer the question"
