"""karat on Apache Spark: the same numbers for tables that one machine cannot hold.

`karat.spark.evaluate` measures, `compare` holds two evaluations against each other, and `gate`
decides about requirements. Importing this imports no pyspark; that needs the extra `karat[spark]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from karat.spark.comparing import compare, gate
    from karat.spark.job import evaluate
    from karat.spark.result import SparkResult

_HOME = {
    "SparkResult": "karat.spark.result",
    "compare": "karat.spark.comparing",
    "evaluate": "karat.spark.job",
    "gate": "karat.spark.comparing",
}
__all__ = ["SparkResult", "compare", "evaluate", "gate"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOME:
        raise AttributeError(f"module 'karat.spark' has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    return getattr(importlib.import_module(_HOME[name]), name)
