"""What a matcher is: it draws the edges between what was retrieved and one gold."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, dataclass_transform

import numpy as np
import polars as pl

from karat.core.keys import document_keys
from karat.errors import OptionError
from karat.spelling import spell_parameters
from karat.texts.words import TEXTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from karat.align.align import Aligned
    from karat.core.data import Bools, Floats, Gold, Ints
    from karat.findings import Finding
    from karat.measures import Measure
    from karat.relate.judged.judging import Judging, Task


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Gold items that are found only while edges are drawn, such as the claims of an answer."""

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
    lenient: Edges | None = None  # the same, if every failure counted as a yes


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


def rows_as_units(aligned: Aligned, text: pl.Series) -> Units:
    """Return the rows of a batch as units."""
    every = np.arange(len(aligned.query))
    return Units(aligned.query, aligned.rank, text, aligned.doc, aligned.repeat, every)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """How well units and items match: pairs that score more than 0, for explanations."""

    unit: Ints
    item: Ints
    score: Floats


@dataclass(frozen=True, slots=True)
class MatchContext:
    """What matchers may need beside run and gold."""

    corpus: pl.DataFrame | None = None  # doc and text, perhaps source, start and end
    embedder: object = None  # used instead of the model that the relation names
    ids: Any = "identity"  # how the ids of run and gold are normalised
    run_ids: Any = "identity"  # how those of the run are, where `ids` leaves them as they are
    base_url: str | None = None  # the address of an embedder `openai:MODEL`, if not the default
    judging: Judging | None = None  # who draws the relations that need a judge


class EqualKeys:
    """Finds pairs of a row and a member of the gold with the same query and the same key."""

    def __init__(self, gold: Gold, keys: pl.Series) -> None:
        self._item = gold.member_item
        self._judged = gold.item_grade >= 0
        self._doc = keys
        self._query = gold.member_query
        self._keys = document_keys(self._query, keys)

    def edges(self, units: Units) -> Edges:
        """Return the edges of units, which come sorted by query and rank."""
        unit, member = self._pairs(units.query, units.key)
        return edges_of(units, (unit, self._item[member]), self._judged)

    def _pairs(self, query: Ints, doc: pl.Series) -> tuple[Ints, Ints]:
        # of the gold only the queries of this batch; members are sorted by query
        first = np.searchsorted(self._query, query.min(initial=len(self._query)))
        last = np.searchsorted(self._query, query.max(initial=-1), side="right")
        rows = pl.DataFrame({"key": document_keys(query, doc)})
        members = pl.DataFrame({"key": self._keys[first:last]})
        pairs = rows.with_row_index("row").join(
            members.with_row_index("member"), on="key", maintain_order="left_right"
        )
        row = pairs["row"].to_numpy().astype(np.int64)
        member = pairs["member"].to_numpy().astype(np.int64) + first
        # a key is a hash: compare what it was made of
        same: Bools = query[row] == self._query[member]
        same &= (doc.gather(row) == self._doc.gather(member)).to_numpy()
        return row[same], member[same]


def edges_of(units: Units, pairs: tuple[Ints, Ints], judged_item: Bools) -> Edges:
    """Return the edges of pairs of a unit and an item, which come sorted by unit."""
    which, item = pairs
    unit = which[judged_item[item]]
    unit = unit[np.diff(unit, prepend=-1) > 0]  # each once
    judged, repeat = np.ones(len(unit), dtype=bool), np.zeros(len(unit), dtype=np.int64)
    if units.repeat is not None:
        notable = np.union1d(unit, np.flatnonzero(units.repeat))
        unit, judged = notable, np.isin(notable, unit)
        repeat = units.repeat[unit]
    return Edges(
        query=units.query[which],
        rank=units.rank[which],
        item=item,
        unit_query=units.query[unit],
        unit_rank=units.rank[unit],
        unit_judged=judged,
        unit_repeat=repeat,
        sizes=units.sizes,
    )


def edges_to_members(units: Units, unit: Ints, member: Ints, gold: Gold) -> Edges:
    """Return the edges of pairs of a unit and a member of the gold, in any order."""
    items = max(len(gold.item_grade), 1)
    distinct = np.unique(unit * items + gold.member_item[member])
    return edges_of(units, np.divmod(distinct, items), gold.item_grade >= 0)


class BoundMatcher(Protocol):
    """A matcher with one gold: it draws the edges of a run, batch by batch."""

    @property
    def gold(self) -> Gold:
        """The gold with the items that the relation counts."""

    @property
    def blank_is_unit(self) -> bool:
        """Whether a blank entry of the run is a unit that covers nothing, and not a blank id."""

    @property
    def finds_items(self) -> bool:
        """Whether items are found only while edges are drawn: see `Items`."""

    @property
    def needed(self) -> bool:
        """Whether every query needs something, even where no item is relevant."""

    @property
    def depth(self) -> int | None:
        """How many ranks of a list are looked at; None: all."""

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Return the rows of a run with the key of each unit in the column doc."""

    def edges(self, aligned: Aligned) -> Edges:
        """Return the edges of a batch, which was not cut at `depth` yet."""


class BoundByRule:
    """Base of the bound matchers that compare units with the items of the gold.

    By default units are rows, and there is an edge where the keys of `equal` are equal.
    """

    gold: Gold
    equal: EqualKeys
    blank_is_unit: bool = False
    finds_items: bool = False
    needed: bool = False
    depth: int | None = None

    def edges(self, aligned: Aligned) -> Edges:
        """Return the edges of a batch."""
        return self.draw(self.units(aligned))

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Return the rows of a run with the key of each unit in the column doc."""
        raise NotImplementedError

    def units(self, aligned: Aligned) -> Units:
        """Return the units of a batch."""
        return rows_as_units(aligned, aligned.doc)

    def draw(self, units: Units) -> Edges:
        """Return the edges of the units of a batch."""
        return self.equal.edges(units)

    def scores(self, units: Units) -> Scores | None:
        """Return how well units and items match, where that is a matter of degree."""
        del units
        return None


@dataclass(frozen=True, kw_only=True)
class Matcher:
    """Base of all matchers: a name, parameters, and how edges are drawn.

    A subclass is a frozen dataclass (`register_matcher` makes it one) whose fields are its
    parameters. `str()` is its spelling in
    measures and options, such as `rouge(threshold=0.8)`.
    """

    name: ClassVar[str]
    about: ClassVar[str]  # one line for the list of relations
    reads_texts: ClassVar[bool] = True
    judged: ClassVar[bool] = False  # whether a judge draws it, instead of a rule
    about_list: ClassVar[bool] = False  # whether a verdict is about the whole list, not a unit

    def __post_init__(self) -> None:
        """Check the parameters that several relations have."""
        threshold, text = getattr(self, "threshold", 1.0), getattr(self, "text", "raw")
        self.require(0 < threshold <= 1, "threshold", "is a number above 0, at most 1")
        self.require(text in TEXTS, "text", f"is one of {', '.join(TEXTS)}")

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
        return self.name + spell_parameters(self.settings(), self.parameters())

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


@dataclass_transform(frozen_default=True, kw_only_default=True)
def register_matcher(cls: M) -> M:
    """Class decorator: make a matcher a frozen dataclass, known by its name."""
    MATCHERS[cls.name] = dataclass(frozen=True, kw_only=True)(cls)
    return cls
