"""What is meant for a server of one's own goes there and nowhere else.

A second server on loopback takes the part of everybody else; it must hear nothing.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from findwell.core.errors import EndpointError
from findwell.evaluation.evaluate import evaluate
from findwell.evaluation.explanation.explain import explain
from findwell.evaluation.plan import grouped
from findwell.judges.client import endpoint as endpoints
from findwell.judges.client.endpoint import Endpoint, Reach, proxy_for, reach
from findwell.judges.client.protocol import Answer
from findwell.judges.embeddings import find_embedder
from findwell.judges.embeddings.openai import openai_embedder
from findwell.judges.find import find_judge
from findwell.judges.settings import Judge
from tests.client.asking import HASTE, KEY, ask, ask_all, question
from tests.client.server import Call, Reaction, Script, Server, as_json, echo, serve
from tests.judges.model import well

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Findwell, Save

SAMPLES = [
    {
        "query": "q1",
        "question": "What is the capital of Brazil?",
        "retrieved": [{"doc": "d1", "text": "Brasília is the capital of Brazil."}],
        "gold": [{"doc": "d1", "text": "The capital of Brazil is Brasília."}],
        "reference": "The capital of Brazil is Brasília.",
    }
]
JUDGED = ["context_recall"]


def both(call: Call) -> Reaction:
    """Embed, or judge, or repeat what was said."""
    if "input" not in call.body:
        return well(call) if "Task:" in call.prompt else echo(call)
    return as_json({"data": [{"embedding": [1.0, len(text)]} for text in call.body["input"]]})


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Return our own server, and that of everybody else, which stands in for OpenAI."""
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))
    with serve(both) as own, serve(both) as public:
        monkeypatch.setattr(endpoints, "DEFAULT_URL", public.url)
        variables = (endpoints.VARIABLES[0], (*endpoints.VARIABLES[1][:2], public.url))
        monkeypatch.setattr(endpoints, "VARIABLES", variables)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield own, public
        assert not public.calls
        assert own.calls
        assert not [call for call in own.calls if KEY in call.headers.get("authorization", "")]


@pytest.fixture
def samples(save: Save) -> Path:
    return save("samples.jsonl", "\n".join(map(json.dumps, SAMPLES)))


