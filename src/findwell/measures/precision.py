"""Precision: how much of what was retrieved is relevant, also relative to the best possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import AT_MOST_ONE, Divisor, Measure, Terms, known_as, register_measure

if TYPE_CHECKING:
    from findwell.core.relation import Relation


@register_measure
class Precision(Measure):
    """The share of retrieved units that are relevant.

    P@k = relevant units among the first k ÷ k, also when fewer than k were retrieved; without a
    cutoff the divisor is the number retrieved (`set_P` of trec_eval), with a budget instead of k
    the number within it, and retrieving nothing scores 0. A unit is relevant when it covers an
    item of grade ≥ rel; a repetition of a unit is not, a second document of the same group is.

    When to use: where noise costs: every chunk in the prompt is paid for and may mislead the model.
    It cannot reach 1 where a query has fewer relevant items than k; relative_P corrects for that.

    Citation: Kent, Berry, Luehrs, Perry: Machine literature searching VIII (American
    Documentation 6(2), 1955).

    >>> from findwell import evaluate
    >>> evaluate({"q": ["a", "x", "b"]}, {"q": ["a", "b", "c"]}, measures=["P@4", "P"]).values
    {'P@4': 0.5, 'P': 0.6666666666666666}
    """

    rel: float = 1.0

    name: ClassVar[str] = "P"
    formula: ClassVar[str] = r"\frac{\left|\{i\le k:d_i\text{ relevant}\}\right|}{k}"
    aliases: ClassVar = (
        known_as("precision set_P")
        | known_as("id_based_context_precision", relation="ids")
        | known_as(
            "context_relevancy context_relevance contextual_relevancy", relation="statements"
        )
    )
    adds: ClassVar[str] = "Count the relevant units"
    counts_items: ClassVar[bool] = False

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(self.rel, self.k)
        return Terms(hits.query, hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by k, or by the number retrieved.

        Sentences are counted in the first k chunks, units of a budget as far as it reaches.
        """
        ranks = relation.ranks(self.k)
        if ranks is not None:
            return Divisor("ranks (k)", ranks)
        return Divisor("units retrieved", np.maximum(relation.shown(self.k), 1))


@register_measure
class RelativePrecision(Precision):
    """Relevant units among the first k ÷ the most there could be: k or R, whichever is less.

    P@k of a query with two relevant items cannot pass 2 ÷ k; relative_P@k can reach 1 for every
    query. It is P@k down to rank R and recall@k from there on. Without a cutoff the list is taken
    as a set (`set_relative_P` of trec_eval). BEIR calls it capped recall (`R_cap@k`).

    When to use: where queries have fewer relevant items than k, and plain precision cannot reach 1.
    It mixes two questions: with k below R it is precision, above R it is recall.

    Citation: trec_eval, measures `relative_P` and `set_relative_P`; Thakur et al.: BEIR (NeurIPS
    2021).

    >>> from findwell import evaluate
    >>> run, gold = {"q": ["a", "x", "b", "y"]}, {"q": ["a", "b"]}
    >>> evaluate(run, gold, measures=["relative_P@2", "relative_P@4"]).values
    {'relative_P@2': 0.5, 'relative_P@4': 1.0}
    """

    name: ClassVar[str] = "relative_P"
    formula: ClassVar[str] = r"\frac{\left|\{i\le k:d_i\text{ relevant}\}\right|}{\min(k,R)}"
    aliases: ClassVar = known_as(
        "relative_precision set_relative_P SetRelP R_cap recall_cap capped_recall"
    )
    counts_items: ClassVar[bool] = True
    limit: ClassVar = AT_MOST_ONE  # a group may have more documents than it needs

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the most relevant units that the first k could hold."""
        most = np.minimum(super().divisor(relation).value, relation.relevant(self.rel))
        return Divisor("k or relevant items, whichever is less", most)
