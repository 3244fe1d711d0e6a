"""Eleven-point average: interpolated precision over the recall axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.measures.interpolated_precision import InterpolatedPrecision
from karat.measures.measure import Measure, register_measure

if TYPE_CHECKING:
    from karat.core.data import Floats
    from karat.core.relation import Relation


@register_measure
@dataclass(frozen=True, kw_only=True)
class ElevenPoint(Measure):
    """The mean of the interpolated precision at recall 0, .1, .2, … 1.

    How many items a level asks for is that of `IPrec`, which trec_eval 10 has changed.

    Citation: Manning, Raghavan, Schütze: Introduction to Information Retrieval (2008), chapter 8.

    >>> from karat import evaluate
    >>> run, gold = {"q": ["a", "x", "b", "y"]}, {"q": ["a", "b"]}
    >>> round(evaluate(run, gold, measures=["11pt"])["11pt"], 6)
    0.848485
    """

    rel: float = 1.0

    interpolated: ClassVar[type[InterpolatedPrecision]] = InterpolatedPrecision
    name: ClassVar[str] = "11pt"
    aliases: ClassVar = {"11pt_avg": {}, "eleven_point": {}, "11_point": {}}
    at: ClassVar[str | None] = None

    def parts(self) -> tuple[Measure, ...]:
        """Return interpolated precision at the eleven levels."""
        return tuple(self.interpolated(recall=tenth / 10, rel=self.rel) for tenth in range(11))

    def compute(self, relation: Relation) -> Floats:
        """Return the mean over the eleven levels."""
        return np.asarray(sum(part.compute(relation) for part in self.parts())) / 11
