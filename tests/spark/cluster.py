"""findwell on a standalone cluster whose executors are killed: `python -m tests.spark.cluster`.

A master and two workers run on this machine, at ports that the system chooses. Nothing depends on
how fast they are: all steps wait for what they need, and give up only after minutes.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

import findwell
from tests.spark.frames import assert_same, hard_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEADLINE = 900.0  # seconds for one step, far more than it takes on a busy machine
EXECUTOR = "CoarseGrainedExecutorBackend"  # in the command of every executor
MEASURES = ["nDCG@10", "AP", "recall@3", "GMAP"]


def wait_for(what: str, found: Callable[[], Any]) -> Any:
    """Return what is found as soon as it is there."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        result = found()
        if result:
            return result
        time.sleep(0.05)
    raise TimeoutError(f"still no {what} after {DEADLINE:g} seconds")


@contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[tuple[psutil.Process, Path]]:
    """Run a process of the cluster and all that it starts; return it and its log."""
    import pyspark

    home, log = folder / name, folder / f"{name}.log"
    spark = Path(pyspark.__file__).parent
    home.mkdir()
    env = os.environ | {
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_DIRS": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}"]
    command += ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments[1:]]
    with log.open("wb") as out:
        process = psutil.Popen(command, cwd=home, env=env, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process, log
    finally:
        every = [*process.children(recursive=True), process] if process.is_running() else []
        for each in every:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(every, timeout=DEADLINE)


def logged(process: psutil.Process, log: Path, pattern: str) -> str:
    """Wait for a line in the log of a process, and return what is in brackets."""

    def look() -> str:
        text = log.read_text(encoding="utf-8", errors="replace")
        if process.poll() is not None:
            raise RuntimeError(f"{log.name} ended:\n{text[-3000:]}")
        found = re.search(pattern, text)
        return found[1] if found else ""

    return str(wait_for(f"{pattern!r} in {log.name}", look))


def executors(workers: list[psutil.Process]) -> list[psutil.Process]:
    """Return the executors that are running."""
    found = []
    for worker in workers:
        for child in worker.children(recursive=True):
            try:
                if EXECUTOR in " ".join(child.cmdline()):
                    found.append(child)
            except psutil.NoSuchProcess:
                continue
    return found


def kill(process: psutil.Process) -> None:
    """Kill a process as a lack of memory does, and wait until it is gone."""
    os.kill(process.pid, signal.SIGKILL)
    wait_for(
        f"end of {process.pid}",
        lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE,
    )


def check(folder: Path, spark: Any, workers: list[psutil.Process]) -> None:
    """Evaluate while an executor dies in a task, and read the values after another one died."""
    run, gold = hard_case(33, queries=200)
    gold = gold.sort("query", maintain_order=True)
    local = findwell.evaluate(run, gold, MEASURES)
    paused, killed, seen = folder / "paused", folder / "killed", list[str]()

    def pause_once(doc: str) -> str:
        """Stop in the middle of one task, in whichever executor it runs, until that is killed."""
        try:
            with paused.open("x"):
                pass
        except FileExistsError:
            return doc
        (folder / "task").write_text(str(os.getpid()))
        (folder / "task").rename(folder / "in-task")
        end = time.monotonic() + DEADLINE
        while not killed.exists() and time.monotonic() < end:
            time.sleep(0.05)
        os._exit(1)  # the executor that would take an answer is gone

    def kill_in_task() -> None:
        wait_for("task that runs", (folder / "in-task").exists)
        task = psutil.Process(int((folder / "in-task").read_text()))
        (executor,) = (each for each in executors(workers) if task in each.children(recursive=True))
        seen.append(" ".join(executor.cmdline()))
        kill(executor)
        killed.touch()

    killer = threading.Thread(target=kill_in_task, daemon=True)
    killer.start()
    there, known = (spark.createDataFrame(each.to_arrow()).repartition(4) for each in (run, gold))
    result = findwell.spark.evaluate(
        there,
        known,
        MEASURES,
        reading=findwell.Reading(ids=pause_once),
        partitions=8,
        batch_rows=100,
    )
    killer.join(DEADLINE)
    assert len(seen) == 1, "no executor was killed while a task ran"
    assert killed.exists()
    assert_same(result.per_query, local)
    assert result.summary.equals(local.summary)
    # what a lost executor kept is computed again
    wait_for("executor", lambda: executors(workers))
    kill(executors(workers)[0])
    written = folder / "values"
    result.write(str(written))
    loaded = findwell.spark.load(str(written), run_id=result.run_id)
    assert_same(loaded.per_query, local)
    assert loaded.summary.equals(local.summary)


def main() -> None:
    """Start the cluster, check, and stop it, whatever happens."""
    import pyspark.sql

    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with tempfile.TemporaryDirectory() as place, ExitStack() as held:
        folder = Path(place)
        master, log = held.enter_context(daemon(folder, "master", "master.Master"))
        url = logged(master, log, r"Starting Spark master at (spark://\S+)")
        workers = []
        for name in ("worker-1", "worker-2"):
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / name / "work")]
            started = daemon(folder, name, "worker.Worker", *size, url)
            worker, log = held.enter_context(started)
            logged(worker, log, r"(Successfully registered with master)")
            workers.append(worker)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        spark = (
            pyspark.sql.SparkSession.builder.master(url)
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.local.dir", str(folder))
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.executor.cores", "1")
            .config("spark.executor.memory", "512m")
            .config("spark.sql.shuffle.partitions", "4")
            # both executors take part from the beginning
            .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
            .config("spark.scheduler.maxRegisteredResourcesWaitingTime", f"{DEADLINE:g}s")
            .getOrCreate()
        )
        held.callback(spark.stop)
        spark.sparkContext.setLogLevel("OFF")
        check(folder, spark, workers)
    sys.stdout.write("the numbers are those of one machine\n")


if __name__ == "__main__":
    main()
