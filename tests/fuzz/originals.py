"""Whole files of every format, made of the demo's data, and the commands that read them."""

from __future__ import annotations

import functools
import gzip
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import findwell
from findwell.judges.replay import FunctionJudge, record
from findwell.judges.verdicts import Sample

DEMO = Path(findwell.__file__).parent / "demo"
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
QUERIES, DEPTH = 6, 8


@dataclass(frozen=True, slots=True)
class Plan:
    """A command over files, one of which is spoilt."""

    name: str
    files: dict[str, bytes]
    command: tuple[str, ...]
    target: str  # the file that is spoilt
    kind: str  # how: see `spoiling.WAYS`
    codes: frozenset[int] = frozenset({0, 2, 3})  # 3: a measure without a value for any query


@dataclass(frozen=True, slots=True)
class Original:
    """A file of one format."""

    name: str
    kind: str
    content: bytes


def plans() -> list[Plan]:
    """Return every command over every format that it reads."""
    return [*_runs(), *_golds(), *_samples(), *_queries(), *_corpora(), *_labels(), *_folders()]


def _jsonl(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records).encode()


def _parquet(columns: Any) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(columns).write_parquet(out)
    return out.getvalue()


def _csv(frame: pl.DataFrame, separator: str = ",") -> bytes:
    return frame.write_csv(separator=separator).encode()


@functools.cache
def rows(name: str = "bm25") -> pl.DataFrame:
    """Return a run of the demo, shortened."""
    lines = [line.split() for line in (DEMO / f"{name}.trec").read_text().splitlines()]
    table = pl.DataFrame(
        [(query, doc, int(rank), float(score)) for query, _, doc, rank, score, _ in lines],
        schema=["query", "doc", "rank", "score"],
        orient="row",
    ).filter(pl.col("rank") <= DEPTH)
    kept = table["query"].unique(maintain_order=True).head(QUERIES)
    return table.filter(pl.col("query").is_in(kept.implode()))


@functools.cache
def asked() -> tuple[dict[str, Any], ...]:
    """Return the questions of these queries, with their gold."""
    lines = (DEMO / "questions.jsonl").read_text().splitlines()
    return tuple(json.loads(line) for line in lines[:QUERIES])


@functools.cache
def texts() -> dict[str, str]:
    """Return the passages that the runs and the gold name."""
    wanted = {*rows()["doc"], *rows("minilm")["doc"], *judged()["doc"]}
    lines = map(json.loads, (DEMO / "passages.jsonl").read_text().splitlines())
    return {each["doc"]: each["text"] for each in lines if each["doc"] in wanted}


@functools.cache
def judged() -> pl.DataFrame:
    """Return the gold, one row per document."""
    return pl.DataFrame(
        [
            (each["query"], str(group), doc, item.get("grade", 1))
            for each in asked()
            for group, item in enumerate(map(_item, each["gold"]))
            for doc in item["docs"]
        ],
        schema=["query", "group", "doc", "grade"],
        orient="row",
    )


