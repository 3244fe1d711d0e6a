"""What a matcher is: it draws the edges between what was retrieved and one gold."""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from findwell.core.columns import document_keys, equal_keys, rows_at
from findwell.core.errors import OptionError, choose
from findwell.core.plugins import Registry
from findwell.core.relation import Units, edges_of
from findwell.core.spelling import read_parameters, spell_parameters, split_parameters
from findwell.core.texts.words import TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from findwell.core.data import Bools, Floats, Gold, Ints, RunStream
    from findwell.core.findings import Finding
    from findwell.core.relation import Edges
    from findwell.measures import Measure
    from findwell.relations.align import Aligned
    from findwell.relations.judged.judging import Judging, Task
    from findwell.relations.pipeline import Drawn
    from findwell.relations.preflight import UnmetRun


def rows_as_units(aligned: Aligned, text: pl.Series) -> Units:
    """Return the rows of a batch as units."""
    every = np.arange(len(aligned.query))
    return Units(
        aligned.query, aligned.rank, text, aligned.doc, aligned.repeat, every, keys=aligned.keys
    )


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """How well units and items match: pairs that score more than 0, for explanations."""

    unit: Ints
    item: Ints
    score: Floats


@dataclass(frozen=True, slots=True)
class MatchContext:
    """What matchers may need in addition to run and gold."""

    corpus: pl.DataFrame | None = None  # doc and text, perhaps source, start and end
    embedder: object = None  # used instead of the model that the relation names
    ids: Any = "identity"  # how the ids of run and gold are normalised
    run_ids: Any = "identity"  # how those of the run are, where `ids` leaves them as they are
    base_url: str | None = None  # the address of an embedder `openai:MODEL`, if not the default
    judging: Judging | None = None  # who draws the relations that need a judge
    tokenizer: object = None  # what counts tokens, where measures ask for them
    chosen: bool = False  # whether the user said what is compared


class EqualKeys:
    """Finds pairs of a row and a member of the gold with the same query and the same key."""

    def __init__(self, gold: Gold, keys: pl.Series) -> None:
        self._item = gold.member_item
        self._weight = gold.member_weight
        self._judged = gold.item_grade >= 0
        self._doc = keys
        kind = gold.member_item.dtype  # numbers of two kinds would be copied for the search
        self._offset = np.searchsorted(gold.member_item, gold.item_offset.astype(kind))

    def edges(self, units: Units) -> Edges:
        """Return the edges of units, which come sorted by query and rank."""
        unit, member = self._pairs(units)
        weight = None if self._weight is None else self._weight[member]
        return edges_of(units, (unit, self._item[member]), self._judged, weight)

    def _pairs(self, units: Units) -> tuple[Ints, Ints]:
        query, doc = units.query, units.key
        new = np.flatnonzero(np.diff(query, prepend=-1))
        asked = np.unique(query[new])  # of the gold only the queries of this batch
        first, size = self._offset[asked], np.diff(self._offset)[asked]
        members = np.arange(size.sum()) + np.repeat(first - np.cumsum(size) + size, size)
        of_query, docs = np.repeat(asked, size), rows_at(self._doc, members)
        keys = document_keys(query, doc) if units.keys is None else units.keys
        row, place = equal_keys(keys, document_keys(of_query, docs))
        # a key is a hash: compare what it was made of
        same: Bools = query[row] == of_query[place]
        same &= (doc.gather(row) == docs.gather(place)).to_numpy()
        return row[same], members[place[same]]


def edges_to_members(units: Units, unit: Ints, member: Ints, gold: Gold) -> Edges:
    """Return the edges of pairs of a unit and a member of the gold, in any order."""
    items = max(len(gold.item_grade), 1)
    distinct, which = np.unique(unit * items + gold.member_item[member], return_inverse=True)
    weight = None
    if gold.member_weight is not None:  # of several documents of an item the best counts
        weight = np.zeros(len(distinct))
        np.maximum.at(weight, which, gold.member_weight[member])
    return edges_of(units, np.divmod(distinct, items), gold.item_grade >= 0, weight)


