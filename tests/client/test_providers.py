"""Every provider of the table: what its calls look like on the wire, and where keys go."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from findwell.core.errors import EndpointError, OptionError
from findwell.evaluation.evaluate import evaluate
from findwell.judges.client import endpoint as endpoints
from findwell.judges.client.endpoint import Endpoint
from findwell.judges.client.protocol import Answer
from findwell.judges.client.providers import (
    OUTPUT_MODES,
    PROVIDERS,
    Provider,
    requires_batches,
    split_spec,
)
from findwell.judges.embeddings import EMBEDDERS, find_embedder
from findwell.judges.embeddings.openai import openai_embedder
from findwell.judges.find import find_judge, known_judges
from findwell.judges.settings import Judge
from tests.client.asking import HASTE, KEY, SCHEMA, ask, ask_all, question
from tests.client.server import Call, Reaction, Server, as_json, echo, error, serve
from tests.client.test_destination import SAMPLES, both

if TYPE_CHECKING:
    from tests.conftest import Findwell, Save

OPTIONS: dict[str, Any] = {
    "temperature": 0,
    "seed": 7,
    "max_tokens": 50,
    "logprobs": True,
    "top_logprobs": 5,
}
STRICT = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA},
}
BEARER = ("authorization", f"Bearer {KEY}")
NO_PROBABILITIES = {"logprobs", "top_logprobs"}


class Shape(NamedTuple):
    """What a call must look like: written down from the providers' own pages, not the table."""

    path: str
    key: tuple[str, str] | None = BEARER
    form: dict[str, Any] | None = STRICT
    without: frozenset[str] | set[str] = frozenset()
    more: dict[str, Any] = {}  # noqa: RUF012


SHAPES = {
    "openai": Shape("/v1/chat/completions"),
    "azure": Shape("/openai/v1/chat/completions", ("api-key", KEY)),
    "anthropic": Shape("/v1/chat/completions", form=None, without={"seed", *NO_PROBABILITIES}),
    "gemini": Shape("/v1beta/openai/chat/completions", without={"seed"}),
    "openrouter": Shape("/api/v1/chat/completions"),
    "ollama": Shape("/v1/chat/completions", None),
    "vllm": Shape("/v1/chat/completions"),
    "tgi": Shape("/v1/chat/completions", None, {"type": "json_object", "value": SCHEMA}),
    "lmstudio": Shape("/v1/chat/completions", None),
    "llamacpp": Shape("/v1/chat/completions"),
    "litellm": Shape("/v1/chat/completions"),
    "mistral": Shape(
        "/v1/chat/completions", without={"seed", *NO_PROBABILITIES}, more={"random_seed": 7}
    ),
    "groq": Shape("/openai/v1/chat/completions", without=NO_PROBABILITIES),
    "together": Shape("/v1/chat/completions", without=NO_PROBABILITIES),
    "deepseek": Shape("/v1/chat/completions", form={"type": "json_object"}),
}
HOSTS = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "gemini": "generativelanguage.googleapis.com",
    "openrouter": "openrouter.ai",
    "ollama": "localhost:11434",
    "vllm": "localhost:8000",
    "tgi": "localhost:8080",
    "lmstudio": "localhost:1234",
    "llamacpp": "localhost:8080",
    "litellm": "localhost:4000",
    "mistral": "api.mistral.ai",
    "groq": "api.groq.com",
    "together": "api.together.ai",
    "deepseek": "api.deepseek.com",
}


def origin(server: Server) -> str:
    return server.url.removesuffix("/v1")


