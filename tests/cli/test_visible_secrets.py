"""No option takes a secret as it is: every user of a machine can read the list of processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.server import Call, Reaction, serve
from tests.judges.model import well

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Findwell, Save

SECRET = "sk-hush-0123456789"
SAMPLE = {
    "query": "q1",
    "question": "What is the capital of Brazil?",
    "retrieved": [{"doc": "d1", "text": "Brasília is the capital of Brazil."}],
    "reference": "The capital of Brazil is Brasília.",
}


@pytest.fixture
def samples(save: Save) -> Path:
    return save("samples.jsonl", json.dumps(SAMPLE))


ASKED = ["-m", "context_recall", "--judge", "openai:m", "-J", "cache=off"]


@pytest.mark.parametrize(
    "given",
    [
        ["-J", f"headers.Authorization=Bearer {SECRET}"],
        ["-J", f"headers.api-key={SECRET}"],
        ["-J", f"options.api_key={SECRET}"],
        ["-J", "extra_body=" + json.dumps({"user_config": {"api_key": SECRET}})],
        ["-J", f"base_url=http://me:{SECRET}@127.0.0.1:9/v1"],
    ],
)
def test_a_secret_on_the_command_line_is_refused(
    given: list[str], cli: Findwell, samples: Path
) -> None:
    done = cli("score", samples, *ASKED, "-J", "base_url=http://127.0.0.1:9/v1", *given)
    assert done.code == 2
    assert "other users can read" in done.err
    assert SECRET not in done.out + done.err


def test_a_token_on_the_command_line_is_refused(cli: Findwell, tmp_path: Path, save: Save) -> None:
    never = ("--limit", "request=much")  # so that no server is ever started
    place = ("monitor", "serve", "--store", tmp_path / "store", "--host", "0.0.0.0", *never)
    done = cli(*place, "--token", SECRET)
    assert (done.code, "other users can read" in done.err) == (2, True)
    assert SECRET not in done.err
    assert not (tmp_path / "store").exists()
    missing = cli(*place, "--token", "env:NOWHERE_SET")
    assert (missing.code, "the environment variable NOWHERE_SET is not set" in missing.err) == (
        2,
        True,
    )
    assert cli(*place, "--token", f"file:{tmp_path / 'none'}").code == 2
    save("empty", " \n")
    empty = cli(*place, "--token", f"file:{tmp_path / 'empty'}")
    assert (empty.code, "no token is set" in empty.err) == (2, True)


def test_a_secret_is_taken_from_where_it_is_kept(
    cli: Findwell, samples: Path, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEARER", f"Bearer {SECRET}")
    kept = save("key", f"{SECRET}\n")
    seen: list[Any] = []

    def answer(call: Call) -> Reaction:
        seen.append((call.headers, call.body))
        return well(call)

    with serve(answer) as server:
        given = ["-J", "headers.Authorization=env:BEARER", "-J", f"headers.X-Key=file:{kept}"]
        given += ["-J", "extra_body=" + json.dumps({"config": {"api_key": f"file:{kept}"}})]
        done = cli(
            "score", samples, *ASKED, "-J", f"base_url={server.url}", *given, "--format", "json"
        )
    assert done.code == 0, done.err
    headers, body = seen[0]
    assert headers["authorization"] == f"Bearer {SECRET}"
    assert headers["x-key"] == body["config"]["api_key"] == SECRET
    assert SECRET not in done.out + done.err
