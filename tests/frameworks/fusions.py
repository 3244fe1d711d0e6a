"""Fusions of real frameworks, configured by the snippets of findwell, beside those of findwell.

`python -m tests.frameworks.fusions NAME` fuses random lists by the framework and by findwell, and
prints one JSON object: for each engine and case both answers. It runs in the environment that
`make .venv/frameworks` sets up, for `tests/frameworks/test_fusions.py`.
"""

from __future__ import annotations

import json
import math
import random
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from findwell.loop.tuning import Setting, find_engine, fuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Scored: TypeAlias = dict[str, float]
    Fused: TypeAlias = list[tuple[str, float | None]]

CASES = 60
NAMES = ("bm25", "dense")


def lists(seed: int) -> list[Scored]:
    """Return two lists: some documents are in both, some scores equal, a list may be short."""
    chance = random.Random(seed)
    found: list[Scored] = []
    for _ in NAMES:
        docs = chance.sample([f"d{number}" for number in range(12)], chance.choice([1, 2, 5, 9]))
        kind = chance.choice(["different", "different", "coarse", "equal"])
        values = {
            "different": [chance.uniform(-1, 9) for _ in docs],
            "coarse": [chance.randint(-1, 3) / 2 for _ in docs],
            "equal": [chance.choice([-0.5, 0.25, 3.0])] * len(docs),
        }[kind]
        found.append(dict(zip(docs, sorted(values, reverse=True), strict=True)))
    return found


def settings(engine: str, seed: int) -> Setting:
    """Return the engine's defaults, or a setting of its own for every other case."""
    found = find_engine(engine)
    if seed % 2 == 0:
        return found.setting(2)
    share = random.Random(seed).choice([0.1, 0.3, 0.625])
    knobs: dict[str, Any] = {"weights": (share, 1 - share), "k": 7, "fill": 2}
    return found.setting(2, **{name: knobs[name] for name in found.knobs if name in knobs})


def run(snippet: str, **given: Any) -> dict[str, Any]:
    """Execute a snippet with what it names, and return what it makes."""
    exec(snippet, given)
    return given


def langchain(engine: str, setting: Setting, runs: Sequence[Scored]) -> Fused:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Listed(BaseRetriever):  # type: ignore[misc]
        docs: list[str]

        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            del query, run_manager
            return [Document(page_content=doc, id=doc) for doc in self.docs]

    bm25, dense = (Listed(docs=list(each)) for each in runs)
    made = run(find_engine(engine).snippet(setting, NAMES), bm25=bm25, dense=dense)
    return [(doc.page_content, None) for doc in made["retriever"].invoke("?")]


def llamaindex(engine: str, setting: Setting, runs: Sequence[Scored]) -> Fused:
    from llama_index.core import Settings
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    Settings.llm = MockLLM()

    class Listed(BaseRetriever):
        def __init__(self, scores: Scored) -> None:
            self._scores = scores
            super().__init__()

        def _retrieve(self, query_bundle: object) -> list[NodeWithScore]:
            del query_bundle
            return [
                NodeWithScore(node=TextNode(text=doc, id_=doc), score=score)
                for doc, score in self._scores.items()
            ]

        async def _aretrieve(self, query_bundle: object) -> list[NodeWithScore]:
            return self._retrieve(query_bundle)

    bm25, dense = map(Listed, runs)
    made = run(find_engine(engine).snippet(setting, NAMES), bm25=bm25, dense=dense)
    made["retriever"].similarity_top_k = 100
    return [(found.node.node_id, found.score) for found in made["retriever"].retrieve("?")]


def haystack(engine: str, setting: Setting, runs: Sequence[Scored]) -> Fused:
    from haystack import Document

    joiner = run(find_engine(engine).snippet(setting, NAMES))["joiner"]
    documents = [[Document(id=doc, score=score) for doc, score in each.items()] for each in runs]
    return [(doc.id, doc.score) for doc in joiner.run(documents=documents)["documents"]]


def qdrant(engine: str, setting: Setting, runs: Sequence[Scored]) -> Fused:
    from qdrant_client.http.models import Fusion, QueryRequest, ScoredPoint
    from qdrant_client.hybrid import fusion

    text = find_engine(engine).snippet(setting, NAMES)
    request = QueryRequest(**json.loads(text[text.index("{") :]))
    points = [
        [ScoredPoint(id=int(doc[1:]), version=0, score=score) for doc, score in each.items()]
        for each in runs
    ]
    query: Any = request.query
    if engine == "qdrant-dbsf":
        assert query.fusion == Fusion.DBSF
        found = fusion.distribution_based_score_fusion(points, limit=100)
    else:
        found = fusion.reciprocal_rank_fusion(
            points, limit=100, ranking_constant_k=query.rrf.k, weights=query.rrf.weights
        )
    return [(f"d{point.id}", point.score) for point in found]