def moved(provider: Provider, server: Server, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """Return a provider whose own address is the recording server, with its key in place."""
    if provider.key:
        monkeypatch.setenv(provider.key, KEY)
    if provider.name == "azure":
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", origin(server))
        return provider
    here = origin(server) + urlsplit(provider.url).path
    if provider.name == "openai":
        monkeypatch.setenv("OPENAI_BASE_URL", here)
        return provider
    return replace(provider, url=here)


def test_every_row_is_tested() -> None:
    assert set(SHAPES) == set(PROVIDERS)
    assert {name: urlsplit(row.url).netloc for name, row in PROVIDERS.items() if row.url} == HOSTS
    for name, row in PROVIDERS.items():
        assert row.source, name
        assert row.name == name
        assert set(row.modes) <= set(OUTPUT_MODES)
        assert row.url.startswith(("https://", "http://localhost")) or row.deployments
        assert row.spelling in known_judges()
        assert (row.spelling in EMBEDDERS) == row.embeddings


def test_the_table_of_the_docs_is_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "judging-providers.md").read_text(encoding="utf-8")
    lines = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for row in PROVIDERS.values():
        said = lines[row.spelling].split(" | ")
        assert row.url in said[1]
        assert row.url_variable in said[1] or row.name == "openai"
        assert (row.key or "none") in said[2]
        assert all((mode in said[3]) == (mode in row.modes) for mode in OUTPUT_MODES[:2])
        assert all(name in said[4] for name in (*row.left_out, *row.renamed))
        assert ("batch=yes" in said[4]) == bool(row.batch)
        assert ("no embeddings" in said[4]) != row.embeddings
        assert said[6].startswith(row.source)


@pytest.mark.parametrize("name", SHAPES)
def test_a_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = SHAPES[name]
    with serve() as server:
        provider = moved(PROVIDERS[name], server, monkeypatch)
        endpoint = Endpoint.find("some/model:7b", provider=provider)
        asked = question(schema=SCHEMA, options=OPTIONS)
        [outcome] = ask(server, asked, endpoint=endpoint)
    assert isinstance(outcome, Answer)
    [call] = server.calls
    assert call.path == shape.path
    carried = {header: call.headers.get(header) for header in ("authorization", "api-key")}
    assert {pair for pair in carried.items() if pair[1]} == ({shape.key} if shape.key else set())
    expected = {each: value for each, value in OPTIONS.items() if each not in shape.without}
    expected |= {"model": "some/model:7b", "stream": False, **shape.more}
    expected["messages"] = asked.content()["messages"]
    if shape.form:
        expected["response_format"] = shape.form
    assert call.body == expected


@pytest.mark.parametrize("name", [name for name, row in PROVIDERS.items() if row.embeddings])
def test_embeddings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(both) as server:
        provider = moved(PROVIDERS[name], server, monkeypatch)
        embedder = openai_embedder("m", provider=provider)
        vectors = embedder.embed(["a text", "another"])
    assert vectors.shape == (2, 2)
    [call] = server.calls
    assert call.path == SHAPES[name].path.replace("/chat/completions", "/embeddings")
    header, value = SHAPES[name].key or ("authorization", None)
    assert call.headers.get(header) == value
    assert embedder.name.startswith(f"{name}:m@")


@pytest.mark.parametrize("name", [name for name, row in PROVIDERS.items() if not row.embeddings])
def test_who_has_no_embeddings_says_so(name: str) -> None:
    with pytest.raises(OptionError, match="has no embeddings") as stop:
        find_embedder(f"{name}:m", api_key=KEY)
    assert "ollama:MODEL" in stop.value.fix


def test_azure_with_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    version = "api-version=2024-10-21"
    with serve(both) as server:
        host = origin(server)
        deployment = f"{host}/openai/deployments/judge"
        given = {
            "by its variable": (None, {"OPENAI_API_VERSION": "2024-10-21"}),
            "in the base URL": (f"{host}/?{version}", {}),
            "as the portal shows it": (f"{deployment}/chat/completions?{version}", {}),
        }
        for base_url, variables in given.values():
            with monkeypatch.context() as set_here:
                set_here.setenv("AZURE_OPENAI_ENDPOINT", f"{host}/")
                set_here.setenv("AZURE_OPENAI_API_KEY", KEY)
                for variable, value in variables.items():
                    set_here.setenv(variable, value)
                azure = PROVIDERS["azure"]
                endpoint = Endpoint.find("judge", base_url=base_url, provider=azure)
                ask(server, question(), endpoint=endpoint)
                openai_embedder("judge", base_url=base_url, provider=azure).embed(["a"])
                assert endpoint.files_url("/files") == f"{host}/openai/files?{version}"
        paths = [call.path for call in server.calls]
    chat = f"/openai/deployments/judge/chat/completions?{version}"
    assert paths == [chat, f"/openai/deployments/judge/embeddings?{version}"] * 3
    assert {call.headers["api-key"] for call in server.calls} == {KEY}


