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
    from karat.anchors import anchor
    from karat.comparison import Comparison, compare
    from karat.cutoffs import curve, smallest_k
    from karat.data import Gold, Run
    from karat.drifts import drift
    from karat.errors import KaratError
    from karat.evaluation import check, evaluate
    from karat.explanation import Explanation, explain
    from karat.findings import Finding
    from karat.judging import judge
    from karat.loaded import load
    from karat.measures import Measure, known_measures, parse, register
    from karat.read import load_gold, load_run
    from karat.result import Result

# Loaded when first used, so that `karat --help` need not wait for NumPy and polars.
_HOME = {
    "Comparison": "karat.comparison",
    "Explanation": "karat.explanation",
    "Finding": "karat.findings",
    "Gold": "karat.data",
    "KaratError": "karat.errors",
    "Measure": "karat.measures",
    "Result": "karat.result",
    "Run": "karat.data",
    "anchor": "karat.anchors",
    "check": "karat.evaluation",
    "compare": "karat.comparison",
    "curve": "karat.cutoffs",
    "drift": "karat.drifts",
    "evaluate": "karat.evaluation",
    "explain": "karat.explanation",
    "judge": "karat.judging",
    "known_measures": "karat.measures",
    "load": "karat.loaded",
    "load_gold": "karat.read",
    "load_run": "karat.read",
    "parse": "karat.measures",
    "register": "karat.measures",
    "smallest_k": "karat.cutoffs",
}

__all__ = [
    "Comparison",
    "Explanation",
    "Finding",
    "Gold",
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
