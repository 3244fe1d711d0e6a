"""Real chunks of LangChain, LlamaIndex and Haystack against a gold of places.

It runs in the environment of the frameworks, and prints the values of measures as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import findwell
from findwell.evaluation.plan import grouped
from findwell.retrievers.answers import as_json_lines

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = {
    "charging.md": "Charge the bike before the first ride. It takes four hours. "
    "Do not leave the charger outside in the rain. A full battery lasts two days.",
    "motor.md": "Press the red button to start. To stop, press it again. "
    "Only a dealer may open the motor. Call one before you go there.",
}
LABELS = {
    "How many hours does charging take?": ("charging.md", "It takes four hours."),
    "How long does a full battery last?": ("charging.md", "A full battery lasts two days."),
    "Who may open the motor?": ("motor.md", "Only a dealer may open the motor."),
    "How do I stop it?": ("motor.md", "To stop, press it again."),
    # the right file is found, but not the place
    "Is the bike ready before the first ride?": ("charging.md", "leave the charger outside"),
}
GOLD: list[dict[str, Any]] = []
for number, (asked, (name, quote)) in enumerate(LABELS.items()):
    first = FILES[name].index(quote)
    label = {"doc": name, "start": first, "end": first + len(quote)}
    GOLD.append({"query": f"q{number}", "question": asked, "gold": [label]})
K = 1


def best(chunks: list[Any], text: Callable[[Any], str]) -> Callable[[str], list[Any]]:
    """Return a retriever that counts the words in common."""

    def find(question: str) -> list[Any]:
        words = {*question.lower().strip("?").split()}
        return sorted(chunks, key=lambda each: -len(words & {*text(each).lower().split()}))[:K]

    return find


def langchain(folder: str) -> Any:
    from langchain_core.documents import Document
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(chunk_size=50, chunk_overlap=0, add_start_index=True)
    files = [Document(text, metadata={"source": folder + name}) for name, text in FILES.items()]
    return splitter.split_documents(files)


def stored(folder: str) -> Any:
    """Return the chunks as a vector store gives them back: with UUIDs."""
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(langchain(folder))
    return store.similarity_search("", k=100)


def llama_index(folder: str) -> Any:
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import Document, NodeWithScore

    files = [Document(id_=folder + name, text=text) for name, text in FILES.items()]
    nodes = SentenceSplitter(chunk_size=16, chunk_overlap=0).get_nodes_from_documents(files)
    return [NodeWithScore(node=node, score=None) for node in nodes]


def haystack(folder: str) -> Any:
    from haystack import Document
    from haystack.components.preprocessors import DocumentSplitter

    files = [
        Document(content=text, meta={"file_path": folder + name}) for name, text in FILES.items()
    ]
    splitter = DocumentSplitter(split_by="word", split_length=9, split_overlap=0)
    splitter.warm_up()
    return splitter.run(documents=files)["documents"]


TEXTS = {
    "langchain": lambda each: each.page_content,
    "stored": lambda each: each.page_content,
    "llama_index": lambda each: each.node.text,
    "haystack": lambda each: each.content,
}
SOURCES = {
    "langchain": "metadata.source",
    "stored": "metadata.source",
    "llama_index": "node.ref_doc_id",
    "haystack": "meta.file_path",
}


def by_hand(chunks: list[Any], name: str) -> float:
    """Return the recall at K by places, counted without findwell's readers."""
    find, found = best(chunks, TEXTS[name]), 0
    for asked, (file, quote) in LABELS.items():
        begin = FILES[file].index(quote)
        want = {*range(begin, begin + len(quote))}
        held: set[int] = set()
        for chunk in find(asked):
            text = TEXTS[name](chunk)
            if text in FILES[file]:
                at = FILES[file].index(text)
                held |= want & {*range(at, at + len(text))}
        found += len(held) >= len(want) / 2
    return found / len(LABELS)


def tell(run: Any, **options: Any) -> Any:
    try:
        result = findwell.evaluate(run, GOLD, f"recall@{K}", **grouped(options))
    except findwell.FindwellError as error:
        return {"error": type(error).__name__, "what": error.what, "fix": error.fix}
    return {
        "recall": result[f"recall@{K}"],
        "by": str(next(iter(result.matched_by.values()))),
        "findings": [str(each.kind) for each in result.findings],
    }


def main(name: str) -> dict[str, Any]:
    make = globals()[name]
    chunks = make("")
    find = best(chunks, TEXTS[name])
    answers = {each["query"]: find(each["question"]) for each in GOLD}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        run = findwell.retrieve(find, {each["query"]: each["question"] for each in GOLD})
        path.write_text("".join(as_json_lines(run)), encoding="utf-8")
        saved = tell(str(path))
    elsewhere = make("/srv/docs/")
    return {
        "by hand": by_hand(chunks, name),
        "retriever": tell(find),
        "objects": tell(answers),
        "file": saved,
        "source as id": tell(find, id_from=SOURCES[name]),
        "documents": tell(find, id_from=SOURCES[name], by="ids"),
        "paths": tell(best(elsewhere, TEXTS[name])),
        "stems": tell(best(elsewhere, TEXTS[name]), ids="stem"),
        "chunk gold": _chunk_gold(best(chunks, TEXTS[name])),
    }


def _chunk_gold(find: Callable[[str], list[Any]]) -> Any:
    """Evaluate against labels that name chunks by ids that nobody has."""
    gold = [{**each, "gold": [f"chunk {each['query']}"]} for each in GOLD]
    try:
        result = findwell.evaluate(find, gold, f"recall@{K}")
    except findwell.FindwellError as error:
        return {"error": type(error).__name__, "what": error.what}
    return {"findings": [str(each.kind) for each in result.findings]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])) + "\n")
