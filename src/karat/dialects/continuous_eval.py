"""continuous-eval's retrieval metrics (0.3.x), over whatever relation is asked for.

Quirks that the dialect keeps:

- precision counts every retrieved component that matches, repetitions too, ÷ all retrieved;
- a query with nothing retrieved or without gold scores 0 and counts in the mean;
- average precision divides by the relevant components retrieved;
- nDCG credits each gold once, and its ideal list holds all gold, however few were retrieved;
- exact matching compares raw strings, so that a trailing space makes a difference;
- ROUGE-L recall is that of the package rouge 1.0.1: sentences end at every full stop, words are
  unique and keep case and punctuation, and what each gold sentence shares with the retrieved ones
  is united; at least .7 makes chunks a match, at least .8 sentences;
- sentences are split by NLTK's punkt, whose data has to be installed; naming another splitter
  leaves the dialect at that point.

Where the original stops at an empty gold (its ranked metrics), karat answers 0 like its others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from karat.align import Policy
from karat.dialects.course import AveragePrecisionOverRetrieved
from karat.dialects.dialect import Dialect, register_dialect
from karat.measures.fscore import FScore
from karat.measures.measure import Divisor, Terms
from karat.measures.ndcg import NDCG
from karat.measures.precision import Precision

if TYPE_CHECKING:
    from karat.relation import Relation


@dataclass(frozen=True, kw_only=True)
class ComponentPrecision(Precision):
    """Matching components, repetitions too, ÷ retrieved components."""

    def terms(self, relation: Relation) -> Terms:
        """Count the components that match, repetitions too."""
        hits = relation.units(self.rel, self.k, repeats=True)
        return Terms(hits.query, hits.rank)

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the components among the first k."""
        return Divisor("units retrieved", np.maximum(relation.shown(self.k), 1))


@dataclass(frozen=True, kw_only=True)
class ComponentF(FScore):
    """The harmonic mean with precision over components."""

    precision: ClassVar[type[Precision]] = ComponentPrecision


@dataclass(frozen=True, kw_only=True)
class UncutNDCG(NDCG):
    """nDCG whose ideal list is not cut at k."""

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the DCG of a list of all gold."""
        ideal = NDCG(gain=self.gain).divisor(relation)
        return Divisor("ideal DCG of all gold, not cut", ideal.value)


CONTINUOUS_EVAL = register_dialect(
    Dialect(
        "continuous-eval",
        "continuous-eval 0.3",
        Policy(no_relevant="zero", missing="skip"),
        {
            "P": ComponentPrecision,
            "F": ComponentF,
            "AP": AveragePrecisionOverRetrieved,
            "nDCG": UncutNDCG,
        },
        relations={
            "exact": {"text": "raw"},
            "exact-sentence": {"text": "raw", "splitter": "punkt"},
            "rouge": {"text": "raw", "form": "union"},
            "rouge-sentence": {"text": "raw", "form": "union", "splitter": "punkt"},
        },
    )
)
