"""findwell measures how good the retrieval of a RAG system is.

>>> import findwell
>>> result = findwell.evaluate({"q1": ["d1", "d2"]}, {"q1": ["d2"]}, measures=["RR", "recall@2"])
>>> result["RR"], result["recall@2"]
(0.5, 1.0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from findwell.core import display
from findwell.core import forks as forks  # notes forks from now on, whoever uses polars first

__version__ = "0.1.0"

if TYPE_CHECKING:
    from findwell.core.data import Gold, Run
    from findwell.core.errors import FindwellError
    from findwell.core.findings import Finding
    from findwell.core.policy import Policy
    from findwell.core.relation import Relation
    from findwell.evaluation.choose import choose
    from findwell.evaluation.comparison.compare import Comparison, compare
    from findwell.evaluation.comparison.gates import GateReport, gate
    from findwell.evaluation.comparison.power import PowerAnalysis, power
    from findwell.evaluation.evaluate import check, evaluate, judge
    from findwell.evaluation.explanation.explain import Explanation, explain
    from findwell.evaluation.results.cutoffs import curve, smallest_k
    from findwell.evaluation.results.estimates import Estimates
    from findwell.evaluation.results.result import Result
    from findwell.evaluation.results.store import load
    from findwell.io.read import load_gold, load_run
    from findwell.io.read.corpus import load_corpus
    from findwell.io.read.in_memory import GoldLike, RunLike
    from findwell.io.read.shapes import Shape, register_shape
    from findwell.judges.cards.card import JudgeCard, JudgeComparison, compare_judges, judge_card
    from findwell.judges.llm.check import JudgeCheck, judge_check
    from findwell.judges.settings import Judge
    from findwell.loop.labels.agree import Agreement, agree
    from findwell.loop.labels.anchor import anchor, drift
    from findwell.loop.labels.estimates import ppi
    from findwell.loop.labels.label_pool import LabelPool
    from findwell.loop.labels.labels import Labels
    from findwell.loop.labels.pool import pool
    from findwell.loop.labels.synthetic.questions import questions
    from findwell.loop.monitoring.monitor import Monitor
    from findwell.loop.tuning.fusion import fuse
    from findwell.loop.tuning.tune import tune
    from findwell.loop.tuning.tuning import Tuning
    from findwell.measures import Measure, known_measures, parse_measure, register_measure
    from findwell.measures.dialects import known_dialects
    from findwell.relations.match import find_matcher
    from findwell.relations.match.judged import register_aspect
    from findwell.retrievers.http import HttpRetriever
    from findwell.retrievers.retrieve import retrieve
    from findwell.retrievers.retriever import Retriever
    from findwell.show.report import report

# Loaded when first used, so that `findwell --help` need not wait for NumPy and polars.
_MODULES = {
    "findwell.loop.labels.agree": "Agreement agree",
    "findwell.evaluation.comparison.compare": "Comparison compare",
    "findwell.evaluation.comparison.gates": "GateReport gate",
    "findwell.evaluation.comparison.power": "PowerAnalysis power",
    "findwell.core.data": "Gold Run",
    "findwell.core.policy": "Policy",
    "findwell.core.relation": "Relation",
    "findwell.measures.dialects": "known_dialects",
    "findwell.core.errors": "FindwellError",
    "findwell.evaluation.choose": "choose",
    "findwell.evaluation.evaluate": "check evaluate judge",
    "findwell.evaluation.explanation.explain": "Explanation explain",
    "findwell.core.findings": "Finding",
    "findwell.judges.cards.card": "JudgeCard JudgeComparison compare_judges judge_card",
    "findwell.judges.llm.check": "JudgeCheck judge_check",
    "findwell.judges.settings": "Judge",
    "findwell.loop.labels.anchor": "anchor drift",
    "findwell.loop.labels.estimates": "ppi",
    "findwell.loop.labels.label_pool": "LabelPool",
    "findwell.loop.labels.labels": "Labels",
    "findwell.loop.labels.pool": "pool",
    "findwell.loop.labels.synthetic.questions": "questions",
    "findwell.measures": "Measure known_measures parse_measure register_measure",
    "findwell.loop.monitoring.monitor": "Monitor",
    "findwell.io.read": "load_gold load_run",
    "findwell.io.read.in_memory": "GoldLike RunLike",
    "findwell.io.read.shapes": "Shape register_shape",
    "findwell.io.read.corpus": "load_corpus",
    "findwell.relations.match": "find_matcher",
    "findwell.relations.match.judged": "register_aspect",
    "findwell.show.report": "report",
    "findwell.evaluation.results.cutoffs": "curve smallest_k",
    "findwell.evaluation.results.estimates": "Estimates",
    "findwell.evaluation.results.result": "Result",
    "findwell.evaluation.results.store": "load",
    "findwell.retrievers.http": "HttpRetriever",
    "findwell.retrievers.retrieve": "retrieve",
    "findwell.retrievers.retriever": "Retriever",
    "findwell.loop.tuning.fusion": "fuse",
    "findwell.loop.tuning.tune": "tune",
    "findwell.loop.tuning.tuning": "Tuning",
}
# modules with names of their own; pyspark is imported by the functions of `spark` only
_NAMESPACES = {"spark": "findwell.evaluation.spark", "tuning": "findwell.loop.tuning"}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

# the same names again, as type checkers and editors read them from a list alone
__all__ = [
    "Agreement", "Comparison", "Estimates", "Explanation", "Finding", "FindwellError", "GateReport",
    "Gold", "GoldLike", "HttpRetriever", "Judge", "JudgeCard", "JudgeCheck", "JudgeComparison",
    "LabelPool", "Labels", "Measure", "Monitor", "Policy", "PowerAnalysis", "Relation", "Result",
    "Retriever", "Run", "RunLike", "Shape", "Tuning", "agree", "anchor", "check",
    "choose", "compare", "compare_judges", "curve", "drift", "evaluate", "explain", "find_matcher",
    "fuse", "gate", "judge", "judge_card", "judge_check", "known_dialects", "known_measures",
    "load", "load_corpus", "load_gold", "load_run", "parse_measure", "pool", "power", "ppi",
    "questions", "register_aspect", "register_measure", "register_shape", "report", "retrieve",
    "smallest_k", "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _NAMESPACES:
        return importlib.import_module(_NAMESPACES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'findwell' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__


def _render(shown: object, how: display.Format, **choices: Any) -> str:  # noqa: ANN401
    from findwell.show import render  # noqa: PLC0415 - only what is shown needs it

    return render(shown, how, **choices)


def _plot(shown: object, chart: str | None, **choices: Any) -> display.Picture:  # noqa: ANN401
    from findwell.show.plot import plot  # noqa: PLC0415

    return plot(shown, chart, **choices)


display.register_renderer(_render)
display.register_plotter(_plot)
