"""Gains: what a grade is worth in DCG and nDCG."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from findwell.core.errors import MeasureError

if TYPE_CHECKING:
    from findwell.core.data import Floats

LARGEST = 1e300  # a hundred million gains of this size can be added up


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
        if grade.max(initial=0) > LARGEST:
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
