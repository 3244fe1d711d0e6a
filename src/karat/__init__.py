"""karat measures how good the retrieval of a RAG system is.

>>> import karat
>>> result = karat.evaluate({"q1": ["d1", "d2"]}, {"q1": ["d2"]}, measures=["RR", "recall@2"])
>>> result["RR"], result["recall@2"]
(0.5, 1.0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from karat import display
from karat import forks as forks  # notes forks from now on, whoever uses polars first

__version__ = "0.1.0"

if TYPE_CHECKING:
    from karat.comparison.agree import Agreement, agree
    from karat.comparison.compare import Comparison, compare
    from karat.comparison.gates import GateReport, gate
    from karat.comparison.power import PowerAnalysis, power
    from karat.core.data import Gold, Run
    from karat.core.policy import Policy
    from karat.core.relation import Relation
    from karat.dialects import known_dialects
    from karat.errors import KaratError
    from karat.evaluation.choose import choose
    from karat.evaluation.evaluate import check, evaluate, judge
    from karat.explanation.explain import Explanation, explain
    from karat.findings import Finding
    from karat.judges.cards.card import JudgeCard, judge_card
    from karat.judges.cards.comparison import JudgeComparison, compare_judges
    from karat.judges.llm.check import JudgeCheck, judge_check
    from karat.judges.settings import Judge
    from karat.labels.anchor import anchor, drift
    from karat.labels.estimates import ppi
    from karat.labels.label_pool import LabelPool
    from karat.labels.labels import Labels
    from karat.labels.pool import pool
    from karat.labels.synthetic.questions import questions
    from karat.measures import Measure, known_measures, parse_measure, register_measure
    from karat.monitoring.monitor import Monitor
    from karat.read import GoldLike, RunLike, Shape, load_gold, load_run, register_shape
    from karat.read.corpus import load_corpus
    from karat.relate.match import find_matcher
    from karat.relate.match.judged import register_aspect
    from karat.reports.report import report
    from karat.results.cutoffs import curve, smallest_k
    from karat.results.estimates import Estimates
    from karat.results.result import Result
    from karat.results.store import load
    from karat.retrievers.http import HttpRetriever
    from karat.retrievers.retrieve import retrieve
    from karat.retrievers.retriever import Retriever
    from karat.tuning.conclusion import Tuning
    from karat.tuning.fusion import fuse
    from karat.tuning.retriever_tuning import RetrieverTuning
    from karat.tuning.tune import tune

# Loaded when first used, so that `karat --help` need not wait for NumPy and polars.
_MODULES = {
    "karat.comparison.agree": "Agreement agree",
    "karat.comparison.compare": "Comparison compare",
    "karat.comparison.gates": "GateReport gate",
    "karat.comparison.power": "PowerAnalysis power",
    "karat.core.data": "Gold Run",
    "karat.core.policy": "Policy",
    "karat.core.relation": "Relation",
    "karat.dialects": "known_dialects",
    "karat.errors": "KaratError",
    "karat.evaluation.choose": "choose",
    "karat.evaluation.evaluate": "check evaluate judge",
    "karat.explanation.explain": "Explanation explain",
    "karat.findings": "Finding",
    "karat.judges.cards.card": "JudgeCard judge_card",
    "karat.judges.cards.comparison": "JudgeComparison compare_judges",
    "karat.judges.llm.check": "JudgeCheck judge_check",
    "karat.judges.settings": "Judge",
    "karat.labels.anchor": "anchor drift",
    "karat.labels.estimates": "ppi",
    "karat.labels.label_pool": "LabelPool",
    "karat.labels.labels": "Labels",
    "karat.labels.pool": "pool",
    "karat.labels.synthetic.questions": "questions",
    "karat.measures": "Measure known_measures parse_measure register_measure",
    "karat.monitoring.monitor": "Monitor",
    "karat.read": "GoldLike RunLike Shape load_gold load_run register_shape",
    "karat.read.corpus": "load_corpus",
    "karat.relate.match": "find_matcher",
    "karat.relate.match.judged": "register_aspect",
    "karat.reports.report": "report",
    "karat.results.cutoffs": "curve smallest_k",
    "karat.results.estimates": "Estimates",
    "karat.results.result": "Result",
    "karat.results.store": "load",
    "karat.retrievers.http": "HttpRetriever",
    "karat.retrievers.retrieve": "retrieve",
    "karat.retrievers.retriever": "Retriever",
    "karat.tuning.conclusion": "Tuning",
    "karat.tuning.fusion": "fuse",
    "karat.tuning.retriever_tuning": "RetrieverTuning",
    "karat.tuning.tune": "tune",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

# the same names again, as type checkers and editors read them from a list alone
__all__ = [
    "Agreement", "Comparison", "Estimates", "Explanation", "Finding", "GateReport", "Gold",
    "GoldLike", "HttpRetriever", "Judge", "JudgeCard", "JudgeCheck", "JudgeComparison",
    "KaratError", "LabelPool", "Labels", "Measure", "Monitor", "Policy", "PowerAnalysis",
    "Relation", "Result", "Retriever", "RetrieverTuning", "Run", "RunLike", "Shape", "Tuning",
    "agree", "anchor", "check", "choose", "compare", "compare_judges", "curve", "drift", "evaluate",
    "explain", "find_matcher", "fuse", "gate", "judge", "judge_card", "judge_check",
    "known_dialects", "known_measures", "load", "load_corpus", "load_gold", "load_run",
    "parse_measure", "pool", "power", "ppi", "questions", "register_aspect", "register_measure",
    "register_shape", "report", "retrieve", "smallest_k", "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name == "spark":  # a module, and pyspark is imported by its functions only
        return importlib.import_module("karat.spark")
    if name not in _HOME:
        raise AttributeError(f"module 'karat' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__


def _render(shown: object, how: display.Format) -> str:
    from karat.reports import render  # noqa: PLC0415 - only what is shown needs it

    return render(shown, how)


def _plot(shown: object, chart: str | None, **choices: Any) -> display.Picture:  # noqa: ANN401
    from karat.reports.plot import plot  # noqa: PLC0415

    return plot(shown, chart, **choices)


display.register_renderer(_render)
display.register_plotter(_plot)
