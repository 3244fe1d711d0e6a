"""An engine's way of fusing lists: a small declarative entry, and what is computed from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np

from findwell.core.errors import OptionError, choose
from findwell.core.keys import sorted_by
from findwell.relations.align import positions

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats, Ints
    from findwell.loop.tuning.pool import Pool


@dataclass(frozen=True, slots=True)
class Setting:
    """The values of an engine's knobs; those that it does not have stay unset.

    >>> print(Setting(weights=(0.7, 0.3), k=60, window=100))
    w=0.7,0.3 k=60 window=100
    """

    weights: tuple[float, ...] = ()
    k: float | None = None
    window: int | None = None  # None: the lists as they are
    normaliser: tuple[str, ...] = ()  # one for each run
    fill: float | None = None  # what stands for a document that a list lacks
    version: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the knobs that are set, as JSON has them.

        >>> Setting(weights=(1.0, 1.0), k=60).as_dict()
        {'weights': [1.0, 1.0], 'k': 60}
        """
        named = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        return {name: value for name, value in named.items() if value not in (None, [], "")}

    def __str__(self) -> str:
        same = len(set(self.normaliser)) == 1
        parts = {
            "w": ",".join(map(_short, self.weights)),
            "k": _short(self.k),
            "window": _short(self.window),
            "normaliser": ",".join(self.normaliser[:1] if same else self.normaliser),
            "fill": _short(self.fill),
            "version": self.version,
        }
        return " ".join(f"{name}={value}" for name, value in parts.items() if value)


@dataclass(frozen=True, slots=True)
class WeightRule:
    """Which weights an engine takes, and those it has by itself."""

    default: Callable[[int], tuple[float, ...]]
    high: float = math.inf
    total: float | None = None  # what they add up to
    tolerance: float = 1e-9
    positive: bool = False  # 0 is refused
    about: str = "numbers from 0"

    def check(self, weights: Sequence[float], engine: str) -> tuple[float, ...]:
        """Return the weights, or raise the error that says what is wrong with them."""
        given = tuple(float(weight) for weight in weights)
        finite = all(math.isfinite(weight) for weight in given)
        low = all(weight > 0 if self.positive else weight >= 0 for weight in given)
        shares = self.total is None or abs(math.fsum(given) - self.total) <= self.tolerance
        if not (finite and low and all(weight <= self.high for weight in given) and shares):
            shown = ", ".join(f"{weight:g}" for weight in given)
            raise OptionError(
                f"{engine} does not take the weights {shown}", fix=f"give {self.about}"
            )
        if not any(given):
            raise OptionError(f"{engine}: all weights are 0", fix="give one run a weight")
        return given


