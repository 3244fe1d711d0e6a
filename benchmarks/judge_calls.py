"""Judging: calls and prompt tokens a sample for all metrics of retrieved contexts at K = 5.

`python -m benchmarks.judge_calls` counts findwell's and shows what was recorded of the others.
`--peer ragas=PYTHON` and `--peer deepeval=PYTHON` count theirs too, with the Python of an
environment that has them; see `benchmarks/judge_peers.py`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.data import ROOT
from benchmarks.report import Table
from findwell.core.texts.sentences import split
from findwell.judges.client.budget import estimate_tokens
from findwell.judges.llm.judge import LLMJudge
from findwell.judges.settings import Judge
from findwell.judges.verdicts import Sample
from tests.client.server import Call, Reaction, Server, chat, serve
from tests.judges.building import FOUR
from tests.judges.model import well

DEMO = ROOT / "src" / "findwell" / "demo"
QUESTIONS, DEPTH = 20, 5
SIZES = {"short": 1, "long": 5, "very long": 25}  # passages in a chunk
CALLS = f"""\
All metrics of retrieved contexts that a tool has, with a reference, for the first {DEPTH} chunks of
the demo's MiniLM run, {QUESTIONS} questions; chunks are single passages (about 90 tokens), or 5 or
25 of them. A server on loopback gives each tool valid answers and counts what arrives: calls, and
tokens of the prompts with their schemas, by the rule of one token for four characters. findwell
judges relevance, claims, entities and statements; ragas context precision, recall, entity recall
and relevance; deepeval contextual precision, recall and relevancy, with reasons, as it does by
itself (it has nothing for entities). What ragas and deepeval send was counted once, with `--peer`,
and is
repeated here."""
# measured with --peer; ragas 0.4.3 with langchain-community 0.3.31, deepeval 4.3.1
RECORDED = {
    "ragas 0.4.3": {"short": (10, 12_681), "long": (10, 19_977), "very long": (10, 56_436)},
    "deepeval 4.3.1": {"short": (10, 6_960), "long": (10, 11_327), "very long": (10, 33_152)},
}
HEADER = ("chunks", "tool", "calls a sample", "prompt tokens a sample", "ratio")
SENTENCE = "The chunk says so in a sentence of about ten words."


@dataclass(frozen=True)
class Count:
    """What a tool sends for a sample."""

    calls: float
    tokens: float


def samples(passages: int, questions: int = QUESTIONS) -> list[dict[str, Any]]:
    """Return questions of the demo with chunks of so many passages."""
    lines = (DEMO / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    texts = {row["doc"]: row["text"] for row in map(json.loads, lines)}
    docs = list(texts)
    found: dict[str, list[str]] = {}
    for line in (DEMO / "minilm.trec").read_text(encoding="utf-8").splitlines():
        query, _, doc, *_ = line.split()
        first = docs.index(doc)
        several = [texts[docs[(first + more) % len(docs)]] for more in range(passages)]
        found.setdefault(query, []).append("\n\n".join(several))
    rows = map(json.loads, (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        {
            "query": row["query"],
            "question": row["question"],
            "reference": row["reference"],
            "chunks": found[row["query"]][:DEPTH],
        }
        for row in list(rows)[:questions]
    ]


def answer(call: Call) -> Reaction:
    """Answer findwell as a model would, others with anything that fits their schema."""
    form = call.body.get("response_format", {}).get("json_schema", {})
    if form.get("name") == "verdicts":
        return well(call)
    schema = form.get("schema")
    if schema is None:  # ragas writes it into the system message
        text = call.body["messages"][0]["content"]
        schema, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    return chat(json.dumps(fitting(schema, schema.get("$defs", {}))))


def fitting(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a value that fits a schema; lists are as long as there are chunks."""
    if "$ref" in schema:
        return fitting(parts[schema["$ref"].rpartition("/")[2]], parts)
    for several in ("anyOf", "allOf"):
        if several in schema:
            return fitting(schema[several][0], parts)
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: fitting(part, parts) for name, part in schema["properties"].items()}
    if kind == "array":
        return [fitting(schema["items"], parts)] * DEPTH
    return {"integer": 1, "number": 1, "boolean": True}.get(str(kind), SENTENCE)


def counted(server: Server, number: int) -> Count:
    """Return what has arrived for each of so many samples, and forget it."""
    tokens = 0
    for call in server.calls:
        tokens += sum(estimate_tokens(_text(each["content"])) for each in call.body["messages"])
        tokens += estimate_tokens(json.dumps(call.body.get("response_format", "")))
    count = Count(len(server.calls) / number, tokens / number)
    server.calls.clear()
    return count


def _text(content: str | list[dict[str, str]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def divided(row: dict[str, Any]) -> Sample:
    """Return a sample with its sentences."""
    return Sample(
        row["query"],
        row["question"],
        tuple(row["chunks"]),
        row["reference"],
        {"claims": tuple(split([row["reference"]])[0])},
        {"statements": tuple(map(tuple, split(row["chunks"])))},
    )


def ask_findwell(rows: list[dict[str, Any]], url: str) -> None:
    judge = LLMJudge(Judge("openai:model", base_url=url, key="", cache="off"))
    judged = judge.judge([divided(row) for row in rows], FOUR)
    if judge.about()["failed_verdicts"] or len(judged) != len(rows):
        raise RuntimeError("not every verdict was given")


def ask_peer(tool: str, python: str, rows: list[dict[str, Any]], url: str) -> str:
    done = subprocess.run(
        [python, ROOT / "benchmarks" / "judge_peers.py", tool, url],
        input=json.dumps(rows),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return f"{tool} {done.stdout.split()[-1]}"


def judge_calls(
    peers: Mapping[str, str] | None = None,
) -> tuple[Table, dict[str, dict[str, Count]]]:
    """Count all; return the table and the counts of each tool by the size of chunks."""
    found: dict[str, dict[str, Count]] = {}
    with serve(answer) as server:
        for size, passages in SIZES.items():
            rows = samples(passages)
            ask_findwell(rows, server.url)
            found.setdefault("findwell", {})[size] = counted(server, len(rows))
            for tool, python in (peers or {}).items():
                name = ask_peer(tool, python, rows, server.url)
                found.setdefault(name, {})[size] = counted(server, len(rows))
    for name, sizes in RECORDED.items():
        found.setdefault(name, {size: Count(*pair) for size, pair in sizes.items()})
    return Table("12. Calls of a judge", CALLS, HEADER, list(_rows(found)), texts=2), found


def _rows(found: dict[str, dict[str, Count]]) -> Iterator[tuple[str, ...]]:
    for size in SIZES:
        for name, sizes in found.items():
            calls, tokens = sizes[size].calls, sizes[size].tokens
            ratio = tokens / found["findwell"][size].tokens
            yield size, name, f"{calls:.1f}", f"{tokens:,.0f}", f"{ratio:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="append", default=[], metavar="TOOL=PYTHON")
    peers = dict(each.split("=", 1) for each in parser.parse_args().peer)
    table, found = judge_calls(peers)
    print(table.text())
    mine = found.pop("findwell")
    fewer = all(
        sizes[size].calls > mine[size].calls and sizes[size].tokens > mine[size].tokens
        for sizes in found.values()
        for size in SIZES
    )
    return 0 if fewer and mine["short"].calls <= 3 else 1


if __name__ == "__main__":
    sys.exit(main())
