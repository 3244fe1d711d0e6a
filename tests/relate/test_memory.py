"""Texts of a run stream: what is held does not grow with the chunks."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

QUERIES, SENTENCES, WORDS = 100_000, 5_000, 25
PEAK = """
import sys
import findwell
from findwell.retrievers.memory import peak_bytes
run, gold, keep = sys.argv[1:]
reading = findwell.Reading(keep=int(keep))
result = findwell.evaluate(run, gold, ["recall@5", "recall"], by="rouge", reading=reading)
print(*result.values.values(), int(peak_bytes()) >> 20)
"""


def write(folder: Path, depth: int) -> Path:
    """Write a run of so many chunks a query, and a gold of two texts a query, at ranks 2 and 6."""
    rng = random.Random(1)
    words = [first + last for first in "bdklmnrst" for last in ("ab", "en", "ill", "ox", "um")]
    texts = [" ".join(rng.choices(words, k=WORDS)) for _ in range(SENTENCES)]
    path = folder / f"run-{depth}.jsonl"
    with path.open("w") as run, (folder / "gold.jsonl").open("w") as gold:
        for query in range(QUERIES):
            mine = [texts[(7 * query + 13 * rank) % SENTENCES] for rank in range(depth)]
            chunks = [
                {"doc": f"d{query}-{rank}", "text": f"{text} {query} {rank}"}
                for rank, text in enumerate(mine)
            ]
            run.write(json.dumps({"query": f"q{query}", "retrieved": chunks}) + "\n")
            items = [{"text": mine[1]}, {"text": mine[5]}]
            gold.write(json.dumps({"query": f"q{query}", "gold": items}) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0, 1])
def test_a_run_three_times_as_deep_takes_no_more_memory(keep: int, tmp_path: Path) -> None:
    peaks, sizes = [], []
    for depth in (10, 30):
        path = write(tmp_path, depth)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(path), str(tmp_path / "gold.jsonl"), str(keep)],
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        early, late, megabytes = map(float, done.stdout.split())
        assert (early, late) == (0.5, 1.0)
        peaks.append(megabytes)
        sizes.append(path.stat().st_size >> 20)
        path.unlink()
    # Measured: 450 to 510 MiB at 10 chunks a query and at 40, most of it the gold and one block;
    # the run grows by 280 MiB, of which its texts are nearly all.
    grown = sizes[1] - sizes[0]
    assert grown > 240
    assert peaks[1] - peaks[0] < grown / 3, (peaks, sizes)
    assert peaks[1] < 800, peaks
