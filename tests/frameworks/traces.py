"""Traces of real frameworks, instrumented by the real libraries, sent by the real exporters.

`python -m tests.frameworks.traces NAME` asks a retriever one question and prints one JSON object:
what arrived at a server of its own (base64), or what the tool exports. It runs in the environment
that `make .venv/frameworks` sets up, for `tests/frameworks/test_traces.py`.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.frameworks.answers import QUERY, TEXTS, VECTORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUESTION = "How long does it last?"


class Receiver(BaseHTTPRequestHandler):
    """Keeps the bodies of requests."""

    bodies: list[bytes] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        zipped = self.headers.get("content-encoding") == "gzip"
        if "/v1/traces" in self.path:
            self.bodies.append(gzip.decompress(body) if zipped else body)
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def receiving() -> Iterator[tuple[str, Any]]:
    """Give the address of a server and a provider of tracers that exports to it."""
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    exporter = OTLPSpanExporter(f"{address}/v1/traces", compression=Compression.Gzip)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    yield address, provider
    provider.shutdown()
    server.shutdown()


def ask_langchain() -> None:
    """Ask LangChain's retriever inside a chain."""
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables import RunnableLambda
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
        [Document(page_content=TEXTS[doc], id=doc, metadata={"source": doc}) for doc in TEXTS]
    )
    retriever = store.as_retriever(search_kwargs={"k": 3})
    chain = RunnableLambda(lambda given: given["question"]) | retriever
    chain.invoke({"question": QUESTION})


def openinference_langchain() -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    with receiving() as (_, provider):
        LangChainInstrumentor().instrument(tracer_provider=provider)
        ask_langchain()


def openinference_llama_index() -> None:
    """Ask LlamaIndex's retriever, and rerank what it found."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
    from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
    from llama_index.core.llms import MockLLM
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.schema import TextNode
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    class Known(BaseEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            del query
            return QUERY

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

        def _get_text_embedding(self, text: str) -> list[float]:
            return next(VECTORS[doc] for doc, each in TEXTS.items() if each == text)

    class Reversing(BaseNodePostprocessor):
        """Says what it does with the events of every reranker of LlamaIndex."""

        def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
            dispatcher = get_dispatcher(__name__)
            start = ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=2, model_name="m")
            dispatcher.event(start)
            kept = nodes[::-1][:2]
            dispatcher.event(ReRankEndEvent(nodes=kept))
            return kept

    with receiving() as (_, provider):
        LlamaIndexInstrumentor().instrument(tracer_provider=provider)
        nodes = [TextNode(id_=doc, text=text) for doc, text in TEXTS.items()]
        index = VectorStoreIndex(nodes, embed_model=Known())
        engine = RetrieverQueryEngine.from_args(
            index.as_retriever(similarity_top_k=3),
            llm=MockLLM(),
            node_postprocessors=[Reversing()],
        )
        engine.query(QUESTION)


def gen_ai() -> None:
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    with receiving() as (_, provider):
        LangChainInstrumentor().instrument(tracer_provider=provider)
        ask_langchain()


def traceloop() -> None:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    with receiving() as (_, provider):
        LangchainInstrumentor().instrument(tracer_provider=provider)
        ask_langchain()


def langsmith() -> None:
    with receiving() as (address, provider):
        on = {"TRACING": "true", "OTEL_ENABLED": "true", "OTEL_ONLY": "true", "API_KEY": "none"}
        os.environ |= {f"LANGSMITH_{name}": each for name, each in on.items()}
        os.environ["LANGSMITH_ENDPOINT"] = address
        from langchain_core.tracers.langchain import wait_for_all_tracers
        from opentelemetry import trace

        trace.set_tracer_provider(provider)
        ask_langchain()
        wait_for_all_tracers()
        _wait_for_spans(provider)


def _wait_for_spans(provider: Any) -> None:
    """Wait until the thread of LangSmith's client has handed its spans on."""
    for _ in range(100):
        provider.force_flush()
        if any(b"retriever" in body for body in Receiver.bodies):
            return
        threading.Event().wait(0.1)


def langfuse() -> None:
    with receiving() as (address, _):
        from langfuse import Langfuse

        client = Langfuse(public_key="pk", secret_key="sk", host=address)
        asked = {"as_type": "retriever", "name": "search", "input": {"query": QUESTION}}
        with client.start_as_current_observation(**asked) as observation:
            docs = [{"id": doc, "content": text} for doc, text in TEXTS.items()]
            observation.update(output=docs)
        client.flush()


def mlflow() -> list[Any]:
    """Return what MLflow exports of a trace: its JSON."""
    os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
    import mlflow as library
    from mlflow.entities import Document, SpanType

    @library.trace(span_type=SpanType.RETRIEVER)  # type: ignore[untyped-decorator]
    def search(query: str) -> list[Any]:
        del query
        return [Document(page_content=text, id=doc) for doc, text in TEXTS.items()]

    @library.trace(span_type=SpanType.CHAIN)  # type: ignore[untyped-decorator]
    def answer(question: str) -> str:
        return str(search(question)[0].page_content)

    with tempfile.TemporaryDirectory() as folder:
        library.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        answer(QUESTION)
        trace = library.get_trace(library.get_last_active_trace_id())
        return [json.loads(trace.to_json())]


TRACED: dict[str, Callable[[], list[Any] | None]] = {
    "openinference_langchain": openinference_langchain,
    "openinference_llama_index": openinference_llama_index,
    "gen_ai": gen_ai,
    "traceloop": traceloop,
    "langsmith": langsmith,
    "langfuse": langfuse,
    "mlflow": mlflow,
}

if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        exported = TRACED[sys.argv[1]]()
    bodies = [base64.b64encode(body).decode() for body in Receiver.bodies]
    sys.stdout.write(json.dumps({"bodies": bodies, "records": exported or []}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads of these libraries would wait for servers that are not there
