"""Judging whole samples: how much of the allowed concurrency is used by a server that is quick."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle, islice
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.data import ROOT
from benchmarks.judge_calls import divided, samples
from benchmarks.report import Table
from findwell.judges.client.cache import Cache
from findwell.judges.client.client import RetryPolicy
from findwell.judges.llm.judge import LLMJudge
from findwell.judges.settings import Judge
from findwell.judges.verdicts import Sample
from tests.client.server import Call, Reaction, serve
from tests.judges.building import FOUR
from tests.judges.model import well

if TYPE_CHECKING:
    from findwell.judges.verdicts import Sample

LATENCY, CONCURRENCY, DEMO_QUESTIONS = 0.05, RetryPolicy().concurrency, 95
JUDGING = f"""\
samples of five chunks are judged as a whole, relevance, claims, entities and statements:
preparing, asking, checking every verdict, on average CALLS calls each. The server is a process of
its own that answers each call after {LATENCY * 1000:.0f} ms; {CONCURRENCY} are allowed at once,
the default. *Busy* is the share of the time in which an allowed call was under way: calls ×
latency ÷ ({CONCURRENCY} × seconds). The bare sockets write and read the same bytes and do nothing
else: what this machine and this server allow. The best of the rounds, each in a process that has
judged before."""
WAYS = {
    "findwell": "answers kept in memory",
    "findwell, on disk": "each answer written as it arrives",
    "findwell, again": "all answers from the disk",
    "bare sockets": "asyncio streams",
}


def judging(count: int, rounds: int) -> tuple[Table, float]:
    """Time all ways; return the table, and how busy findwell kept the server."""
    best: dict[str, float] = {}
    calls = 0
    with _server() as url:
        for number in range(1, rounds + 1):
            calls, found = _round(url, count)
            for way, seconds in found.items():
                best[way] = min(seconds, best.get(way, float("inf")))
                print(f"round {number} of {rounds}  {way}: {seconds:.3g} s", file=sys.stderr)
    shares = {way: calls * LATENCY / (CONCURRENCY * seconds) for way, seconds in best.items()}
    rows = [
        (
            way,
            what,
            f"{best[way]:.3f}",
            f"{calls / best[way]:,.0f}",
            "–" if way == "findwell, again" else f"{shares[way]:.1%}",
        )
        for way, what in WAYS.items()
    ]
    header = ("client", "how", "seconds", "calls a second", "busy")
    remark = f"{count:,} {JUDGING}".replace("CALLS", f"{calls / count:.2g}")
    return Table("11. Judging", remark, header, rows, texts=2), shares["findwell"]


@contextmanager
def _server() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.judging"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process.stdout.readline().strip() if process.stdout else ""
    finally:
        process.communicate("")


def _serve() -> None:
    """Serve until standard input ends; the time of finding an answer is part of the latency."""

    def answer(call: Call) -> Reaction:
        arrived = time.perf_counter()
        reaction = well(call)
        return replace(reaction, latency=LATENCY - (time.perf_counter() - arrived))

    with serve(answer) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def _round(url: str, count: int) -> tuple[int, dict[str, float]]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.judging", url, str(count)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    calls, seconds = json.loads(done.stdout)
    return calls, seconds


def measure(url: str, count: int) -> tuple[int, dict[str, float]]:
    """Return the number of calls, and the seconds of each way, once."""
    work = list(different(count))
    with serve(well) as near, Cache.open(mode="off") as cache:  # in memory, without latency
        _judge(work, near.url, cache)
        bodies = [json.dumps(call.body, ensure_ascii=False).encode() for call in near.calls]
    with Cache.open(mode="off") as cache:
        found = {"findwell": _judge(work, url, cache)}
    with tempfile.TemporaryDirectory() as folder, Cache.open(folder) as cache:
        found["findwell, on disk"] = _judge(work, url, cache)
        found["findwell, again"] = _judge(work, url, cache)
    return len(bodies), found | {"bare sockets": asyncio.run(_bare(url, bodies))}


def different(count: int, passages: int = 1) -> Iterator[Sample]:
    """Yield the demo's questions, as often as it takes, no two alike."""
    rows = cycle(samples(passages, DEMO_QUESTIONS))
    for number, row in enumerate(islice(rows, count)):
        chunks = [f"{chunk} Line {number}." for chunk in row["chunks"]]
        reference = f"{row['reference']} Entry R{number}."
        yield divided(row | {"query": str(number), "chunks": chunks, "reference": reference})


def _judge(work: Sequence[Sample], url: str, cache: Cache) -> float:
    judge = LLMJudge(Judge("openai:model", base_url=url, key="", cache=cache))
    start = time.perf_counter()
    judge.judge(work, FOUR)
    spent = time.perf_counter() - start
    if judge.about()["failed_verdicts"]:
        raise RuntimeError("not every verdict was given")
    return spent


async def _bare(url: str, bodies: Sequence[bytes]) -> float:
    where = urlsplit(f"{url}/chat/completions")
    left = iter(bodies)

    async def work() -> None:
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        for body in left:
            head = f"POST {where.path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            said = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(said.split(b"content-length:")[1].split()[0]))
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return time.perf_counter() - start


if __name__ == "__main__":
    if len(sys.argv) == 1:
        _serve()
    else:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
