"""Vector databases: Weaviate, Qdrant, Milvus, LanceDB and Chroma."""

from __future__ import annotations

import math
from functools import partial

from findwell.loop.tuning.engines import joins, normalisers, python_snippets, snippets
from findwell.loop.tuning.engines.engine import Engine, Formula, WeightRule
from findwell.loop.tuning.engines.rules import (
    ANY,
    DIVISOR,
    KEYWORD_VECTOR,
    UNDEFINED_TIES,
    UNKNOWN_TIES,
    all_or_distances,
    all_the_same,
    by_id,
    by_last_list,
    by_last_score,
    ones,
    only,
    these,
)
from findwell.loop.tuning.engines.values import NormalisedScores, RankValues

VECTOR_DATABASES = (
    Engine(
        name="weaviate-relative",
        about="Σ w·(s−min)/(max−min)",
        formulas=only(
            NormalisedScores({"relative": normalisers.share_of_span}, single=True), joins.near_sum
        ),
        source="usecases/traverser/hybrid/hybrid_fusion.go",
        paste=partial(python_snippets.weaviate, "RELATIVE_SCORE"),
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
        about="Σ w/(59+r)",
        formulas={
            "current": Formula(lists=DIVISOR(first=0), join=joins.near_weights_over),
            "older": Formula(lists=DIVISOR(first=1), join=joins.near_weights_over),
        },
        source="usecases/traverser/hybrid/hybrid_fusion.go",
        paste=partial(python_snippets.weaviate, "RANKED"),
        weights=these(0.25, 0.75),
        roles=KEYWORD_VECTOR,
        ties=by_last_score,
        notes=("older versions divide by 60 + r", "ties as in weaviate-relative"),
    ),
    Engine(
        name="qdrant-rrf",
        about="Σ 1/(r/w+k−1)",
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
        about="Σ (s−μ+3σ)/6σ",
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
        about="Σ 1/(k+r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="internal/util/function/chain/operator_merge.go",
        paste=python_snippets.milvus_rrf,
        k=60,
        k_range=(1, 16_383),
        whole_k=True,
        ties=by_id,
        notes=("ties go by id, ascending",),
        precision="single",
    ),
    Engine(
        name="milvus-weighted",
        about="Σ w·n",
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
        paste=python_snippets.milvus_weighted,
        weights=WeightRule(ones, high=1, about="numbers from 0 to 1"),
        together=all_or_distances,
        ties=by_id,
        notes=(
            "the normaliser none is norm_score=False; pymilvus has True: name each metric",
            "without norm_score a distance among similarities is turned all the same: none,l2",
            "by metric: cosine (1+s)/2, ip ½+atan(s)/π, bm25 2·atan(s)/π, l2 1−2·atan(d)/π",
        ),
        precision="single",
    ),
    Engine(
        name="lancedb-rrf",
        about="Σ 1/(k+r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="python/lancedb/rerankers/rrf.py, 0.40.0",
        paste=python_snippets.lancedb_rrf,
        k=60,
        k_range=(1, math.inf),
        roles=KEYWORD_VECTOR,
        ties=by_last_list,
        notes=("ties go by the order of the vector search, then of the text search",),
        precision="stored single",
    ),
    Engine(
        name="lancedb-linear",
        about="Σ w·(s−min)/(max−min)",
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
        paste=python_snippets.lancedb_linear,
        weights=these(0.3, 0.7),
        fills=True,
        fill=1.0,
        together=all_the_same,
        roles=KEYWORD_VECTOR,
        ties=by_last_list,
        notes=(
            "a list that lacks the document gives 1 − fill",
            "equal scores, or one alone, are 0 in the keyword list and 1 in the vector list",
            "a query that has one list only keeps the values of that list, without a weight",
            "the normaliser none is the reranker alone: raw BM25, and 1 − distance for a vector",
            "older releases returned 1 − score: the least relevant document came first",
        ),
        precision="stored single",
    ),
    Engine(
        name="lancedb-mrr",
        about="Σ w/r",
        formulas=only(RankValues(gives="rank"), joins.weights_over),
        source="python/lancedb/rerankers/mrr.py, 0.40.0",
        paste=python_snippets.lancedb_mrr,
        weights=these(0.5, 0.5),
        roles=KEYWORD_VECTOR,
        ties=by_last_list,
        precision="stored single",
    ),
    Engine(
        name="chroma-rrf",
        about="Σ w/(k−1+r), every list",
        formulas=only(DIVISOR(first=0), joins.weights_over, every_list=True),
        source="chromadb/execution/expression/operator.py, 1.5.9",
        paste=python_snippets.chroma_rrf,
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