class ListValues(Protocol):
    """What a document is worth in each list: by its rank, or by its score."""

    @property
    def needs_scores(self) -> bool:
        """Whether ranks alone are not enough."""
        ...

    @property
    def normalisers(self) -> tuple[str, ...]:
        """The names of the ways to normalise scores, the usual one first."""
        ...

    def values(self, pool: Pool, inside: Bools, setting: Setting) -> Floats:
        """Return runs × rows; NaN where the document is not inside the list."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """All of a fusion that does not depend on the weights."""

    values: Floats  # runs × rows, in the precision of the engine; NaN where there is none
    kept: Bools  # the rows that the engine returns
    query: Ints  # of each row


Join: TypeAlias = "Callable[[Prepared, Floats, Setting], Floats]"  # with the weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """What an engine, or one version of it, computes."""

    lists: ListValues
    join: Join
    every_list: bool = False  # a document that a list lacks is dropped, unless it is filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How one engine fuses: an entry of the table, and the way from a pool to its scores.

    Weights, windows and names of runs are in the order of the runs. All that is None has no knob.
    """

    name: str
    about: str  # the formula: w weight, r rank from 1, s score, n normalised score
    formulas: Mapping[str, Formula]  # by version; the first is today's
    source: str  # where the formula was read
    paste: Callable[[Setting, Sequence[str]], str]
    weights: WeightRule | None = None
    k: float | None = None
    k_range: tuple[float, float] = (0, math.inf)
    whole_k: bool = False
    window: int | None = None  # how much of each list it reads by itself; None: all of it
    cut: bool = False  # the fused list is no longer than the window
    fills: bool = False  # what stands for a document that a list lacks can be set
    fill: float | None = None
    together: Callable[[tuple[str, ...]], bool] = lambda _: True  # which normalisers go together
    roles: tuple[str, ...] = ()  # of the runs, where the engine fuses exactly these
    ties: Callable[[Pool], Sequence[Any]] = lambda _: ()  # keys of rows, the first decides
    exact: str = ""  # what cannot be reproduced
    notes: tuple[str, ...] = ()  # missing documents, equal scores, traps
    precision: Literal["double", "single", "stored single"] = "double"

    @property
    def knobs(self) -> tuple[str, ...]:
        """The names of what can be set."""
        has = {
            "weights": self.weights is not None,
            "k": self.k is not None,
            "window": True,
            "normaliser": len(self.normalisers) > 1,
            "fill": self.fills,
            "version": len(self.formulas) > 1,
        }
        return tuple(name for name, there in has.items() if there)

    @property
    def needs_scores(self) -> bool:
        """Whether ranks alone are not enough."""
        return self._formula("").lists.needs_scores

    @property
    def normalisers(self) -> tuple[str, ...]:
        """The ways to normalise scores, the usual one first."""
        return self._formula("").lists.normalisers

    def defaults(self, runs: int) -> Setting:
        """Return what the engine does unless told otherwise."""
        return self.setting(runs)

    def setting(
        self,
        runs: int,
        *,
        weights: Sequence[float] | None = None,
        k: float | None = None,
        window: int | None = None,
        normaliser: str | Sequence[str] | None = None,
        fill: float | None = None,
        version: str | None = None,
    ) -> Setting:
        """Return the values of the knobs, checked; what is None is as the engine has it."""
        self._check_runs(runs)
        given = {
            "weights": weights,
            "k": k,
            "normaliser": normaliser,
            "fill": fill,
            "version": version,
        }
        for knob, value in given.items():
            if value is not None and knob not in self.knobs:
                raise OptionError(
                    f"{self.name} has no {knob} to set", fix=f"it has {', '.join(self.knobs)}"
                )
        return Setting(
            weights=self._weights(runs, weights),
            k=self._constant(k),
            window=self._window(window),
            normaliser=self._normalisers(runs, normaliser),
            fill=self._filled(fill),
            version=self._version(version),
        )

    def arranged(self, pool: Pool) -> Pool:
        """Return the pool with the rows of each query in the order that breaks the engine's ties.

        From there on, equal scores keep the order of the rows.
        """
        keys = self.ties(pool)
        return pool.take(np.lexsort((*reversed(keys), pool.query))) if keys else pool

    def inside(self, pool: Pool, setting: Setting) -> Bools:
        """Return runs × rows: whether the engine reads the document in the list."""
        read = pool.rank > 0
        return read if setting.window is None else read & (pool.rank <= setting.window)

    def drops(self, setting: Setting) -> bool:
        """Tell whether a document that a list lacks is dropped."""
        return self._formula(setting.version).every_list and setting.fill is None

    def prepare(self, pool: Pool, setting: Setting) -> Prepared:
        """Compute what does not depend on the weights."""
        self._check_runs(len(pool.runs))
        formula = self._formula(setting.version)
        inside = self.inside(pool, setting)
        values = formula.lists.values(pool, inside, setting)
        lacking = (~inside).sum(axis=0)
        kept = lacking == 0 if self.drops(setting) else lacking < len(inside)
        return Prepared(values.astype(self._arithmetic, copy=False), kept, pool.query)

    def combine(self, pool: Pool, prepared: Prepared, setting: Setting) -> Floats:
        """Return the fused score of each row; NaN for one that the engine drops."""
        del pool
        weights = np.array(setting.weights or [1] * len(prepared.values), dtype=self._arithmetic)
        with np.errstate(all="ignore"):
            fused = self._formula(setting.version).join(prepared, weights, setting)
        if self.precision == "stored single":
            fused = fused.astype(np.float32)
        return np.where(prepared.kept, fused, np.nan).astype(np.float64)

    def scores(self, pool: Pool, setting: Setting) -> Floats:
        """Return the fused score of each row; NaN for one that the engine drops."""
        return self.combine(pool, self.prepare(pool, setting), setting)

    def order(self, pool: Pool, scores: Floats, setting: Setting) -> Ints:
        """Return the rows of an arranged pool best first, query by query, as the engine does."""
        order = sorted_by({"query": pool.query, "score": scores}, descending=(False, True))
        order = order[~np.isnan(scores[order])]
        if self.cut and setting.window is not None:
            order = order[positions(pool.query[order]) <= setting.window]
        return order

    def snippet(self, setting: Setting, run_names: Sequence[str]) -> str:
        """Return the configuration that makes the engine do this, ready to paste."""
        return self.paste(setting, run_names)

    @property
    def _arithmetic(self) -> type[np.floating[Any]]:
        return np.float32 if self.precision == "single" else np.float64

    def _formula(self, version: str) -> Formula:
        return self.formulas[version or next(iter(self.formulas))]

    def _check_runs(self, runs: int) -> None:
        if self.roles and runs != len(self.roles):
            raise OptionError(
                f"{self.name} fuses {len(self.roles)} runs, not {runs}",
                fix=f"give them in this order: {', '.join(self.roles)}",
            )

    def _weights(self, runs: int, weights: Sequence[float] | None) -> tuple[float, ...]:
        if self.weights is None:
            return ()
        if weights is None:
            return self.weights.default(runs)
        if len(weights) != runs:
            raise OptionError(
                f"{len(weights)} weights for {runs} runs", fix="give one for each run"
            )
        return self.weights.check(weights, self.name)

    def _constant(self, k: float | None) -> float | None:
        if self.k is None or k is None:
            return self.k
        low, high = self.k_range
        whole = not self.whole_k or float(k).is_integer()
        if not (math.isfinite(k) and low <= k <= high and whole):
            kind = "whole number" if self.whole_k else "number"
            upto = f" to {high:g}" if math.isfinite(high) else ""
            raise OptionError(
                f"k={k:g} is not a {kind} from {low:g}{upto}",
                fix=f"{self.name} has {self.k:g} by itself",
            )
        return k

    def _window(self, window: int | None) -> int | None:
        if window is None:
            return self.window
        if type(window) is not int or window < 1:
            raise OptionError(
                f"window={window!r} is not a whole number from 1",
                fix="how many documents of each run the engine reads, for example 100",
            )
        return window

    def _normalisers(self, runs: int, given: str | Sequence[str] | None) -> tuple[str, ...]:
        if len(self.normalisers) <= 1:
            return ()
        names = self.normalisers[0] if given is None else given
        each = (names,) * runs if isinstance(names, str) else tuple(names)
        if len(each) != runs:
            raise OptionError(
                f"{len(each)} normalisers for {runs} runs", fix="give one for all, or one for each"
            )
        for name in each:
            choose(f"normaliser of {self.name}", name, self.normalisers)
        if not self.together(each):
            raise OptionError(
                f"{self.name} does not take the normalisers {', '.join(each)} together",
                fix=f"`findwell fuse --list --engine {self.name}` says what they are",
            )
        return each

    def _filled(self, fill: float | None) -> float | None:
        if not self.fills or fill is None:
            return self.fill
        if not (math.isfinite(fill) and fill >= 0):
            raise OptionError(
                f"fill={fill:g} is not a number from 0", fix="see `findwell fuse --list`"
            )
        return float(fill)

    def _version(self, version: str | None) -> str:
        if len(self.formulas) <= 1:
            return ""
        if version is None:
            return next(iter(self.formulas))
        return choose(f"version of {self.name}", version, self.formulas)


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.10g}"
