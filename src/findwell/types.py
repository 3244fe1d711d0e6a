"""Types of what public functions take and return, for annotations."""

from typing import TYPE_CHECKING

from findwell.core.findings import Finding
from findwell.core.namespaces import lazy_names
from findwell.core.policy import Policy
from findwell.core.relation import Relation
from findwell.evaluation.comparison.gates import GateReport
from findwell.evaluation.explanation.explain import Explanation
from findwell.io.read.in_memory import GoldLike, RunLike

__all__ = ["Explanation", "Finding", "GateReport", "GoldLike", "Policy", "Relation", "RunLike"]

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)
