"""Reading records: findwell's reader of JSON lines compared with polars' own on the same file."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.data import ROOT
from benchmarks.report import Table

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = """\
From a file of JSON lines with findwell's own records (a question, 20 retrieved documents with
scores, two groups of gold, a reference, a topic) to run and gold, next to `polars.read_ndjson`,
which only parses it. The best of the rounds, each in a process of its own."""
BYTES_A_RECORD = 1_100
READERS = {
    "findwell": "from findwell.io.read import load_samples as read",
    "polars.read_ndjson": "from polars import read_ndjson as read",
}
TIMED = """
import sys, time
{imports}
read(sys.argv[2])
start = time.perf_counter()
read(sys.argv[1])
print(time.perf_counter() - start)
"""


def records(folder: Path, size: int, rounds: int) -> Table:
    """Time both readers on a file of about so many bytes."""
    path, small = (_file(folder, number // BYTES_A_RECORD) for number in (size, 1_000_000))
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, imports in READERS.items():
            arguments = ["-c", TIMED.format(imports=imports), str(path), str(small)]
            done = subprocess.run(
                [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
            )
            best[name] = min(float(done.stdout), best.get(name, float("inf")))
    megabytes = path.stat().st_size / 1e6
    rows = [
        (name, f"{seconds:.3f}", f"{megabytes / seconds:.0f}", f"{seconds / best[PEER]:.2f}")
        for name, seconds in best.items()
    ]
    header = ("reader", "seconds", "MB/s", "times polars")
    remark = RECORDS.replace("a file", f"{megabytes:,.0f} MB", 1)
    return Table("7. Records", remark, header, rows)


PEER = "polars.read_ndjson"


def _file(folder: Path, count: int) -> Path:
    """Write the records unless they are there."""
    path = folder / f"records-{count}.jsonl"
    if not path.exists():
        subprocess.run(
            [sys.executable, "-m", "benchmarks.records", str(path), str(count)],
            cwd=ROOT,
            check=True,
        )
    return path


def write(path: str, count: int) -> None:
    """Make so many records, a block at a time."""
    import json
    import random

    rng = random.Random(20)
    with open(f"{path}.draft", "w", encoding="utf-8") as file:  # noqa: PTH123
        for number in range(count):
            docs = [f"d{rng.randrange(10**6)}" for _ in range(22)]
            record = {
                "query": f"q{number}",
                "question": f"What does chapter {number} of the handbook say about the battery?",
                "retrieved": [{"doc": doc, "score": round(rng.random(), 6)} for doc in docs[:20]],
                "gold": [{"docs": docs[18:20], "grade": 2}, {"docs": docs[20:], "grade": 1}],
                "reference": "It says that the battery lasts about six hours in winter.",
                "topic": f"topic {number % 7}",
            }
            file.write(json.dumps(record) + "\n")
    from pathlib import Path

    Path(f"{path}.draft").replace(path)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
