"""Requests, pipelines, queries and files of engines, ready to paste.

Words in capitals, and names of fields and queries, are for the reader to fill in; the numbers
are those of the setting. The first run is taken for the text search, the others for vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from findwell.loop.tuning.engines.snippet_parts import (
    ROWS,
    as_json,
    comment,
    identifiers,
    lines,
    request,
    short_number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from findwell.loop.tuning.engines.engine import Setting


def elasticsearch_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a search request."""
    rrf = {
        "retrievers": [
            {"retriever": retriever, **_unless_one("weight", weight)}
            for retriever, weight in zip(_retrievers(setting, runs), setting.weights, strict=True)
        ],
        "rank_constant": setting.k,
        "rank_window_size": setting.window,
    }
    return request(setting, runs, "POST /INDEX/_search", {"retriever": {"rrf": rrf}})


def elasticsearch_linear(setting: Setting, runs: Sequence[str]) -> str:
    """Return a search request."""
    linear = {
        "retrievers": [
            {"retriever": retriever, "weight": weight, "normalizer": normaliser}
            for retriever, weight, normaliser in zip(
                _retrievers(setting, runs), setting.weights, setting.normaliser, strict=True
            )
        ],
        "rank_window_size": setting.window,
    }
    return request(setting, runs, "POST /INDEX/_search", {"retriever": {"linear": linear}})


def opensearch_normalization(
    normalisation: str, combination: str, setting: Setting, runs: Sequence[str]
) -> str:
    """Return a search pipeline."""
    processor = {
        "normalization": {"technique": normalisation},
        "combination": {"technique": f"{combination}_mean", **_weights_of_one(setting)},
    }
    return _pipeline(setting, runs, "normalization-processor", processor)


def opensearch_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a search pipeline."""
    combination = {
        "technique": "rrf",
        "rank_constant": setting.k,
        **_weights_of_one(setting),
    }
    return _pipeline(setting, runs, "score-ranker-processor", {"combination": combination})


def qdrant_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a query request."""
    rrf: dict[str, Any] = {"k": setting.k}
    if any(weight != 1 for weight in setting.weights):
        rrf["weights"] = list(setting.weights)
    return _qdrant(setting, runs, {"rrf": rrf})


def qdrant_dbsf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a query request."""
    return _qdrant(setting, runs, {"fusion": "dbsf"})


def vespa_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a rank profile."""
    names = identifiers(runs)
    if setting.k == 60 and all(weight == 1 for weight in setting.weights):  # as it is built in
        return _vespa(setting, runs, f"reciprocal_rank_fusion({', '.join(names)})")
    k = short_number(setting.k)
    return _vespa(
        setting, runs, _terms(setting, [f"reciprocal_rank({name}, {k})" for name in names])
    )


def vespa_linear(setting: Setting, runs: Sequence[str]) -> str:
    """Return a rank profile."""
    terms = [f"normalize_linear({name})" for name in identifiers(runs)]
    return _vespa(setting, runs, _terms(setting, terms))


def azure_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a search request."""
    first = setting.weights[0]
    body = {
        "search": "QUESTION",
        "vectorQueries": [
            {
                "kind": "text",
                "text": "QUESTION",
                "fields": name,
                "k": setting.window or ROWS,
                "weight": weight / first,
            }
            for name, weight in zip(runs[1:], setting.weights[1:], strict=True)
        ],
    }
    url = "POST https://SERVICE.search.windows.net/indexes/INDEX/docs/search?api-version=2024-07-01"
    return request(setting, runs, url, body)


def mongodb_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return an aggregation stage."""
    names = identifiers(runs)
    window = setting.window or ROWS
    vector = {
        "index": "VECTOR_INDEX",
        "path": "embedding",
        "queryVector": "VECTOR",
        "numCandidates": 10 * window,
        "limit": window,
    }
    text = {"index": "TEXT_INDEX", "text": {"query": "QUESTION", "path": "text"}}
    stages = {
        name: [{"$vectorSearch": vector}] if number else [{"$search": text}, {"$limit": window}]
        for number, name in enumerate(names)
    }
    weights = dict(zip(names, setting.weights, strict=True))
    body = {"$rankFusion": {"input": {"pipelines": stages}, "combination": {"weights": weights}}}
    return lines(comment(setting, runs, "//"), as_json(body))