def test_a_lesser_mode_is_one_that_the_provider_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(call: Call) -> Reaction:
        return error(400, "response_format?") if "response_format" in call.body else echo(call)

    for name, modes in {
        "lmstudio": ["json_schema", None],
        "deepseek": ["json_object", None],
    }.items():
        with serve(script) as server:
            provider = moved(PROVIDERS[name], server, monkeypatch)
            ask(
                server,
                question(schema=SCHEMA),
                question("next", schema=SCHEMA),
                endpoint=Endpoint.find("m", provider=provider),
                retry=replace(HASTE, concurrency=1),
            )
            sent = [call.body.get("response_format", {}).get("type") for call in server.calls]
        assert sent == [*modes, None]


@pytest.mark.parametrize("name", [name for name, row in PROVIDERS.items() if row.key])
def test_the_key_of_a_provider_goes_nowhere_else(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = PROVIDERS[name]
    monkeypatch.setenv(provider.key, KEY)
    with serve(lambda _: error(401, "who are you?")) as server:
        endpoint = Endpoint.find("m", base_url=server.url, provider=provider)
        with pytest.raises(EndpointError) as stop:
            ask(server, question(), endpoint=endpoint)
        assert KEY not in str(server.calls[0].headers)
    assert f"{provider.key} belongs to another server" in stop.value.fix
    for other in PROVIDERS.values():
        if other.name != name and other.url:
            assert not Endpoint.find("m", provider=other).key, other.name


def test_a_key_of_azure_goes_to_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    azure = PROVIDERS["azure"]
    urls = {
        "https://me.openai.azure.com": True,
        "https://me.services.ai.azure.com/openai/v1": True,
        "https://openai.azure.com.example.com": False,
        "https://azure.com.evil": False,
    }
    for url, sent in urls.items():
        assert bool(Endpoint.find("d", base_url=url, provider=azure).key) == sent, url
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com")
    for url in ("https://you.openai.azure.com", "http://me.openai.azure.com"):
        assert not Endpoint.find("d", base_url=url, provider=azure).key
    assert Endpoint.find("d", provider=azure).key


def test_findwells_own_key_serves_any_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDWELL_API_KEY", "sk-own")
    assert Endpoint.find("m", provider=PROVIDERS["vllm"]).key.reveal() == "sk-own"
    monkeypatch.setenv("VLLM_API_KEY", "sk-vllm")
    assert Endpoint.find("m", provider=PROVIDERS["vllm"]).key.reveal() == "sk-vllm"
    monkeypatch.setenv("FINDWELL_BASE_URL", "http://box:1/v1")
    found = Endpoint.find("m", provider=PROVIDERS["anthropic"])
    assert (found.identity, found.key.reveal()) == ("https://api.anthropic.com/v1", "")


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openrouter", "groq", "deepseek"])
def test_nothing_is_sent_to_a_public_provider_without_a_key(name: str) -> None:
    with pytest.raises(OptionError, match="needs a key") as stop:
        ask_all([question()], Endpoint.find("m", provider=PROVIDERS[name]), retry=HASTE)
    assert PROVIDERS[name].key in stop.value.fix


def test_azure_must_be_told_where_it_is() -> None:
    with pytest.raises(OptionError, match="address of Azure OpenAI is not known") as stop:
        find_judge("azure:judge")
    assert "AZURE_OPENAI_ENDPOINT" in stop.value.fix


@pytest.mark.parametrize(
    ("host", "identity"),
    [
        ("", "http://localhost:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
        ("gpu-box", "http://gpu-box:11434/v1"),
        ("http://gpu-box:1", "http://gpu-box:1/v1"),
        ("https://models.example.com/", "https://models.example.com/v1"),
        ("https://models.example.com/ollama/v1", "https://models.example.com/ollama/v1"),
    ],
)
def test_where_ollama_is(host: str, identity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert Endpoint.find("llama3.2", provider=PROVIDERS["ollama"]).identity == identity


def test_organisation_and_project_go_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    with serve(both) as openai, serve(both) as other:
        monkeypatch.setattr(endpoints, "DEFAULT_URL", openai.url)
        for server in (openai, other):
            ask(server, question(), endpoint=Endpoint.find("m", base_url=server.url, key=KEY))
            find_embedder("openai:m", base_url=server.url, api_key=KEY).embed(["a"])
    names = ("openai-organization", "openai-project")
    assert [[call.headers.get(name) for name in names] for call in openai.calls] == [
        ["org-1", "proj-1"]
    ] * 2
    assert [[call.headers.get(name) for name in names] for call in other.calls] == [[None] * 2] * 2


def test_headers_are_sent_and_shown_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    secret = "gateway-0123456789-secret"

    def script(call: Call) -> Reaction:
        return error(400, f"no {call.headers['x-gateway-key']} {call.headers['authorization']}")

    headers = {"X-Gateway-Key": secret, "X-Team": "search", "authorization": f"Token {secret}"}
    with serve(script) as server:
        settings = Judge("vllm:m", base_url=server.url, key=KEY, headers=headers, retry=HASTE)
        judge = find_judge(settings)
        outcomes = ask(server, question(), endpoint=judge.endpoint)  # type: ignore[attr-defined]
    sent = server.calls[0].headers
    assert (sent["x-team"], sent["authorization"]) == ("search", f"Token {secret}")
    said = [repr(settings), repr(outcomes), repr(judge.endpoint), json.dumps(judge.about())]  # type: ignore[attr-defined]
    assert not [text for text in [*said, caplog.text] if secret in text or KEY in text]
    assert judge.about()["headers"] == ["X-Gateway-Key", "X-Team", "authorization"]


@pytest.mark.parametrize(
    "header",
    [("Host", "evil"), ("a b", "c"), ("X", "a\r\nY: b"), ("Content-Length", "3"), ("X", "é")],
)
def test_a_header_that_cannot_be_sent(header: tuple[str, str]) -> None:
    with pytest.raises(OptionError, match="header"):
        Endpoint.find("m", base_url="http://h/v1", headers=dict([header]))


def test_extra_fields_are_a_part_of_the_call_and_of_its_key() -> None:
    with serve() as server:
        keys = set()
        given: list[Any] = [None, {"top_k": 5}, {"provider": {"require_parameters": True}}]
        for extra in given:
            judge = find_judge(Judge("vllm:m", base_url=server.url, extra_body=extra, cache="off"))
            asked = question(options=judge.options)  # type: ignore[attr-defined]
            ask(server, asked, endpoint=judge.endpoint)  # type: ignore[attr-defined]
            keys.add(asked.key(judge.endpoint))  # type: ignore[attr-defined]
        assert len(keys) == 3
        assert [call.body.get("top_k") for call in server.calls] == [None, 5, None]
        assert server.calls[2].body["provider"] == {"require_parameters": True}
    with pytest.raises(OptionError, match="'messages'"):
        Judge("vllm:m", extra_body={"messages": []})
    with pytest.raises(OptionError, match="options has 'model'"):
        Judge("vllm:m", options={"model": "another"})


def test_the_manifest_has_the_fields_of_a_call_but_for_keys() -> None:
    extra: dict[str, Any] = {"api_key": KEY, "user_config": [{"token": KEY}], "max_tokens": 5}
    with serve(both) as server:
        settings = Judge("litellm:m", base_url=server.url, extra_body=extra, cache="off")
        result = evaluate(SAMPLES, measures=["context_recall"], judge=settings)
        [call] = server.calls
    assert call.body["api_key"] == KEY
    assert result.judge["options"]["max_tokens"] == 5
    assert KEY not in str(result.judge)
    assert KEY not in repr(replace(settings, base_url=f"http://me:{KEY}@localhost/v1"))


def test_who_has_batches() -> None:
    able = {name for name, row in PROVIDERS.items() if row.batch}
    assert able == {"openai", "azure", "groq", "litellm"}
    with pytest.raises(OptionError, match="no batches") as stop:
        find_judge(Judge("anthropic:m", batch=True))
    assert "openai:MODEL" in stop.value.fix
    requires_batches(PROVIDERS["groq"])


def test_small_machines_are_asked_less_at_once() -> None:
    def policy(spec: str, **more: Any) -> tuple[int, float]:
        retry = find_judge(Judge(spec, **more))._session.retry  # type: ignore[attr-defined]
        return retry.concurrency, retry.timeout

    assert policy("ollama:m") == (4, 600.0)
    assert policy("ollama:m", concurrency=9, timeout=5.0) == (9, 5.0)
    assert policy("vllm:m") == (16, 120.0)


def test_names_of_models_may_hold_colons_and_slashes() -> None:
    assert find_judge("ollama:qwen2.5:1.5b").name == "ollama:qwen2.5:1.5b"
    assert find_judge("openrouter:meta-llama/llama-3:free").name.endswith(":free")
    assert split_spec("local") is None
    with pytest.raises(OptionError, match="ollama needs the name of a"):
        find_judge("ollama:")


def test_what_a_private_judge_reads_is_embedded_there_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`openai:` without an address would be OpenAI: texts for Ollama must not go there."""
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve(both) as own, serve(both) as other, serve(both) as public:
        monkeypatch.setattr(endpoints, "DEFAULT_URL", public.url)
        monkeypatch.setenv("OLLAMA_HOST", origin(own))
        monkeypatch.setenv("LITELLM_PROXY_API_BASE", origin(other))
        measures = ["recall", "context_recall"]
        for embedder in ("openai:m", "litellm:m"):
            evaluate(SAMPLES, measures=measures, by="semantic", judge="ollama:j", embedder=embedder)
        assert not public.calls
        assert [call.path for call in other.calls] == ["/v1/embeddings"]
        assert {call.path for call in own.calls} == {"/v1/embeddings", "/v1/chat/completions"}
        assert not any("authorization" in call.headers for call in own.calls)


def test_on_the_command_line(
    cli: Findwell, save: Save, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    samples = save("samples.jsonl", "\n".join(map(json.dumps, SAMPLES)))
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path / "cache"))
    with serve(both) as server:
        monkeypatch.setenv("OLLAMA_HOST", origin(server))
        asked = ["score", samples, "-m", "context_recall", "--judge", "ollama:llama3.2"]
        more = ["-J", "headers.X-Team=search", "-J", 'extra_body={"top_k": 5}']
        done = cli(*asked, *more)
        assert done.code == 0, done
        assert "judge ollama:llama3.2" in done.out
        [call] = server.calls
        assert (call.body["model"], call.body["top_k"]) == ("llama3.2", 5)
        assert call.headers["x-team"] == "search"
    for wrong in (
        "headers.X: secret-value",
        "headers=secret-value",
        "extra_body=[1]",
        "extra_body={",
    ):
        done = cli(*asked, "-J", wrong)
        assert done.code == 2
        assert "secret-value" not in done.err
    assert cli(*asked, "-J", "batch=yes").code == 2


def test_gemini_sends_errors_in_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [{"error": {"code": 400, "message": 'Invalid JSON payload. Unknown name "temperature"'}}]

    def script(call: Call) -> Reaction:
        return as_json(said, status=400) if "temperature" in call.body else echo(call)

    with serve(script) as server:
        provider = moved(PROVIDERS["gemini"], server, monkeypatch)
        asked = question(options={"temperature": 0})
        [outcome] = ask(server, asked, endpoint=Endpoint.find("m", provider=provider))
    assert isinstance(outcome, Answer)
    assert len(server.calls) == 2
