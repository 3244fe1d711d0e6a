"""Values: checked, in columns, on the scale of their statistic; aggregated to one number."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from findwell.core.errors import InputError, OptionError, choose, needs_package

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from findwell.core.data import Floats
    from findwell.core.measure import Measure

STATISTICS = ("mean", "sum", "geometric")
GEOMETRIC_FLOOR = 0.00001  # a zero would make every geometric mean zero
UNIT = (0.0, 1.0)  # most measures lie in between

Bounds: TypeAlias = tuple[float, float]
Statistic: TypeAlias = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number, or None and the reason."""

    value: float | None
    reason: str = ""


def as_columns(values: ArrayLike) -> Floats:
    """Return the values as a table: one row per query, one column per measure or system.

    >>> as_columns([1.0, np.nan]).shape
    (2, 1)
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, np.newaxis]
    if table.ndim != 2:
        raise InputError(f"values have {table.ndim} dimensions, not one or two")
    refuse_infinite(table)
    return table


def refuse_infinite(table: Floats) -> None:
    """Raise if a value is infinite: no mean, spread or rank of it says anything."""
    if np.isinf(table).any():
        raise InputError("a value is infinite", fix="make it NaN if it is undefined")


def same_shape(first: Floats, second: Floats) -> None:
    """Raise unless the two tables can be paired by position."""
    if first.shape != second.shape:
        raise InputError(
            f"values of shape {first.shape} cannot be paired with values of shape {second.shape}",
            fix="give both a row for every query, NaN where there is no value",
        )


def is_binary(values: Floats) -> bool:
    """Say whether every value is 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def check_share(what: str, share: float) -> None:
    """Raise unless a level, a power or an error rate lies between 0 and 1."""
    if not 0 < share < 1:
        raise OptionError(f"the {what} is {share}", fix="give a number between 0 and 1")


def check_draws(what: str, count: int) -> None:
    """Raise unless at least one permutation or sample is asked for."""
    if count < 1:
        raise OptionError(f"{count} {what} were asked for", fix="ask for at least 1")


def scipy(part: str) -> Any:  # noqa: ANN401
    """Return a part of SciPy, such as `stats`; nothing else here imports it."""
    with needs_package("this", "stats"):
        return importlib.import_module(f"scipy.{part}")


def choose_statistic(name: str) -> str:
    """Return the name if it is that of a statistic; otherwise raise the error."""
    return name if name in STATISTICS else choose("statistic", name, STATISTICS)


def each_statistic(statistic: Statistic, columns: int) -> list[str]:
    """Return the statistic of every column."""
    names = [statistic] * columns if isinstance(statistic, str) else list(statistic)
    if len(names) != columns:
        raise InputError(f"{len(names)} statistics were given for {columns} columns")
    return [choose_statistic(name) for name in names]


def to_scale(table: Floats, names: Sequence[str]) -> Floats:
    """Return the values whose mean the statistic of each column is made from."""
    if "geometric" not in names:
        return table
    scaled = table.copy()
    geometric = np.array([name == "geometric" for name in names])
    scaled[:, geometric] = np.log(np.maximum(table[:, geometric], GEOMETRIC_FLOOR))
    return scaled


def bounds_on_scale(
    bounds: Bounds | Sequence[Bounds], names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Return the lower and the upper bound of each column, as its values are after `to_scale`.

    >>> [bound.tolist() for bound in bounds_on_scale((0.0, 1.0), ["mean", "geometric"])]
    [[0.0, -11.512925464970229], [1.0, 0.0]]
    """
    table = np.asarray(bounds, dtype=np.float64)
    if table.ndim == 1:
        table = np.tile(table, (len(names), 1))
    if table.shape != (len(names), 2):
        raise InputError(f"{len(table)} pairs of bounds were given for {len(names)} columns")
    low, high = to_scale(table.T, names)
    return low, high


def from_scale(mean: float, name: str, n: int) -> float:
    """Return the statistic of `n` values whose mean on its scale is known.

    >>> from_scale(0.25, "sum", 8)
    2.0
    """
    if name == "geometric":
        return float(np.exp(mean))
    return mean * n if name == "sum" else mean


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One number over many queries; None where no query has a value."""

    value: float | None
    n: int  # queries with a value
    undefined: int  # queries without one


def aggregate(measure: Measure, values: Floats) -> Aggregate:
    """Aggregate the values of a measure over queries; NaN is undefined and left out.

    >>> from findwell.measures import parse_measure
    >>> aggregate(parse_measure("AP"), np.array([1.0, 0.5, np.nan]))
    Aggregate(value=0.75, n=2, undefined=1)
    """
    defined = values[~np.isnan(values)]
    value = statistic_of(defined, measure.aggregation)
    return Aggregate(value, len(defined), len(values) - len(defined))


def statistic_of(values: Floats, name: str) -> float | None:
    """Return a statistic of values, none of which is NaN; None if there are none."""
    if not len(values):
        return None
    if name == "sum":
        return float(values.sum())
    return from_scale(float(to_scale(values[:, np.newaxis], [name])[:, 0].mean()), name, 1)
