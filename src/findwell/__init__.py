"""findwell measures how good the retrieval of a RAG system is.

>>> import findwell
>>> result = findwell.evaluate({"q1": ["d1", "d2"]}, {"q1": ["d2"]}, measures=["RR", "recall@2"])
>>> result["RR"], result["recall@2"]
(0.5, 1.0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from findwell import display
from findwell import forks as forks  # notes forks from now on, whoever uses polars first

__version__ = "0.1.0"

if TYPE_CHECKING:
    from findwell.comparison.agree import Agreement, agree
    from findwell.comparison.compare import Comparison, compare
    from findwell.comparison.gates import GateReport, gate
    from findwell.comparison.power import PowerAnalysis, power
    from findwell.core.data import Gold, Run
    from findwell.core.policy import Policy
    from findwell.core.relation import Relation
    from findwell.dialects import known_dialects
    from findwell.errors import FindwellError
    from findwell.evaluation.choose import choose
    from findwell.evaluation.evaluate import check, evaluate, judge
    from findwell.explanation.explain import Explanation, explain
    from findwell.findings import Finding
    from findwell.judges.cards.card import JudgeCard, judge_card
    from findwell.judges.cards.comparison import JudgeComparison, compare_judges
    from findwell.judges.llm.check import JudgeCheck, judge_check
    from findwell.judges.settings import Judge
    from findwell.labels.anchor import anchor, drift
    from findwell.labels.estimates import ppi
    from findwell.labels.label_pool import LabelPool
    from findwell.labels.labels import Labels
    from findwell.labels.pool import pool
    from findwell.labels.synthetic.questions import questions
    from findwell.measures import Measure, known_measures, parse_measure, register_measure
    from findwell.monitoring.monitor import Monitor
    from findwell.read import GoldLike, RunLike, Shape, load_gold, load_run, register_shape
    from findwell.read.corpus import load_corpus
    from findwell.relate.match import find_matcher
    from findwell.relate.match.judged import register_aspect
    from findwell.reports.report import report
    from findwell.results.cutoffs import curve, smallest_k
    from findwell.results.estimates import Estimates
    from findwell.results.result import Result
    from findwell.results.store import load
    from findwell.retrievers.http import HttpRetriever
    from findwell.retrievers.retrieve import retrieve
    from findwell.retrievers.retriever import Retriever
    from findwell.tuning.conclusion import Tuning
    from findwell.tuning.fusion import fuse
    from findwell.tuning.retriever_tuning import RetrieverTuning
    from findwell.tuning.tune import tune

# Loaded when first used, so that `findwell --help` need not wait for NumPy and polars.
_MODULES = {
    "findwell.comparison.agree": "Agreement agree",
    "findwell.comparison.compare": "Comparison compare",
    "findwell.comparison.gates": "GateReport gate",
    "findwell.comparison.power": "PowerAnalysis power",
    "findwell.core.data": "Gold Run",
    "findwell.core.policy": "Policy",
    "findwell.core.relation": "Relation",
    "findwell.dialects": "known_dialects",
    "findwell.errors": "FindwellError",
    "findwell.evaluation.choose": "choose",
    "findwell.evaluation.evaluate": "check evaluate judge",
    "findwell.explanation.explain": "Explanation explain",
    "findwell.findings": "Finding",
    "findwell.judges.cards.card": "JudgeCard judge_card",
    "findwell.judges.cards.comparison": "JudgeComparison compare_judges",
    "findwell.judges.llm.check": "JudgeCheck judge_check",
    "findwell.judges.settings": "Judge",
    "findwell.labels.anchor": "anchor drift",
    "findwell.labels.estimates": "ppi",
    "findwell.labels.label_pool": "LabelPool",
    "findwell.labels.labels": "Labels",
    "findwell.labels.pool": "pool",
    "findwell.labels.synthetic.questions": "questions",
    "findwell.measures": "Measure known_measures parse_measure register_measure",
    "findwell.monitoring.monitor": "Monitor",
    "findwell.read": "GoldLike RunLike Shape load_gold load_run register_shape",
    "findwell.read.corpus": "load_corpus",
    "findwell.relate.match": "find_matcher",
    "findwell.relate.match.judged": "register_aspect",
    "findwell.reports.report": "report",
    "findwell.results.cutoffs": "curve smallest_k",
    "findwell.results.estimates": "Estimates",
    "findwell.results.result": "Result",
    "findwell.results.store": "load",
    "findwell.retrievers.http": "HttpRetriever",
    "findwell.retrievers.retrieve": "retrieve",
    "findwell.retrievers.retriever": "Retriever",
    "findwell.tuning.conclusion": "Tuning",
    "findwell.tuning.fusion": "fuse",
    "findwell.tuning.retriever_tuning": "RetrieverTuning",
    "findwell.tuning.tune": "tune",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

# the same names again, as type checkers and editors read them from a list alone
__all__ = [
    "Agreement", "Comparison", "Estimates", "Explanation", "Finding", "FindwellError", "GateReport",
    "Gold", "GoldLike", "HttpRetriever", "Judge", "JudgeCard", "JudgeCheck", "JudgeComparison",
    "LabelPool", "Labels", "Measure", "Monitor", "Policy", "PowerAnalysis", "Relation", "Result",
    "Retriever", "RetrieverTuning", "Run", "RunLike", "Shape", "Tuning", "agree", "anchor", "check",
    "choose", "compare", "compare_judges", "curve", "drift", "evaluate", "explain", "find_matcher",
    "fuse", "gate", "judge", "judge_card", "judge_check", "known_dialects", "known_measures",
    "load", "load_corpus", "load_gold", "load_run", "parse_measure", "pool", "power", "ppi",
    "questions", "register_aspect", "register_measure", "register_shape", "report", "retrieve",
    "smallest_k", "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name == "spark":  # a module, and pyspark is imported by its functions only
        return importlib.import_module("findwell.spark")
    if name not in _HOME:
        raise AttributeError(f"module 'findwell' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__


def _render(shown: object, how: display.Format) -> str:
    from findwell.reports import render  # noqa: PLC0415 - only what is shown needs it

    return render(shown, how)


def _plot(shown: object, chart: str | None, **choices: Any) -> display.Picture:  # noqa: ANN401
    from findwell.reports.plot import plot  # noqa: PLC0415

    return plot(shown, chart, **choices)


display.register_renderer(_render)
display.register_plotter(_plot)
