"""Frameworks: LangChain, LlamaIndex, Haystack and AutoRAG; and the course."""

from __future__ import annotations

from functools import partial

from findwell.loop.tuning.engines import joins, normalisers, python_snippets, snippets
from findwell.loop.tuning.engines.engine import Engine
from findwell.loop.tuning.engines.rules import DIVISOR, MADE_SHARES, SHARES, all_the_same, only
from findwell.loop.tuning.engines.values import FilledScores, NormalisedScores, RankValues

FRAMEWORKS = (
    Engine(
        name="langchain-ensemble",
        about="Σ w/(k+r)",
        formulas=only(DIVISOR(), joins.weights_over),
        source="langchain_classic/retrievers/ensemble.py, 1.0.8",
        paste=python_snippets.langchain_ensemble,
        weights=MADE_SHARES,
        k=60,
        whole_k=True,
        notes=("the same text is the same document, unless id_key is set",),
    ),
    Engine(
        name="llamaindex-rrf",
        about="Σ 1/(59+r)",
        formulas=only(RankValues(first=0), joins.weighted_sum),
        source="llama_index/core/retrievers/fusion_retriever.py, 0.14.25",
        paste=partial(python_snippets.llamaindex, "RECIPROCAL_RANK"),
        exact="LlamaIndex first orders a list by its scores; here the order of the run counts",
        notes=("weights are ignored", "num_queries is 1"),
    ),
    Engine(
        name="llamaindex-relative",
        about="Σ w·(s−min)/(max−min)",
        formulas=only(
            NormalisedScores({"relative": normalisers.sign_or_share_of_span}), joins.sum_of_shares
        ),
        source="llama_index/core/retrievers/fusion_retriever.py, 0.14.25",
        paste=partial(python_snippets.llamaindex, "RELATIVE_SCORE"),
        weights=MADE_SHARES,
        notes=("equal scores are 1 if they are above 0, else 0", "num_queries is 1"),
    ),
    Engine(
        name="llamaindex-dist",
        about="Σ w·(s−μ+3σ)/6σ",
        formulas=only(
            NormalisedScores({"dist": normalisers.within_3_deviations}), joins.sum_of_shares
        ),
        source="llama_index/core/retrievers/fusion_retriever.py, 0.14.25",
        paste=partial(python_snippets.llamaindex, "DIST_BASED_SCORE"),
        weights=MADE_SHARES,
        notes=("σ divides by n; equal scores are 1 if above 0, else 0", "num_queries is 1"),
    ),
    Engine(
        name="haystack-rrf",
        about="Σ 61·w/(60+r)",
        formulas=only(DIVISOR(k=61, first=0), joins.scaled_weights_over),
        source="haystack/utils/misc.py, 3.4.0",
        paste=partial(python_snippets.haystack, "reciprocal_rank_fusion"),
        weights=MADE_SHARES,
        notes=("weights are made to add up to 1; the best possible score is 1",),
    ),
    Engine(
        name="haystack-dbsf",
        about="max (s−μ+3σ)/6σ",
        formulas=only(
            NormalisedScores({"dbsf": normalisers.raw_or_within_3_deviations}), joins.largest
        ),
        source="haystack/components/joiners/document_joiner.py, 3.4.0",
        paste=partial(python_snippets.haystack, "distribution_based_rank_fusion"),
        notes=(
            "the larger value counts, not the sum; weights are ignored",
            "σ divides by n; equal scores stay as they are",
        ),
    ),
    Engine(
        name="autorag-cc",
        about="Σ w·n",
        formulas=only(FilledScores(("mm", "tmm", "z", "dbsf"), (-1.0, 0.0)), joins.weighted_sum),
        source="AutoRAG hybrid_cc; docs/dialects.md",
        paste=snippets.autorag_cc,
        weights=SHARES,
        together=all_the_same,
        roles=("semantic", "lexical"),
        notes=("a missing document, and a list of equal scores, count as 0",),
    ),
    Engine(
        name="autorag-rrf",
        about="Σ 1/(k+r)",
        formulas=only(RankValues(shared=True), joins.weighted_sum),
        source="AutoRAG hybrid_rrf; docs/dialects.md",
        paste=snippets.autorag_rrf,
        k=60,
        notes=("documents with the same score share the better rank",),
    ),
    Engine(
        name="course-rrf",
        about="Σ 1/(k+r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="the course; docs/dialects.md",
        paste=python_snippets.course_rrf,
        k=60,
    ),
)
