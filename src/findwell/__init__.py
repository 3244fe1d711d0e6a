"""findwell measures how good the retrieval of a RAG system is.

>>> import findwell
>>> result = findwell.evaluate({"q1": ["d1", "d2"]}, {"q1": ["d2"]}, measures=["RR", "recall@2"])
>>> result["RR"], result["recall@2"]
(0.5, 1.0)

These are the names for every day; the others are in the namespaces `io`, `judges`, `labels`,
`monitor`, `plugins`, `retrievers`, `spark`, `statistics`, `tuning`, `types`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from findwell.core import display
from findwell.core import forks as forks  # notes forks from now on, also where others use polars
from findwell.core.namespaces import lazy_names, register_namespace

__version__ = "0.1.0"

if TYPE_CHECKING:
    from findwell import io as io
    from findwell import judges as judges
    from findwell import labels as labels
    from findwell import monitor as monitor
    from findwell import plugins as plugins
    from findwell import retrievers as retrievers
    from findwell import spark as spark
    from findwell import statistics as statistics
    from findwell import tuning as tuning
    from findwell import types as types
    from findwell.core.data import Gold, Run
    from findwell.core.errors import FindwellError
    from findwell.evaluation.comparison.compare import Comparison, compare
    from findwell.evaluation.comparison.gates import gate
    from findwell.evaluation.evaluate import evaluate
    from findwell.evaluation.explanation.explain import explain
    from findwell.evaluation.plan import Reading
    from findwell.evaluation.results.result import Result
    from findwell.evaluation.results.store import load
    from findwell.judges.settings import Judge
    from findwell.measures import Measure
    from findwell.retrievers.retrieve import retrieve
    from findwell.show.report import report

# The namespaces, and where the names of those are found that are imported when first used, so that
# `findwell --help` need not wait for NumPy and polars; the others are modules of their own.
_PUBLIC = {
    "findwell": {
        "findwell.core.data": "Gold Run",
        "findwell.core.errors": "FindwellError",
        "findwell.evaluation.comparison.compare": "Comparison compare",
        "findwell.evaluation.comparison.gates": "gate",
        "findwell.evaluation.evaluate": "evaluate",
        "findwell.evaluation.explanation.explain": "explain",
        "findwell.evaluation.plan": "Reading",
        "findwell.evaluation.results.result": "Result",
        "findwell.evaluation.results.store": "load",
        "findwell.judges.settings": "Judge",
        "findwell.measures": "Measure",
        "findwell.retrievers.retrieve": "retrieve",
        "findwell.show.report": "report",
    },
    "findwell.io": {
        "findwell.evaluation.doctor": "doctor",
        "findwell.evaluation.evaluate": "check",
        "findwell.io.read": "load_gold load_run",
        "findwell.io.read.corpus": "load_corpus",
    },
    "findwell.judges": {
        "findwell.evaluation.evaluate": "judge",
        "findwell.judges.cards.card": "JudgeCard JudgeComparison "
        "card=judge_card compare=compare_judges",
        "findwell.judges.embeddings": "find_embedder",
        "findwell.judges.find": "find_judge",
        "findwell.judges.llm.check": "JudgeCheck check=judge_check",
        "findwell.judges.llm.judge": "LLMJudge",
        "findwell.judges.local": "LocalJudge",
        "findwell.judges.taught": "Teaching teach=teach_judge",
        "findwell.judges.verdicts": "Sample",
    },
    "findwell.labels": {},
    "findwell.monitor": {},
    "findwell.plugins": {
        "findwell.io.read.format": "register_format",
        "findwell.io.read.objects": "register_source",
        "findwell.io.read.shapes": "Shape register_shape",
        "findwell.loop.monitoring.detectors": "register_detector",
        "findwell.loop.monitoring.signals": "register_signal",
        "findwell.loop.tuning": "register_engine",
        "findwell.measures": "known_measures parse_measure register_measure",
        "findwell.measures.dialects": "known_dialects",
        "findwell.measures.dialects.dialect": "register_dialect",
        "findwell.relations.match": "find_matcher",
        "findwell.relations.match.judged": "register_aspect",
        "findwell.relations.match.matcher": "register_matcher",
    },
    "findwell.retrievers": {
        "findwell.retrievers.http": "HttpRetriever",
        "findwell.retrievers.retriever": "Retriever",
    },
    "findwell.spark": {},
    "findwell.statistics": {
        "findwell.evaluation.choose": "choose",
        "findwell.evaluation.comparison.power": "PowerAnalysis power",
        "findwell.evaluation.results.cutoffs": "curve smallest_k",
    },
    "findwell.tuning": {},
    "findwell.types": {},
}
for _namespace, _modules in _PUBLIC.items():
    register_namespace(_namespace, _modules)

# the same names again, as type checkers and editors read them from a list alone
__all__ = [
    "Comparison", "FindwellError", "Gold", "Judge", "Measure", "Reading", "Result", "Run",
    "compare", "evaluate", "explain", "gate", "load", "report", "retrieve",
]  # fmt: skip
_find, _names = lazy_names(__name__)

if not TYPE_CHECKING:  # type checkers know the names from above

    def __getattr__(name: str) -> Any:  # noqa: ANN401
        namespace = f"findwell.{name}"
        return importlib.import_module(namespace) if namespace in _PUBLIC else _find(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *(each.partition(".")[2] for each in _PUBLIC), "__version__"} - {""})


def _render(shown: object, how: display.Format, **choices: Any) -> str:  # noqa: ANN401
    from findwell.show import render  # noqa: PLC0415 - only what is shown needs it

    return render(shown, how, **choices)


def _plot(shown: object, chart: str | None, **choices: Any) -> display.Picture:  # noqa: ANN401
    from findwell.show.plot import plot  # noqa: PLC0415

    return plot(shown, chart, **choices)


display.register_renderer(_render)
display.register_plotter(_plot)
