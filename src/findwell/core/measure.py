"""What a measure is: an immutable value that turns a relation into one number per query.

It cuts a list after k ranks, or where a budget of tokens, characters or calls is spent, and may
turn the grades of items into gains.
"""

from __future__ import annotations

import math
import re
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, dataclass_transform

import numpy as np

from findwell.core.errors import MeasureError, choose
from findwell.core.plugins import Registry
from findwell.core.spelling import spell, spell_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from findwell.core.data import Bools, Floats, Ints
    from findwell.core.relation import Relation


# the units of a budget, with the ways in which they are spelled
UNITS = {
    "tokens": "tokens token",
    "chars": "chars char characters character",
    "hops": "hops hop calls call searches",
}
COUNTED_UNITS = ("tokens", "chars")  # what is counted in the texts of chunks
SPELLINGS = {word: unit for unit, words in UNITS.items() for word in words.split()}
_AMOUNT = re.compile(r"(?P<amount>\d{1,15})[\s_]*(?P<word>[a-z]+)|hop(?P<hop>\d{1,15})")


@dataclass(frozen=True, slots=True)
class Budget:
    """What the list of a query may cost: a number of tokens, characters or hops.

    Chunks are taken in rank order as long as all of them together stay within the budget. The one
    that would cross it is left out, and so is everything below it.

    >>> str(Budget(2000, "tokens"))
    '2000tokens'
    """

    amount: int
    unit: str

    def __post_init__(self) -> None:
        """Check the amount and the unit."""
        choose("unit of a budget", self.unit, UNITS)
        if type(self.amount) is not int or self.amount < 1:
            raise MeasureError(
                f"the budget {self.amount}{self.unit} is not a whole number from 1",
                fix=f"for example recall@2000{self.unit}",
            )

    def __str__(self) -> str:
        return f"{self.amount}{self.unit}"


Cutoff: TypeAlias = "int | Budget"


def read_budget(text: str) -> Budget | None:
    """Return the budget that a cutoff spells; None if it spells none.

    >>> read_budget("2000tokens"), read_budget("hop2"), read_budget("10")
    (Budget(amount=2000, unit='tokens'), Budget(amount=2, unit='hops'), None)
    """
    found = _AMOUNT.fullmatch(text.strip().casefold())
    if found is None:
        return None
    if found["hop"]:
        return Budget(int(found["hop"]), "hops")
    unit = SPELLINGS.get(found["word"])
    return None if unit is None else Budget(int(found["amount"]), unit)