class BoundMatcher:
    """A matcher with one gold: it draws the edges of a run, batch by batch."""

    gold: Gold  # with the items that the relation counts
    blank_is_unit: bool = False  # whether a blank entry of the run is a unit, not an id
    finds_items: bool = False  # whether items are found only while edges are drawn: see `Items`
    needed: bool = False  # whether every query needs something, even where no item is relevant
    depth: int | None = None  # how many ranks of a list are looked at; None: all
    # whether the edges of a unit depend on the units above it; if in doubt, say so
    order_matters: bool = True
    plain_ids: bool = False  # ids are all that is compared, as given: compiled code can do that

    def rows(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, list[Finding]]:
        """Return the rows of a run with the key of each unit in the column doc."""
        raise NotImplementedError

    def check_rows(self, findings: list[Finding], documents: int, role: str) -> list[Finding]:
        """Return what is worth knowing of what was found about the rows of a run.

        Raise where none of its documents has what is compared; ids are always there.
        """
        del documents, role
        return findings

    def edges(self, aligned: Aligned) -> Edges:
        """Return the edges of a batch, which was not cut at `depth` yet."""
        raise NotImplementedError

    def nothing_met(self, run: UnmetRun) -> list[Finding]:
        """Look at a run that met no item; raise where it cannot be about the gold's documents."""
        del run
        return []

    def met_in_part(
        self, run: RunStream, drawn: Drawn, redraw: Callable[[Any], Drawn]
    ) -> list[Finding]:
        """Look at a run that met some items; `redraw` draws it for another bound matcher."""
        del run, drawn, redraw
        return []


class BoundByRule(BoundMatcher):
    """Base of the bound matchers that compare units with the items of the gold.

    By default units are rows, and there is an edge where the keys of `equal` are equal.
    """

    equal: EqualKeys

    def edges(self, aligned: Aligned) -> Edges:
        """Return the edges of a batch."""
        return self.draw(self.units(aligned))

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
        defaults = self.parameters()
        return self.name + (spell_parameters(self.settings(), defaults) if defaults else "")

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
            what = f"{parameter}={getattr(self, parameter)} of {self.name} is out of range"
            raise OptionError(what, fix=f"{parameter} {range_}")


MATCHERS: Registry[type[Matcher]] = Registry(
    "relation", package="findwell.relations.match", group="findwell.relations"
)

M = TypeVar("M", bound=type[Matcher])


@dataclass_transform(frozen_default=True, kw_only_default=True)
def register_matcher(cls: M) -> M:
    """Class decorator: make a matcher a frozen dataclass, known by its name."""
    return MATCHERS.register(cls.name, dataclass(frozen=True, kw_only=True)(cls))  # type: ignore[return-value]


def find_matcher(
    spec: str | Matcher,
    choices: Mapping[str, Mapping[str, Any]] | None = None,
    **parameters: Any,  # noqa: ANN401
) -> Matcher:
    """Return the matcher of this name, for `by=`.

    Parameters are given in the name or next to it; `choices` are those of a dialect, by relation.

    >>> str(find_matcher("rouge(threshold=0.80)")), str(find_matcher("exact", text="raw"))
    ('rouge(threshold=0.8)', 'exact(text=raw)')
    >>> find_matcher("rouge(treshold=0.8)")
    Traceback (most recent call last):
    findwell.core.errors.OptionError: rouge has no parameter 'treshold'
      fix: did you mean threshold? (it takes: threshold, text, form)
    """
    if isinstance(spec, Matcher):
        return spec
    parts = re.fullmatch(r"\s*([^()\s]+)\s*(?:\(([^()]*)\))?\s*", spec)
    if parts is None:
        raise OptionError(
            f"{spec!r} is not the name of a relation", fix="for example rouge(threshold=0.8)"
        )
    name = parts[1].lower()
    cls = MATCHERS.built_in(name)  # others need not be imported for it
    if cls is None:
        known = known_matchers()
        cls = known[choose("relation", name, known)]
    given: dict[str, Any] = {}
    if parts[2]:
        texts = dict(split_parameters(parts[2], spec, OptionError))
        given = read_parameters(name, texts, cls.parameters(), OptionError)
    for parameter in parameters:
        choose(f"parameter of {name}", parameter, cls.parameters())
    return cls(**{**(choices or {}).get(name, {}), **given, **parameters})


def known_matchers() -> dict[str, type[Matcher]]:
    """Return all matchers by name, ids first."""
    from findwell.relations.match.judged import judged_matchers  # noqa: PLC0415 - it imports from here

    known = {**MATCHERS.known(), **judged_matchers()}
    return dict(sorted(known.items(), key=lambda entry: (entry[0] != "ids", entry[0])))
