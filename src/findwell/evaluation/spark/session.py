"""The Spark session of a job: found or started, and what is read through it.

Nothing here is imported with findwell: pyspark is loaded when a job begins.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from findwell.core.errors import InputError, OptionError, SparkError, how_to_install, needs_package
from findwell.evaluation.spark.worker import MARK, error_of
from findwell.io.read.format import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

EXTRA_NAME = "spark"
JAVA = "openjdk-17-jre-headless"  # what Debian and Ubuntu call the oldest Java of Spark 4
OLDEST_JAVA = 17
TABLE = "table:"  # how the name of a table begins, where a path could stand
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
# as findwell reads text tables: ids stay texts, quotes are doubled, and a text may have several
# lines
TEXT_TABLE: dict[str, Any] = {
    "header": True,
    "inferSchema": False,
    "escape": '"',
    "multiLine": True,
    "ignoreLeadingWhiteSpace": True,
    "ignoreTrailingWhiteSpace": True,
}
VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def require_pyspark() -> Any:  # noqa: ANN401
    """Return pyspark's module of frames, or say what to install."""
    with needs_package("the Spark engine", EXTRA_NAME):
        import pyspark  # noqa: PLC0415
        from pyspark import sql  # noqa: PLC0415
    version = str(pyspark.__version__)
    if not version.startswith("4."):
        raise OptionError(
            f"the Spark engine works with pyspark 4, and this is {version}",
            fix=how_to_install(EXTRA_NAME),
        )
    with needs_package("the Spark engine", EXTRA_NAME):
        import pandas as pd  # noqa: PLC0415 - pyspark wants it for mapInArrow, and no newer one
        import pyarrow  # noqa: F401, ICN001, PLC0415
    if int(pd.__version__.partition(".")[0]) != 2:
        raise OptionError(
            f"pyspark 4 works with pandas 2, and this is {pd.__version__}",
            fix=f"{how_to_install(EXTRA_NAME)}, in an environment of its own if others need "
            "pandas 3",
        )
    return sql


def require_java() -> None:
    """Say what to install if there is no Java that Spark runs on."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    fix = f"apt-get install {JAVA}, or set JAVA_HOME to the folder of Java 17 or newer"
    if program is None:
        where = "on the path" if home is None else "in JAVA_HOME"
        raise OptionError(f"Spark runs on Java, which was not found {where}", fix=fix)
    try:
        said = subprocess.run(  # noqa: S603
            [program, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OptionError(f"Java cannot be started: {error}", where=program, fix=fix) from None
    found = VERSION.search(said.stderr + said.stdout)
    if found is None:
        raise OptionError("Java does not say its version", where=program, fix=fix)
    if int(found[1]) < OLDEST_JAVA:
        raise OptionError(
            f"Spark 4 needs Java {OLDEST_JAVA}, and this is {found[1]}", where=program, fix=fix
        )


def open_session(master: str | None = None) -> SparkSession:
    """Return the session that is active, or a new one: on `master`, or as spark-defaults says.

    `sc://HOST:PORT` is a Spark Connect server.
    """
    sql = require_pyspark()
    active: SparkSession | None = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    builder = sql.SparkSession.builder.appName("findwell")
    if master is not None and master.startswith("sc://"):
        with needs_package("Spark Connect", install="pip install 'pyspark[connect]>=4,<5'"):
            import grpc  # noqa: F401, PLC0415
        remote: SparkSession = builder.remote(master).getOrCreate()
        return remote
    require_java()
    local = master is not None and master.startswith("local")
    if master is not None:
        builder = builder.master(master)
    if local:
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # not whatever is on the path
    session: SparkSession = builder.getOrCreate()
    if local:
        session.sparkContext.setLogLevel("ERROR")  # what findwell prints stays readable
    return session


def is_connect(session: object) -> bool:
    """Tell a session of Spark Connect, in which there is no JVM on this side."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def read_frame(session: SparkSession, place: str) -> DataFrame:
    """Read a table (`table:NAME`), or a path: Parquet, Delta, CSV, TSV or JSON lines."""
    try:
        if place.startswith(TABLE):
            return session.table(place.removeprefix(TABLE))
        kind = SUFFIXES.get(PurePosixPath(place).suffix.lower())
        if kind == "csv":
            tabs = "\t" if place.lower().endswith(".tsv") else ","
            return session.read.csv(place, sep=tabs, **TEXT_TABLE)
        if kind == "json":
            return session.read.json(place)
        if place.startswith("delta:"):
            return session.read.format("delta").load(place.removeprefix("delta:"))
        return session.read.parquet(place)
    except Exception as error:  # noqa: BLE001 - Java, Python and the servers of Connect have theirs
        raise InputError(
            f"Spark cannot read it: {first_line(error)}",
            where=place,
            fix="name a folder or file of Parquet, .csv or .jsonl, delta:PATH, or table:NAME of "
            "the session's catalogue",
        ) from None


@contextmanager
def naming_errors() -> Iterator[None]:
    """Turn what failed in a task into the error that it was, or into one that says what to do."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
            raise
        raise failure_of(str(error)) from None


def failure_of(text: str) -> Exception:
    """Return the error that the text of a failed job is about.

    >>> print(failure_of("... ModuleNotFoundError: No module named 'findwell'"))
    the executors cannot import findwell
      fix: install findwell on every node, or ship an environment: --archives env.tar.gz#environment
      \
(see docs/spark.md)
    """
    if MARK in text:
        return error_of(text)
    missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
    if missing:
        return SparkError(
            f"the executors cannot import {missing[1].partition('.')[0]}",
            fix="install findwell on every node, or ship an environment: "
            "--archives env.tar.gz#environment (see docs/spark.md)",
        )
    if "spark.driver.maxResultSize" in text:
        return SparkError(
            "the values of all queries are more than the driver may collect",
            fix="raise spark.driver.maxResultSize and spark.driver.memory (see docs/spark.md)",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(?:Error|Exception)\b", line)]
    return SparkError(
        f"the job failed: {(named or lines or ['no reason was given'])[-1][:300]}",
        fix="look at the log of the task that failed; a query with very many documents needs more "
        "memory for Python: spark.executor.memoryOverhead",
    )
