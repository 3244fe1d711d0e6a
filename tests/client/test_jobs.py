"""Whole jobs: in order, once, killed and resumed, shared, interrupted, inside a running loop."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from findwell.core.errors import EndpointError
from findwell.judges.client.budget import CallBudget
from findwell.judges.client.cache import FILE, Cache
from findwell.judges.client.jobs import OPEN_PER_CALL, Ask, Conversation, Session
from findwell.judges.client.protocol import Answer, Failure
from tests.client.asking import HASTE, SCHEMA, ask, ask_all, endpoint_of, question
from tests.client.server import Barrier, Call, Reaction, chat, echo, error, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from findwell.judges.client.protocol import ChatRequest
    from tests.client.server import Server

ROOT = Path(__file__).parents[2]
CONCURRENCY = 8
JOB = f"""
import json, sys
from dataclasses import replace
from findwell.judges.client.cache import Cache
from findwell.judges.client.endpoint import Endpoint
from findwell.core.errors import EndpointError
from tests.client.asking import HASTE, SCHEMA, ask_all, question
url, folder, count = sys.argv[1:]
requests = [question(number, schema=SCHEMA) for number in range(int(count))]
endpoint = Endpoint.find("m", base_url=url, key="")
try:
    with Cache.open(folder) as cache:
        outcomes = ask_all(
            requests, endpoint, cache=cache, retry=replace(HASTE, concurrency={CONCURRENCY})
        )
except KeyboardInterrupt:
    sys.exit("interrupted")
