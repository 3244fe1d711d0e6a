"""An application in production: a LangChain retriever whose calls are traced by OpenInference.

    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python app.py 300
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python app.py 200 --broken

It knows nothing about findwell, but for the corpus and the questions of the demo. With `--broken`
the import into its index has stopped early: three of four passages are missing, and nobody is told.
"""

import argparse
import json
import math
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import findwell

DEMO = Path(findwell.__file__).parent / "demo"
K1, B, SHOWN = 1.2, 0.75, 5


def words(text: str) -> list[str]:
    """Return the words of a text."""
    return re.findall(r"\w+", text.lower())


class Bm25Retriever(BaseRetriever):  # type: ignore[misc]
    """BM25 over passages in memory."""

    passages: list[dict[str, Any]]

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:
        counts = [Counter(words(f"{each['title']} {each['text']}")) for each in self.passages]
        usual = sum(map(Counter.total, counts)) / len(counts)
        scores = [0.0] * len(counts)
        for word in set(words(query)):
            known = sum(word in each for each in counts)
            weight = math.log(1 + (len(counts) - known + 0.5) / (known + 0.5))
            for at, each in enumerate(counts):
                length = K1 * (1 - B + B * each.total() / usual)
                scores[at] += weight * each[word] * (K1 + 1) / (each[word] + length)
        best = sorted(range(len(scores)), key=lambda at: -scores[at])[:SHOWN]
        return [
            Document(self.passages[at]["text"], id=self.passages[at]["doc"])
            for at in best
            if scores[at] > 0
        ]


def read(name: str) -> list[dict[str, Any]]:
    """Read a file of the demo."""
    return [json.loads(line) for line in (DEMO / name).read_text("utf-8").splitlines()]


def main() -> None:
    """Answer questions as they come, and send their traces."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, help="how many questions come")
    parser.add_argument("--broken", action="store_true", help="most of the index is missing")
    parser.add_argument("--seed", type=int, default=1, help="which questions come")
    given = parser.parse_args()

    provider = TracerProvider(resource=Resource.create({"service.name": "help-desk"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    LangChainInstrumentor().instrument(tracer_provider=provider)

    retriever = Bm25Retriever(passages=read("passages.jsonl")[:: 4 if given.broken else 1])
    questions = [each["question"] for each in read("questions.jsonl")]
    choice = random.Random(given.seed)  # noqa: S311 - nothing is secret about it
    for _ in range(given.count):
        retriever.invoke(choice.choice(questions))
    provider.shutdown()  # sends what is left


if __name__ == "__main__":
    main()
