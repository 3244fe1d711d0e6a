"""What real instrumentations write and real exporters send, findwell reads: the same in each."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import polars as pl
import pytest

import findwell
from findwell.io.read.traces import decode, outermost, read_traces
from findwell.io.read.values import text_id
from tests.frameworks.answers import TEXTS
from tests.frameworks.test_answers import ask
from tests.frameworks.traces import QUESTION, TRACED

HASHED = [text_id(text) for text in TEXTS.values()]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACED)
def test_the_traces_of_a_framework(tmp_path: Path, name: str) -> None:
    asked = ask(name, "tests.frameworks.traces")
    bodies = [base64.b64decode(body) for body in asked["bodies"]]
    path = tmp_path / "traces"
    if asked["records"]:
        path.write_text(json.dumps(asked["records"][0]))
        (found,) = read_traces(path)
        parts = [found]
    else:
        parts = [decode(body, protobuf=True) for body in bodies]
        # as the collector writes them to a file
        path.write_bytes(b"".join(len(body).to_bytes(4, "big") + body for body in bodies))
    assert not any(part.malformed for part in parts)
    frame = outermost(pl.concat([part.frame for part in parts]))
    calls = frame.filter(kind="retriever")
    assert calls.height == 1  # and not one for each span inside
    assert calls["question"].to_list() == [QUESTION]
    assert calls["docs"][0].to_list() == (HASHED if name == "traceloop" else list(TEXTS))
    assert calls["latency_ms"][0] >= 0
    if name != "gen_ai":  # whose instrumentation leaves texts out
        assert calls["texts"][0].to_list() == list(TEXTS.values())
    gold = [{"query": "q1", "question": QUESTION, "gold": calls["docs"][0].to_list()[1:2]}]
    result = findwell.evaluate(path, gold, ["RR"])
    assert result[result.runs[0], "RR"] == 0.5
    if name == "openinference_llama_index":
        after = frame.filter(kind="reranker")
        assert after["docs"].to_list() == [["d5", "d3"]]
        assert after["inputs"].to_list() == [list(TEXTS)]
        assert [*result.runs] == ["traces", "traces-reranked"]
