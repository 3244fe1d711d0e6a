"""Asks retrievers of real frameworks, in the environment that has them; prints what findwell found.

python -m tests.retrievers.real_frameworks NAME
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import findwell

TEXTS = {
    "battery-4": "Charging an empty battery takes four hours.",
    "errors-7": "Error code E14 means that the cells are out of balance.",
    "frame-2": "The frame is made of recycled aluminium.",
}
QUESTIONS = {
    "q1": "How long does charging the battery take?",
    "q2": "What does error code E14 mean?",
    "q3": "What is the frame made of?",
}
GOLD = [
    {"query": query, "question": QUESTIONS[query], "gold": [doc]}
    for query, doc in zip(QUESTIONS, TEXTS, strict=True)
]
WORDS = sorted({word.strip(".?").lower() for text in TEXTS.values() for word in text.split()})


def embed(text: str) -> list[float]:
    words = [word.strip(".?").lower() for word in text.split()]
    return [float(words.count(word)) + 0.01 for word in WORDS]


def langchain() -> dict[str, Any]:
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Words(Embeddings):  # type: ignore[misc]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return list(map(embed, texts))

        def embed_query(self, text: str) -> list[float]:
            return embed(text)

    store = InMemoryVectorStore(Words())
    store.add_texts(list(TEXTS.values()), ids=list(TEXTS))
    retriever = store.as_retriever(search_kwargs={"k": 2})
    return {
        "retriever": retriever,
        "async": retriever.ainvoke,
        "with scores": lambda q: store.similarity_search_with_score(q, k=2),
    }


def llama_index() -> dict[str, Any]:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.schema import TextNode

    class Words(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return embed(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return embed(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            await asyncio.sleep(0)
            return embed(query)

    nodes = [TextNode(id_=doc, text=text) for doc, text in TEXTS.items()]
    retriever = VectorStoreIndex(nodes, embed_model=Words()).as_retriever(similarity_top_k=2)
    return {"retriever": retriever, "async": retriever.aretrieve}


def haystack() -> dict[str, Any]:
    from haystack import Document, Pipeline
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    store.write_documents([Document(id=doc, content=text) for doc, text in TEXTS.items()])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    return {
        "retriever": InMemoryBM25Retriever(document_store=store),
        "pipeline": lambda q: pipeline.run({"retriever": {"query": q, "top_k": 2}}),
    }


def qdrant() -> dict[str, Any]:
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams

    client = QdrantClient(":memory:")
    size = VectorParams(size=len(WORDS), distance=Distance.COSINE)
    client.create_collection("docs", vectors_config=size)
    points = [
        PointStruct(id=number, vector=embed(text), payload={"chunk_id": doc, "text": text})
        for number, (doc, text) in enumerate(TEXTS.items())
    ]
    client.upsert("docs", points)

    def search(question: str, k: int = 10) -> object:
        return client.query_points("docs", query=embed(question), limit=k, with_payload=True)

    return {"search": findwell.retrievers.Retriever(search, id_from="payload.chunk_id")}


FRAMEWORKS: dict[str, Callable[[], dict[str, Any]]] = {
    "langchain": langchain,
    "llama-index": llama_index,
    "haystack": haystack,
    "qdrant": qdrant,
}


def report(retriever: Any) -> dict[str, Any]:
    """Return what findwell makes of a retriever: values, the first list, its texts, its timing."""
    run = findwell.retrieve(retriever, QUESTIONS, k=2)
    result = findwell.evaluate(retriever, GOLD, ["RR", "recall@2"])
    (timing,) = result.timing.values()
    first = run.rows.filter(query="q1")
    return {
        "values": result.values,
        "docs": first["doc"].to_list(),
        "texts": first["text"].to_list(),
        "n": timing.n,
        "p50": timing.p50,
        "findings": [found.kind for found in result.findings],
    }


if __name__ == "__main__":
    made = FRAMEWORKS[sys.argv[1]]()
    sys.stdout.write(json.dumps({name: report(each) for name, each in made.items()}) + "\n")