def lancedb(engine: str, setting: Setting, runs: Sequence[Scored]) -> Fused:
    import pyarrow as pa
    from lancedb.query import LanceHybridQueryBuilder

    keyword, vector = runs

    class Table:
        """Stands for a table: it fuses these lists by the code of the hybrid query."""

        def search(self, question: str, query_type: str) -> Table:
            del question
            assert query_type == "hybrid"
            return self

        def limit(self, _: int) -> Table:
            return self

        def rerank(self, reranker: object) -> SimpleNamespace:
            ids = {"_rowid": pa.array([int(doc[1:]) for doc in keyword], pa.uint64())}
            text = pa.table(ids | {"_score": pa.array(keyword.values(), pa.float64())})
            ids = {"_rowid": pa.array([int(doc[1:]) for doc in vector], pa.uint64())}
            # similarity is 1 - distance
            distance = pa.array([1 - score for score in vector.values()], pa.float64())
            found = LanceHybridQueryBuilder._combine_hybrid_results(
                text, pa.table(ids | {"_distance": distance}), "score", "?", reranker, 100, True
            )
            self.found = found.to_pylist()
            return SimpleNamespace(to_list=lambda: self.found)

    table = Table()
    run(find_engine(engine).snippet(setting, NAMES), table=table, question="?")
    return [(f"d{row['_rowid']}", row["_relevance_score"]) for row in table.found]


def chroma(engine: str, setting: Setting, runs: Sequence[Scored]) -> Fused:
    found: list[Any] = []
    collection = SimpleNamespace(search=found.append)
    run(find_engine(engine).snippet(setting, NAMES), question="?", collection=collection)
    expression = found[0].to_dict()["rank"]
    ranks = [{doc: place for place, doc in enumerate(each)} for each in runs]

    def value(node: dict[str, Any], doc: str) -> float | None:
        """Return what Chroma's expression is worth for a document; None if it has no value."""
        ((operator, given),) = node.items()
        if operator == "$val":
            return float(given)
        if operator == "$knn":
            assert given["return_rank"]
            place: float | None = ranks[NAMES.index(given["key"])].get(doc, given.get("default"))
            return place
        parts = [given["left"], given["right"]] if operator == "$div" else given
        values = [value(part, doc) for part in parts]
        if None in values:
            return None
        numbers = [number for number in values if number is not None]
        if operator == "$div":
            return numbers[0] / numbers[1]
        assert operator in ("$sum", "$mul")
        return math.fsum(numbers) if operator == "$sum" else math.prod(numbers)

    docs = {doc for each in runs for doc in each}
    scores = {doc: value(expression, doc) for doc in docs}
    return [(doc, -score) for doc, score in scores.items() if score is not None]


def milvus(engine: str, setting: Setting, runs: Sequence[Scored]) -> Fused:
    """Milvus fuses in its server: only what the client sends is looked at."""
    sent: list[Any] = []
    client = SimpleNamespace(
        hybrid_search=lambda *given, **named: sent.append((given[1], named["ranker"]))
    )
    run(find_engine(engine).snippet(setting, NAMES), client=client, bm25_query=[], dense_query=[])
    ((requests, ranker),) = sent
    params = ranker.dict()["params"]
    assert [request.anns_field for request in requests] == list(NAMES)
    expected = {"k": setting.k} if setting.k else {"weights": [*setting.weights]}
    assert params == expected | ({} if setting.k else {"norm_score": False})
    return by_findwell(engine, setting, runs)


ORACLES: dict[str, tuple[Callable[[str, Setting, Sequence[Scored]], Fused], tuple[str, ...]]] = {
    "langchain": (langchain, ("langchain-ensemble",)),
    "llamaindex": (
        llamaindex,
        ("llamaindex-rrf", "llamaindex-relative", "llamaindex-dist"),
    ),
    "haystack": (haystack, ("haystack-rrf", "haystack-dbsf")),
    "qdrant": (qdrant, ("qdrant-rrf", "qdrant-dbsf")),
    "lancedb": (lancedb, ("lancedb-rrf", "lancedb-linear", "lancedb-mrr")),
    "chroma": (chroma, ("chroma-rrf",)),
    "milvus": (milvus, ("milvus-rrf", "milvus-weighted")),
}


def by_findwell(engine: str, setting: Setting, runs: Sequence[Scored]) -> Fused:
    """Fuse by findwell."""
    ranked = [
        [{"query": "q", "retrieved": [{"doc": d, "score": s} for d, s in each.items()]}]
        for each in runs
    ]
    fused = fuse(ranked, engine, **setting.as_dict())
    return [(doc, score) for _, doc, score in fused.rows.rows() if doc is not None]


def answers(name: str) -> Iterator[dict[str, Any]]:
    """Yield the two answers of every engine and case."""
    oracle, engines = ORACLES[name]
    for engine in engines:
        for seed in range(CASES):
            setting, runs = settings(engine, seed), lists(seed)
            yield {
                "case": f"{engine} {seed} {setting}",
                "runs": runs,
                "framework": oracle(engine, setting, runs),
                "findwell": by_findwell(engine, setting, runs),
            }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(list(answers(sys.argv[1]))) + "\n")
