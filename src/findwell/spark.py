"""findwell on Apache Spark: the same numbers for tables that one machine cannot hold.

`evaluate` measures, `compare` compares two evaluations, and `gate` decides about requirements.
Importing this imports no pyspark; that needs the extra `findwell[spark]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names

if TYPE_CHECKING:
    from findwell.evaluation.spark.comparing import compare, gate
    from findwell.evaluation.spark.job import evaluate
    from findwell.evaluation.spark.result import SparkResult

__all__ = ["SparkResult", "compare", "evaluate", "gate"]

__getattr__, __dir__ = lazy_names(__name__)
