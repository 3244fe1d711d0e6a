"""Geometric mean of bpref: bpref that hears the worst queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from karat.measures.bpref import Bpref
from karat.measures.measure import Aggregation, register_measure


@register_measure
@dataclass(frozen=True, kw_only=True)
class GeometricBpref(Bpref):
    """Bpref, aggregated by the geometric mean: gains on the worst queries count most.

    gm_bpref = exp(mean ln max(bpref, 0.00001)). A query's own value is its bpref.

    Citation: trec_eval, measure `gm_bpref`; Robertson: On GMAP, and other transformations (CIKM
    2006) for the geometric mean.

    >>> from karat import evaluate
    >>> run = {"q1": ["a"], "q2": ["x", "a", "b"]}
    >>> gold = {"q1": {"a": 1}, "q2": {"a": 1, "b": 1, "x": 0, "y": 0}}
    >>> round(evaluate(run, gold, measures=["gm_bpref"])["gm_bpref"], 6)  # √(1 × ½)
    0.707107
    """

    name: ClassVar[str] = "gm_bpref"
    aliases: ClassVar = {}
    aggregation: ClassVar[Aggregation] = "geometric"