def _item(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return {**given, "docs": given.get("docs") or [given["doc"]]}
    return {"docs": given if isinstance(given, list) else [given]}


def trec(name: str = "bm25", separator: str = " ") -> bytes:
    """Return a run as TREC writes it."""
    lines = (
        separator.join((query, "Q0", doc, str(rank), f"{score}", name))
        for query, doc, rank, score in rows(name).rows()
    )
    return "".join(f"{line}\n" for line in lines).encode()


def qrels(separator: str = " ", *, subtopics: bool = False) -> bytes:
    """Return the judgements as TREC writes them."""
    lines = (
        separator.join((query, group if subtopics else "0", doc, str(grade)))
        for query, group, doc, grade in judged().rows()
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _by_query(name: str = "bm25") -> dict[str, list[tuple[str, float]]]:
    parts = rows(name).partition_by("query", as_dict=True, maintain_order=True)
    return {str(query): part.select("doc", "score").rows() for (query,), part in parts.items()}


def run_files() -> Iterator[Original]:
    """Give a run in every format."""
    lists = _by_query()
    table, docs = rows(), {query: [doc for doc, _ in each] for query, each in lists.items()}
    records = [
        {"query": query, "retrieved": [{"doc": doc, "score": score} for doc, score in each]}
        for query, each in lists.items()
    ]
    plain = [{"query": query, "retrieved": each, "latency_ms": 3.5} for query, each in docs.items()]
    autorag = pl.DataFrame(
        {
            "qid": list(docs),
            "retrieved_ids": list(docs.values()),
            "retrieve_scores": [[score for _, score in each] for each in lists.values()],
        }
    )
    cells = pl.DataFrame({"query": list(docs), "retrieved": list(map(json.dumps, docs.values()))})
    yield Original("run.trec", "columns", trec())
    yield Original("run-tabs.trec", "columns", trec(separator="\t"))
    yield Original("run.trec.gz", "zipped", gzip.compress(trec(), mtime=0))
    yield Original("run.jsonl", "lines", _jsonl(records))
    yield Original("plain.jsonl", "lines", _jsonl(plain))
    yield Original(
        "scored.json", "json", json.dumps({q: dict(each) for q, each in lists.items()}).encode()
    )
    yield Original("listed.json", "json", json.dumps(docs, indent=1).encode())
    yield Original("records.json", "json", json.dumps(records).encode())
    yield Original("run.csv", "table", _csv(table))
    yield Original("run.tsv", "table", _csv(table.drop("score"), "\t"))
    yield Original(
        "semicolons.csv", "table", _csv(table.rename({"query": "qid", "doc": "doc_id"}), ";")
    )
    yield Original("lists.csv", "table", _csv(cells))
    yield Original("run.parquet", "parquet", _parquet(table))
    yield Original("lists.parquet", "parquet", _parquet(records))
    yield Original("autorag.parquet", "parquet", _parquet(autorag))
    yield Original(
        "liverag.jsonl",
        "lines",
        _jsonl([{"qid": q, "question": "?", "doc_ids": d} for q, d in docs.items()]),
    )


def gold_files() -> Iterator[Original]:
    """Give a gold in every format."""
    table = judged()
    graded = {
        str(query): dict(part.select("doc", "grade").rows())
        for (query,), part in table.partition_by("query", as_dict=True).items()
    }
    llama = {
        "queries": {each["query"]: each["question"] for each in asked()},
        "corpus": texts(),
        "relevant_docs": {query: list(each) for query, each in graded.items()},
    }
    records = [
        {name: each[name] for name in ("query", "question", "reference", "gold", "topic")}
        for each in asked()
    ]
    qa = pl.DataFrame(
        {
            "qid": list(graded),
            "query": [each["question"] for each in asked()],
            "retrieval_gt": [[[doc] for doc in each] for each in graded.values()],
            "generation_gt": [[each["reference"]] for each in asked()],
        }
    )
    yield Original("qrels.txt", "columns", qrels())
    yield Original("qrels-tabs.txt", "columns", qrels("\t"))
    yield Original("subtopics.txt", "columns", qrels(subtopics=True))
    yield Original("qrels.gz", "zipped", gzip.compress(qrels(), mtime=0))
    yield Original("gold.jsonl", "lines", _jsonl(records))
    yield Original("graded.json", "json", json.dumps(graded).encode())
    yield Original("llama.json", "json", json.dumps(llama).encode())
    yield Original("gold.json", "json", json.dumps(records, indent=1).encode())
    yield Original("gold.csv", "table", _csv(table))
    yield Original("gold.tsv", "table", _csv(table.drop("group"), "\t"))
    yield Original("gold.parquet", "parquet", _parquet(table))
    yield Original("qa.parquet", "parquet", _parquet(qa))


def sample_files() -> Iterator[Original]:
    """Give records that hold both, as findwell and other tools write them."""
    lists, known = _by_query(), texts()
    native, ragas, deepeval, continuous, liverag = [], [], [], [], []
    for each in asked():
        query, question, reference = each["query"], each["question"], each["reference"]
        found = [doc for doc, _ in lists[query]]
        wanted = judged().filter(pl.col("query") == query)["doc"].to_list()
        found_texts, wanted_texts = [known[doc] for doc in found], [known[doc] for doc in wanted]
        units = [{"doc": doc, "text": known[doc], "score": score} for doc, score in lists[query]]
        native.append({**each, "retrieved": units, "latency_ms": 12.5})
        ragas.append(
            {
                "user_input": question,
                "retrieved_context_ids": found,
                "reference_context_ids": wanted,
                "retrieved_contexts": found_texts,
                "reference_contexts": wanted_texts,
                "reference": reference,
            }
        )
        deepeval.append(
            {
                "input": question,
                "retrieval_context": found_texts,
                "context": wanted_texts,
                "expected_output": reference,
            }
        )
        continuous.append(
            {
                "uid": query,
                "question": question,
                "retrieved_context": found_texts,
                "ground_truth_context": wanted_texts,
                "ground_truth_answers": [reference],
            }
        )
        liverag.append(
            {
                "qid": query,
                "question": question,
                "doc_ids": found,
                "document_ids": wanted,
                "answer": reference,
                "total_time_ms": 9,
            }
        )
    cells = pl.DataFrame(
        {
            "query": [each["query"] for each in native],
            "question": [each["question"] for each in native],
            "retrieved": [
                json.dumps([unit["doc"] for unit in each["retrieved"]]) for each in native
            ],
            "gold": [json.dumps(_docs(each)) for each in native],
        }
    )
    yield Original("native.jsonl", "lines", _jsonl(native))
    yield Original("ragas.json", "json", json.dumps(ragas).encode())
    yield Original("deepeval.jsonl", "lines", _jsonl(deepeval))
    yield Original("continuous.jsonl", "lines", _jsonl(continuous))
    yield Original("liverag.jsonl", "lines", _jsonl(liverag))
    yield Original("samples.csv", "table", _csv(cells))
    yield Original("ragas.parquet", "parquet", _parquet(ragas))


def _docs(sample: dict[str, Any]) -> list[str]:
    return [doc for item in map(_item, sample["gold"]) for doc in item["docs"]]


def _runs() -> Iterator[Plan]:
    other = {"qrels.txt": qrels(), "other.trec": trec("minilm")}
    for each in run_files():
        files, run, gold = {each.name: each.content, **other}, each.name, ("--gold", "qrels.txt")
        for command in (
            ("score", run, *gold, "-m", "nDCG@5", "-m", "AP"),
            ("score", run, *gold, "--read", "skip_bad=yes", "-m", "recall@5", "--format", "json"),
            ("check", run, *gold),
            ("explain", run, *gold),
            ("compare", "other.trec", run, *gold, "-m", "recall@5"),
            ("curve", run, *gold, "--at", "1,3"),
            ("power", run, *gold, "-m", "recall@5", "--difference", "0.1"),
            ("labels", "agree", run, "other.trec", "--kind", "rankings"),
            ("fuse", run, "other.trec", "--engine", "qdrant-rrf"),
            ("report", run, *gold, "-o", "page.html"),
        ):
            yield Plan(f"{command[0]}-{run}", files, command, run, each.kind)


def _golds() -> Iterator[Plan]:
    for each in gold_files():
        files = {"run.trec": trec(), "other.txt": qrels(), each.name: each.content}
        gold = ("--gold", each.name)
        for command in (
            ("score", "run.trec", *gold, "-m", "nDCG@5", "-m", "AP"),
            ("score", "run.trec", *gold, "--bounds", "--read", "skip_bad=yes", "-m", "nDCG@5"),
            ("check", "run.trec", *gold),
            ("explain", "run.trec", *gold),
            ("report", "run.trec", *gold, "-o", "page.html"),
            ("labels", "agree", "other.txt", each.name, "--kind", "labels"),
        ):
            yield Plan(f"{command[0]}-{each.name}", files, command, each.name, each.kind)
    yield from _novel()


def _novel() -> Iterator[Plan]:
    """Judgements as others wrote them, where they are at hand."""
    path = SHARED / "noveleval" / "qrels.txt"
    if not path.is_file():
        return
    lines = [line.split() for line in path.read_text().splitlines()]
    run = "".join(f"{query} Q0 {doc} 1 {len(doc)} t\n" for query, _, doc, _ in lines)
    files = {"run.trec": run.encode(), "noveleval.txt": path.read_bytes()}
    for target in files:
        command = ("score", "run.trec", "--gold", "noveleval.txt", "-m", "nDCG@5")
        yield Plan(f"score-novel-{target}", files, command, target, "columns")


def _samples() -> Iterator[Plan]:
    for each in sample_files():
        name, files = each.name, {each.name: each.content}
        for command in (
            ("score", name, "-m", "recall@5", "-m", "RR"),
            ("score", name, "-m", "recall@5/exact", "-m", "recall@3/rouge"),
            ("score", name, "-m", "P@3/relevance", "--judge", "local:text"),
            ("check", name),
            ("explain", name),
            ("compare", name, name, "-m", "recall@5"),
            ("report", name, "-o", "page.html"),
        ):
            no_text = (
                ("liverag", "samples", "native")
                if "recall@5/exact" in command
                else ("liverag", "samples")
            )
            if "/" in " ".join(command) and name.startswith(no_text):
                continue
            yield Plan(f"{command[0]}-{name}", files, command, name, each.kind)


def _queries() -> Iterator[Plan]:
    command: tuple[str, ...]
    names = [each["query"] for each in asked()]
    about = pl.DataFrame(
        {"query": names, "topic": ["a", "b"] * (QUERIES // 2), "hops": range(QUERIES)}
    )
    given = {"run.trec": trec(), "qrels.txt": qrels()}
    for each in (
        Original("about.csv", "table", _csv(about)),
        Original("about.tsv", "table", _csv(about, "\t")),
        Original("about.jsonl", "lines", _jsonl(about.to_dicts())),
        Original("about.parquet", "parquet", _parquet(about)),
    ):
        files, more = {**given, each.name: each.content}, ("--queries", each.name)
        start = ("run.trec", "--gold", "qrels.txt")
        for command in (
            ("score", *start, *more, "--slice", "topic", "-m", "recall@5"),
            ("score", *start, *more, "-m", "recall@5"),
            ("compare", *start[:1], *start, *more, "--slice", "topic"),
        ):
            yield Plan(f"{command[0]}-{each.name}", files, command, each.name, each.kind)
    labels = pl.DataFrame(
        {"query": names, "doc": ["d"] * QUERIES, "verdict": ["yes", "no"] * (QUERIES // 2)}
    )
    files = {"one.csv": _csv(labels), "two.csv": _csv(labels)}
    for target in files:
        command = ("labels", "agree", "one.csv", "two.csv", "--column", "verdict")
        yield Plan(f"agree-{target}", files, command, target, "table")


def _corpora() -> Iterator[Plan]:
    known = texts()
    listed = [{"doc": doc, "text": text} for doc, text in known.items()]
    documents = {"guide": " ".join(known.values())}
    table = pl.DataFrame(listed)
    gold = judged()
    chunks = [
        {"query": q, "gold": gold.filter(pl.col("query") == q)["doc"].to_list()}
        for q in gold["query"].unique(maintain_order=True)
    ]
    quotes = [
        {
            "query": each["query"],
            "gold": [{"doc": "guide", "quote": known[doc][:60]} for doc in each["gold"]],
        }
        for each in chunks
    ]
    corpora = [
        Original("corpus.jsonl", "lines", _jsonl(listed)),
        Original("corpus.json", "json", json.dumps(known).encode()),
        Original("corpus.csv", "table", _csv(table)),
        Original(
            "corpus.tsv",
            "table",
            b"".join(f"{doc}\t{text}\n".encode() for doc, text in known.items()),
        ),
        Original("corpus.parquet", "parquet", _parquet(table)),
        Original("docs/guide.txt", "text", documents["guide"].encode()),
    ]
    if (SHARED / "noveleval" / "corpus.tsv").is_file():
        lines = (SHARED / "noveleval" / "corpus.tsv").read_bytes().split(b"\n")[:40]
        corpora.append(Original("noveleval.tsv", "table", b"\n".join(lines)))
    given = {"run.trec": trec(), "gold.jsonl": _jsonl(quotes), "qrels.txt": qrels()}
    for each in corpora:
        path = each.name.partition("/")[0]
        files = {**given, each.name: each.content, "chunks.jsonl": _jsonl(chunks)}
        for command in (
            ("score", "run.trec", "--gold", "qrels.txt", "--corpus", path, "-m", "recall@5/rouge"),
            ("labels", "anchor", "gold.jsonl", "--corpus", path),
            ("labels", "anchor", "chunks.jsonl", "--corpus", path, "--chunks", path),
            ("labels", "drift", "gold.jsonl", "--corpus", path),
        ):
            if command[0] != "score" or path.startswith("corpus"):  # others have other ids
                yield Plan(f"{command[0]}-{each.name}", files, command, each.name, each.kind)
    whole = {"documents.json": json.dumps(documents).encode(), "corpus.jsonl": _jsonl(listed)}
    for name, content in (("gold.jsonl", quotes), ("chunks.jsonl", chunks)):
        for command in (
            ("labels", "anchor", name, "--corpus", "documents.json", "--chunks", "corpus.jsonl"),
            ("labels", "drift", "gold.jsonl", "--corpus", "documents.json", "--format", "json"),
        ):
            if name not in command:
                continue
            files = {**whole, name: _jsonl(content)}
            yield Plan(f"{command[0]}-{name}", files, command, name, "lines")
    yield from _beir(listed)


def _beir(listed: list[dict[str, str]]) -> Iterator[Plan]:
    """A folder of BEIR: the same names in the same places."""
    files = {
        "run.trec": trec(),
        "beir/corpus.jsonl": _jsonl(
            [{"_id": each["doc"], "title": "", "text": each["text"]} for each in listed]
        ),
        "beir/queries.jsonl": _jsonl(
            [{"_id": each["query"], "text": each["question"]} for each in asked()]
        ),
        "beir/qrels/test.tsv": _csv(
            judged().select(
                pl.col("query").alias("query-id"),
                pl.col("doc").alias("corpus-id"),
                pl.col("grade").alias("score"),
            ),
            "\t",
        ),
    }
    for target, kind in (
        ("beir/corpus.jsonl", "lines"),
        ("beir/queries.jsonl", "lines"),
        ("beir/qrels/test.tsv", "table"),
    ):
        for command in (
            ("score", "run.trec", "--gold", "beir", "-m", "recall@5"),
            ("score", "run.trec", "--gold", "beir", "--corpus", "beir", "-m", "recall@5/rouge"),
        ):
            if target != "beir/corpus.jsonl" or "--corpus" in command:
                yield Plan(f"{command[0]}-{target}", files, command, target, kind)


def _labels() -> Iterator[Plan]:
    command: tuple[str, ...]
    known = texts()
    pairs = [
        {"question": each["question"], "chunk": known[doc], "label": label, "by": "Ann"}
        for each in asked()
        for doc, label in zip(list(known)[:3], (0, 1, 2), strict=True)
    ]
    table = pl.DataFrame(pairs)
    for each in (
        Original("labels.jsonl", "lines", _jsonl(pairs)),
        Original("labels.csv", "table", _csv(table)),
        Original("labels.parquet", "parquet", _parquet(table)),
    ):
        command = ("judge", "card", each.name, "--judge", "local:text", "--save", "none")
        yield Plan(
            f"judge-card-{each.name}", {each.name: each.content}, command, each.name, each.kind
        )
    files = {
        "qrels.txt": qrels(),
        "corpus.jsonl": _jsonl([{"doc": doc, "text": text} for doc, text in known.items()]),
        "questions.tsv": b"".join(
            f"{each['query']}\t{each['question']}\n".encode() for each in asked()
        ),
    }
    command = (
        *("judge", "card", "qrels.txt", "--judge", "local:text", "--save", "none"),
        *("--corpus", "corpus.jsonl", "--queries", "questions.tsv"),
    )
    for target, kind in (
        ("qrels.txt", "columns"),
        ("corpus.jsonl", "lines"),
        ("questions.tsv", "table"),
    ):
        yield Plan(f"judge-card-{target}", files, command, target, kind)
    files = {"samples.jsonl": next(sample_files()).content, "verdicts.jsonl": verdicts()}
    command = ("score", "samples.jsonl", "-m", "P@3/relevance", "--judge", "replay:verdicts.jsonl")
    yield Plan("score-verdicts", files, command, "verdicts.jsonl", "lines")


@functools.cache
def verdicts() -> bytes:
    """Return verdicts about the samples as a file that can be replayed."""
    samples = [
        Sample(
            each["query"],
            each["question"],
            tuple(texts()[doc] for doc, _ in docs),
            each["reference"],
        )
        for each, docs in zip(asked(), _by_query().values(), strict=True)
    ]
    judge = FunctionJudge(lambda sample: {"relevance": [1] * len(sample.chunks)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdicts.jsonl"
        record(samples, judge.judge(samples, frozenset({"relevance"})), path, judge=judge)
        return path.read_bytes()


@functools.cache
def folder() -> dict[str, bytes]:
    """Return the files of a saved result."""
    runs = {
        name: {q: dict(docs) for q, docs in _by_query(name).items()} for name in ("bm25", "minilm")
    }
    result = findwell.evaluate(
        runs, list(asked()), ["recall@5", "nDCG@5"], reading=findwell.Reading(keep=5)
    )
    with tempfile.TemporaryDirectory() as place:
        path = result.save(Path(place) / "result")
        return {each.name: each.read_bytes() for each in sorted(path.iterdir())}


def _folders() -> Iterator[Plan]:
    files = {f"{place}/{name}": each for place in ("old", "new") for name, each in folder().items()}
    files |= {"bm25.trec": trec(), "qrels.txt": qrels()}
    gates = frozenset({0, 1, 2, 3})
    for name in folder():
        target, kind = f"new/{name}", "json" if name.endswith(".json") else "parquet"
        for sealed in (False, True):
            if sealed and name == "summary.json":
                continue
            way = f"sealed-{kind}" if sealed else kind
            for command in (
                ("report", "new", "-o", "page.html"),
                ("compare", "old", "new"),
                ("explain", "new", "--system", "bm25"),
                ("curve", "new", "--at", "1,3"),
                ("power", "new", "--difference", "0.1"),
                ("labels", "agree", "old", "new"),
                ("view", "."),
                ("score", "new", "-m", "RR"),
                (
                    "score",
                    "bm25.trec",
                    "--gold",
                    "qrels.txt",
                    "--require",
                    "recall@5>=baseline-0.9",
                    "--baseline",
                    "new",
                ),
            ):
                plan = f"{command[0]}-{'sealed-' * sealed}{name}"
                yield Plan(plan, files, command, target, way, gates)
