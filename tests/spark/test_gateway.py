"""The one way of all tasks to a language model: its limits, its cache, its key."""

from __future__ import annotations

import itertools
import json
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

import findwell
from findwell.core.errors import OptionError
from findwell.evaluation.spark.gateway import ModelGateway
from findwell.judges.find import find_judge
from tests.client.server import Call, Reaction, chat, error, serve

if TYPE_CHECKING:
    from pathlib import Path

KEY = "a-real-key-0123456789"


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FINDWELL_CACHE_DIR", str(tmp_path))


def call(gateway: ModelGateway, text: str, token: str | None = None) -> tuple[int, Any]:
    """Ask as a task does; return the status and the answer."""
    made = gateway.settings()
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        f"{made.base_url}/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {made.key if token is None else token}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as failed:
        with failed:
            return failed.code, json.load(failed)


def judge(url: str, spec: str = "openai:m", **more: Any) -> Any:
    return find_judge(findwell.Judge(spec, base_url=url, key=KEY, **more))


def test_answers_are_kept_and_the_key_stays_with_the_driver() -> None:
    with serve() as server:
        for _ in range(2):  # the second is another job
            with ModelGateway(judge(server.url)) as gateway:
                status, said = call(gateway, "one")
                assert status == 200
                assert said["choices"]
                assert KEY not in json.dumps(said) + repr(gateway.settings())
                assert gateway.settings().key not in (None, KEY)
        assert len(server.calls) == 1
        assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


def test_the_budget_is_one_for_all_tasks() -> None:
    with serve() as server, ModelGateway(judge(server.url, max_calls=3)) as gateway:
        found: list[int] = []
        tasks = [
            threading.Thread(target=lambda at=at: found.append(call(gateway, f"n{at}")[0]))
            for at in range(8)
        ]
        for task in tasks:
            task.start()
        for task in tasks:
            task.join()
        assert sorted(found) == [200] * 3 + [410] * 5
        assert len(server.calls) == 3
        assert "max_calls 3" in call(gateway, "another")[1]["error"]["message"]
        one_task = {"name": "openai:m", "calls": 1, "endpoint": "driver", "verdicts": {"a": 1}}
        said = gateway.about(one_task)
        assert (said["name"], said["calls"], said["requests"]) == ("openai:m", 3, 9)
        assert said["endpoint"] == gateway.endpoint.identity
        assert "verdicts" not in said
        assert gateway.about({}) == {}


def test_the_same_question_of_two_tasks_is_asked_once() -> None:
    gate = threading.Event()

    def slow(_: Call) -> Reaction:
        gate.wait(10)
        return chat("yes")

    with serve(slow) as server, ModelGateway(judge(server.url, cache="off")) as gateway:
        tasks = [threading.Thread(target=call, args=(gateway, "same")) for _ in range(4)]
        for task in tasks:
            task.start()
        gate.set()
        for task in tasks:
            task.join()
        assert len(server.calls) <= 2  # who comes after the answer finds it in memory
        assert call(gateway, "same")[0] == 200


def test_a_busy_server_is_waited_for_and_an_error_is_handed_on() -> None:
    answers = iter([error(429, headers={"retry-after": "0"}), error(400, "no such field")])
    with (
        serve(lambda _: next(answers)) as server,
        ModelGateway(judge(server.url)) as gateway,
    ):
        assert call(gateway, "one")[0] == 429
        status, said = call(gateway, "one")
        assert status == 400
        assert said["error"]["message"] == "no such field"


def test_a_pace_keeps_calls_apart() -> None:
    with serve() as server, ModelGateway(judge(server.url), calls_per_minute=600) as gateway:
        times = [gateway._next]
        for at in range(3):
            assert call(gateway, f"n{at}")[0] == 200
            times.append(gateway._next)
        assert all(later - earlier >= 0.099 for earlier, later in itertools.pairwise(times))
        assert len(server.calls) == 3


def test_strangers_are_turned_away() -> None:
    with serve() as server, ModelGateway(judge(server.url)) as gateway:
        assert call(gateway, "one", token="guessed")[0] == 401
        assert not server.calls
    with pytest.raises(OptionError, match="several votes"):
        ModelGateway(judge("http://localhost:1", votes=3))
    with pytest.raises(OptionError, match="calls_per_minute is 0"):
        ModelGateway(judge("http://localhost:1"), calls_per_minute=0)


def test_the_token_stands_where_the_provider_has_its_key() -> None:
    with serve() as server, ModelGateway(judge(f"{server.url}/openai/v1", "azure:m")) as gateway:
        made = gateway.settings()
        assert not gateway.accepts({"Authorization": f"Bearer {made.key}"})
        assert gateway.accepts({"api-key": str(made.key)})
    with pytest.raises(OptionError, match="on Spark a judge"):
        ModelGateway(judge("http://127.0.0.1:9/v1", ask="auto"))
