"""Answers of real frameworks, as objects, dicts and JSON, and what findwell reads in them.

`python -m tests.frameworks.answers NAME` asks one framework and prints one JSON object: for each
form of its answer the entries and the values of measures. It runs in the environment that
`make .venv/frameworks` sets up, for `tests/frameworks/test_answers.py`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import findwell
from findwell.io.read.format import EntryNotes
from findwell.io.read.objects import entries_of, is_answer, is_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Forms = Iterator[tuple[str, Any]]

TEXTS = {"d7": "It lasts six hours.", "d3": "Charge it first.", "d5": "Press the red button."}
VECTORS = {"d7": [1.0, 0.1], "d3": [1.0, 0.5], "d5": [1.0, 1.0]}
QUERY = [1.0, 0.0]  # nearest to d7, then d3, then d5, whatever the metric
NUMBERS = {"d7": 7, "d3": 3, "d5": 5}  # where ids must be numbers
SHUFFLED = ("d5", "d7", "d3")


def _uuid(doc: str) -> UUID:
    return UUID(int=NUMBERS[doc])


def langchain() -> Forms:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.load import dumpd
    from langchain_core.vectorstores import InMemoryVectorStore

    class Known(Embeddings):  # type: ignore[misc]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            by_text = {text: VECTORS[doc] for doc, text in TEXTS.items()}
            return [by_text[text] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            del text
            return QUERY

    store = InMemoryVectorStore(Known())
    store.add_documents(
        [
            Document(page_content=TEXTS[doc], id=doc, metadata={"source": f"{doc}.md"})
            for doc in SHUFFLED
        ]
    )
    documents = store.as_retriever(search_kwargs={"k": 3}).invoke("?")
    yield "objects", documents
    yield "scored", store.similarity_search_with_score("?", k=3)
    yield "dicts", [document.model_dump() for document in documents]
    yield "dumps", [dumpd(document) for document in documents]
    yield "json", [json.loads(document.model_dump_json()) for document in documents]
    yield "chain", {"input": "?", "context": documents, "answer": "…"}
    without = [Document(page_content=each.page_content) for each in documents]
    yield "without ids", without
    yield (
        "cut",
        [
            Document(
                page_content=each.page_content, metadata={"source": f"{doc}.md", "start_index": 4}
            )
            for doc, each in zip(TEXTS, documents, strict=True)
        ],
    )


def llama_index() -> Forms:
    from llama_index.core import Settings, VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.base.response.schema import Response
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

    class Known(BaseEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            del query
            return QUERY

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

        def _get_text_embedding(self, text: str) -> list[float]:
            raise NotImplementedError(text)

    Settings.llm = None  # none is needed, and the default one would be looked for
    nodes = [
        TextNode(
            id_=doc,
            text=TEXTS[doc],
            embedding=VECTORS[doc],
            start_char_idx=4,
            end_char_idx=4 + len(TEXTS[doc]),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="guide")},
        )
        for doc in SHUFFLED
    ]
    index = VectorStoreIndex(nodes, embed_model=Known())
    found = index.as_retriever(similarity_top_k=3).retrieve("?")
    yield "objects", found
    yield "dicts", [each.to_dict() for each in found]
    yield "json", [json.loads(each.model_dump_json()) for each in found]
    yield "nodes", [each.node for each in found]
    yield "response", Response(response="…", source_nodes=found)


def haystack() -> Forms:
    from haystack import Document, Pipeline
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [
            Document(id=doc, content=TEXTS[doc], embedding=VECTORS[doc], meta={"page": 1})
            for doc in SHUFFLED
        ]
    )
    retriever = InMemoryEmbeddingRetriever(store)
    answer = retriever.run(query_embedding=QUERY)
    yield "objects", answer["documents"]
    yield "answer", answer
    yield "dicts", [document.to_dict() for document in answer["documents"]]
    yield "nested dicts", [document.to_dict(flatten=False) for document in answer["documents"]]
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store))
    yield "pipeline", pipeline.run({"retriever": {"query_embedding": QUERY}})


def qdrant() -> Forms:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    for metric in (models.Distance.COSINE, models.Distance.EUCLID):
        client.create_collection(
            metric.value, vectors_config=models.VectorParams(size=2, distance=metric)
        )
        client.upsert(
            metric.value,
            [
                models.PointStruct(
                    id=NUMBERS[doc],
                    vector=VECTORS[doc],
                    payload={"text": TEXTS[doc], "doc_id": doc},
                )
                for doc in SHUFFLED
            ],
        )
        answer = client.query_points(metric.value, query=QUERY, with_payload=True)
        yield f"{metric.value}, response", answer
        yield f"{metric.value}, points", answer.points
        yield f"{metric.value}, dict", answer.model_dump()
        yield f"{metric.value}, json", json.loads(answer.model_dump_json())
    groups = client.query_points_groups("Cosine", group_by="doc_id", query=QUERY)
    yield "groups", groups
    request = models.QueryRequest(query=QUERY, limit=3, with_payload=True)
    yield "batch of one", client.query_batch_points("Cosine", [request])


def chroma() -> Forms:
    import chromadb

    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection("things", embedding_function=None)
    collection.add(
        ids=list(SHUFFLED),
        documents=[TEXTS[doc] for doc in SHUFFLED],
        embeddings=[VECTORS[doc] for doc in SHUFFLED],
        metadatas=[{"page": 1}] * 3,
    )
    yield "answer", dict(collection.query(query_embeddings=[QUERY], n_results=3))


def lancedb() -> Forms:
    import lancedb as package

    with tempfile.TemporaryDirectory() as folder:
        table = package.connect(folder).create_table(
            "things",
            [{"id": doc, "text": TEXTS[doc], "vector": VECTORS[doc]} for doc in SHUFFLED],
        )
        found = table.search(QUERY).limit(3)
        yield "rows", found.to_list()
        yield "arrow", found.to_arrow()
        yield "pandas", found.to_pandas()


def weaviate() -> Forms:
    from weaviate.collections.classes.internal import MetadataReturn, Object, QueryReturn

    for field, scores in {
        "distance": (0.1, 0.2, 0.3),
        "score": (0.3, 0.2, 0.1),
        "certainty": (0.3, 0.2, 0.1),
    }.items():
        answer: Any = QueryReturn(
            objects=[
                Object(
                    uuid=_uuid(doc),
                    metadata=MetadataReturn(**{field: score}),
                    properties={"text": TEXTS[doc]},
                    references=None,
                    vector={},
                    collection="Things",
                )
                for doc, score in zip(TEXTS, scores, strict=True)
            ]
        )
        yield f"{field}, response", answer
        yield f"{field}, objects", answer.objects
        yield f"{field}, dict", asdict(answer)
        yield f"{field}, json", json.loads(json.dumps(asdict(answer), default=str))


def pinecone() -> Forms:
    from pinecone import Hit, QueryResponse, ScoredVector

    scored = zip(TEXTS, (0.9, 0.8, 0.7), strict=True)
    answer = QueryResponse(
        matches=[
            ScoredVector(id=doc, score=score, values=[], metadata={"text": TEXTS[doc]})
            for doc, score in scored
        ],
        namespace="",
    )
    yield "response", answer
    yield "objects", answer.matches
    yield "dict", answer.to_dict()
    hits = [
        Hit(id_=doc, score_=score, fields={"chunk_text": TEXTS[doc]})
        for doc, score in zip(TEXTS, (0.9, 0.8, 0.7), strict=True)
    ]
    yield "hits", hits
    yield "hits as dicts", {"result": {"hits": [hit.to_dict() for hit in hits]}}


def milvus() -> Forms:
    from pymilvus.client.search_result import SearchResult
    from pymilvus.grpc_gen import schema_pb2

    data = schema_pb2.SearchResultData(
        num_queries=1,
        top_k=3,
        topks=[3],
        scores=[0.1, 0.2, 0.3],
        primary_field_name="my_key",
        output_fields=["text"],
    )
    data.ids.int_id.data.extend(NUMBERS[doc] for doc in TEXTS)
    field = data.fields_data.add(field_name="text", type=schema_pb2.DataType.VarChar)
    field.scalars.string_data.data.extend(TEXTS.values())
    answer = SearchResult(data)
    yield "answer", answer
    yield "hits", answer[0]
    yield "json", json.loads(json.dumps([dict(hit) for hit in answer[0]]))


def elasticsearch() -> Forms:
    from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig, ObjectApiResponse

    hits = [
        {"_index": "things", "_id": doc, "_score": score, "_source": {"content": TEXTS[doc]}}
        for doc, score in zip(TEXTS, (3.0, 2.0, 1.0), strict=True)
    ]
    body = {"took": 1, "timed_out": False, "hits": {"total": {"value": 3}, "hits": hits}}
    node = NodeConfig("http", "localhost", 9200)
    meta = ApiResponseMeta(200, "1.1", HttpHeaders(), 0.1, node)
    answer: Any = ObjectApiResponse(body=body, meta=meta)
    yield "response", answer
    yield "body", answer.body
    yield "hits", answer["hits"]["hits"]


FRAMEWORKS: dict[str, Callable[[], Forms]] = {
    source.__name__: source
    for source in (
        langchain,
        llama_index,
        haystack,
        qdrant,
        chroma,
        lancedb,
        weaviate,
        pinecone,
        milvus,
        elasticsearch,
    )
}


def read(answer: Any) -> dict[str, Any]:
    """Return what findwell makes of an answer: entries, findings, and values by id and by text."""
    notes = EntryNotes()
    entries = entries_of(answer, notes=notes)
    record = {"query": "q1", "retrieved": answer}
    by_id = findwell.evaluate([record], {"q1": [entries[1]["doc"]]}, ["RR", "nDCG@2"])
    gold = {"q1": [{"doc": "other", "text": TEXTS["d3"]}]}
    by_text = findwell.evaluate([record], gold, ["RR", "nDCG@2"], by="exact")
    values = [by_id.values, by_text.values]
    try:
        dumped = json.dumps(record)
    except TypeError:
        dumped = ""
    if dumped:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.jsonl"
            path.write_text(dumped + "\n", encoding="utf-8")
            values.append(findwell.evaluate(path, gold, ["RR", "nDCG@2"], by="exact").values)
    documents = isinstance(answer, list) and is_result(answer[0]) and not is_answer(answer[0])
    corpus = findwell.io.load_corpus(answer) if documents else None
    return {
        "entries": [
            {name: value for name, value in entry.items() if name != "metadata"}
            for entry in entries
        ],
        "corpus": None if corpus is None else corpus["text"].to_list(),
        "findings": [finding.kind for finding in notes.findings()],
        "values": values,
    }


if __name__ == "__main__":
    json.dump({form: read(answer) for form, answer in FRAMEWORKS[sys.argv[1]]()}, sys.stdout)
