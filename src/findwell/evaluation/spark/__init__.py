"""findwell on Apache Spark: the same numbers for tables that one machine cannot hold.

`findwell.spark.evaluate` measures, `compare` holds two evaluations against each other, and `gate`
decides about requirements. Importing this imports no pyspark; that needs the extra
`findwell[spark]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from findwell.evaluation.spark.comparing import compare, gate
    from findwell.evaluation.spark.job import evaluate
    from findwell.evaluation.spark.result import SparkResult

_HOME = {
    "SparkResult": "findwell.evaluation.spark.result",
    "compare": "findwell.evaluation.spark.comparing",
    "evaluate": "findwell.evaluation.spark.job",
    "gate": "findwell.evaluation.spark.comparing",
}
__all__ = ["SparkResult", "compare", "evaluate", "gate"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOME:
        raise AttributeError(f"module 'findwell.spark' has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    return getattr(importlib.import_module(_HOME[name]), name)
