"""Asking a judge: how much of the allowed concurrency is used when the server answers quickly."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.data import ROOT
from benchmarks.report import Table

LATENCY, CONCURRENCY = 0.05, 32
JUDGING = f"""\
Requests of 4,000 characters with a JSON schema to a server in a process of its own that answers
each after {LATENCY * 1000:.0f} ms, {CONCURRENCY} at once. *Busy* is the share of the time in which
an allowed call was under way: requests × latency ÷ ({CONCURRENCY} × seconds). The bare sockets
write and read the same bytes and do nothing else: what this machine allows. The best of the rounds,
each in a process of its own that has asked before."""
WAYS = {
    "karat": "answers kept in memory",
    "karat, on disk": "each answer written as it arrives",
    "karat, again": "all answers from the disk",
    "bare sockets": "asyncio streams",
}


def judging(requests: int, rounds: int) -> tuple[Table, float]:
    """Time all ways; return the table, and how busy karat kept the server."""
    best: dict[str, float] = {}
    with _server() as url:
        for number in range(1, rounds + 1):
            for way, seconds in _round(url, requests).items():
                best[way] = min(seconds, best.get(way, float("inf")))
                print(f"round {number} of {rounds}  {way}: {seconds:.3g} s", file=sys.stderr)
    shares = {way: requests * LATENCY / (CONCURRENCY * seconds) for way, seconds in best.items()}
    rows = [
        (
            way,
            what,
            f"{best[way]:.3f}",
            f"{requests / best[way]:,.0f}",
            "–" if way == "karat, again" else f"{shares[way]:.1%}",
        )
        for way, what in WAYS.items()
    ]
    header = ("client", "how", "seconds", "requests a second", "busy")
    remark = JUDGING.replace("Requests", f"{requests:,} requests", 1)
    return Table("11. Judging", remark, header, rows, texts=2), shares["karat"]


@contextmanager
def _server() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.judges.server", "--latency", str(LATENCY)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process.stdout.readline().strip() if process.stdout else ""
    finally:
        process.communicate("")


def _round(url: str, requests: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.judging", url, str(requests)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def measure(url: str, count: int) -> dict[str, float]:
    """Time all ways once, after a few requests that are not timed."""
    import asyncio

    from karat.judges.answers import Answer
    from karat.judges.cache import Cache
    from karat.judges.client import Manners
    from karat.judges.endpoint import Endpoint
    from karat.judges.request import Message, Request
    from karat.judges.run import ask_all

    endpoint = Endpoint.find("model", base_url=url, key="")
    system = Message("system", "The battery lasts six hours in winter. " * 100)
    schema = {"type": "object"}
    requests = [
        Request((system, Message("user", f"request {number}")), schema)
        for number in range(count + 5)
    ]
    manners = Manners(concurrency=CONCURRENCY)

    def seconds(cache: Cache | None = None) -> float:
        start = time.perf_counter()
        outcomes = ask_all(requests[5:], endpoint, manners=manners, cache=cache)
        spent = time.perf_counter() - start
        if not all(isinstance(outcome, Answer) for outcome in outcomes):
            raise RuntimeError("not every request was answered")
        return spent

    ask_all(requests[:5], endpoint, manners=manners)
    with tempfile.TemporaryDirectory() as folder, Cache.open(folder) as cache:
        found = {"karat": seconds(), "karat, on disk": seconds(cache)}
        found["karat, again"] = seconds(cache)
    body = json.dumps(endpoint.accepted.wording.body(requests[0], "model")).encode()
    return found | {"bare sockets": asyncio.run(_bare(url, body, count))}


async def _bare(url: str, body: bytes, count: int) -> float:
    import asyncio
    from urllib.parse import urlsplit

    where = urlsplit(url)
    head = f"POST {where.path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    left = iter(range(count))

    async def work() -> None:
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        for _ in left:
            writer.write(head + body)
            said = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(said.split(b"content-length:")[1].split()[0]))
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
