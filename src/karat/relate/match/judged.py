"""The relations that a judge draws: their names; who judges is another matter, see `judges`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from karat.errors import OptionError
from karat.relate.match.matcher import Matcher, register_matcher

if TYPE_CHECKING:
    from karat.core.data import Gold
    from karat.relate.match.matcher import BoundMatcher, MatchContext


@dataclass(frozen=True, kw_only=True)
class Judged(Matcher):
    """Base of the relations that a judge draws."""

    judged: ClassVar[bool] = True

    def bind(self, gold: Gold, context: MatchContext) -> BoundMatcher:
        """Refuse: a judge sees samples, not pairs."""
        del gold, context
        raise OptionError(
            f"{self.name} is drawn by a judge", fix='ask for one, for example judge="local"'
        )


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
