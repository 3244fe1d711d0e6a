"""A search space: which knobs there are, which values each may have, and how they are tried.

It is written as a TOML file, or as a dict of the same form::

    [knobs]                                    # what may be turned
    k1 = { low = 0.8, high = 2.0, step = 0.4 } # a range
    b = [0.5, 0.75, 1.0]                       # a list of values
    stemmer = "english"                        # one value: the same for all

    [current]                                  # what is in use today
    k1 = 1.2
    b = 0.75

    [search]                                   # how it is searched
    how = "grid"

    [retrieval]                                # how a retriever is asked
    k = 10
    concurrency = 8
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from findwell.core.errors import InputError, OptionError, choose, naming_files, unknown
from findwell.core.spelling import spell
from findwell.io.storage.spool import refuse_device
from findwell.retrievers.retriever import RetrievalOptions, Retriever

SpaceLike: TypeAlias = "Space | Mapping[str, Any] | str | os.PathLike[str]"

SPACE_PARTS = ("knobs", "current", "search", "retrieval")
RANGE_KEYS = ("low", "high", "step", "steps", "log")
SEARCHES = {
    "grid": "every combination of the values",
    "random": "as many combinations as `trials` says, drawn at random",
    "optuna": "as many as `trials` says, each proposed from what the earlier ones measured",
}
# how a retriever is asked; where answers are kept and names of runs are said elsewhere
RETRIEVAL_KEYS = [key for key in RetrievalOptions.__annotations__ if key not in ("resume", "name")]
MOST_SETTINGS = 20_000  # settings that are tried; more are a mistake, or a matter for a sampler
VALUE_DIGITS = 10  # of the values of a range: 0.1 + 0.2 is 0.3
EXAMPLE_SPACE = "[knobs]\nk1 = { low = 0.8, high = 2.0, step = 0.4 }\nb = [0.5, 0.75]"


class Knobs(dict[str, Any]):
    """A value for each knob.

    >>> print(Knobs({"k1": 1.2, "weights": (0.7, 0.3), "stemmer": "english"}))
    k1=1.2 weights=0.7,0.3 stemmer=english
    """

    def as_dict(self) -> dict[str, Any]:
        """Return the values as JSON has them."""
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in self.items()
        }

    def __str__(self) -> str:
        return " ".join(f"{name}={_written(value)}" for name, value in self.items())


@dataclass(frozen=True, slots=True)
class Knob:
    """A knob, and the values that it may have: a list of them, or a range."""

    name: str
    values: tuple[Any, ...] = ()  # all of them, in order; none: a range without steps
    lowest: float | None = None  # of a range
    highest: float | None = None
    log: bool = False  # a range on the scale of logarithms
    whole: bool = False  # only whole numbers of the range
    share: float | None = None  # weights of several runs, in steps of this, that add up to 1

    @property
    def continuous(self) -> bool:
        """Whether any number of the range will do."""
        return not self.values

    def draw(self, random: np.random.Generator) -> Any:  # noqa: ANN401
        """Return one of the values at random."""
        if self.values:
            return self.values[int(random.integers(len(self.values)))]
        ends = float(self.lowest or 0.0), float(self.highest or 0.0)
        if self.log:
            number = math.exp(random.uniform(math.log(ends[0]), math.log(ends[1])))
        else:
            number = random.uniform(*ends)
        return round(number) if self.whole else rounded(number)


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How a space is searched; `first`, `eta` and `final` are for retrievers that are asked."""

    how: str = "grid"
    trials: int = 100  # of `random` and `optuna`
    seed: int = 0
    eta: int | None = None  # of each rung the best 1 ÷ eta go on; None: 3, or as there is room
    first: int | None = None  # queries of the first rung; None: as many as there are room for
    final: float = 1 / 3  # share of the queries that only the final claim is made on


