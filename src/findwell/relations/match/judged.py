"""The relations that a judge draws, one for each aspect; who judges is another matter.

The cutoff of a measure over chunks cuts a relation that is drawn already. A verdict about the whole
list is another one for every cutoff: there the depth belongs to the relation, and each
cutoff has a relation of its own (`at_depth`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from findwell.core.errors import OptionError, choose, takes_options
from findwell.core.measure import Budget
from findwell.judges.aspects import ASPECTS, Aspect, Listing, VerdictShape, add_aspect, find_aspect
from findwell.judges.aspects.aspect import YES_OR_NO
from findwell.relations.match.matcher import MATCHERS, Matcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.core.data import Gold
    from findwell.judges.aspects.aspect import Needs
    from findwell.measures import Measure
    from findwell.relations.judged.judging import Task
    from findwell.relations.match.matcher import BoundMatcher, MatchContext


@dataclass(frozen=True, kw_only=True)
class JudgedMatcher(Matcher):
    """Base of the relations that a judge draws."""

    judged: ClassVar[bool] = True

    def bind(self, gold: Gold, context: MatchContext) -> BoundMatcher:
        """Let the judge of the context draw the edges."""
        if context.judging is None:
            raise OptionError(
                f"{self.name} is drawn by a judge", fix='ask for one, for example judge="local"'
            )
        from findwell.relations.judged.bound import BoundJudged  # noqa: PLC0415 - few relations are judged

        bare = replace(gold, flaws={}, findings=())  # the judge finds the items
        return BoundJudged(bare, context.corpus, context.judging, context.judging.tasks[self])

    def task(self, measures: Sequence[Measure]) -> Task:
        """Return what the relation asks of a judge: no deeper than the measures over it read."""
        from findwell.relations.judged.judging import Task  # noqa: PLC0415

        listed = find_aspect(self.name).listed
        depths = [measure.depth(listed=listed) for measure in measures]
        known = [depth for depth in depths if depth is not None]
        depth = max(known) if known and len(known) == len(depths) else None
        return Task(self.name, depth, **self.settings())


@dataclass(frozen=True, kw_only=True)
class JudgedUnits(JudgedMatcher):
    """A relation whose items or parts are found by `splitter`: sentences by default."""

    splitter: str = "sentencex"


@dataclass(frozen=True, kw_only=True)
class JudgedList(JudgedMatcher):
    """A relation of the first `depth` chunks as a whole; 0: all of them."""

    depth: int = 0

    about_list: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the depth."""
        super().__post_init__()
        self.require(self.depth >= 0, "depth", "is a number of chunks")

    def task(self, measures: Sequence[Measure]) -> Task:
        """Return what the relation asks of a judge; `at_depth` saw to it that measures agree."""
        from findwell.relations.judged.judging import Task  # noqa: PLC0415

        del measures
        return Task(self.name, self.depth or None)


def judged_matchers() -> dict[str, type[Matcher]]:
    """Return the relations that a judge draws, by the names of the aspects."""
    return {
        name: _made(name, aspect.about, aspect.shape is VerdictShape.LIST, aspect.is_split)
        for name, aspect in ASPECTS.items()
    }


@functools.cache
def _made(name: str, about: str, whole: bool, split: bool) -> type[Matcher]:
    """Make the class of a relation: a matcher is what it is by its class."""
    base = JudgedList if whole else JudgedUnits if split else JudgedMatcher
    fields = {"name": name, "about": about, "__doc__": about, "__module__": __name__}
    return type(f"Judged{name.title()}", (base,), fields)


def at_depth(measure: Measure, matcher: Matcher) -> tuple[Measure, Matcher]:
    """Return a measure and its relation with one depth, where the relation has a depth of its own.

    `recall@5/sufficiency` reads `sufficiency(depth=5)`: a verdict about ten
    chunks says nothing about the first five.
    """
    if not isinstance(matcher, JudgedList):
        return measure, matcher
    if isinstance(measure.k, Budget):
        raise OptionError(
            f"{measure}: {matcher.name} is about the list as a whole, and a budget cuts every list "
            "at another rank",
            fix=f"cut it at a rank, for example {measure.name}@5/{matcher.name}",
        )
    if measure.k is not None:
        return measure, replace(matcher, depth=measure.k)
    return replace(measure, k=matcher.depth or None) if measure.at == "k" else measure, matcher


def has_own_depth(measure: Measure) -> bool:
    """Tell whether every cutoff of a measure needs a relation, and so verdicts, of its own."""
    relation = (measure.relation or "").partition("(")[0]
    return relation in ASPECTS and ASPECTS[relation].shape is VerdictShape.LIST


@takes_options()
def register_aspect(
    name: str,
    *,
    shape: str,
    prompt: str,
    needs: Needs = "question",
    grades: Mapping[int, str] | None = None,
    item: str = "",
    list_prompt: str | None = None,
    about: str = "",
) -> None:
    """Make something else known that a judge can judge; `NAME` is then a relation as `claims` is.

    `shape` says what one verdict is about: `chunks` (each chunk), `items` (each item of the
    reference × each chunk), `parts` (each sentence of a chunk) or `list` (all chunks together).
    `prompt` asks a model in plain words; the ids and the form of the answer are added to it.
    `needs` is what a query must have: a question or a reference. `grades` are the meanings of 0,
    1, … where verdicts about chunks are more than no and yes.

    Items are the sentences of the reference, unless `list_prompt` asks a model to list others;
    `item` is what one of them, or of the parts, is called. Registering a name again replaces the
    aspect, unless it is one of findwell's own.

    >>> from findwell import evaluate
    >>> register_aspect("recent", shape="chunks", prompt="Is the chunk about this year?")
    >>> sample = {"question": "What is new?", "contexts": ["Since May.", "In 1999."]}
    >>> judge = lambda sample: {"recent": ["May" in chunk for chunk in sample.chunks]}
    >>> evaluate([sample], measures=["P@2/recent", "RR/recent"], judge=judge).values
    {'P@2/recent': 0.5, 'RR/recent': 1.0}
    """
    if not prompt.strip():
        raise OptionError(f"the aspect {name} has no prompt", fix="ask the question in it")
    if list_prompt is not None and shape != VerdictShape.ITEMS:
        raise OptionError(f"{shape} are not listed", fix='use list_prompt with shape="items"')
    if name in MATCHERS:
        raise OptionError(f"{name} is a relation already", fix="choose another name")
    form = VerdictShape(choose("shape of an aspect", shape, [*VerdictShape]))
    units = {
        VerdictShape.CHUNKS: "chunk",
        VerdictShape.ITEMS: item or "item",
        VerdictShape.PARTS: item or "part",
    }
    unit = units.get(form, "list")
    meanings = YES_OR_NO if grades is None else dict(grades)
    aspect = Aspect(
        name=name,
        about=f"judged: {about or prompt.strip().splitlines()[0]}",
        shape=form,
        needs="reference" if form is VerdictShape.ITEMS else needs,
        unit=unit,
        prefix=unit,
        value="grade" if len(meanings) > len(YES_OR_NO) else "yes",
        grades=meanings,
        listing=None if list_prompt is None else Listing(always=True),
        prompt=prompt,
        list_prompt=list_prompt,
    )
    add_aspect(aspect)
