"""One measurement of the Spark section, in a process of the environment that has pyspark.

    python -m benchmarks.spark_work make FOLDER QUERIES DEPTH
    python -m benchmarks.spark_work spark|findwell|pandas FOLDER

It prints one line of JSON: seconds, processor seconds of all processes, the most memory that one
worker held, and the numbers.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from findwell.retrievers.memory import peak_bytes

MEASURES = ["nDCG@10", "AP", "RR", "recall@100", "P@10"]
JUDGED = 10  # documents of a query with a judgement
CHUNK = 10_000  # queries written at once


def make(folder: Path, queries: int, depth: int) -> dict[str, Any]:
    """Write a run and a gold in Parquet: several files, each query's rows in one of them."""
    rng = np.random.default_rng(queries)
    for part, first in enumerate(range(0, queries, CHUNK)):
        count = min(CHUNK, queries - first)
        query = pl.Series(np.repeat(np.arange(first, first + count), depth)).cast(pl.String)
        begin = np.repeat(rng.integers(0, 5_000_000, count), depth)  # no document comes twice
        doc = pl.Series(begin + np.tile(np.arange(depth), count)).cast(pl.String)
        # no two of a query are equal, also as numbers of 32 bits, which are those of trec_eval
        score = rng.permuted(np.tile(np.arange(float(depth)), (count, 1)), axis=1).ravel()
        rows = pl.DataFrame({"query": "q" + query, "doc": "d" + doc, "score": score})
        _write(rows, folder / "run", part)
        places = np.arange(count)[:, np.newaxis] * depth + rng.integers(0, depth, (count, JUDGED))
        picked = rows[places.ravel()].select("query", "doc")
        grades = rng.integers(0, 3, (count, JUDGED))
        grades[:, 0] = 2  # each query has something to find: what a tool does without is not timed
        gold = picked.with_columns(grade=pl.Series(grades.ravel()))
        _write(gold.unique(["query", "doc"], maintain_order=True), folder / "gold", part)
    return {"bytes": sum(path.stat().st_size for path in folder.rglob("*.parquet"))}


def _write(rows: pl.DataFrame, folder: Path, part: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows.write_parquet(folder / f"part-{part:05}.parquet")


def by_spark(folder: Path) -> dict[str, float | None]:
    """Evaluate with findwell on Spark, on two cores of this machine."""
    from pyspark.sql import SparkSession

    import findwell

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    rows = sum(1 for _ in (folder / "run").iterdir()) * CHUNK * 100
    try:
        result = findwell.spark.evaluate(
            str(folder / "run"),
            str(folder / "gold"),
            MEASURES,
            partitions=max(4, rows // 2_000_000),
        )
        values: dict[str, float | None] = result.values
        return values
    finally:
        session.stop()


def by_findwell(folder: Path) -> dict[str, float | None]:
    """Evaluate with findwell's own engine: the files as one stream."""
    import findwell
    from findwell.core.data import RunStream

    def batches() -> Any:  # noqa: ANN401
        for path in sorted((folder / "run").iterdir()):
            yield pl.read_parquet(path)

    gold = pl.concat([pl.read_parquet(path) for path in sorted((folder / "gold").iterdir())])
    return findwell.evaluate(RunStream("run", batches, "scored"), gold, MEASURES, level=None).values


def by_pandas(folder: Path) -> dict[str, float | None]:
    """Evaluate as `toPandas` and pytrec_eval do: everything as dicts in one process."""
    import pandas as pd
    import pytrec_eval

    run = pd.read_parquet(folder / "run")
    gold = pd.read_parquet(folder / "gold")
    names = {"ndcg_cut_10", "map", "recip_rank", "recall_100", "P_10"}
    judge = pytrec_eval.RelevanceEvaluator(_dicts(gold, "grade"), names)
    found = judge.evaluate(_dicts(run, "score"))
    count = gold["query"].nunique()
    means = {name: sum(each[name] for each in found.values()) / count for name in sorted(names)}
    return dict(means)


def _dicts(frame: Any, value: str) -> dict[str, dict[str, Any]]:  # noqa: ANN401
    made: dict[str, dict[str, Any]] = {}
    columns = (frame["query"].tolist(), frame["doc"].tolist(), frame[value].tolist())
    for query, doc, number in zip(*columns, strict=True):
        made.setdefault(query, {})[doc] = number
    return made


class WorkerMemory(threading.Thread):
    """Looks again and again how much memory the Python workers of Spark hold."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.processor: dict[int, float] = {}  # seconds, by process

    def run(self) -> None:
        """Watch until the process ends."""
        import psutil

        me = psutil.Process()
        while True:
            for child in me.children(recursive=True):
                try:
                    times = child.cpu_times()
                    self.processor[child.pid] = times.user + times.system
                    if "daemon" in " ".join(child.cmdline()):
                        self.most = max(self.most, child.memory_info().rss)
                except psutil.Error:
                    continue
            time.sleep(0.2)


def main() -> None:
    """Measure, and print what was found."""
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "make":
        found = make(folder, *map(int, sys.argv[3:]))
        sys.stdout.write(json.dumps(found) + "\n")
        return
    work = {"spark": by_spark, "findwell": by_findwell, "pandas": by_pandas}[what]
    watch = WorkerMemory()
    watch.start()
    start = time.monotonic()
    values = work(folder)
    seconds = time.monotonic() - start
    own = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(0.3)
    found = {
        "seconds": seconds,
        "processor": own.ru_utime + own.ru_stime + sum(watch.processor.values()),
        "peak": max(watch.most, 0 if what == "spark" else int(peak_bytes() or 0)),
        "values": values,
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
