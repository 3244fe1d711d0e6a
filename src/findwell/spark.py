"""findwell on Apache Spark: the same numbers for tables that one machine cannot hold.

`evaluate` measures, and `load` reads what was written; `findwell.compare` and `findwell.gate` take
what they return. Importing this imports no pyspark; that needs the extra `findwell[spark]`.
"""

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names
from findwell.evaluation.spark.job import evaluate
from findwell.evaluation.spark.result import SparkResult, load

__all__ = ["SparkResult", "evaluate", "load"]

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)
