"""Geometric mean average precision: the measure in which the worst queries weigh most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from karat.measures.average_precision import AveragePrecision
from karat.measures.measure import Aggregation, register_measure


@register_measure
@dataclass(frozen=True, kw_only=True)
class GeometricAveragePrecision(AveragePrecision):
    """Average precision, aggregated by the geometric mean: gains on the worst queries count most.

    GMAP = exp(mean ln max(AP, 0.00001)). A query's own value is its AP.

    Citation: Robertson: On GMAP, and other transformations (CIKM 2006).

    >>> from karat import evaluate
    >>> run, gold = {"q1": ["a"], "q2": ["x", "a"]}, {"q1": ["a"], "q2": ["a"]}
    >>> round(evaluate(run, gold, measures=["GMAP"])["GMAP"], 6)
    0.707107
    """

    name: ClassVar[str] = "GMAP"
    aliases: ClassVar = {"gm_map": {}, "gm_ap": {}, "geometric_map": {}}
    aggregation: ClassVar[Aggregation] = "geometric"
