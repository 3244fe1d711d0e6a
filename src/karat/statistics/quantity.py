"""What goes in and comes out everywhere here: checked columns, a number or the reason for none."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.errors import InputError, OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from karat.core.data import Floats


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number, or None and why there is none."""

    value: float | None
    reason: str = ""


def as_columns(values: ArrayLike) -> Floats:
    """Return the values as a table: a row a query, a column a measure or system.

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


def check_share(what: str, share: float) -> None:
    """Raise unless a level, a power or an error rate lies between 0 and 1."""
    if not 0 < share < 1:
        raise OptionError(f"the {what} is {share}", fix="give a number between 0 and 1")


def check_draws(what: str, count: int) -> None:
    """Raise unless at least one permutation or sample is asked for."""
    if count < 1:
        raise OptionError(f"{count} {what} were asked for", fix="ask for at least 1")


def extra(module: str) -> Any:  # noqa: ANN401
    """Return a module of SciPy or statsmodels."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise OptionError(
            f"this needs {(error.name or module).partition('.')[0]}",
            fix="pip install 'karat[stats]'",
        ) from None
