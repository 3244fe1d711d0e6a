"""karat measures how good the retrieval of a RAG system is.

>>> import karat
>>> result = karat.evaluate({"q1": ["d1", "d2"]}, {"q1": ["d2"]}, measures=["RR", "recall@2"])
>>> result["RR"], result["recall@2"]
(0.5, 1.0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from karat.comparison.compare import Comparison, compare
    from karat.core.data import Gold, Run
    from karat.errors import KaratError
    from karat.evaluation.evaluate import check, evaluate
    from karat.evaluation.judging import judge
    from karat.explanation.explain import Explanation, explain
    from karat.findings import Finding
    from karat.judges.settings import Judge
    from karat.labels.anchors import anchor
    from karat.labels.drifts import drift
    from karat.measures import Measure, known_measures, parse, register
    from karat.read import load_gold, load_run
    from karat.results.cutoffs import curve, smallest_k
    from karat.results.loaded import load
    from karat.results.result import Result

# Loaded when first used, so that `karat --help` need not wait for NumPy and polars.
_HOME = {
    "Comparison": "karat.comparison.compare",
    "Explanation": "karat.explanation.explain",
    "Finding": "karat.findings",
    "Gold": "karat.core.data",
    "Judge": "karat.judges.settings",
    "KaratError": "karat.errors",
    "Measure": "karat.measures",
    "Result": "karat.results.result",
    "Run": "karat.core.data",
    "anchor": "karat.labels.anchors",
    "check": "karat.evaluation.evaluate",
    "compare": "karat.comparison.compare",
    "curve": "karat.results.cutoffs",
    "drift": "karat.labels.drifts",
    "evaluate": "karat.evaluation.evaluate",
    "explain": "karat.explanation.explain",
    "judge": "karat.evaluation.judging",
    "known_measures": "karat.measures",
    "load": "karat.results.loaded",
    "load_gold": "karat.read",
    "load_run": "karat.read",
    "parse": "karat.measures",
    "register": "karat.measures",
    "smallest_k": "karat.results.cutoffs",
}

__all__ = [
    "Comparison",
    "Explanation",
    "Finding",
    "Gold",
    "Judge",
    "KaratError",
    "Measure",
    "Result",
    "Run",
    "anchor",
    "check",
    "compare",
    "curve",
    "drift",
    "evaluate",
    "explain",
    "judge",
    "known_measures",
    "load",
    "load_gold",
    "load_run",
    "parse",
    "register",
    "smallest_k",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in _HOME:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
