"""Other engines and databases that search: Vespa, Azure AI Search, MongoDB, Redis, Postgres."""

from __future__ import annotations

from findwell.loop.tuning.engines import joins, normalisers, snippets
from findwell.loop.tuning.engines.engine import Engine, WeightRule
from findwell.loop.tuning.engines.rules import (
    ANY,
    DIVISOR,
    KEYWORD_VECTOR,
    UNKNOWN_TIES,
    by_id,
    ones,
    only,
)
from findwell.loop.tuning.engines.values import CompletedFeatures, NormalisedScores, RankValues

DATABASES = (
    Engine(
        name="vespa-rrf",
        about="Σ w/(k+r), all documents",
        formulas=only(CompletedFeatures(by_rank=True), joins.weighted_sum),
        source="container-search/…/ranking/ReciprocalRankNormalizer.java",
        paste=snippets.vespa_rrf,
        weights=ANY,
        k=60,
        ties=by_id,
        exact=(
            "Vespa computes every feature of every hit: a document that a run lacks has 0 here, "
            "and equal features are ranked by id"
        ),
        notes=("a feature of 0 still has a rank, so that no document is missing in a list",),
    ),
    Engine(
        name="vespa-linear",
        about="Σ w·(s−min)/(max−min)",
        formulas=only(CompletedFeatures(by_rank=False), joins.weighted_sum),
        source="container-search/…/ranking/LinearNormalizer.java",
        paste=snippets.vespa_linear,
        weights=ANY,
        ties=by_id,
        exact="Vespa computes every feature of every hit: a document that a run lacks has 0 here",
        notes=("min and max are over all documents of the query; equal scores are 0.5",),
    ),
    Engine(
        name="azure-rrf",
        about="Σ w/(60+r), text w = 1",
        formulas=only(DIVISOR(), joins.ratios_over),
        source="learn.microsoft.com/azure/search/hybrid-search-ranking",
        paste=snippets.azure_rrf,
        weights=WeightRule(ones, positive=True, about="numbers above 0"),
        ties=by_id,
        exact=UNKNOWN_TIES,
        notes=("the text query has no weight: all weights are divided by the first",),
        precision="stored single",
    ),
    Engine(
        name="mongodb-rrf",
        about="Σ w/(60+r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="mongo src/mongo/db/pipeline/document_source_rank_fusion.cpp",
        paste=snippets.mongodb_rrf,
        weights=ANY,
        ties=by_id,
        notes=("ties go by _id, ascending",),
    ),
    Engine(
        name="redis-rrf",
        about="Σ 1/(k+r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="redis.io/commands/ft.hybrid, RediSearch src/hybrid",
        paste=snippets.redis_rrf,
        k=60,
        window=20,
        roles=KEYWORD_VECTOR,
        ties=by_id,
        exact=UNKNOWN_TIES,
    ),
    Engine(
        name="redis-linear",
        about="α·text + β·vector",
        formulas=only(NormalisedScores({"none": normalisers.raw}), joins.weighted_sum),
        source="redis.io/commands/ft.hybrid, RediSearch src/hybrid",
        paste=snippets.redis_linear,
        weights=WeightRule(lambda _: (0.3, 0.7)),
        window=20,
        roles=KEYWORD_VECTOR,
        ties=by_id,
        exact=UNKNOWN_TIES,
        notes=("scores are not normalised: give those that Redis yields (YIELD_SCORE_AS)",),
    ),
    Engine(
        name="pgvector-rrf",
        about="Σ w/(k+RANK)",
        formulas=only(DIVISOR(shared=True), joins.weights_over),
        source="pgvector-python examples/hybrid_search/rrf.py",
        paste=snippets.pgvector_rrf,
        weights=ANY,
        k=60,
        window=20,
        ties=by_id,
        exact="the SQL does not order ties; here by id, ascending",
        notes=("documents with the same score share the better rank, as RANK() gives it",),
    ),
)
