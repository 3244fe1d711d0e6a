"""Retrievers behind an address: what is sent, where the hits are, and what must not happen."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

import findwell
from findwell.core.errors import InputError, OptionError, RetrieverError

if TYPE_CHECKING:
    from tests.conftest import Findwell

QUERIES = {"q1": 'Who said "no"?', "q2": "Größe & Gewicht"}
SECRET = "s3cr3t-value-of-a-key"
HITS = [
    {"_index": "docs", "_id": "d1", "_score": 2.0, "_source": {"text": "one"}},
    {"_index": "docs", "_id": "d2", "_score": 1.0, "_source": {"text": "two"}},
]
BODY = {"query": {"match": {"text": "{{question}}"}}, "size": "{{k}}"}


@dataclass
class Search:
    """A search engine on loopback, and what it was asked."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    answer: Callable[[Any], Any] = lambda _: {"hits": {"hits": HITS}}
    wait: float = 0.0
    bodies: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    sent: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def engine() -> Iterator[Search]:
    search = Search()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._react(None)

        def do_POST(self) -> None:
            self._react(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _react(self, body: Any) -> None:
            search.bodies.append(body)
            search.paths.append(self.path)
            search.sent.append(dict(self.headers))
            time.sleep(search.wait)
            answer = search.answer(body)
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(search.status)
            for name, value in search.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    search.url = f"http://127.0.0.1:{server.server_port}/docs/_search"
    yield search
    server.shutdown()
    server.server_close()


def test_a_template_is_filled_and_hits_are_found(engine: Search) -> None:
    for hits in (None, "hits.hits"):
        retriever = findwell.retrievers.HttpRetriever(engine.url, BODY, hits=hits)
        run = findwell.retrieve(retriever, QUERIES, k=2)
        assert run.rows["doc"].to_list() == ["d1", "d2"] * 2
        assert run.rows["text"].to_list() == ["one", "two"] * 2
    assert engine.bodies[0] == {"query": {"match": {"text": 'Who said "no"?'}}, "size": 2}
    findwell.retrieve(retriever, QUERIES)
    assert "size" not in engine.bodies[-1]  # the engine's own number of documents


def test_an_address_alone_is_asked_by_get(engine: Search) -> None:
    engine.answer = lambda _: {"data": [{"chunks": ["d7", "d8"]}]}
    retriever = findwell.retrievers.HttpRetriever(
        engine.url + "?q={{question}}&n={{k}}", hits="data.0.chunks", k=5
    )
    run = findwell.retrieve(retriever, QUERIES)
    assert run.rows["doc"].to_list() == ["d7", "d8"] * 2
    asked = [parse_qs(urlsplit(path).query) for path in engine.paths]
    assert asked[1] == {"q": ["Größe & Gewicht"], "n": ["5"]}


def test_nothing_follows_a_redirect(engine: Search) -> None:
    engine.status, engine.headers = 307, {"Location": "http://127.0.0.1:9/elsewhere"}
    with pytest.raises(RetrieverError, match="status 307: redirects are not followed"):
        findwell.retrieve(findwell.retrievers.HttpRetriever(engine.url, BODY), QUERIES)
    engine.headers = {"Location": engine.url}  # nor to itself: one question is one request
    engine.bodies.clear()
    with pytest.raises(RetrieverError):
        findwell.retrieve(findwell.retrievers.HttpRetriever(engine.url, BODY), {"q1": "?"})
    assert len(engine.bodies) == 1


def test_a_local_server_is_not_asked_through_a_public_proxy(
    engine: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example.com:3128")
    assert (
        findwell.retrieve(findwell.retrievers.HttpRetriever(engine.url, BODY), QUERIES).rows.height
        == 4
    )


def test_secrets_come_from_elsewhere_and_are_not_shown(
    engine: Search, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ENGINE_KEY", SECRET)
    (tmp_path / "key").write_text(f"{SECRET}\n")
    engine.status, engine.answer = 401, lambda _: {"error": f"bad key {SECRET}"}
    for value in ("env:ENGINE_KEY", f"file:{tmp_path / 'key'}"):
        retriever = findwell.retrievers.HttpRetriever(
            engine.url, BODY, headers={"Authorization": value}
        )
        with pytest.raises(RetrieverError, match="status 401") as failed:
            findwell.retrieve(retriever, QUERIES)
        assert SECRET not in str(failed.value)
        assert SECRET not in repr(vars(retriever))
        assert engine.sent[-1]["Authorization"] == SECRET


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("ftp://host/x", {}, "not an http address"),
        ("http://user:word@localhost/x", {}, "a secret in it"),
        ("http://localhost/x?api_key=1", {}, "a secret in it"),
        ("http://localhost/x", {"template": None}, "no {{question}} in the address"),
        ("http://localhost/x", {"template": {"q": "x"}}, "no {{question}} in the template"),
        ("http://localhost/x", {"headers": {"X-Api-Key": SECRET}}, "X-Api-Key is a secret"),
        ("http://localhost/x", {"headers": {"X": "env:NO_SUCH"}}, "NO_SUCH is not set"),
    ],
)
def test_mistakes(url: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message) as failed:
        findwell.retrievers.HttpRetriever(url, **{"template": BODY, **options})
    assert SECRET not in str(failed.value)
    assert "word" not in str(failed.value)


def test_a_template_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text('{"size": {{k}}}')
    with pytest.raises(InputError, match="the template is not JSON") as failed:
        findwell.retrievers.HttpRetriever("http://localhost/x", tmp_path / "body.json")
    assert "write placeholders in quotes" in failed.value.fix


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": lambda _: b"<html>oops"}, "the answer is not JSON: '<html>oops'"),
        ({"answer": lambda _: {"hits": {}}}, "the answer has no 'hits' of hits.hits"),
        ({"status": 503, "answer": lambda _: b"busy"}, "status 503: busy"),
        ({"wait": 1.0}, "TimeoutError: no answer within 0.2 s"),
    ],
)
def test_reasons(engine: Search, change: dict[str, Any], reason: str) -> None:
    for name, value in change.items():
        setattr(engine, name, value)
    retriever = findwell.retrievers.HttpRetriever(engine.url, BODY, hits="hits.hits", timeout=0.2)
    with pytest.raises(RetrieverError, match=reason.replace("'", ".")):
        findwell.retrieve(retriever, {"q1": "?"})


