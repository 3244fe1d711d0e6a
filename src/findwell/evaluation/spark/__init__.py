"""findwell on Apache Spark: the same numbers for tables that one machine cannot hold.

`findwell.spark.evaluate` measures, and `load` reads what was written; `findwell.compare` and
`findwell.gate` take what they return. Importing this imports no pyspark; that needs the extra
`findwell[spark]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from findwell.evaluation.spark.job import evaluate
    from findwell.evaluation.spark.result import SparkResult, load

_HOME = {"SparkResult": "result", "evaluate": "job", "load": "result"}
__all__ = ["SparkResult", "evaluate", "load"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOME:
        raise AttributeError(f"module 'findwell.spark' has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
