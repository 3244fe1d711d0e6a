"""Types of what public functions take and return, for annotations."""

from findwell.core.findings import Finding
from findwell.core.policy import Policy
from findwell.core.relation import Relation
from findwell.evaluation.comparison.gates import GateReport
from findwell.evaluation.explanation.explain import Explanation
from findwell.io.read.in_memory import GoldLike, RunLike

__all__ = ["Explanation", "Finding", "GateReport", "GoldLike", "Policy", "Relation", "RunLike"]