print(json.dumps([outcome.content for outcome in outcomes]))
"""


def start(server: Server, folder: Path, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", JOB, server.url, str(folder), str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    contents: list[str] = json.loads(out)
    return contents


def stored(folder: Path) -> int:
    with sqlite3.connect(folder / FILE) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        count = int(connection.execute("SELECT count(*) FROM answer").fetchone()[0])
    connection.close()
    return count


def expected(count: int) -> list[str]:
    return [json.dumps({"heard": str(number)}) for number in range(count)]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill so")
def test_a_job_killed_twice_goes_on_where_it_was(tmp_path: Path) -> None:
    total, known = 500, 0
    with serve() as server:
        for answered in (170, 150):
            barrier = Barrier(answered)
            server.script, server.calls = barrier, []
            process = start(server, tmp_path, total)
            assert barrier.reached.wait(60), process.communicate(timeout=5)
            process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL
            barrier.opened.set()
            before, known = known, stored(tmp_path)
            # at most what was under way is lost: sent but not answered, answered but not stored
            assert before + answered - CONCURRENCY <= known <= before + answered
            assert len(server.calls) <= known - before + 2 * CONCURRENCY
            assert max(server.prompts.values()) == 1
        server.script, server.calls = echo, []
        assert finish(start(server, tmp_path, total)) == expected(total)
        assert len(server.calls) == total - known
        assert max(server.prompts.values()) == 1
    assert stored(tmp_path) == total


def test_two_processes_share_what_they_are_told(tmp_path: Path) -> None:
    with serve() as server:
        processes = [start(server, tmp_path, 200) for _ in range(2)]
        for process in processes:
            assert finish(process) == expected(200)
        calls = len(server.calls)
        assert 200 <= calls <= 400
        assert finish(start(server, tmp_path, 200)) == expected(200)
        assert len(server.calls) == calls
    assert stored(tmp_path) == 200


@pytest.mark.skipif(os.name != "posix", reason="signals are sent in another way here")
def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    barrier = Barrier(40)
    with serve(barrier) as server:
        process = start(server, tmp_path, 100)
        assert barrier.reached.wait(60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (out, err.strip(), process.returncode) == ("", "interrupted", 1)
        known = stored(tmp_path)
        assert 40 - CONCURRENCY <= known <= 40
        barrier.opened.set()
        server.script, server.calls = echo, []
        assert finish(start(server, tmp_path, 100)) == expected(100)
        assert len(server.calls) == 100 - known


def test_answers_are_in_the_order_of_the_requests() -> None:
    def script(call: Call) -> Reaction:
        return replace(echo(call), latency=0.001 * (7 - int(call.prompt) % 8))

    with serve(script) as server:
        outcomes = ask(server, *map(question, range(100)))
    assert [outcome.content for outcome in outcomes] == expected(100)


def test_the_same_request_is_sent_once() -> None:
    budget = CallBudget()
    requests = [question(number % 10, schema=SCHEMA) for number in range(100)]
    with serve() as server:
        outcomes = ask(server, *requests, budget=budget)
        assert server.prompts == Counter({str(number): 1 for number in range(10)})
    assert [outcome.content for outcome in outcomes] == expected(10) * 10
    assert (budget.requests, budget.answered, budget.repeated) == (100, 10, 90)


def test_votes_are_asked_and_cached_separately() -> None:
    with serve(lambda call: chat(str(call.number))) as server, Cache.open(mode="off") as cache:
        votes = [question(vote=number) for number in range(5)]
        first = ask(server, *votes, cache=cache)
        assert {outcome.content for outcome in first} == set("01234")
        again = ask(server, *votes, cache=cache)
        assert [each.content for each in again] == [each.content for each in first]
        assert len(server.calls) == 5


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_no_more_than_allowed_are_under_way(concurrency: int) -> None:
    with serve(lambda call: replace(echo(call), latency=0.002)) as server:
        retry = replace(HASTE, concurrency=concurrency)
        ask(server, *map(question, range(60)), retry=retry)
        assert server.most_at_once <= concurrency
        assert concurrency < 3 or server.most_at_once > 1


def test_a_job_with_nothing_to_ask_needs_no_server() -> None:
    with serve() as server:
        assert ask(server) == []
        with Cache.open(mode="off") as cache:
            endpoint = endpoint_of(server)
            ask(server, question(), cache=cache, endpoint=endpoint)
            server.script = lambda _: error(500)
            assert isinstance(ask_all([question()], endpoint, cache=cache)[0], Answer)
    assert isinstance(ask_all(iter([]), endpoint), list)


def test_it_works_inside_a_running_loop() -> None:
    async def notebook(server: Server) -> None:
        other = asyncio.create_task(asyncio.sleep(0, "still here"))
        outcomes = ask(server, *map(question, range(20)))
        assert [outcome.content for outcome in outcomes] == expected(20)
        assert await other == "still here"
        outcomes = await asyncio.to_thread(ask, server, *map(question, range(5)))
        assert [outcome.content for outcome in outcomes] == expected(5)

    with serve() as server:
        asyncio.run(notebook(server))


def test_what_failed_is_not_asked_for_again_by_the_same_job() -> None:
    budget = CallBudget()
    with serve(lambda _: error(400, "no")) as server:
        endpoint = endpoint_of(server)
        endpoint.support.answered = True
        retry = replace(HASTE, concurrency=1)
        requests = [question(number % 2) for number in range(10)]
        outcomes = ask(server, *requests, endpoint=endpoint, budget=budget, retry=retry)
        assert len(server.calls) == 2
    assert {outcome.reason for outcome in outcomes if isinstance(outcome, Failure)} == {"rejected"}
    assert (budget.requests, budget.repeated, budget.failed.total()) == (10, 8, 2)


def test_progress_is_told_in_the_callers_thread() -> None:
    seen: list[int] = []
    threads: set[threading.Thread] = set()

    def report(done: int) -> None:
        seen.append(done)
        threads.add(threading.current_thread())

    requests = [question(number % 20) for number in range(40)]
    with serve() as server, Cache.open(mode="off") as cache:
        endpoint = endpoint_of(server)
        ask(server, *requests[:5], endpoint=endpoint, cache=cache)
        ask(server, *requests, endpoint=endpoint, cache=cache, progress=report)
    assert threads == {threading.current_thread()}
    assert seen == sorted(seen)
    assert set(seen) == set(range(41))


def test_an_error_of_the_progress_report_stops_the_job() -> None:
    def report(done: int) -> None:
        if done >= 5:
            raise ZeroDivisionError

    with serve() as server, Cache.open(mode="off") as cache:
        before = set(threading.enumerate())
        with pytest.raises(ZeroDivisionError):
            ask(server, *map(question, range(2000)), progress=report, cache=cache)
        assert 5 <= len(cache) < 2000
        assert set(threading.enumerate()) <= before


def test_a_session_keeps_its_connections_from_job_to_job() -> None:
    one_at_a_time = replace(HASTE, concurrency=1)
    with serve() as server, Session(endpoint_of(server), one_at_a_time) as session:
        for number in range(3):
            session.run([partial(heard, question(number))])
        assert len({call.port for call in server.calls}) == 1
        session.close()
        session.run([partial(heard, question("after it was closed"))])
        assert len({call.port for call in server.calls}) == 2


def test_a_session_that_nobody_needs_any_longer_is_closed() -> None:
    with serve() as server:
        before = set(threading.enumerate())
        session = Session(endpoint_of(server), HASTE)
        session.run([partial(heard, question())])
        assert set(threading.enumerate()) > before
        del session
        gc.collect()
        assert set(threading.enumerate()) <= before


def test_a_process_may_end_with_an_open_session() -> None:
    code = """
