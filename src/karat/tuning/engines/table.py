"""The table of engines: constants, ranks, missing documents, equal scores, ties and windows."""

from __future__ import annotations

from karat.tuning.engines import joins, snippets
from karat.tuning.engines.engine import Engine, Formula, WeightRule, by_id
from karat.tuning.engines.values import (
    FilledScores,
    Ranks,
    ReciprocalRanks,
    SharedReciprocalRanks,
)


def ones(runs: int) -> tuple[float, ...]:
    """Return a weight of 1 for each run."""
    return (1.0,) * runs


def shares(runs: int) -> tuple[float, ...]:
    """Return the same share of 1 for each run."""
    return (1 / runs,) * runs


SHARES = WeightRule(shares, high=1, total=1, about="numbers from 0 that add up to 1")
INTERNAL_TIES = "ties go by internal document numbers; here by id, ascending"
UNDEFINED_TIES = "the order of ties is undefined; here by id, ascending"

TABLE = (
    Engine(
        name="elasticsearch-rrf",
        about="Σ w ÷ (k + r)",
        formulas={"": Formula(lists=ReciprocalRanks(single=True), join=joins.weighted_sum)},
        paste=snippets.elasticsearch_rrf,
        weights=WeightRule(ones),
        k=60,
        k_range=(1, float("inf")),
        whole_k=True,
        window=10,
        cut=True,
        ties=by_id,
        exact=INTERNAL_TIES,
        single=True,
    ),
    Engine(
        name="qdrant-rrf",
        about="Σ 1 ÷ (r ÷ w + k − 1)",
        formulas={"": Formula(lists=Ranks(), join=joins.reciprocal_weighted_rank)},
        paste=snippets.qdrant_rrf,
        weights=WeightRule(ones),
        k=2,
        k_range=(1, float("inf")),
        whole_k=True,
        ties=by_id,
        exact=UNDEFINED_TIES,
        single=True,
    ),
    Engine(
        name="autorag-cc",
        about="Σ w · normalised score",
        formulas={
            "": Formula(
                lists=FilledScores(("mm", "tmm", "z", "dbsf"), (-1.0, 0.0)),
                join=joins.weighted_sum,
            )
        },
        paste=snippets.autorag_cc,
        weights=SHARES,
        roles=("semantic", "lexical"),
    ),
    Engine(
        name="autorag-rrf",
        about="Σ 1 ÷ (k + r); equal scores share the better rank",
        formulas={"": Formula(lists=SharedReciprocalRanks(), join=joins.weighted_sum)},
        paste=snippets.autorag_rrf,
        k=60,
    ),
    Engine(
        name="course-rrf",
        about="Σ 1 ÷ (k + r)",
        formulas={"": Formula(lists=ReciprocalRanks(), join=joins.weighted_sum)},
        paste=snippets.course_rrf,
        k=60,
    ),
)
