"""What a task of Spark begins with: settings of its process, and errors that survive the way back.

Neither polars nor pyspark is imported here, so that the settings are made before polars starts.
"""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING

from findwell.core import errors
from findwell.core.errors import FindwellError, SparkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from findwell.evaluation.spark.task import TaskPlan

MARK = "findwell-error:"  # before an error of findwell in what Spark says about a failed task
END = ":end"


def evaluate_part(task: TaskPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Evaluate the queries of a partition; errors of findwell say in their text what they are.

    Spark hands on nothing but the text of an error.
    """
    # a task has one core; polars would start a thread for each of the machine
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    from findwell.evaluation.spark.task import evaluate_batches  # noqa: PLC0415

    try:
        yield from evaluate_batches(task, batches)
    except FindwellError as error:
        raise RuntimeError(f"{marked(error)} {error}") from None


def marked(error: FindwellError) -> str:
    """Return an error as a text from which `error_of` makes it again."""
    said = json.dumps([type(error).__name__, error.what, error.where, error.fix])
    return f"{MARK}{base64.b64encode(said.encode()).decode()}{END}"


def error_of(text: str) -> FindwellError:
    """Return the error of findwell that is marked in a text.

    >>> from findwell.core.errors import InputError
    >>> found = error_of("aborted: " + marked(InputError("the doc is missing", where="query 'q7'")))
    >>> type(found).__name__, str(found)
    ('InputError', "query 'q7': the doc is missing")
    """
    coded = text.partition(MARK)[2].partition(END)[0]
    name, what, where, fix = json.loads(base64.b64decode(coded))
    kind = getattr(errors, name, SparkError)
    error: FindwellError = kind(what, where=where, fix=fix)
    return error