@pytest.mark.parametrize("name", ["FINDWELL_BASE_URL", "OPENAI_BASE_URL"])
def test_the_environment_names_the_server_of_judge_and_embedder(
    name: str, servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, public = servers
    if name == "FINDWELL_BASE_URL":
        monkeypatch.setenv("OPENAI_BASE_URL", public.url)
    else:
        monkeypatch.delenv("OPENAI_API_KEY")  # which would be meant for it
    monkeypatch.setenv(name, own.url)
    find_embedder("openai:m").embed(["a text for our own server"])
    panel = find_judge(["openai:m", "openai:n"])
    evaluate(SAMPLES, measures=JUDGED, judge=panel)
    evaluate(SAMPLES, measures=["recall"], by="semantic", embedder="openai:m")
    assert {call.body["model"] for call in own.calls} == {"m", "n"}
    assert {call.path for call in own.calls} == {"/v1/embeddings", "/v1/chat/completions"}


WAYS: dict[str, dict[str, Any]] = {
    "base_url": {"base_url": "URL"},
    "judge": {"judge": {"model": "openai:m", "base_url": "URL"}},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("measure", [evaluate, explain])
@pytest.mark.parametrize(
    "by", [{"by": "semantic", "embedder": "openai:m"}, {"by": "semantic(model=openai:m)"}]
)
def test_a_server_that_is_given_is_that_of_judge_and_embedder(
    way: str, measure: Any, by: dict[str, Any], servers: tuple[Server, Server]
) -> None:
    given = json.loads(json.dumps(WAYS[way]).replace("URL", servers[0].url))
    given["judge"] = Judge(**given.get("judge", {"model": "openai:m"}))
    measure(SAMPLES, None, ["recall"], **grouped(by | given))
    measure(SAMPLES, None, ["recall", *JUDGED], **grouped(by | given))
    assert {call.path for call in servers[0].calls} == {"/v1/embeddings", "/v1/chat/completions"}


@pytest.mark.parametrize(
    "command",
    [
        ["score", "SAMPLES", "-m", "recall"],
        ["explain", "SAMPLES", "-m", "recall", "-q", "q1"],
        ["curve", "SAMPLES", "-m", "recall"],
        ["compare", "SAMPLES", "SAMPLES", "-m", "recall"],
        ["score", "SAMPLES", "-m", "recall", "-m", "context_recall", "--judge", "local:text"],
        ["compare", "SAMPLES", "SAMPLES", "-m", "recall", "--judge", "openai:j"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "by",
    [
        ["--by", "semantic", "--read", "embedder=openai:m"],
        ["--by", "semantic(model=openai:m)"],
        ["-m", "P/semantic(model=openai:m)"],
    ],
)
def test_the_server_of_the_command_is_that_of_the_embedder(
    command: list[str],
    by: list[str],
    servers: tuple[Server, Server],
    samples: Path,
    cli: Findwell,
) -> None:
    named = [samples if part == "SAMPLES" else part for part in command]
    done = cli(*named, *by, "-J", f"base_url={servers[0].url}")
    assert done.code == 0, done


@pytest.mark.parametrize("command", ["score", "compare", "curve"])
def test_texts_for_a_judge_on_this_machine_are_embedded_there(
    command: str,
    servers: tuple[Server, Server],
    samples: Path,
    cli: Findwell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", servers[0].url)
    both_of_them = [samples, samples] if command == "compare" else [samples]
    asked = ["-m", "recall/semantic(model=openai:m)", "--judge", "ollama:j"]
    done = cli(command, *both_of_them, *asked)
    assert done.code == 0, done


@pytest.mark.parametrize("made", [True, False])
def test_texts_for_a_panel_on_this_machine_are_embedded_there(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch, *, made: bool
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", servers[0].url)
    panel: Any = ["ollama:j", "local:text", "ollama:k"]
    panel = find_judge(panel) if made else panel
    evaluate(SAMPLES, measures=["recall"], by="semantic", embedder="openai:m", judge=panel)


def test_an_address_that_is_blank_is_none_and_nobody_elses(
    servers: tuple[Server, Server], samples: Path, cli: Findwell
) -> None:
    embedded = ["-m", "recall/semantic(model=openai:m)"]
    for asked in (["-m", "context_recall", "--judge", "openai:m"], embedded):
        done = cli("score", samples, *asked, "-J", "base_url=")  # as of a variable that is not set
        assert done.code == 2, done
        assert "the base URL is not an http address" in done.err
    find_embedder("openai:m", base_url=servers[0].url).embed(["so that it was asked once"])


@pytest.mark.parametrize("command", ["score", "compare", "explain", "curve"])
def test_a_dry_run_does_not_embed_either(
    command: str, servers: tuple[Server, Server], samples: Path, cli: Findwell
) -> None:
    judge = ["--judge", "openai:m", "-J", f"base_url={servers[0].url}", "--dry-run"]
    asked = ["-m", "context_recall", "-m", "recall/semantic(model=openai:m)"]
    done = cli(command, samples, *asked, *judge)
    assert done.code == 2, done
    assert "--dry-run asks no model" in done.err
    assert not servers[0].calls
    find_embedder("openai:m", base_url=servers[0].url).embed(["so that it was asked once"])


def moved(url: str, status: int, *, every: int = 1) -> Script:
    """Send each so many-th call to another address."""
    away = Reaction(b"", status, {"Location": f"{url}/chat/completions"})
    return lambda call: away if call.number % every == every - 1 else echo(call)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_server_cannot_send_texts_on(status: int) -> None:
    with serve() as public:
        with serve(moved(public.url, status)) as own:
            with pytest.raises(EndpointError, match="which findwell does not follow"):
                ask(own, question("secret"))
            with pytest.raises(EndpointError, match="which findwell does not follow") as stop:
                openai_embedder("m", base_url=own.url, api_key=KEY).embed(["secret"])
            assert stop.value.status == status
        with serve(moved(public.url, status, every=2)) as own:
            outcomes = ask(own, *map(question, range(4)), retry=replace(HASTE, concurrency=1))
            assert 0 < sum(isinstance(outcome, Answer) for outcome in outcomes) < 4
        assert not public.calls


REACH = {
    Reach.THIS_MACHINE: "localhost LOCALHOST. a.localhost 127.0.0.1 127.1 0x7f000001 0.0.0.0 [::1] "
    "::ffff:127.0.0.1 host.docker.internal",
    Reach.PRIVATE: "10.1.2.3 172.16.0.1 192.168.0.9 169.254.1.1 100.64.0.1 fe80::1%eth0 fd00::1 "
    "ollama gpu.local llm.corp judge.svc.cluster.internal",
    Reach.PUBLIC: "api.openai.com 8.8.8.8 2001:4860:4860::8888 localhost.example.com 172.32.0.1",
}


@pytest.mark.parametrize(
    ("host", "expected"), [(host, far) for far, hosts in REACH.items() for host in hosts.split()]
)
def test_how_far_a_host_is_away(host: str, expected: Reach) -> None:
    assert reach(host) is expected


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_is_no_farther_away_than_the_server(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = ["127.0.0.1", "10.0.0.1", "198.51.101.7"]
    for far, proxy in enumerate(hosts):
        monkeypatch.setenv(variable, f"http://{proxy}:3128")
        for near, host in enumerate(hosts):
            found = proxy_for("http", host, f"{host}:8000")
            assert (found is None) == (far > near), (proxy, host)


def test_texts_for_this_machine_pass_by_a_proxy_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(both) as own:
        monkeypatch.setenv("http_proxy", "http://198.51.101.7:3128")
        monkeypatch.setenv("no_proxy", "")
        away = Endpoint.find("m", base_url=own.url, key="")
        [outcome] = ask_all([question()], away, retry=HASTE)
        assert isinstance(outcome, Answer)
        find_embedder("openai:m", base_url=own.url).embed(["a"])
        assert len(own.calls) == 2
