"""trec_eval, the reference program of TREC: version 10, and 9 where it differs.

Quirks that the dialects keep:

- a query without a relevant document scores 0 and counts in the mean;
- a query of the judgements that the run lacks stops version 10 (say `missing="zero"` for its
  option -c), while version 9 averages over the queries that both have;
- a document retrieved twice for a query is an error;
- grades are integers;
- a name such as P, success or official stands for the whole list that trec_eval prints for it;
- version 9 compares scores as 32-bit floats, so that close scores tie and the doc id decides;
- a recall level asks for ⌊level · R + 0.9⌋ relevant documents in version 9, as in findwell; version
  10 rounds level · R, which changes iprec_at_recall and 11pt_avg;
- rbp and rbp_resid, new in version 10, have p = .9; rbp weighs a document with its grade, divided
  by the highest grade of the query's judgements where that is above 1; rbp_resid is 0 where every
  retrieved document is judged.

Version 10 finds that highest grade with a variable that its code never sets at the start, so that
with grades above 1 its rbp depends on what the memory held before. The dialect starts at 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from findwell.core.measure import ANY_GAIN, Terms
from findwell.core.policy import Policy
from findwell.measures.dialects.dialect import Dialect, register_dialect
from findwell.measures.interpolated_precision import ElevenPoint, InterpolatedPrecision
from findwell.measures.rbp import RankBiasedPrecision, RankBiasedPrecisionResidual

if TYPE_CHECKING:
    from findwell.core.data import Floats
    from findwell.core.relation import Relation


class RoundedPrecision(InterpolatedPrecision):
    """Interpolated precision where a level asks for level · R items, rounded."""

    adds: ClassVar[str] = (
        "Take the best precision from the rank on that has found recall · R items, rounded"
    )

    def needed(self, relation: Relation) -> Floats:
        """Return how many of its relevant items each query needs, a half rounded up."""
        exact = self.recall * relation.relevant(self.rel)
        items: Floats = np.floor(exact)
        return items + (exact - items >= 0.5)


class RoundedElevenPoint(ElevenPoint):
    """The eleven-point average of rounded levels."""

    interpolated: ClassVar[type[InterpolatedPrecision]] = RoundedPrecision


@dataclass(frozen=True, kw_only=True)
class GradedRankBiasedPrecision(RankBiasedPrecision):
    """Rank-biased precision of graded units, for a reader of patience .9."""

    p: float = 0.9

    counts_items: ClassVar[bool] = True  # for the highest grade of the gold
    any_grade: ClassVar[bool] = True
    adds: ClassVar[str] = (
        "Add up the weights of the units, p being .9 unless given, × grade ÷ highest grade"
    )

    def terms(self, relation: Relation) -> Terms:
        """Return what `adds` says."""
        hits = relation.units(ANY_GAIN, self.k)
        best = relation.item_grade[relation.item_offset[hits.query]]  # the first is the highest
        gain = relation.item_grade[hits.item] / np.maximum(best, 1)
        return Terms(hits.query, hits.rank, gain * (1 - self.p) * np.power(self.p, hits.rank - 1.0))


@dataclass(frozen=True, kw_only=True)
class UnjudgedResidual(RankBiasedPrecisionResidual):
    """The residual, where there is something unjudged in the list."""

    p: float = 0.9

    needs_relevant: ClassVar[bool] = False

    def compute(self, relation: Relation) -> Floats:
        """Return 1 − the weight of the judged ranks, 0 where every unit is judged."""
        judged = relation.count(relation.judged(self.k)[0])
        return np.where(judged < relation.shown(self.k), super().compute(relation), 0)


def _at(name: str, *numbers: float) -> list[str]:
    return [f"{name}@{number:g}" for number in numbers]


RANKS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
TENTHS = tuple(tenth / 10 for tenth in range(11))
CUT = {
    "P": _at("P", *RANKS),
    "recall": _at("recall", *RANKS),
    "relative_P": _at("relative_P", *RANKS),
    "map_cut": _at("map", *RANKS),
    "ndcg_cut": _at("ndcg", *RANKS),
    "success": _at("success", 1, 5, 10),
    "iprec_at_recall": _at("iprec_at_recall", *TENTHS),
    "Rprec_mult": _at("Rprec_mult", *(fifth / 5 for fifth in range(1, 11))),
}
UNJUDGED_NAMES = {"unj": _at("unj", 5, 10, 20)}

# The nicknames of lists, as version 9 and 10 define them, without what is not a number (runid,
# relstring).
COUNTS = ["num_q", "num_ret", "num_rel", "num_rel_ret"]
OFFICIAL = [*COUNTS, "map", "gm_map", "Rprec", "bpref", "recip_rank"]
OFFICIAL += [*CUT["iprec_at_recall"], *CUT["P"]]
SET = ["set_P", "set_relative_P", "set_recall", "set_map", "set_F"]
REST = ["infAP", "gm_bpref", *CUT["Rprec_mult"], "utility", "11pt_avg", "binG", "G"]
REST += ["ndcg", "ndcg_rel", "Rndcg", *CUT["ndcg_cut"], *CUT["map_cut"]]
REST += [*CUT["relative_P"], *CUT["success"], *SET, "num_nonrel_judged_ret"]
LISTS = {**CUT, "official": OFFICIAL, "set": [*COUNTS, "utility", *SET]}
ALL_9 = [*OFFICIAL, *CUT["recall"], *REST]
ALL_10 = [*ALL_9, "rbp", "rbp_resid", *UNJUDGED_NAMES["unj"]]

TREC_EVAL = register_dialect(
    Dialect(
        "trec_eval",
        "trec_eval 10",
        Policy(duplicates="error", missing="error", no_relevant="zero", grades="integer"),
        {
            "IPrec": RoundedPrecision,
            "11pt": RoundedElevenPoint,
            "RBP": GradedRankBiasedPrecision,
            "RBP_residual": UnjudgedResidual,
        },
        lists={**LISTS, **UNJUDGED_NAMES, "all_trec": ALL_10},
    )
)

TREC_EVAL_9 = register_dialect(
    Dialect(
        "trec_eval-9",
        "trec_eval 9: scores compared as 32-bit floats, missing queries left out",
        Policy(
            scores="float32",
            duplicates="error",
            missing="skip",
            no_relevant="zero",
            grades="integer",
        ),
        lists={**LISTS, "all_trec": ALL_9},
    )
)
