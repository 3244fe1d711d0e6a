"""What a matcher is: it draws the edges between what was retrieved and one gold."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from karat.errors import OptionError
from karat.spelling import spell_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from karat.align.align import Aligned
    from karat.core.data import Bools, Floats, Gold, Ints
    from karat.findings import Finding
    from karat.measures import Measure
    from karat.relate.judged.judging import Judging, Task


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Gold items that come to light only while edges are drawn, such as the claims of an answer."""

    query: Ints
    text: pl.Series
    grade: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """What a batch of a run covers: its edges, and its notable units.

    `sizes` says how many units each row of the batch holds, where units are parts of rows. Where
    there are `items`, edges count those of this batch; otherwise those of the gold.
    """

    query: Ints
    rank: Ints
    item: Ints
    unit_query: Ints
    unit_rank: Ints
    unit_judged: Bools
    unit_repeat: Ints
    sizes: Ints | None = None
    items: Items | None = None
    failures: Mapping[int, str] = field(default_factory=dict)  # queries without a value, and why
    lenient: Edges | None = None  # the same, were everything that failed a yes


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The units of a batch, by query and rank: chunks, or parts of chunks."""

    query: Ints
    rank: Ints
    text: pl.Series
    key: pl.Series  # what of the text, or of the id, counts
    repeat: Ints | None  # as in `Aligned`
    row: Ints  # of the batch
    sizes: Ints | None = None  # units in each row, where they are parts


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """How well units and items meet: pairs that score more than 0, for explanations."""

    unit: Ints
    item: Ints
    score: Floats


@dataclass(frozen=True, slots=True)
class MatchContext:
    """What matchers may need beside run and gold."""

    corpus: pl.DataFrame | None = None  # doc and text, perhaps source, start and end
    embedder: object = None  # in the place of the model that the relation names
    ids: Any = "identity"  # how the ids of run and gold are normalised
    run_ids: Any = "identity"  # how those of the run are, where `ids` leaves them as they are
    base_url: str | None = None  # where an embedder `openai:MODEL` is, if not as usual
    judging: Judging | None = None  # who draws the relations that need a judge


class BoundMatcher(Protocol):
    """A matcher at work on one gold: it draws the edges of one batch of a run after the other."""

    @property
    def gold(self) -> Gold:
        """The gold with the items that the relation counts."""

    @property
    def blank_is_unit(self) -> bool:
        """Whether a blank entry of the run is a unit that covers nothing, and not a blank id."""

    @property
    def finds_items(self) -> bool:
        """Whether items come to light only while edges are drawn: see `Items`."""

    @property
    def needed(self) -> bool:
        """Whether every query needs something, even where no item is relevant."""

    @property
    def depth(self) -> int | None:
        """How many ranks of a list are looked at; None: all."""

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Return the rows of a run with what tells units apart in the column doc."""

    def edges(self, aligned: Aligned) -> Edges:
        """Return the edges of a batch, which was not cut at `depth` yet."""


class BoundByRule:
    """Base of the bound matchers that compare units with the items of the gold."""

    gold: Gold
    blank_is_unit: bool = False
    finds_items: bool = False
    needed: bool = False
    depth: int | None = None

    def edges(self, aligned: Aligned) -> Edges:
        """Return the edges of a batch."""
        return self.draw(self.units(aligned))

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Return the rows of a run with what tells units apart in the column doc."""
        raise NotImplementedError

    def units(self, aligned: Aligned) -> Units:
        """Return the units of a batch."""
        raise NotImplementedError

    def draw(self, units: Units) -> Edges:
        """Return the edges of the units of a batch."""
        raise NotImplementedError

    def scores(self, units: Units) -> Scores | None:
        """Return how well units and items meet, where that is a matter of degree."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Matcher:
    """Base of all matchers: a name, parameters, and how edges are drawn.

    A subclass is a frozen dataclass whose fields are its parameters. `str()` is its spelling in
    measures and options, such as `rouge(threshold=0.8)`.
    """

    name: ClassVar[str]
    about: ClassVar[str]  # one line for the list of relations
    reads_texts: ClassVar[bool] = True
    judged: ClassVar[bool] = False  # whether a judge draws it, instead of a rule

    def bind(self, gold: Gold, context: MatchContext) -> BoundMatcher:
        """Begin to draw the edges to one gold."""
        raise NotImplementedError

    def task(self, measures: Sequence[Measure]) -> Task | None:
        """Return what is asked of a judge for the measures over it; None if it draws by rule."""
        del measures
        return None

    def findings(self) -> list[Finding]:
        """Return what deserves attention about the matcher itself."""
        return []

    def __str__(self) -> str:
        defaults = self.parameters()
        return self.name + spell_parameters(
            {name: getattr(self, name) for name in defaults}, defaults
        )

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Return the parameters with their defaults."""
        return {
            entry.name: None if entry.default is MISSING else entry.default for entry in fields(cls)
        }

    def settings(self) -> dict[str, Any]:
        """Return every parameter with its value, for the manifest."""
        return {name: getattr(self, name) for name in self.parameters()}

    def require(self, holds: bool, parameter: str, range_: str) -> None:
        """Raise the error for a parameter that is out of its range."""
        if not holds:
            raise OptionError(
                f"{parameter}={getattr(self, parameter)} of {self.name} is out of range",
                fix=f"{parameter} {range_}",
            )


MATCHERS: dict[str, type[Matcher]] = {}

M = TypeVar("M", bound=type[Matcher])


def register_matcher(cls: M) -> M:
    """Class decorator: make a matcher known by its name."""
    MATCHERS[cls.name] = cls
    return cls
