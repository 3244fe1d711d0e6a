"""How long a store of a million calls takes to be shown: the figures of docs/monitoring.md.

`python -m benchmarks.monitoring [CALLS]` makes the store in a temporary folder, and prints the
processor time and the largest memory of processes that only show it.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

DAYS, DOCUMENTS, QUESTIONS = 30, 5, 20_000
LOOK = """
import resource, sys, time
from findwell.loop.monitoring.overview import OverviewChoice, overview
from findwell.monitor import Monitor
with Monitor.open(sys.argv[1]) as monitor:
    before = time.process_time()
    {look}
    took = time.process_time() - before
print(f"{{took:.1f}} s, {{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}} MB")
"""
LOOKS = {
    "table by the hour": 'monitor.buckets(every="1h")',
    "table by the hour, without intervals": ('monitor.buckets(every="1h", level=None)'),
    "page, as it opens": "overview(monitor, OverviewChoice())",
    "page, all time": 'overview(monitor, OverviewChoice(period="all"))',
}


def write_calls(path: Path, count: int) -> None:
    """Write calls of a month as plain records."""
    rng = random.Random(20)
    start, step = datetime(2026, 5, 1, tzinfo=UTC), timedelta(days=DAYS) / count
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            first = 1 + rng.random()
            found = [
                {"id": f"d{rng.randrange(5_000)}", "score": round(first - rank / 9, 3)}
                for rank in range(DOCUMENTS if rng.random() > 0.02 else 0)
            ]
            call = {
                "question": f"How do I set up part {rng.randrange(QUESTIONS)}?",
                "retrieved": found,
                "latency_ms": round(rng.lognormvariate(4, 0.5), 1),
                "time": (start + number * step).isoformat(),
                "service": ("web", "api")[number % 2],
            }
            file.write(json.dumps(call) + "\n")


def main() -> None:
    """Make the store and print a line for each look at it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        calls, store = Path(folder) / "calls.jsonl", Path(folder) / "store"
        write_calls(calls, count)
        ingest = ["-m", "findwell", "monitor", "ingest", str(calls), "--store", str(store)]
        subprocess.run([sys.executable, *ingest], check=True)
        for name, look in LOOKS.items():
            command = [sys.executable, "-c", LOOK.format(look=look), str(store)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            sys.stdout.write(f"{name}: {done.stdout}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
