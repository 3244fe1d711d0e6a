"""Code for the Python clients of engines, and for frameworks, ready to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.loop.tuning.engines.snippet_parts import (
    ROWS,
    comment,
    identifiers,
    lines,
    number_list,
    short_number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.loop.tuning.engines.engine import Setting


def weaviate(fusion: str, setting: Setting, runs: Sequence[str]) -> str:
    """Return a query of the Python client."""
    return lines(
        comment(setting, runs),
        "from weaviate.classes.query import HybridFusion",
        "",
        "collection.query.hybrid(",
        "    query=question,",
        f"    alpha={short_number(setting.weights[1])},",
        f"    fusion_type=HybridFusion.{fusion},",
        f"    limit={setting.window or 10},",
        ")",
    )


def milvus_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a hybrid search of pymilvus."""
    return _milvus(setting, runs, "RRFRanker", f"RRFRanker(k={short_number(setting.k)})")


def milvus_weighted(setting: Setting, runs: Sequence[str]) -> str:
    """Return a hybrid search of pymilvus."""
    norm = "none" not in setting.normaliser
    ranker = f"WeightedRanker({number_list(setting.weights)}, norm_score={norm})"
    return _milvus(setting, runs, "WeightedRanker", ranker)


def lancedb_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a hybrid search."""
    return _lancedb(setting, runs, "RRFReranker", f"K={short_number(setting.k)}")


def lancedb_linear(setting: Setting, runs: Sequence[str]) -> str:
    """Return a hybrid search."""
    given = f"weight={short_number(setting.weights[1])}, fill={short_number(setting.fill)}"
    alone = setting.normaliser[0] == "none"  # a hybrid query normalises, the reranker does not
    call = "reranker.rerank_hybrid(question, vector_results, text_results)" if alone else ""
    return _lancedb(setting, runs, "LinearCombinationReranker", given, call)


def lancedb_mrr(setting: Setting, runs: Sequence[str]) -> str:
    """Return a hybrid search."""
    keyword, vector = setting.weights
    given = f"weight_vector={short_number(vector)}, weight_fts={short_number(keyword)}"
    return _lancedb(setting, runs, "MRRReranker", given)


def chroma_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a search."""
    fill = "" if setting.fill is None else f", default={short_number(setting.fill)}"
    limit = setting.window or ROWS
    return lines(
        comment(setting, runs),
        "from chromadb import Knn, Rrf, Search",
        "",
        "rank = Rrf(",
        "    ranks=[",
        *(
            f'        Knn(query=question, key="{name}", limit={limit}, return_rank=True{fill}),'
            for name in identifiers(runs)
        ),
        "    ],",
        f"    weights=[{number_list(setting.weights)}],",
        f"    k={short_number(setting.k)},",
        ")",
        "collection.search(Search().rank(rank).limit(10))",
    )


def langchain_ensemble(setting: Setting, runs: Sequence[str]) -> str:
    """Return the retriever."""
    return lines(
        comment(setting, runs),
        "from langchain_classic.retrievers import EnsembleRetriever",
        "",
        "retriever = EnsembleRetriever(",
        f"    retrievers=[{', '.join(identifiers(runs))}],",
        f"    weights=[{number_list(setting.weights)}],",
        f"    c={short_number(setting.k)},",
        ")",
    )


def llamaindex(mode: str, setting: Setting, runs: Sequence[str]) -> str:
    """Return the retriever."""
    weights = (
        [f"    retriever_weights=[{number_list(setting.weights)}],"] if setting.weights else []
    )
    return lines(
        comment(setting, runs),
        "from llama_index.core.retrievers import QueryFusionRetriever",
        "from llama_index.core.retrievers.fusion_retriever import FUSION_MODES",
        "",
        "retriever = QueryFusionRetriever(",
        f"    [{', '.join(identifiers(runs))}],",
        f"    mode=FUSION_MODES.{mode},",
        *weights,
        "    num_queries=1,",
        f"    similarity_top_k={setting.window or 10},",
        ")",
    )


def haystack(mode: str, setting: Setting, runs: Sequence[str]) -> str:
    """Return the component."""
    weights = [f"    weights=[{number_list(setting.weights)}],"] if setting.weights else []
    return lines(
        comment(setting, runs),
        "from haystack.components.joiners import DocumentJoiner",
        "",
        "joiner = DocumentJoiner(",
        f'    join_mode="{mode}",',
        *weights,
        ")",
    )


def course_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return the call."""
    names = ", ".join(identifiers(runs))
    return lines(
        comment(setting, runs), f"reciprocal_rank_fusion([{names}], K={short_number(setting.k)})"
    )


def _milvus(setting: Setting, runs: Sequence[str], ranker: str, made: str) -> str:
    return lines(
        comment(setting, runs),
        f"from pymilvus import AnnSearchRequest, {ranker}",
        "",
        "requests = [",
        *(
            f'    AnnSearchRequest(data=[{name}_query], anns_field="{name}", param={{}}, '
            f"limit={setting.window or ROWS}),"
            for name in identifiers(runs)
        ),
        "]",
        f'client.hybrid_search("COLLECTION", requests, ranker={made}, limit=10)',
    )


def _lancedb(
    setting: Setting, runs: Sequence[str], reranker: str, given: str, call: str = ""
) -> str:
    limit = setting.window or ROWS
    hybrid = f'table.search(question, query_type="hybrid").limit({limit})'
    return lines(
        comment(setting, runs),
        f"from lancedb.rerankers import {reranker}",
        "",
        f"reranker = {reranker}({given})",
        call or f"{hybrid}.rerank(reranker).to_list()",
    )
