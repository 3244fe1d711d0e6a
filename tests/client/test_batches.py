"""Batches: answers, cache, budget and counts as those of single calls, and nothing paid twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from findwell.core.errors import EndpointError
from findwell.judges.client import batches
from findwell.judges.client.batches import BATCHES_FILE, BatchRecord, BatchRecords
from findwell.judges.client.budget import CallBudget, Limits, Prices
from findwell.judges.client.cache import Cache
from findwell.judges.client.endpoint import Endpoint
from findwell.judges.client.jobs import Ask, Session
from findwell.judges.client.protocol import Answer, Failure, Outcome, Reason
from findwell.judges.client.providers import PROVIDERS
from tests.client.asking import HASTE, KEY, SCHEMA, ask_all, endpoint_of, question
from tests.client.batch_server import BatchServer
from tests.client.server import Call, Reaction, chat, echo, error, serve

if TYPE_CHECKING:
    from collections.abc import Iterable

    from findwell.judges.client.protocol import ChatRequest
    from tests.client.server import Server

ROOT = Path(__file__).parents[2]
PRICES = Prices(2.0, 4.0)


async def _ask_once(request: ChatRequest, ask: Ask) -> Outcome:
    return await ask(request)


def by_batch(
    server: Server, requests: Iterable[ChatRequest], endpoint: Endpoint | None = None, **more: Any
) -> list[Outcome]:
    """Ask single requests by batches, impatiently."""
    retry = more.pop("retry", HASTE)
    with Session(endpoint or endpoint_of(server), retry, batch=True) as session:
        return session.run((partial(_ask_once, request) for request in requests), **more)


def questions(count: int) -> list[ChatRequest]:
    return [question(number, schema=SCHEMA) for number in range(count)]


def without_time(budget: CallBudget) -> dict[str, Any]:
    return {name: value for name, value in budget.summary().items() if name != "seconds"}


def test_what_a_batch_brings_is_what_single_calls_bring(tmp_path: Path) -> None:
    def script(call: Call) -> Reaction:
        number = int(call.prompt)
        if number % 7 == 3:
            return error(400, "maximum context length is 10 tokens")
        if number % 7 == 5:
            return chat("so far", finish="length")
        return echo(call)

    budgets = [CallBudget(prices=PRICES), CallBudget(prices=PRICES)]
    twice = [*questions(30), *questions(4)]
    with serve(script) as single, Cache.open(tmp_path / "single") as cache:
        plain = ask_all(twice, endpoint_of(single), cache=cache, budget=budgets[0], retry=HASTE)
    model = BatchServer(script)
    with serve(model) as server, Cache.open(tmp_path / "batch") as cache:
        batched = by_batch(server, twice, cache=cache, budget=budgets[1])
        assert len(cache) == len([each for each in plain[:30] if isinstance(each, Answer)])
        again = CallBudget(prices=PRICES)
        answered = [one for one, said in zip(twice, plain, strict=True) if isinstance(said, Answer)]
        by_batch(server, answered, cache=cache, budget=again)
    assert list(map(_plain, batched)) == list(map(_plain, plain))
    assert without_time(budgets[0]) == without_time(budgets[1])
    assert budgets[1].latency().keys() == budgets[0].latency().keys()
    assert max(model.paid.values()) == 1
    assert len(model.batches) == 1
    assert (again.calls, again.stored) == (0, len({one.messages for one in answered}))
    assert not any(call.path == "/v1/chat/completions" for call in server.calls)
    assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {KEY}"}


def _plain(outcome: Outcome) -> Outcome:
    """Return an outcome without what depends on the moment."""
    return replace(outcome, seconds=0.0, stored=False) if isinstance(outcome, Answer) else outcome


def test_one_batch_holds_all_that_is_asked_at_once_and_a_second_what_follows() -> None:
    async def hold(number: int, ask: Ask) -> list[str]:
        first = await ask(question(number))
        then = await ask(question(f"{number} again"))
        return [first.content, then.content]

    model = BatchServer()
    seen: list[int] = []
    budget = CallBudget()
    notes = set()

    def report(done: int) -> None:
        seen.append(done)
        notes.add(budget.spent_so_far().rpartition(", ")[2])

    with serve(model) as server:
        session = Session(endpoint_of(server), replace(HASTE, first_wait=0.05), batch=True)
        said = session.run(
            (partial(hold, number) for number in range(200)), progress=report, budget=budget
        )
        session.close()
    assert said == [
        [json.dumps({"heard": text}) for text in (str(number), f"{number} again")]
        for number in range(200)
    ]
    counts = [batch["request_counts"]["total"] for batch in model.batches.values()]
    assert counts == [200, 200]
    assert seen[-1] == 200
    assert "a batch: 0 of 200 done" in notes


def test_votes_are_asked_separately_even_if_they_look_alike() -> None:
    model = BatchServer()
    with serve(model) as server:
        outcomes = by_batch(server, [question("a", vote=vote) for vote in range(3)])
    assert len(outcomes) == 3
    assert model.paid == {"a": 3}


def test_a_batch_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_LINES", 10)
    model = BatchServer()
    with serve(model) as server:
        assert len(by_batch(server, questions(35))) == 35
    sizes = [batch["request_counts"]["total"] for batch in model.batches.values()]
    assert sum(sizes) == 35
    assert max(sizes) == 10


def test_fields_that_are_turned_down_are_left_out_in_the_next_batch() -> None:
    def script(call: Call) -> Reaction:
        if "response_format" in call.body:
            return error(400, "response_format is not supported", param="response_format")
        if "seed" in call.body:
            return error(400, "seed?", param="seed")
        return echo(call)

    model = BatchServer(script)
    with serve(model) as server:
        asked = [question(number, schema=SCHEMA, options={"seed": 0}) for number in range(5)]
        outcomes = by_batch(server, asked)
    assert all(isinstance(outcome, Answer) for outcome in outcomes)
    assert len(model.batches) <= 4
    assert set(model.paid.values()) == {1}


def test_lines_that_fail_for_a_while_are_sent_again() -> None:
    tries: Counter[str] = Counter()

    def script(call: Call) -> Reaction:
        tries[call.prompt] += 1
        busy = {"1": 429, "2": 500}.get(call.prompt)
        return error(busy, "later") if busy and tries[call.prompt] == 1 else echo(call)

    model = BatchServer(script)
    with serve(model) as server:
        outcomes = by_batch(server, questions(4))
    assert all(isinstance(outcome, Answer) for outcome in outcomes)
    assert tries == {"0": 1, "1": 2, "2": 2, "3": 1}


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_what_a_batch_leaves_undone_fails_with_a_reason_and_is_asked_next_time(
    status: str, tmp_path: Path
) -> None:
    model = BatchServer(
        status=status, spared=lambda body: int(body["messages"][-1]["content"]) % 3 == 0
    )
    with serve(model) as server, Cache.open(tmp_path) as cache:
        outcomes = by_batch(server, questions(9), cache=cache)
        lost = [number for number, each in enumerate(outcomes) if isinstance(each, Failure)]
        assert lost == [0, 3, 6]
        assert {each.reason for each in outcomes if isinstance(each, Failure)} == {
            Reason.UNFINISHED
        }
        model.status, model.spared = "completed", lambda _: False
        outcomes = by_batch(server, questions(9), cache=cache)
    assert all(isinstance(outcome, Answer) for outcome in outcomes)
    assert set(model.paid.values()) == {1}


def test_lines_that_are_missing_or_broken_fail_alone() -> None:
    model = BatchServer(polls=0)

    def spoil(call: Call) -> Reaction | None:
        if not call.path.endswith("/content"):
            return None
        lines = model.files[call.path.split("/")[3]].splitlines()
        kept = [line for line in lines if b'\\"heard\\": \\"3\\"' not in line]
        return Reaction(b"\n".join([*kept, b"{broken", b"[]", b'{"custom_id": 3}', kept[0]]))

    model.before = spoil
    with serve(model) as server:
        outcomes = by_batch(server, questions(5))
    assert [isinstance(each, Answer) for each in outcomes] == [True, True, True, False, True]
    assert isinstance(outcomes[3], Failure)
    assert outcomes[3].reason is Reason.UNFINISHED
    assert "completed, without this call" in outcomes[3].detail


def test_a_batch_that_is_turned_down_stops_the_job(tmp_path: Path) -> None:
    errors = [{"code": "token_limit_exceeded", "message": f"too much enqueued, {KEY}", "line": 1}]
    model = BatchServer(status="failed", errors=errors)
    with serve(model) as server, Cache.open(tmp_path) as cache:
        with pytest.raises(EndpointError, match="token_limit_exceeded") as stop:
            by_batch(server, questions(5), cache=cache)
        assert KEY not in str(stop.value)
        model.status = "completed"  # nothing of the failed one is waited for
        assert len(by_batch(server, questions(5), cache=cache)) == 5
    assert len(model.batches) == 2


@pytest.mark.parametrize(
    ("status", "what"),
    [(404, "has no batches"), (401, "denies access"), (422, "rejected a call")],
)
def test_a_server_that_takes_no_batches(status: int, what: str) -> None:
    with serve(lambda _: error(status, f"no {KEY}")) as server:
        with pytest.raises(EndpointError, match=what) as stop:
            by_batch(server, questions(3))
        assert len(server.calls) == 1
    assert stop.value.status == status
    assert KEY not in str(stop.value)
    assert stop.value.fix


def test_a_server_that_is_away_for_a_moment_is_asked_again() -> None:
    """Also for the creation of a batch: an attempt that was not answered may have succeeded."""
    away: Counter[str] = Counter()

    def stumble(call: Call) -> Reaction | None:
        key = f"{call.method} {call.path.partition('?')[0]}"
        away[key] += 1
        return error(503, "a moment", headers={"Retry-After": "0"}) if away[key] == 1 else None

    dropped: list[int] = []

    def drop() -> Reaction | None:
        dropped.append(1)
        return Reaction(drop=True) if len(dropped) == 1 else None

    model = BatchServer(before=stumble, after_create=drop)
    with serve(model) as server:
        assert len(by_batch(server, questions(3), retry=replace(HASTE, attempts=5))) == 3
    assert len(model.batches) == 1  # created, though nobody said so
    assert set(model.paid.values()) == {1}


def test_a_budget_holds_for_batches() -> None:
    model = BatchServer()
    budget = CallBudget(Limits(max_calls=4))
    with serve(model) as server:
        outcomes = by_batch(server, questions(10), budget=budget)
    answered = [each for each in outcomes if isinstance(each, Answer)]
    assert (len(answered), budget.calls, model.paid.total()) == (4, 4, 4)
    assert budget.failed == {"budget": 6}
    tokens = CallBudget(Limits(max_tokens=400))
    with serve(BatchServer()) as server:
        by_batch(server, questions(60), budget=tokens)
    assert 0 < tokens.tokens <= 400
    assert tokens.failed["budget"] > 0


def test_batches_cost_half() -> None:
    assert Prices(2.0, 4.0, 1.0).halved() == Prices(1.0, 2.0, 0.5)
    assert Prices(2.0, 4.0).halved().cached is None


JOB = """
import json, sys
from dataclasses import replace
from findwell.judges.client.cache import Cache
from findwell.judges.client.endpoint import Endpoint
from tests.client.asking import HASTE
from tests.client.test_batches import by_batch, questions
url, folder, count = sys.argv[1:]
endpoint = Endpoint.find("m", base_url=url, key="")
with Cache.open(folder) as cache:
    outcomes = by_batch(None, questions(int(count)), endpoint, cache=cache)
