"""How much of what was retrieved anyone has judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import Divisor, Measure, Terms, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation


@register_measure
class JudgedShare(Measure):
    """The share of the first k units that carry a judgement, relevant or not.

    judged@k = judged units among the first k ÷ units among the first k. Where it is low, the other
    measures mostly show which system the judgements were pooled from.

    When to use: before you compare systems with labels of an old pool: where it is low or differs
    between them, unjudged documents may decide. It says nothing about quality.

    Citation: Buckley, Dimmick, Soboroff, Voorhees: Bias and the limits of pooling (SIGIR 2006).

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a", "x"]}, {"q": {"a": 1, "b": 0}}, measures=["judged@2"])["judged@2"]
    0.5
    """

    name: ClassVar[str] = "judged"
    formula: ClassVar[str] = r"\frac{\left|\{i\le k:d_i\text{ judged}\}\right|}{n_k}"
    needs_relevant: ClassVar[bool] = False
    adds: ClassVar[str] = "Count the judged units"
    counts_items: ClassVar[bool] = False

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        return Terms(*relation.judged(self.k))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the units there are to judge."""
        return Divisor("units retrieved", np.maximum(relation.shown(self.k), 1))


@register_measure
class Unjudged(Measure):
    """The share of the first k units that carry no judgement.

    unjudged@k = unjudged units among the first k ÷ k; without a cutoff ÷ the number retrieved.

    When to use: as the counterpart of judged: a gate such as unjudged@10<=0.1 protects a comparison
    from missing labels. It says nothing about quality.

    Citation: trec_eval 10, measure `unj`.

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "y"]}, {"q": {"a": 1, "b": 0}}
    >>> evaluate(run, gold, measures=["unjudged@2"])["unjudged@2"]
    0.5
    """

    name: ClassVar[str] = "unjudged"
    formula: ClassVar[str] = r"1-\text{judged}@k"
    aliases: ClassVar = known_as("unj")
    needs_relevant: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = False
    counts_items: ClassVar[bool] = False

    def compute(self, relation: Relation) -> Floats:
        """Return unjudged units ÷ k, or ÷ the number retrieved."""
        judged = relation.count(relation.judged(self.k)[0])
        retrieved = relation.shown(self.k)
        ranks = relation.ranks(self.k)
        if ranks is not None:
            return (retrieved - judged) / ranks
        return (retrieved - judged) / np.maximum(retrieved, 1)