@dataclass(frozen=True, slots=True)
class Space:
    """Knobs with their values, the setting in use today if it is known, and how to search."""

    knobs: tuple[Knob, ...]
    current: Mapping[str, Any] | None = None
    search: SearchPlan = field(default_factory=SearchPlan)
    where: str = "space"
    # options of `findwell.retrievers.Retriever`
    retrieval: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, data: SpaceLike) -> Space:
        """Read a space from a TOML or JSON file, or from a dict of the same form.

        >>> space = Space.of({"knobs": {"b": [0.5, 0.75], "k1": {"low": 1, "high": 3}}})
        >>> space.names, space.size
        (('b', 'k1'), 6)
        """
        if isinstance(data, Space):
            return data
        where, given = "space", data
        if isinstance(data, str | os.PathLike):
            where = os.fspath(data)
            given = _read(where)
        if not isinstance(given, Mapping):
            raise OptionError(
                f"a {type(given).__name__} is not a search space",
                where=where,
                fix='name a TOML file, or give a dict: {"knobs": {"b": [0.5, 0.75]}}',
            )
        parts = _parts(given, where)
        knobs = tuple(
            _knob(str(name), value, f"{where}: {name}") for name, value in parts["knobs"].items()
        )
        plan = _plan(parts.get("search", {}), f"{where}: search")
        asking = parts.get("retrieval", {})
        with naming_files({"": f"{where}: retrieval"}):
            asked = {
                choose("option of retrieval", str(name), RETRIEVAL_KEYS): asking[name]
                for name in asking
            }
            Retriever(lambda _: [], **asked)  # checks the values
        space = cls(knobs, None, plan, where, asked)
        if "current" in parts:
            space = space.with_current(parts["current"])
        for knob in knobs:
            if plan.how == "grid" and knob.continuous and knob.share is None:
                raise OptionError(
                    f"a grid needs to know which numbers between {knob.lowest:g} and "
                    f"{knob.highest:g}",
                    where=f"{where}: {knob.name}",
                    fix='give a step or steps, or search = { how = "random", trials = 50 }',
                )
        return space

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the knobs."""
        return tuple(knob.name for knob in self.knobs)

    @property
    def size(self) -> int | None:
        """How many settings there are; None if a range has any number of them."""
        if any(knob.continuous for knob in self.knobs):
            return None
        return math.prod(len(knob.values) for knob in self.knobs)

    def with_current(self, current: Mapping[str, Any]) -> Space:
        """Return the same space with the setting in use; it may lie between the values tried."""
        given = {}
        for name, value in current.items():
            choose_knob(str(name), self.names, f"{self.where}: current")
            given[str(name)] = _value(value, f"{self.where}: current: {name}")
        fixed = {knob.name: knob.values[0] for knob in self.knobs if len(knob.values) == 1}
        lacking = [name for name in self.names if name not in current and name not in fixed]
        if lacking:
            raise OptionError(
                f"the current setting has no {lacking[0]}",
                where=self.where,
                fix="give the value of every knob that is in use today, or leave out the table",
            )
        return replace(self, current={name: (fixed | given)[name] for name in self.names})

    def settings(self) -> list[Knobs]:
        """Return the settings to try: of a grid all, else as many different ones as are drawn.

        >>> Space.of({"knobs": {"b": [0.5, 0.75], "n": [1, 2]}}).settings()[1]
        {'b': 0.5, 'n': 2}
        """
        for knob in self.knobs:
            if knob.share is not None and not knob.values:
                raise OptionError(
                    "a step alone is for the weights of recorded runs",
                    where=f"{self.where}: {knob.name}",
                    fix="give a range, { low = 0.0, high = 1.0, step = 0.1 }, or a list",
                )
        if self.search.how == "grid":
            refuse_too_many(self.size or 0, self.where)
            return [
                Knobs(zip(self.names, values, strict=True))
                for values in product(*(knob.values for knob in self.knobs))
            ]
        random = np.random.default_rng(self.search.seed)
        found: dict[str, Knobs] = {}
        # a small space is soon exhausted: then nothing new is likely
        for _ in range(20 * self.search.trials):
            setting = Knobs({knob.name: knob.draw(random) for knob in self.knobs})
            found.setdefault(identify(setting), setting)
            if len(found) == self.search.trials:
                break
        return list(found.values())


def identify(setting: Mapping[str, Any]) -> str:
    """Return what distinguishes a setting from others; the order of the knobs does not.

    >>> identify({"b": 1, "a": True}) == identify({"a": True, "b": 1}) != identify({"a": 1, "b": 1})
    True
    """
    return json.dumps(dict(sorted(setting.items())), default=str)


def _written(value: object) -> str:
    if isinstance(value, tuple | list):
        return ",".join(map(_written, value))
    return str(value).lower() if isinstance(value, bool) else spell(value)


def rounded(value: float) -> float:
    """Return a number without the noise of the last digits.

    >>> rounded(0.1 + 0.2)
    0.3
    """
    return float(f"{value:.{VALUE_DIGITS}g}")


def choose_knob(name: str, known: Iterable[str], where: str) -> str:
    """Return the name if it is that of a knob; otherwise raise the error that suggests one."""
    with naming_files({"": where}):
        return choose("knob", name, known)


def refuse_too_many(settings: int, where: str) -> None:
    """Raise if a grid has more settings than are tried."""
    if settings > MOST_SETTINGS:
        raise OptionError(
            f"the grid has {settings:,} settings; at most {MOST_SETTINGS:,} are tried",
            where=where,
            fix='take larger steps, or search = { how = "random", trials = 200 }',
        )


def _read(where: str) -> Mapping[str, Any]:
    path = Path(where)
    try:
        refuse_device(path)
        text = path.read_text(encoding="utf-8")
        found: Mapping[str, Any] = (
            json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        )
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from None
    except (ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise InputError(f"not valid {kind}: {error}", where=where, fix=EXAMPLE_SPACE) from None
    return found


def _parts(given: Mapping[str, Any], where: str) -> dict[str, Mapping[str, Any]]:
    """Return the tables of a space, or raise the error that says what is wrong with them."""
    parts = {str(name): table for name, table in given.items()}
    for name, table in parts.items():
        if name not in SPACE_PARTS:
            error = unknown("part of a search space", name, SPACE_PARTS)
            error.where, error.fix = where, f"{error.fix}; a knob stands below [knobs]"
            raise error
        if not isinstance(table, Mapping):
            raise OptionError(
                f"{name} is not a table", where=where, fix=f"write [{name}] above its keys"
            )
    if not parts.get("knobs"):
        raise OptionError("the space has no knobs", where=where, fix=EXAMPLE_SPACE)
    return parts


def _knob(name: str, given: object, where: str) -> Knob:
    if not name.isidentifier():
        raise OptionError(
            f"{name!r} cannot be the name of a knob", where=where, fix="use letters, digits and _"
        )
    if isinstance(given, Mapping):
        return _range(name, {str(key): value for key, value in given.items()}, where)
    if isinstance(given, list | tuple):
        if not given:
            raise OptionError("it has no value to try", where=where, fix="name at least one")
        values = tuple(_value(value, where) for value in given)
        seen = [identify({name: value}) for value in values]
        again = next((at for at, each in enumerate(seen) if each in seen[:at]), None)
        if again is not None:
            raise OptionError(
                f"{_written(values[again])} is there twice", where=where, fix="name it once"
            )
        return Knob(name, values)
    return Knob(name, (_value(given, where),))


def _range(name: str, given: dict[str, Any], where: str) -> Knob:
    with naming_files({"": where}):
        for key in given:
            choose("key of a range", key, RANGE_KEYS)
    log = given.get("log", False)
    if not isinstance(log, bool):
        raise OptionError(f"log is {log!r}", where=where, fix="write true or false")
    numbers = {key: value for key, value in given.items() if key != "log"}
    for key, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            raise OptionError(f"{key} is {value!r}", where=where, fix="give a number")
    if list(given) == ["step"]:
        return Knob(name, share=float(given["step"]))
    for key in ("low", "high"):
        if key not in numbers:
            raise OptionError(f"a range needs {key}", where=where, fix="{ low = 0.0, high = 1.0 }")
    low, high = numbers["low"], numbers["high"]
    if not low < high:
        raise OptionError(
            f"the range goes from {low:g} to {high:g}", where=where, fix="give low below high"
        )
    if log and low <= 0:
        raise OptionError(
            f"a range of logarithms cannot begin at {low:g}", where=where, fix="give low above 0"
        )
    whole = all(isinstance(each, int) for key, each in numbers.items() if key != "steps")
    values = _stepped(numbers, where, log=log, whole=whole)
    return Knob(name, values, float(low), float(high), log, whole)


def _stepped(given: dict[str, Any], where: str, *, log: bool, whole: bool) -> tuple[Any, ...]:
    """Return the numbers of a range, both ends included where the steps meet them."""
    low, high, step, steps = given["low"], given["high"], given.get("step"), given.get("steps")
    if step is not None and (steps is not None or log):
        other = "steps" if steps is not None else "log"
        raise OptionError(f"it has both step and {other}", where=where, fix=f"leave out {other}")
    if steps is not None:
        if not isinstance(steps, int) or not 2 <= steps <= MOST_SETTINGS:
            raise OptionError(
                f"steps is {steps!r}", where=where, fix="give how many numbers to try, 2 or more"
            )
        spaced = np.geomspace(low, high, steps) if log else np.linspace(low, high, steps)
        if whole:
            return tuple(dict.fromkeys(int(value) for value in np.rint(spaced)))
        return tuple(rounded(value) for value in spaced.tolist())
    if step is None:
        if not whole or log:
            return ()
        step = 1
    if step <= 0:
        raise OptionError(f"step is {step!r}", where=where, fix="give a number above 0")
    count = math.floor((high - low) / step * (1 + 1e-12)) + 1
    refuse_too_many(count, where)
    if whole:
        return tuple(range(low, high + 1, step))
    return tuple(rounded(low + at * step) for at in range(count))


def _value(value: object, where: str) -> object:
    """Return a value of a knob: a text, a number, true or false, or several of these."""
    each = list(value) if isinstance(value, list | tuple) else [value]
    known = (
        isinstance(one, str) or (isinstance(one, int | float) and _finite(one)) for one in each
    )
    if not each or not all(known):
        raise OptionError(
            f"{value!r:.60} is not a value of a knob",
            where=where,
            fix="give a text, a finite number, true or false, or a list of these",
        )
    return tuple(value) if isinstance(value, list | tuple) else value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _plan(given: Mapping[str, Any], where: str) -> SearchPlan:
    least: dict[str, int] = {"trials": 1, "seed": 0, "eta": 2, "first": 1}
    with naming_files({"": where}):
        for name, value in given.items():
            choose("key of search", str(name), [*SearchPlan.__dataclass_fields__])
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if name == "how":
                choose("way to search", str(value), SEARCHES)
            elif name == "final":
                if not number or not 0 < value < 1:
                    raise OptionError(f"final is {value!r}", fix="give a share between 0 and 1")
            elif not number or not isinstance(value, int) or value < least[name]:
                fix = f"give a whole number from {least[name]} up"
                raise OptionError(f"{name} is {value!r}", fix=fix)
        plan = SearchPlan(**given)
        refuse_too_many(plan.trials, where)
    return plan


def as_shares(numbers: Sequence[float], step: float = 0.01) -> tuple[float, ...]:
    """Return weights in proportion to these numbers, multiples of the step that add up to 1.

    >>> as_shares([1, 1, 1]), as_shares([0.1, 0.5, 0.4], 0.5)
    ((0.34, 0.33, 0.33), (0.0, 0.5, 0.5))
    """
    parts = round(1 / step)
    total = math.fsum(numbers)
    shares = np.asarray(numbers) / total if total else np.full(len(numbers), 1 / len(numbers))
    exact = shares * parts
    whole = np.floor(exact + 1e-9)
    # what is left goes to those that were cut most
    for at in np.argsort(whole - exact, kind="stable")[: round(parts - whole.sum())]:
        whole[at] += 1
    return tuple(rounded(part / parts) for part in whole.tolist())