def redis_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a command."""
    window = setting.window or ROWS
    combine = f"COMBINE RRF 4 CONSTANT {short_number(setting.k)} WINDOW {window}"
    return _redis(setting, runs, combine)


def redis_linear(setting: Setting, runs: Sequence[str]) -> str:
    """Return a command."""
    alpha, beta = map(short_number, setting.weights)
    window = setting.window or ROWS
    combine = f"COMBINE LINEAR 6 ALPHA {alpha} BETA {beta} WINDOW {window}"
    return _redis(setting, runs, combine)


def pgvector_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return a query."""
    names = identifiers(runs)
    window = setting.window or ROWS
    searches = [
        f"{name} AS (\n"  # noqa: S608 - a text to paste, not a query that is run
        f"  SELECT id, RANK() OVER (ORDER BY {_sql_order(number)}) AS rank\n"
        f"  FROM documents{_sql_filter(number)}\n"
        f"  ORDER BY {_sql_order(number)}\n"
        f"  LIMIT {window}\n"
        ")"
        for number, name in enumerate(names)
    ]
    k = short_number(setting.k)
    terms = [
        f"COALESCE({float(weight)!r} / ({k} + {name}.rank), 0.0)"  # 1 / 61 would be 0
        for name, weight in zip(names, setting.weights, strict=True)
    ]
    joined = names[0] + "".join(f"\nFULL OUTER JOIN {name} USING (id)" for name in names[1:])
    return lines(
        comment(setting, runs, "--"),
        f"WITH {', '.join(searches)}",
        f"SELECT id, {' + '.join(terms)} AS score",
        f"FROM {joined}",
        "ORDER BY score DESC",
        "LIMIT 10;",
    )


def autorag_cc(setting: Setting, runs: Sequence[str]) -> str:
    """Return the module of a node."""
    weight = short_number(setting.weights[0])
    return lines(
        comment(setting, runs),
        "modules:",
        "  - module_type: hybrid_cc",
        f"    normalize_method: [{setting.normaliser[0]}]",
        f"    weight_range: ({weight}, {weight})",
        "    test_weight_size: 1",
    )


def autorag_rrf(setting: Setting, runs: Sequence[str]) -> str:
    """Return the module of a node."""
    k = short_number(setting.k)
    return lines(
        comment(setting, runs),
        "modules:",
        "  - module_type: hybrid_rrf",
        f"    weight_range: ({k}, {k})",
    )


def _retrievers(setting: Setting, runs: Sequence[str]) -> list[dict[str, Any]]:
    """Return retrievers of Elasticsearch: the first for text, the others for vectors."""
    window = setting.window or ROWS
    text = {"standard": {"query": {"match": {"text": "QUESTION"}}}}
    return [
        {
            "knn": {
                "field": name,
                "query_vector_builder": {
                    "text_embedding": {"model_id": "MODEL", "model_text": "QUESTION"}
                },
                "k": window,
                "num_candidates": max(100, 2 * window),
            }
        }
        if number
        else text
        for number, name in enumerate(runs)
    ]


def _pipeline(setting: Setting, runs: Sequence[str], name: str, processor: dict[str, Any]) -> str:
    body = {"phase_results_processors": [{name: processor}]}
    return request(setting, runs, "PUT /_search/pipeline/NAME", body)


def _qdrant(setting: Setting, runs: Sequence[str], query: dict[str, Any]) -> str:
    prefetch = [
        {
            "query": {"text": "QUESTION", "model": "MODEL"},
            "using": name,
            "limit": setting.window or ROWS,
        }
        for name in runs
    ]
    body = {"prefetch": prefetch, "query": query, "limit": 10}
    return request(setting, runs, "POST collections/NAME/points/query", body, "//")


def _vespa(setting: Setting, runs: Sequence[str], expression: str) -> str:
    functions = [
        f"  function {name}() {{ expression: "
        + ("closeness(field, embedding)" if number else "bm25(text)")
        + " }"
        for number, name in enumerate(identifiers(runs))
    ]
    return lines(
        comment(setting, runs),
        "rank-profile hybrid {",
        *functions,
        f"  first-phase {{ expression: {identifiers(runs)[-1]} }}",
        f"  match-features: {' '.join(identifiers(runs))}",
        "  global-phase {",
        f"    rerank-count: {setting.window or ROWS}",
        f"    expression: {expression}",
        "  }",
        "}",
    )


def _terms(setting: Setting, terms: Sequence[str]) -> str:
    return " + ".join(
        f"{short_number(weight)} * {term}"
        for weight, term in zip(setting.weights, terms, strict=True)
    )


def _redis(setting: Setting, runs: Sequence[str], combine: str) -> str:
    return lines(
        comment(setting, runs),
        "FT.HYBRID INDEX",
        '  SEARCH "QUESTION"',
        f"  VSIM @embedding $vector KNN 2 K {setting.window or ROWS}",
        f"  {combine}",
        "  PARAMS 2 vector BLOB",
    )


def _sql_order(number: int) -> str:
    text = "ts_rank_cd(to_tsvector('english', content), plainto_tsquery('english', :question)) DESC"
    return "embedding <=> :embedding" if number else text


def _sql_filter(number: int) -> str:
    text = "\n  WHERE to_tsvector('english', content) @@ plainto_tsquery('english', :question)"
    return "" if number else text


def _weights_of_one(setting: Setting) -> dict[str, Any]:
    """Return the weights, which OpenSearch takes only if they add up to 1."""
    if all(weight == 1 for weight in setting.weights) and len(setting.weights) > 1:
        return {}
    return {"parameters": {"weights": list(setting.weights)}}


def _unless_one(name: str, weight: float) -> dict[str, float]:
    return {} if weight == 1 else {name: weight}