import sys
from functools import partial
from findwell.judges.client.jobs import Session
from findwell.judges.client.endpoint import Endpoint
from tests.client.asking import HASTE, question
from tests.client.test_jobs import heard
session = Session(Endpoint.find("m", base_url=sys.argv[1], key=""), HASTE)
print(session.run([partial(heard, question("hello"))]))
"""
    with serve() as server:
        url = server.url.replace("127.0.0.1", "localhost")  # names are looked up in a thread
        command = [sys.executable, "-W", "error", "-c", code, url]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "hello" in done.stdout
    assert not done.stderr


def test_an_error_does_not_end_the_session() -> None:
    def report(_: int) -> None:
        raise ZeroDivisionError

    conversations = [partial(heard, question(number)) for number in range(50)]
    with serve() as server, Session(endpoint_of(server), HASTE) as session:
        with pytest.raises(ZeroDivisionError):
            session.run(conversations, progress=report)
        server.script = lambda call: error(401) if call.prompt == "7" else echo(call)
        with pytest.raises(EndpointError):
            session.run(conversations)
        server.script = echo
        assert session.run(conversations) == expected(50)


async def heard(request: ChatRequest, ask: Ask) -> str:
    return (await ask(request)).content


def test_conversations_begin_when_it_is_their_turn_and_go_on_while_others_wait() -> None:
    """A second request does not wait for the first requests of all other conversations."""
    begun: list[int] = []
    ended: list[int] = []
    slow, second = threading.Event(), threading.Event()

    def script(call: Call) -> Reaction:
        if call.prompt == "0 again":
            second.set()
        return replace(echo(call), until=slow if call.prompt == "1" else None)

    def conversations() -> Iterator[Conversation[list[str]]]:
        for number in range(100):
            begun.append(number)
            assert len(begun) <= len(ended) + OPEN_PER_CALL * HASTE.concurrency
            yield partial(hold, number)

    async def hold(number: int, ask: Ask) -> list[str]:
        first = await ask(question(number, schema=SCHEMA))
        then = await ask(question(f"{number} again", schema=SCHEMA))
        ended.append(number)
        return [first.content, then.content]

    def report(_: int) -> None:
        if second.is_set():
            slow.set()

    with serve(script) as server:
        session = Session(endpoint_of(server), HASTE)
        said = session.run(conversations(), progress=report)
        session.close()
    assert begun == list(range(100))
    assert said == [
        [json.dumps({"heard": text}) for text in (str(number), f"{number} again")]
        for number in range(100)
    ]


def test_an_error_inside_a_conversation_is_raised_as_it_is() -> None:
    async def hold(number: int, ask: Ask) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(step(number, ask))

    async def step(number: int, ask: Ask) -> None:
        await ask(question(number))
        if number == 7:
            raise ZeroDivisionError

    with serve() as server, pytest.raises(ZeroDivisionError):
        Session(endpoint_of(server)).run(partial(hold, number) for number in range(50))


def test_the_same_seed_waits_the_same() -> None:
    import numpy as np

    from findwell.judges.client.client import Pacer

    def waits(seed: int) -> list[float]:
        gate = Pacer(4, first_wait=1.0, rng=np.random.default_rng(seed))
        return [gate.back_off(attempt) for attempt in range(1, 20)]

    assert waits(3) == waits(3) != waits(4)
