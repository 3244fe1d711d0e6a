"""The ContextRecall evaluator of a LiveRAG pipeline.

Quirks that the dialect keeps:

- the ids of the run, and only of the run, become `<urn:uuid:…>` where they hold one;
- recall, precision and F1 are over distinct documents, 0 where a divisor is 0, and such queries
  count in the means; a query without gold counts as wholly found (`all_found`);
- nDCG is over chunks, and its ideal list is made of what was retrieved: one of two gold documents
  at rank 1 scores 1; the same chunk twice scores 0; an empty list has no value;
- results without a reference, and references without a result, are left out.

The original makes two rows of a result id that occurs twice, and drops a query whose id is the
number 0; findwell refuses the first and keeps the second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import ANY_GAIN, Divisor, Limit, Terms
from findwell.core.policy import Policy
from findwell.measures.counts import Retrieved
from findwell.measures.dcg import NDCG
from findwell.measures.dialects.autorag import ones_first
from findwell.measures.dialects.dialect import Dialect, register_dialect
from findwell.measures.dialects.ragas import SetF, SetPrecision
from findwell.measures.recall import AllFound

if TYPE_CHECKING:
    from findwell.core.data import Bools, Floats
    from findwell.core.relation import Relation


class ChunkNDCG(NDCG):
    """nDCG over chunks, against the best order of what was retrieved."""

    why_undefined: ClassVar[str] = "nothing was retrieved"
    limit: ClassVar[Limit | None] = None
    adds: ClassVar[str] = (
        "Gain 1 for every chunk of a gold document, unless a chunk of the list is repeated"
    )

    def depth(self, *, listed: bool) -> int | None:
        """Say that the whole list matters: repetitions and the ideal are looked for in it."""
        del listed
        return None

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(ANY_GAIN, self.k, repeats=True)
        hits = hits.take(np.flatnonzero(relation.repeats(exact=True)[hits.query] == 0))
        return Terms(hits.query, hits.rank, 1 / relation.discount.take(hits.rank))

    def divisor(self, relation: Relation) -> Divisor:
        """Divide by the gain of the relevant chunks retrieved, moved to the top."""
        found = relation.count(relation.units(ANY_GAIN, repeats=True).query)
        most = self.k if self.k == self.last_rank else relation.shown(self.k)
        ideal = ones_first(found if most is None else np.minimum(found, most))
        return Divisor.discounted("ideal DCG of what was retrieved", relation, ideal)

    def undefined(self, relation: Relation) -> Bools:
        """Nothing is undefined by the gold; see `compute`."""
        return np.zeros(relation.n, dtype=bool)

    def compute(self, relation: Relation) -> Floats:
        """Return the quotient, 0 ÷ 0 being 0, or nothing where nothing was retrieved."""
        return np.where(relation.depth == 0, np.nan, np.nan_to_num(super().compute(relation)))


class AllReferencesFound(AllFound):
    """1 when every gold document was found, also when there is none."""

    needs_relevant: ClassVar[bool] = False

    def compute(self, relation: Relation) -> Floats:
        """Return 1.0 where no relevant item is missing."""
        found = relation.count(relation.credits(self.rel, self.k).query)
        return np.equal(found, relation.relevant(self.rel)).astype(float)


class DistinctRetrieved(Retrieved):
    """How many distinct documents were retrieved, among the first k."""

    def compute(self, relation: Relation) -> Floats:
        """Return the depth of each list without repetitions."""
        return super().compute(relation) - relation.repeats(self.k)


LIVERAG = register_dialect(
    Dialect(
        "liverag",
        "LiveRAG ContextRecall",
        Policy(no_relevant="zero", missing="skip"),
        {
            "P": SetPrecision,
            "F": SetF,
            "nDCG": ChunkNDCG,
            "all_found": AllReferencesFound,
            "retrieved": DistinctRetrieved,
        },
        run_ids="uuid",
    )
)