Aggregation: TypeAlias = Literal["mean", "sum", "geometric"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a measure adds up: values by query and rank, or a count of 1 each."""

    query: Ints
    rank: Ints
    value: Floats | None = None


@dataclass(frozen=True, slots=True)
class Ideal:
    """The best list there could be: what it gains at each rank, before the discount."""

    query: Ints
    rank: Ints
    gain: Floats


@dataclass(frozen=True, slots=True)
class Divisor:
    """What a measure divides by: one value per query, or one for all."""

    name: str
    value: Floats | Ints | float
    ideal: Ideal | None = None  # the list that it was added up from, if there is one

    @classmethod
    def discounted(cls, name: str, relation: Relation, ideal: Ideal) -> Divisor:
        """Add up the gains of an ideal list, each divided by log2(rank + 1)."""
        gained = ideal.gain / relation.discount.take(ideal.rank)
        return cls(name, relation.total(ideal.query, gained), ideal)


@dataclass(frozen=True, slots=True)
class Limit:
    """What is done to a quotient in the end, and how that is described."""

    says: str
    apply: Callable[[Floats], Floats]


AT_MOST_ONE = Limit("at most 1", lambda quotient: np.minimum(quotient, 1))


ANY_GAIN = float(np.nextafter(0.0, 1.0))  # the level at which every positive grade counts


def known_as(names: str, **implied: str) -> dict[str, Mapping[str, str]]:
    """Return aliases, separated by spaces, with the parameters that they imply.

    >>> known_as("MRR recip_rank") | known_as("context_recall", relation="claims")
    {'MRR': {}, 'recip_rank': {}, 'context_recall': {'relation': 'claims'}}
    """
    return dict.fromkeys(names.split(), implied)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Base of all measures: a name, a cutoff, parameters, and a formula over a relation.

    A subclass is a frozen dataclass (`register_measure` makes it one) whose fields are its
    parameters, with its formula as `terms`
    (in words: `adds`), `divisor` and `limit`, or as `compute` if it is not a sum, and a docstring
    that defines it. `k` cuts the list (None: all of it) after k ranks, or where a `Budget`
    is spent; `relation` names the relation it reads (None: the one the evaluation was asked for).
    """

    k: Cutoff | None = None
    relation: str | None = None

    name: ClassVar[str]
    formula: ClassVar[str] = ""  # in LaTeX, for the documentation
    # other spellings → the parameters they imply; {k} and {parameter} stand for a number
    aliases: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    at: ClassVar[str | None] = "k"  # which field the number behind @ fills; None: takes none
    aggregation: ClassVar[Aggregation] = "mean"
    # undefined for a query without a relevant item; but if it does not count items, and documents
    # were judged, it has a value
    needs_relevant: ClassVar[bool] = True
    unit_interval: ClassVar[bool] = True  # stays within 0 and 1
    higher_is_better: ClassVar[bool] = True
    any_grade: ClassVar[bool] = False  # every grade above 0 counts as relevant, whatever `rel` is
    # whether a value also depends on items that no unit down to k covers, such as a divisor of all
    # relevant items or an ideal list; if in doubt, say so
    counts_items: ClassVar[bool] = True
    only_grows: ClassVar[bool] = False  # whether what is added below a list never lowers its value
    why_undefined: ClassVar[str] = "no relevant item"
    adds: ClassVar[str] = ""  # what the terms are, as an instruction: Count the relevant units
    limit: ClassVar[Limit | None] = None  # what becomes of the quotient in the end

    def terms(self, relation: Relation) -> Terms:
        """Return what is added up, each term at the rank where it arises."""
        raise NotImplementedError

    def divisor(self, relation: Relation) -> Divisor:
        """Return what the sum is divided by, and what that is called."""
        del relation
        return Divisor("nothing", 1.0)

    def compute(self, relation: Relation) -> Floats:
        """Return one value per query: the limit of the sum of the terms ÷ the divisor.

        What it returns for an undefined query is not looked at.
        """
        terms = self.terms(relation)
        total: Floats | Ints = (
            relation.count(terms.query)
            if terms.value is None
            else relation.total(terms.query, terms.value)
        )
        quotient = total / self.divisor(relation).value
        return quotient if self.limit is None else self.limit.apply(quotient)

    def parts(self) -> tuple[Measure, ...]:
        """Return the measures that this one is made of, if it is not a sum of its own."""
        return ()

    @property
    def bounds(self) -> tuple[float, float]:
        """Between what the values of queries lie."""
        return 0.0, 1.0 if self.unit_interval else math.inf

    def depth(self, *, listed: bool) -> int | None:
        """Return how many ranks of a list must be judged for a value; None: all of them.

        With `listed` the items are the units of the list itself, as where a judge grades what
        was retrieved: a measure that counts items then needs all of them judged, whatever the
        cutoff. How deep a budget reaches is another rank in every list.
        """
        return None if listed and self.counts_items else self.last_rank

    @property
    def last_rank(self) -> int | None:
        """The last rank that is looked at; None: all of them, or as far as a budget reaches."""
        return None if isinstance(self.k, Budget) else self.k

    def facts(self) -> frozenset[str]:
        """Return what the measure needs to know about every chunk: see `Relation.fact`."""
        return frozenset({self.k.unit} if isinstance(self.k, Budget) else ())

    @classmethod
    def is_sum(cls) -> bool:
        """Tell whether the measure is a sum of terms ÷ a divisor."""
        return cls.terms is not Measure.terms

    def level(self) -> float:
        """Return the grade from which an item counts as relevant for this measure."""
        return ANY_GAIN if self.any_grade else float(getattr(self, "rel", 1.0))

    def undefined(self, relation: Relation) -> Bools:
        """Tell which queries have no value."""
        if not self.needs_relevant or relation.needed:
            return np.zeros(relation.n, dtype=bool)
        none = np.equal(relation.relevant(self.level()), 0)
        if self.counts_items:
            return none
        # people looked, and found nothing relevant: that says nothing about what there is to find,
        # but all about the list
        return none & np.equal(relation.relevant(0.0), 0)

    def values(self, relation: Relation) -> Floats:
        """Return one value per query, NaN where the measure is undefined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(self.compute(relation), dtype=np.float64)
        if relation.needed:
            values = np.nan_to_num(values)  # nothing relevant ÷ nothing relevant
        return np.where(self.undefined(relation), np.nan, values)

    def __post_init__(self) -> None:
        """Check what holds for every measure."""
        if not isinstance(self.k, Budget | None) and (type(self.k) is not int or self.k < 1):
            raise MeasureError(
                f"the cutoff of {self.name}@{self.k} must be a whole number of at least 1",
                fix=f"for example {self.name}@10",
            )
        check_gain(getattr(self, "gain", "linear"))
        rel = getattr(self, "rel", 1.0)
        if not (math.isfinite(rel) and rel > 0):
            raise MeasureError(
                f"rel={rel} of {self.name} is not a positive number",
                fix="rel is the grade from which an item is relevant, 1 by default",
            )

    def __str__(self) -> str:
        name, implied = self._known_as()
        defaults = self.parameters()
        values = {
            each: getattr(self, each)
            for each in defaults
            if each != self.at and each not in implied
        }
        at = getattr(self, self.at) if self.at else None
        return (
            name
            + spell_parameters(values, defaults)
            + (f"@{spell(at)}" if at is not None else "")
            + (f"/{self._relation}" if self.relation and "relation" not in implied else "")
        )

    @property
    def _relation(self) -> str | None:
        """The relation as it is named behind the cutoff, which may also be its depth."""
        return self.relation and self.relation.removesuffix(f"(depth={self.k})")

    def _known_as(self) -> tuple[str, Mapping[str, Any]]:
        """Return the name and what it implies: over relations other than ids it may have its own.

        >>> from findwell.measures import parse_measure
        >>> str(parse_measure("recall@3/claims")), str(parse_measure("nDCG@3/claims"))
        ('context_recall@3', 'nDCG@3/claims')
        """
        for alias, implied in self.aliases.items():
            given = {**{name: getattr(self, name) for name in implied}, "relation": self._relation}
            if implied.get("relation", "ids") != "ids" and given == implied:
                return alias, implied
        return self.name, {}

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Return the parameters of the measure with their defaults."""
        return {
            entry.name: None if entry.default is MISSING else entry.default
            for entry in fields(cls)
            if entry.name not in ("k", "relation")
        }

    @classmethod
    def respell(cls, given: dict[str, str]) -> dict[str, str]:
        """Translate the parameters of other tools' spellings; by default there are none."""
        return given

    def with_level(self, rel: float | None) -> Measure:
        """Return the measure at another relevance level, where it has one and none was given."""
        parameters = self.parameters()
        if rel is None or "rel" not in parameters or getattr(self, "rel", 0) != parameters["rel"]:
            return self
        changes: dict[str, Any] = {"rel": rel}
        return replace(self, **changes)

    def require(self, holds: bool, parameter: str, range_: str) -> None:
        """Raise the error for a parameter that is out of its range."""
        if not holds:
            value = spell(getattr(self, parameter))
            raise MeasureError(
                f"{parameter}={value} of {self.name} is out of range", fix=f"{parameter} {range_}"
            )


@dataclass(frozen=True, kw_only=True)
class PerRelevantItem(Measure):
    """Base of the measures that divide by the relevant items."""

    rel: float = 1.0

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the relevant items."""
        return Divisor("relevant items", relation.relevant(self.rel))


def _accept(loaded: object) -> None:
    """Register what a plugin brings, if its module has not done so."""
    if isinstance(loaded, type) and issubclass(loaded, Measure):
        register_measure(loaded)


MEASURES: Registry[type[Measure]] = Registry(
    "measure", package="findwell.measures", group="findwell.measures", accept=_accept
)

M = TypeVar("M", bound=type[Measure])


@dataclass_transform(frozen_default=True, kw_only_default=True)
def register_measure(cls: M) -> M:
    """Class decorator: make a measure a frozen dataclass, known by its name and aliases.

    A name that is taken by another class is refused, so that a plugin cannot change what a
    built-in name means.
    """
    if "__dataclass_fields__" not in vars(cls):
        dataclass(frozen=True, kw_only=True)(cls)
    MEASURES.register(cls.name, cls)
    return cls


LARGEST_GAIN = 1e300  # a hundred million gains of this size can be added up


def check_gain(gain: str) -> None:
    """Raise unless `gain` is linear, exp or a table such as 0:1:3."""
    if gain not in ("linear", "exp"):
        _table(gain)


def gains(gain: str, grade: Floats) -> Floats:
    """Return what each grade is worth; grades of 0 and below are worth nothing.

    linear: the grade itself; exp: 2^grade − 1; a table `a:b:c`: a for grade 0, b for 1, c for 2.

    >>> gains("exp", np.array([-1.0, 0.0, 0.5, 3.0])).round(3).tolist()
    [0.0, 0.0, 0.414, 7.0]
    >>> gains("0:1:10", np.array([1.0, 2.0])).tolist()
    [1.0, 10.0]
    """
    grade = np.maximum(grade, 0)
    if gain == "linear":
        if grade.max(initial=0) > LARGEST_GAIN:
            raise MeasureError(
                f"the grade {grade.max():g} is too large to be added up",
                where="gold",
                fix="use a scale of smaller grades",
            )
        return grade
    if gain == "exp":
        if grade.max(initial=0) > 1000:
            raise MeasureError(
                f"2 to the power of grade {grade.max():g} is too large",
                where="gold",
                fix="use gain=linear, or a scale of smaller grades",
            )
        return np.exp2(grade) - 1
    table = _table(gain)
    index = grade.astype(np.int64)
    outside = (index != grade) | (index >= len(table))
    if outside.any():
        raise MeasureError(
            f"the gain table {gain} has no gain for grade {grade[outside][0]:g}",
            fix=f"it covers the whole grades 0 to {len(table) - 1}; name a gain for each grade",
        )
    return table[index]


def _table(gain: str) -> Floats:
    try:
        table = np.array([float(entry) for entry in gain.split(":")])
    except ValueError:
        table = np.array([np.nan])
    if len(table) < 2 or not np.isfinite(table).all() or (np.diff(table) < 0).any() or table[0]:
        raise MeasureError(
            f"gain={gain} is not a gain",
            fix="use linear, exp, or a table that starts at 0 and never falls, such as 0:1:3:7",
        )
    return table
