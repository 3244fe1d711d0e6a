"""findwell on Apache Spark: the same numbers for tables that one machine cannot hold.

`evaluate` measures, `compare` compares two evaluations, and `gate` decides about requirements.
Importing this imports no pyspark; that needs the extra `findwell[spark]`.
"""

from findwell.evaluation.spark.comparing import compare, gate
from findwell.evaluation.spark.job import evaluate
from findwell.evaluation.spark.result import SparkResult

__all__ = ["SparkResult", "compare", "evaluate", "gate"]
