"""findwell on Spark compared with findwell's own engine and with `toPandas` with pytrec_eval."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.data import ROOT
from benchmarks.report import MB, NOTHING, Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.sections import Facts

PYTHON = ROOT / ".venv" / "spark-env" / "bin" / "python"
TITLE = "19. Spark"
DEPTH = 100
WAYS = {"spark": "findwell on Spark, local[2]", "findwell": "findwell, one process"}
WAYS["pandas"] = "toPandas + pytrec_eval"
LARGEST = {"pandas": 300_000}  # queries; more do not fit a common machine
CLOSE = 1e-9
SAME = {"nDCG@10": "ndcg_cut_10", "P@10": "P_10", "RR": "recip_rank", "AP": "map"}
REMARK = """\
Run and gold in Parquet, {depth} documents a query, five measures with intervals, from the files to
the summary, in an environment of its own (pyspark {version}). On Spark the time includes the start
of the JVM. *Worker* is the most memory that one Python worker of Spark held, or the process of the
others. *Exponent* is the slope of log processor time over log rows, from the size before. All means
must be equal to {close:g}."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one way took."""

    seconds: float
    processor: float
    peak: float
    values: dict[str, float]


def spark(folder: Path, sizes: Sequence[int], facts: Facts) -> Table:
    """Measure all ways at all sizes."""
    header = ["queries × documents", "what", "wall s", "CPU s", "rows a second", "worker MB"]
    header += ["exponent"]
    if not PYTHON.exists():
        return Table(TITLE, "Spark is not installed: make .venv/spark.", header, [], texts=2)
    found: dict[tuple[int, str], Spent] = {}
    rows = []
    for at, queries in enumerate(sizes):
        data = folder / f"spark-{queries}"
        if not (data / "gold").exists():
            _ask("make", data, str(queries), str(DEPTH))
        for way, label in WAYS.items():
            if queries > LARGEST.get(way, queries):
                continue
            spent = found[queries, way] = Spent(**_ask(way, data))
            before = found.get((sizes[at - 1], way)) if at else None
            growth = (
                NOTHING
                if before is None
                else f"{math.log(spent.processor / before.processor, queries / sizes[at - 1]):.2f}"
            )
            cells = [f"{queries:,} × {DEPTH}", label, f"{spent.seconds:.1f}"]
            cells += [f"{spent.processor:.1f}", f"{queries * DEPTH / spent.seconds:,.0f}"]
            rows.append([*cells, f"{spent.peak / MB:,.0f}", growth])
            print(*rows[-1], file=sys.stderr)
            facts.disagreements += _differing(found[queries, "spark"].values, spent.values)
    return Table(
        TITLE, REMARK.format(depth=DEPTH, version=_version(), close=CLOSE), header, rows, 2
    )


def _ask(*arguments: object) -> dict[str, Any]:
    done = subprocess.run(
        [PYTHON, "-m", "benchmarks.spark_work", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYSPARK_PYTHON": str(PYTHON)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _differing(ours: dict[str, float], theirs: dict[str, float]) -> list[str]:
    pairs = [
        (name, value, theirs.get(name, theirs.get(SAME.get(name, ""), value)))
        for name, value in ours.items()
    ]
    return [
        f"Spark, {name}: {value!r}, elsewhere {other!r}"
        for name, value, other in pairs
        if abs(value - other) > CLOSE
    ]


def _version() -> str:
    asked = [str(PYTHON), "-c", "import pyspark; print(pyspark.__version__)"]
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()
