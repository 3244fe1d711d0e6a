"""A LangChain and a LlamaIndex retriever on the demo's corpus: quality and latency side by side."""

from langchain_core.documents import Document
from langchain_core.runnables import chain
from llama_index.core import SimpleKeywordTableIndex, llms, schema

import findwell

demo = f"{findwell.__path__[0]}/demo"
texts = findwell.io.load_corpus(f"{demo}/passages.jsonl").select("doc", "text").rows()


@chain  # type: ignore[untyped-decorator]
def shared_words(question: str) -> list[Document]:
    """Return the passages that share most words with the question."""
    best = sorted(texts, key=lambda pair: -len({*question.split()} & {*pair[1].split()}))
    return [Document(text, id=doc) for doc, text in best[:10]]


nodes = [schema.TextNode(id_=doc, text=text) for doc, text in texts]
index = SimpleKeywordTableIndex(nodes, llm=llms.MockLLM())
both = {"langchain": shared_words, "llama-index": index.as_retriever(retriever_mode="simple")}
print(findwell.compare(both, f"{demo}/questions.jsonl", measures=["recall@5", "nDCG@10"]))
