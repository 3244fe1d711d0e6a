"""Taking traces in: spans a second through `findwell monitor serve`, and a soak with kill -9.

`python -m benchmarks.traces SECONDS RATE KILLS` is the soak alone: what was sent and what is kept.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.report import MB, Table, shown_seconds
from findwell.loop.monitoring.store import TraceStore
from tests.monitoring.sending import Sender, ServerProcess, TraceBodies, soak

if TYPE_CHECKING:
    from benchmarks.sections import Facts

SENDERS, WORKERS = 4, 2
SHARE = 10  # the small store has so many times fewer spans
TICKS = os.sysconf("SC_CLK_TCK")
REMARK = f"""\
Spans as OpenInference writes them, six a trace, one of them a retriever with five documents of 60
words each; some 1,000 bytes a span, without gzip, 510 in a request as OTLP's protobuf. {SENDERS}
senders on the same machine, which share its cores; `findwell monitor serve --workers {WORKERS}`.
From the first request to the last acknowledgement, when all is on disk. *CPU* is the server's own,
all of its processes, user and system; *peak* is the most memory that they held, added up. *Read* is
a table of calls an hour with the mean latency and the mean number of documents, from a store that
was just opened."""
HEADER = (
    "spans", "calls kept", "time s", "spans/s", "CPU s", "spans/CPU s", "peak MB", "store MB",
    "read s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What was measured about one store."""

    spans: int
    calls: int
    seconds: float
    cpu: float
    peak: int
    bytes: int
    read: float

    def row(self) -> list[str]:
        """Return a line of the table."""
        return [
            f"{self.spans:,}",
            f"{self.calls:,}",
            shown_seconds(self.seconds),
            f"{self.spans / self.seconds:,.0f}",
            shown_seconds(self.cpu),
            f"{self.spans / self.cpu:,.0f}",
            f"{self.peak / MB:.0f}",
            f"{self.bytes / MB:.0f}",
            shown_seconds(self.read),
        ]


def traces(count: int, folder: Path, facts: Facts) -> Table:
    """Measure a small store and a large one."""
    rows = []
    for spans in (count // SHARE, count):
        with tempfile.TemporaryDirectory(dir=folder) as made:
            rows.append(_taken_in(spans, Path(made) / "store"))
        print(f"traces: {spans:,} spans in {rows[-1].seconds:.3g} s", file=sys.stderr)
    facts.taken_in = rows[-1].spans / rows[-1].seconds
    facts.taken_in_memory = rows[-1].peak / rows[0].peak
    return Table("18. Taking traces in", REMARK, HEADER, [each.row() for each in rows], texts=0)


def _taken_in(count: int, store: Path) -> TakenIn:
    bodies = TraceBodies()
    batches = max(1, count // bodies.spans)
    with ServerProcess(store, "--workers", str(WORKERS)) as server:
        senders = [Sender(server.port) for _ in range(SENDERS)]
        for number, sender in enumerate(senders):
            sender.send(TraceBodies(1).body(10**9 + number))  # the processes have started
        before = _cpu(server.process.pid)
        start = time.perf_counter()

        def work(name: int) -> None:
            for number in range(name, batches, SENDERS):
                senders[name].send(bodies.body(number))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - start
        cpu = _cpu(server.process.pid) - before
        peak = _peak(server.process.pid)
        for sender in senders:
            sender.close()
    with TraceStore.open(store) as opened:
        counts = opened.counts()
    expected = batches * bodies.traces + SENDERS
    if counts.calls != expected:
        raise SystemExit(f"{counts.calls:,} calls are kept of {expected:,}")
    return TakenIn(
        batches * bodies.spans, counts.calls, seconds, cpu, peak, counts.bytes, _read(store)
    )


def _read(store: Path) -> float:
    start = time.perf_counter()
    with TraceStore.open(store) as opened:
        opened.scan().group_by(pl.col("time").dt.truncate("1h")).agg(
            pl.len(), pl.mean("latency_ms"), pl.col("docs").list.len().mean()
        ).collect()
    return time.perf_counter() - start


def _processes(server: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(server)], capture_output=True, text=True, check=False
    )
    return [server, *map(int, listed.stdout.split())]


def _cpu(server: int) -> float:
    """Return the seconds that a server and its processes have used."""
    return sum(
        sum(map(int, _of(process, "stat").rpartition(")")[2].split()[11:13])) / TICKS
        for process in _processes(server)
    )


def _peak(server: int) -> int:
    """Return the most memory that they held, in bytes."""
    kilobytes = 0
    for process in _processes(server):
        for line in _of(process, "status").splitlines():
            if line.startswith("VmHWM:"):
                kilobytes += int(line.split()[1])
    return 1024 * kilobytes


def _of(process: int, what: str) -> str:
    return Path(f"/proc/{process}/{what}").read_text(encoding="utf-8")


def main() -> int:
    """Soak, and say what was lost."""
    seconds, rate, kills = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder = Path(tempfile.mkdtemp())
    found = soak(folder / "store", seconds=seconds, rate=rate, kills=kills)
    shutil.rmtree(folder)
    told = {
        "spans sent": found.sent,
        "spans counted": found.counted,
        "calls sent": len(found.expected),
        "calls kept": found.rows,
        "lost": len(found.expected - found.kept),
        "not sent": len(found.kept - found.expected),
        "batches sent again": found.again,
        "calls that came again": found.repeated,
        "kills": found.kills,
    }
    print(json.dumps(told, indent=2))
    return 0 if found.kept == found.expected and found.rows == len(found.kept) else 1


if __name__ == "__main__":
    raise SystemExit(main())
