"""The scale on which a statistic is a mean: geometric means are means of logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from karat.errors import InputError, choose
from karat.measures.aggregate import GEOMETRIC_FLOOR

if TYPE_CHECKING:
    from karat.core.data import Floats

STATISTICS = ("mean", "sum", "geometric")
UNIT = (0.0, 1.0)  # between what most measures lie

Bounds: TypeAlias = tuple[float, float]
Statistic: TypeAlias = str | Sequence[str]


def each_statistic(statistic: Statistic, columns: int) -> list[str]:
    """Return the statistic of every column."""
    names = [statistic] * columns if isinstance(statistic, str) else list(statistic)
    if len(names) != columns:
        raise InputError(f"{len(names)} statistics were given for {columns} columns")
    return [choose("statistic", name, STATISTICS) for name in names]


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
