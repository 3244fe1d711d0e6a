"""Precision and recall in one number."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Measure, known_as, register_measure
from findwell.measures.precision import Precision
from findwell.measures.recall import Recall

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation


@register_measure
class FScore(Measure):
    """The weighted harmonic mean of precision and recall.

    F(beta)@k = (1 + beta²) · P · R ÷ (beta² · P + R), 0 when both are 0. beta > 1 favours recall.
    trec_eval's `set_F.x` weighs with x = beta².

    When to use: where one number for finding and noise is needed and the list has no order. It
    hides which of the two fell, so report precision and recall with it.

    Citation: van Rijsbergen: Information Retrieval (1979), chapter 7.

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a", "x"]}, {"q": ["a", "b", "c"]}, measures=["F@2"])["F@2"]
    0.4
    """

    rel: float = 1.0
    beta: float = 1.0

    precision: ClassVar[type[Precision]] = Precision
    recall: ClassVar[type[Recall]] = Recall
    name: ClassVar[str] = "F"
    formula: ClassVar[str] = r"\frac{(1+\beta^2)\,P\cdot\text{recall}}{\beta^2P+\text{recall}}"
    aliases: ClassVar = known_as("F{beta} F{beta}_score f_measure f_score set_F set_F_{x}")

    def __post_init__(self) -> None:
        """Check beta."""
        super().__post_init__()
        self.require(0 < self.beta < float("inf"), "beta", "is a number above 0")

    @classmethod
    def respell(cls, given: dict[str, str]) -> dict[str, str]:
        """Translate trec_eval's x, which is beta²."""
        x = given.pop("x", None)
        return given if x is None else {**given, "beta": repr(float(x) ** 0.5)}

    def parts(self) -> tuple[Measure, ...]:
        """Return precision and recall."""
        return (
            self.precision(rel=self.rel, k=self.k, relation=self.relation),
            self.recall(rel=self.rel, k=self.k, relation=self.relation),
        )

    def compute(self, relation: Relation) -> Floats:
        """Return the weighted harmonic mean, 0 where precision and recall are 0."""
        precision, recall = (part.compute(relation) for part in self.parts())
        weight = self.beta**2
        below = weight * precision + recall
        return (1 + weight) * precision * recall / np.where(below > 0, below, 1)


@register_measure
class SetAveragePrecision(Measure):
    """Precision × recall of all that was retrieved, whatever its order.

    Average precision of a set: every relevant item found adds the precision of the set, every
    item missed adds 0.

    When to use: for sets without an order. It is low unless both precision and recall are high;
    F is easier to read.

    Citation: trec_eval, measure `set_map`.

    >>> from findwell import evaluate
    >>> evaluate({"q": ["x", "a"]}, {"q": ["a", "b"]}, measures=["set_map"])["set_map"]
    0.25
    """

    rel: float = 1.0

    name: ClassVar[str] = "set_map"
    formula: ClassVar[str] = r"P\cdot\text{recall}"
    aliases: ClassVar = known_as("SetAP")
    at: ClassVar[str | None] = None

    def parts(self) -> tuple[Measure, ...]:
        """Return precision and recall."""
        return (
            Precision(rel=self.rel, relation=self.relation),
            Recall(rel=self.rel, relation=self.relation),
        )

    def compute(self, relation: Relation) -> Floats:
        """Return the product."""
        precision, recall = (part.compute(relation) for part in self.parts())
        return precision * recall