print(json.dumps([outcome.content for outcome in outcomes]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill so")
def test_killed_and_started_again_nothing_is_paid_twice(tmp_path: Path) -> None:
    model = BatchServer(hold=True)
    with serve(model) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", JOB, server.url, str(tmp_path), "20"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
        )
        assert model.polled.wait(60), process.communicate(timeout=5)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        model.hold = False
        endpoint = Endpoint.find("m", base_url=server.url, key="")
        uploads = len(model.files)
        with Cache.open(tmp_path) as cache:
            budget = CallBudget()
            outcomes = by_batch(server, questions(25), endpoint, cache=cache, budget=budget)
    assert [each.content for each in outcomes] == [
        json.dumps({"heard": str(number)}) for number in range(25)
    ]
    assert len(model.batches) == 2  # the second has only what the first had not
    assert [batch["request_counts"]["total"] for batch in model.batches.values()] == [20, 5]
    assert uploads == 1
    assert set(model.paid.values()) == {1}
    assert budget.calls == budget.answered == 25
    assert not _left(tmp_path)


def _left(folder: Path) -> list[str]:
    """Return the tables of records that still have rows."""
    connection = sqlite3.connect(folder / BATCHES_FILE)
    found = [
        table
        for table in ("batch", "line")
        if connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    ]
    connection.close()
    return found


def test_a_batch_whose_creation_was_not_noted_is_found_by_its_file(tmp_path: Path) -> None:
    """Killed between sending and noting: the record has no id, and the batch may be there."""
    for created in (True, False):
        folder = tmp_path / str(created)
        model = BatchServer()
        with serve(model) as server:
            endpoint = endpoint_of(server)
            names = _names(server, endpoint, questions(3))
            if created:
                other = {"id": "batch9", "status": "completed", "input_file_id": "x", "polls": 0}
                model.batches = {**model.batches, "batch9": other}
            else:
                model.batches.clear()
            folder.mkdir()
            records = BatchRecords(folder, endpoint.identity)
            records.add(BatchRecord("tag", "file0", ""), names)
            records.close()
            paid = model.paid.copy()
            with Cache.open(folder) as cache:
                assert len(by_batch(server, questions(3), endpoint, cache=cache)) == 3
            made = [call for call in server.calls if call.method == "POST"]
        uploaded = [call.path for call in made].count("/v1/files")
        assert uploaded == 1
        assert model.paid == (paid if created else Counter(dict.fromkeys(paid, 2)))


def _names(server: Server, endpoint: Endpoint, asked: list[ChatRequest]) -> list[str]:
    """Send requests without a record, and return what their lines are called."""
    by_batch(server, asked, endpoint)
    uploads = [call.body for call in server.calls if call.path == "/v1/files"]
    texts = uploads[-1].split(b"\r\n\r\n")[-1].splitlines()
    return [json.loads(line)["custom_id"] for line in texts if line.startswith(b"{")]


def test_a_batch_that_the_server_forgot_is_sent_again(tmp_path: Path) -> None:
    model = BatchServer()
    with serve(model) as server:
        endpoint = endpoint_of(server)
        names = _names(server, endpoint, questions(3))
        records = BatchRecords(tmp_path, endpoint.identity)
        records.add(BatchRecord("tag", "file77", ""), names)
        records.created("tag", "batch77")
        records.close()
        with Cache.open(tmp_path) as cache:
            outcomes = by_batch(server, questions(3), endpoint, cache=cache)
    assert all(isinstance(outcome, Answer) for outcome in outcomes)
    assert not _left(tmp_path)


def test_records_of_another_server_are_not_used(tmp_path: Path) -> None:
    records = BatchRecords(tmp_path, "http://a/v1")
    records.add(BatchRecord("tag", "file0", ""), ["name-0"])
    assert records.find("name-0") == BatchRecord("tag", "file0", "")
    records.close()
    other = BatchRecords(tmp_path, "http://b/v1")
    assert other.find("name-0") is None
    other.close()


def test_azure_has_its_batches_beside_the_deployments(monkeypatch: pytest.MonkeyPatch) -> None:
    version = "api-version=2024-10-21"
    model = BatchServer(root="/openai")
    with serve(model) as server:
        url = server.url.removesuffix("/v1")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
        endpoint = Endpoint.find("judge", provider=PROVIDERS["azure"])
        assert len(by_batch(server, questions(2), endpoint)) == 2
    assert all(version in call.path for call in server.calls)
    assert {call.headers["api-key"] for call in server.calls} == {KEY}
    [file] = [content for name, content in model.files.items() if name == "file0"]
    assert json.loads(file.splitlines()[0])["url"] == "/chat/completions"
