"""From the values of the queries to one number, with how many queries it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.measures import Measure

GEOMETRIC_FLOOR = 0.00001  # a zero would make every geometric mean zero


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
    undefined = len(values) - len(defined)
    if not len(defined):
        return Aggregate(None, 0, undefined)
    if measure.aggregation == "sum":
        value = float(defined.sum())
    elif measure.aggregation == "geometric":
        value = float(np.exp(np.log(np.maximum(defined, GEOMETRIC_FLOOR)).mean()))
    else:
        value = float(defined.mean())
    return Aggregate(value, len(defined), undefined)
