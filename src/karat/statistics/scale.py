"""The scale on which a statistic is a mean: geometric means are means of logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from karat.aggregate import GEOMETRIC_FLOOR
from karat.errors import InputError, choose

if TYPE_CHECKING:
    from karat.data import Floats

STATISTICS = ("mean", "sum", "geometric")

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


def from_scale(mean: float, name: str, n: int) -> float:
    """Return the statistic of `n` values whose mean on its scale is known.

    >>> from_scale(0.25, "sum", 8)
    2.0
    """
    if name == "geometric":
        return float(np.exp(mean))
    return mean * n if name == "sum" else mean