def test_several_at_a_time(engine: Search) -> None:
    engine.wait = 0.25
    many = {f"q{n}": f"question {n}" for n in range(16)}
    run = findwell.retrieve(
        findwell.retrievers.HttpRetriever(engine.url, BODY), many, concurrency=8
    )
    found = findwell.evaluate(run, {query: ["d1"] for query in many}, "RR")
    timing = found.timing[run.name]
    assert found["RR"] == 1.0
    assert timing.throughput is not None
    assert timing.throughput > 8  # one after the other it would be 4 at most


def test_on_the_command_line(engine: Search, cli: Findwell, tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text(json.dumps(BODY))
    (tmp_path / "questions.jsonl").write_text(
        "".join(json.dumps({"query": q, "question": text}) + "\n" for q, text in QUERIES.items())
    )
    asked = ["run", engine.url, "--queries", "questions.jsonl", "--template", "body.json"]
    asked += ["--hits", "hits.hits", "-k", "1", "--header", "X-Tenant=a", "-o", "run.jsonl"]
    done = cli(*asked, cwd=tmp_path)
    assert done.code == 0, done.err
    records = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [record["query"] for record in records] == ["q1", "q2"]
    assert records[0]["retrieved"] == [{"doc": "d1", "score": 2.0, "text": "one"}]
    assert engine.sent[-1]["X-Tenant"] == "a"
