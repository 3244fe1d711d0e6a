"""The table of engines: constants, ranks, missing documents, equal scores, ties and windows.

An entry says what an engine does, and where that was read; what it cannot say is in `exact`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from karat.tuning.engines import joins, normalisers, snippets
from karat.tuning.engines.engine import Engine, Formula, WeightRule
from karat.tuning.engines.values import (
    CompletedFeatures,
    FilledScores,
    NormalisedScores,
    RankValues,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karat.core.data import Floats, Ints
    from karat.tuning.engines.engine import Join, ListValues
    from karat.tuning.pool import Pool


def ones(runs: int) -> tuple[float, ...]:
    """Return a weight of 1 for each run."""
    return (1.0,) * runs


def shares(runs: int) -> tuple[float, ...]:
    """Return the same share of 1 for each run."""
    return (1 / runs,) * runs


def these(*weights: float) -> WeightRule:
    """Return the rule of two weights that add up to 1, with their defaults."""
    return WeightRule(lambda _: weights, high=1, total=1, about="two numbers that add up to 1")


def by_id(pool: Pool) -> Sequence[Ints]:
    """Break ties by the id of the document, ascending; whole numbers come first, by value."""
    number = pool.doc.cast(pl.Int64, strict=False).fill_null(np.iinfo(np.int64).max)
    return number.to_numpy(), pool.doc.rank("dense").to_numpy().astype(np.int64)


def by_last_score(pool: Pool) -> Sequence[Ints | Floats]:
    """Break ties by the score in the last list that has the document, then by id."""
    last = pool.score[0]
    for each in pool.score[1:]:
        last = np.where(np.isnan(each), last, each)
    return (-last, *by_id(pool))


def by_last_list(pool: Pool) -> Sequence[Ints]:
    """Break ties by the rank in the last list, then in the one before it."""
    absent = pool.rank.max(initial=0) + 1
    return tuple(np.where(each > 0, each, absent) for each in pool.rank[::-1])


ANY = WeightRule(ones)
SHARES = WeightRule(shares, high=1, total=1, about="numbers from 0 that add up to 1")
MADE_SHARES = WeightRule(shares)
OF_ONE = WeightRule(
    ones, high=1, total=1, tolerance=0.01, about="numbers from 0 to 1 that add up to 1 (± 0.01)"
)
KEYWORD_VECTOR = ("keyword", "vector")
INTERNAL_TIES = "ties go by internal document numbers; here by id, ascending"
UNDEFINED_TIES = "the order of ties is undefined; here by id, ascending"
UNKNOWN_TIES = "the order of ties is not documented; here by id, ascending"
DIVISOR = partial(RankValues, gives="divisor")
NEGATIVE = "a list of negative scores is scaled as if its best score were 0"


def only(lists: ListValues, join: Join, *, every_list: bool = False) -> dict[str, Formula]:
    """Return the formulas of an engine that has always computed the same."""
    return {"": Formula(lists=lists, join=join, every_list=every_list)}


ELASTICSEARCH = (
    Engine(
        name="elasticsearch-rrf",
        about="Σ w ÷ (k + r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="x-pack/plugin/rank-rrf/…/RRFRetrieverBuilder.java",
        paste=snippets.elasticsearch_rrf,
        weights=ANY,
        k=60,
        k_range=(1, math.inf),
        whole_k=True,
        window=10,
        cut=True,
        ties=by_id,
        exact=INTERNAL_TIES,
        notes=("the fused list is no longer than the window (rank_window_size)",),
        precision="single",
    ),
    Engine(
        name="elasticsearch-linear",
        about="Σ w · n",
        formulas={
            version: Formula(
                lists=NormalisedScores(
                    {
                        "none": normalisers.raw,
                        "minmax": minmax,
                        "l2_norm": normalisers.elasticsearch_l2,
                    },
                    single=True,
                ),
                join=joins.weighted_sum,
            )
            for version, minmax in (
                ("current", normalisers.elasticsearch_minmax),
                ("8.18.0", normalisers.elasticsearch_minmax_8_18_0),
            )
        },
        source="x-pack/plugin/rank-rrf/…/linear/*.java; elasticsearch#128689",
        paste=snippets.elasticsearch_linear,
        weights=ANY,
        window=10,
        cut=True,
        ties=by_id,
        exact=INTERNAL_TIES,
        notes=(
            "minmax: equal scores are 1; in 8.18.0 they stayed the lowest score",
            f"minmax: {NEGATIVE}",
            "the fused list is no longer than the window (rank_window_size)",
        ),
        precision="single",
    ),
)
NORMALISATIONS = {
    "min_max": normalisers.opensearch_min_max,
    "l2": normalisers.opensearch_l2,
    "z_score": normalisers.opensearch_z_score,
}
NORMALISATION_NOTES = {
    "min_max": ("0 becomes 0.001; equal scores are 1", NEGATIVE),
    "l2": ("a list without any score but 0 stays 0",),
    "z_score": ("σ is the sample's; up to 0 becomes 0.001; the mean itself is the highest score",),
}
COMBINATIONS = {
    "arithmetic": ("Σ w·n ÷ Σ w", joins.weighted_mean),
    "geometric": ("exp(Σ w·ln n ÷ Σ w)", joins.geometric_mean),
    "harmonic": ("Σ w ÷ Σ (w ÷ n)", joins.harmonic_mean),
}
COMBINATION_NOTES = {
    "arithmetic": "a missing document counts as 0, and its weight stays in the divisor",
    "geometric": "a list that lacks the document, or gives it up to 0, is left out of both sums",
    "harmonic": "a list that lacks the document, or gives it up to 0, is left out of both sums",
}
OPENSEARCH = (
    *(
        Engine(
            name=f"opensearch-{normalisation}-{combination}",
            about=COMBINATIONS[combination][0],
            formulas=only(
                NormalisedScores({normalisation: NORMALISATIONS[normalisation]}, single=True),
                COMBINATIONS[combination][1],
            ),
            source="neural-search …/processor/normalization/*.java, combination/*.java",
            paste=partial(snippets.opensearch_normalization, normalisation, combination),
            weights=OF_ONE,
            ties=by_id,
            exact=f"{INTERNAL_TIES}; several shards count as one",
            notes=(*NORMALISATION_NOTES[normalisation], COMBINATION_NOTES[combination]),
            precision="single",
        )
        for normalisation in NORMALISATIONS
        for combination in COMBINATIONS
        if normalisation != "z_score" or combination == "arithmetic"
    ),
    Engine(
        name="opensearch-rrf",
        about="Σ w · (1 ÷ (k + r) in 10 digits)",
        formulas=only(RankValues(digits=10), joins.weighted_sum),
        source="neural-search …/RRFNormalizationTechnique.java",
        paste=snippets.opensearch_rrf,
        weights=OF_ONE,
        k=60,
        k_range=(1, 10_000),
        whole_k=True,
        ties=by_id,
        exact=INTERNAL_TIES,
        precision="single",
    ),
)
# what OpenSearch itself refuses, and why
REFUSED = {
    f"opensearch-z_score-{combination}": "OpenSearch combines z_score only by arithmetic_mean"
    for combination in ("geometric", "harmonic")
}
VECTOR_DATABASES = (
    Engine(
        name="weaviate-relative",
        about="Σ w · (s − min) ÷ (max − min)",
        formulas=only(
            NormalisedScores({"relative": normalisers.share_of_span}, single=True), joins.near_sum
        ),
        source="usecases/traverser/hybrid/hybrid_fusion.go",
        paste=partial(snippets.weaviate, "RELATIVE_SCORE"),
        weights=these(0.25, 0.75),
        roles=KEYWORD_VECTOR,
        ties=by_last_score,
        notes=(
            "equal scores, or one alone, are 1; the score of a vector is 1 − distance",
            "ties, to 7 digits: the higher original score, of the vector if there is one, then id",
        ),
    ),
    Engine(
        name="weaviate-ranked",
        about="Σ w ÷ (59 + r)",
        formulas={
            "current": Formula(lists=DIVISOR(first=0), join=joins.near_weights_over),
            "older": Formula(lists=DIVISOR(first=1), join=joins.near_weights_over),
        },
        source="usecases/traverser/hybrid/hybrid_fusion.go",
        paste=partial(snippets.weaviate, "RANKED"),
        weights=these(0.25, 0.75),
        roles=KEYWORD_VECTOR,
        ties=by_last_score,
        notes=("older versions divide by 60 + r", "ties as in weaviate-relative"),
    ),
    Engine(
        name="qdrant-rrf",
        about="Σ 1 ÷ (r ÷ w + k − 1)",
        formulas=only(RankValues(gives="rank"), joins.reciprocal_weighted_rank),
        source="lib/segment/src/common/reciprocal_rank_fusion.rs",
        paste=snippets.qdrant_rrf,
        weights=ANY,
        k=2,
        k_range=(1, math.inf),
        whole_k=True,
        ties=by_id,
        exact=UNDEFINED_TIES,
        notes=(
            "the weight divides the rank, it does not multiply the score; since 1.17",
            "k = 2 is 1 ÷ (1 + r): the first document counts far more than elsewhere",
        ),
        precision="single",
    ),
    Engine(
        name="qdrant-dbsf",
        about="Σ (s − (μ − 3σ)) ÷ 6σ",
        formulas=only(
            NormalisedScores({"dbsf": normalisers.within_3_sample_deviations}, single=True),
            joins.weighted_sum,
        ),
        source="lib/segment/src/common/score_fusion.rs",
        paste=snippets.qdrant_dbsf,
        ties=by_id,
        exact=UNDEFINED_TIES,
        notes=("σ is the sample's; equal scores, or one alone, are 0.5; nothing is clipped",),
        precision="single",
    ),
    Engine(
        name="milvus-rrf",
        about="Σ 1 ÷ (k + r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="internal/util/function/chain/operator_merge.go",
        paste=snippets.milvus_rrf,
        k=60,
        k_range=(1, 16_383),
        whole_k=True,
        ties=by_id,
        notes=("ties go by id, ascending",),
        precision="single",
    ),
    Engine(
        name="milvus-weighted",
        about="Σ w · n",
        formulas=only(
            NormalisedScores(
                {
                    "none": normalisers.raw,
                    "cosine": normalisers.milvus_cosine,
                    "ip": normalisers.milvus_ip,
                    "bm25": normalisers.milvus_bm25,
                    "l2": normalisers.milvus_l2,
                },
                single=True,
            ),
            joins.weighted_sum,
        ),
        source="internal/util/function/chain/operator_merge.go",
        paste=snippets.milvus_weighted,
        weights=WeightRule(ones, high=1, about="numbers from 0 to 1"),
        ties=by_id,
        notes=(
            "none is norm_score=False, as the server has it; pymilvus has True: name each metric",
            "cosine (1+s)/2, ip ½+atan(s)/π, bm25 2·atan(s)/π, l2 1−2·atan(d)/π",
        ),
        precision="single",
    ),
    Engine(
        name="lancedb-rrf",
        about="Σ 1 ÷ (k + r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="python/lancedb/rerankers/rrf.py, 0.40.0",
        paste=snippets.lancedb_rrf,
        k=60,
        k_range=(1, math.inf),
        roles=KEYWORD_VECTOR,
        ties=by_last_list,
        notes=("ties go by the order of the vector search, then of the text search",),
        precision="stored single",
    ),
    Engine(
        name="lancedb-linear",
        about="Σ w · (s − min) ÷ (max − min)",
        formulas={
            version: Formula(
                lists=NormalisedScores(
                    {
                        "score": (normalisers.zero_or_share_of_span, normalisers.share_of_span),
                        "none": normalisers.raw,
                    }
                ),
                join=join,
            )
            for version, join in (
                ("current", joins.filled_sum),
                ("older", joins.inverted_filled_sum),
            )
        },
        source="python/lancedb/rerankers/linear_combination.py, query.py, 0.40.0",
        paste=snippets.lancedb_linear,
        weights=these(0.3, 0.7),
        fills=True,
        fill=1.0,
        roles=KEYWORD_VECTOR,
        ties=by_last_list,
        notes=(
            "a list that lacks the document gives 1 − fill",
            "equal scores, or one alone, are 0 in the keyword list and 1 in the vector list",
            "a query that has one list only keeps the values of that list, without a weight",
            "none is the reranker alone: raw BM25, and 1 − distance as the score of a vector",
            "older releases returned 1 − score: the least relevant document came first",
        ),
        precision="stored single",
    ),
    Engine(
        name="lancedb-mrr",
        about="Σ w ÷ r",
        formulas=only(RankValues(gives="rank"), joins.weights_over),
        source="python/lancedb/rerankers/mrr.py, 0.40.0",
        paste=snippets.lancedb_mrr,
        weights=these(0.5, 0.5),
        roles=KEYWORD_VECTOR,
        ties=by_last_list,
        precision="stored single",
    ),
    Engine(
        name="chroma-rrf",
        about="Σ w ÷ (k − 1 + r), in every list",
        formulas=only(DIVISOR(first=0), joins.weights_over, every_list=True),
        source="chromadb/execution/expression/operator.py, 1.5.9",
        paste=snippets.chroma_rrf,
        weights=ANY,
        k=60,
        k_range=(1, math.inf),
        whole_k=True,
        window=16,
        fills=True,
        ties=by_id,
        exact=f"{UNKNOWN_TIES}; Chroma's own score is minus this one",
        notes=(
            "a document that is not in every list is dropped, unless fill (default=) is given",
            "fill stands for the rank, from 0, of a document that a list lacks",
        ),
    ),
)
SEARCH_ENGINES = (
    Engine(
        name="vespa-rrf",
        about="Σ w ÷ (k + r), all documents",
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
        about="Σ w · (s − min) ÷ (max − min)",
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
        about="Σ w ÷ (60 + r), text w = 1",
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
        about="Σ w ÷ (60 + r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="mongo src/mongo/db/pipeline/document_source_rank_fusion.cpp",
        paste=snippets.mongodb_rrf,
        weights=ANY,
        ties=by_id,
        notes=("ties go by _id, ascending",),
    ),
    Engine(
        name="redis-rrf",
        about="Σ 1 ÷ (k + r)",
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
        about="α · text + β · vector",
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
        about="Σ w ÷ (k + RANK)",
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
FRAMEWORKS = (
    Engine(
        name="langchain-ensemble",
        about="Σ w ÷ (k + r)",
        formulas=only(DIVISOR(), joins.weights_over),
        source="langchain_classic/retrievers/ensemble.py, 1.0.8",
        paste=snippets.langchain_ensemble,
        weights=MADE_SHARES,
        k=60,
        whole_k=True,
        notes=("the same text is the same document, unless id_key is set",),
    ),
    Engine(
        name="llamaindex-rrf",
        about="Σ 1 ÷ (59 + r)",
        formulas=only(RankValues(first=0), joins.weighted_sum),
        source="llama_index/core/retrievers/fusion_retriever.py, 0.14.25",
        paste=partial(snippets.llamaindex, "RECIPROCAL_RANK"),
        notes=("retriever_weights are ignored", "num_queries must be 1"),
    ),
    Engine(
        name="llamaindex-relative",
        about="Σ w · (s − min) ÷ (max − min)",
        formulas=only(
            NormalisedScores({"relative": normalisers.sign_or_share_of_span}), joins.sum_of_shares
        ),
        source="llama_index/core/retrievers/fusion_retriever.py, 0.14.25",
        paste=partial(snippets.llamaindex, "RELATIVE_SCORE"),
        weights=MADE_SHARES,
        notes=("equal scores are 1 if they are above 0, else 0", "num_queries must be 1"),
    ),
    Engine(
        name="llamaindex-dist",
        about="Σ w · (s − (μ − 3σ)) ÷ 6σ",
        formulas=only(
            NormalisedScores({"dist": normalisers.within_3_deviations}), joins.sum_of_shares
        ),
        source="llama_index/core/retrievers/fusion_retriever.py, 0.14.25",
        paste=partial(snippets.llamaindex, "DIST_BASED_SCORE"),
        weights=MADE_SHARES,
        notes=("σ divides by n; equal scores are 1 if above 0, else 0", "num_queries must be 1"),
    ),
    Engine(
        name="haystack-rrf",
        about="Σ 61 · w ÷ (60 + r)",
        formulas=only(DIVISOR(k=61, first=0), joins.scaled_weights_over),
        source="haystack/utils/misc.py, 3.4.0",
        paste=partial(snippets.haystack, "reciprocal_rank_fusion"),
        weights=MADE_SHARES,
        notes=("weights are made to add up to 1; the best possible score is 1",),
    ),
    Engine(
        name="haystack-dbsf",
        about="max (s − (μ − 3σ)) ÷ 6σ",
        formulas=only(
            NormalisedScores({"dbsf": normalisers.raw_or_within_3_deviations}), joins.largest
        ),
        source="haystack/components/joiners/document_joiner.py, 3.4.0",
        paste=partial(snippets.haystack, "distribution_based_rank_fusion"),
        notes=(
            "the larger value counts, not the sum; weights are ignored",
            "σ divides by n; equal scores stay as they are",
        ),
    ),
    Engine(
        name="autorag-cc",
        about="Σ w · n",
        formulas=only(FilledScores(("mm", "tmm", "z", "dbsf"), (-1.0, 0.0)), joins.weighted_sum),
        source="AutoRAG hybrid_cc; docs/dialects.md",
        paste=snippets.autorag_cc,
        weights=SHARES,
        roles=("semantic", "lexical"),
        notes=("a missing document, and a list of equal scores, count as 0",),
    ),
    Engine(
        name="autorag-rrf",
        about="Σ 1 ÷ (k + r)",
        formulas=only(RankValues(shared=True), joins.weighted_sum),
        source="AutoRAG hybrid_rrf; docs/dialects.md",
        paste=snippets.autorag_rrf,
        k=60,
        notes=("documents with the same score share the better rank",),
    ),
    Engine(
        name="course-rrf",
        about="Σ 1 ÷ (k + r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="the course; docs/dialects.md",
        paste=snippets.course_rrf,
        k=60,
    ),
)
TABLE = (*ELASTICSEARCH, *OPENSEARCH, *VECTOR_DATABASES, *SEARCH_ENGINES, *FRAMEWORKS)
