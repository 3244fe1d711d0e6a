"""The embedded judge: samples a second, by aspect and by the length of chunks."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from benchmarks.data import ROOT
from benchmarks.judging import different
from benchmarks.report import Table
from findwell.judges.local import LocalJudge
from tests.judges.building import FOUR

LENGTHS = {"55 words": 1, "165 words": 3}  # passages in a chunk
KINDS: dict[str, frozenset[str]] = {each: frozenset({each}) for each in FOUR}
KINDS["all four"] = FOUR
WARM = 50
REMARK = """\
samples of five chunks, judged by `local:text`, which needs nothing but the core: questions and
passages of the demo, no two samples alike. Samples a second, the best of the rounds, each in a
process of its own that has judged others before. (`local` reads every text with MiniLM, some 90 a
second here, the first time.)"""


def local_judge(count: int, rounds: int) -> Table:
    """Time all aspects."""
    best: dict[tuple[str, str], float] = {}
    for number in range(1, rounds + 1):
        for length, passages in LENGTHS.items():
            for kind in KINDS:
                seconds = _disagreement(kind, passages, count)
                best[kind, length] = min(seconds, best.get((kind, length), float("inf")))
                told = f"{kind}, {length}: {seconds:.3g} s"
                print(f"round {number} of {rounds}  {told}", file=sys.stderr)
    rows = [[kind, *(f"{count / best[kind, length]:,.0f}" for length in LENGTHS)] for kind in KINDS]
    header = ("aspect", *(f"chunks of {length}" for length in LENGTHS))
    return Table("13. The embedded judge", f"{count:,} {REMARK}", header, rows)


def _disagreement(kind: str, passages: int, count: int) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.local_judge", kind, str(passages), str(count)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout))


def measure(kind: str, passages: int, count: int) -> float:
    """Return the seconds that all samples take."""
    work = list(different(count + WARM, passages))
    judge = LocalJudge(None)
    judge.judge(work[count:], KINDS[kind])
    start = time.perf_counter()
    judge.judge(work[:count], KINDS[kind])
    return time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
